// Cutting statistics of rows into chunks.
#include "build.h"
#include "ir/fuse.h"

/* mean[c] = sum[r](x[r, c]) / 8; q[c] = sum[r](sq(x[r, c] - mean[c])); y[r, c] = (x[r, c] - mean[c]) * q[c] for 8 rows of 2
   channels, as one kernel of (c | r). */
static Fusion *statistics(Build *build)
{
    Tensor *x = INPUT(build, DTYPE_F32, 8, 2);
    Tensor *sum = REDUCTION(build, ROLE_TEMPORARY, DTYPE_F32, REDUCE_SUM, 1, AT(build, x, 1, 0), 2, 8);
    Expr *share = build_op(build, OP_DIV, AT(build, sum, 0), build_const(build, DTYPE_F32, 8), NULL);
    Tensor *mean = POINTWISE(build, ROLE_TEMPORARY, DTYPE_F32, share, 2);
    Expr *distance = build_op(build, OP_SUB, AT(build, x, 1, 0), AT(build, mean, 0), NULL);
    Tensor *q = REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1,
                          build_op(build, OP_SQ, distance, NULL, NULL), 2, 8);
    Expr *centred = build_op(build, OP_SUB, AT(build, x, 0, 1), AT(build, mean, 1), NULL);
    POINTWISE(build, ROLE_OUTPUT, DTYPE_F32, build_op(build, OP_MUL, centred, AT(build, q, 1), NULL), 8, 2);
    FusionPlans plans = fuse(build->arena, &build->program);
    const FusionPlan *rows = &plans.plans[plans.count - 1];
    ck_assert_int_eq(rows->count, 1);
    return rows->fusions[0];
}

START_TEST(elements_in_another_order_join_the_rows)
{
    Build *build = build_new();
    Fusion *fusion = statistics(build);
    ck_assert_int_eq(fusion->spatial_count, 1);
    ck_assert_int_eq(fusion->axes[0].extent, 2);   // channels
    const FusedOp *y = &fusion->ops[fusion->op_count - 1];
    ck_assert_int_eq(y->store.dims[0].index.coef[1], 1);   // stored as [r, c]
    ck_assert_int_eq(y->store.dims[1].index.coef[0], 1);
    build_free(build);
}
END_TEST

/* Eight rows in chunks of at most 5: the largest divisor is 4, so two parts. */
START_TEST(chunks_are_of_one_size)
{
    Build *build = build_new();
    FusionPhases *phases = fusion_cut(build->arena, statistics(build), 5);
    ck_assert_ptr_nonnull(phases);
    ck_assert_int_eq(phases->definition_count, 2);   // sums, and squares around the chunk's own mean
    ck_assert_int_eq(phases->definitions[0]->out->shape[0], 2);   // [channel, part]
    ck_assert_int_eq(phases->definitions[0]->out->shape[1], 2);
    ck_assert_int_eq(phases->partial->axes[2].extent, 4);
    ck_assert_int_eq(phases->combine->axis_count, 2);
    ck_assert(fusion_is_uniform(phases->elements) && !fusion_reduces(phases->elements));
    build_free(build);
}
END_TEST

/* x = 0, 2, 4, 6, 8, 10, 12, 14 in channel 0: chunk means 3 and 11, squares 9 + 1 + 1 + 9 in each. */
START_TEST(a_chunk_is_centred_at_its_own_mean)
{
    Build *build = build_new();
    FusionPhases *phases = fusion_cut(build->arena, statistics(build), 4);
    for (int i = 0; i < phases->definition_count; i++) {
        TensorOp *op = NEW(build->arena, TensorOp);
        *op = *phases->definitions[i];
        op->out->id = build->program.tensor_count;
        build->tensors[build->program.tensor_count++] = op->out;
        build->ops[build->program.op_count++] = op;
    }
    double x[16];
    for (int i = 0; i < 16; i++)
        x[i] = i % 2 ? 1 : i;
    Value values[4];
    build_evaluate(build, (const double *const[]){x}, phases->definitions[0]->out, 4, values);
    ck_assert_double_eq(values[0].real, 12);   // 0 + 2 + 4 + 6
    ck_assert_double_eq(values[1].real, 44);
    build_evaluate(build, (const double *const[]){x}, phases->definitions[1]->out, 4, values);
    ck_assert_double_eq(values[0].real, 20);
    ck_assert_double_eq(
        values[1].real,
        20);   // around the mean of all, 7, the eight squares give 168 = 20 + 20 + 2 * 4 * 4^2
    ck_assert_double_eq(values[2].real, 0);
    build_free(build);
}
END_TEST

START_TEST(a_whole_row_is_no_chunk)
{
    Build *build = build_new();
    ck_assert_ptr_null(fusion_cut(build->arena, statistics(build), 8));
    build_free(build);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, elements_in_another_order_join_the_rows);
    tcase_add_test(tests, chunks_are_of_one_size);
    tcase_add_test(tests, a_chunk_is_centred_at_its_own_mean);
    tcase_add_test(tests, a_whole_row_is_no_chunk);
}

int main(void) { return build_run("fuse_phases", add); }
