// Reductions of an expression that stands somewhere else: in exp(x[i, j] - m[i]) the m of
// m[a] = max[b](x[a, b]).
#include "base/checked.h"
#include "ir/eval_parts.h"
#include "ir/exact_type.h"
#include "ir/range.h"

/* The reduction's body is compared with the element, over whose axes its own are said. */
typedef struct Match {
    const RangeScope *scope;   // of the element
    RangeScope inside;         // of the body
    const TensorOp *op;
    Affine forms[MAX_AXES];   // of the op's axes, by those of the element
    uint32_t bound;           // those that are known
    int left;                 // nodes that may still be compared: what is folded in can grow without end
} Match;

enum { MOST_NODES = 400 };

static const TensorOp *definition_of(const RangeScope *scope, const Expr *expr)
{
    return expr->kind == EXPR_ACCESS && !scope->fusion ? scope->ranges->definition[expr->access.tensor->id]
                                                       : NULL;
}

Expr *range_see_through(const RangeScope *scope, Expr *expr)
{
    const TensorOp *op;
    while ((op = definition_of(scope, expr)) && op->reduce == REDUCE_NONE &&
           op->body->type == op->out->dtype) {
        Expr *made = definition_at(scope->ranges->arena, op, &expr->access);
        if (!made)
            break;
        expr = made;
    }
    return expr;
}

/* `left` less so many times the form. False: it cannot be said in 64 bits. */
static bool take_away(Affine *left, int64_t times, const Affine *form)
{
    int64_t part;
    for (int a = 0; a < MAX_AXES; a++)
        if (!checked_mul(-times, form->coef[a], &part) || !checked_add(left->coef[a], part, &left->coef[a]))
            return false;
    return checked_mul(-times, form->constant, &part) && checked_add(left->constant, part, &left->constant);
}

static bool divide(Affine *form, int64_t divisor)
{
    bool divides = form->constant % divisor == 0;
    form->constant /= divisor;
    for (int a = 0; a < MAX_AXES; a++) {
        divides &= form->coef[a] % divisor == 0;
        form->coef[a] /= divisor;
    }
    return divides;
}

/* 2*b + a of the body is 2*j + i of the element if a is i, and then b is j. */
static bool match_index(Match *match, const Affine *body, const Affine *element)
{
    Affine left = *element;
    int open = -1;
    for (int a = 0; a < match->op->axis_count; a++) {
        bool is_bound = match->bound >> a & 1;
        if (body->coef[a] && !is_bound && open >= 0)
            return false;
        if (body->coef[a] && !is_bound)
            open = a;
        if (body->coef[a] && is_bound && !take_away(&left, body->coef[a], &match->forms[a]))
            return false;
    }
    if (!checked_add(left.constant, -body->constant, &left.constant))
        return false;
    if (open < 0)
        return affine_is_constant(&left) && left.constant == 0;
    match->forms[open] = left;
    match->bound |= 1u << open;
    return divide(&match->forms[open], body->coef[open]);
}

static bool match_dims(Match *match, const Dim *body, const Dim *element, int count)
{
    for (int d = 0; d < count; d++)
        if (body[d].size != element[d].size || !match_index(match, &body[d].index, &element[d].index))
            return false;
    return true;
}

static bool match_expr(Match *match, Expr *body, Expr *element);

static bool match_operands(Match *match, const Expr *body, const Expr *element)
{
    for (int i = 0; i < op_info[body->apply.op].operands; i++)
        if (!match_expr(match, body->apply.operands[i], element->apply.operands[i]))
            return false;
    return body->apply.op == element->apply.op;
}

static bool match_guards(Match *match, const Guard *body, const Guard *element)
{
    return body->count == element->count && match_dims(match, body->bounds, element->bounds, body->count) &&
           match_expr(match, body->body, element->body) && expr_equal(body->otherwise, element->otherwise);
}

/* Node by node. */
static bool match_node(Match *match, Expr *body, Expr *element)
{
    if (body->kind != element->kind || body->type != element->type)
        return false;
    switch (body->kind) {
    case EXPR_CONST: return expr_equal(body, element);
    case EXPR_INDEX: return match_index(match, &body->index, &element->index);
    case EXPR_ACCESS:
        return body->access.tensor == element->access.tensor && body->access.rank == element->access.rank &&
               match_dims(match, body->access.dims, element->access.dims, body->access.rank);
    case EXPR_GUARD: return match_guards(match, &body->guard, &element->guard);
    case EXPR_CAST:
        return body->cast.to == element->cast.to && match_expr(match, body->cast.body, element->cast.body);
    case EXPR_APPLY: return body->apply.op == element->apply.op && match_operands(match, body, element);
    case EXPR_FETCH:
    case EXPR_VALUE: return false;
    }
    return false;
}

/* As they stand, else by what they are made of. */
static bool match_expr(Match *match, Expr *body, Expr *element)
{
    Match before = *match;
    if (--match->left < 0)
        return false;
    if (match_node(match, body, element))
        return true;
    before.left = match->left;
    *match = before;
    Expr *deep_body = range_see_through(&match->inside, body),
         *deep_element = range_see_through(match->scope, element);
    return (deep_body != body || deep_element != element) && match_node(match, deep_body, deep_element);
}

/* The element is among those of the reduction: of a sum it is each of them once. */
static bool takes_part(const Match *match)
{
    const RangeScope *scope = match->scope;
    int64_t extents[MAX_AXES], low, high;
    uint32_t taken = 0;
    for (int a = 0; a < scope->axis_count; a++)
        extents[a] = scope->axes[a].extent;
    for (int a = match->op->spatial_count; a < match->op->axis_count; a++) {
        int64_t extent = match->op->axes[a].extent;
        int axis = affine_single_axis(&match->forms[a]);
        if (!(match->bound >> a & 1) ||
            !affine_range(&match->forms[a], extents, scope->axis_count, &low, &high) || low < 0 ||
            high >= extent)
            return false;
        if (match->op->reduce == REDUCE_SUM && (axis < 0 || extents[axis] != extent || taken >> axis & 1))
            return false;
        taken |= axis < 0 ? 0 : 1u << axis;
    }
    return true;
}

/* What is stored is no smaller than the largest element. */
static bool is_kept_whole(const TensorOp *op)
{
    return op->reduce != REDUCE_MAX || op->body->type == op->out->dtype ||
           expr_is_exact(op->body, op->out->dtype);
}

bool range_is_total(const RangeScope *scope, Expr *total, Reduce reduce, Expr *element)
{
    total = range_see_through(scope, total);
    if (total->kind == EXPR_APPLY && total->apply.op == OP_MAX && reduce == REDUCE_MAX)
        return range_is_total(scope, total->apply.operands[0], reduce, element) ||
               range_is_total(scope, total->apply.operands[1], reduce, element);
    const TensorOp *op = definition_of(scope, total);
    if (!op || op->reduce != reduce || !is_kept_whole(op) || total->access.rank != op->spatial_count)
        return false;
    Match match = {.scope = scope,
                   .inside = {scope->ranges, op->axes, op->axis_count, NULL},
                   .op = op,
                   .left = MOST_NODES};
    for (int d = 0; d < total->access.rank; d++) {
        if (total->access.dims[d].size != op->axes[d].extent)
            return false;
        match.forms[d] = total->access.dims[d].index;
        match.bound |= 1u << d;
    }
    return match_expr(&match, op->body, element) && takes_part(&match);
}
