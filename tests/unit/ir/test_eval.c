// The reference evaluator: values and bounds worked by hand.
#include "build.h"

static const double U = 0x1p-24;   // unit round-off of f32

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* ---- one operation on one element ---- */

static Value apply(Op op, DType type, double a, double b)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, type, 1), *y = INPUT(build, type, 1);
    Expr *left = AT(build, x, 0), *right = AT(build, y, 0), *zero = build_const(build, type, 0);
    if (op_info[op].class == OP_CLASS_LOGIC) {
        left = build_op(build, OP_NE, left, zero, NULL);
        right = build_op(build, OP_NE, right, zero, NULL);
    }
    Expr *body = build_op(build, op, left, op_info[op].operands == 2 ? right : NULL, NULL);
    Tensor *out = POINTWISE(build, ROLE_OUTPUT, body->type, body, 1);
    const double *inputs[] = {&a, &b};
    Value value;
    build_evaluate(build, inputs, out, 1, &value);
    build_free(build);
    return value;
}

typedef struct Row { Op op; double a, b, expected; } Row;

static const Row REAL_ROWS[] = {
    {OP_NEG, 2.5, 0, -2.5},          {OP_ADD, 1.5, 2.25, 3.75},      {OP_SUB, 1.5, 2.25, -0.75},
    {OP_MUL, 1.5, -2.5, -3.75},      {OP_DIV, 7, 2, 3.5},            {OP_MAX, -1, -2, -1},
    {OP_MIN, -1, -2, -2},            {OP_ABS, -3, 0, 3},             {OP_SQ, -1.5, 0, 2.25},
    {OP_RELU, -1, 0, 0},             {OP_RELU, 2, 0, 2},             {OP_FLOOR, -1.5, 0, -2},
    {OP_CEIL, -1.5, 0, -1},          {OP_EXP, 1, 0, 2.718281828459045}, {OP_LOG, 10, 0, 2.302585092994046},
    {OP_SQRT, 2.25, 0, 1.5},         {OP_RSQRT, 4, 0, 0.5},          {OP_TANH, 0.5, 0, 0.46211715726000976},
    {OP_ERF, 0.5, 0, 0.5204998778130465}, {OP_SIGMOID, 2, 0, 0.8807970779778824},
    {OP_SIN, 1, 0, 0.8414709848078965}, {OP_COS, 1, 0, 0.5403023058681398}, {OP_POW, 2, -1.5, 0.35355339059327373},
    {OP_ROUND, 2.5, 0, 2},           {OP_ROUND, -1.5, 0, -2},        {OP_ROUND, 0.75, 0, 1}, {OP_ROUND, -0.5, 0, 0},
    {OP_ATAN, 2, 0, 1.1071487177940904}, {OP_ASIN, 0.5, 0, 0.5235987755982989}, {OP_ASIN, -1, 0, -1.5707963267948966},
    {OP_ACOS, 0.5, 0, 1.0471975511965979}, {OP_ACOS, -1, 0, 3.141592653589793},
    {OP_LT, 1, 2, 1}, {OP_LT, 2, 2, 0}, {OP_LE, 2, 2, 1}, {OP_LE, 3, 2, 0}, {OP_GT, 3, 2, 1}, {OP_GT, 2, 2, 0},
    {OP_GE, 2, 2, 1}, {OP_GE, 1, 2, 0}, {OP_EQ, 2, 2, 1}, {OP_EQ, 1, 2, 0}, {OP_NE, 1, 2, 1}, {OP_NE, 2, 2, 0},
    {OP_NOT, 0, 0, 1}, {OP_NOT, 1, 0, 0}, {OP_AND, 1, 1, 1}, {OP_AND, 1, 0, 0}, {OP_OR, 0, 1, 1}, {OP_OR, 0, 0, 0},
};

START_TEST(each_operation_gives_the_number_worked_by_hand)
{
    static const DType types[] = {DTYPE_F32, DTYPE_F64};
    bool seen[OP_COUNT] = {[OP_SELECT] = true, [OP_MOD] = true};   // have tests of their own
    for (size_t i = 0; i < sizeof REAL_ROWS / sizeof *REAL_ROWS; i++) {
        const Row *row = &REAL_ROWS[i];
        Value value = apply(row->op, types[_i], row->a, row->b);
        ck_assert_msg(fabs(value.real - row->expected) <= 1e-15 * fabs(row->expected), "%s(%g, %g): %.17g",
                      op_info[row->op].name, row->a, row->b, value.real);
        ck_assert(value.bound <= 40 * (_i ? 0x1p-52 : U) * fabs(row->expected));
        seen[row->op] = true;
    }
    for (int op = 0; op < OP_COUNT; op++)
        ck_assert_msg(seen[op], "no row for %s", op_info[op].name);
}
END_TEST

