// Which factors may wait until a sum is made: those without which it stays in the range of its type.
//
//   sum[j](x[j] / m)               x of f16, 1000 elements: the sum is at most 6.6e7
//   sum[j]((x[j] / m) * y[j])      x * y is at most 4.3e9 and, if it is not 0, at least 3.6e-15
//   sum[j](x[j] / m) * s / t       what is divided by t must be a number, too, and keep its digits
//
// Two exceptions of the language: numbers leave sums of products of two elements of f16 or bf16, and in a
// weighted mean sum(e * v) / sum(e) with 0 <= e <= 1 the division may come last.
#include <float.h>
#include <math.h>

#include "ir/common_factors.h"
#include "ir/exact_type.h"

static const double FARTHEST_OF_HALVES = 0x1p32;   // from 1, of a number

/* Normal numbers lose no digits. Results that ranges leave out, rounding, are within the factor of 2. */
static bool is_inside(DType type, double size, double least)
{
    bool is_double = type == DTYPE_F64;
    return size <= (is_double ? DBL_MAX : FLT_MAX) / 2 && least >= 2 * (is_double ? DBL_MIN : FLT_MIN);
}

typedef struct PartSearch {
    const Expr *wanted;
    bool found;
} PartSearch;

static void search_visit(Expr *expr, void *context)
{
    PartSearch *search = context;
    search->found |= expr == search->wanted;
}

static bool is_part(const Expr *body, const Expr *expr)
{
    PartSearch search = {expr, false};
    expr_visit((Expr *)body, search_visit, &search);
    return search.found;
}

/* Made of an integer or of bits. */
static bool is_whole(const Expr *expr)
{
    bool is_made_real = expr->kind == EXPR_CAST && !dtype_info[expr->cast.body->type].is_real;
    return is_made_real || !dtype_info[expr->type].is_real;
}

/* What the body computes as it stands is no matter; products and quotients that are left of others are. Whole
   multiples of a number below normal ones lose no digits. */
static bool new_results_fit(const SumScope *sum, const Expr *body, const Expr *term)
{
    if (term->kind != EXPR_APPLY || is_part(body, term))
        return true;
    Range result = range_of_result(&sum->at, term);
    for (int i = 0; i < op_info[term->apply.op].operands; i++)
        if (!new_results_fit(sum, body, term->apply.operands[i]))
            return false;
    bool is_multiple = term->apply.op == OP_MUL &&
                       (is_whole(term->apply.operands[0]) || is_whole(term->apply.operands[1]));
    return is_inside(term->type, range_size(result), is_multiple ? INFINITY : result.least);
}

static double points_of(const SumScope *sum)
{
    double points = 1;
    for (int a = 0; a < sum->at.axis_count; a++)
        points *= sum->reduced >> a & 1 ? (double)sum->at.axes[a].extent : 1;
    return points;
}

/* The sum, and what every factor but the last one makes of it. What is lost below normal numbers must be less
   than what a single term rounds. */
static bool chain_fits(const SumScope *sum, const CommonFactors *common)
{
    DType type = common->term->type;
    Range term = range_of(&sum->at, common->term);
    double size = range_size(range_of_sum(type, term, points_of(sum))), least = term.least;
    if (!is_inside(type, size, INFINITY))
        return false;
    for (int i = 0; i + 1 < common->count; i++) {
        Range factor = range_of(&sum->at, common->factors[i].expr);
        bool divides = common->factors[i].op == OP_DIV;
        size *= divides ? 1 / factor.least : range_size(factor);
        least = divides ? least / range_size(factor) : least * factor.least;
        if (!is_inside(type, size, least))
            return false;
    }
    return true;
}

// ---- products of halves ----

static bool is_half(const SumScope *sum, Expr *expr)
{
    expr = range_see_through(&sum->at, expr);
    return expr_is_exact(expr, DTYPE_F16) || expr_is_exact(expr, DTYPE_BF16);
}

static bool is_product_of_halves(const SumScope *sum, Expr *term)
{
    return term->type == DTYPE_F32 && term->kind == EXPR_APPLY && term->apply.op == OP_MUL &&
           is_half(sum, term->apply.operands[0]) && is_half(sum, term->apply.operands[1]);
}

/* All factors are numbers, and their product is near enough to 1. */
static bool are_near_numbers(const SumScope *sum, const CommonFactors *common)
{
    double together = 1;
    for (int i = 0; i < common->count; i++) {
        Range factor = range_of(&sum->at, common->factors[i].expr);
        double size = range_size(factor);
        together *= common->factors[i].op == OP_DIV ? 1 / size : size;
        if (size != factor.least || !(together <= FARTHEST_OF_HALVES && together >= 1 / FARTHEST_OF_HALVES))
            return false;
    }
    return true;
}

// ---- weighted means ----

/* One of the term's factors is between 0 and 1 and is what the divisor sums up. */
static bool weighs(const SumScope *sum, Expr *term, Expr *divisor)
{
    Expr *const *operands = term->apply.operands;
    if (term->kind == EXPR_APPLY && term->apply.op == OP_MUL)
        return weighs(sum, operands[0], divisor) || weighs(sum, operands[1], divisor);
    Range weight = range_of(&sum->at, term);
    return weight.low >= 0 && weight.high <= 1 && range_is_total(&sum->at, divisor, REDUCE_SUM, term);
}

static bool is_weighted_mean(const SumScope *sum, const CommonFactors *common)
{
    return common->count == 1 && common->factors[0].op == OP_DIV &&
           weighs(sum, common->term, common->factors[0].expr);
}

bool common_factors_may_wait(const SumScope *sum, const Expr *body, const CommonFactors *common)
{
    if (sum->any_range || !common->count || !dtype_info[common->term->type].is_real)
        return true;
    return (chain_fits(sum, common) && new_results_fit(sum, body, common->term)) ||
           (is_product_of_halves(sum, common->term) && are_near_numbers(sum, common)) ||
           is_weighted_mean(sum, common);
}
