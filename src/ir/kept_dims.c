#include "ir/kept_dims.h"

#include "ir/fuse_inline.h"

typedef struct KeptSearch {
    const Program *program;
    uint32_t *dims;   // by tensor id: so far
    bool *fixed;      // by tensor id: an output, an input, or read where its dimensions are asked for
    const TensorOp *op;
    bool grows;
} KeptSearch;

/* m[i, 0]: the dimensions that have no index. */
static uint32_t named_alone(const Access *access)
{
    uint32_t dims = 0;
    for (int d = 0; d < access->rank; d++)
        dims |= (uint32_t)(access->dims[d].size == 1 && affine_is_constant(&access->dims[d].index)) << d;
    return dims;
}

static void grow(KeptSearch *search, int id, uint32_t dims, bool fixed)
{
    search->grows |= (dims & ~search->dims[id]) || (fixed && !search->fixed[id]);
    search->dims[id] |= dims;
    search->fixed[id] |= fixed;
}

/* What is read at the definition's own points has the dimensions that it has. */
static void read_at(KeptSearch *search, const Access *access)
{
    int id = access->tensor->id, out = search->op->out->id;
    if (access->tensor->role == ROLE_INPUT || !access_is_own(access))
        return;
    grow(search, id, named_alone(access), false);
    if (!reads_own_point(access, search->op->axes, search->op->spatial_count))
        return;
    grow(search, id, search->dims[out], search->fixed[out] && search->dims[out]);
    grow(search, out, search->dims[id], search->fixed[id] && search->dims[id]);
}

/* Below a guard, and at computed places, dimensions stay what they are. */
static void walk(KeptSearch *search, const Expr *expr, bool guarded)
{
    const Tensor *tensor = expr_tensor(expr);
    if (tensor && (guarded || expr->kind == EXPR_FETCH))
        grow(search, tensor->id, 0, true);
    else if (tensor)
        read_at(search, &expr->access);
    if (expr->kind == EXPR_FETCH)
        for (int i = 0; i < expr->fetch.count; i++)
            walk(search, expr->fetch.places[i].value, guarded);
    if (expr->kind == EXPR_GUARD)
        walk(search, expr->guard.body, true);
    if (expr->kind == EXPR_CAST)
        walk(search, expr->cast.body, guarded);
    for (int i = 0; expr->kind == EXPR_APPLY && i < op_info[expr->apply.op].operands; i++)
        walk(search, expr->apply.operands[i], guarded);
}

const uint32_t *kept_dims_find(Arena *arena, const Program *program)
{
    KeptSearch search = {program, NEW_ARRAY(arena, uint32_t, program->tensor_count),
                         NEW_ARRAY(arena, bool, program->tensor_count), NULL, true};
    for (int i = 0; i < program->output_count; i++)
        search.fixed[program->outputs[i]->id] = true;
    while (search.grows) {
        search.grows = false;
        for (int i = 0; i < program->op_count; i++) {
            search.op = program->ops[i];
            walk(&search, search.op->body, false);
        }
    }
    bool any = false;
    for (int i = 0; i < program->tensor_count; i++) {
        search.dims[i] = search.fixed[i] ? 0 : search.dims[i];
        any |= search.dims[i] != 0;
    }
    return any ? search.dims : NULL;
}
