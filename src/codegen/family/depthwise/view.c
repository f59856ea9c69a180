#include "codegen/family/depthwise/view.h"

#include "codegen/cuda/expr.h"
#include "codegen/family/depthwise/filter_gradient.h"
#include "codegen/family/depthwise/toeplitz.h"

static void find_sum(Arena *arena, const Fusion *fusion, const Target *target, DepthwiseView *view)
{
    Depthwise *sum = NEW(arena, Depthwise);
    if (!depthwise_find(fusion, sum))
        return;
    DType x = factor_access(sum->x)->tensor->dtype, w = factor_access(sum->w)->tensor->dtype;
    view->sum = sum;
    view->atom = x == w ? target_atom(target, x, IN_REGISTERS) : NULL;
    Depthwise flat;
    if (depthwise_flatten(fusion, sum, &flat))
        view->flat = arena_copy(arena, &flat, sizeof flat);
    view->direct = depthwise_is_direct(sum);
    FilterGradient *gradient = NEW(arena, FilterGradient);
    gradient->shared_atom = view->atom ? target_atom(target, x, IN_SHARED) : NULL;
    if (filter_gradient_find(fusion, sum, view->atom, gradient))
        *(gradient->shape.batch.count ? &view->grouped : &view->gradient) = gradient;
    Toeplitz toeplitz;
    if (view->atom && toeplitz_find(sum, view->atom, &toeplitz))
        view->toeplitz = arena_copy(arena, &toeplitz, sizeof toeplitz);
}

const void *depthwise_view(Arena *arena, const Fusion *fusion, const Target *target)
{
    DepthwiseView view = {.sum = NULL};
    Windows windows;
    if (count_bit_outputs(fusion))
        return NULL;
    find_sum(arena, fusion, target, &view);
    if (windows_find(fusion, &windows) && depthwise_is_direct(&windows.all))
        view.windows = arena_copy(arena, &windows, sizeof windows);
    return view.sum || view.windows ? arena_copy(arena, &view, sizeof view) : NULL;
}
