// Kernels of many programs as one of the runtime: the inputs and outputs of all, a piece of workspace for each kernel.
// Most of a proof's time is the C++ compiler's, which sees a batch as one translation unit.
#pragma once
#include "codegen/codegen.h"
#include "hal/runtime.h"
#include "ir/eval.h"

enum { PASSES = 3 };   // runs of a batch as a rule, each on other inputs, threads in another order

typedef struct BatchBuffer {
    const void *owner;   // whose program it belongs to, as the user of the batch said
    const char *label;   // … and what messages call that
    const Tensor *tensor;
    int input;   // of the program; -1: it is an output
} BatchBuffer;

typedef struct BatchKernel {
    const Program *program;
    const Kernel *kernel;
    int first_input, first_output;   // buffers
    int64_t workspace_offset;
} BatchKernel;

typedef struct Batch {
    Arena *arena;
    void *context;   // the user's
    BatchKernel *kernels;
    BatchBuffer *buffers;
    int count, buffer_count, passes, pass;
    int64_t workspace;
} Batch;

Batch batch_new(Arena *arena, int most_kernels, int most_buffers, void *context);

/* Returns the number of the first buffer. Kernels of one program may share its inputs. */
int batch_add_inputs(Batch *batch, const void *owner, const char *label, const Program *program);

/* With its outputs. */
void batch_add_kernel(Batch *batch, const void *owner, const char *label, const Program *program,
                      const Kernel *kernel, int first_input);

/* Kernels behind one prelude, which has what all of them use. */
void batch_write_kernels(StrBuf *out, const BatchKernel *kernels, int count, const DeviceSpec *device);

/* Writes a part of an input for the current pass, and what is to be done with the results of one. */
typedef void BatchFill(const Batch *batch, const BatchBuffer *buffer, int64_t offset, int64_t bytes,
                       void *memory);
typedef void BatchTake(const Batch *batch, const RuntimeResult *result);

/* All passes, within so many seconds each; the first with the checks of races, the second as a graph. False: it failed
   as a whole, for the reason given. */
bool batch_prove(Batch *batch, const DeviceSpec *device, BatchFill *fill, BatchTake *take, int seconds,
                 const char **why);

/* The part of a BatchFill, of the elements of a source. */
void batch_draw(const BatchBuffer *buffer, InputSource source, int64_t offset, int64_t bytes, void *memory);

/* What is wrong with an output, its padding bits included; NULL: nothing. */
const char *batch_difference(Arena *arena, const Tensor *tensor, const void *memory, const Value *expected);

/* Elements whose bound is finite. */
int64_t batch_judged(const Value *expected, int64_t count);
