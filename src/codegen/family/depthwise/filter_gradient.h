// The gradient of a depthwise convolution for its filters, as the kernels see it that make it:
//
//   dw[c, k, l] = sum[n, i, j](x[n, c, i*stride + k*dilation + top, …] * d[n, c, i, j])       0 outside of x
//
// It has the form of a depthwise convolution (shape.h) whose filter is d: its taps are the pixels of d, its
// outputs the taps.
#pragma once
#include "codegen/family/depthwise/direct.h"

/* A tensor of pictures, one for each channel and image. */
typedef struct Pictures {
    const Access *access;
    const Affine *offset;   // of a picture, by the axes of channels and images,
    int64_t origin;         // and of the first one
    int64_t row_stride, column_stride, rows, columns;
    bool pieces;   // rows are whole aligned pieces of 16 bytes
} Pictures;

int64_t pictures_bytes(const Pictures *pictures);   // of an element

typedef struct FilterGradient {
    Depthwise shape;
    const Atom *atom, *shared_atom;   // of both factors' type, in registers and in shared memory; NULL: there is none
    Pictures x, d;
    WindowAxis down, along;   // of the convolution: outputs are the elements of d
} FilterGradient;

/* Is the fusion's only reduction one? There are more pixels than taps: else it is a convolution with a filter
   larger than its image. `atom`: of both factors' type; NULL: there is none. Where a group has several channels, those of x
   are `batch`, the filters `multiplier`. */
bool filter_gradient_find(const Fusion *fusion, const Depthwise *sum, const Atom *atom,
                          FilterGradient *gradient);

/* Where a picture begins, by the axes of channels and images. */
Affine pictures_form(const Pictures *pictures, const Depthwise *shape);

/* Neither stride nor dilation. */
bool filter_gradient_is_dense(const FilterGradient *gradient);

/* Axes of the kernels' space, where a group has one channel. */
enum { TAP_DOWN = CHANNEL + 1, TAP_ALONG, IMAGE, ROW, COLUMN };

/* Tiles of x and d, both staged, and of what is stored. `taps`: rows of them that a block makes. */
TileSpace *filter_gradient_space(Arena *arena, const Fusion *fusion, const FilterGradient *gradient,
                                 int64_t taps);

/* What threads of a block copy to shared memory, element by element where rows are no whole pieces. */
void filter_gradient_copies(TileSpace *space, const FilterGradient *gradient);

/* Pairs of a row of d and a row of taps that meet a row of x, of all. */
double filter_gradient_rows_inside(const FilterGradient *gradient);

/* Warps of an SM. Where they are few nothing hides that each waits for the next step: 4 take 1.8 times as
   long as the model says, 16 hardly longer (tuning-log 50). */
int64_t filter_gradient_warps(const DeviceSpec *device, int64_t threads, int64_t registers,
                              int64_t shared_bytes);

/* Shared memory in which warps leave a mark each: some element is infinite or no number. */
int64_t filter_gradient_mark_bytes(int64_t warps);

/* What a block does with each step of pictures, of which two have room: it copies the next one and multiplies
   this one. `zeros`: bytes around the pictures. */
void filter_gradient_walk(Schedule *schedule, const Fusion *fusion, const FilterGradient *gradient,
                          const TileSpace *space, int64_t zeros);

/* The sizes of the problem; its strides and dilations; how many blocks of so many rows of taps, and steps of
   so many images, it has; where pictures lie; what becomes of a total. */
void filter_gradient_emit_sizes(StrBuf *out, const FilterGradient *gradient);
void filter_gradient_emit_steps(StrBuf *out, const FilterGradient *gradient);
void filter_gradient_emit_blocks(StrBuf *out, const FilterGradient *gradient, int64_t taps, int64_t images);
void filter_gradient_emit_functions(StrBuf *out, const KernelPlan *plan, const FilterGradient *gradient);

/* Of groups: axes, and tiles. `block`: a block's extents, but for taps and columns. */
void filter_groups_set_space(TileSpace *space, const Fusion *fusion, const FilterGradient *gradient,
                             const int64_t *block);
