// Kernels whose description is broken on purpose, one fact at a time.
#include "base/diag.h"
#include "build.h"
#include "ir/fuse.h"

/* s[i] = sum[j](x[i, j]) of 2 x 6 and y[i, j] = x[i, j] - s[i], as one kernel of (i | j): v0 = s, v1 = y. */
typedef struct Rows {
    Build *build;
    Fusion *fusion;
} Rows;

static Rows rows_new(void)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 2, 6);
    Tensor *s = REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1, AT(build, x, 0, 1), 2, 6);
    Expr *distance = build_op(build, OP_SUB, AT(build, x, 0, 1), AT(build, s, 0), NULL);
    POINTWISE(build, ROLE_OUTPUT, DTYPE_F32, distance, 2, 6);
    FusionPlans plans = fuse(build->arena, &build->program);
    const FusionPlan *plan = &plans.plans[plans.count - 1];
    ck_assert_str_eq(plan->name, "rows");
    ck_assert_int_eq(plan->count, 1);
    ck_assert_int_eq(plan->fusions[0]->op_count, 2);
    ck_assert_ptr_null(fusion_fault(plan->fusions[0]).what);
    return (Rows){build, plan->fusions[0]};
}

/* Ends a test: the fault names the tensor. */
static void rows_expect(Rows rows, const Tensor *tensor, const char *what)
{
    FusionFault fault = fusion_fault(rows.fusion);
    ck_assert_ptr_nonnull(fault.what);
    ck_assert_str_eq(fault.what, what);
    ck_assert_ptr_eq(fault.tensor, tensor);
    build_free(rows.build);
}

/* The dimensions of an access as a list of its own, to be broken. */
static Dim *own(const Rows *rows, Access *access)
{
    Dim *dims = NEW_ARRAY(rows->build->arena, Dim, access->rank);
    memcpy(dims, access->dims, sizeof(Dim) * (size_t)access->rank);
    access->dims = dims;
    return dims;
}

START_TEST(a_stride_is_the_tensors_own)
{
    Rows rows = rows_new();
    Access *read = &rows.fusion->ops[0].body->access;
    own(&rows, read)[1].size = 7;   // i steps by 7 instead of 6
    rows_expect(rows, read->tensor, "is accessed by other strides than its own");
}
END_TEST

START_TEST(an_index_stays_inside)
{
    Rows rows = rows_new();
    Access *read = &rows.fusion->ops[0].body->access;
    own(&rows, read)[0].index.constant = 1;   // x[i + 1, j]
    rows_expect(rows, read->tensor, "is accessed outside its dimensions");
}
END_TEST

START_TEST(a_negative_index_is_outside)
{
    Rows rows = rows_new();
    Access *read = &rows.fusion->ops[0].body->access;
    own(&rows, read)[1].index.coef[1] = -1;   // x[i, -j]
    rows_expect(rows, read->tensor, "is accessed outside its dimensions");
}
END_TEST

/* y[j, i] of 2 x 6: j reaches 5. Of as many rows as columns it would be a permutation, which is sound. */
START_TEST(an_order_of_stores_is_the_tensors)
{
    Rows rows = rows_new();
    FusedOp *y = &rows.fusion->ops[1];
    Dim *dims = own(&rows, &y->store);
    Affine first = dims[0].index;
    dims[0].index = dims[1].index;
    dims[1].index = first;
    rows_expect(rows, y->out, "is accessed outside its dimensions");
}
END_TEST

/* y[0, j]: each element of the first row twice, none of the second. */
START_TEST(stores_reach_every_element)
{
    Rows rows = rows_new();
    FusedOp *y = &rows.fusion->ops[1];
    own(&rows, &y->store)[0].index = affine_constant(0);
    rows_expect(rows, y->out, "does not have each element stored once");
}
END_TEST

/* Five columns of six: the second row begins one element too late for them. */
START_TEST(stores_leave_no_gap)
{
    Rows rows = rows_new();
    rows.fusion->axes[1].extent = 5;
    rows_expect(rows, rows.fusion->ops[1].out, "does not have each element stored once");
}
END_TEST

/* What the merging of axes once did to a list that another op had, too: y is 12 elements along axis 0 to both. */
START_TEST(a_shared_list_is_not_rewritten)
{
    Rows rows = rows_new();
    Fusion *fusion = rows.fusion, other = *fusion;
    FusedOp *y = &fusion->ops[1];
    Dim *shared = own(&rows, &y->store);
    other.ops = NEW_ARRAY(rows.build->arena, FusedOp, 2);
    memcpy(other.ops, fusion->ops, 2 * sizeof(FusedOp));
    shared[0].size *= shared[1].size;
    other.ops[1].store.rank = 1;
    rows_expect(rows, y->out, "is accessed by other strides than its own");
}
END_TEST

START_TEST(a_store_is_over_the_axes_of_its_op)
{
    Rows rows = rows_new();
    FusedOp *s = &rows.fusion->ops[0];
    own(&rows, &s->store)[0].index = affine_axis(1);
    rows_expect(rows, s->out, "is stored by axes that it is not made at");
}
END_TEST

