// The evaluator of fused kernels: values worked by hand, and everything that it must find.
#include "build.h"
#include "differential/fusion_eval.h"
#include "ir/fuse_split.h"
#include "ir/fuse_taps.h"

typedef struct Case {
    Build *build;
    Memory *memory;
    Tensor *x, *m, *y;
    Fusion *rows;   // of (a | b): m and y
} Case;

static void fill(Memory *memory, const Tensor *tensor)
{
    Storage *storage = memory_of(memory, tensor);
    for (int64_t i = 0; i < storage->count; i++) {
        storage->elements[i].real = (double)(i * i);
        storage->written[i] = true;
    }
}

/* m[a] = sum[b](x[a, b]); y[b, a] = x[a, b] - m[a] for 2 rows of 3: 0 1 4 and 9 16 25. */
static Case statistics(void)
{
    Build *build = build_new();
    Case one = {.build = build, .x = INPUT(build, DTYPE_F32, 2, 3)};
    one.m = REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1, AT(build, one.x, 0, 1), 2, 3);
    Expr *difference = build_op(build, OP_SUB, AT(build, one.x, 1, 0), AT(build, one.m, 1), NULL);
    one.y = POINTWISE(build, ROLE_OUTPUT, DTYPE_F32, difference, 3, 2);
    FusionPlans plans = fuse(build->arena, &build->program);
    const FusionPlan *plan = &plans.plans[plans.count - 1];
    ck_assert_str_eq(plan->name, "rows");
    one.rows = plan->fusions[0];
    one.memory = memory_new(build->arena, &build->program);
    fill(one.memory, one.x);
    return one;
}

static void expect(Memory *memory, const Tensor *tensor, const double *values)
{
    const Storage *storage = memory_of(memory, tensor);
    for (int64_t i = 0; i < storage->count; i++)
        ck_assert_double_eq(storage->elements[i].real, values[i]);
}

static void expect_finding(const Case *one, const Fusion *fusion, const char *finding)
{
    const char *found = fusion_evaluate(one->memory, fusion);
    ck_assert_ptr_nonnull(found);
    ck_assert_msg(strstr(found, finding), "%s", found);
    build_free(one->build);
}

/* Dimensions that may be changed. */
static Dim *own_dims(const Case *one, Access *access)
{
    Dim *dims = NEW_ARRAY(one->build->arena, Dim, access->rank);
    memcpy(dims, access->dims, sizeof(Dim) * (size_t)access->rank);
    access->dims = dims;
    return dims;
}

START_TEST(rows_are_reduced_and_stored_in_another_order)
{
    Case one = statistics();
    ck_assert_ptr_null(fusion_evaluate(one.memory, one.rows));
    expect(one.memory, one.m, (const double[]){5, 50});
    expect(one.memory, one.y, (const double[]){-5, -41, -4, -34, -1, -25});
    build_free(one.build);
}
END_TEST

/* The dimensions of m[a] as if it had two: a * 3. */
START_TEST(an_element_outside_is_found)
{
    Case one = statistics();
    own_dims(&one, &one.rows->ops[0].store)[0].index.coef[0] = 3;
    expect_finding(&one, one.rows, "element 3 of t is written, which has 2");
}
END_TEST

START_TEST(an_element_that_is_read_outside_is_found)
{
    Case one = statistics();
    own_dims(&one, &one.rows->ops[0].body->access)[1].index.constant = 1;   // x[1, 3] of 6
    expect_finding(&one, one.rows, "element 6 of t is read, which has 6");
}
END_TEST

START_TEST(an_element_written_twice_is_found)
{
    Case one = statistics();
    own_dims(&one, &one.rows->ops[0].store)[0].index = affine_constant(1);
    expect_finding(&one, one.rows, "element 1 of t is written twice");
}
END_TEST

START_TEST(an_element_that_is_never_written_is_found)
{
    Case one = statistics();
    one.rows->axes[0].extent = 1;
    expect_finding(&one, one.rows, "is never written");
}
END_TEST

