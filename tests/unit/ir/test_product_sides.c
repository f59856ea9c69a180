// Factors of a sum's terms, put together on two sides.
#include "build.h"
#include "ir/product_sides.h"

enum { B, I, J, K, AXES };
static const int64_t extents[AXES] = {2, 30, 40, 50};

static Expr *over(Build *build, DType type, int count, const int *axes)
{
    int64_t shape[AXES];
    for (int d = 0; d < count; d++)
        shape[d] = extents[axes[d]];
    return build_at(build, build_tensor(build, ROLE_INPUT, type, count, shape), axes);
}
#define OF(build, type, ...) \
    over(build, type, (int)(sizeof(int[]){__VA_ARGS__} / sizeof(int)), (int[]){__VA_ARGS__})
#define OVER(build, ...) OF(build, DTYPE_F16, __VA_ARGS__)

static Expr *times(Build *build, Expr *a, Expr *b) { return build_op(build, OP_MUL, a, b, NULL); }

static Expr *of_sides(Build *build, Expr *term)
{
    Axis axes[MAX_AXES] = {{0}};
    for (int a = 0; a < AXES; a++)
        axes[a] = (Axis){"a", extents[a], a == K};
    return product_of_sides(build->arena, term, axes, 1u << K);
}

START_TEST(factors_of_the_same_rows_go_together)
{
    Build *build = build_new();
    Expr *a = OVER(build, I, K), *b = OVER(build, K, J), *m = OVER(build, I, K);
    ck_assert(expr_equal(of_sides(build, times(build, times(build, a, b), m)),
                         times(build, times(build, a, m), b)));
    Expr *there = times(build, a, times(build, b, OVER(build, J, K)));
    ck_assert(of_sides(build, there) == there);
    build_free(build);
}
END_TEST

/* g goes with a, of 30 x 50 points, and not with b, of 40 x 50. A batch's factor needs no axis of its own. */
START_TEST(less_is_made_of_several_factors)
{
    Build *build = build_new();
    Expr *a = OVER(build, I, K), *b = OVER(build, K, J), *g = OVER(build, K);
    ck_assert(expr_equal(of_sides(build, times(build, b, times(build, a, g))),
                         times(build, b, times(build, a, g))));
    ck_assert(expr_equal(of_sides(build, times(build, times(build, b, a), g)),
                         times(build, b, times(build, a, g))));
    Expr *batch = OVER(build, B, I, K), *of_batch = OVER(build, B, K), *other = OVER(build, B, J, K);
    ck_assert(expr_equal(of_sides(build, times(build, times(build, batch, other), of_batch)),
                         times(build, times(build, batch, of_batch), other)));
    build_free(build);
}
END_TEST

START_TEST(what_has_no_two_sides_is_left)
{
    Build *build = build_new();
    Expr *a = OVER(build, I, K), *b = OVER(build, J, K), *all = OVER(build, I, J, K), *row = OVER(build, I);
    Expr *terms[] = {times(build, times(build, a, b), all),
                     times(build, times(build, row, a), OVER(build, J)),
                     times(build, times(build, a, a), OVER(build, I, K)), a, times(build, a, b)};
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
        ck_assert(of_sides(build, terms[i]) == terms[i]);
    build_free(build);
}
END_TEST

/* a * m of f32 may be infinite where a * b is not; of bits it is a or 0. */
START_TEST(products_stay_in_range)
{
    Build *build = build_new();
    Expr *b = OVER(build, J, K), *wide = OF(build, DTYPE_F32, I, K), *brain = OF(build, DTYPE_BF16, I, K);
    Expr *bit = expr_cast(build->arena, DTYPE_F32, OF(build, DTYPE_B1, I, K));
    Expr *byte = expr_cast(build->arena, DTYPE_F32, OF(build, DTYPE_I8, I, K)), *half = OVER(build, I, K);
    Expr *never[] = {times(build, times(build, wide, b), half), times(build, times(build, brain, b), byte)};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        ck_assert(of_sides(build, never[i]) == never[i]);
    Expr *beside[] = {wide, brain, byte, half};
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        ck_assert(expr_equal(of_sides(build, times(build, times(build, beside[i], b), bit)),
                             times(build, times(build, beside[i], bit), b)));
    Expr *term = times(build, half, b);
    for (int halves = 2; halves <= 5; halves++)
        term = times(build, term, half);
    ck_assert(of_sides(build, term) != term);   // 2^-120 at least
    term = times(build, term, half);            // 2^-144
    ck_assert(of_sides(build, term) == term);
    build_free(build);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, factors_of_the_same_rows_go_together);
    tcase_add_test(tests, less_is_made_of_several_factors);
    tcase_add_test(tests, what_has_no_two_sides_is_left);
    tcase_add_test(tests, products_stay_in_range);
}

int main(void) { return build_run("product_sides", add); }
