// One launch of an emitted program. The launcher's text is written from this record (codegen/cuda/launcher.c), the
// driver is called with it (hal/gpu.c), and as JSON it stands in the first line of the emitted file: Python's loader
// starts kernels from that, and the interpreter compares it with what the launcher does.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

struct Tensor;

/* Buffers of a program beside its arguments, whose numbers come first. The last two are those of programs with
   weights. */
typedef enum BufferBeside {
    BUFFER_WORKSPACE,
    BUFFER_PREPARED,   // what NAME_prepare makes and calls read
    BUFFER_WEIGHTS,    // the file of weights; only NAME_prepare reads it
    BUFFERS_BESIDE
} BufferBeside;

/* One pointer parameter, in the order of the kernel's parameters: bytes of one of the program's buffers, which are its
   arguments in order, then those beside them. */
typedef struct LaunchArg {
    int buffer;
    int64_t offset, bytes;
    bool written;                  // else only read
    bool early;                    // may be read before the launch waits for those before it: codegen/chain.h
    const struct Tensor *tensor;   // what lies there, dense and row-major
    const struct Tensor *part;     // of a concatenation, the tensor that the launch makes of it; NULL: all
    int64_t first;                 // the kernel is given the place so many bytes behind `offset`
    int64_t row;                   // of every so many bytes the launch touches those
    int64_t row_first, row_end;    // … from here to there; row 0: all of `bytes`
} LaunchArg;

/* Where what the kernel is given lies in its buffer. */
static inline int64_t launch_arg_start(const LaunchArg *arg) { return arg->offset + arg->first; }

enum {
    MAX_LAUNCH_ARGS = 512,   // 4096 bytes of pointers; fuse() stays below
    MAX_TENSOR_MAPS = 4,     // of a launch
    MAX_MAP_RANK = 5,        // dimensions of a tensor map (CUDA driver API, cuTensorMapEncodeTiled)
    MAP_LINE_BYTES = 128,    // that copies bring along the first dimension, swizzled within
    MAX_PIXEL_AXES = MAX_MAP_RANK - 2   // of images, in im2col mode: the others are channels and image
};

/* A tensor as bulk copies see it, the first dimension contiguous: the driver makes a parameter of 128 bytes of it.
   Copies bring boxes of it; or, in im2col mode, pixels of images (channels, one to three axes, image) one after the
   other, from row to row and from image to image. */
typedef struct TensorMap {
    int arg;         // the launch's that holds it,
    int64_t start;   // from so many bytes behind its place on
    int rank, element_bytes;
    int pixel_axes;                      // of im2col mode, of rank pixel_axes + 2; 0: boxes
    int64_t sizes[MAX_MAP_RANK];         // elements
    int64_t strides[MAX_MAP_RANK - 1];   // bytes from one to the next along the second dimension and those behind it
    int box[MAX_MAP_RANK];               // elements that a copy brings, MAP_LINE_BYTES along the first; or channels, pixels
    bool tf32;                           // floats, which the copy rounds to tf32
    /* Of im2col mode, the innermost axis first: pixels go from the lower corner on in steps to the upper one,
       which is said from the image's end. */
    int lower[MAX_PIXEL_AXES], upper[MAX_PIXEL_AXES], steps[MAX_PIXEL_AXES];
} TensorMap;

/* Bytes of the file of weights that NAME_prepare copies. */
typedef struct LaunchCopy {
    int64_t from, to;   // offsets in the weights, in `prepared`
    int64_t bytes;
} LaunchCopy;

typedef struct Launch {
    const char *entry;   // "softmax_k0"; equal launches have the same
    int kernel;          // 0 of it
    int64_t grid[3];
    int block[3];
    int cluster[3];         // all 1: no clusters
    int64_t shared_bytes;   // dynamic
    bool asks_shared;       // for more of it than a block has without asking
    bool cooperative;
    bool early;         // programmatic dependent launch: begins while the one before it ends (codegen/chain.h)
    bool brief;         // calls of it alone begin while the one before them ends, wherever their blocks find room
    bool finds_room;    // most of its blocks, beside the last ones of the launch before it
    bool waits_last;    // an early one, for those before it
    bool lets_begin;    // the one behind it is early
    const int *after;   // launches that it waits for, without those that another of them comes after: hal/launch_order.h
    int after_count;
    LaunchArg *args;
    int arg_count;
    TensorMap maps[MAX_TENSOR_MAPS];   // parameters behind those of `args`
    int map_count;
    int turns;     // tiles that a persistent block makes, one after the other; the interpreter may skip those in between
    double work;   // scalar operations of the whole launch
    bool by_tensor_cores;   // most of them are
} Launch;

static inline int launch_cluster_blocks(const Launch *launch)
{
    return launch->cluster[0] * launch->cluster[1] * launch->cluster[2];
}

/* Parts of the rows of one tensor, side by side. */
static inline bool launch_args_are_beside(const LaunchArg *a, const LaunchArg *b)
{
    return a->row && a->row == b->row && a->offset == b->offset && a->bytes == b->bytes &&
           (a->row_end <= b->row_first || b->row_end <= a->row_first);
}

/* Whether the two share bytes. */
static inline bool launch_args_overlap(const LaunchArg *a, const LaunchArg *b)
{
    return a->buffer == b->buffer && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes &&
           !launch_args_are_beside(a, b);
}

/* The argument that has the bytes of argument i, too: of a sum that is made in place the one is read, the other
   written. -1: none. */
int launch_in_place(const Launch *launch, int i);

/* Whether one of the two reads or writes what the other writes. */
bool launches_meet(const Launch *a, const Launch *b);

/* What the first line of an emitted file begins with. */
#define LAUNCH_LINE "//rollerc: "

/* Appends the launches of a program with so many arguments, as `launches` of that line has them. */
void launches_write(Json *list, const Launch *launches, int count, int arguments);
/* The same of copies, which stand before launches in `prepare`. */
void launch_copies_write(Json *list, const LaunchCopy *copies, int count);

