// Axes that are cut where an index divides, what a sum would fetch again and again, and the order of what is reduced.
#include "build.h"
#include "ir/compose.h"

static Expr *fetch(Build *build, Tensor *tensor, Expr *place, int64_t stride)
{
    Affine zeros[MAX_AXES] = {{{0}, 0}};
    Expr *expr = NEW(build->arena, Expr);
    FetchPlace *places = NEW(build->arena, FetchPlace);
    places[0] = (FetchPlace){place, stride};
    *expr = (Expr){.kind = EXPR_FETCH, .type = dtype_info[tensor->dtype].compute};
    expr->fetch = (Fetch){access_new(build->arena, tensor, zeros), 1, places};
    return expr;
}

static Expr *divide(Build *build, Op op, Expr *a, int64_t by)
{
    return build_op(build, op, a, build_const(build, DTYPE_I32, (double)by), NULL);
}

static Tensor *view_as(Build *build, Tensor *tensor, int64_t outer, int64_t inner)
{
    TensorView *view = NEW(build->arena, TensorView);
    *view = (TensorView){.rank = 2, .shape = {outer, inner}};
    tensor->views = view;
    return tensor;
}

static Expr *seen(Build *build, Tensor *tensor, int64_t outer, int64_t inner)
{
    Dim *dims = NEW_ARRAY(build->arena, Dim, 2);
    dims[0] = (Dim){affine_axis(0), outer};
    dims[1] = (Dim){affine_axis(1), inner};
    Expr *expr = NEW(build->arena, Expr);
    *expr = (Expr){.kind = EXPR_ACCESS, .type = DTYPE_F32};
    expr->access = (Access){view_as(build, tensor, outer, inner), 2, dims};
    return expr;
}

/* x[i/4%3] of i:24: i = 12*a + 4*b + c, and the element is x[b]. */
START_TEST(what_divides_is_an_axis)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 3);
    Expr *place = divide(build, OP_MOD, divide(build, OP_DIV, build_index(build, 0), 4), 3);
    Tensor *y = POINTWISE(build, ROLE_OUTPUT, DTYPE_F32, fetch(build, x, place, 1), 24);
    const TensorOp *op = compose(build->arena, &build->program)->ops[0];
    ck_assert_int_eq(op->axis_count, 3);
    ck_assert_int_eq(op->axes[0].extent, 2);
    ck_assert_int_eq(op->axes[1].extent, 3);
    ck_assert_int_eq(op->axes[2].extent, 4);
    ck_assert_int_eq(op->body->kind, EXPR_ACCESS);
    ck_assert_int_eq(affine_single_axis(&op->body->access.dims[0].index), 1);
    ck_assert_int_eq(op->out->id, y->id);
    ck_assert_int_eq(tensor_shown(op->out)->shape[0], 24);
    ck_assert_int_eq(y->rank, 1);   // the program that was given is as it was
    build_free(build);
}
END_TEST

/* 5 does not divide 24: nothing is cut. */
START_TEST(what_does_not_divide_is_computed)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 5);
    POINTWISE(build, ROLE_OUTPUT, DTYPE_F32, fetch(build, x, divide(build, OP_DIV, build_index(build, 0), 5), 1), 24);
    const TensorOp *op = compose(build->arena, &build->program)->ops[0];
    ck_assert_int_eq(op->axis_count, 1);
    ck_assert_int_eq(op->body->kind, EXPR_FETCH);
    build_free(build);
}
END_TEST

/* y[6, 4] seen as [3, 8] at (i, j): j = 4*a + b, and the element is y[2*i + a, b]. */
START_TEST(a_view_of_what_is_made_names_its_dimensions)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 6, 4);
    Tensor *y = POINTWISE(build, ROLE_TEMPORARY, DTYPE_F32, AT(build, x, 0, 1), 6, 4);
    POINTWISE(build, ROLE_OUTPUT, DTYPE_F32, seen(build, y, 3, 8), 3, 8);
    const TensorOp *op = compose(build->arena, &build->program)->ops[1];
    ck_assert_int_eq(op->axis_count, 3);
    ck_assert(access_is_own(&op->body->access));
    ck_assert_int_eq(op->body->access.dims[0].index.coef[0], 2);
    ck_assert_int_eq(op->body->access.dims[0].index.coef[1], 1);
    ck_assert_int_eq(affine_single_axis(&op->body->access.dims[1].index), 2);
    build_free(build);
}
END_TEST

/* A sum keeps the axis along which it adds, for its families' sake: it reads the view from memory. */
START_TEST(a_sum_reads_a_view_as_it_is)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 6, 4);
    Tensor *y = POINTWISE(build, ROLE_TEMPORARY, DTYPE_F32, AT(build, x, 0, 1), 6, 4);
    REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1, seen(build, y, 3, 8), 3, 8);
    const TensorOp *op = compose(build->arena, &build->program)->ops[1];
    ck_assert_int_eq(op->axis_count, 2);
    ck_assert(!access_is_own(&op->body->access));
    build_free(build);
}
END_TEST

