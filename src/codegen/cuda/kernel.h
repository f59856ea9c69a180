// A kernel is the result of code generation for one plan: the whole emitted file and its launches.
//
// The proof, the profiler and the ranking read this record instead of the text.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hal/launch.h"
#include "ir/tensor_op.h"

typedef struct Kernel {
    const char *name;     // of the launcher: NAME_launch, NAME_workspace
    const char *source;   // the whole emitted .cu; ends in '\0' after `source_length` bytes
    size_t source_length;
    const char *const *pieces;   // of each kernel a text of it alone, called NAME_k0, which says nothing of the plan: compilers take
                                 // them side by side, and equal kernels of several plans once; NULL: nobody asked for them
    const char *without_prelude;   // of `source`: with a common prelude several kernels can share a file
    Launch *launches;   // in the order of NAME_prepare, then of NAME_launch
    int launch_count;
    int prepare_count;  // of them: NAME_prepare's
    LaunchCopy *copies;   // before its launches: weights that calls read unchanged
    int copy_count;
    int *leaders;       // the first launch of each kernel; equal launches share one kernel
    const char **likenesses;   // and the text by which launches are compared (codegen/equal.h)
    int kernel_count;
    bool has_graph;       // has NAME_graph: several launches, not HIP
    int64_t workspace_bytes;   // for both
    int64_t alive_bytes;   // most bytes alive at once, launch by launch
    int64_t weight_bytes, prepared_bytes;
    const char *prepared_id;   // 16 hexadecimal digits: equal ones have equal memory; NULL: no weights
    const char **arguments;   // the launcher's names for the program's inputs, then its outputs
    const Program *program;   // the user's definitions, and the plan's temporaries
} Kernel;

/* Inputs, weights, then outputs. Of the buffers of launches those beside them come next (launch.h). */
static inline int argument_count(const Program *program)
{
    return program->input_count + program->output_count;
}

static inline int buffer_beside(const Program *program, BufferBeside which)
{
    return argument_count(program) + (int)which;
}

static inline const Tensor *argument_tensor(const Program *program, int argument)
{
    return argument < program->input_count ? program->inputs[argument]
                                           : program->outputs[argument - program->input_count];
}