START_TEST(an_element_that_is_read_too_early_is_found)
{
    Case one = statistics();
    memory_of(one.memory, one.x)->written[4] = false;
    expect_finding(&one, one.rows, "element 4 of t is read before it is written");
}
END_TEST

START_TEST(an_axis_that_a_mask_lacks_is_found)
{
    Case one = statistics();
    one.rows->ops[1].spatial = 1;
    expect_finding(&one, one.rows, "is made of axes that are not its own");
}
END_TEST

START_TEST(a_value_of_other_points_is_found)
{
    Case one = statistics();
    FusedOp rows = one.rows->ops[0];
    one.rows->ops[0] = one.rows->ops[1];   // y comes first, and asks for m
    one.rows->ops[1] = rows;
    expect_finding(&one, one.rows, "is not made at its points");
}
END_TEST

START_TEST(a_tensor_that_is_not_listed_is_found)
{
    Case one = statistics();
    one.rows->input_count = 0;
    expect_finding(&one, one.rows, "not among the inputs");
}
END_TEST

/* Five terms in three parts of two: the last has one, and reads nothing behind it. */
START_TEST(an_uneven_split_gives_the_whole_sum)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 5);
    Tensor *s = REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1, AT(build, x, 0), 5);
    FusionPlans plans = fuse(build->arena, &build->program);
    FusionPair *pair = fusion_split(build->arena, plans.plans[0].fusions[0], 3);
    Memory *memory = memory_new(build->arena, &build->program);
    fill(memory, x);
    ck_assert_ptr_nonnull(strstr(fusion_evaluate(memory, pair->final), "before it is written"));
    ck_assert_ptr_null(fusion_evaluate(memory, pair->partial));
    ck_assert_ptr_null(fusion_evaluate(memory, pair->final));
    expect(memory, pair->partial->outputs[0], (const double[]){1, 13, 16});
    expect(memory, s, (const double[]){30});
    memory_forget(memory);
    ck_assert(memory_of(memory, x)->written[0] && !memory_of(memory, s)->written[0]);
    build_free(build);
}
END_TEST

/* y[h] = sum[r, f](x[f, stride*h + r] * w[f, r]): two taps, two channels. */
static Rewritten *taps_behind(Build *build, Tensor *x, Tensor *w, int64_t stride, int64_t outputs, Tensor **y)
{
    Affine place = affine_axis(1);
    place.coef[0] = stride;
    Expr *image = build_access(build, x, (Affine[]){affine_axis(2), place});
    Expr *term = build_op(build, OP_MUL, AT(build, w, 2, 1), image, NULL);
    *y = REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 2, term, outputs, 2, 2);
    FusionPlans plans = fuse(build->arena, &build->program);
    return fusion_sum_taps_behind(build->arena, plans.plans[0].fusions[0]);
}

/* Each pixel times both taps, and what belongs to one output. */
START_TEST(taps_are_summed_behind_products)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 2, 4), *w = INPUT(build, DTYPE_F32, 2, 2), *y;
    Rewritten *form = taps_behind(build, x, w, 1, 3, &y);
    ck_assert_ptr_nonnull(form);
    Memory *memory = memory_new(build->arena, &build->program);
    fill(memory, x);
    fill(memory, w);
    ck_assert_ptr_null(fusion_evaluate(memory, form->main));
    expect(memory, form->main->outputs[0], (const double[]){64, 100, 144, 196, 144, 226, 328, 450});
    ck_assert_ptr_null(fusion_evaluate(memory, form->behind[0]));
    expect(memory, y, (const double[]){290, 428, 594});
    build_free(build);
}
END_TEST

/* Windows that lie far apart: most pixels are under none. */
START_TEST(products_that_no_output_needs_are_not_made)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 2, 10), *w = INPUT(build, DTYPE_F32, 2, 2), *y;
    ck_assert_ptr_null(taps_behind(build, x, w, 8, 2, &y));
    build_free(build);
}
END_TEST

/* Twenty terms of a product in two parts: of ten the second would begin within the third vector of four, so the first has twelve.
   Four parts of eight terms would have half a vector each: there are two. */