/* exp(-87.25) is 1.28e-38, more than 2^-126; in f64 nothing is lost. */
START_TEST(an_exponential_below_the_normal_numbers_may_be_zero)
{
    static const struct { Op op; DType type; double a; bool zero; } rows[] = {
        {OP_EXP, DTYPE_F32, -87.25, false},     {OP_EXP, DTYPE_F32, -87.5, true},     {OP_EXP, DTYPE_F32, -103, true},
        {OP_SIGMOID, DTYPE_F32, -87.25, false}, {OP_SIGMOID, DTYPE_F32, -89, false},   {OP_EXP, DTYPE_F64, -103, false},
        {OP_EXP, DTYPE_F64, -740, false},      {OP_SIGMOID, DTYPE_F64, -740, false}, {OP_TANH, DTYPE_F32, 1e-39, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Value value = apply(rows[i].op, rows[i].type, rows[i].a, 0);
        double exact = rows[i].op == OP_TANH ? dtype_round(DTYPE_F32, rows[i].a) : exp(dtype_round(rows[i].type, rows[i].a));
        ck_assert_msg(value_allows(rows[i].type, dtype_round(rows[i].type, exact), value), "%zu", i);
        ck_assert_msg(value_allows(rows[i].type, 0, value) == rows[i].zero, "%zu: %g within %g", i, value.real, value.bound);
    }
}
END_TEST

START_TEST(not_a_number_and_infinity_follow_ieee_exactly)
{
    static const Row rows[] = {
        {OP_ADD, NAN, 1, NAN},           {OP_SUB, -INFINITY, -INFINITY, NAN}, {OP_ADD, INFINITY, 1, INFINITY},
        {OP_MUL, 0, INFINITY, NAN},      {OP_MUL, -2, INFINITY, -INFINITY},   {OP_DIV, 0, 0, NAN},
        {OP_DIV, 1, INFINITY, 0},        {OP_DIV, INFINITY, INFINITY, NAN},   {OP_MAX, NAN, 1, NAN},
        {OP_MAX, 1, NAN, NAN},           {OP_MIN, NAN, 1, NAN},               {OP_MIN, 1, NAN, NAN},
        {OP_MAX, -INFINITY, 3, 3},       {OP_RELU, NAN, 0, NAN},              {OP_RELU, INFINITY, 0, INFINITY},
        {OP_EXP, -INFINITY, 0, 0},       {OP_EXP, INFINITY, 0, INFINITY},     {OP_EXP, NAN, 0, NAN},
        {OP_EXP, 1000, 0, INFINITY},     {OP_LOG, 0, 0, -INFINITY},           {OP_LOG, -1, 0, NAN},
        {OP_SQRT, -1, 0, NAN},           {OP_SQRT, INFINITY, 0, INFINITY},    {OP_RSQRT, INFINITY, 0, 0},
        {OP_SIN, INFINITY, 0, NAN},      {OP_SIGMOID, -INFINITY, 0, 0},       {OP_POW, NAN, 0, 1},
        {OP_POW, -8, 0.5, NAN},          {OP_FLOOR, INFINITY, 0, INFINITY},   {OP_ABS, -INFINITY, 0, INFINITY},
        {OP_ROUND, -INFINITY, 0, -INFINITY}, {OP_ROUND, NAN, 0, NAN},         {OP_ATAN, NAN, 0, NAN},
        {OP_ASIN, 1.5, 0, NAN},          {OP_ASIN, NAN, 0, NAN},              {OP_ACOS, -1.5, 0, NAN},
        {OP_ACOS, INFINITY, 0, NAN},     {OP_ACOS, 1, 0, 0},                  {OP_ASIN, -INFINITY, 0, NAN},
        {OP_LT, NAN, 1, 0},              {OP_NE, NAN, NAN, 1},                {OP_EQ, INFINITY, INFINITY, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const Row *row = &rows[i];
        Value value = apply(row->op, DTYPE_F32, row->a, row->b);
        ck_assert_msg(same(value.real, row->expected), "%s(%g, %g): %g", op_info[row->op].name, row->a, row->b,
                      value.real);
        ck_assert_msg(value.bound == 0 || row->op == OP_POW, "%s(%g, %g)", op_info[row->op].name, row->a, row->b);
    }
}
END_TEST

START_TEST(exact_results_have_no_bound)
{
    ck_assert(apply(OP_MUL, DTYPE_F32, 3, 4).bound == 0);
    ck_assert(apply(OP_ADD, DTYPE_F32, 0.5, 0.25).bound == 0);
    ck_assert(apply(OP_DIV, DTYPE_F32, 1, 3).bound > 0);
    ck_assert(apply(OP_DIV, DTYPE_F32, 1, 3).bound <= 1.001 * U / 3);
}
END_TEST

START_TEST(what_float_cannot_hold_is_infinite)
{
    Value sure = apply(OP_ADD, DTYPE_F32, (float)3e38, (float)3e38);
    Value unsure = apply(OP_MUL, DTYPE_F32, (float)2e19, (float)2e19);   // 4e38: a fused sum may bring it back
    Value doubles = apply(OP_MUL, DTYPE_F64, 2e19, 2e19);
    ck_assert(sure.real == INFINITY && sure.bound == 0);
    ck_assert(unsure.real == INFINITY && unsure.bound == INFINITY);
    ck_assert(doubles.real == 4e38 && doubles.bound < 1e24);
}
END_TEST

/* What double makes 0 is no 0: two of 5e-324 / 32 are none together, 64 of them 1e-323. */
START_TEST(an_underflow_to_zero_is_inexact)
{
    const double tiny = 0x1p-1074;
    static const struct { Op op; double a, b; } lost[] = {
        {OP_MUL, 0x1p-1074, 0.03125}, {OP_DIV, 0x1p-1074, 32}, {OP_SQ, 1e-200, 0}, {OP_EXP, -800, 0},
        {OP_SIGMOID, -800, 0}, {OP_POW, 1e-200, 2}};
    static const struct { Op op; double a, b; } none[] = {
        {OP_MUL, 0, 5}, {OP_DIV, 0, 5}, {OP_DIV, 5, INFINITY}, {OP_SQ, 0, 0}, {OP_EXP, -INFINITY, 0},
        {OP_SIGMOID, -INFINITY, 0}, {OP_RSQRT, INFINITY, 0}, {OP_POW, 0, 2}, {OP_SUB, 3, 3}, {OP_LOG, 1, 0},
        {OP_SQRT, 0, 0}, {OP_TANH, 0, 0}, {OP_ATAN, 0, 0}, {OP_ASIN, 0, 0}, {OP_ACOS, 1, 0}, {OP_ROUND, 0.25, 0}};
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) {
        Value value = apply(lost[i].op, DTYPE_F64, lost[i].a, lost[i].b);
        ck_assert(value.real == 0 && value_allows(DTYPE_F64, tiny, value));
        ck_assert(value.bound < 1e-300);
    }
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        Value value = apply(none[i].op, DTYPE_F64, none[i].a, none[i].b);
        ck_assert(value.real == 0 && value.bound == 0);
    }
}
END_TEST

/* The root is off by 2^-24 of itself and so is the quotient, though 1e-307 times that error is 0 in double. */
START_TEST(bounds_of_small_quotients_do_not_vanish)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F64, 1), *s = INPUT(build, DTYPE_F32, 1);
    Expr *root = expr_cast(build->arena, DTYPE_F64, build_op(build, OP_SQRT, AT(build, s, 0), NULL, NULL));
    Tensor *y = POINTWISE(build, ROLE_OUTPUT, DTYPE_F64, build_op(build, OP_DIV, AT(build, x, 0), root, NULL), 1);
    const double *const inputs[] = {(double[]){1e-322}, (double[]){(float)2e-39}};
    Value value;
    build_evaluate(build, inputs, y, 1, &value);
    ck_assert(value.bound > 0x1p-25 * value.real && value.bound < 0x1p-22 * value.real);
    build_free(build);
}
END_TEST

