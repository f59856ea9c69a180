// Programs made by hand, without the front end.
#pragma once
#include <check.h>
#include <math.h>
#include <string.h>

#include "ir/eval.h"

typedef struct Build {
    Arena *arena;
    Program program;
    Tensor *tensors[32], *inputs[8], *outputs[8];
    TensorOp *ops[32];
} Build;

static inline Build *build_new(void)
{
    Arena *arena = arena_new();
    Build *build = NEW(arena, Build);
    build->arena = arena;
    build->program = (Program){.tensors = build->tensors, .ops = build->ops, .inputs = build->inputs,
                               .outputs = build->outputs};
    return build;
}

static inline void build_free(Build *build)
{
    arena_free(build->arena);
}

static inline Tensor *build_tensor(Build *build, Role role, DType dtype, int rank, const int64_t *shape)
{
    Program *program = &build->program;
    Tensor *tensor = NEW(build->arena, Tensor);
    *tensor = (Tensor){.name = "t", .id = program->tensor_count, .dtype = dtype, .role = role, .rank = rank};
    for (int d = 0; d < rank; d++)
        tensor->shape[d] = shape[d];
    program->tensors[program->tensor_count++] = tensor;
    if (role == ROLE_INPUT)
        program->inputs[program->input_count++] = tensor;
    if (role == ROLE_OUTPUT)
        program->outputs[program->output_count++] = tensor;
    return tensor;
}

#define RANK(...) ((int)(sizeof (int64_t[]){__VA_ARGS__} / sizeof(int64_t)))
#define INPUT(build, dtype, ...) \
    build_tensor(build, ROLE_INPUT, dtype, RANK(__VA_ARGS__), (int64_t[]){__VA_ARGS__})

static inline Expr *build_access(Build *build, Tensor *tensor, const Affine *indices)
{
    Expr *expr = NEW(build->arena, Expr);
    expr->kind = EXPR_ACCESS;
    expr->type = dtype_info[tensor->dtype].compute;
    expr->access = access_new(build->arena, tensor, indices);
    return expr;
}

/* t[axis, axis, …] */
#define AT(build, tensor, ...) build_at(build, tensor, (int[]){__VA_ARGS__})
static inline Expr *build_at(Build *build, Tensor *tensor, const int *axes)
{
    Affine indices[MAX_AXES];
    for (int d = 0; d < tensor->rank; d++)
        indices[d] = affine_axis(axes[d]);
    return build_access(build, tensor, indices);
}

static inline Expr *build_index(Build *build, int axis)
{
    Expr *expr = NEW(build->arena, Expr);
    expr->kind = EXPR_INDEX;
    expr->type = DTYPE_I32;
    expr->index = affine_axis(axis);
    return expr;
}

static inline Expr *build_op(Build *build, Op op, Expr *a, Expr *b, Expr *c)
{
    OpClass class = op_info[op].class;
    DType type = class == OP_CLASS_COMPARE || class == OP_CLASS_LOGIC ? DTYPE_B1 : a->type;
    return expr_apply(build->arena, op, class == OP_CLASS_SELECT ? b->type : type, a, b, c);
}

static inline Expr *build_const(Build *build, DType type, double value)
{
    return expr_constant(build->arena, type, value);
}

/* out[axes that are no reduction] = reduce[the last `reduced` axes] body */
static inline Tensor *build_define(Build *build, Role role, DType dtype, Reduce reduce, int reduced, Expr *body,
                                   int axis_count, const int64_t *extents)
{
    TensorOp *op = NEW(build->arena, TensorOp);
    op->spatial_count = axis_count - reduced;
    op->axis_count = axis_count;
    for (int a = 0; a < axis_count; a++)
        op->axes[a] = (Axis){"a", extents[a], a >= op->spatial_count};
    op->reduce = reduce;
    op->body = body;
    op->out = build_tensor(build, role, dtype, op->spatial_count, extents);
    build->ops[build->program.op_count++] = op;
    return op->out;
}
#define POINTWISE(build, role, dtype, body, ...) \
    build_define(build, role, dtype, REDUCE_NONE, 0, body, RANK(__VA_ARGS__), (int64_t[]){__VA_ARGS__})
#define REDUCTION(build, role, dtype, reduce, reduced, body, ...) \
    build_define(build, role, dtype, reduce, reduced, body, RANK(__VA_ARGS__), (int64_t[]){__VA_ARGS__})

/* Inputs from arrays of doubles. */
static inline double build_element(void *context, int input, int64_t element)
{
    return ((const double *const *)context)[input][element];
}

/* The elements [0, count) of a tensor. */
static inline void build_evaluate(Build *build, const double *const *inputs, const Tensor *tensor, int count,
                                  Value *values)
{
    Evaluator *evaluator = evaluator_new(build->arena, &build->program, (InputSource){build_element, (void *)inputs});
    evaluate_range(evaluator, tensor, 0, count, values);
    evaluator_free(evaluator);
}

/* Runs what `add` adds; the exit code of the test program. */
static inline int build_run(const char *name, void (*add)(TCase *))
{
    Suite *suite = suite_create(name);
    TCase *tests = tcase_create(name);
    add(tests);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