START_TEST(a_value_is_made_before_it_is_used)
{
    Rows rows = rows_new();
    FusedOp *ops = rows.fusion->ops, first = ops[0];
    ops[0] = ops[1];
    ops[1] = first;
    rows_expect(rows, ops[0].out, "uses a value that is not made yet");
}
END_TEST

START_TEST(a_value_is_used_where_it_is_made)
{
    Rows rows = rows_new();
    FusedOp *ops = rows.fusion->ops;
    ops[0].reduced = 0;
    ops[0].reduce = REDUCE_NONE;
    ops[0].spatial = 3;   // of every element
    ops[0].stored = false;
    ops[1].spatial = 1;                             // of the rows
    ops[1].body = ops[1].body->apply.operands[1];   // v0 alone
    rows_expect(rows, ops[1].out, "uses a value of points that it is not made at");
}
END_TEST

START_TEST(a_body_is_over_the_axes_of_its_op)
{
    Rows rows = rows_new();
    Access *read = &rows.fusion->ops[0].body->access;
    own(&rows, read)[1].index = affine_axis(2);
    rows_expect(rows, rows.fusion->ops[0].out, "uses an axis that it is not over");
}
END_TEST

/* s[i] = sum[j](x[i + j]) and t[i] = sum[k](x[i + 2*k]) of 4 i's, 3 j's and 2 k's. */
START_TEST(reductions_side_by_side_take_a_part_each)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 6);
    Affine one = {.coef = {1, 1}}, two = {.coef = {1, 2}};
    REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1, build_access(build, x, &one), 4, 3);
    REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1, build_access(build, x, &two), 4, 2);
    FusionPlans plans = fuse(build->arena, &build->program);
    const FusionPlan *plan = &plans.plans[plans.count - 1];
    ck_assert_str_eq(plan->name, "beside");
    Fusion *fusion = plan->fusions[0];
    ck_assert(plan->count == 1 && fusion->axis_count == 3 && fusion_is_beside(fusion));
    ck_assert(fusion->ops[0].reduced == 2 && fusion->ops[1].reduced == 4);
    ck_assert(!fusion_is_reduction(fusion));
    fusion->ops[1].reduced = 6;   // an axis of the other's
    ck_assert_ptr_nonnull(fusion_fault(fusion).what);
    fusion->ops[1].reduced = 0;
    ck_assert_str_eq(fusion_fault(fusion).what, "reduces over other axes than the kernel's");
    build_free(build);
}
END_TEST

START_TEST(a_reduction_takes_all_that_is_not_the_rows)
{
    Rows rows = rows_new();
    rows.fusion->ops[0].reduced = 3;
    rows_expect(rows, rows.fusion->ops[0].out, "reduces over other axes than the kernel's");
}
END_TEST

START_TEST(what_is_read_is_an_input)
{
    Rows rows = rows_new();
    rows.fusion->input_count = 0;
    rows_expect(rows, rows.fusion->ops[0].body->access.tensor, "is read and is no input");
}
END_TEST

START_TEST(what_is_stored_is_an_output)
{
    Rows rows = rows_new();
    rows.fusion->output_count = 1;
    rows_expect(rows, rows.fusion->ops[1].out, "is stored and is no output");
}
END_TEST

START_TEST(no_kernel_reads_what_it_writes)
{
    Rows rows = rows_new();
    Tensor *x = rows.fusion->ops[0].body->access.tensor;
    rows.fusion->outputs[0] = x;
    rows_expect(rows, x, "is read by the kernel that writes it");
}
END_TEST

START_TEST(reduction_axes_come_last)
{
    Rows rows = rows_new();
    rows.fusion->axes[0].reduction = true;
    rows_expect(rows, NULL, "has a reduction axis among its spatial ones");
}
END_TEST

/* a[i] = x[2*i + 1] of 10 elements, y[i, r] = pad(a[i + r - 1], 0): as one kernel x[2*i + 2*r - 1], below the guard
   0 <= i + r - 1 < 5. Its form is the guard's, twice, and 1: x is read at 1 … 9. */
static Rows padded_new(void)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 10);
    Affine odd = {.coef = {2}, .constant = 1};
    Tensor *a = POINTWISE(build, ROLE_TEMPORARY, DTYPE_F32, build_access(build, x, &odd), 5);
    Affine moved = {.coef = {1, 1}, .constant = -1};
    Expr *guard = NEW(build->arena, Expr), *body = build_access(build, a, &moved);
    *guard = (Expr){.kind = EXPR_GUARD, .type = DTYPE_F32};
    guard->guard = (Guard){1, body->access.dims, body, build_const(build, DTYPE_F32, 0)};
    POINTWISE(build, ROLE_OUTPUT, DTYPE_F32, guard, 5, 3);
    FusionPlans plans = fuse(build->arena, &build->program);
    ck_assert_int_eq(plans.plans[0].count, 1);
    return (Rows){build, plans.plans[0].fusions[0]};
}

