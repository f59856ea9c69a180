#include "ir/common_factors.h"

#include <math.h>

typedef struct FactorSearch {
    Arena *arena;
    uint32_t reduced;
    FactorKind kind;
    CommonFactors *found;
} FactorSearch;

static void element_visit(Expr *expr, void *context)
{
    *(bool *)context |= expr->kind != EXPR_CONST && expr->kind != EXPR_APPLY && expr->kind != EXPR_CAST;
}

static bool is_made_of_numbers(const Expr *expr)
{
    bool elements = false;
    expr_visit((Expr *)expr, element_visit, &elements);
    return !elements;
}

/* Far from 1 a number stays where it is. */
static bool is_near_one(const Expr *expr)
{
    if (expr->kind != EXPR_CONST || !dtype_info[expr->type].is_real)
        return true;
    double size = fabs(expr->constant.real);
    return size <= FARTHEST_FACTOR && size >= 1 / FARTHEST_FACTOR;
}

static bool is_common(const FactorSearch *search, const Expr *expr)
{
    return !(expr_axes(expr) & search->reduced) && is_near_one(expr) &&
           (search->kind == FACTOR_ANY || is_made_of_numbers(expr));
}

static void add_factor(FactorSearch *search, Op op, Expr *expr)
{
    search->found->factors[search->found->count++] = (CommonFactor){op, expr};
}

static Expr *take(FactorSearch *search, Expr *expr);

/* NULL stands for 1. */
static Expr *take_from_product(FactorSearch *search, Expr *expr)
{
    Expr *left = take(search, expr->apply.operands[0]), *right = take(search, expr->apply.operands[1]);
    if (!left || !right)
        return left ? left : right;
    if (left == expr->apply.operands[0] && right == expr->apply.operands[1])
        return expr;
    Expr *product = expr_apply(search->arena, OP_MUL, expr->type, left, right, NULL);
    product->loc = expr->loc;
    return product;
}

/* Of 2 / x the numerator stays: there must be something to divide. */
static Expr *take_from_quotient(FactorSearch *search, Expr *expr)
{
    Expr *numerator = expr->apply.operands[0], *divisor = expr->apply.operands[1];
    Expr *left = is_common(search, numerator) ? numerator : take(search, numerator);
    if (is_common(search, divisor)) {
        add_factor(search, OP_DIV, divisor);
        return left;
    }
    if (left == numerator)
        return expr;
    Expr *quotient = expr_apply(search->arena, OP_DIV, expr->type, left, divisor, NULL);
    quotient->loc = expr->loc;
    return quotient;
}

/* What is left of the expression. */
static Expr *take(FactorSearch *search, Expr *expr)
{
    bool is_real = dtype_info[expr->type].is_real;
    if (is_common(search, expr)) {
        add_factor(search, OP_MUL, expr);
        return NULL;
    }
    if (expr->kind != EXPR_APPLY)
        return expr;
    if (expr->apply.op == OP_MUL)
        return take_from_product(search, expr);
    if (expr->apply.op == OP_DIV && is_real)
        return take_from_quotient(search, expr);
    if (expr->apply.op != OP_NEG)
        return expr;
    search->found->negated = !search->found->negated;
    return take(search, expr->apply.operands[0]);
}

bool common_factors_find(Arena *arena, Expr *body, uint32_t reduced, FactorKind kind, CommonFactors *found)
{
    FactorSearch search = {arena, reduced, kind, found};
    *found = (CommonFactors){.factors = NEW_ARRAY(arena, CommonFactor, expr_size(body))};
    found->term = take(&search, body);
    if (!found->term)
        *found = (CommonFactors){.term = body};
    return found->negated || found->count;
}

void common_factors_join(Arena *arena, CommonFactors *common, const CommonFactors *of_term)
{
    CommonFactor *factors = NEW_ARRAY(arena, CommonFactor, common->count + of_term->count);
    for (int i = 0; i < common->count + of_term->count; i++)
        factors[i] = i < common->count ? common->factors[i] : of_term->factors[i - common->count];
    *common = (CommonFactors){
        .term = of_term->term,
        .negated = common->negated != of_term->negated,
        .factors = factors,
        .count = common->count + of_term->count,
    };
}

Expr *common_factors_apply(Arena *arena, const CommonFactors *common, Expr *sum)
{
    for (int i = 0; i < common->count; i++)
        sum = expr_apply(arena, common->factors[i].op, sum->type, sum, common->factors[i].expr, NULL);
    return common->negated ? expr_apply(arena, OP_NEG, sum->type, sum, NULL, NULL) : sum;
}