/* op(a / b - c): the quotient is off by 2^-24 of itself at most. */
static Value of_quotient(Op op, double a, double b, double c)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 1), *y = INPUT(build, DTYPE_F32, 1);
    Expr *share = build_op(build, OP_DIV, AT(build, x, 0), AT(build, y, 0), NULL);
    Expr *moved = c == 0 ? share : build_op(build, OP_SUB, share, build_const(build, DTYPE_F32, c), NULL);
    Tensor *out = POINTWISE(build, ROLE_OUTPUT, DTYPE_F32, build_op(build, op, moved, NULL, NULL), 1);
    const double *inputs[] = {&a, &b};
    Value value;
    build_evaluate(build, inputs, out, 1, &value);
    build_free(build);
    return value;
}

/* Four units in the last place are 8 * 2^-24 of the result; to them comes the operand's error times the slope. */
START_TEST(angles_are_bounded_by_their_slope)
{
    static const struct { Op op; double a, b, angle, slope; } rows[] = {
        {OP_ATAN, 1, 3, 0.3217505543966422, 0.9},            // 1 / (1 + 1/9)
        {OP_ASIN, 1, 3, 0.3398369094541219, 1.0606601718},   // 1 / sqrt(1 - 1/9)
        {OP_ACOS, 1, 3, 1.2309594173407747, 1.0606601718},
        {OP_ASIN, 99, 100, 1.4292568534704693, 7.0888120501},   // 1 / sqrt(1 - 0.9801)
        {OP_ATAN, 1e8, 3, 1.5707962967948966, 9e-16},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Value value = of_quotient(rows[i].op, rows[i].a, rows[i].b, 0);
        double bound = U * (rows[i].a / rows[i].b * rows[i].slope + 8 * rows[i].angle);
        ck_assert_msg(fabs(value.real - rows[i].angle) < 1e-15, "%zu: %.17g", i, value.real);
        ck_assert_msg(fabs(value.bound - bound) < 1e-4 * bound, "%zu: %g, not %g", i, value.bound, bound);
    }
}
END_TEST

/* 0.9999999 may be 0.99999996: asin is pi/2 - 4.4721e-4 and pi/2 - 2.8424e-4 there, and four units are 7.5e-7. */
START_TEST(angles_move_far_at_the_ends_and_beyond_are_none)
{
    Value near = of_quotient(OP_ASIN, 9999999, 10000000, 0);
    ck_assert(near.bound > 1.63e-4 && near.bound < 1.65e-4);
    ck_assert(of_quotient(OP_ASIN, 3, 3, 0).bound < 8.1 * U * 1.5708);   // 1, exact
    ck_assert(of_quotient(OP_ACOS, 3, 3, 0).bound == 0);
    static const double unknown[][3] = {
        {1, 1 - 0x1p-24, 0},    // 1.00000006 or 1
        {1e8, 3, 33333333},     // 0.33 within 2
        {2e8, 3, 66666665}};    // 1.67 within 4: NaN, as are its ends, but not between them
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        ck_assert(isinf(of_quotient(OP_ASIN, unknown[i][0], unknown[i][1], unknown[i][2]).bound));
        ck_assert(isinf(of_quotient(OP_ACOS, -unknown[i][0], unknown[i][1], -unknown[i][2]).bound));
    }
    Value outside = of_quotient(OP_ACOS, 4, 3, 0);
    ck_assert(isnan(outside.real) && outside.bound == 0);
    ck_assert(of_quotient(OP_ATAN, 2e8, 3, 66666665).bound < 2.4);   // from atan(-2.3) to atan(5.7)
    ck_assert(isinf(of_quotient(OP_ATAN, 1, 0, 0).bound));           // 1 / 0 is infinite, of either sign
}
END_TEST

/* 7.25 / 3 is far from a half and 7.5 / 3 is one; 10 / 3 - 5 / 6 may be below it or above. */
START_TEST(halves_are_rounded_to_either_side)
{
    Value sure = of_quotient(OP_ROUND, 7.25, 3, 0), exact = of_quotient(OP_ROUND, 7.5, 3, 0);
    Value tie = of_quotient(OP_ROUND, 10, 3, (double)(5 / 6.0f));
    ck_assert(sure.real == 2 && sure.bound == 0);
    ck_assert(exact.real == 2 && exact.bound == 0);
    ck_assert(tie.bound >= 1 && tie.bound < 1.001);
}
END_TEST

START_TEST(poles_are_not_judged)
{
    ck_assert(apply(OP_DIV, DTYPE_F32, 1, 0).bound == INFINITY);   // the sign is that of the zero
    ck_assert(apply(OP_RSQRT, DTYPE_F32, 0, 0).bound == INFINITY);
}
END_TEST