START_TEST(parts_of_a_product_begin_at_whole_vectors)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 20), *w = INPUT(build, DTYPE_F32, 20), *v = INPUT(build, DTYPE_F32, 8);
    Expr *terms = build_op(build, OP_MUL, AT(build, x, 0), AT(build, w, 0), NULL);
    Expr *few = build_op(build, OP_MUL, AT(build, v, 0), AT(build, v, 0), NULL);
    REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1, terms, 20);
    REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1, few, 8);
    FusionPlans plans = fuse(build->arena, &build->program);
    FusionPair *pair = fusion_split(build->arena, plans.plans[0].fusions[0], 2);
    Memory *memory = memory_new(build->arena, &build->program);
    fill(memory, x);
    fill(memory, w);
    ck_assert_ptr_null(fusion_evaluate(memory, pair->partial));
    expect(memory, pair->partial->outputs[0], (const double[]){39974, 522692});
    ck_assert_ptr_null(fusion_split(build->arena, plans.plans[0].fusions[1], 4));
    ck_assert_ptr_nonnull(fusion_split(build->arena, plans.plans[0].fusions[1], 2));
    build_free(build);
}
END_TEST

/* Two rows of three terms in four parts: each row is a part as a whole, and its terms are two shares. In six parts all are one term. */
START_TEST(more_parts_than_the_longest_axis_are_shares_of_each_row)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 2, 3), *w = INPUT(build, DTYPE_F32, 3);
    Expr *terms = build_op(build, OP_MUL, AT(build, x, 0, 1), AT(build, w, 1), NULL);
    Tensor *s = REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 2, terms, 2, 3);
    FusionPlans plans = fuse(build->arena, &build->program);
    FusionPair *pair = fusion_split(build->arena, plans.plans[0].fusions[0], 4);
    ck_assert(pair && pair->final->axis_count == 1);   // both axes of parts are one
    Memory *memory = memory_new(build->arena, &build->program);
    fill(memory, x);
    fill(memory, w);
    ck_assert_ptr_null(fusion_evaluate(memory, pair->partial));
    ck_assert_ptr_null(fusion_evaluate(memory, pair->final));
    expect(memory, pair->partial->outputs[0], (const double[]){1, 16, 16, 100});
    expect(memory, s, (const double[]){133});
    ck_assert_ptr_null(fusion_split(build->arena, plans.plans[0].fusions[0], 6));
    build_free(build);
}
END_TEST

/* Two images of three rows, over which two taps slide, in two parts: each is an image, although there are more rows. */
START_TEST(parts_of_a_filters_gradient_are_images)
{
    enum { R, N, H };
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 2, 4), *d = INPUT(build, DTYPE_F32, 2, 3);
    Affine row = affine_axis(H);
    row.coef[R] = 1;
    Expr *terms = build_op(build, OP_MUL, build_access(build, x, (Affine[]){affine_axis(N), row}), AT(build, d, N, H), NULL);
    Tensor *w = REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 2, terms, 2, 2, 3);
    FusionPlans plans = fuse(build->arena, &build->program);
    FusionPair *pair = fusion_split(build->arena, plans.plans[0].fusions[0], 2);
    ck_assert(pair && pair->partial->axis_count == 3);   // a part is its image
    Memory *memory = memory_new(build->arena, &build->program);
    fill(memory, x);
    fill(memory, d);
    ck_assert_ptr_null(fusion_evaluate(memory, pair->partial));
    ck_assert_ptr_null(fusion_evaluate(memory, pair->final));
    expect(memory, pair->partial->outputs[0], (const double[]){17, 40, 1444, 2026});
    expect(memory, w, (const double[]){1461, 2066});
    build_free(build);
}
END_TEST

