// Which definitions may be rounded at another scale: see stream.h.
#include "ir/eval_parts.h"
#include "ir/stream.h"

static bool is_half(DType type) { return type == DTYPE_F16 || type == DTYPE_BF16; }

typedef struct LooseSearch {
    bool *loose, *factor;       // by tensor id: so far; is one of a product
    const Expr *left, *right;   // where it may stand: what a sum adds up, or both factors of that
} LooseSearch;

static void loose_visit(Expr *expr, void *context)
{
    LooseSearch *search = context;
    const Tensor *tensor = expr_tensor(expr);
    if (!tensor)
        return;
    bool in_place = expr->kind == EXPR_ACCESS && (expr == search->left || expr == search->right);
    search->loose[tensor->id] &= in_place;
    search->factor[tensor->id] |= in_place && search->left != search->right;
}

bool *streams_find_loose(Arena *arena, const Program *program)
{
    LooseSearch search = {NEW_ARRAY(arena, bool, program->tensor_count),
                          NEW_ARRAY(arena, bool, program->tensor_count), NULL, NULL};
    for (int i = 0; i < program->op_count; i++) {
        const Tensor *out = program->ops[i]->out;
        search.loose[out->id] = is_half(out->dtype) && out->role == ROLE_TEMPORARY && !out->exact;
    }
    for (int i = 0; i < program->op_count; i++) {
        const TensorOp *op = program->ops[i];
        bool sums = op->reduce == REDUCE_SUM,
             multiplies = sums && op->body->kind == EXPR_APPLY && op->body->apply.op == OP_MUL;
        search.left = multiplies ? op->body->apply.operands[0] : sums ? op->body : NULL;
        search.right = multiplies ? op->body->apply.operands[1] : search.left;
        expr_visit(op->body, loose_visit, &search);
    }
    for (int i = 0; i < program->tensor_count; i++)
        search.loose[i] &= search.factor[i];
    return search.loose;
}

bool stream_number(const Expr *expr, double *value)
{
    double a, b = 0;
    if (!dtype_info[expr->type].is_real)
        return false;
    if (expr->kind == EXPR_CONST) {
        *value = expr->constant.real;
        return true;
    }
    bool takes = expr->kind == EXPR_APPLY && op_info[expr->apply.op].operands <= 2 &&
                 stream_number(expr->apply.operands[0], &a) &&
                 (op_info[expr->apply.op].operands == 1 || stream_number(expr->apply.operands[1], &b));
    *value = takes ? op_value(expr->apply.op, a, b) : 0;
    return takes;
}