START_TEST(integers_wrap_at_every_operation)
{
    static const Row rows[] = {
        {OP_ADD, 2147483647, 1, -2147483648.0}, {OP_SUB, -2147483648.0, 1, 2147483647},
        {OP_MUL, 65536, 65536, 0},              {OP_MUL, 65537, 65537, 131073},   // 2^32 + 2^17 + 1
        {OP_NEG, -2147483648.0, 0, -2147483648.0}, {OP_ABS, -2147483648.0, 0, -2147483648.0},
        {OP_SQ, 46341, 0, -2147479015},         // 2147488281 - 2^32
        {OP_DIV, -7, 2, -3}, {OP_MOD, -7, 2, -1}, {OP_MOD, 7, -3, 1}, {OP_MOD, 5, -1, 0},                   {OP_DIV, -2147483648.0, -1, -2147483648.0},
        {OP_MAX, -3, 2, 2},                     {OP_MIN, -3, 2, -3},
        {OP_RELU, -3, 0, 0},                    {OP_FLOOR, -3, 0, -3},            {OP_CEIL, 3, 0, 3},
        {OP_ROUND, 2147483647, 0, 2147483647},
        {OP_LT, -3, 2, 1},                      {OP_GE, 2147483647, -1, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Value value = apply(rows[i].op, DTYPE_I32, rows[i].a, rows[i].b);
        ck_assert_msg(value.real == rows[i].expected && value.bound == 0, "%s(%g, %g): %g", op_info[rows[i].op].name,
                      rows[i].a, rows[i].b, value.real);
    }
    ck_assert(apply(OP_DIV, DTYPE_I32, 5, 0).bound == INFINITY);
}
END_TEST

/* ---- conversions ---- */

static Value converted(DType from, DType to, double a)
{
    Build *build = build_new();
    Expr *body = expr_cast(build->arena, to, AT(build, INPUT(build, from, 1), 0));
    Tensor *out = POINTWISE(build, ROLE_OUTPUT, body->type, body, 1);
    const double *inputs[] = {&a};
    Value value;
    build_evaluate(build, inputs, out, 1, &value);
    build_free(build);
    return value;
}

START_TEST(casts_truncate_saturate_wrap_and_round)
{
    static const struct { DType from, to; double a, expected; } rows[] = {
        {DTYPE_F32, DTYPE_I32, -2.9, -2},         {DTYPE_F32, DTYPE_I32, 1e30, 2147483647},
        {DTYPE_F32, DTYPE_I32, NAN, 0},           {DTYPE_F32, DTYPE_I32, -INFINITY, -2147483648.0},
        {DTYPE_F32, DTYPE_U8, -3, 0},             {DTYPE_F32, DTYPE_I8, 200, 127},
        {DTYPE_I32, DTYPE_I8, 200, -56},          {DTYPE_I32, DTYPE_U8, -1, 255},
        {DTYPE_F32, DTYPE_F16, 2049, 2048},       {DTYPE_F32, DTYPE_F16, 70000, INFINITY},
        {DTYPE_F64, DTYPE_F32, 16777217, 16777216}, {DTYPE_I32, DTYPE_F32, 16777217, 16777216},
        {DTYPE_B1, DTYPE_F32, 1, 1},              {DTYPE_I32, DTYPE_B1, -7, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Value value = converted(rows[i].from, rows[i].to, rows[i].a);
        ck_assert_msg(value.real == rows[i].expected && value.bound == 0, "row %zu: %g within %g", i, value.real,
                      value.bound);
    }
}
END_TEST

START_TEST(an_inexact_value_rounds_to_an_interval_of_the_narrow_type)
{
    /* 1/7 = 0x1.2492…p-3 lies far from a tie of f16, so every kernel stores 0x1.248p-3. (2049/7)*7
       is 2049 within a few units, a tie of f16 between 2048 and 2050: both are legal. */
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 2);
    Expr *seven = build_const(build, DTYPE_F32, 7), *share = build_op(build, OP_DIV, AT(build, x, 0), seven, NULL);
    Tensor *far = POINTWISE(build, ROLE_OUTPUT, DTYPE_F16, share, 2);
    Tensor *tie = POINTWISE(build, ROLE_OUTPUT, DTYPE_F16, build_op(build, OP_MUL, share, seven, NULL), 2);
    const double data[] = {1, 2049}, *inputs[] = {data};
    Value values[2];
    build_evaluate(build, inputs, far, 2, values);
    ck_assert(values[0].real == 0x1.248p-3 && values[0].bound == 0);
    build_evaluate(build, inputs, tie, 2, values);
    ck_assert(values[1].real == 2048 && values[1].bound >= 2 && values[1].bound < 2.001);
    build_free(build);
}
END_TEST

/* ---- conditions ---- */

START_TEST(a_comparison_too_close_to_call_is_undecided)
{
    /* x/3*3 against x, and against 2x */
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 1);
    Expr *a = AT(build, x, 0), *three = build_const(build, DTYPE_F32, 3), *ten = build_const(build, DTYPE_F32, 10);
    Expr *same_again = build_op(build, OP_MUL, build_op(build, OP_DIV, a, three, NULL), three, NULL);
    Expr *close = build_op(build, OP_LE, same_again, a, NULL);
    Expr *clear = build_op(build, OP_LE, same_again, build_op(build, OP_ADD, a, a, NULL), NULL);
    Expr *both = build_op(build, OP_OR, close, clear, NULL);
    Tensor *outputs[] = {
        POINTWISE(build, ROLE_OUTPUT, DTYPE_B1, close, 1),
        POINTWISE(build, ROLE_OUTPUT, DTYPE_B1, clear, 1),
        POINTWISE(build, ROLE_OUTPUT, DTYPE_B1, both, 1),
        POINTWISE(build, ROLE_OUTPUT, DTYPE_F32, build_op(build, OP_SELECT, close, three, ten), 1),
        POINTWISE(build, ROLE_OUTPUT, DTYPE_F32, build_op(build, OP_SELECT, clear, three, ten), 1),
        POINTWISE(build, ROLE_OUTPUT, DTYPE_I32, expr_cast(build->arena, DTYPE_I32, close), 1),
    };
    const double data[] = {7}, *inputs[] = {data};
    Value values[6];
    for (int i = 0; i < 6; i++)
        build_evaluate(build, inputs, outputs[i], 1, &values[i]);
    ck_assert(values[0].bound == INFINITY);
    ck_assert(values[1].real == 1 && values[1].bound == 0);
    ck_assert(values[2].real == 1 && values[2].bound == 0);
    ck_assert(values[3].bound >= 7 && values[3].bound < 7.001);   // either branch
    ck_assert(values[4].real == 3 && values[4].bound == 0);
    ck_assert(values[5].bound == 1);                              // 0 or 1
    build_free(build);
}
END_TEST

/* ---- reductions ---- */

static Value reduce(Reduce kind, DType type, int count, const double *terms)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, type, count);
    Tensor *y = REDUCTION(build, ROLE_OUTPUT, dtype_info[type].compute, kind, 1, AT(build, x, 0), count);
    Value value;
    build_evaluate(build, &terms, y, 1, &value);
    build_free(build);
    return value;
}
#define REDUCE(kind, type, ...) \
    reduce(kind, type, (int)(sizeof (double[]){__VA_ARGS__} / sizeof(double)), (double[]){__VA_ARGS__})

