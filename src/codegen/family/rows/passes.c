#include "codegen/family/rows/passes.h"

#include <assert.h>

#include "kernel/layout.h"

bool passes_hold(const Fusion *fusion) { return fusion->op_count <= MAX_PASS_OPS; }

uint32_t fusion_columns(const Fusion *fusion)
{
    return ((1u << fusion->axis_count) - 1) & ~((1u << fusion->spatial_count) - 1);
}

bool fusion_op_is_of_elements(const Fusion *fusion, int op)
{
    return (fusion->ops[op].spatial & fusion_columns(fusion)) != 0;
}

typedef struct PassSearch {
    const Fusion *fusion;
    const Passes *passes;
    int pass;
} PassSearch;

static void pass_visit(Expr *expr, void *context)
{
    PassSearch *search = context;
    if (expr->kind != EXPR_VALUE)
        return;
    int needed = search->passes->of[expr->value] + (search->fusion->ops[expr->value].reduce != REDUCE_NONE);
    if (needed > search->pass)
        search->pass = needed;
}

Passes passes_find(const Fusion *fusion)
{
    Passes passes = {.count = 1};
    assert(fusion->op_count <= MAX_PASS_OPS);
    for (int i = 0; i < fusion->op_count; i++) {
        PassSearch search = {.fusion = fusion, .passes = &passes};
        expr_visit(fusion->ops[i].body, pass_visit, &search);
        passes.of[i] = search.pass;
        if (fusion->ops[i].reduce != REDUCE_NONE && search.pass + 2 > passes.count)
            passes.count = search.pass + 2;
    }
    return passes;
}

static void needs_visit(Expr *expr, void *context)
{
    Needs *needs = context;
    if (expr->kind == EXPR_ACCESS) {
        int read = reads_index(needs->reads, &expr->access);
        needs->reads_used |= read >= 0 ? 1u << read : 0;
    } else if (expr->kind == EXPR_VALUE &&
               fusion_op_is_of_elements(needs->fusion, expr->value)) {
        needs->ops |= UINT64_C(1) << expr->value;
        expr_visit(needs->fusion->ops[expr->value].body, needs_visit, context);
    }
}

Needs needs_of(const Fusion *fusion, const Reads *reads, const Expr *expr)
{
    Needs needs = {.fusion = fusion, .reads = reads};
    expr_visit((Expr *)expr, needs_visit, &needs);
    return needs;
}

Needs passes_needs(const Fusion *fusion, const Reads *reads, const Passes *passes, int pass)
{
    Needs needs = {.fusion = fusion, .reads = reads};
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        bool reduces = op->reduce != REDUCE_NONE && passes->of[i] == pass;
        bool stores = op->stored && fusion_op_is_of_elements(fusion, i) && pass == passes->count - 1;
        if (stores)
            needs.ops |= UINT64_C(1) << i;
        if (reduces || stores)
            expr_visit(op->body, needs_visit, &needs);
    }
    return needs;
}

int reads_widest_vector(const Reads *reads, int64_t extent)
{
    int narrowest = 64;
    for (int i = 0; i < reads->count; i++) {
        int bits = dtype_info[reads->reads[i].access->tensor->dtype].bits;
        if (bits > 1 && bits < narrowest)
            narrowest = bits;
    }
    int vector = ACCESS_BYTES * 8 / narrowest;
    while (vector > 1 && extent % vector)
        vector /= 2;
    return vector;
}

int fusion_reductions(const Fusion *fusion)
{
    int count = 0;
    for (int i = 0; i < fusion->op_count; i++)
        count += fusion->ops[i].reduce != REDUCE_NONE;
    return count;
}

bool fusion_counts(const Fusion *fusion, int *reductions, int *of_elements)
{
    *reductions = *of_elements = 0;
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        if (op->reduce != REDUCE_NONE && op->reduced != fusion_columns(fusion))
            return false;
        *reductions += op->reduce != REDUCE_NONE;
        *of_elements += fusion_op_is_of_elements(fusion, i);
    }
    return true;
}

KernelMemory passes_memory(const KernelPlan *plan)
{
    return (KernelMemory){.shared_bytes = schedule_layout(plan->rules).bytes};
}
