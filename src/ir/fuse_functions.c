#include "ir/fuse_functions.h"

static bool is_one(const Expr *expr) { return expr->kind == EXPR_CONST && expr->constant.real == 1; }

static bool is_rounded_coarsely(const Fusion *fusion)
{
    for (int i = 0; i < fusion->output_count; i++) {
        DType type = fusion->outputs[i]->dtype;
        if (!dtype_info[type].is_real || dtype_info[type].bits > 16)
            return false;
    }
    return true;
}

static const Expr *tanh_beside_one(const Expr *expr)
{
    if (!expr_is(expr, OP_ADD) || expr->type != DTYPE_F32)
        return NULL;
    for (int i = 0; i < 2; i++)
        if (expr_is(expr->apply.operands[i], OP_TANH) && is_one(expr->apply.operands[1 - i]))
            return expr->apply.operands[i]->apply.operands[0];
    return NULL;
}

const Expr *fused_tanh(const Fusion *fusion, const Expr *expr)
{
    return is_rounded_coarsely(fusion) ? tanh_beside_one(expr) : NULL;
}

// ---- sums where they are read ----

typedef struct TanhSearch {
    Arena *arena;
    const Fusion *fusion;
    const FusedOp *reader;
    bool found;
} TanhSearch;

/* What a definition of the same points says, unrounded; any other expression is itself. */
static Expr *said_of(const TanhSearch *search, Expr *expr)
{
    const FusedOp *op = expr->kind == EXPR_VALUE ? &search->fusion->ops[expr->value] : NULL;
    bool same = op && op->reduce == REDUCE_NONE && op->spatial == search->reader->spatial &&
                op->out->dtype == op->body->type;
    return same ? expr_copy(search->arena, op->body) : expr;
}

static Expr *with_operand(Arena *arena, const Expr *expr, int i, Expr *operand)
{
    Expr *copy = NEW(arena, Expr);
    *copy = *expr;
    copy->apply.operands[i] = operand;
    return copy;
}

static void product_visit(Expr *expr, void *context)
{
    TanhSearch *search = context;
    for (int i = 0; expr_is(expr, OP_MUL) && i < 2; i++) {
        Expr *sum = said_of(search, expr->apply.operands[i]);
        for (int j = 0; expr_is(sum, OP_ADD) && j < 2; j++) {
            Expr *whole = with_operand(search->arena, sum, j, said_of(search, sum->apply.operands[j]));
            if (!tanh_beside_one(whole))
                continue;
            expr->apply.operands[i] = whole;
            search->found = true;
        }
    }
}

// ---- what nobody reads ----

static void value_visit(Expr *expr, void *context)
{
    if (expr->kind == EXPR_VALUE)
        ((bool *)context)[expr->value] = true;
}

static void renumber_visit(Expr *expr, void *context)
{
    if (expr->kind == EXPR_VALUE)
        expr->value = ((const int *)context)[expr->value];
}

static void drop_unread(Arena *arena, Fusion *fusion)
{
    bool *read = NEW_ARRAY(arena, bool, fusion->op_count);
    int *place = NEW_ARRAY(arena, int, fusion->op_count), count = 0;
    for (int i = fusion->op_count; i-- > 0;) {
        read[i] |= fusion->ops[i].stored;
        if (read[i])
            expr_visit(fusion->ops[i].body, value_visit, read);
    }
    for (int i = 0; i < fusion->op_count; i++) {
        place[i] = count;
        if (!read[i])
            continue;
        FusedOp op = fusion->ops[i];
        op.body = expr_copy(arena, op.body);   // an index that two bodies share would be changed twice
        expr_visit(op.body, renumber_visit, place);
        fusion->ops[count++] = op;
    }
    fusion->op_count = count;
}

void fuse_functions(Arena *arena, Fusion *fusion)
{
    TanhSearch search = {.arena = arena, .fusion = fusion};
    for (int i = 0; is_rounded_coarsely(fusion) && i < fusion->op_count; i++) {
        search.reader = &fusion->ops[i];
        expr_visit(fusion->ops[i].body, product_visit, &search);
    }
    if (search.found)
        drop_unread(arena, fusion);
}