START_TEST(a_sum_of_three_errs_by_five_units_of_its_magnitude)
{
    Value value = REDUCE(REDUCE_SUM, DTYPE_F32, 0.5, -0.25, 1.5);
    ck_assert(value.real == 1.75);
    ck_assert(fabs(value.bound - 5 * U * 2.25) <= 1e-5 * value.bound);   // (3 + 2) * u * (0.5 + 0.25 + 1.5)
}
END_TEST

START_TEST(sums_of_small_whole_numbers_are_exact)
{
    Value value = REDUCE(REDUCE_SUM, DTYPE_F32, 3, -4, 2, 8388608);
    ck_assert(value.real == 8388609 && value.bound == 0);
    ck_assert(REDUCE(REDUCE_SUM, DTYPE_F32, 3, 16777216).bound > 0);
}
END_TEST

START_TEST(sums_of_infinities)
{
    ck_assert(isnan(REDUCE(REDUCE_SUM, DTYPE_F32, INFINITY, 1, -INFINITY).real));
    ck_assert(REDUCE(REDUCE_SUM, DTYPE_F32, INFINITY, 1, -INFINITY).bound == 0);
    ck_assert(REDUCE(REDUCE_SUM, DTYPE_F32, 1, INFINITY).real == INFINITY);
    ck_assert(REDUCE(REDUCE_SUM, DTYPE_F32, 1, INFINITY).bound == 0);
    Value order = REDUCE(REDUCE_SUM, DTYPE_F32, (float)3e38, (float)3e38, (float)-3e38);   // some orders overflow
    ck_assert(order.bound == INFINITY);
}
END_TEST

START_TEST(a_nan_anywhere_in_a_reduction_is_the_result)
{
    for (int kind = REDUCE_SUM; kind <= REDUCE_PROD; kind++)
        for (int place = 0; place < 3; place++) {
            double terms[] = {1, 2, 3};
            terms[place] = NAN;
            Value value = reduce((Reduce)kind, DTYPE_F32, 3, terms);
            ck_assert(isnan(value.real) && value.bound == 0);
        }
}
END_TEST

START_TEST(products)
{
    Value value = REDUCE(REDUCE_PROD, DTYPE_F32, 0.1f, 3, -7);
    ck_assert(value.real == (double)0.1f * 3 * -7);
    ck_assert(fabs(value.bound - 5 * U * 2.1) <= 1e-5 * value.bound);
    ck_assert(REDUCE(REDUCE_PROD, DTYPE_F32, 2, 3, -7).bound == 0);
    ck_assert(REDUCE(REDUCE_PROD, DTYPE_F32, (float)1e30, (float)1e30, 0).bound == INFINITY);   // inf * 0 in some order
    ck_assert(isnan(REDUCE(REDUCE_PROD, DTYPE_F32, INFINITY, 1, 0).real));
    ck_assert(REDUCE(REDUCE_PROD, DTYPE_F32, 5, 0.3, 0).bound == 0);
    ck_assert(REDUCE(REDUCE_PROD, DTYPE_F32, 1e-30, 1e-30, 1e30).bound == INFINITY);            // 0 in some order
}
END_TEST

START_TEST(extremes_and_integers)
{
    ck_assert(REDUCE(REDUCE_MAX, DTYPE_F32, -3, -2, -5).real == -2);
    ck_assert(REDUCE(REDUCE_MIN, DTYPE_F32, -3, -2, -5).real == -5);
    ck_assert(REDUCE(REDUCE_MAX, DTYPE_F32, -INFINITY, -INFINITY).real == -INFINITY);
    ck_assert(REDUCE(REDUCE_MAX, DTYPE_F32, -INFINITY, -INFINITY).bound == 0);
    ck_assert(REDUCE(REDUCE_MAX, DTYPE_I32, -3, -2, -5).real == -2);
    ck_assert(REDUCE(REDUCE_MIN, DTYPE_I8, -3, -2, -5).real == -5);
    ck_assert(REDUCE(REDUCE_SUM, DTYPE_I32, 2147483647, 2, 3).real == -2147483644.0);
    ck_assert(REDUCE(REDUCE_PROD, DTYPE_I32, 65536, 65536, 3).real == 0);
    ck_assert(REDUCE(REDUCE_MAX, DTYPE_B1, 0, 1, 0).real == 1);
}
END_TEST

/* ---- whole programs ---- */

START_TEST(a_causal_softmax_row)
{
    /* x = 0: row i spreads 1 over the columns 0 … i. */
    enum { N = 4 };
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, N, N);
    Expr *allowed = build_op(build, OP_LE, build_index(build, 1), build_index(build, 0), NULL);
    Expr *masked = build_op(build, OP_SELECT, allowed, AT(build, x, 0, 1), build_const(build, DTYPE_F32, -INFINITY));
    Tensor *t = POINTWISE(build, ROLE_TEMPORARY, DTYPE_F32, masked, N, N);
    Tensor *m = REDUCTION(build, ROLE_TEMPORARY, DTYPE_F32, REDUCE_MAX, 1, AT(build, t, 0, 1), N, N);
    Expr *away = build_op(build, OP_SUB, AT(build, t, 0, 1), AT(build, m, 0), NULL);
    Tensor *e = POINTWISE(build, ROLE_TEMPORARY, DTYPE_F32, build_op(build, OP_EXP, away, NULL, NULL), N, N);
    Tensor *s = REDUCTION(build, ROLE_TEMPORARY, DTYPE_F32, REDUCE_SUM, 1, AT(build, e, 0, 1), N, N);
    Expr *share = build_op(build, OP_DIV, AT(build, e, 0, 1), AT(build, s, 0), NULL);
    Tensor *y = POINTWISE(build, ROLE_OUTPUT, DTYPE_F32, share, N, N);
    double data[N * N] = {0};
    for (int j = 0; j < N; j++)
        data[3 * N + j] = -INFINITY;   // the last row has nothing to spread over
    const double *inputs[] = {data};
    Value values[N * N];
    build_evaluate(build, inputs, y, N * N, values);
    for (int i = 0; i < N - 1; i++)
        for (int j = 0; j < N; j++) {
            ck_assert(values[i * N + j].real == (j <= i ? 1.0 / (i + 1) : 0));
            ck_assert(values[i * N + j].bound <= 40 * U);
            ck_assert(j <= i || values[i * N + j].bound == 0);
        }
    for (int j = 0; j < N; j++)
        ck_assert(isnan(values[3 * N + j].real) && values[3 * N + j].bound == 0);
    build_free(build);
}
END_TEST

