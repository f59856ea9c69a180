// Kernels that only copy a tensor's elements into another order.
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

Fusion *fusion_copy(Arena *arena, const Fusion *fusion)
{
    Fusion *copy = arena_copy(arena, fusion, sizeof *fusion);
    copy->ops = arena_copy(arena, fusion->ops, sizeof(FusedOp) * (size_t)fusion->op_count);
    return copy;
}

void fusion_choose_inputs_beside(Arena *arena, Fusion *part, const Fusion *whole, Tensor *const *ahead,
                                 int count)
{
    Tensor **candidates = NEW_ARRAY(arena, Tensor *, whole->input_count + count);
    memcpy(candidates, whole->inputs, sizeof(Tensor *) * (size_t)whole->input_count);
    for (int i = 0; i < count; i++)
        candidates[whole->input_count + i] = ahead[i];
    fusion_choose_inputs(arena, part, candidates, whole->input_count + count);
}

void fusion_choose_tensors_beside(Arena *arena, Fusion *part, const Fusion *whole, Tensor *const *ahead,
                                  int count)
{
    fusion_choose_inputs_beside(arena, part, whole, ahead, count);
    part->outputs = NEW_ARRAY(arena, Tensor *, part->op_count);
    for (int i = 0; i < part->op_count; i++)
        if (part->ops[i].stored)
            part->outputs[part->output_count++] = part->ops[i].out;
}
