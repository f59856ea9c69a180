#include <math.h>

#include "front_test.h"

/* A constant folded as the extent of an input. */
static int64_t extent_of(const char *constant)
{
    const char *text = arena_printf(arena, "input x[%s] : f32 y[i] = x[i] output y", constant);
    return program_of(text)->inputs[0]->shape[0];
}

/* A constant folded inside an f64 expression. */
static double real_of(const char *constant)
{
    const char *format = "input x[4] : f64 y[i] = x[i] * (%s) output y";
    const Program *program = program_of(arena_printf(arena, format, constant));
    return program->ops[0]->body->apply.operands[1]->constant.real;
}

/* The type of `y[i] = BODY` over one input of each element type. */
static DType type_of(const char *body)
{
    const char *text = arena_printf(arena,
                                    "input d[4] : f64 input f[4] : f32 input h[4] : f16 "
                                    "input n[4] : i32 input s[4] : i8 input m[4] : b1 "
                                    "y[i:4] = %s output y", body);
    return program_of(text)->outputs[0]->dtype;
}

static const Expr *body_of(const char *text)
{
    return program_of(text)->ops[0]->body;
}

START_TEST(constants_fold_exactly)
{
    ck_assert_int_eq(extent_of("floor((224 + 6 - 7) / 2) + 1"), 112);   // 223/2 = 111.5
    ck_assert_int_eq(extent_of("ceil(7/2)"), 4);
    ck_assert_int_eq(extent_of("8/2"), 4);
    ck_assert_int_eq(extent_of("min(3, max(1, 2.0))"), 2);
    ck_assert_int_eq(extent_of("floor(-7/2) + 10"), 6);                 // -3.5 down to -4
    ck_assert_int_eq(extent_of("9007199254740993 - 9007199254740992"), 1);   // past 2^53
    ck_assert_int_eq(extent_of("1e3"), 1000);
}
END_TEST

START_TEST(division_of_constants_is_real_in_expressions)
{
    ck_assert_double_eq(real_of("1/2"), 0.5);
    ck_assert_double_eq(real_of("100/(100 - 1)"), 100.0 / 99.0);
    ck_assert_double_eq(real_of("0.1"), 0.1);
    ck_assert_double_eq(real_of("2*pi"), 2 * M_PI);
    ck_assert(real_of("-inf") == -INFINITY);
}
END_TEST

START_TEST(f32_constants_are_rounded_once)
{
    const Expr *body = body_of("input x[4] : f32 y[i] = x[i] * (1/3) output y");
    ck_assert_double_eq(body->apply.operands[1]->constant.real, (double)(1.0f / 3.0f));
}
END_TEST

START_TEST(params_can_be_overridden)
{
    const ParamOverride overrides[] = {{"N", "12"}, {"eps", "-2.5e-1"}};
    const char *text = "param N = 4 param M = 2*N param eps = 1 "
                       "input x[M] : f64 y[i] = x[i] + eps output y";
    Program *program = lower(arena, parse(arena, tokens_of(text)), overrides, 2);
    ck_assert_int_eq(program->inputs[0]->shape[0], 24);
    ck_assert_double_eq(program->ops[0]->body->apply.operands[1]->constant.real, -0.25);
}
END_TEST

static Program *overridden(const char *name, const char *value)
{
    const ParamOverride override = {name, value};
    const char *text = "param width = 4 input x[width] : f32 y[i] = x[i] output y";
    return lower(arena, parse(arena, tokens_of(text)), &override, 1);
}

