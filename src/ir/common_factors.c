#include "ir/common_factors.h"

#include <math.h>

typedef struct FactorSearch {
    const SumScope *sum;
    FactorKind kind;
    uint32_t wanted;   // by number, in the order of the text
    int seen;
    CommonFactors *found;
} FactorSearch;

enum { MOST_WANTED = 16 };   // of one sum; the factors behind them stay

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
    return !(expr_axes(expr) & search->sum->reduced) && is_near_one(expr) &&
           (search->kind == FACTOR_ANY || is_made_of_numbers(expr));
}

/* False: it stays. */
static bool add_factor(FactorSearch *search, Op op, Expr *expr)
{
    int number = search->seen++;
    if (number >= MOST_WANTED || !(search->wanted >> number & 1))
        return false;
    search->found->factors[search->found->count++] = (CommonFactor){op, expr};
    return true;
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
    Expr *product = expr_apply(search->sum->arena, OP_MUL, expr->type, left, right, NULL);
    product->loc = expr->loc;
    return product;
}

/* Of 2 / x the numerator stays: there must be something to divide. */
static Expr *take_from_quotient(FactorSearch *search, Expr *expr)
{
    Expr *numerator = expr->apply.operands[0], *divisor = expr->apply.operands[1];
    Expr *left = is_common(search, numerator) ? numerator : take(search, numerator);
    if (is_common(search, divisor) && add_factor(search, OP_DIV, divisor))
        return left;
    if (left == numerator)
        return expr;
    Expr *quotient = expr_apply(search->sum->arena, OP_DIV, expr->type, left, divisor, NULL);
    quotient->loc = expr->loc;
    return quotient;
}

static Expr *take_from_definition(FactorSearch *search, Expr *expr)
{
    Expr *made = range_see_through(&search->sum->at, expr);
    Expr *left = made == expr ? expr : take(search, made);
    return left == made ? expr : left;
}

/* What is left of the expression. */
static Expr *take(FactorSearch *search, Expr *expr)
{
    bool is_real = dtype_info[expr->type].is_real;
    if (is_common(search, expr))
        return add_factor(search, OP_MUL, expr) ? NULL : expr;
    if (expr->kind == EXPR_ACCESS && search->kind == FACTOR_DEEP)
        return take_from_definition(search, expr);
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

/* Behind those of `common` the wanted factors of its term. Returns how many there are to choose from. */
static int take_wanted(const SumScope *sum, const CommonFactors *common, FactorKind kind, uint32_t wanted,
                       CommonFactors *found)
{
    *found = *common;
    found->factors = NEW_ARRAY(sum->arena, CommonFactor, common->count + MOST_WANTED);
    for (int i = 0; i < common->count; i++)
        found->factors[i] = common->factors[i];
    FactorSearch search = {.sum = sum, .kind = kind, .wanted = wanted, .found = found};
    found->term = take(&search, common->term);
    if (!found->term)   // all terms are alike
        *found = *common;
    return search.seen;
}

/* As before, but for the order. */
static void numbers_first(Arena *arena, CommonFactors *common)
{
    CommonFactor *factors = NEW_ARRAY(arena, CommonFactor, common->count);
    int count = 0;
    for (int numbers = 1; numbers >= 0; numbers--)
        for (int i = 0; i < common->count; i++)
            if (is_made_of_numbers(common->factors[i].expr) == numbers)
                factors[count++] = common->factors[i];
    common->factors = factors;
}

/* In the order of the text if that may be, else with numbers before all others. */
static bool may_wait(const SumScope *sum, const Expr *body, CommonFactors *common)
{
    if (common_factors_may_wait(sum, body, common))
        return true;
    numbers_first(sum->arena, common);
    return common_factors_may_wait(sum, body, common);
}

bool common_factors_find_more(const SumScope *sum, FactorKind kind, CommonFactors *found)
{
    CommonFactors before = *found;
    int seen = take_wanted(sum, &before, kind, UINT32_MAX, found);
    bool all = !seen || may_wait(sum, before.term, found);
    uint32_t wanted = 0;   // else, if they are few, one after the other, each with those that were taken
    for (int i = 0; i < seen && seen <= MOST_WANTED && !all; i++) {
        take_wanted(sum, &before, kind, wanted | 1u << i, found);
        if (may_wait(sum, before.term, found))
            wanted |= 1u << i;
    }
    if (!all)
        take_wanted(sum, &before, kind, wanted, found);
    if (!all && wanted)
        may_wait(sum, before.term, found);   // in that order
    return found->negated != before.negated || found->count > before.count;
}

bool common_factors_find(const SumScope *sum, Expr *body, FactorKind kind, CommonFactors *found)
{
    *found = (CommonFactors){.term = body};
    return common_factors_find_more(sum, kind, found);
}

Expr *common_factors_apply(Arena *arena, const CommonFactors *common, Expr *sum)
{
    for (int i = 0; i < common->count; i++)
        sum = expr_apply(arena, common->factors[i].op, sum->type, sum, common->factors[i].expr, NULL);
    return common->negated ? expr_apply(arena, OP_NEG, sum->type, sum, NULL, NULL) : sum;
}
