// Kernels that only copy: elements of a tensor to where another kernel finds them in an order that suits it.
#include <string.h>

#include "ir/fuse.h"
#include "ir/fuse_axes.h"

Fusion *fusion_of_copy(Arena *arena, const TensorOp *op, Access store, Tensor *const *candidates, int count)
{
    Fusion *copy = NEW(arena, Fusion);
    copy->spatial_count = copy->axis_count = op->axis_count;
    memcpy(copy->axes, op->axes, sizeof copy->axes);
    copy->op_count = 1;
    copy->ops = NEW(arena, FusedOp);
    copy->ops[0] = (FusedOp){.out = op->out, .stored = true, .spatial = (1u << op->axis_count) - 1,
                             .body = op->body, .store = store};
    fusion_choose_inputs(arena, copy, candidates, count);
    copy->outputs = NEW(arena, Tensor *);
    copy->outputs[copy->output_count++] = op->out;
    fuse_axes(arena, copy);
    fusion_verify(copy, "fusion_of_copy");
    return copy;
}