START_TEST(wrong_overrides_are_usage_errors)
{
    ck_assert_error(EXIT_USAGE, "did you mean 'width'?", overridden("widht", "4"));
    ck_assert_error(EXIT_USAGE, "no param of that name", overridden("x", "4"));
    ck_assert_error(EXIT_USAGE, "malformed number", overridden("width", "4x"));
    ck_assert_error(EXIT_USAGE, "malformed number", overridden("width", "4 "));
    ck_assert_error(EXIT_USAGE, "expected a number", overridden("width", ""));
    ck_assert_error(EXIT_USAGE, "expected a number", overridden("width", "--4"));
    ck_assert_error(EXIT_USAGE, "malformed number", overridden("width", "4,5"));
    ck_assert_int_eq(overridden("width", "+6")->inputs[0]->shape[0], 6);
    ck_assert_error(EXIT_INPUT, "extent is -4", overridden("width", "-4"));
}
END_TEST

START_TEST(extents_come_from_use)
{
    ck_assert_str_eq(op_text("input A[8, 4] : f16 input B[4, 6] : f16 "
                             "C[i, j] = sum[k](A[i, k] * B[k, j]) output C"),
                     "C[i:8, j:6] : f32 = sum[k:4] mul(A[i, k], B[k, j])");
    ck_assert_str_eq(op_text("input x[8] : f16 y[i] = x[1*i + 0] output y"), "y[i:8] : f16 = x[i]");
    ck_assert_str_eq(op_text("input x[8] : f16 y[i:5] = x[i + 3] output y"),
                     "y[i:5] : f16 = x[i + 3]");
}
END_TEST

START_TEST(indices_are_affine)
{
    ck_assert_str_eq(op_text("param D = 2 input x[64] : f16 "
                             "y[i:4, j:3] = x[D*(i + 2*j) - (j - 1) + 1] output y"),
                     "y[i:4, j:3] : f16 = x[2*i + 3*j + 2]");
    ck_assert_str_eq(op_text("input x[8] : f16 y[i:8] = x[-i + 7] output y"),
                     "y[i:8] : f16 = x[-i + 7]");
}
END_TEST

START_TEST(a_pad_guards_only_what_can_leave)
{
    // r runs to 2: 0 + 0 - 1 = -1 leaves below; the column j stays inside.
    const Expr *guard = body_of("input x[8, 4] : f32 "
                                "y[i:8, j] = sum[r:3](pad(x[i + r - 1, j], 0)) output y");
    ck_assert_int_eq(guard->kind, EXPR_GUARD);
    ck_assert_int_eq(guard->guard.count, 1);
    ck_assert_int_eq(guard->guard.bounds[0].size, 8);
    ck_assert_int_eq(body_of("input x[8] : f32 y[i] = pad(x[i], 0) output y")->kind, EXPR_ACCESS);
}
END_TEST

START_TEST(elements_that_only_move_keep_their_type)
{
    ck_assert_int_eq(type_of("h[i]"), DTYPE_F16);
    ck_assert_int_eq(type_of("pad(s[i - 1], 7)"), DTYPE_I8);
    ck_assert_int_eq(type_of("select(m[i], h[i], pad(h[i - 1], 0))"), DTYPE_F16);
    ck_assert_int_eq(type_of("select(m[i], h[i], f[i])"), DTYPE_F32);
    ck_assert_int_eq(type_of("m[i]"), DTYPE_B1);
    ck_assert_int_eq(type_of("-h[i]"), DTYPE_F32);
    ck_assert_int_eq(type_of("max[j](h[j])"), DTYPE_F32);
}
END_TEST

START_TEST(types_follow_from_operands)
{
    ck_assert_int_eq(type_of("n[i] + s[i]"), DTYPE_I32);
    ck_assert_int_eq(type_of("n[i] * 2"), DTYPE_I32);
    ck_assert_int_eq(type_of("n[i] * 2.0"), DTYPE_F32);
    ck_assert_int_eq(type_of("n[i] * d[i]"), DTYPE_F64);
    ck_assert_int_eq(type_of("h[i] * 0.5"), DTYPE_F32);
    ck_assert_int_eq(type_of("pow(n[i], 2)"), DTYPE_F32);
    ck_assert_int_eq(type_of("m[i] + m[i]"), DTYPE_I32);
    ck_assert_int_eq(type_of("m[i] && h[i] < 1"), DTYPE_B1);
    ck_assert_int_eq(type_of("sum[j](m[j])"), DTYPE_I32);
    ck_assert_int_eq(type_of("cast(d[i], i32)"), DTYPE_I32);
    ck_assert_int_eq(type_of("i"), DTYPE_I32);
}
END_TEST

