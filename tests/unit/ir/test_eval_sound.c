// The bounds hold: random expressions are computed in float the way a kernel may (fused products,
// library functions that err by an ulp or two, sums in several orders), and no result may be
// farther from the reference than its bound.

#include "build.h"

enum { TREES = 6000, ELEMENTS = 40, INPUTS = 3, DEPTH = 4 };

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t x = state;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) % below;
}

static double draw_real(void)
{
    static const double odd[] = {0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 3e38, -2e38, 1e-40, -1e-30, 88.5, -90, 0.5};
    uint64_t kind = draw(40);
    if (kind < 1)
        return (double)(float)odd[draw(sizeof odd / sizeof *odd)];
    if (kind < 8)
        return (double)draw(17) - 8;
    double value = (double)draw(1 << 24) / (1 << 23) - 1;
    return (double)(float)(kind < 14 ? value * 100 : value);
}

/* ---- a random body over the inputs ---- */

static Expr *draw_body(Build *build, int depth);

static Expr *draw_condition(Build *build, int depth)
{
    Expr *a = build_op(build, (Op)(OP_LT + draw(6)), draw_body(build, depth), draw_body(build, depth), NULL);
    if (draw(3))
        return a;
    Expr *b = build_op(build, OP_LT, draw_body(build, depth), draw_body(build, depth), NULL);
    return build_op(build, draw(2) ? OP_AND : OP_OR, build_op(build, OP_NOT, a, NULL, NULL), b, NULL);
}

static Expr *draw_body(Build *build, int depth)
{
    static const DType casts[] = {DTYPE_F16, DTYPE_BF16, DTYPE_I32, DTYPE_U8, DTYPE_B1};
    if (depth == 0 || draw(8) == 0)
        return draw(4) ? AT(build, build->inputs[draw(INPUTS)], 0) : build_const(build, DTYPE_F32, draw_real());
    uint64_t kind = draw(20);
    if (kind == 0)
        return build_op(build, OP_SELECT, draw_condition(build, depth - 1), draw_body(build, depth - 1),
                        draw_body(build, depth - 1));
    if (kind == 1) {
        DType to = casts[draw(5)];
        Expr *body = to == DTYPE_B1 ? draw_condition(build, depth - 1) : draw_body(build, depth - 1);
        return expr_cast(build->arena, DTYPE_F32, expr_cast(build->arena, to, body));
    }
    Op op = kind < 12 ? (Op)draw(OP_EXP) : (Op)(OP_EXP + draw(OP_LT - OP_EXP));
    Expr *second = op_info[op].operands == 2 ? draw_body(build, depth - 1) : NULL;
    return build_op(build, op, draw_body(build, depth - 1), second, NULL);
}

/* ---- a kernel's arithmetic ---- */

enum { ULPS = 3 };   // of the 4 that the language promises; the host's own functions err, too

static float library(float value, uint64_t ulps)
{
    if (value == 0 || !isfinite(value))
        return value;
    for (uint64_t steps = draw(ulps + 1); steps > 0; steps--)
        value = nextafterf(value, draw(2) ? INFINITY : -INFINITY);
    return value;
}

/* Below the normal numbers it may be 0. */
static float exponential(float a, uint64_t ulps)
{
    float value = library(expf(a), ulps);
    return value < FLT_MIN && draw(2) ? 0 : value;
}

static float function(Op op, float a, float b)
{
    float e;
    switch (op) {
    case OP_EXP: return exponential(a, ULPS);
    case OP_LOG: return library(logf(a), ULPS);
    case OP_RSQRT: return library((float)(1 / sqrt((double)a)), ULPS);
    case OP_TANH: return library(tanhf(a), ULPS);
    case OP_ERF: return library(erff(a), ULPS);
    case OP_SIGMOID: e = library(expf(-fabsf(a)), 2); return (a < 0 ? e : 1) / (1 + e);
    case OP_SIN: return library(sinf(a), ULPS);
    case OP_COS: return library(cosf(a), ULPS);
    case OP_ATAN: return library(atanf(a), ULPS);
    case OP_ASIN: return library(asinf(a), ULPS);
    case OP_ACOS: return library(acosf(a), ULPS);
    default: return library(powf(a, b), ULPS);
    }
}

static float larger(float a, float b)
{
    return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
}

static float arithmetic(Op op, float a, float b)
{
    switch (op) {
    case OP_NEG: return -a;
    case OP_ADD: return a + b;
    case OP_SUB: return a - b;
    case OP_MUL: return a * b;
    case OP_DIV: return a / b;
    case OP_MAX: return larger(a, b);
    case OP_MIN: return -larger(-a, -b);
    case OP_ABS: return fabsf(a);
    case OP_SQ: return a * a;
    case OP_RELU: return larger(a, 0);
    case OP_FLOOR: return floorf(a);
    case OP_CEIL: return ceilf(a);
    case OP_ROUND: return rintf(a);
    case OP_SQRT: return sqrtf(a);
    case OP_LT: return a < b;
    case OP_LE: return a <= b;
    case OP_GT: return a > b;
    case OP_GE: return a >= b;
    case OP_EQ: return a == b;
    case OP_NE: return a != b;
    case OP_NOT: return a == 0;
    case OP_AND: return a != 0 && b != 0;
    case OP_OR: return a != 0 || b != 0;
    default: return function(op, a, b);
    }
}

static float cast(DType to, float value)
{
    if (to == DTYPE_I32)
        return isnan(value) ? 0 : truncf(fminf(fmaxf(value, -0x1p31f), 2147483647.0f)) + 0.0f;   // an integer has no -0
    if (to == DTYPE_U8)
        return isnan(value) ? 0 : truncf(fminf(fmaxf(value, 0), 255)) + 0.0f;
    return (float)dtype_round(to, value);
}

