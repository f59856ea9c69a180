// Sliding windows: dimensions of a tensor whose index is a sum of an output's position and a tap.
//
//   pad(x[n, 2*h + 3*r - 1, …], 0)       output h, tap r, stride 2, dilation 3, pad 1
#pragma once
#include "ir/fuse.h"

/* Output i reads under tap k the input i * stride + k * dilation - pad, or nothing if that is not in [0,
   inputs). */
typedef struct WindowAxis {
    int output, tap;   // of the fusion; -1: there is one position
    int64_t outputs, taps, inputs;
    int64_t stride, dilation, pad;
    bool taps_turned,
        input_turned;   // they count backwards in the expression, forwards here; set by those who reverse them
    int64_t x_stride,
        w_stride;   // in memory, elements from one input, one tap to the next; set by those who know them
} WindowAxis;

/* Of one output, tap and input. */
extern const WindowAxis window_point;

/* The dimension is moved by one output's position and one tap at most, and is not made by others. */
bool window_find(const Fusion *fusion, const Dim *dim, WindowAxis *axis);

/* The same where no output need move it: there is one window then. */
bool window_find_standing(const Fusion *fusion, const Dim *dim, WindowAxis *axis);

/* The only axis in [first, end) that moves the form; -1: none, -2: several. */
int window_only_axis(const Affine *form, int first, int end);

/* Of the input, where these axes count outputs and taps. */
Affine window_index(const WindowAxis *axis, int output, int tap);

/* Is the reduction axis a tap of a window? It is short, and is added to a spatial axis in some dimension, as
   r is in `x[2*h + r]`. (A share of a split reduction looks the same but is long.) */
bool window_has_tap(const Fusion *fusion, int axis);

/* A share of a split sum of products, k = 25*share + tap: several tensors have windows, of which no two share
   an element. */
bool window_is_share(const Fusion *fusion);

/* Each bound is that of a dimension of the access. */
bool window_guards(const Guard *guard, const Access *access);

/* The axis of the convolution whose filter's gradient this is: outputs and taps change places. */
WindowAxis window_exchanged(const WindowAxis *axis);

/* Stride and dilation are 1: the next output's window begins one input farther on, and taps are adjacent. */
bool window_is_dense(const WindowAxis *axis);

/* Inputs under the windows of so many adjacent outputs, with the halo: 7 taps of 4 outputs cover 10. */
int64_t window_reach(const WindowAxis *axis, int64_t outputs);

/* Outputs that an input leads to: 5 under 5 taps, 3 if windows move by 2. */
int64_t window_open(const WindowAxis *axis);

/* Of all pairs of an output and a tap those that read an input: of 32 outputs, 31 taps and 32 inputs, padded
   by 15 each, 752 of 992. */
int64_t window_pairs_inside(const WindowAxis *axis);

/* The same where groups of so many adjacent outputs take every tap that one of them needs: for groups of
   eight 864 of 992. */
int64_t window_pairs_together(const WindowAxis *axis, int64_t lines);