static Expr *padded(Build *build, Tensor *tensor, Affine index, double otherwise)
{
    Expr *guard = NEW(build->arena, Expr);
    guard->kind = EXPR_GUARD;
    guard->type = dtype_info[tensor->dtype].compute;
    Expr *body = build_access(build, tensor, &index);
    guard->guard = (Guard){1, body->access.dims, body, build_const(build, guard->type, otherwise)};
    return guard;
}

START_TEST(padding_reads_nothing_outside)
{
    /* y[i] = sum[r:3](pad(x[i + r - 1], 10)) over x = 1 2 3 4 */
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 4);
    Affine index = affine_axis(0);
    index.coef[1] = 1;
    index.constant = -1;
    Tensor *y = REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1, padded(build, x, index, 10), 4, 3);
    const double data[] = {1, 2, 3, 4}, *inputs[] = {data};
    const double expected[] = {13, 6, 9, 17};
    Value values[4];
    build_evaluate(build, inputs, y, 4, values);
    for (int i = 0; i < 4; i++)
        ck_assert(values[i].real == expected[i] && values[i].bound == 0);
    build_free(build);
}
END_TEST

/* y[i] = sum[r:2](pad(x[i + r - 1], otherwise) * w[r]), pad(…) as a definition of its own or not. */
static Value filtered(DType type, const double *x, const double *w, int at, double otherwise, bool defined)
{
    Build *build = build_new();
    const double *inputs[] = {x, w};
    Tensor *image = INPUT(build, type, 3), *filter = INPUT(build, DTYPE_F16, 2);
    Affine index = affine_axis(0);
    index.coef[1] = 1;
    index.constant = -1;
    Expr *taken = padded(build, image, index, otherwise);
    if (defined)
        taken = AT(build, POINTWISE(build, ROLE_TEMPORARY, type, taken, 3, 2), 0, 1);
    Expr *term = build_op(build, OP_MUL, expr_cast(build->arena, DTYPE_F32, taken), AT(build, filter, 1), NULL);
    Tensor *y = REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1, term, 3, 2);
    Value values[3];
    build_evaluate(build, inputs, y, 3, values);
    build_free(build);
    return values[at];
}

START_TEST(a_term_outside_may_be_left_out_whatever_its_other_factor_is)
{
    const double x[] = {1, 0, 3}, no_number[] = {(double)NAN, 1}, infinite[] = {INFINITY, 1}, plain[] = {2, 1};
    bool defined = _i;
    ck_assert(filtered(DTYPE_F16, x, no_number, 0, 0, defined).bound == INFINITY);   // 0 * NaN + 1: NaN or 1
    ck_assert(!isnan(filtered(DTYPE_F16, x, no_number, 0, 0, defined).real));
    ck_assert(filtered(DTYPE_F16, x, infinite, 0, 0, defined).bound == INFINITY);
    ck_assert(filtered(DTYPE_F16, x, plain, 0, 0, defined).real == 1 && filtered(DTYPE_F16, x, plain, 0, 0, defined).bound == 0);
    ck_assert(isnan(filtered(DTYPE_F16, x, no_number, 1, 0, defined).real));   // 1 * NaN
    ck_assert(isnan(filtered(DTYPE_F16, x, no_number, 2, 0, defined).real));   // an element that is 0 is not outside
    ck_assert(isnan(filtered(DTYPE_F16, x, no_number, 0, 1, defined).real));   // nor may what is 1 there be left out
    ck_assert(isnan(filtered(DTYPE_I8, x, no_number, 0, 1, defined).real));
    ck_assert(!isnan(filtered(DTYPE_I8, x, no_number, 0, 0, defined).real));
}
END_TEST

START_TEST(a_scalar_program)
{
    Build *build = build_new();
    Tensor *x = build_tensor(build, ROLE_INPUT, DTYPE_F32, 0, NULL);
    Expr *body = build_op(build, OP_SQ, build_access(build, x, NULL), NULL, NULL);
    Tensor *y = build_define(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_NONE, 0, body, 0, NULL);
    const double data[] = {3}, *inputs[] = {data};
    Value value;
    build_evaluate(build, inputs, y, 1, &value);
    ck_assert(value.real == 9 && value.bound == 0);
    build_free(build);
}
END_TEST

/* C = A x B of random numbers, with the program left to the caller. */
static Tensor *matmul(Build *build, int64_t m, int64_t n, int64_t k, DType type)
{
    Tensor *a = INPUT(build, type, m, k), *b = INPUT(build, type, k, n);
    Expr *product = build_op(build, OP_MUL, AT(build, a, 0, 2), AT(build, b, 2, 1), NULL);
    return REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1, product, m, n, k);
}

START_TEST(a_matrix_product_agrees_with_the_plain_loop)
{
    enum { M = 3, N = 5, K = 700 };
    Build *build = build_new();
    Tensor *c = matmul(build, M, N, K, DTYPE_F16);
    RandomInputs random = {&build->program, 3, INPUT_REAL};
    Evaluator *evaluator = evaluator_new(build->arena, &build->program, (InputSource){random_input_element, &random});
    Value values[M * N];
    evaluate_range(evaluator, c, 0, M * N, values);
    for (int e = 0; e < M * N; e++) {
        double sum = 0, magnitude = 0;
        for (int k = 0; k < K; k++) {
            double term = random_input_element(&random, 0, e / N * K + k) * random_input_element(&random, 1, k * N + e % N);
            sum += term;
            magnitude += fabs(term);
        }
        ck_assert(fabs(values[e].real - sum) <= 1e-12);
        ck_assert(values[e].bound >= K * U * magnitude && values[e].bound <= (K + 4) * U * magnitude);
    }
    evaluator_free(evaluator);
    build_free(build);
}
END_TEST