static float kernel(const Expr *expr, const double *const *inputs, int element)
{
    if (expr->kind == EXPR_CONST)
        return (float)expr->constant.real;
    if (expr->kind == EXPR_ACCESS)
        return (float)inputs[expr->access.tensor->id][element];
    if (expr->kind == EXPR_CAST)
        return cast(expr->cast.to, kernel(expr->cast.body, inputs, element));
    Op op = expr->apply.op;
    Expr *const *operands = expr->apply.operands;
    float values[MAX_OPERANDS] = {0};
    for (int i = 0; i < op_info[op].operands; i++)
        values[i] = kernel(operands[i], inputs, element);
    if (op == OP_SELECT)
        return values[0] != 0 ? values[1] : values[2];
    if (op == OP_ADD && operands[0]->kind == EXPR_APPLY && operands[0]->apply.op == OP_MUL && draw(2))
        return fmaf(kernel(operands[0]->apply.operands[0], inputs, element),
                    kernel(operands[0]->apply.operands[1], inputs, element), values[1]);
    return arithmetic(op, values[0], values[1]);
}

/* ---- one comparison ---- */

typedef struct Tally { int judged, all; } Tally;

static bool holds(Value value, double got, Tally *tally)
{
    tally->all++;
    if (isinf(value.bound))
        return true;
    tally->judged++;
    if (value.bound == 0)
        return got == value.real || (isnan(got) && isnan(value.real));
    return fabs(got - value.real) <= value.bound;
}

static void complain(const Expr *body, int element, double got, Value value)
{
    Arena *arena = arena_new();
    StrBuf text = strbuf_new(arena);
    Axis axis = {"i", ELEMENTS, false};
    expr_print(&text, body, &axis, 1);
    ck_abort_msg("%s at %d: %a, expected %a within %g", text.text, element, got, value.real, value.bound);
}

static void fill(double inputs[INPUTS][ELEMENTS])
{
    for (int i = 0; i < INPUTS; i++)
        for (int e = 0; e < ELEMENTS; e++)
            inputs[i][e] = draw_real();
}

START_TEST(pointwise_results_stay_within_their_bounds)
{
    Tally tally = {0, 0};
    state = 1;
    for (int tree = 0; tree < TREES; tree++) {
        double data[INPUTS][ELEMENTS];
        const double *inputs[INPUTS] = {data[0], data[1], data[2]};
        Value values[ELEMENTS];
        Build *build = build_new();
        fill(data);
        for (int i = 0; i < INPUTS; i++)
            INPUT(build, DTYPE_F32, ELEMENTS);
        Expr *body = draw_body(build, DEPTH);
        Tensor *y = POINTWISE(build, ROLE_OUTPUT, DTYPE_F32, body, ELEMENTS);
        build_evaluate(build, inputs, y, ELEMENTS, values);
        for (int e = 0; e < ELEMENTS; e++) {
            float got = kernel(body, inputs, e);
            if (!holds(values[e], got, &tally))
                complain(body, e, got, values[e]);
        }
        build_free(build);
    }
    ck_assert_int_gt(tally.judged, tally.all / 2);
}
END_TEST

/* Forwards, backwards, or in four interleaved parts. */
static float reduced(Reduce reduce, const float *terms, int count, int order)
{
    float identity = reduce == REDUCE_SUM ? 0 : reduce == REDUCE_PROD ? 1 : reduce == REDUCE_MAX ? -INFINITY : INFINITY;
    float parts[4] = {identity, identity, identity, identity};
    Op op = reduce == REDUCE_SUM ? OP_ADD : reduce == REDUCE_PROD ? OP_MUL : reduce == REDUCE_MAX ? OP_MAX : OP_MIN;
    for (int i = 0; i < count; i++) {
        float *part = &parts[order == 2 ? i % 4 : 0];
        *part = arithmetic(op, *part, terms[order == 1 ? count - 1 - i : i]);
    }
    return arithmetic(op, arithmetic(op, parts[0], parts[1]), arithmetic(op, parts[2], parts[3]));
}

START_TEST(reductions_stay_within_their_bounds_in_any_order)
{
    Tally tally = {0, 0};
    state = 2;
    for (int tree = 0; tree < TREES; tree++) {
        double data[INPUTS][ELEMENTS];
        const double *inputs[INPUTS] = {data[0], data[1], data[2]};
        float terms[ELEMENTS];
        Value value;
        Build *build = build_new();
        fill(data);
        for (int i = 0; i < INPUTS; i++)
            INPUT(build, DTYPE_F32, ELEMENTS);
        Expr *body = draw_body(build, 2);
        Reduce reduce = (Reduce)(REDUCE_SUM + tree % 4);
        int count = 1 + (int)draw(ELEMENTS);
        Tensor *y = REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, reduce, 1, body, count);
        build_evaluate(build, inputs, y, 1, &value);
        for (int order = 0; order < 3; order++) {
            for (int e = 0; e < count; e++)
                terms[e] = kernel(body, inputs, e);
            float got = reduced(reduce, terms, count, order);
            if (!holds(value, got, &tally))
                complain(body, reduce, got, value);
        }
        build_free(build);
    }
    ck_assert_int_gt(tally.judged, tally.all / 4);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, pointwise_results_stay_within_their_bounds);
    tcase_add_test(tests, reductions_stay_within_their_bounds_in_any_order);
}

int main(void)
{
    return build_run("eval_sound", add);
}
