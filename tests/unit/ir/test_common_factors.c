// What the terms of a sum share, and how far off it may be behind the sum.
#include "build.h"
#include "ir/common_factors.h"

enum { I, J, K, REDUCED = 1u << K };

typedef struct Operands {
    Build *build;
    Expr *a, *b, *s;   // a[i, k], b[j, k], s[j]
    DType type;
} Operands;

static Operands operands_of(DType type)
{
    Build *build = build_new();
    return (Operands){
        .build = build,
        .a = AT(build, INPUT(build, type, 3, 5), I, K),
        .b = AT(build, INPUT(build, type, 4, 5), J, K),
        .s = AT(build, INPUT(build, type, 4), J),
        .type = type,
    };
}

static Expr *op(const Operands *o, Op op, Expr *a, Expr *b) { return build_op(o->build, op, a, b, NULL); }
static Expr *number(const Operands *o, double value) { return build_const(o->build, o->type, value); }

static Axis axes[] = {{"i", 3, false}, {"j", 4, false}, {"k", 5, true}};

static bool find_kind(const Operands *o, FactorKind kind, bool any_range, Expr *body, CommonFactors *found)
{
    const Ranges *ranges = ranges_new(o->build->arena, &o->build->program);
    SumScope sum = {o->build->arena, {ranges, axes, 3, NULL}, REDUCED, any_range};
    return common_factors_find(&sum, body, kind, found);
}

static bool find(const Operands *o, Expr *body, CommonFactors *found)
{
    return find_kind(o, FACTOR_ANY, true, body, found);
}

START_TEST(what_no_summed_axis_chooses_leaves_the_sum)
{
    Operands o = operands_of(DTYPE_F32);
    CommonFactors found;
    Expr *eighth = number(&o, 0.125), *scaled = op(&o, OP_MUL, o.b, o.s);
    Expr *body =
        op(&o, OP_DIV, op(&o, OP_NEG, op(&o, OP_MUL, op(&o, OP_MUL, eighth, o.a), scaled), NULL), o.s);
    ck_assert(find(&o, body, &found));   // -(0.125 * a * (b * s)) / s
    ck_assert(expr_equal(found.term, op(&o, OP_MUL, o.a, o.b)));
    ck_assert(found.negated && found.count == 3);
    ck_assert(found.factors[0].op == OP_MUL && found.factors[0].expr == eighth);
    ck_assert(found.factors[1].op == OP_MUL && found.factors[1].expr == o.s);
    ck_assert(found.factors[2].op == OP_DIV && found.factors[2].expr == o.s);
    Expr *sum = number(&o, 7), *times = op(&o, OP_MUL, op(&o, OP_MUL, sum, eighth), o.s);
    ck_assert(expr_equal(common_factors_apply(o.build->arena, &found, sum),
                         op(&o, OP_NEG, op(&o, OP_DIV, times, o.s), NULL)));
    build_free(o.build);
}
END_TEST

START_TEST(a_product_of_elements_is_left_as_it_is)
{
    Operands o = operands_of(DTYPE_F32);
    CommonFactors found;
    Expr *product = op(&o, OP_MUL, o.a, o.b), *alike = op(&o, OP_MUL, o.s, number(&o, 3));
    ck_assert(!find(&o, product, &found) && found.term == product);
    ck_assert(!find(&o, alike, &found) && found.term == alike);   // there must be something to add up
    ck_assert(!find(&o, op(&o, OP_ADD, product, o.s), &found));
    ck_assert(!find(&o, op(&o, OP_DIV, o.s, o.a), &found));   // and to divide
    ck_assert(find(&o, op(&o, OP_MUL, product, o.s), &found) && found.term == product);
    build_free(o.build);
}
END_TEST

START_TEST(quotients_of_integers_are_cut_off_term_by_term)
{
    Operands o = operands_of(DTYPE_I32);
    CommonFactors found;
    ck_assert(!find(&o, op(&o, OP_DIV, o.a, o.s), &found));
    ck_assert(find(&o, op(&o, OP_MUL, op(&o, OP_NEG, o.a, NULL), number(&o, 3)), &found));
    ck_assert(found.term == o.a && found.negated && found.count == 1);
    build_free(o.build);
}
END_TEST

/* 10^-40 of terms of 10^30 and 10^9 is a number, of their sum without it is infinite. */
START_TEST(numbers_far_from_one_stay)
{
    Operands o = operands_of(DTYPE_F64);
    CommonFactors found;
    const double far[] = {1e-40, 1e40, 0, INFINITY, NAN};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++)
        ck_assert(!find(&o, op(&o, OP_MUL, o.a, number(&o, far[i])), &found));
    ck_assert(find(&o, op(&o, OP_MUL, o.a, number(&o, -1e-9)), &found));
    build_free(o.build);
}
END_TEST