START_TEST(elements_may_be_asked_for_in_any_order)
{
    enum { M = 40, N = 50 };
    Build *build = build_new();
    Tensor *c = matmul(build, M, N, 8, DTYPE_F32);
    Tensor *y = POINTWISE(build, ROLE_OUTPUT, DTYPE_F32, build_op(build, OP_SQ, AT(build, c, 1, 0), NULL, NULL), N, M);
    RandomInputs random = {&build->program, 3, INPUT_WHOLE};
    InputSource inputs = {random_input_element, &random};
    Evaluator *evaluator = evaluator_new(build->arena, &build->program, inputs);
    int64_t elements[M * N];
    Value all[M * N], picked[M * N];
    for (int i = 0; i < M * N; i++)
        elements[i] = i * 1237 % (M * N);
    evaluate(evaluator, y, elements, M * N, picked);
    evaluate_range(evaluator, y, 0, M * N, all);
    for (int i = 0; i < M * N; i++)
        ck_assert(picked[i].real == all[elements[i]].real && picked[i].bound == 0);
    evaluator_free(evaluator);
    build_free(build);
}
END_TEST

static double counted_element(void *context, int input, int64_t element)
{
    (void)input;
    ++*(int64_t *)context;
    return (double)(element % 7);
}

START_TEST(an_element_of_a_huge_program_costs_only_what_it_needs)
{
    /* t[i, j] = x[i, j]^2 over 2^20 x 2^13, y[i, j] = t[i, j] / sum[k] t[i, k]: a row is 8192
       elements. */
    const int64_t rows = 1 << 20, columns = 1 << 13;
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, rows, columns);
    Expr *square = build_op(build, OP_SQ, AT(build, x, 0, 1), NULL, NULL);
    Tensor *t = POINTWISE(build, ROLE_TEMPORARY, DTYPE_F32, square, rows, columns);
    Tensor *s = REDUCTION(build, ROLE_TEMPORARY, DTYPE_F32, REDUCE_SUM, 1, AT(build, t, 0, 1), rows, columns);
    Expr *share = build_op(build, OP_DIV, AT(build, t, 0, 1), AT(build, s, 0), NULL);
    Tensor *y = POINTWISE(build, ROLE_OUTPUT, DTYPE_F32, share, rows, columns);
    int64_t reads = 0;
    InputSource inputs = {counted_element, &reads};
    Evaluator *evaluator = evaluator_new(build->arena, &build->program, inputs);
    int64_t elements[] = {rows * columns - 1, rows * columns - 2, rows * columns / 2 + 1};
    Value values[3];
    evaluate(evaluator, y, elements, 3, values);
    ck_assert_int_eq(reads, 2 * columns + 3);   // two rows, and the elements themselves
    double first = (double)((rows * columns - 1) % 7), sum = 0;
    for (int64_t j = 0; j < columns; j++)
        sum += (double)((rows * columns - 1 - j) % 7 * ((rows * columns - 1 - j) % 7));
    ck_assert(values[0].real == first * first / sum);
    ck_assert(values[0].bound <= 1.001 * U * values[0].real);   // the sum is exact
    evaluator_free(evaluator);
    build_free(build);
}
END_TEST

/* total[c] = sum[n, h, w](sq(x[n, c, h, w])) over 64 x 100 x 100 points, y[n, c, h, w] = sq(x[n, c, h, w]) / total[c] */
static Build *channel_sums(Tensor **total, Tensor **y)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 64, 8, 100, 100);
    Expr *read = build_op(build, OP_SQ, AT(build, x, 1, 0, 2, 3), NULL, NULL);
    *total = REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 3, read, 8, 64, 100, 100);
    Expr *share = build_op(build, OP_DIV, build_op(build, OP_SQ, AT(build, x, 0, 1, 2, 3), NULL, NULL), AT(build, *total, 1),
                           NULL);
    *y = POINTWISE(build, ROLE_OUTPUT, DTYPE_F32, share, 64, 8, 100, 100);
    return build;
}

START_TEST(a_long_sum_is_estimated_from_some_thousand_points)
{
    Tensor *total, *y;
    Build *build = channel_sums(&total, &y);
    int64_t reads = 0, channels[] = {0, 1, 2, 3, 4, 5, 6, 7};
    Evaluator *guess = evaluator_new(build->arena, &build->program, (InputSource){counted_element, &reads});
    evaluator_estimate(guess);
    Value all[8], one;
    evaluate(guess, total, channels, 8, all);
    ck_assert_int_le(reads, 8 * 4096);
    for (int c = 0; c < 8; c++) {   // squares of 0 to 6 are 13 on average
        ck_assert(fabs(all[c].real / (13 * 640000.0) - 1) < 0.05);
        evaluate(guess, total, &channels[c], 1, &one);
        ck_assert(one.real == all[c].real);   // whatever else is asked for
    }
    ck_assert(evaluator_work(guess, total, false) < 5 * 4096);
    evaluator_free(guess);
    build_free(build);
}
END_TEST

START_TEST(what_is_given_is_exact_and_costs_nothing)
{
    Tensor *total, *y;
    Build *build = channel_sums(&total, &y);
    int64_t reads = 0, element = 64 * 8 * 10000 - 1, channel = 7;
    InputSource inputs = {counted_element, &reads};
    Evaluator *guess = evaluator_new(build->arena, &build->program, inputs);
    evaluator_estimate(guess);
    Evaluator *told = evaluator_new(build->arena, &build->program, inputs);
    ck_assert(evaluator_work(told, y, false) > 640000);
    evaluator_give(told, total, guess);
    ck_assert(evaluator_work(told, y, false) < 10);
    Value given, share;
    evaluate(guess, total, &channel, 1, &given);
    evaluate(told, y, &element, 1, &share);
    double x = (double)(element % 7);
    ck_assert(share.real == x * x / given.real);
    ck_assert(share.bound <= 1.001 * U * share.real);
    evaluator_free(told);
    evaluator_free(guess);
    build_free(build);
}
END_TEST

static double seven(void *context, int input, int64_t element)
{
    (void)context;
    return (double)(7 * input + (element & 1));
}