START_TEST(multiples_of_a_guarded_form_stay_inside)
{
    Rows rows = padded_new();
    Expr *guard = rows.fusion->ops[0].body;
    ck_assert_int_eq(guard->kind, EXPR_GUARD);
    ck_assert_ptr_null(fusion_fault(rows.fusion).what);
    Tensor *x = guard->guard.body->access.tensor;
    Dim *bound = NEW(rows.build->arena, Dim);
    *bound = guard->guard.bounds[0];
    bound->size = 6;   // x[11] is let through
    guard->guard.bounds = bound;
    rows_expect(rows, x, "is accessed outside its dimensions");
}
END_TEST

/* 0 <= i + r + 5 < 5 never holds: what stands below it is not read. */
START_TEST(what_is_never_read_may_lie_anywhere)
{
    Rows rows = padded_new();
    Expr *guard = rows.fusion->ops[0].body;
    Dim *bound = NEW(rows.build->arena, Dim);
    *bound = guard->guard.bounds[0];
    bound->index.constant = 5;
    guard->guard.bounds = bound;
    ck_assert_ptr_null(fusion_fault(rows.fusion).what);
    build_free(rows.build);
}
END_TEST

/* What the guard would be with other bounds, of forms a*i + b*r + c. */
static const char *fault_below(const Dim *bounds, int count)
{
    Rows rows = padded_new();
    Guard *guard = &rows.fusion->ops[0].body->guard;
    Dim *index = NEW(rows.build->arena, Dim);
    *index = (Dim){.index = {.coef = {2, 2}, .constant = 100}, .size = 10};   // far outside x
    guard->body->access.dims = index;
    guard->bounds = bounds;
    guard->count = count;
    const char *what = fusion_fault(rows.fusion).what;
    build_free(rows.build);
    return what;
}

/* i counts 0 … 4, r 0 … 2. */
START_TEST(guards_that_exclude_each_other_let_nothing_through)
{
    const Dim first[] = {{{.coef = {1}, .constant = -1}, 9}, {{.coef = {1}, .constant = 1}, 2}};         // 1 <= i <= 0
    const Dim sum[] = {{{.coef = {1, 1}, .constant = -1}, 5}, {{.coef = {1, 1}, .constant = -6}, 1}};    // 1 <= i + r <= 5, i + r = 6
    const Dim signs[] = {{{.coef = {-2}, .constant = 3}, 9}, {{.coef = {1}, .constant = -2}, 9}};        // i <= 1, i >= 2
    const Dim held[] = {{{.coef = {-2}, .constant = 3}, 9}, {{.coef = {1}, .constant = -1}, 9}};         // i = 1
    ck_assert_ptr_null(fault_below(first, 2));
    ck_assert_ptr_null(fault_below(sum, 2));
    ck_assert_ptr_null(fault_below(signs, 2));
    ck_assert_str_eq(fault_below(first, 1), "is accessed outside its dimensions");
    ck_assert_str_eq(fault_below(sum, 1), "is accessed outside its dimensions");
    ck_assert_str_eq(fault_below(sum + 1, 1), "is accessed outside its dimensions");
    ck_assert_str_eq(fault_below(held, 2), "is accessed outside its dimensions");
}
END_TEST

START_TEST(a_fault_is_a_bug_in_rollerc)
{
    Rows rows = rows_new();
    own(&rows, &rows.fusion->ops[1].store)[0].index = affine_constant(0);
    fusion_verify(rows.fusion, "a test");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_stride_is_the_tensors_own);
    tcase_add_test(tests, an_index_stays_inside);
    tcase_add_test(tests, a_negative_index_is_outside);
    tcase_add_test(tests, an_order_of_stores_is_the_tensors);
    tcase_add_test(tests, stores_reach_every_element);
    tcase_add_test(tests, stores_leave_no_gap);
    tcase_add_test(tests, a_shared_list_is_not_rewritten);
    tcase_add_test(tests, a_store_is_over_the_axes_of_its_op);
    tcase_add_test(tests, a_value_is_made_before_it_is_used);
    tcase_add_test(tests, a_value_is_used_where_it_is_made);
    tcase_add_test(tests, a_body_is_over_the_axes_of_its_op);
    tcase_add_test(tests, reductions_side_by_side_take_a_part_each);
    tcase_add_test(tests, a_reduction_takes_all_that_is_not_the_rows);
    tcase_add_test(tests, what_is_read_is_an_input);
    tcase_add_test(tests, what_is_stored_is_an_output);
    tcase_add_test(tests, no_kernel_reads_what_it_writes);
    tcase_add_test(tests, reduction_axes_come_last);
    tcase_add_test(tests, multiples_of_a_guarded_form_stay_inside);
    tcase_add_test(tests, what_is_never_read_may_lie_anywhere);
    tcase_add_test(tests, guards_that_exclude_each_other_let_nothing_through);
    tcase_add_exit_test(tests, a_fault_is_a_bug_in_rollerc, EXIT_BUG);
}

int main(void) { return build_run("fuse_verify", add); }
