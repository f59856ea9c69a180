// CUDA text to machine code with NVRTC, which is found at run time: no GPU is needed, and no toolkit to
// build rollerc.
//
// Each text is compiled in a process of its own, as many at once as there are cores; what shortens a single
// one is that NVRTC optimises its kernels side by side. A text that does not compile, takes too long, or
// brings the compiler down is a result with a reason.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

typedef enum JitStatus {
    JIT_DONE,
    JIT_ERROR,   // the compiler refuses the text, or crashes
    JIT_TIMEOUT,
    JIT_MACHINE   // no NVRTC, or none for this architecture: no other text would fare better
} JitStatus;

/* What ptxas says of one kernel. */
typedef struct JitKernel {
    const char *name;
    int registers;
    int64_t spill_store_bytes, spill_load_bytes, stack_bytes, static_shared_bytes;
} JitKernel;

typedef struct JitResult {
    JitStatus status;
    const char *reason;     // NULL if done
    const char *compiler;   // "NVRTC 13.0"
    const char *log;
    const char *ptx;   // ends in '\0' after `ptx_length` bytes
    size_t ptx_length;
    const unsigned char *cubin;
    size_t cubin_length;
    bool all_registers;   // see jit_arguments
    JitKernel *kernels;
    int kernel_count;
} JitResult;

typedef struct JitRequest {
    const char *text;
    const char *name;   // for messages: "matmul.cu"
    int kernels;        // in the text; 0: one, or so
    bool split;         // they are optimised side by side
} JitRequest;

/* Where machine code is kept: jit_cache.h. */
typedef struct JitCache {
    const char *folder;
    int64_t max_bytes;
} JitCache;

typedef struct JitOptions {
    const char *arch;   // "sm_90a"
    int jobs;           // 0: as many as there are cores
    int seconds;        // for one kernel; 0: 60
    const JitCache *cache;   // NULL: none
    /* After each text, in any order; may be NULL. */
    void (*done)(void *context, int index, const JitResult *result);
    void *context;
} JitOptions;

void jit_compile(Arena *arena, const JitRequest *requests, int count, const JitOptions *options,
                 JitResult *results);

/* What tells one NVRTC from another: "NVRTC 13.0" and the library's own mark. Found once, in a worker; NULL:
   there is no NVRTC, or it has no mark. */
const char *jit_compiler(void);

/* Versions before 13.1, 12.8 and 13.0 among them, are reported to miscompile kernels for one architecture
   alone, as `sm_90a`. */
bool jit_is_doubted(const char *arch, int major, int minor);

/* The compiler that would be used, if it is one of those: "NVRTC 13.0"; else NULL. */
const char *jit_doubt(Arena *arena, const char *arch);

/* The command line of a compilation, ended by NULL; returns its length. `all_registers`: of a text that would
   spill without, since the compiler keeps registers for more blocks: 8 bytes beside 80 registers of 64
   threads, none with 72. */
int jit_arguments(Arena *arena, const char *arch, bool all_registers, const char ***arguments);

/* Reads the messages of `ptxas -v`. */
int jit_read_log(Arena *arena, const char *log, JitKernel **kernels);

const JitKernel *jit_find_kernel(const JitResult *result, const char *name);
bool jit_spills(const JitResult *result);
