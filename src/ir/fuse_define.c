// An op of a kernel as a definition of the program, so that the reference evaluator knows it.
#include "ir/concatenation.h"
#include "ir/fuse.h"

typedef struct Definition {
    Arena *arena;
    const Fusion *fusion;
    Affine forms[MAX_AXES];   // of the kernel's axes
} Definition;

static void value_visit(Expr *expr, void *context)
{
    const Definition *definition = context;
    const Fusion *fusion = definition->fusion;
    if (expr->kind == EXPR_VALUE) {
        Expr read = {.kind = EXPR_ACCESS, .type = expr->type, .access = fusion->ops[expr->value].store};
        *expr = *expr_substitute(definition->arena, &read, definition->forms, fusion->axis_count);
    }
    if (expr->kind == EXPR_ACCESS && expr->access.tensor->part_of)
        expr->access = access_of_whole(definition->arena, &expr->access);
}

const TensorOp *fused_op_define(Arena *arena, const Fusion *fusion, const FusedOp *op)
{
    Definition definition = {.arena = arena, .fusion = fusion};
    TensorOp *own = NEW(arena, TensorOp);
    for (int pass = 0; pass < 2; pass++)
        for (int a = 0; a < fusion->axis_count; a++)
            if ((pass ? op->reduced : op->spatial) >> a & 1) {
                definition.forms[a] = affine_axis(own->axis_count);
                own->axes[own->axis_count] = fusion->axes[a];
                own->axes[own->axis_count++].reduction = pass;
                own->spatial_count += !pass;
            }
    own->out = op->out;
    own->reduce = op->reduce;
    own->body = expr_substitute(arena, op->body, definition.forms, fusion->axis_count);
    expr_visit(own->body, value_visit, &definition);
    return own;
}
