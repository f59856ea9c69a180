// In which pass over a row each op is computed.
#include <assert.h>

#include "base/checked.h"
#include "codegen/family/rows/rowwise_parts.h"

// ---- what an expression depends on ----

typedef struct RowDependence {
    const Fusion *fusion;
    const RowPasses *passes;   // of the ops before
    bool varies;               // along the row
    int pass;
    uint64_t needs;
} RowDependence;

static void dependence_visit(Expr *expr, void *context)
{
    RowDependence *found = context;
    if (expr->kind != EXPR_VALUE)
        return;
    bool of_elements = fusion_op_is_of_elements(found->fusion, expr->value);
    found->varies |= of_elements;
    found->needs |= (uint64_t)1 << expr->value;
    if (!found->passes)
        return;
    found->needs |= of_elements ? found->passes->needs[expr->value] : 0;
    bool reduces = found->fusion->ops[expr->value].reduce != REDUCE_NONE;
    int pass = found->passes->pass[expr->value] + reduces;
    found->pass = pass > found->pass ? pass : found->pass;
}

/* Not the same for all elements of a row. */
static bool varies(const Fusion *fusion, Expr *expr)
{
    RowDependence found = {.fusion = fusion, .varies = (expr_axes(expr) & fusion_columns(fusion)) != 0};
    expr_visit(expr, dependence_visit, &found);
    return found.varies;
}

// ---- sums of exponentials below a maximum ----

static bool is_op(const Expr *expr, Op op) { return expr->kind == EXPR_APPLY && expr->apply.op == op; }

/* exp(a - m) with m = max[j] a, or the value of such an op: the position of m; else -1. */
static int maximum_below(const Fusion *fusion, const Expr *body)
{
    if (body->kind == EXPR_VALUE && fusion->ops[body->value].out->dtype == DTYPE_F32)
        body = fusion->ops[body->value].body;
    if (body->type != DTYPE_F32 || !is_op(body, OP_EXP) || !is_op(body->apply.operands[0], OP_SUB))
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
    return fusion_op_is_of_elements(fusion, op) && is_op(body, OP_DIV) && is_f32 &&
           varies(fusion, body->apply.operands[0]) &&
           !varies(fusion, body->apply.operands[1]);
}

// ---- softmax: exponentials below a maximum, divided by their sum ----

typedef struct ExponentialSearch {
    const Fusion *fusion;
    bool found;
} ExponentialSearch;

static void exponential_visit(Expr *expr, void *context)
{
    ExponentialSearch *search = context;
    bool is_sum = expr->kind == EXPR_VALUE && maximum_of(search->fusion, expr->value) >= 0;
    search->found |= is_op(expr, OP_EXP) || is_sum || maximum_below(search->fusion, expr) >= 0;
}

/* Exponentials, or sums of them. */
static bool has_exponentials(const Fusion *fusion, Expr *expr)
{
    ExponentialSearch search = {.fusion = fusion};
    expr_visit(expr, exponential_visit, &search);
    return search.found;
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
        bool is_term = op->reduce == REDUCE_NONE ? is_op(op->body, OP_EXP) : op->reduce == REDUCE_SUM;
        is_term = is_term && maximum_below(fusion, op->body) >= 0;
        bool is_narrow = op->out->dtype == DTYPE_F16 || op->out->dtype == DTYPE_BF16;
        if (rowwise_is_softmax(fusion, i) && is_narrow && (type == DTYPE_F32 || type == op->out->dtype))
            type = op->out->dtype;
        else if (is_term ? op->stored : has_exponentials(fusion, op->body))
            return DTYPE_F32;
    }
    return type;
}

// ---- passes ----

/* Squared distances from what is known when the sum of the same elements is: the position of that sum; else
   -1. What the group has left of both lies where another reduction's results would, so that none may come
   between. */
static int sum_of(const Fusion *fusion, const RowPasses *passes, int distances)
{
    CentredSum sum;
    if (!fusion_centred_sum(fusion, distances, &sum) || passes->along[sum.total] >= 0)
        return -1;
    bool is_total = fusion->ops[sum.centre].reduce != REDUCE_NONE;
    if (passes->pass[sum.centre] + is_total != passes->pass[sum.total] + 1)
        return -1;
    for (int i = sum.total + 1; i < distances; i++)
        if (fusion->ops[i].reduce != REDUCE_NONE && passes->pass[i] == passes->pass[sum.total])
            return -1;
    return sum.total;
}

/* Along with which reduction the op grows; -1: none. */
static int leader_of(const Fusion *fusion, RowHome home, const RowPasses *passes, int op)
{
    int maximum = home == ROW_IN_MEMORY ? maximum_of(fusion, op) : -1;
    if (maximum >= 0 && passes->along[maximum] < 0)
        return maximum;
    return rowwise_keeps(home) ? -1 : sum_of(fusion, passes, op);
}

RowPasses rowwise_passes(const Fusion *fusion, RowHome home)
{
    RowPasses passes = {0};
    assert(passes_hold(fusion));
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        RowDependence found = {.fusion = fusion, .passes = &passes};
        expr_visit(op->body, dependence_visit, &found);
        int leader = leader_of(fusion, home, &passes, i);
        passes.leader[i] = leader;
        passes.along[i] = -1;
        if (leader >= 0) {
            passes.along[leader] = i;
            found.pass = passes.pass[leader];
            found.needs = passes.needs[leader];
        }
        passes.pass[i] = found.pass;
        passes.needs[i] = found.needs;
        bool walks = op->reduce != REDUCE_NONE || (op->stored && fusion_op_is_of_elements(fusion, i));
        if (walks && found.pass >= passes.count)
            passes.count = found.pass + 1;
    }
    return passes;
}

// ---- results ----

bool rowwise_shares_parts(const Fusion *fusion, const RowPasses *passes, int op)
{
    return fusion->ops[op].reduce == REDUCE_SUM && passes->along[op] >= 0;
}

bool rowwise_takes_round(const Fusion *fusion, const RowPasses *passes, int op)
{
    int leader = passes->leader[op];
    return fusion->ops[op].reduce != REDUCE_NONE &&
           !(leader >= 0 && rowwise_shares_parts(fusion, passes, leader));
}

int rowwise_rounds(const Fusion *fusion, const RowPasses *passes)
{
    int rounds = 0;
    for (int i = 0; i < fusion->op_count; i++)
        rounds += rowwise_takes_round(fusion, passes, i);
    return rounds;
}

int rowwise_result_bytes(const Fusion *fusion, const RowPasses *passes)
{
    enum { LEAST_BYTES = 4, MOST_BYTES = 8, FIELDS = 2 };   // of a Part in templates/rowwise.cu
    int widest = LEAST_BYTES;
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        int bytes = dtype_info[op->body->type].bits > 8 * LEAST_BYTES ? MOST_BYTES : LEAST_BYTES;
        bytes *= rowwise_shares_parts(fusion, passes, i) ? FIELDS : 1;
        widest = op->reduce != REDUCE_NONE && bytes > widest ? bytes : widest;
    }
    return widest;
}
