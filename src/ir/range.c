#include "ir/range.h"

#include <float.h>
#include <math.h>

#include "ir/eval_parts.h"

static const Range ZERO = {0, 0, INFINITY}, BIT = {0, 1, 1};

// ---- types ----

static Range integers(double low, double high) { return (Range){low, high, 1}; }
static Range reals(double largest, double least) { return (Range){-largest, largest, least}; }

static Range range_of_type(DType type)
{
    switch (type) {
    case DTYPE_B1: return BIT;
    case DTYPE_I8: return integers(-128, 127);
    case DTYPE_U8: return integers(0, 255);
    case DTYPE_I32: return integers(-0x1p31, 0x1p31 - 1);
    case DTYPE_F16: return reals(65504, 0x1p-24);
    case DTYPE_BF16: return reals(0x1.fep127, 0x1p-133);
    case DTYPE_F32: return reals(FLT_MAX, 0x1p-149);
    case DTYPE_F64: return reals(DBL_MAX, 0x1p-1074);
    default: return integers(-0x1p63, 0x1p63);
    }
}

double range_size(Range range) { return fmax(fabs(range.low), fabs(range.high)); }

/* What a type can hold of it. Integers wrap. */
static Range cut_off(DType type, Range range)
{
    Range most = range_of_type(type);
    if (!dtype_info[type].is_real && (range.low < most.low || range.high > most.high))
        return most;
    range.low = fmin(fmax(range.low, most.low), most.high);
    range.high = fmax(fmin(range.high, most.high), most.low);
    range.least = fmax(range.least, most.least);
    return range;
}

/* An infinite number becomes the largest integer, NaN becomes 0. Rounding keeps the order. */
static Range converted(DType to, DType from, Range range)
{
    if (!dtype_info[to].is_real)
        return dtype_info[from].is_real ? range_of_type(to) : cut_off(to, range);
    range = cut_off(to, range);
    return cut_off(
        to, (Range){dtype_round(to, range.low), dtype_round(to, range.high), dtype_round(to, range.least)});
}

// ---- operations ----