START_TEST(elements_are_no_constants)
{
    Operands o = operands_of(DTYPE_F32);
    CommonFactors found;
    Expr *root = op(&o, OP_SQRT, number(&o, 64), NULL);
    Expr *body = op(&o, OP_DIV, op(&o, OP_MUL, o.a, o.s), root);
    ck_assert(find_kind(&o, FACTOR_CONSTANT, true, body, &found));
    ck_assert(expr_equal(found.term, op(&o, OP_MUL, o.a, o.s)));
    ck_assert(found.count == 1 && found.factors[0].op == OP_DIV && found.factors[0].expr == root);
    build_free(o.build);
}
END_TEST

// ---- which may wait ----

static bool may_leave(const Operands *o, Expr *body, int count)
{
    CommonFactors found;
    find_kind(o, FACTOR_ANY, false, body, &found);
    ck_assert_int_le(found.count, count);
    return found.count == count;
}

START_TEST(only_bounded_terms_lose_a_factor)
{
    const DType bounded[] = {DTYPE_F16, DTYPE_I8, DTYPE_U8, DTYPE_B1}, wide[] = {DTYPE_F32, DTYPE_BF16};
    for (size_t i = 0; i < 4; i++) {
        Operands o = operands_of(bounded[i]);
        Expr *a = expr_cast(o.build->arena, DTYPE_F32, o.a), *s = expr_cast(o.build->arena, DTYPE_F32, o.s);
        ck_assert(may_leave(&o, op(&o, OP_MUL, a, s), 1));
        build_free(o.build);
    }
    for (size_t i = 0; i < 2; i++) {
        Operands o = operands_of(wide[i]);
        Expr *number = build_const(o.build, DTYPE_F32, 1000);
        ck_assert(!may_leave(&o, op(&o, OP_DIV, o.a, number), 1));   // it may be there to keep the sum finite
        ck_assert(!may_leave(&o, op(&o, OP_MUL, op(&o, OP_MUL, o.a, o.b), o.s), 1));
        Expr *sine = op(&o, OP_SIN, o.a, NULL);
        ck_assert(may_leave(&o, op(&o, OP_MUL, sine, o.s), 1));
        build_free(o.build);
    }
}
END_TEST

/* Sixth powers are at most 2^96. */
START_TEST(the_longest_sum_stays_in_range)
{
    Operands o = operands_of(DTYPE_F16);
    Expr *square = op(&o, OP_SQ, o.a, NULL), *power = op(&o, OP_MUL, op(&o, OP_SQ, square, NULL), square);
    ck_assert(may_leave(&o, op(&o, OP_MUL, power, o.s), 1));
    axes[K].extent = (int64_t)1 << 40;
    ck_assert(!may_leave(&o, op(&o, OP_MUL, power, o.s), 1));
    ck_assert(may_leave(&o, op(&o, OP_MUL, op(&o, OP_MUL, o.a, o.b), o.s), 1));
    axes[K].extent = 5;
    build_free(o.build);
}
END_TEST

/* tanh(a) is as small as a may be, and tanh(a) * tanh(b) 0; as it stands it is that in any case. */
START_TEST(products_that_were_not_there_must_keep_their_digits)
{
    Operands o = operands_of(DTYPE_F32);
    Expr *a = op(&o, OP_TANH, o.a, NULL), *b = op(&o, OP_TANH, o.b, NULL);
    ck_assert(may_leave(&o, op(&o, OP_MUL, op(&o, OP_MUL, a, b), o.s), 1));
    ck_assert(!may_leave(&o, op(&o, OP_MUL, op(&o, OP_MUL, a, o.s), b), 1));
    Expr *whole = expr_cast(o.build->arena, DTYPE_F32, AT(o.build, INPUT(o.build, DTYPE_I8, 5), K));
    ck_assert(may_leave(&o, op(&o, OP_MUL, op(&o, OP_MUL, a, o.s), whole), 1));
    build_free(o.build);
}
END_TEST

/* (sum * s) / 8 may be infinite before it is divided, sum / 8 * s only if it is in the end; of two wide ones none. */
START_TEST(what_is_between_two_factors_must_be_a_number)
{
    Operands o = operands_of(DTYPE_F16);
    Expr *wide = AT(o.build, INPUT(o.build, DTYPE_F32, 4), J), *eight = build_const(o.build, DTYPE_F32, 8);
    Expr *product = op(&o, OP_MUL, o.a, o.b);
    CommonFactors found;
    ck_assert(find_kind(&o, FACTOR_ANY, false, op(&o, OP_DIV, op(&o, OP_MUL, product, wide), eight), &found));
    ck_assert(found.count == 2 && found.factors[0].expr == eight && found.factors[1].expr == wide);
    ck_assert(!find_kind(&o, FACTOR_ANY, false, op(&o, OP_DIV, op(&o, OP_MUL, product, wide), wide), &found));
    build_free(o.build);
}
END_TEST

