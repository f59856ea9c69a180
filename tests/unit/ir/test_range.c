// Between which numbers values lie: worked by hand, and with random expressions at random points.
#include <float.h>

#include "build.h"
#include "ir/range.h"

enum { I, J, ROWS = 3, COLUMNS = 5 };

typedef struct Rows {
    Build *build;
    Tensor *x;
    Expr *at;   // x[i, j]
} Rows;

static const Axis axes[] = {{"i", ROWS, false}, {"j", COLUMNS, false}};

static Rows rows_of(DType type)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, type, ROWS, COLUMNS);
    return (Rows){build, x, AT(build, x, I, J)};
}

static Range range(const Rows *rows, const Expr *expr)
{
    RangeScope scope = {ranges_new(rows->build->arena, &rows->build->program), axes, 2, NULL};
    return range_of(&scope, expr);
}

static Expr *op(const Rows *rows, Op op, Expr *a, Expr *b) { return build_op(rows->build, op, a, b, NULL); }
static Expr *number(const Rows *rows, double value) { return build_const(rows->build, DTYPE_F32, value); }

static bool is(Range range, double low, double high, double least)
{
    return range.low == low && range.high == high && range.least == least;
}

START_TEST(elements_are_bounded_by_their_type)
{
    static const struct { DType type; double low, high, least; } types[] = {
        {DTYPE_F16, -65504, 65504, 0x1p-24}, {DTYPE_I8, -128, 127, 1}, {DTYPE_U8, 0, 255, 1}, {DTYPE_B1, 0, 1, 1},
        {DTYPE_F32, -FLT_MAX, FLT_MAX, 0x1p-149}, {DTYPE_BF16, -0x1.fep127, 0x1.fep127, 0x1p-133}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        Rows r = rows_of(types[i].type);
        ck_assert(is(range(&r, r.at), types[i].low, types[i].high, types[i].least));
        build_free(r.build);
    }
}
END_TEST

START_TEST(operations_bound_their_results)
{
    Rows r = rows_of(DTYPE_F16);
    Expr *eight = number(&r, 8), *wave = op(&r, OP_SIGMOID, r.at, NULL);
    Range quotient = range(&r, op(&r, OP_DIV, r.at, eight)), square = range(&r, op(&r, OP_SQ, r.at, NULL));
    ck_assert(is(quotient, -8188, 8188, 0x1p-27));
    ck_assert(is(square, 0, 65504.0 * 65504, 0x1p-48));
    ck_assert(is(range(&r, op(&r, OP_MAX, op(&r, OP_MIN, r.at, eight), number(&r, -1))), -1, 8, 0x1p-24));
    ck_assert(is(range(&r, op(&r, OP_MAX, r.at, number(&r, -INFINITY))), -65504, 65504, 0x1p-24));
    ck_assert(is(range(&r, wave), 0, 1, 0x1p-149));
    ck_assert(range(&r, op(&r, OP_SUB, wave, eight)).high == -7);
    ck_assert(is(range(&r, op(&r, OP_POW, r.at, number(&r, 3))), -pow(65504, 3), pow(65504, 3), 0x1p-72));
    ck_assert(range(&r, op(&r, OP_POW, r.at, r.at)).high == FLT_MAX);
    ck_assert(is(range(&r, op(&r, OP_SQRT, eight, NULL)), 0, sqrt(8), sqrt(8)));
    Range turn = range(&r, op(&r, OP_ATAN, r.at, NULL)), arc = range(&r, op(&r, OP_ACOS, r.at, NULL));
    ck_assert(turn.low == -turn.high && turn.high > M_PI_2 && turn.high < 1.571 && turn.least == 0x1p-25);
    ck_assert(arc.low == 0 && arc.high > M_PI && arc.high < 3.142 && arc.least == 0x1p-149);
    ck_assert(is(range(&r, op(&r, OP_ROUND, op(&r, OP_MUL, wave, number(&r, 2.5)), NULL)), 0, 3, 1));   // up to 2.5
    build_free(r.build);
}
END_TEST

/* exp(x - m), m the maximum of x along j, in all ways in which it is written. */
START_TEST(a_distance_from_the_maximum_is_not_positive)
{
    for (int wide = 0; wide < 2; wide++) {
        Rows r = rows_of(wide ? DTYPE_F32 : DTYPE_F16);
        Build *b = r.build;
        Expr *scaled = op(&r, OP_MUL, r.at, number(&r, 0.125));
        Tensor *t = POINTWISE(b, ROLE_TEMPORARY, DTYPE_F32, scaled, ROWS, COLUMNS);
        Tensor *m = REDUCTION(b, ROLE_TEMPORARY, DTYPE_F32, REDUCE_MAX, 1, AT(b, t, I, J), ROWS, COLUMNS);
        Tensor *least = REDUCTION(b, ROLE_TEMPORARY, DTYPE_F32, REDUCE_MIN, 1, AT(b, t, I, J), ROWS, COLUMNS);
        Tensor *of_column = build_define(b, ROLE_TEMPORARY, DTYPE_F32, REDUCE_MAX, 1, AT(b, t, 1, 0), 2,
                                         (int64_t[]){COLUMNS, ROWS});
        Tensor *rounded = REDUCTION(b, ROLE_TEMPORARY, DTYPE_BF16, REDUCE_MAX, 1, AT(b, t, I, J), ROWS, COLUMNS);
        Tensor *capped = POINTWISE(b, ROLE_TEMPORARY, DTYPE_F32, op(&r, OP_MAX, AT(b, m, 0), number(&r, 7)), ROWS);
        struct { Expr *x, *m; bool bounded; } ways[] = {
            {AT(b, t, I, J), AT(b, m, I), true},    {scaled, AT(b, m, I), true},
            {scaled, AT(b, of_column, J), true},    {scaled, AT(b, capped, I), true},
            {scaled, AT(b, least, I), false},       {scaled, AT(b, rounded, I), false},
            {r.at, AT(b, m, I), false},
        };
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            Range e = range(&r, op(&r, OP_EXP, op(&r, OP_SUB, ways[w].x, ways[w].m), NULL));
            ck_assert_msg(e.low == 0 && (e.high == 1) == ways[w].bounded, "way %zu: %g", w, e.high);
        }
        build_free(b);
    }
}
END_TEST