/* The op of a definition of y over an i32, an f64 and a b1 input. */
static const char *typed_op(const char *definition)
{
    const char *inputs = "input n[4] : i32 input d[4] : f64 input m[4] : b1";
    return op_text(arena_printf(arena, "%s %s output y", inputs, definition));
}

START_TEST(operands_are_brought_to_one_type)
{
    ck_assert_str_eq(typed_op("y[i] = n[i] < d[i]"),
                     "y[i:4] : b1 = lt(f64(n[i]), d[i])");
    ck_assert_str_eq(typed_op("y[i] = m[i] - n[i]"),
                     "y[i:4] : i32 = sub(i32(m[i]), n[i])");
    ck_assert_str_eq(typed_op("y[i] = select(m[i], n[i], 0.5)"),
                     "y[i:4] : f32 = select(m[i], f32(n[i]), 0.5)");
    ck_assert_str_eq(typed_op("y[i] = d[i] * sqrt(2)"),
                     "y[i:4] : f64 = mul(d[i], sqrt(2))");
    ck_assert_str_eq(typed_op("y[i] : f16 = n[i]"),
                     "y[i:4] : f16 = f32(n[i])");
    ck_assert_str_eq(typed_op("y[i] = cast(n[i], b1)"),
                     "y[i:4] : b1 = ne(n[i], 0)");
}
END_TEST

START_TEST(an_index_value_is_wide_enough)
{
    const Expr *last_i32 = body_of("y[i:2147483648] : f64 = cast(i, f64) output y");
    const Expr *first_i64 = body_of("y[i:2147483649] : f64 = cast(i, f64) output y");
    ck_assert_int_eq(last_i32->cast.body->type, DTYPE_I32);
    ck_assert_int_eq(first_i64->cast.body->type, DTYPE_I64);
    ck_assert_int_eq(program_of("y[i:2147483649] = i output y")->outputs[0]->dtype, DTYPE_I32);
}
END_TEST

START_TEST(the_output_may_state_the_type)
{
    ck_assert_int_eq(program_of("output y : f16 y[i:4] = i")->outputs[0]->dtype, DTYPE_F16);
}
END_TEST

START_TEST(a_nested_reduction_becomes_an_op)
{
    Program *program = program_of("input x[8, 4] : f16 "
                                  "y[i, j] = x[i, j] / sum[k](x[i, k]) output y");
    ck_assert_int_eq(program->op_count, 2);
    const TensorOp *sum = program->ops[0];
    ck_assert_str_eq(sum->out->name, "y.1");
    ck_assert_int_eq(sum->out->dtype, DTYPE_F32);
    ck_assert_int_eq(sum->out->rank, 1);          // of i and j it needs i only
    ck_assert_int_eq(sum->spatial_count, 1);
    ck_assert_int_eq(sum->axis_count, 2);
    ck_assert_int_eq(sum->axes[1].extent, 4);
    ck_assert(sum->axes[1].reduction);
    const Expr *read = program->ops[1]->body->apply.operands[1];
    ck_assert_ptr_eq(read->access.tensor, sum->out);
    ck_assert_int_eq(affine_single_axis(&read->access.dims[0].index), 0);
}
END_TEST

/* A softmax in one line has one maximum and one sum. */
START_TEST(equal_reductions_of_a_definition_are_one)
{
    Program *program = program_of("input x[8, 4] : f16 "
                                  "y[i, j] = exp(x[i, j] * 0.1 - max[k](x[i, k] * 0.1)) / "
                                  "sum[k](exp(x[i, k] * 0.1 - max[l](x[i, l] * 0.1))) output y");
    ck_assert_int_eq(program->op_count, 3);
    ck_assert_str_eq(program->ops[1]->out->name, "y.2");
    const Expr *exponent = program->ops[1]->body->apply.operands[0];
    ck_assert_ptr_eq(exponent->apply.operands[1]->access.tensor, program->ops[0]->out);
}
END_TEST

