// The part of NVRTC that rollerc calls: own prototypes, so that no CUDA header is needed. To be used in a
// worker only.
#pragma once
#include <stdbool.h>
#include <stddef.h>

typedef struct NvrtcProgram *NvrtcHandle;

typedef struct Nvrtc {
    int (*version)(int *major, int *minor);
    const char *(*error_string)(int result);
    int (*create)(NvrtcHandle *program, const char *text, const char *name, int headers,
                  const char *const *header_texts, const char *const *header_names);
    int (*compile)(NvrtcHandle program, int count, const char *const *options);
    int (*log_size)(NvrtcHandle program, size_t *bytes);
    int (*log)(NvrtcHandle program, char *log);
    int (*ptx_size)(NvrtcHandle program, size_t *bytes);
    int (*ptx)(NvrtcHandle program, char *ptx);
    int (*cubin_size)(NvrtcHandle program, size_t *bytes);
    int (*cubin)(NvrtcHandle program, char *cubin);
    int (*arch_count)(int *count);
    int (*archs)(int *archs);
} Nvrtc;

bool nvrtc_open(Nvrtc *nvrtc, char *reason, size_t reason_bytes);

/* Can it make machine code for "sm_90a"? If not, `reason` says which toolkit could. */
bool nvrtc_knows(const Nvrtc *nvrtc, const char *arch, char *reason, size_t reason_bytes);

/* The library's build id, which the linker made from all its bytes, in hexadecimal digits; "": it has
   none. */
void nvrtc_build(const Nvrtc *nvrtc, char *digits, size_t bytes);