/* Whoever reads the sum, it is what the source says: y is made of it, and so is the total of another y. */
START_TEST(what_is_replaced_is_like_an_input)
{
    Tensor *total, *y;
    Build *build = channel_sums(&total, &y);
    int64_t reads = 0, element = 64 * 8 * 10000 - 1, channels[] = {4, 5};
    Evaluator *told = evaluator_new(build->arena, &build->program, (InputSource){counted_element, &reads});
    evaluator_replace(told, total, (InputSource){seven, NULL}, 3);
    ck_assert(evaluator_work(told, y, false) < 10 && evaluator_work(told, total, true) == 0);
    Value given[2], share;
    evaluate(told, total, channels, 2, given);
    evaluate(told, y, &element, 1, &share);
    double x = (double)(element % 7);
    ck_assert(given[0].real == 21 && given[1].real == 22 && given[1].bound == 0);
    ck_assert(share.real == x * x / 22 && share.bound <= 1.001 * U * share.real);
    ck_assert_int_eq(reads, 1);
    evaluator_free(told);
    build_free(build);
}
END_TEST

START_TEST(normalised_rows_keep_useful_bounds)
{
    enum { N = 1000 };
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, N);
    Expr *thousandth = build_const(build, DTYPE_F32, 1.0 / N), *eps = build_const(build, DTYPE_F32, 1e-5);
    Expr *whole = AT(build, x, 0);
    Tensor *sum = REDUCTION(build, ROLE_TEMPORARY, DTYPE_F32, REDUCE_SUM, 1, whole, N);
    Expr *mean = build_op(build, OP_MUL, build_access(build, sum, NULL), thousandth, NULL);
    Expr *away = build_op(build, OP_SUB, AT(build, x, 0), mean, NULL);
    Tensor *squares = REDUCTION(build, ROLE_TEMPORARY, DTYPE_F32, REDUCE_SUM, 1, build_op(build, OP_SQ, away, NULL, NULL), N);
    Expr *var = build_op(build, OP_MUL, build_access(build, squares, NULL), thousandth, NULL);
    Expr *inv = build_op(build, OP_RSQRT, build_op(build, OP_ADD, var, eps, NULL), NULL, NULL);
    Tensor *y = POINTWISE(build, ROLE_OUTPUT, DTYPE_F32, build_op(build, OP_MUL, away, inv, NULL), N);
    RandomInputs random = {&build->program, 5, INPUT_REAL};
    InputSource inputs = {random_input_element, &random};
    Evaluator *evaluator = evaluator_new(build->arena, &build->program, inputs);
    static Value values[N];
    evaluate_range(evaluator, y, 0, N, values);
    double mean_square = 0;
    for (int i = 0; i < N; i++) {
        mean_square += values[i].real * values[i].real / N;
        ck_assert(values[i].bound < 3e-4);
    }
    ck_assert(fabs(mean_square - 1) < 1e-3);
    evaluator_free(evaluator);
    build_free(build);
}
END_TEST

START_TEST(integers_are_judged_around_the_wrap)
{
    ck_assert(value_allows(DTYPE_U8, 0, (Value){0, 1, 0}));
    ck_assert(value_allows(DTYPE_U8, 255, (Value){0, 1, 0}));    // 0 - 1 wraps to it
    ck_assert(!value_allows(DTYPE_U8, 254, (Value){0, 1, 0}));
    ck_assert(value_allows(DTYPE_I8, -128, (Value){127, 1, 0}));
    ck_assert(!value_allows(DTYPE_I8, -128, (Value){127, 0, 0}));
    ck_assert(value_allows(DTYPE_I32, -2147483648.0, (Value){2147483646, 2, 0}));
    ck_assert(value_allows(DTYPE_B1, 1, (Value){1, 0, 0}) && !value_allows(DTYPE_B1, 0, (Value){1, 0, 0}));
    ck_assert(value_allows(DTYPE_F16, 1, (Value){1.0001, 0, 0}));   // an f16 nearest to 1.0001
    ck_assert(!value_allows(DTYPE_F32, 1, (Value){(double)NAN, INFINITY, 0}));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, each_operation_gives_the_number_worked_by_hand, 0, 2);
    tcase_add_test(tests, an_exponential_below_the_normal_numbers_may_be_zero);
    tcase_add_test(tests, not_a_number_and_infinity_follow_ieee_exactly);
    tcase_add_test(tests, exact_results_have_no_bound);
    tcase_add_test(tests, what_float_cannot_hold_is_infinite);
    tcase_add_test(tests, an_underflow_to_zero_is_inexact);
    tcase_add_test(tests, bounds_of_small_quotients_do_not_vanish);
    tcase_add_test(tests, angles_are_bounded_by_their_slope);
    tcase_add_test(tests, angles_move_far_at_the_ends_and_beyond_are_none);
    tcase_add_test(tests, halves_are_rounded_to_either_side);
    tcase_add_test(tests, poles_are_not_judged);
    tcase_add_test(tests, integers_wrap_at_every_operation);
    tcase_add_test(tests, casts_truncate_saturate_wrap_and_round);
    tcase_add_test(tests, an_inexact_value_rounds_to_an_interval_of_the_narrow_type);
    tcase_add_test(tests, a_comparison_too_close_to_call_is_undecided);
    tcase_add_test(tests, a_sum_of_three_errs_by_five_units_of_its_magnitude);
    tcase_add_test(tests, sums_of_small_whole_numbers_are_exact);
    tcase_add_test(tests, sums_of_infinities);
    tcase_add_test(tests, a_nan_anywhere_in_a_reduction_is_the_result);
    tcase_add_test(tests, products);
    tcase_add_test(tests, extremes_and_integers);
    tcase_add_test(tests, a_causal_softmax_row);
    tcase_add_test(tests, padding_reads_nothing_outside);
    tcase_add_loop_test(tests, a_term_outside_may_be_left_out_whatever_its_other_factor_is, 0, 2);
    tcase_add_test(tests, a_scalar_program);
    tcase_add_test(tests, a_matrix_product_agrees_with_the_plain_loop);
    tcase_add_test(tests, elements_may_be_asked_for_in_any_order);
    tcase_add_test(tests, an_element_of_a_huge_program_costs_only_what_it_needs);
    tcase_add_test(tests, a_long_sum_is_estimated_from_some_thousand_points);
    tcase_add_test(tests, what_is_given_is_exact_and_costs_nothing);
    tcase_add_test(tests, what_is_replaced_is_like_an_input);
    tcase_add_test(tests, normalised_rows_keep_useful_bounds);
    tcase_add_test(tests, integers_are_judged_around_the_wrap);
}

int main(void)
{
    return build_run("eval", add);
}
