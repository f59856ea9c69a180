// The error rule of each real operation: how far the result of a kernel may be from ours, given how
// far its operands are.
//
// Ours is computed in double, so that against f32 its own error does not count; for f64 the unit is
// doubled instead. Value and bound of ordinary numbers are worked out first; what is not finite
// then goes through special().
#include <float.h>
#include <math.h>

#include "ir/eval_parts.h"

/* The units are a trifle larger than 2^-24 and 2^-53 (twice that), which covers the rounding of the
   bounds themselves. */
static const Precision SINGLE = {0x1.00001p-24, 0x1p-149, 0x1.ffffep127, 0x1.00001p128};
static const Precision DOUBLE = {0x1.00001p-52, 0x1p-1073, 0x1.ffffep1023, DBL_MAX};

const Precision *precision_of(DType compute_type)
{
    return compute_type == DTYPE_F64 ? &DOUBLE : &SINGLE;
}

/* What the language promises of each function (doc/language.md), in units in the last place. CUDA programming
   guide, "Mathematical Functions": log 1; exp, rsqrt, tanh, erf, sin, cos, atan, asin and acos 2; pow 4;
   those of double are no larger. tests/gpu_functions.py measures them. */
enum { FUNCTION_ULPS = 4 };

/* A loop in which the operation is known leaves the decisions out. */
#define INLINE static inline __attribute__((always_inline))

// fmax and fmin would drop a NaN.
static inline double nan_max(double a, double b) { return a > b || isnan(a) ? a : b; }
static inline double nan_min(double a, double b) { return a < b || isnan(a) ? a : b; }

INLINE double value_of(Op op, double a, double b)
{
    double c = b;   // only `select` has three operands
    switch (op) {
#define OP(id, spelling, operands, class, real, cuda) case OP_##id: return (double)(real);
#include "ir/ops.def"
#undef OP
    default: return (double)NAN + c;
    }
}

double op_value(Op op, double a, double b) { return value_of(op, a, b); }

double loosened(double bound, double value)
{
    return bound + 0x1p-51 * (bound + fabs(value));
}

Real real_between(double value, double low, double high)
{
    if (low == high || (isnan(low) && isnan(high)))
        return (Real){value, 0};
    double bound = fmax(high - value, value - low);
    return (Real){value, isnan(low) || isnan(high) ? INFINITY : loosened(bound, value)};
}

/* A result of 0 that is no smaller number: 5e-324 / 2 is 0 in double, too. What is 0 in double is 0 in
   f32. */
INLINE bool is_zero(Op op, const Precision *precision, Real a, Real b)
{
    if (precision == &SINGLE)
        return true;
    switch (op) {
    case OP_ADD:
    case OP_SUB:
    case OP_LOG:
    case OP_ACOS: return true;
    case OP_MUL: return a.value == 0 || b.value == 0;
    case OP_DIV: return a.value == 0 || isinf(b.value);
    case OP_POW: return a.value == 0 || isinf(a.value) || isinf(b.value);
    case OP_EXP:
    case OP_RSQRT:
    case OP_SIGMOID: return isinf(a.value);
    default: return a.value == 0;
    }
}

/* One correctly rounded operation more. Exact operands with a result that the type can hold leave
   no error: 3 * 4 is 12. In double we cannot tell, since ours has been rounded too. */
INLINE double rounded(Op op, const Precision *precision, Real a, Real b, double value, double bound)
{
    bool held = precision == &SINGLE ? (double)(float)value == value : value == 0;
    bool exact = (bound == 0) & held & (value != 0 || is_zero(op, precision, a, b));
    double lost = bound + precision->unit * (fabs(value) + bound) + precision->tiny;
    return exact ? 0 : lost;   // without a jump, which would often be guessed wrongly
}

/* A library function more: its ulps are 2 units each. */
INLINE double approximated(Op op, const Precision *precision, Real a, Real b, double value, double bound)
{
    if (bound == 0 && value == 0 && is_zero(op, precision, a, b))   // tanh(0), exp(-inf)
        return 0;
    return bound + FUNCTION_ULPS * (2 * precision->unit * (fabs(value) + bound) + precision->tiny);
}

/* An exponential of f32 that may lie below the normal numbers may be 0, by softmax_exp_f16 in the prelude. */
static inline double flushed(const Precision *precision, double value, double bound)
{
    return bound + (precision == &SINGLE && value - bound < 0x1p-126 ? value : 0);
}

static inline double bound_product(Real a, Real b)
{
    return fabs(a.value) * b.bound + fabs(b.value) * a.bound + a.bound * b.bound;
}

/* a/b - a'/b' = (da - q*db) / b', and |b'| >= |b| - db. Of doubles q*db may be 0 where q is not: 1e-304 *
   1e-27. */
