// Reductions. Their order is free, so the bounds hold for every order.
#include <float.h>
#include <math.h>

#include "ir/eval_parts.h"

Fold fold_start(Reduce reduce, DType type)
{
    bool is_extreme = reduce == REDUCE_MAX || reduce == REDUCE_MIN;
    Fold fold = {.reduce = reduce, .type = type, .magnitude = reduce == REDUCE_PROD, .shrink = 1,
                 .low = -INFINITY, .high = -INFINITY};
    if (dtype_info[type].is_real)
        fold.result.real.value = is_extreme ? (double)-INFINITY : reduce == REDUCE_PROD;
    return fold;
}

/* A term that is no ordinary number. */
static void note_special(Fold *fold, Real term)
{
    if (term.bound > 0)
        fold->unknown = true;
    else if (isnan(term.value))
        fold->nan = true;
    else if (term.value > 0)
        fold->plus = true;
    else
        fold->minus = true;
}

static inline bool is_whole(double value)   // right below 2^51, and only asked for there
{
    return (value + 0x1.8p52) - 0x1.8p52 == value;
}

static void sum_terms(Fold *fold, const Cell *terms, int count)
{
    double sum = fold->result.real.value, bound = fold->result.real.bound;
    double magnitude = fold->magnitude;
    bool fraction = fold->fraction;
    for (int i = 0; i < count; i++) {
        Real term = terms[i].real;
        double reach = fabs(term.value) + term.bound;
        sum += term.value;
        if (!(reach <= DBL_MAX)) {
            note_special(fold, term);
            continue;
        }
        bound += term.bound;
        magnitude += reach;
        fraction |= !is_whole(term.value);
    }
    fold->result.real = (Real){sum, bound};
    fold->magnitude = magnitude;
    fold->fraction = fraction;
}

static void prod_terms(Fold *fold, const Cell *terms, int count)
{
    Real product = fold->result.real;
    for (int i = 0; i < count; i++) {
        Real term = terms[i].real;
        double reach = fabs(term.value) + term.bound, least = fabs(term.value) - term.bound;
        product.bound = fabs(product.value) * term.bound + fabs(term.value) * product.bound
                      + term.bound * product.bound;
        product.value *= term.value;
        fold->zero |= reach == 0;
        fold->fraction |= !is_whole(term.value);
        if (!(reach <= DBL_MAX)) {
            note_special(fold, term);
            continue;
        }
        fold->magnitude *= fmax(reach, 1);
        if (reach > 0)
            fold->shrink *= fmin(fmax(least, 0), 1);
    }
    fold->result.real = product;
}

/* The smallest of all is minus the largest of the negated. */
static double direction(const Fold *fold)
{
    return fold->reduce == REDUCE_MIN ? -1 : 1;
}

static inline double larger(double a, double b)   // of numbers; fmax is a call
{
    return a > b ? a : b;
}

static void extreme_terms(Fold *fold, const Cell *terms, int count)
{
    double sign = direction(fold);
    for (int i = 0; i < count; i++) {
        Real term = {sign * terms[i].real.value, terms[i].real.bound};
        if (isnan(term.value) || isinf(term.bound)) {
            note_special(fold, term);
            continue;
        }
        fold->result.real.value = larger(fold->result.real.value, term.value);
        fold->low = larger(fold->low, term.value - term.bound);
        fold->high = larger(fold->high, term.value + term.bound);
    }
}

/* Integers wrap, so that their order does not matter either. */
static void whole_terms(Fold *fold, const Cell *terms, int count)
{
    static const Op ops[] = {[REDUCE_SUM] = OP_ADD, [REDUCE_MAX] = OP_MAX, [REDUCE_MIN] = OP_MIN,
                             [REDUCE_PROD] = OP_MUL};
    Op op = ops[fold->reduce];
    Whole result = fold->result.whole;
    int first = fold->count == 0;
    if (first)
        result = terms[0].whole;
    for (int i = first; i < count; i++)
        result = whole_apply(op, fold->type, result, terms[i].whole);
    fold->result.whole = result;
}

void fold_add(Fold *fold, const Cell *terms, int count)
{
    if (!dtype_info[fold->type].is_real)
        whole_terms(fold, terms, count);
    else if (fold->reduce == REDUCE_SUM)
        sum_terms(fold, terms, count);
    else if (fold->reduce == REDUCE_PROD)
        prod_terms(fold, terms, count);
    else
        extreme_terms(fold, terms, count);
    fold->count += count;
}

/* No order can round: whole numbers whose partial results all stay below 2^24. */
static bool is_exact(const Fold *fold)
{
    return fold->result.real.bound == 0 && !fold->fraction && fold->magnitude <= 0x1p24;
}

/* Any order of n additions errs by at most (n - 1) units of the sum of the magnitudes, for every n
   (Jeannerod and Rump, "Improved error bounds for inner products in floating-point arithmetic",
   2013); three more for the way it is split. */
static Real sum_end(const Fold *fold)
{
    const Precision *precision = precision_of(fold->type);
    Real sum = fold->result.real;
    bool infinite = fold->plus || fold->minus;
    if (fold->nan || (fold->plus && fold->minus && !fold->unknown))
        return (Real){NAN, 0};
    if (fold->unknown || !(fold->magnitude <= precision->largest))   // some order may overflow
        return (Real){sum.value, INFINITY};
    if (infinite)
        return (Real){fold->plus ? INFINITY : -INFINITY, 0};
    if (!is_exact(fold) && fold->count > 1)
        sum.bound += ((double)fold->count + 2) * precision->unit * fold->magnitude;
    return sum;
}

static Real prod_end(const Fold *fold)
{
    const Precision *precision = precision_of(fold->type);
    Real product = fold->result.real;
    bool infinite = fold->plus || fold->minus;
    bool overflow = !(fold->magnitude <= precision->largest);
    bool underflow = fold->shrink * precision->largest < 4;   // the smallest normal is 4 / 2^128
    if (fold->nan || (infinite && fold->zero && !fold->unknown))
        return (Real){NAN, 0};
    if (fold->unknown || overflow || (underflow && (infinite || !fold->zero)))
        return (Real){product.value, INFINITY};
    if (infinite || fold->zero)
        return (Real){product.value, 0};
    if (!is_exact(fold) && fold->count > 1)
        product.bound += ((double)fold->count + 2) * precision->unit
                       * (fabs(product.value) + product.bound);
    return product;
}

static Real extreme_end(const Fold *fold)
{
    double sign = direction(fold);
    double value = sign * fold->result.real.value;
    if (fold->nan)
        return (Real){NAN, 0};
    if (fold->unknown)
        return (Real){value, INFINITY};
    return (Real){value, real_between(fold->result.real.value, fold->low, fold->high).bound};
}

Cell fold_end(const Fold *fold)
{
    Cell result = fold->result;
    if (!dtype_info[fold->type].is_real)
        return result;
    if (fold->reduce == REDUCE_SUM)
        result.real = sum_end(fold);
    else if (fold->reduce == REDUCE_PROD)
        result.real = prod_end(fold);
    else
        result.real = extreme_end(fold);
    return result;
}

Cell fold_estimate(const Fold *fold, int64_t points)
{
    Cell result = fold->result;
    double times = (double)points / (double)fold->count;
    if (fold->reduce != REDUCE_SUM)
        return fold_end(fold);
    if (!dtype_info[fold->type].is_real)
        return result.whole.value = wrap_to(fold->type, (int64_t)((double)result.whole.value * times)),
               result;
    result.real.value *= times;
    if (!fold->fraction)   // as the sum would be
        result.real.value = rint(result.real.value);
    return result;
}
