// What is known of softmax, and which reductions of a row grow along with another one.
#include "base/checked.h"
#include "codegen/family/rows/rowwise_parts.h"

// ---- what an expression depends on ----

static bool is_of_elements(const Expr *expr, const void *context)
{
    const Fusion *fusion = context;
    return expr->kind == EXPR_VALUE && fusion_is_of_elements(fusion, &fusion->ops[expr->value]);
}

/* Not the same for all elements of a row. */
static bool varies(const Fusion *fusion, const Expr *expr)
{
    return expr_axes(expr) & fusion_columns(fusion) || expr_find(expr, is_of_elements, fusion);
}

// ---- sums of exponentials below a maximum ----

/* exp(a - m) with m = max[j] a, or the value of such an op: the position of m; else -1. */
static int maximum_below(const Fusion *fusion, const Expr *body)
{
    if (body->kind == EXPR_VALUE && fusion->ops[body->value].out->dtype == DTYPE_F32)
        body = fusion->ops[body->value].body;
    if (body->type != DTYPE_F32 || !expr_is(body, OP_EXP) || !expr_is(body->apply.operands[0], OP_SUB))
        return -1;
    const Expr *difference = body->apply.operands[0], *below = difference->apply.operands[1];
    if (below->kind != EXPR_VALUE)
        return -1;
    const FusedOp *maximum = &fusion->ops[below->value];
    bool is_maximum = maximum->reduce == REDUCE_MAX && maximum->out->dtype == DTYPE_F32 &&
                      expr_equal(maximum->body, difference->apply.operands[0]);
    return is_maximum ? below->value : -1;
}

/* sum[j] exp(a - m) with m = max[j] a before it: the position of m; else -1. */
static int maximum_of(const Fusion *fusion, int sum)
{
    return fusion->ops[sum].reduce == REDUCE_SUM ? maximum_below(fusion, fusion->ops[sum].body) : -1;
}

bool rowwise_divides(const Fusion *fusion, int op)
{
    Expr *body = fusion->ops[op].body;
    bool is_f32 = body->type == DTYPE_F32 && dtype_info[fusion->ops[op].out->dtype].compute == DTYPE_F32;
    return fusion_is_of_elements(fusion, &fusion->ops[op]) && expr_is(body, OP_DIV) && is_f32 &&
           varies(fusion, body->apply.operands[0]) && !varies(fusion, body->apply.operands[1]);
}

// ---- softmax: exponentials below a maximum, divided by their sum ----

/* An exponential, or a sum of them. */
static bool is_exponential(const Expr *expr, const void *fusion)
{
    bool is_sum = expr->kind == EXPR_VALUE && maximum_of(fusion, expr->value) >= 0;
    return expr_is(expr, OP_EXP) || is_sum || maximum_below(fusion, expr) >= 0;
}

bool rowwise_is_softmax(const Fusion *fusion, int op)
{
    const Expr *body = fusion->ops[op].body;
    if (!rowwise_divides(fusion, op) || body->apply.operands[1]->kind != EXPR_VALUE)
        return false;
    int maximum = maximum_below(fusion, body->apply.operands[0]);
    return maximum >= 0 && maximum_of(fusion, body->apply.operands[1]->value) == maximum;
}

DType rowwise_softmax_type(const Fusion *fusion)
{
    DType type = DTYPE_F32;
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        bool is_term = op->reduce == REDUCE_NONE ? expr_is(op->body, OP_EXP) : op->reduce == REDUCE_SUM;
        is_term = is_term && maximum_below(fusion, op->body) >= 0;
        bool is_narrow = op->out->dtype == DTYPE_F16 || op->out->dtype == DTYPE_BF16;
        if (rowwise_is_softmax(fusion, i) && is_narrow && (type == DTYPE_F32 || type == op->out->dtype))
            type = op->out->dtype;
        else if (is_term ? op->stored : expr_find(op->body, is_exponential, fusion) != NULL)
            return DTYPE_F32;
    }
    return type;
}

// ---- passes ----

/* Squared distances from what is known when the sum of the same elements is: the position of that sum; else
   -1. What the group has left of both lies where another reduction's results would, so that none may come
   between. */
int rowwise_along_sum(const PassPlan *plan, int distances)
{
    const Fusion *fusion = plan->fusion;
    CentredSum sum;
    if (!fusion_centred_sum(fusion, distances, &sum) || plan->along[sum.total] >= 0)
        return -1;
    bool is_total = fusion->ops[sum.centre].reduce != REDUCE_NONE;
    if (plan->of[sum.centre] + is_total != plan->of[sum.total] + 1)
        return -1;
    for (int i = sum.total + 1; i < distances; i++)
        if (fusion->ops[i].reduce != REDUCE_NONE && plan->of[i] == plan->of[sum.total])
            return -1;
    return sum.total;
}

int rowwise_along_any(const PassPlan *plan, int op)
{
    int maximum = maximum_of(plan->fusion, op);
    return maximum >= 0 && plan->along[maximum] < 0 ? maximum : rowwise_along_sum(plan, op);
}

// ---- results ----

bool rowwise_shares_parts(const PassPlan *plan, int op)
{
    return plan->fusion->ops[op].reduce == REDUCE_SUM && plan->along[op] >= 0;
}

uint64_t rowwise_rounds(const PassPlan *plan, int pass)
{
    uint64_t rounds = 0;
    FOR_BITS (i, plan->pass[pass].reduced)
        rounds |= plan->leader[i] >= 0 && rowwise_shares_parts(plan, plan->leader[i]) ? 0 : OP_BIT(i);
    return rounds;
}

int rowwise_result_bytes(const PassPlan *plan)
{
    enum { LEAST_BYTES = 4, MOST_BYTES = 8, FIELDS = 2 };   // of a Part in templates/rowwise.cu
    int widest = LEAST_BYTES;
    for (int i = 0; i < plan->fusion->op_count; i++) {
        const FusedOp *op = &plan->fusion->ops[i];
        int bytes = dtype_info[op->body->type].bits > 8 * LEAST_BYTES ? MOST_BYTES : LEAST_BYTES;
        bytes *= rowwise_shares_parts(plan, i) ? FIELDS : 1;
        widest = op->reduce != REDUCE_NONE && bytes > widest ? bytes : widest;
    }
    return widest;
}