/* Where its results lie it is cut: y[2, 3, 5] seen as [6, 5] at (i, j), i = 3*a + b, and the element is y[a, b, j]. */
START_TEST(a_sum_has_the_shape_of_what_it_reads)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 2, 3, 5);
    Tensor *y = POINTWISE(build, ROLE_TEMPORARY, DTYPE_F32, AT(build, x, 0, 1, 2), 2, 3, 5);
    REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1, seen(build, y, 6, 5), 6, 5);
    const TensorOp *op = compose(build->arena, &build->program)->ops[1];
    ck_assert_int_eq(op->spatial_count, 2);
    ck_assert_int_eq(op->axis_count, 3);
    ck_assert(access_is_own(&op->body->access));
    ck_assert_int_eq(op->out->rank, 2);
    ck_assert_int_eq(tensor_shown(op->out)->shape[0], 6);
    build_free(build);
}
END_TEST

/* sum[k](x[idx[t], k] * w[k, n]) would fetch each element for every n; sum[t](x[idx[t], …]) fetches it once anyway. */
START_TEST(a_product_fetches_once)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 50, 8), *w = INPUT(build, DTYPE_F32, 8, 6), *idx = INPUT(build, DTYPE_I32, 9);
    enum { T, N, K };
    Expr *row = fetch(build, x, AT(build, idx, T), 8);
    Affine k = affine_axis(K), zero = affine_constant(0);
    row->fetch.access = access_new(build->arena, x, (Affine[]){zero, k});
    Expr *term = build_op(build, OP_MUL, row, AT(build, w, K, N), NULL);
    REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1, term, 9, 6, 8);
    REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1, fetch(build, x, AT(build, idx, 0), 8), 9);
    const Program *composed = compose(build->arena, &build->program);
    ck_assert_int_eq(composed->op_count, 3);
    ck_assert_int_eq(composed->ops[0]->body->kind, EXPR_FETCH);
    ck_assert_int_eq(composed->ops[0]->spatial_count, 2);
    ck_assert_int_eq(composed->ops[0]->out->shape[0], 9);
    ck_assert_int_eq(composed->ops[0]->out->shape[1], 8);
    ck_assert_int_eq(composed->ops[0]->out->id, build->program.tensor_count);
    ck_assert(composed->ops[1]->body->apply.operands[0]->access.tensor == composed->ops[0]->out);
    ck_assert_int_eq(composed->ops[2]->body->kind, EXPR_FETCH);
    build_free(build);
}
END_TEST

/* sum[c, s](x[w + s, c] * f[n, c, s]): x is read window by window, with its channels beside each other, though the filter is not. */
START_TEST(a_reduction_walks_as_its_window_lies)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 8, 4), *f = INPUT(build, DTYPE_F32, 100, 4, 3);
    enum { W, N, C, S };
    Affine pixel = affine_axis(W), channel = affine_axis(C);
    pixel.coef[S] = 1;
    Expr *term = build_op(build, OP_MUL, build_access(build, x, (Affine[]){pixel, channel}), AT(build, f, N, C, S), NULL);
    REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 2, term, 6, 100, 4, 3);
    const TensorOp *op = compose(build->arena, &build->program)->ops[0];
    ck_assert_int_eq(op->axes[2].extent, 3);
    ck_assert_int_eq(op->axes[3].extent, 4);
    const Access *image = &op->body->apply.operands[0]->access;
    ck_assert_int_eq(image->dims[0].index.coef[2], 1);
    ck_assert_int_eq(affine_single_axis(&image->dims[1].index), 3);
    ck_assert_int_eq(build->ops[0]->axes[2].extent, 4);   // the program that was given is as it was
    build_free(build);
}
END_TEST

START_TEST(a_plain_program_is_itself)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 6, 4);
    POINTWISE(build, ROLE_OUTPUT, DTYPE_F32, AT(build, x, 0, 1), 6, 4);
    ck_assert_ptr_eq(compose(build->arena, &build->program), &build->program);
    build_free(build);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, what_divides_is_an_axis);
    tcase_add_test(tests, what_does_not_divide_is_computed);
    tcase_add_test(tests, a_view_of_what_is_made_names_its_dimensions);
    tcase_add_test(tests, a_sum_reads_a_view_as_it_is);
    tcase_add_test(tests, a_sum_has_the_shape_of_what_it_reads);
    tcase_add_test(tests, a_product_fetches_once);
    tcase_add_test(tests, a_reduction_walks_as_its_window_lies);
    tcase_add_test(tests, a_plain_program_is_itself);
}

int main(void) { return build_run("compose", add); }