/* Six points in parts of four: the second has the last two. */
START_TEST(parts_of_points_give_the_whole_sum)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 6);
    Tensor *s = REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1, AT(build, x, 0), 6);
    FusionPlans plans = fuse(build->arena, &build->program);
    const Fusion *fusion = plans.plans[0].fusions[0];
    AxisGroup points = {.extent = 1};
    axis_group_add(&points, fusion, 0);
    ck_assert_ptr_null(fusion_split_points(build->arena, fusion, &points, 6));
    FusionPair *pair = fusion_split_points(build->arena, fusion, &points, 4);
    PointsShare share;
    ck_assert(points_share_find(pair->partial, &pair->partial->ops[0].body->guard, &share));
    ck_assert(share.part == 0 && share.chunk == 4 && share.points.count == 1 && share.points.axes[0] == 1);
    Memory *memory = memory_new(build->arena, &build->program);
    fill(memory, x);
    ck_assert_ptr_null(fusion_evaluate(memory, pair->partial));
    ck_assert_ptr_null(fusion_evaluate(memory, pair->final));
    expect(memory, pair->partial->outputs[0], (const double[]){0 + 1 + 4 + 9, 16 + 25});
    expect(memory, s, (const double[]){55});
    build_free(build);
}
END_TEST

/* 9 / 4096 + 1 in f16, whose steps are 2^-10 there, is 1 + 2 / 1024. */
START_TEST(what_is_stored_is_rounded)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 4);
    Expr *share = build_op(build, OP_DIV, AT(build, x, 0), build_const(build, DTYPE_F32, 4096), NULL);
    Tensor *y = POINTWISE(build, ROLE_OUTPUT, DTYPE_F16,
                          build_op(build, OP_ADD, share, build_const(build, DTYPE_F32, 1), NULL), 4);
    FusionPlans plans = fuse(build->arena, &build->program);
    Memory *memory = memory_new(build->arena, &build->program);
    fill(memory, x);
    ck_assert_ptr_null(fusion_evaluate(memory, plans.plans[0].fusions[0]));
    expect(memory, y, (const double[]){1, 1, 1 + 1.0 / 1024, 1 + 2.0 / 1024});
    build_free(build);
}
END_TEST

/* y[b, a, k] = x[a, b, k]: rows of four f32 are one unit of 16 bytes. */
START_TEST(units_are_moved_as_their_elements)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 2, 3, 4);
    Tensor *y = POINTWISE(build, ROLE_OUTPUT, DTYPE_F32, AT(build, x, 1, 0, 2), 3, 2, 4);
    FusionPlans plans = fuse(build->arena, &build->program);
    const Fusion *move = plans.plans[0].fusions[0];
    ck_assert_int_eq(move->outputs[0]->dtype, DTYPE_BITS128);
    Memory *memory = memory_new(build->arena, &build->program);
    fill(memory, x);
    ck_assert_ptr_null(fusion_evaluate(memory, move));
    ck_assert_double_eq(memory_of(memory, y)->elements[9].real, 5 * 5);      // y[1, 0, 1] is x[0, 1, 1]
    ck_assert_double_eq(memory_of(memory, y)->elements[12].real, 16 * 16);   // y[1, 1, 0] is x[1, 1, 0]
    build_free(build);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, rows_are_reduced_and_stored_in_another_order);
    tcase_add_test(tests, an_element_outside_is_found);
    tcase_add_test(tests, an_element_that_is_read_outside_is_found);
    tcase_add_test(tests, an_element_written_twice_is_found);
    tcase_add_test(tests, an_element_that_is_never_written_is_found);
    tcase_add_test(tests, an_element_that_is_read_too_early_is_found);
    tcase_add_test(tests, an_axis_that_a_mask_lacks_is_found);
    tcase_add_test(tests, a_value_of_other_points_is_found);
    tcase_add_test(tests, a_tensor_that_is_not_listed_is_found);
    tcase_add_test(tests, an_uneven_split_gives_the_whole_sum);
    tcase_add_test(tests, taps_are_summed_behind_products);
    tcase_add_test(tests, products_that_no_output_needs_are_not_made);
    tcase_add_test(tests, parts_of_a_product_begin_at_whole_vectors);
    tcase_add_test(tests, more_parts_than_the_longest_axis_are_shares_of_each_row);
    tcase_add_test(tests, parts_of_a_filters_gradient_are_images);
    tcase_add_test(tests, parts_of_points_give_the_whole_sum);
    tcase_add_test(tests, what_is_stored_is_rounded);
    tcase_add_test(tests, units_are_moved_as_their_elements);
}

int main(void) { return build_run("fusion_eval", add); }