static inline double bound_quotient(Real a, Real b, double quotient)
{
    double divisor = fabs(b.value) - b.bound;
    return divisor > 0 ? a.bound / divisor + fabs(quotient) * (b.bound / divisor) : INFINITY;
}

/* At least exp(x) - 1, and close to it. */
static inline double grown(double x)
{
    return x <= 1 ? x + x * x : expm1(x);
}

/* The exponent may be multiplied by log2(e) first, as softmax_exp_f16 in the prelude does: the product is
   rounded, and the factor's own error in f32 is 0.23 units. */
static inline double bound_exp(const Precision *precision, Real a, double value)
{
    double slack = isfinite(a.value) && isfinite(value) ? 1.25 * precision->unit * fabs(a.value) : 0;
    return flushed(precision, value, value * grown(a.bound + slack));
}

/* How far a relative change by a.bound / a.value moves the logarithm; infinite if the interval
   reaches 0. */
static inline double bound_log(Real a)
{
    if (a.bound == 0)
        return 0;
    double share = a.bound / fabs(a.value);
    return share < 1 ? share / (1 - share) : INFINITY;
}

static inline double bound_sqrt(Real a, double root)
{
    if (a.bound == 0)
        return 0;
    return a.bound <= a.value ? a.bound / root : INFINITY;
}

/* The slope is 1 - tanh^2, and over the interval tanh^2 is at least (|v| - db)^2. */
static inline double bound_tanh(Real a, double value)
{
    double least = fmax(0, fabs(value) - a.bound);
    return a.bound * (1 - least * least);
}

/* The slope is at most 1/4, and at most the value. */
static inline double bound_sigmoid(Real a, double value)
{
    return fmin(a.bound / 4, value * grown(a.bound));
}

/* The slope is at most 1 and no two values differ by more than 2; of the unknown the result may
   be NaN. */
static inline double bound_wave(Real a)
{
    return a.bound > 2 && isfinite(a.bound) ? 2 : a.bound;
}

/* A function that only grows or only falls: the ends of the interval give those of the result. The slope of
   asin and acos at 1 is infinite: within 2^-24 of 1 they move by 2^-11.5. Beyond 1 they are NaN, and of the
   unknown all may be. */
INLINE double bound_between_ends(Op op, Real a, double value)
{
    if (a.bound == 0)
        return 0;
    double low = value_of(op, a.value - a.bound, 0), high = value_of(op, a.value + a.bound, 0);
    if (isinf(a.bound) || isnan(low) || isnan(high))
        return INFINITY;
    return loosened(fmax(fabs(high - value), fabs(value - low)), value);
}

/* a^b = exp(b * log a). */
static double bound_pow(Real a, Real b, double value)
{
    bool whole_exponent = b.bound == 0 && b.value == floor(b.value);
    if (a.bound == 0 && b.bound == 0)
        return 0;
    if (a.value - a.bound <= 0 && !whole_exponent)
        return INFINITY;
    if (fabs(a.value) <= a.bound)   // the interval has a 0 in it
        return b.value > 0 ? pow(fabs(a.value) + a.bound, b.value) + fabs(value) : INFINITY;
    double shift = (fabs(b.value) + b.bound) * bound_log(a);
    if (b.bound > 0)
        shift += b.bound * fabs(log(a.value));
    return fabs(value) * grown(shift);
}

/* The bound of an ordinary result; anything but a small number if the operands or the result are
   not. */
INLINE double op_bound(Op op, const Precision *p, Real a, Real b, double value)
{
    switch (op) {
    case OP_NEG:
    case OP_ABS: return a.bound;
    case OP_ADD:
    case OP_SUB: return rounded(op, p, a, b, value, a.bound + b.bound);
    case OP_MUL: return rounded(op, p, a, b, value, bound_product(a, b));
    case OP_SQ: return rounded(op, p, a, b, value, bound_product(a, a));
    case OP_DIV: return rounded(op, p, a, b, value, bound_quotient(a, b, value));
    case OP_SQRT: return rounded(op, p, a, b, value, bound_sqrt(a, value));
    case OP_EXP: return approximated(op, p, a, b, value, bound_exp(p, a, value));
    case OP_LOG: return approximated(op, p, a, b, value, bound_log(a));
    case OP_RSQRT: return approximated(op, p, a, b, value, value * bound_log(a) / 2);
    case OP_TANH: return approximated(op, p, a, b, value, bound_tanh(a, value));
    case OP_ERF: return approximated(op, p, a, b, value, a.bound * 1.1284);   // slope <= 2 / sqrt(pi)
    case OP_SIGMOID: return approximated(op, p, a, b, value, bound_sigmoid(a, value));
    case OP_SIN:
    case OP_COS: return approximated(op, p, a, b, value, bound_wave(a));
    case OP_ATAN:
    case OP_ASIN:
    case OP_ACOS: return approximated(op, p, a, b, value, bound_between_ends(op, a, value));
    case OP_POW: return approximated(op, p, a, b, value, bound_pow(a, b, value));
    default: return 0;
    }
}

