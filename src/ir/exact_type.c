#include "ir/exact_type.h"

#include <math.h>

#include "ir/eval.h"

/* Each value of `from` is one of `to`: the integers up to 2^8 are bf16's, those up to 2^11 f16's. */
static bool type_holds(DType to, DType from)
{
    bool from_halves = from == DTYPE_F16 || from == DTYPE_BF16,
         from_bytes = from == DTYPE_I8 || from == DTYPE_U8;
    if (from == to || from == DTYPE_B1 || to == DTYPE_F64)
        return from != DTYPE_I64 || to == DTYPE_I64;
    if (!dtype_info[to].is_real)
        return (from_bytes && (to == DTYPE_I32 || to == DTYPE_I64)) || (from == DTYPE_I32 && to == DTYPE_I64);
    return from_bytes || (to == DTYPE_F32 && from_halves);
}

static bool constant_is_exact(const Expr *expr, DType type)
{
    bool is_real = dtype_info[expr->type].is_real;
    double value = is_real ? expr->constant.real : (double)expr->constant.integer;
    return dtype_round(type, value) == value;
}

/* 0 or 1, with which a product is an operand or 0. */
static bool is_bit(const Expr *expr)
{
    while (expr->kind == EXPR_CAST)
        expr = expr->cast.body;
    return expr->type == DTYPE_B1;
}

/* What an infinite number is cut off to is no element of anything. */
static bool keeps_class(const Expr *cast)
{
    return dtype_info[cast->cast.to].is_real || !dtype_info[cast->cast.body->type].is_real;
}

static bool apply_is_exact(const Expr *expr, DType type)
{
    Expr *const *operands = expr->apply.operands;
    switch (expr->apply.op) {
    case OP_NEG:
    case OP_ABS: return dtype_info[type].is_real && expr_is_exact(operands[0], type);   // -(-128) is no i8
    case OP_RELU:
    case OP_FLOOR:
    case OP_CEIL:
    case OP_ROUND: return expr_is_exact(operands[0], type);
    case OP_MAX:
    case OP_MIN: return expr_is_exact(operands[0], type) && expr_is_exact(operands[1], type);
    case OP_SELECT: return expr_is_exact(operands[1], type) && expr_is_exact(operands[2], type);
    case OP_MUL:
        return (is_bit(operands[0]) && expr_is_exact(operands[1], type)) ||
               (is_bit(operands[1]) && expr_is_exact(operands[0], type));
    default: return false;
    }
}

bool expr_is_exact(const Expr *expr, DType type)
{
    if (expr->type == type || expr->type == DTYPE_B1)
        return true;
    switch (expr->kind) {
    case EXPR_CONST: return constant_is_exact(expr, type);
    case EXPR_ACCESS:
    case EXPR_FETCH: return type_holds(type, expr_tensor(expr)->dtype);
    case EXPR_CAST:
        return type_holds(type, expr->cast.to) || (keeps_class(expr) && expr_is_exact(expr->cast.body, type));
    case EXPR_GUARD:
        return expr_is_exact(expr->guard.body, type) && expr_is_exact(expr->guard.otherwise, type);
    case EXPR_APPLY: return apply_is_exact(expr, type);
    case EXPR_INDEX:
    case EXPR_VALUE: return false;
    }
    return false;
}

/* The narrower type that holds all values of a definition of points; else its own. */
static DType kept_type(const TensorOp *op)
{
    static const DType narrow[] = {DTYPE_F16, DTYPE_BF16, DTYPE_I8, DTYPE_U8};
    DType own = op->out->dtype;
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow && op->reduce == REDUCE_NONE; i++)
        if (dtype_info[narrow[i]].compute == own && op->body->type == own &&
            expr_is_exact(op->body, narrow[i]))
            return narrow[i];
    return own;
}

void keep_exact_types(Program *program)
{
    for (int i = 0; i < program->op_count; i++) {
        Tensor *out = program->ops[i]->out;
        DType kept = kept_type(program->ops[i]);
        if (out->role != ROLE_TEMPORARY || kept == out->dtype)
            continue;
        out->dtype = kept;
        out->exact = true;
    }
}

int expr_corrections(const Expr *expr)
{
    const Expr *divisor = expr->apply.operands[1];
    if (expr->apply.op != OP_DIV || expr->type != DTYPE_F32 || divisor->kind != EXPR_CONST)
        return 0;
    double by = (float)divisor->constant.real, off = (float)(1 / by) * by - 1;
    if (!(fabs(by) >= 1 && fabs(by) <= 0x1p60) || off == 0)
        return 0;
    return fabs(off) <= 0x1p-25 ? 1 : 2;
}