START_TEST(numbers_leave_products_of_halves)
{
    Operands o = operands_of(DTYPE_BF16);
    const double near[] = {0.125, 0x1p32, 0x1p-32, 3}, far[] = {0x1p33, 0x1p-33};
    Expr *product = op(&o, OP_MUL, o.a, o.b);
    for (size_t i = 0; i < 4; i++)
        ck_assert(may_leave(&o, op(&o, OP_MUL, product, build_const(o.build, DTYPE_F32, near[i])), 1));
    for (size_t i = 0; i < 2; i++)
        ck_assert(!may_leave(&o, op(&o, OP_MUL, product, build_const(o.build, DTYPE_F32, far[i])), 1));
    ck_assert(!may_leave(&o, op(&o, OP_MUL, o.a, build_const(o.build, DTYPE_F32, 3)), 1));
    ck_assert(!may_leave(&o, op(&o, OP_MUL, product, o.s), 1));
    build_free(o.build);
}
END_TEST

/* sum[k](e[i, k] / s[i] * v[j, k]) with e = weight(t[i, k]), or e * v / s. */
static bool divides_last(Op weight, bool other_sum, bool last)
{
    Operands o = operands_of(DTYPE_F32);
    Build *build = o.build;
    Tensor *e = POINTWISE(build, ROLE_TEMPORARY, DTYPE_F32, op(&o, weight, AT(build, o.a->access.tensor, 0, 1), NULL), 3, 5);
    Tensor *summed = other_sum ? o.a->access.tensor : e;
    Tensor *s = REDUCTION(build, ROLE_TEMPORARY, DTYPE_F32, REDUCE_SUM, 1, AT(build, summed, 0, 1), 3, 5);
    Expr *share = AT(build, e, I, K), *total = AT(build, s, I);
    Expr *body = last ? op(&o, OP_DIV, op(&o, OP_MUL, share, o.b), total)
                      : op(&o, OP_MUL, op(&o, OP_DIV, share, total), o.b);
    bool leaves = may_leave(&o, body, 1);
    build_free(build);
    return leaves;
}

START_TEST(the_division_of_a_weighted_mean_comes_last)
{
    ck_assert(divides_last(OP_SIGMOID, false, false));
    ck_assert(divides_last(OP_SIGMOID, false, true));
    ck_assert(!divides_last(OP_SIGMOID, true, false));   // divided by the sum of something else
    ck_assert(!divides_last(OP_EXP, false, false));      // no weight: it may be any number
}
END_TEST

// ---- the reference ----

/* sum[k](x[k] * s), or of quotients, over two terms of f16. */
static Value sum_of_two(Op how, double first, double second, double s)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F16, 2), *shared = INPUT(build, DTYPE_F32, 1);
    Expr *element = build_access(build, shared, &(Affine){.constant = 0});
    Expr *body = build_op(build, how, AT(build, x, 0), element, NULL);
    Tensor *y = REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1, body, 2);
    const double *const inputs[] = {(double[]){first, second}, &s};
    Value value;
    build_evaluate(build, inputs, y, 1, &value);
    build_free(build);
    return value;
}

START_TEST(infinite_factors_leave_the_sum_open)
{
    ck_assert(isinf(sum_of_two(OP_MUL, 3, -1, INFINITY).bound));   // no number, behind the sum infinite
    ck_assert(isinf(sum_of_two(OP_DIV, 3, 0, 0).bound));
    Value neither = sum_of_two(OP_DIV, 0, 0, 0);
    ck_assert(isnan(neither.real) && neither.bound == 0);
    Value zero = sum_of_two(OP_MUL, 3, -1, 0), none = sum_of_two(OP_MUL, 3, -1, NAN);
    ck_assert(zero.real == 0 && zero.bound == 0);
    ck_assert(isnan(none.real) && none.bound == 0);
    Value nan = sum_of_two(OP_MUL, NAN, 1, 2), plus = sum_of_two(OP_MUL, INFINITY, 1, 2);
    ck_assert(isnan(nan.real) && nan.bound == 0);
    ck_assert(plus.real == INFINITY && plus.bound == 0);
}
END_TEST

