#include "ir/fuse_sums.h"

enum { MOST_SUMS = 16 };   // partial results of one kernel; a normalisation's gradient has two

uint32_t sums_spatial_mask(const Fusion *fusion) { return (1u << fusion->spatial_count) - 1; }
uint32_t sums_all_mask(const Fusion *fusion) { return (1u << fusion->axis_count) - 1; }
bool fusion_is_of_elements(const Fusion *fusion, const FusedOp *op)
{
    return (op->spatial & ~sums_spatial_mask(fusion)) != 0;
}

typedef struct SumDependence {
    const Fusion *fusion;
    bool found;
} SumDependence;

static void dependence_visit(Expr *expr, void *context)
{
    SumDependence *dependence = context;
    if (expr->kind != EXPR_VALUE)
        return;
    const FusedOp *op = &dependence->fusion->ops[expr->value];
    dependence->found |= op->reduce != REDUCE_NONE;
    expr_visit(op->body, dependence_visit, context);
}

bool fusion_depends_on_reductions(const Fusion *fusion, const Expr *expr)
{
    SumDependence dependence = {.fusion = fusion};
    expr_visit((Expr *)expr, dependence_visit, &dependence);
    return dependence.found;
}

/* What a value of elements was made of, unless it was rounded. */
static const Expr *see_through(const Fusion *fusion, const Expr *expr)
{
    while (expr->kind == EXPR_VALUE) {
        const FusedOp *op = &fusion->ops[expr->value];
        if (!fusion_is_of_elements(fusion, op) || op->body->type != op->out->dtype)
            break;
        expr = op->body;
    }
    return expr;
}

/* The difference whose square the expression is. */
static const Expr *squared(const Fusion *fusion, const Expr *expr)
{
    expr = see_through(fusion, expr);
    if (expr->kind != EXPR_APPLY || (expr->apply.op != OP_SQ && expr->apply.op != OP_MUL))
        return NULL;
    const Expr *factor = see_through(fusion, expr->apply.operands[0]);
    if (expr->apply.op == OP_MUL && !expr_equal(factor, see_through(fusion, expr->apply.operands[1])))
        return NULL;
    return factor->kind == EXPR_APPLY && factor->apply.op == OP_SUB ? factor : NULL;
}

static bool is_positive(const Expr *expr)
{
    return expr->kind == EXPR_CONST && dtype_info[expr->type].is_real && expr->constant.real > 0;
}

/* The total multiplied or divided by constants, like a mean. */
static bool is_share_of(const Fusion *fusion, const Expr *expr, int total)
{
    switch (expr->kind) {
    case EXPR_VALUE:
        return expr->value == total || (fusion->ops[expr->value].reduce == REDUCE_NONE &&
                                        is_share_of(fusion, fusion->ops[expr->value].body, total));
    case EXPR_CAST: return dtype_info[expr->cast.to].is_real && is_share_of(fusion, expr->cast.body, total);
    case EXPR_APPLY: {
        Expr *const *factors = expr->apply.operands;
        bool divides = expr->apply.op == OP_DIV, multiplies = expr->apply.op == OP_MUL;
        return ((divides || multiplies) && is_positive(factors[1]) &&
                is_share_of(fusion, factors[0], total)) ||
               (multiplies && is_positive(factors[0]) && is_share_of(fusion, factors[1], total));
    }
    case EXPR_CONST:
    case EXPR_INDEX:
    case EXPR_ACCESS:
    case EXPR_FETCH:
    case EXPR_GUARD: return false;
    }
    return false;
}

/* An infinite x makes the centre of its own chunk infinite, and inf - inf is NaN there: right only where m is
   infinite, too, as a share of the sum of the same elements is and their maximum, say, is not. */
bool fusion_centred_sum(const Fusion *fusion, int index, CentredSum *sum)
{
    const FusedOp *op = &fusion->ops[index];
    bool is_real = dtype_info[op->body->type].is_real;   // means of integers are cut off
    const Expr *difference = op->reduce == REDUCE_SUM && is_real ? squared(fusion, op->body) : NULL;
    if (!difference)
        return false;
    const Expr *element = see_through(fusion, difference->apply.operands[0]);
    const Expr *centre = difference->apply.operands[1];
    if (centre->kind != EXPR_VALUE || fusion_is_of_elements(fusion, &fusion->ops[centre->value]) ||
        fusion_depends_on_reductions(fusion, element) || centre->type != op->body->type)
        return false;
    for (int i = 0; i < index; i++) {
        const FusedOp *total = &fusion->ops[i];
        if (total->reduce == REDUCE_SUM && total->reduced == op->reduced &&
            expr_equal(see_through(fusion, total->body), element) && is_share_of(fusion, centre, i)) {
            *sum = (CentredSum){.element = element, .centre = centre->value, .total = i};
            return true;
        }
    }
    return false;
}

bool sums_find(Cutter *cutter)
{
    const Fusion *whole = cutter->whole;
    int reductions = 0;
    cutter->sums = NEW_ARRAY(cutter->arena, ChunkSum, whole->op_count);
    for (int i = 0; i < whole->op_count; i++) {
        const FusedOp *op = &whole->ops[i];
        cutter->sums[i].centre = -1;
        if (op->reduce == REDUCE_NONE)
            continue;
        if (op->reduced != (sums_all_mask(whole) & ~sums_spatial_mask(whole)) || ++reductions > MOST_SUMS)
            return false;
        CentredSum centred;
        if (!fusion_depends_on_reductions(whole, op->body)) {
            cutter->sums[i].element = op->body;
        } else if (fusion_centred_sum(whole, i, &centred)) {
            cutter->sums[i].centre = centred.centre;
            cutter->sums[i].element = centred.element;
            cutter->sums[i].total = centred.total;
        } else {
            return false;
        }
    }
    return reductions > 0;
}

/* The cut that gives chunks of at most `most` points, all of the same size. */
bool sums_find_cut(Cutter *cutter, int64_t most)
{
    const Fusion *whole = cutter->whole;
    int64_t inside = 1;
    for (int a = whole->axis_count - 1; a >= whole->spatial_count; a--) {
        int64_t extent = whole->axes[a].extent, chunk = extent < most / inside ? extent : most / inside;
        while (chunk > 1 && extent % chunk)
            chunk--;
        if (chunk < 1)
            chunk = 1;
        cutter->cut = a;
        cutter->chunk = chunk;
        cutter->points = (double)(chunk * inside);
        if (chunk < extent)
            return true;
        inside *= extent;
    }
    return false;   // one chunk would hold the whole row
}
