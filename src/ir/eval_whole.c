// Integers, conditions and conversions: exact, unless a real value that is not decides about them.
#include <math.h>

#include "ir/eval_parts.h"

int64_t wrap_to(DType type, int64_t value)
{
    switch (type) {
    case DTYPE_I32: return (int32_t)value;
    case DTYPE_I8: return (int8_t)value;
    case DTYPE_U8: return (uint8_t)value;
    case DTYPE_B1: return value != 0;
    default: return value;
    }
}

/* The range of a type as doubles. */
static double lowest(DType type)
{
    return type == DTYPE_U8 || type == DTYPE_B1 ? 0 : -ldexp(1, dtype_info[type].bits - 1);
}

static double highest(DType type)
{
    return type == DTYPE_U8 ? 255 : type == DTYPE_B1 ? 1 : ldexp(1, dtype_info[type].bits - 1) - 1;
}

/* An inexact integer that may lie beyond the range could have wrapped to anything. */
static Whole wrapped(DType type, int64_t value, double bound)
{
    Whole result = {wrap_to(type, value), bound};
    if (bound > 0 && fabs((double)value) + bound >= highest(type))
        result.bound = INFINITY;
    return result;
}

static Whole negated(DType type, Whole a)
{
    return wrapped(type, (int64_t)(0 - (uint64_t)a.value), a.bound);
}

static Whole product(DType type, Whole a, Whole b)
{
    int64_t value = (int64_t)((uint64_t)a.value * (uint64_t)b.value);
    if (a.bound == 0 && b.bound == 0)
        return (Whole){wrap_to(type, value), 0};
    double x = fabs((double)a.value), y = fabs((double)b.value);
    double bound = x * b.bound + y * a.bound + a.bound * b.bound;
    if (isnan(bound) || x * y + bound >= highest(type))
        bound = INFINITY;
    return wrapped(type, value, bound);
}

/* A zero divisor has no defined value; the smallest integer divided by -1 wraps. */
static Whole quotient(DType type, Whole a, Whole b)
{
    if (b.value == 0 || b.bound > 0)
        return (Whole){0, INFINITY};
    if (b.value == -1)
        return negated(type, a);
    double bound = a.bound > 0 ? a.bound / fabs((double)b.value) + 1 : 0;
    return (Whole){a.value / b.value, bound};
}

/* a - a / b * b: of one that is not exact the quotient may be another, and the remainder any. */
static Whole remainder_of(Whole a, Whole b)
{
    if (b.value == 0 || b.bound > 0)
        return (Whole){0, INFINITY};
    return (Whole){b.value == -1 ? 0 : a.value % b.value, a.bound > 0 ? fabs((double)b.value) * 2 : 0};
}

static Whole larger(Whole a, Whole b)
{
    int64_t value = a.value > b.value ? a.value : b.value;
    double low = fmax((double)a.value - a.bound, (double)b.value - b.bound);
    double high = fmax((double)a.value + a.bound, (double)b.value + b.bound);
    bool exact = a.bound == 0 && b.bound == 0;
    return (Whole){value, exact ? 0 : real_between((double)value, low, high).bound};
}

/* ~ reverses the order, even that of the smallest integer. */
static Whole smaller(Whole a, Whole b)
{
    Whole result = larger((Whole){~a.value, a.bound}, (Whole){~b.value, b.bound});
    result.value = ~result.value;
    return result;
}

Whole whole_apply(Op op, DType type, Whole a, Whole b)
{
    uint64_t x = (uint64_t)a.value, y = (uint64_t)b.value;   // which wrap
    switch (op) {
    case OP_NEG: return negated(type, a);
    case OP_ADD: return wrapped(type, (int64_t)(x + y), a.bound + b.bound);
    case OP_SUB: return wrapped(type, (int64_t)(x - y), a.bound + b.bound);
    case OP_MUL: return product(type, a, b);
    case OP_SQ: return product(type, a, a);
    case OP_DIV: return quotient(type, a, b);
    case OP_MOD: return remainder_of(a, b);
    case OP_MAX: return larger(a, b);
    case OP_MIN: return smaller(a, b);
    case OP_RELU: return larger(a, (Whole){0, 0});
    case OP_ABS: return a.value < 0 ? negated(type, a) : a;
    default: return a;   // floor, ceil and round of an integer
    }
}

static Whole decided(bool value, bool certain)
{
    return (Whole){value, certain ? 0 : INFINITY};
}

/* Decided if no value of one interval compares differently with any of the other. */
Whole real_compare(Op op, Real a, Real b)
{
    double reach = a.bound + b.bound;
    bool nan = (isnan(a.value) && a.bound == 0) || (isnan(b.value) && b.bound == 0);
    bool apart = fabs(a.value - b.value) > reach;
    return decided(op_value(op, a.value, b.value) != 0, reach == 0 || apart || nan);
}

Whole whole_compare(Op op, Whole a, Whole b)
{
    int order = a.value < b.value ? -1 : a.value > b.value;
    double reach = a.bound + b.bound;
    bool apart = fabs((double)a.value - (double)b.value) > reach;
    return decided(op_value(op, order, 0) != 0, reach == 0 || apart);
}

