// What --math lets the bounds of the reference grow to.
#include <math.h>

#include "build.h"

static Value evaluate_one(Build *build, const double *const *inputs, const Tensor *tensor, EvalMath math)
{
    Evaluator *evaluator =
        evaluator_new(build->arena, &build->program, (InputSource){build_element, (void *)inputs});
    evaluator_allow(evaluator, math);
    Value value;
    evaluate(evaluator, tensor, &(int64_t){0}, 1, &value);
    evaluator_free(evaluator);
    return value;
}

/* __expf(3) may err by 2 + 1.173 * 3 = 5.5 ulp, of 2^-23 each; twice that is allowed. */
START_TEST(fast_exp_is_allowed_its_ulps)
{
    Build *build = build_new();
    const double *inputs[] = {(double[]){3}};
    Tensor *x = INPUT(build, DTYPE_F32, 1);
    Tensor *y = POINTWISE(build, ROLE_OUTPUT, DTYPE_F32, build_op(build, OP_EXP, AT(build, x, 0), NULL, NULL), 1);
    double least = 2 * 5.519 * 0x1p-23 * exp(3);
    ck_assert(evaluate_one(build, inputs, y, EVAL_EXACT).bound < least);
    ck_assert(evaluate_one(build, inputs, y, EVAL_TF32).bound < least);
    double bound = evaluate_one(build, inputs, y, EVAL_FAST).bound;
    ck_assert(bound >= least && bound < 2 * least);
    build_free(build);
}
END_TEST

/* 1.25 has 3 significant bits, and TF32 keeps 11: 5 * 1.25 is exact. 1 + 2^-12 is rounded or cut off. */
START_TEST(only_what_tf32_rounds_may_differ)
{
    Build *build = build_new();
    const double *inputs[] = {(double[]){_i ? 1 + 0x1p-12 : 1.25, 0}, (double[]){5, 0}};
    Tensor *a = INPUT(build, DTYPE_F32, 2), *b = INPUT(build, DTYPE_F32, 2);
    Expr *product = build_op(build, OP_MUL, AT(build, a, 0), AT(build, b, 0), NULL);
    Tensor *sum = REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1, product, 2);
    double exact = evaluate_one(build, inputs, sum, EVAL_EXACT).bound;
    double tf32 = evaluate_one(build, inputs, sum, EVAL_TF32).bound;
    ck_assert(_i ? tf32 >= 5 * 0x1p-10 && tf32 < 5 * 0x1p-9 : tf32 == exact);
    build_free(build);
}
END_TEST

/* TF32 keeps none of the bits of 2^-147: 3 * 2^-147 may be 0, and is off by no more than 13 denormal bits. */
START_TEST(tf32_cuts_off_denormal_numbers)
{
    Build *build = build_new();
    const double *inputs[] = {(double[]){0x1p-147, 0}, (double[]){3, 0}};
    Tensor *a = INPUT(build, DTYPE_F32, 2), *b = INPUT(build, DTYPE_F32, 2);
    Expr *ab[] = {AT(build, a, 0), AT(build, b, 0)};
    Expr *product = build_op(build, OP_MUL, ab[_i], ab[1 - _i], NULL);
    Tensor *sum = REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1, product, 2);
    ck_assert(evaluate_one(build, inputs, sum, EVAL_EXACT).bound < 3 * 0x1p-147);
    double bound = evaluate_one(build, inputs, sum, EVAL_TF32).bound;
    ck_assert(bound >= 3 * 0x1p-147 && bound < 4 * 0x1p-136);
    build_free(build);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, fast_exp_is_allowed_its_ulps);
    tcase_add_loop_test(tests, only_what_tf32_rounds_may_differ, 0, 2);
    tcase_add_loop_test(tests, tf32_cuts_off_denormal_numbers, 0, 2);
}

int main(void) { return build_run("eval_math", add); }