START_TEST(sums_grow_with_their_terms)
{
    Rows r = rows_of(DTYPE_F16);
    Tensor *s = REDUCTION(r.build, ROLE_TEMPORARY, DTYPE_F32, REDUCE_SUM, 1, op(&r, OP_SQ, r.at, NULL), ROWS, COLUMNS);
    Range sum = range(&r, AT(r.build, s, I));
    ck_assert(sum.low == 0 && sum.high >= COLUMNS * 65504.0 * 65504 && sum.high < 1.001 * COLUMNS * 65504.0 * 65504);
    ck_assert(sum.least == 0x1p-48);
    Tensor *mixed = REDUCTION(r.build, ROLE_TEMPORARY, DTYPE_F32, REDUCE_SUM, 1, r.at, ROWS, COLUMNS);
    ck_assert(range(&r, AT(r.build, mixed, I)).least < 0x1p-47);   // terms of both signs
    build_free(r.build);
}
END_TEST

// ---- random expressions ----

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t x = state;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) % below;
}

static Expr *draw_expr(const Rows *rows, Tensor *const *inputs, int depth)
{
    static const double numbers[] = {0.125, -3, 1e-30, 2e19, INFINITY, -INFINITY, 2, 0.5};
    if (depth == 0 || draw(8) == 0)
        return draw(4) ? expr_cast(rows->build->arena, DTYPE_F32, AT(rows->build, inputs[draw(3)], I, J))
                       : number(rows, numbers[draw(8)]);
    Op kind = (Op)draw(OP_LT);
    Expr *second = op_info[kind].operands == 2 ? draw_expr(rows, inputs, depth - 1) : NULL;
    Expr *result = op(rows, kind, draw_expr(rows, inputs, depth - 1), second);
    return draw(10) ? result : expr_cast(rows->build->arena, DTYPE_F32, expr_cast(rows->build->arena, DTYPE_F16, result));
}

/* Any number that the type has, of either sign. */
static double draw_element(DType type)
{
    static const int reach[] = {[DTYPE_F32] = 150, [DTYPE_F16] = 25, [DTYPE_BF16] = 134};
    if (!dtype_info[type].is_real)
        return (double)draw(256) - 128;
    if (draw(12) == 0)
        return draw(2) ? 0 : draw(2) ? INFINITY : -INFINITY;
    int exponent = (int)draw((uint64_t)(2 * reach[type] - 20)) - reach[type];
    return dtype_round(type, ldexp((draw(2) ? 1 : -1) * (1 + (double)draw(1 << 10) / (1 << 10)), exponent));
}

/* How near to 0 is asked of what is exact: cos(1e-8) is 1 in f32, and not in double. */
static void holds(const Rows *rows, Expr *body, double value, bool exact)
{
    Range r = range(rows, body);
    const double slack = 1 + 0x1p-10;
    bool inside = value >= fmin(r.low * slack, r.low / slack) && value <= fmax(r.high * slack, r.high / slack);
    if (!isfinite(value) || (inside && (value == 0 || !exact || fabs(value) * slack >= r.least)))
        return;
    StrBuf text = strbuf_new(rows->build->arena);
    expr_print(&text, body, axes, 2);
    ck_abort_msg("%s is %g, not in %g ... %g, least %g", text.text, value, r.low, r.high, r.least);
}

START_TEST(no_value_lies_outside)
{
    static const DType types[] = {DTYPE_F32, DTYPE_F16, DTYPE_I8, DTYPE_BF16};
    state = 3;
    for (int tree = 0; tree < 4000; tree++) {
        Rows r = {.build = build_new()};
        double data[3][ROWS * COLUMNS];
        const double *values[] = {data[0], data[1], data[2]};
        Value got[ROWS * COLUMNS];
        Tensor *inputs[3];
        for (int i = 0; i < 3; i++) {
            DType type = types[draw(4)];
            inputs[i] = INPUT(r.build, type, ROWS, COLUMNS);
            for (int e = 0; e < ROWS * COLUMNS; e++)
                data[i][e] = draw_element(type);
        }
        Expr *body = draw_expr(&r, inputs, 3);
        Tensor *y = POINTWISE(r.build, ROLE_OUTPUT, DTYPE_F32, body, ROWS, COLUMNS);
        build_evaluate(r.build, values, y, ROWS * COLUMNS, got);
        for (int e = 0; e < ROWS * COLUMNS; e++)
            if (isfinite(got[e].bound))
                holds(&r, body, got[e].real, got[e].bound == 0);
        build_free(r.build);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, elements_are_bounded_by_their_type);
    tcase_add_test(tests, operations_bound_their_results);
    tcase_add_test(tests, a_distance_from_the_maximum_is_not_positive);
    tcase_add_test(tests, sums_grow_with_their_terms);
    tcase_add_test(tests, no_value_lies_outside);
}

int main(void) { return build_run("range", add); }