Whole logic_apply(Op op, Whole a, Whole b)
{
    if (op == OP_NOT)
        return (Whole){!a.value, a.bound};
    bool decisive = op == OP_OR;   // the operand that settles the result whatever the other is
    bool settled = (a.bound == 0 && a.value == decisive) || (b.bound == 0 && b.value == decisive);
    if (settled)
        return decided(decisive, true);
    bool certain = a.bound == 0 && b.bound == 0;
    return decided(op_value(op, (double)a.value, (double)b.value) != 0, certain);
}

Real real_either(Real chosen, Real other)
{
    bool both_nan = isnan(chosen.value) && isnan(other.value);
    double apart = chosen.value == other.value || both_nan ? 0 : fabs(chosen.value - other.value);
    double bound = fmax(chosen.bound, apart + other.bound);
    if (apart == 0)
        return (Real){chosen.value, bound};
    return (Real){chosen.value, isnan(apart) ? INFINITY : loosened(bound, chosen.value)};
}

/* The kernel may have taken the other branch. */
Cell cell_select(DType type, Whole condition, Cell a, Cell b)
{
    Cell chosen = condition.value ? a : b, other = condition.value ? b : a;
    if (condition.bound == 0)
        return chosen;
    if (dtype_info[type].is_real) {
        chosen.real = real_either(chosen.real, other.real);
    } else {
        double apart = fabs((double)chosen.whole.value - (double)other.whole.value);
        chosen.whole.bound = fmax(chosen.whole.bound, apart + other.whole.bound);
    }
    if (type == DTYPE_B1 && chosen.whole.bound > 0)
        chosen.whole.bound = INFINITY;
    return chosen;
}

/* Rounding grows with its operand, so the ends of the interval give the ends of the result. */
static Real narrow(DType to, Real x)
{
    double value = dtype_round(to, x.value);
    if (x.bound == 0 || isinf(x.bound))
        return (Real){value, x.bound};
    double low = dtype_round(to, x.value - x.bound), high = dtype_round(to, x.value + x.bound);
    return real_between(value, low, high);
}

static bool loses_digits(DType to, DType from)
{
    return to != from && to != DTYPE_F64 && !(to == DTYPE_F32 && from != DTYPE_F64);
}

static Real real_from_whole(DType to, DType from, Whole x)
{
    double value = to == DTYPE_F64 ? (double)x.value : (double)(float)x.value;
    if (from == DTYPE_B1)   // undecided, but 0 or 1
        return narrow(to, (Real){value, x.bound > 0 ? 1 : 0});
    if (x.bound == 0)
        return to == DTYPE_F32 || to == DTYPE_F64 ? (Real){value, 0} : narrow(to, (Real){value, 0});
    return narrow(to, (Real){(double)x.value, x.bound});
}

static double saturated(DType to, double value)
{
    return isnan(value) ? 0 : trunc(fmin(fmax(value, lowest(to)), highest(to)));
}

/* Truncates and saturates, which grows with the operand too. A NaN is 0. */
static Whole whole_from_real(DType to, Real x)
{
    if (to == DTYPE_B1)
        return real_compare(OP_NE, x, (Real){0, 0});
    double value = saturated(to, x.value);
    Whole result = {value >= 0x1p63 ? INT64_MAX : (int64_t)value, x.bound};
    double low = saturated(to, x.value - x.bound), high = saturated(to, x.value + x.bound);
    if (x.bound > 0 && isfinite(x.bound))
        result.bound = real_between(value, low, high).bound;
    return result;
}

static Whole whole_from_whole(DType to, DType from, Whole x)
{
    if (to == DTYPE_B1)
        return from == DTYPE_B1 ? x : whole_compare(OP_NE, x, (Whole){0, 0});
    if (from == DTYPE_B1)
        return (Whole){x.value, x.bound > 0 ? 1 : 0};
    return wrapped(to, x.value, x.bound);
}

/* Of f16 and bf16 at this magnitude, and at least that of their denormal numbers. */
static double last_place(DType type, double magnitude)
{
    int digits = type == DTYPE_F16 ? 10 : 7, least = type == DTYPE_F16 ? -24 : -133, exponent;
    frexp(magnitude, &exponent);
    exponent -= 1 + digits;
    return ldexp(1, exponent > least ? exponent : least);
}

/* Zeros stay: nothing is lost of them at any scale. */
Cell cell_loosen(DType to, Cell cell, Cell rounded)
{
    double reach = fabs(cell.real.value) + cell.real.bound;
    if (reach == 0 || !(reach < INFINITY) || !isfinite(rounded.real.value))
        return rounded;
    double off = cell.real.bound + last_place(to, reach), value = cell.real.value;
    return (Cell){.real = real_between(rounded.real.value, value - off, value + off)};
}

Cell cell_convert(DType to, DType from, Cell cell)
{
    Cell result = cell;
    if (dtype_info[to].is_real && dtype_info[from].is_real) {
        if (loses_digits(to, from))
            result.real = narrow(to, cell.real);
    } else if (dtype_info[to].is_real) {
        result.real = real_from_whole(to, from, cell.whole);
    } else if (dtype_info[from].is_real) {
        result.whole = whole_from_real(to, cell.real);
    } else {
        result.whole = whole_from_whole(to, from, cell.whole);
    }
    return result;
}
