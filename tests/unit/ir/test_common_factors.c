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

static bool find(const Operands *o, Expr *body, CommonFactors *found)
{
    return common_factors_find(o->build->arena, body, REDUCED, FACTOR_ANY, found);
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
    ck_assert(common_factors_find(o.build->arena, body, REDUCED, FACTOR_CONSTANT, &found));
    ck_assert(expr_equal(found.term, op(&o, OP_MUL, o.a, o.s)));
    ck_assert(found.count == 1 && found.factors[0].op == OP_DIV && found.factors[0].expr == root);
    build_free(o.build);
}
END_TEST

// ---- the reference ----

/* sum[k](x[k] * s), or of quotients, over two terms. */
static Value sum_of_two(Op how, double first, double second, double s)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 2), *shared = INPUT(build, DTYPE_F32, 1);
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
    ck_assert(isinf(sum_of_two(OP_DIV, 0, 0, 0).bound));
    ck_assert(isinf(sum_of_two(OP_DIV, 3, 0, 0).bound));
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
    Tensor *x = INPUT(build, DTYPE_F32, 2);
    Expr *large = build_op(build, OP_MUL, build_const(build, DTYPE_F32, 400), AT(build, x, 0), NULL);
    Expr *wave = build_op(build, OP_SIGMOID, build_op(build, OP_SUB, AT(build, x, 0), AT(build, x, 0), NULL),
                          NULL, NULL);   // 0.5
    Expr *body = build_op(build, OP_MUL, large, wave, NULL);
    Tensor *y = REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1, body, 2);
    const double *const inputs[] = {(double[]){step, 3 * step}};
    Value value;
    build_evaluate(build, inputs, y, 1, &value);
    ck_assert(value.real == 800 * step);
    ck_assert(value_allows(DTYPE_F32, 400 * (0 + 2) * step, value));   // 0.5 and 1.5 are rounded to even
    ck_assert(value_allows(DTYPE_F32, 400 * (1 + 2) * step, value));
    ck_assert(!value_allows(DTYPE_F32, 4000 * step, value));
    build_free(build);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, what_no_summed_axis_chooses_leaves_the_sum);
    tcase_add_test(tests, a_product_of_elements_is_left_as_it_is);
    tcase_add_test(tests, quotients_of_integers_are_cut_off_term_by_term);
    tcase_add_test(tests, numbers_far_from_one_stay);
    tcase_add_test(tests, elements_are_no_constants);
    tcase_add_test(tests, infinite_factors_leave_the_sum_open);
    tcase_add_test(tests, denormal_products_lose_more_behind_the_sum);
}

int main(void) { return build_run("common_factors", add); }
