// Operations of an expression.
#include "ir/exact_type.h"
#include "kernel/work.h"

/* By a constant: the product with its reciprocal; how much is left, and a correction, once or twice (divide_by of the prelude). */
static void add_quotient(ExprWork *work, const Expr *expr)
{
    int corrections = expr_corrections(expr);
    work->multiplications += corrections ? 1 + 2 * corrections : 0;
    work->additions += 2 * corrections;
    work->divides |= !corrections && dtype_info[expr->type].is_real;
}

/* e / (1 + e), e = exp(-|x|); of floats a product with the reciprocal, corrected once. */
static void add_sigmoid(ExprWork *work, DType type)
{
    work->additions += type == DTYPE_F32 ? 3 : 1;
    work->multiplications += type == DTYPE_F32 ? 3 : 0;
}

/* Of integers only sums and products count, and a choice makes one of its operands. */
static void add_apply(ExprWork *work, const Expr *expr)
{
    bool real = dtype_info[expr->type].is_real;
    switch (expr->apply.op) {
    case OP_ADD: work->additions++; return;
    case OP_SUB: work->additions += real; return;
    case OP_MUL:
    case OP_SQ: work->multiplications++; return;
    case OP_MAX:
    case OP_MIN:
    case OP_RELU: work->comparisons += real; return;
    case OP_SELECT: work->conditional = true; return;
    case OP_DIV: add_quotient(work, expr); return;
    case OP_SIGMOID: add_sigmoid(work, expr->type); break;
    default: break;
    }
    work->functions += op_info[expr->apply.op].class == OP_CLASS_REAL;
}

static void note_apply(Expr *expr, void *context) { *(bool *)context |= expr->kind == EXPR_APPLY; }

static void add_expr(Expr *expr, void *context)
{
    ExprWork *work = context;
    if (expr->kind == EXPR_APPLY)
        add_apply(work, expr);
    else if (expr->kind == EXPR_GUARD)   // beside the tensor it is not made
        expr_visit(expr->guard.body, note_apply, &work->conditional);
}

ExprWork expr_work(const Expr *expr)
{
    ExprWork work = {0};
    expr_visit((Expr *)expr, add_expr, &work);
    return work;
}

static void add_times(int64_t *count, int each, int64_t times)
{
    if (each)
        count_add(count, times == COUNT_UNKNOWN ? COUNT_UNKNOWN : each * times);
}

void work_add_values(ItemWork *work, const ExprWork *of, int64_t values)
{
    int64_t known = of->conditional ? COUNT_UNKNOWN : values;
    add_times(&work->functions, of->functions, known);
    add_times(&work->additions, of->additions, known);
    add_times(&work->multiplications, of->multiplications, known);
    add_times(&work->comparisons, of->comparisons, known);
}