/* Half of a step of the denormal numbers is 0 or 1 of them: 400 times that is 0 or 400, and not 200. */
START_TEST(denormal_products_lose_more_behind_the_sum)
{
    const double step = 0x1p-149;
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_BF16, 2), *w = INPUT(build, DTYPE_BF16, 2);
    Expr *large = build_op(build, OP_MUL, build_const(build, DTYPE_F32, 400), AT(build, x, 0), NULL);
    Expr *body = build_op(build, OP_MUL, large, AT(build, w, 0), NULL);
    Tensor *y = REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1, body, 2);
    const double *const inputs[] = {(double[]){0x1p-133, 0x3p-133}, (double[]){0x1p-17, 0x1p-17}};
    Value value;
    build_evaluate(build, inputs, y, 1, &value);
    ck_assert(value.real == 800 * step);
    ck_assert(value_allows(DTYPE_F32, 400 * (0 + 2) * step, value));   // 0.5 and 1.5 are rounded to even
    ck_assert(value_allows(DTYPE_F32, 400 * (1 + 2) * step, value));
    ck_assert(!value_allows(DTYPE_F32, 4000 * step, value));
    build_free(build);
}
END_TEST

/* Each term is 1; a sum of seven times 0.3, divided by 0.3, is not 7. */
START_TEST(a_divisor_behind_the_sum_rounds_what_was_whole)
{
    double x = dtype_round(DTYPE_F16, 0.3);
    Build *build = build_new();
    Tensor *row = INPUT(build, DTYPE_F16, 7);
    Expr *first = build_access(build, row, &(Affine){.constant = 0});
    Expr *body = build_op(build, OP_DIV, AT(build, row, 0), first, NULL);
    Tensor *y = REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1, body, 7);
    const double *const inputs[] = {(double[]){x, x, x, x, x, x, x}};
    Value value;
    build_evaluate(build, inputs, y, 1, &value);
    ck_assert(value.real == 7 && value.bound > 0);
    ck_assert(value_allows(DTYPE_F32, nextafterf(7, 0), value));
    ck_assert(!value_allows(DTYPE_F32, 7 - 0x1p-16, value));
    build_free(build);
}
END_TEST

/* p[k] = sq(a[k]) / c is 1, and p * sq(b) whole; the kernel may multiply the squares, and divide their sum. */
static Value sum_of_shares(double a, double b)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F16, 2), *w = INPUT(build, DTYPE_F16, 2);
    Expr *share = build_op(build, OP_DIV, build_op(build, OP_SQ, AT(build, x, 0), NULL, NULL),
                           build_const(build, DTYPE_F32, a * a), NULL);
    Tensor *p = POINTWISE(build, ROLE_TEMPORARY, DTYPE_F32, share, 2);
    Expr *body = build_op(build, OP_MUL, AT(build, p, 0), build_op(build, OP_SQ, AT(build, w, 0), NULL, NULL), NULL);
    Tensor *y = REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1, body, 2);
    const double *const inputs[] = {(double[]){a, a}, (double[]){b, b}};
    Value value;
    build_evaluate(build, inputs, y, 1, &value);
    build_free(build);
    return value;
}

START_TEST(numbers_below_a_definition_wait_too)
{
    const float a = 1365 * 0x1p-10f;
    int apart = 0;
    for (int b = 2001; b < 2048; b++) {
        float product = a * a * (float)(b * b), behind = (product + product) / (a * a);
        Value value = sum_of_shares(a, b);
        ck_assert(value.real == 2.0 * b * b && value_allows(DTYPE_F32, behind, value));
        apart += behind != 2.0 * b * b;
    }
    ck_assert_int_gt(apart, 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, what_no_summed_axis_chooses_leaves_the_sum);
    tcase_add_test(tests, a_product_of_elements_is_left_as_it_is);
    tcase_add_test(tests, quotients_of_integers_are_cut_off_term_by_term);
    tcase_add_test(tests, numbers_far_from_one_stay);
    tcase_add_test(tests, elements_are_no_constants);
    tcase_add_test(tests, only_bounded_terms_lose_a_factor);
    tcase_add_test(tests, the_longest_sum_stays_in_range);
    tcase_add_test(tests, products_that_were_not_there_must_keep_their_digits);
    tcase_add_test(tests, what_is_between_two_factors_must_be_a_number);
    tcase_add_test(tests, numbers_leave_products_of_halves);
    tcase_add_test(tests, the_division_of_a_weighted_mean_comes_last);
    tcase_add_test(tests, infinite_factors_leave_the_sum_open);
    tcase_add_test(tests, denormal_products_lose_more_behind_the_sum);
    tcase_add_test(tests, numbers_below_a_definition_wait_too);
    tcase_add_test(tests, a_divisor_behind_the_sum_rounds_what_was_whole);
}

int main(void) { return build_run("common_factors", add); }