START_TEST(reductions_that_differ_are_several)
{
    static const char *const others[] = {"max[k](x[j, k])", "sum[k](x[i, k])", "max[k:3](x[i, k])", "max[k](x[i, k] * 0.5)",
                                         "max[k:4](x[i, 3 - k])", "max[k](x[k, i])"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const char *text = arena_printf(arena, "input x[4, 4] : f32 y[i, j] = max[k](x[i, k]) + x[i, j] * %s output y", others[i]);
        // Of x[j, k] the maximum is the same tensor, read at j.
        ck_assert_int_eq(program_of(text)->op_count, i == 0 ? 2 : 3);
    }
    Program *zeros = program_of("input x[4] : f32 y[i] = max[k](x[k] * 0.0) + x[i] * max[k](x[k] * -0.0) output y");
    ck_assert_int_eq(zeros->op_count, 3);
}
END_TEST

START_TEST(a_temporary_of_indices_keeps_64_bits)
{
    Program *program = program_of("y[j:2] = sum[i:2147483649](i) / 2 + j output y");
    ck_assert_int_eq(program->ops[0]->out->dtype, DTYPE_I64);
    ck_assert_int_eq(program->ops[1]->out->dtype, DTYPE_I32);
}
END_TEST

START_TEST(what_no_output_needs_is_left_out)
{
    Program *program = program_of("input x[4] : f32 input unused[4] : f32 "
                                  "a[i] = x[i] + sum[k](x[k]) b[i] = x[i] + 1 output b");
    ck_assert_int_eq(program->op_count, 1);
    ck_assert_int_eq(program->input_count, 2);     // arguments stay as declared
    ck_assert_int_eq(program->tensor_count, 3);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(program->tensors[i]->id, i);
}
END_TEST

START_TEST(outputs_are_in_the_order_of_their_statements)
{
    Program *program = program_of("output b a[i:4] = i b[i] = a[i] output a");
    ck_assert_str_eq(program->outputs[0]->name, "b");
    ck_assert_str_eq(program->outputs[1]->name, "a");
    ck_assert_int_eq(program->outputs[1]->role, ROLE_OUTPUT);
    ck_assert_str_eq(program->ops[0]->out->name, "a");
}
END_TEST

START_TEST(weights_follow_the_inputs)
{
    Program *program = program_of("weight w[4] : f16 view v[2, 2] = w input x[4] : f32 weight u[] : f32 input z[4] : f32 "
                                  "y[i] = x[i] * w[i] + v[0, 1] * u[] output y");
    const char *const order[] = {"x", "z", "w", "u"};
    ck_assert_int_eq(program->input_count, 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_str_eq(program->inputs[i]->name, order[i]);
        ck_assert_int_eq(program->inputs[i]->is_weight, i >= 2);
        ck_assert_int_eq(program->inputs[i]->role, ROLE_INPUT);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        constants_fold_exactly, division_of_constants_is_real_in_expressions,
        f32_constants_are_rounded_once, params_can_be_overridden,
        wrong_overrides_are_usage_errors, extents_come_from_use, indices_are_affine,
        a_pad_guards_only_what_can_leave, elements_that_only_move_keep_their_type,
        types_follow_from_operands, operands_are_brought_to_one_type,
        an_index_value_is_wide_enough, the_output_may_state_the_type,
        a_nested_reduction_becomes_an_op, equal_reductions_of_a_definition_are_one,
        reductions_that_differ_are_several, a_temporary_of_indices_keeps_64_bits,
        what_no_output_needs_is_left_out, outputs_are_in_the_order_of_their_statements,
        weights_follow_the_inputs,
    };
    return RUN_TESTS("lower", tests);
}
