// Sums of products that share a factor as one kernel.
#include "build.h"
#include "ir/fuse.h"
#include "ir/fuse_join.h"

enum { I, J, K, ROWS = 30, COLUMNS = 40, TERMS = 50 };

static Expr *times(Build *build, Expr *a, Expr *b) { return build_op(build, OP_MUL, a, b, NULL); }

/* sum[k](x[i, k] * w[k, j]) of another w. */
static Tensor *product(Build *build, Role role, Tensor *x)
{
    Tensor *w = INPUT(build, DTYPE_F16, TERMS, COLUMNS);
    Expr *term = times(build, AT(build, x, I, K), AT(build, w, K, J));
    return REDUCTION(build, role, DTYPE_F16, REDUCE_SUM, 1, term, ROWS, COLUMNS, TERMS);
}

/* All kernels of the plain plan as one; only outputs are needed. */
static Fusion *join(Build *build)
{
    const FusionPlans plans = fuse(build->arena, &build->program);
    const Program *program = plans.program;
    bool *needed = NEW_ARRAY(build->arena, bool, program->tensor_count);
    for (int i = 0; i < program->output_count; i++)
        needed[program->outputs[i]->id] = true;
    return fusion_join(build->arena, plans.plans[0].fusions, plans.plans[0].count, needed);
}

START_TEST(sums_come_first_and_keep_their_outputs)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F16, ROWS, TERMS), *b = INPUT(build, DTYPE_F16, COLUMNS);
    Tensor *q = product(build, ROLE_TEMPORARY, x);
    POINTWISE(build, ROLE_OUTPUT, DTYPE_F16,
              build_op(build, OP_ADD, AT(build, q, I, J), AT(build, b, J), NULL), ROWS, COLUMNS);
    product(build, ROLE_OUTPUT, x);
    Fusion *joint = join(build);
    ck_assert(joint && joint->joined == 2 && joint->op_count == 3);
    ck_assert(joint->ops[0].reduce == REDUCE_SUM && joint->ops[1].reduce == REDUCE_SUM &&
              joint->ops[2].reduce == REDUCE_NONE);
    ck_assert(joint->input_count == 4 && joint->output_count == 2 && !joint->ops[0].stored &&
              joint->ops[1].stored);
    build_free(build);
}
END_TEST

/* The gate is neither written nor read. */
START_TEST(what_one_reads_of_another_is_a_value)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F16, ROWS, TERMS);
    Tensor *gate = product(build, ROLE_TEMPORARY, x), *up = product(build, ROLE_TEMPORARY, x);
    POINTWISE(build, ROLE_OUTPUT, DTYPE_F16, times(build, AT(build, gate, I, J), AT(build, up, I, J)), ROWS,
              COLUMNS);
    Fusion *joint = join(build);
    ck_assert(joint && joint->op_count == 3 && joint->input_count == 3 && joint->output_count == 1);
    const Expr *body = joint->ops[2].body;
    ck_assert(body->apply.operands[0]->kind == EXPR_VALUE && body->apply.operands[0]->value == 0);
    ck_assert(body->apply.operands[1]->kind == EXPR_VALUE && body->apply.operands[1]->value == 1);
    build_free(build);
}
END_TEST

START_TEST(others_stay_apart)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F16, ROWS, TERMS), *other = INPUT(build, DTYPE_F16, ROWS, TERMS);
    product(build, ROLE_OUTPUT, x);
    product(build, ROLE_OUTPUT, other);
    ck_assert(!join(build));   // no factor is the same
    build_free(build);

    build = build_new();
    x = INPUT(build, DTYPE_F16, ROWS, TERMS);
    Tensor *w = product(build, ROLE_OUTPUT, x);   // 30 x 40, and then 30 x 40 by it
    Tensor *v = INPUT(build, DTYPE_F16, TERMS, COLUMNS);
    Expr *turned = times(build, AT(build, x, I, K), AT(build, v, K, J));
    Tensor *read = REDUCTION(build, ROLE_TEMPORARY, DTYPE_F16, REDUCE_SUM, 1, turned, ROWS, COLUMNS, TERMS);
    Affine next[2] = {{.coef = {1}}, {.coef = {0, -1}, .constant = COLUMNS - 1}};   // another point's
    POINTWISE(build, ROLE_OUTPUT, DTYPE_F16,
              times(build, AT(build, read, I, J), build_access(build, w, next)), ROWS, COLUMNS);
    ck_assert(!join(build));
    build_free(build);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, sums_come_first_and_keep_their_outputs);
    tcase_add_test(tests, what_one_reads_of_another_is_a_value);
    tcase_add_test(tests, others_stay_apart);
}

int main(void) { return build_run("fuse_join", add); }
