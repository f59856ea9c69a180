// A kernel is what code generation makes of one plan: the whole emitted file and the launches it consists of.
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
    const char *without_prelude;   // of `source`: with one prelude for all, several kernels can stand in one file
    Launch *launches;   // in the order in which NAME_prepare, and then NAME_launch, makes them
    int launch_count;
    int prepare_count;  // of them: NAME_prepare's
    LaunchCopy *copies;   // that it makes before them: weights that calls read as they are
    int copy_count;
    int *leaders;       // of each kernel the first launch of it; equal launches have one kernel
    const char **likenesses;   // and all that a launch is told by, as text (codegen/equal.h)
    int kernel_count;
    bool has_graph;       // NAME_graph, too: of several launches, but for HIP
    int64_t workspace_bytes;   // for both
    int64_t alive_bytes;   // of these, the most that is alive at once, one launch after the other
    int64_t weight_bytes, prepared_bytes;
    const char *prepared_id;   // 16 hexadecimal digits: equal ones have equal memory; NULL: no weights
    const char **arguments;   // the launcher's names for the program's inputs, then its outputs
    const Program *program;   // what the user defined, and the temporaries that the plan adds to it
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