/* They round nothing and grow in each operand: the ends of the interval give the ends of the
   result. */
static inline bool is_monotone(Op op)
{
    return op == OP_MAX || op == OP_MIN || op == OP_RELU || op == OP_FLOOR || op == OP_CEIL || op == OP_ROUND;
}

static bool can_overflow(Op op)
{
    return !is_monotone(op) && op != OP_NEG && op != OP_ABS;
}

/* Part of a fused a*b + c a product never overflows: c = -inf gives -inf, not inf - inf. */
static bool is_fusible(Op op)
{
    return op == OP_MUL || op == OP_SQ;
}

/* The result at one corner of the operands' intervals; false where it may or may not overflow. */
static bool corner(Op op, const Precision *p, double a, double b, double *result)
{
    *result = op_value(op, a, b);
    bool overflows = isfinite(a) && isfinite(b) && fabs(*result) > p->largest;
    if (!overflows || !can_overflow(op))
        return true;
    bool certain = fabs(*result) > p->overflow && !is_fusible(op);
    *result = copysign(INFINITY, *result);
    return certain;
}

/* The result's sign would be that of a zero, which max(0, -0) and sums in a free order leave open.
   */
static bool is_pole(Op op, Real a, Real b)
{
    if (op == OP_DIV)
        return b.value == 0 && a.value != 0;
    return (op == OP_RSQRT || (op == OP_POW && b.value < 0)) && a.value == 0;
}

/* Operands for which the corners say nothing about what lies between. */
static bool is_lost(Op op, Real a, Real b)
{
    if (isinf(a.bound) || isinf(b.bound))
        return true;
    if (op == OP_DIV)
        return b.bound > 0 && fabs(b.value) <= b.bound;
    if (op == OP_ASIN || op == OP_ACOS)   // beyond both ends they are NaN, and between them they are not
        return a.bound > 0 && fabs(a.value) - a.bound <= 1;
    bool nan = isnan(a.value) || isnan(b.value);   // pow(NaN, 0) and pow(1, NaN) are 1
    return op == OP_POW && a.bound + b.bound > 0 && (nan || a.value - a.bound <= 0);
}

/* NaN, infinities and overflow: exact if all corners of the operands' intervals agree, else
   unknown. */
static Real special(Op op, const Precision *p, Real a, Real b)
{
    Real result = {0, 0};
    bool known = corner(op, p, a.value, b.value, &result.value);
    known = known && !is_lost(op, a, b) && !is_pole(op, a, b);
    for (int i = 0; i < 4 && known; i++) {
        double end;
        double x = i & 1 ? a.value + a.bound : a.value - a.bound;
        double y = i & 2 ? b.value + b.bound : b.value - b.bound;
        known = corner(op, p, x, y, &end);
        known = known && (end == result.value || (isnan(end) && isnan(result.value)));
    }
    result.bound = known ? 0 : INFINITY;
    return result;
}

INLINE Real monotone(Op op, Real a, Real b)
{
    double value = value_of(op, a.value, b.value);
    if (a.bound == 0 && b.bound == 0)
        return (Real){value, 0};
    double low = value_of(op, a.value - a.bound, b.value - b.bound);
    double high = value_of(op, a.value + a.bound, b.value + b.bound);
    return real_between(value, low, high);
}

INLINE Real apply(Op op, const Precision *precision, Real a, Real b)
{
    Real result;
    if (is_monotone(op)) {
        result = monotone(op, a, b);
    } else {
        result.value = value_of(op, a.value, b.value);
        result.bound = op_bound(op, precision, a, b, result.value);
    }
    if (fabs(result.value) + result.bound <= precision->largest)
        return result;
    bool exact = result.bound == 0 && isfinite(result.value);
    return exact ? result : special(op, precision, a, b);
}

void real_apply(Op op, DType type, const Cell *a, const Cell *b, int count, Cell *results)
{
    const Precision *precision = precision_of(type);
    const Real NONE = {0, 0};
    switch (op) {   // a loop for each, in which it is known
#define OP(id, spelling, operands, class, value, cuda)                                                   \
    case OP_##id:                                                                                        \
        for (int i = 0; i < count; i++)                                                                  \
            results[i].real = apply(OP_##id, precision, a[i].real, operands == 1 ? NONE : b[i].real);    \
        break;
#include "ir/ops.def"
#undef OP
    default: break;
    }
}
