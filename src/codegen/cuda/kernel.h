// A kernel is what code generation makes of one plan: the whole emitted file and the launches it consists of.
//
// The interpreter, the profiler and the ranking read this record instead of the text.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/tensor_op.h"

/* One pointer parameter of a launch, in the order of the kernel's parameters. */
typedef struct LaunchArg {
    const Tensor *tensor;       // what lies there, dense and row-major; NULL: memory that the launch uses for itself
    bool written;               // else only read
    int64_t workspace_offset;   // bytes; -1: an argument of the program (an input or an output)
    int64_t scratch_bytes;      // of what is no tensor
} LaunchArg;

/* A tensor as bulk copies see it, up to three dimensions, the first contiguous: the driver makes a parameter
   of 128 bytes of it. */
typedef struct TensorMap {
    int arg;                 // the launch's that holds it
    int element_bytes;
    int64_t sizes[3];        // elements
    int64_t strides[2];      // bytes from one to the next along the second and the third
    int box[3];              // elements that a copy brings; 128 bytes along the first
    bool tf32;               // floats, which are rounded to tf32 on their way
} TensorMap;

enum { MAX_TENSOR_MAPS = 2 };   // of a launch

typedef struct Launch {
    const char *entry;   // "softmax_k0"
    int64_t grid[3];
    int block[3];
    int cluster[3];         // all 1: no clusters
    int64_t shared_bytes;   // dynamic
    bool asks_shared;       // for more of it than a block has without asking
    bool cooperative;
    bool early;         // begins while the one before it ends: codegen/chain.h
    bool waits_last;    // an early one, for those before it
    bool lets_begin;    // the one behind it is early
    LaunchArg *args;
    int arg_count;
    TensorMap maps[MAX_TENSOR_MAPS];   // parameters behind those of `args`
    int map_count;
    int turns;     // tiles that a block makes in turn; the interpreter may pass over those in between
    double work;   // scalar operations of the whole launch
} Launch;

static inline int launch_cluster_blocks(const Launch *launch)
{
    return launch->cluster[0] * launch->cluster[1] * launch->cluster[2];
}

typedef struct Kernel {
    const char *name;     // of the launcher: NAME_launch, NAME_workspace
    const char *source;   // the whole emitted .cu; ends in '\0' after `source_length` bytes
    size_t source_length;
    const char *without_prelude;   // of `source`: with one prelude for all, several kernels can stand in one file
    Launch *launches;   // in the order in which NAME_launch makes them
    int launch_count;
    int64_t workspace_bytes;
    const char **arguments;   // the launcher's names for the program's inputs, then its outputs
    const Program *program;   // what the user defined, and the temporaries that the plan adds to it
} Kernel;
