// How each reduction of a row is made of its tiles': see row_tiles.h.
#include "ir/row_tiles.h"

static bool has_columns(const Fusion *whole, const FusedOp *op)
{
    return op->spatial >> whole->spatial_count & 1;
}

int row_tiles_product_ops(const Fusion *whole)
{
    int count = 0;
    while (count < whole->op_count && has_columns(whole, &whole->ops[count]))
        count++;
    return count;
}

// ---- what is made of each element, in place of its value ----

typedef struct Expansion {
    Arena *arena;
    const Fusion *whole;
    int product_ops;
} Expansion;

static Expr *expand(const Expansion *expansion, const Expr *expr)
{
    Expr *copy = NEW(expansion->arena, Expr);
    *copy = *expr;
    if (expr->kind == EXPR_VALUE) {
        const FusedOp *op = &expansion->whole->ops[expr->value];
        if (expr->value < expansion->product_ops || op->reduce != REDUCE_NONE)
            return copy;
        Expr *body = expand(expansion, op->body);
        return op->out->dtype == body->type ? body : expr_cast(expansion->arena, op->out->dtype, body);
    }
    if (expr->kind == EXPR_GUARD)
        copy->guard.body = expand(expansion, expr->guard.body);
    else if (expr->kind == EXPR_CAST)
        copy->cast.body = expand(expansion, expr->cast.body);
    else if (expr->kind == EXPR_APPLY)
        for (int i = 0; i < op_info[expr->apply.op].operands; i++)
            copy->apply.operands[i] = expand(expansion, expr->apply.operands[i]);
    return copy;
}

// ---- what a reduction reads of others ----

typedef struct RowReads {
    int product_ops;
    int op;         // the last reduction that is read; -1: none
    int count;      // how often any is
    bool several;   // different ones
} RowReads;

static void reads_visit(Expr *expr, void *context)
{
    RowReads *reads = context;
    if (expr->kind != EXPR_VALUE || expr->value < reads->product_ops)
        return;
    reads->several |= reads->count && expr->value != reads->op;
    reads->op = expr->value;
    reads->count++;
}

static RowReads reads_of(Expr *expr, int product_ops)
{
    RowReads reads = {.product_ops = product_ops, .op = -1};
    expr_visit(expr, reads_visit, &reads);
    return reads;
}

static bool is_value(const Expr *expr, int op) { return expr->kind == EXPR_VALUE && expr->value == op; }

/* exp(t - m) as a factor of the terms, t what m is the maximum of. */
static bool has_exponential(const Expr *expr, const RowSum *maximum, int m)
{
    if (expr_is(expr, OP_MUL))
        return has_exponential(expr->apply.operands[0], maximum, m) ||
               has_exponential(expr->apply.operands[1], maximum, m);
    if (!expr_is(expr, OP_EXP) || !expr_is(expr->apply.operands[0], OP_SUB))
        return false;
    Expr *const *sides = expr->apply.operands[0]->apply.operands;
    return is_value(sides[1], m) && expr_equal(sides[0], maximum->body);
}

/* select(t == m, g, k), k the same for all of the row. */
static Expr *missing_of(const Expr *expr, const RowSum *extreme, int m, int column)
{
    if (!expr_is(expr, OP_SELECT) || !expr_is(expr->apply.operands[0], OP_EQ))
        return NULL;
    Expr *const *sides = expr->apply.operands[0]->apply.operands;
    bool first = is_value(sides[0], m) && expr_equal(sides[1], extreme->body);
    bool second = is_value(sides[1], m) && expr_equal(sides[0], extreme->body);
    Expr *missing = expr->apply.operands[2];
    return (first || second) && !(expr_axes(missing) >> column & 1) ? missing : NULL;
}

// ---- one after the other ----

static bool is_extreme(const Fusion *whole, const RowSum *sums, int op)
{
    Reduce reduce = whole->ops[op].reduce;
    return sums[op].way == ROW_ALONE && (reduce == REDUCE_MAX || reduce == REDUCE_MIN) &&
           whole->ops[op].out->dtype == sums[op].body->type;
}

/* Read once: what else is made of m would be of the tile's. */
static RowWay way_of(const Fusion *whole, const RowSum *sums, int op, RowReads reads, Expr **missing)
{
    const FusedOp *own = &whole->ops[op];
    if (!reads.count)
        return ROW_ALONE;
    if (reads.several || reads.count > 1 || !is_extreme(whole, sums, reads.op))
        return ROW_NONE;
    bool of_maximum = whole->ops[reads.op].reduce == REDUCE_MAX && own->body->type == DTYPE_F32;
    if (own->reduce == REDUCE_SUM && of_maximum && has_exponential(sums[op].body, &sums[reads.op], reads.op))
        return ROW_EXPONENT;
    *missing = missing_of(sums[op].body, &sums[reads.op], reads.op, whole->spatial_count);
    return *missing && (own->reduce == REDUCE_MIN || own->reduce == REDUCE_MAX) ? ROW_PLACE : ROW_NONE;
}

RowSum *row_sums_find(Arena *arena, const Fusion *whole, int product_ops)
{
    RowSum *sums = NEW_ARRAY(arena, RowSum, whole->op_count);
    Expansion expansion = {arena, whole, product_ops};
    for (int i = product_ops; i < whole->op_count; i++) {
        const FusedOp *op = &whole->ops[i];
        if (op->reduce == REDUCE_NONE)
            continue;
        sums[i].body = expand(&expansion, op->body);
        RowReads reads = reads_of(sums[i].body, product_ops);
        sums[i].extreme = reads.op;
        sums[i].way = way_of(whole, sums, i, reads, &sums[i].missing);
        if (sums[i].way == ROW_NONE)
            return NULL;
    }
    return sums;
}