/* 0 * inf: of no value at all. */
static double times(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

static Range joined(Range a, Range b)
{
    return (Range){fmin(a.low, b.low), fmax(a.high, b.high), fmin(a.least, b.least)};
}

static Range negated(Range a) { return (Range){-a.high, -a.low, a.least}; }

/* From 0 on, where the operand's sign says nothing. */
static Range positive(double high, double least) { return (Range){0, high, least}; }

static Range product(Range a, Range b)
{
    double ends[] = {times(a.low, b.low), times(a.low, b.high), times(a.high, b.low), times(a.high, b.high)};
    Range result = {ends[0], ends[0], a.least * b.least};
    for (int i = 1; i < 4; i++) {
        result.low = fmin(result.low, ends[i]);
        result.high = fmax(result.high, ends[i]);
    }
    return result;
}

/* 1 / b, and 0 of an infinite b. */
static Range reciprocal(Range b)
{
    double size = range_size(b), most = 1 / b.least;
    if (size == 0)
        return ZERO;
    return (Range){b.low < 0 ? -most : 0, b.high > 0 ? most : 0, 1 / size};
}

/* A multiple of the last digit of the smaller one, unless both have the same sign. */
static Range sum_of(DType type, Range a, Range b)
{
    Range result = {a.low + b.low, a.high + b.high, fmin(a.least, b.least)};
    bool same_sign = (a.low >= 0 && b.low >= 0) || (a.high <= 0 && b.high <= 0);
    if (!same_sign && dtype_info[type].is_real)
        result.least *= precision_of(type)->unit / 2;
    if (result.low > 0 || result.high < 0)
        result.least = fmax(result.least, fmin(fabs(result.low), fabs(result.high)));
    return result;
}

/* One of the two: max(x, -inf) is x. A number is a limit to the other. */
static Range chosen(const Expr *expr, Range a, Range b)
{
    Range result = joined(a, b);
    for (int i = 0; i < 2; i++) {
        const Expr *limit = expr->apply.operands[i];
        bool is_infinite = dtype_info[limit->type].is_real && !isfinite(limit->constant.real);
        bool is_limit = limit->kind == EXPR_CONST && !is_infinite;
        if (is_limit && expr->apply.op == OP_MAX)
            result.low = fmax(result.low, i ? b.low : a.low);
        else if (is_limit)
            result.high = fmin(result.high, i ? b.high : a.high);
    }
    return result;
}

/* x - m, m the maximum over an axis along which x is an element. */
static Range difference(const RangeScope *scope, const Expr *expr, Range a, Range b)
{
    Expr *const *operands = expr->apply.operands;
    Range result = sum_of(expr->type, a, negated(b));
    if (range_is_total(scope, operands[1], REDUCE_MAX, operands[0]))
        return (Range){fmin(result.low, 0), 0, result.least};
    return result;
}

static Range integer_quotient(DType type, Range a, Range b)
{
    bool divides = b.low > 0 || b.high < 0;   // a divisor of 0 gives anything
    return divides ? (Range){-range_size(a), range_size(a), 1} : range_of_type(type);
}

/* x^c, c a number. An even power has no sign, and others only powers of negative numbers. */
static Range power(Range a, const Expr *exponent)
{
    if (exponent->kind != EXPR_CONST || !isfinite(exponent->constant.real))
        return reals(INFINITY, 0);
    double c = exponent->constant.real, size = range_size(a);
    double high = c >= 0 ? pow(size, c) : pow(a.least, c), least = c >= 0 ? pow(a.least, c) : pow(size, c);
    bool is_odd = fabs(fmod(c, 2)) == 1;
    if (c == 0)
        return (Range){1, 1, 1};
    return (Range){is_odd && a.low < 0 ? -high : 0, high, least};
}

/* Near 1 a logarithm is as small as the distance: half a unit below it. */
static Range logarithm(DType type, Range a)
{
    return a.high <= 0 ? ZERO : (Range){log(a.least), fmax(log(a.high), 0), precision_of(type)->unit / 4};
}

/* pi / 2 and more than what a function adds to it. */
#define RIGHT_ANGLE (M_PI_2 * (1 + 0x1p-16))

static Range arithmetic(const RangeScope *scope, const Expr *expr, Range a, Range b)
{
    DType type = expr->type;
    bool is_real = dtype_info[type].is_real;
    double size = range_size(a);
    switch (expr->apply.op) {
    case OP_NEG: return negated(a);
    case OP_ADD: return sum_of(type, a, b);
    case OP_SUB: return difference(scope, expr, a, b);
    case OP_MUL: return product(a, b);
    case OP_DIV: return is_real ? product(a, reciprocal(b)) : integer_quotient(type, a, b);
    case OP_MAX:
    case OP_MIN: return chosen(expr, a, b);
    case OP_ABS: return positive(size, a.least);
    case OP_SQ: return positive(size * size, a.least * a.least);
    case OP_RELU: return positive(fmax(a.high, 0), a.least);
    case OP_FLOOR:
    case OP_CEIL:
    case OP_ROUND: return (Range){floor(a.low), ceil(a.high), 1};
    case OP_EXP: return positive(exp(a.high), exp(a.low));
    case OP_LOG: return logarithm(type, a);
    case OP_SQRT: return positive(sqrt(fmax(a.high, 0)), sqrt(a.least));
    case OP_RSQRT: return positive(1 / sqrt(a.least), 1 / sqrt(size));
    case OP_SIGMOID: return positive(1, 0);
    case OP_TANH:
    case OP_ERF:
        return (Range){-1, 1,
                       fmin(a.least, 1) / 2};   // |tanh x| is at least |x| / 2 up to 1, and so is |atan x|
    case OP_SIN:
    case OP_COS: return (Range){-1, 1, 0};
    case OP_ATAN:
    case OP_ASIN: return (Range){-RIGHT_ANGLE, RIGHT_ANGLE, fmin(a.least, 1) / 2};
    case OP_ACOS: return positive(2 * RIGHT_ANGLE, 0);
    case OP_POW: return power(a, expr->apply.operands[1]);
    case OP_MOD: return range_of_type(type);
    default: return BIT;   // comparisons and logic
    }
}

Range range_of_result(const RangeScope *scope, const Expr *apply)
{
    Expr *const *operands = apply->apply.operands;
    Range ranges[MAX_OPERANDS] = {ZERO, ZERO, ZERO};
    for (int i = 0; i < op_info[apply->apply.op].operands; i++)
        ranges[i] = range_of(scope, operands[i]);
    if (apply->apply.op == OP_SELECT)
        return joined(ranges[1], ranges[2]);
    return arithmetic(scope, apply, ranges[0], ranges[1]);
}

/* Errors of n additions: eval_fold.c. */
Range range_of_sum(DType type, Range term, double count)
{
    double most = dtype_info[type].is_real ? count * (1 + count * precision_of(type)->unit) : count;
    Range result = {times(fmin(term.low, 0), most), times(fmax(term.high, 0), most), term.least};
    if (term.low < 0 && term.high > 0 && dtype_info[type].is_real)
        result.least *= precision_of(type)->unit / 2;
    return result;
}

// ---- expressions ----

static Range range_of_constant(const Expr *expr)
{
    bool is_real = dtype_info[expr->type].is_real;
    double value = is_real ? expr->constant.real : (double)expr->constant.integer;
    return value != 0 && isfinite(value) ? (Range){value, value, fabs(value)} : ZERO;
}

static Range range_of_index(const RangeScope *scope, const Expr *expr)
{
    int64_t extents[MAX_AXES], low, high;
    for (int a = 0; a < scope->axis_count; a++)
        extents[a] = scope->axes[a].extent;
    bool fits = affine_range(&expr->index, extents, scope->axis_count, &low, &high);
    return fits ? integers((double)low, (double)high) : range_of_type(expr->type);
}

static Range range_of_tensor(const RangeScope *scope, const Tensor *tensor)
{
    return tensor->id < 0 ? range_of_type(tensor->dtype) : scope->ranges->of_tensor[tensor->id];
}

Range range_of(const RangeScope *scope, const Expr *expr)
{
    switch (expr->kind) {
    case EXPR_CONST: return cut_off(expr->type, range_of_constant(expr));
    case EXPR_INDEX: return range_of_index(scope, expr);
    case EXPR_ACCESS:
    case EXPR_FETCH: return range_of_tensor(scope, expr_tensor(expr));
    case EXPR_VALUE: return range_of_tensor(scope, scope->fusion->ops[expr->value].out);
    case EXPR_GUARD: return joined(range_of(scope, expr->guard.body), range_of(scope, expr->guard.otherwise));
    case EXPR_CAST: return converted(expr->cast.to, expr->cast.body->type, range_of(scope, expr->cast.body));
    case EXPR_APPLY: return cut_off(expr->type, range_of_result(scope, expr));
    }
    return range_of_type(expr->type);
}

// ---- programs ----

static Range reduced(const TensorOp *op, Range term)
{
    double count = 1;
    for (int a = op->spatial_count; a < op->axis_count; a++)
        count *= (double)op->axes[a].extent;
    switch (op->reduce) {
    case REDUCE_SUM: return range_of_sum(op->body->type, term, count);
    case REDUCE_PROD: return range_size(term) <= 1 ? (Range){-1, 1, 0} : range_of_type(op->body->type);
    default: return term;
    }
}

Ranges *ranges_new(Arena *arena, const Program *program)
{
    Ranges *ranges = NEW(arena, Ranges);
    ranges->arena = arena;
    ranges->definition = NEW_ARRAY(arena, const TensorOp *, program->tensor_count);
    ranges->of_tensor = NEW_ARRAY(arena, Range, program->tensor_count);
    for (int i = 0; i < program->tensor_count; i++)
        ranges->of_tensor[i] = range_of_type(program->tensors[i]->dtype);
    for (int i = 0; i < program->op_count; i++)
        ranges->definition[program->ops[i]->out->id] = program->ops[i];
    for (int i = 0; i < program->op_count; i++) {   // each reads what comes before it
        const TensorOp *op = program->ops[i];
        RangeScope scope = {ranges, op->axes, op->axis_count, NULL};
        Range result = cut_off(op->body->type, reduced(op, range_of(&scope, op->body)));
        ranges->of_tensor[op->out->id] = converted(op->out->dtype, op->body->type, result);
    }
    return ranges;
}
