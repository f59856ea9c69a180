#include "codegen/family/rows/passes.h"

#include <assert.h>

bool passes_hold(const Fusion *fusion) { return fusion->op_count <= MAX_PASS_OPS; }

uint32_t fusion_columns(const Fusion *fusion)
{
    return ((1u << fusion->axis_count) - 1) & ~((1u << fusion->spatial_count) - 1);
}

// ---- in which pass ----

typedef struct PassSearch {
    const PassPlan *plan;
    int pass;
} PassSearch;

static void pass_visit(Expr *expr, void *context)
{
    PassSearch *search = context;
    const PassPlan *plan = search->plan;
    if (expr->kind != EXPR_VALUE)
        return;
    int needed = plan->of[expr->value] + (plan->fusion->ops[expr->value].reduce != REDUCE_NONE);
    search->pass = needed > search->pass ? needed : search->pass;
}

/* A reduction waits for those that it depends on; the others of its pass go along. */
static void find_order(PassPlan *plan, PassKind kind)
{
    plan->count = 1;
    for (int i = 0; i < plan->fusion->op_count; i++) {
        const FusedOp *op = &plan->fusion->ops[i];
        PassSearch search = {.plan = plan};
        expr_visit(op->body, pass_visit, &search);
        int leader = kind.leader ? kind.leader(plan, i) : -1;
        plan->leader[i] = leader;
        plan->along[i] = -1;
        if (leader >= 0)
            plan->along[leader] = i;
        plan->of[i] = leader >= 0 ? plan->of[leader] : search.pass;
        bool reduces = op->reduce != REDUCE_NONE;
        bool stores = op->stored && fusion_is_of_elements(plan->fusion, &plan->fusion->ops[i]);
        int passes = plan->of[i] + 1 + (reduces && !kind.early);
        plan->count = (reduces || stores) && passes > plan->count ? passes : plan->count;
    }
}

static void place_ops(PassPlan *plan, PassKind kind)
{
    for (int i = 0; i < plan->fusion->op_count; i++) {
        const FusedOp *op = &plan->fusion->ops[i];
        int of = plan->of[i];
        bool of_elements = fusion_is_of_elements(plan->fusion, &plan->fusion->ops[i]);
        if (op->reduce != REDUCE_NONE)
            plan->pass[of].reduced |= OP_BIT(i);
        else if (of_elements && op->stored)
            plan->pass[kind.early ? of : plan->count - 1].stored |= OP_BIT(i);
        else if (!of_elements)
            (of ? &plan->pass[of - 1] : &plan->before)->values |= OP_BIT(i);
    }
}

// ---- what it needs ----

typedef struct Needs {
    const Fusion *fusion;
    const Reads *reads;   // NULL: only ops are looked for
    uint64_t ops;
    RowPass *pass;   // to which reads are added
} Needs;

static void needs_visit(Expr *expr, void *context)
{
    Needs *needs = context;
    int read = expr->kind == EXPR_ACCESS && needs->reads ? reads_index(needs->reads, &expr->access) : -1;
    if (read >= 0)
        needs->pass->reads |= 1u << read;
    else if (expr->kind == EXPR_ACCESS && needs->reads)
        needs->pass->beside = true;
    else if (expr->kind == EXPR_VALUE &&
             fusion_is_of_elements(needs->fusion, &needs->fusion->ops[expr->value]))
        needs->ops |= OP_BIT(expr->value);
}

/* Ops whose elements the bodies of these need, one by way of the other. */
static uint64_t elements_below(const Fusion *fusion, uint64_t ops)
{
    Needs needs = {.fusion = fusion};
    for (int i = fusion->op_count - 1; i >= 0; i--)
        if ((ops | needs.ops) & OP_BIT(i))
            expr_visit(fusion->ops[i].body, needs_visit, &needs);
    return needs.ops;
}

uint64_t passes_elements(const Fusion *fusion, const Expr *expr)
{
    Needs needs = {.fusion = fusion};
    expr_visit((Expr *)expr, needs_visit, &needs);
    return needs.ops | elements_below(fusion, needs.ops);
}

void passes_store(Schedule *schedule, const Fusion *fusion, const TileSpace *space, uint64_t ops)
{
    uint32_t outputs = space_outputs(space), tiles = 0;   // each stored op has one, in order
    for (int i = 0; i < fusion->op_count && outputs; i++)
        if (fusion->ops[i].stored) {
            uint32_t tile = outputs & -outputs;
            tiles |= ops & OP_BIT(i) ? tile : 0;
            outputs &= ~tile;
        }
    schedule_store(schedule, (Move){.tiles = tiles});
}

const RowPass *passes_last(const PassPlan *plan) { return &plan->pass[plan->count - 1]; }

uint64_t passes_made(const PassPlan *plan)
{
    uint64_t made = 0;
    for (int p = 0; p < plan->count; p++)
        made |= plan->pass[p].made;
    return made;
}

static void find_needs(PassPlan *plan, const Reads *reads, PassKind kind)
{
    const Fusion *fusion = plan->fusion;
    uint64_t kept = 0;
    for (int p = 0; p < plan->count; p++) {
        RowPass *pass = &plan->pass[p];
        uint64_t roots = pass->stored;
        FOR_BITS (i, pass->reduced)
            roots |= plan->leader[i] < 0 ? OP_BIT(i) : 0;
        pass->made = (elements_below(fusion, roots) | pass->stored) & ~kept;
        kept |= kind.keeps ? pass->made : 0;
        Needs needs = {.fusion = fusion, .reads = reads, .pass = pass};
        FOR_BITS (i, pass->made | pass->reduced)
            expr_visit(fusion->ops[i].body, needs_visit, &needs);
    }
}

const PassPlan *passes_find(Arena *arena, const Reads *reads, PassKind kind)
{
    PassPlan *plan = NEW(arena, PassPlan);
    plan->fusion = reads->walk.fusion;
    assert(passes_hold(plan->fusion));
    find_order(plan, kind);
    plan->pass = NEW_ARRAY(arena, RowPass, plan->count);
    place_ops(plan, kind);
    find_needs(plan, reads, kind);
    return plan;
}

// ---- fusions ----

bool fusion_counts(const Fusion *fusion, int *reductions, int *of_elements)
{
    *reductions = *of_elements = 0;
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        if (op->reduce != REDUCE_NONE && op->reduced != fusion_columns(fusion))
            return false;
        *reductions += op->reduce != REDUCE_NONE;
        *of_elements += fusion_is_of_elements(fusion, &fusion->ops[i]);
    }
    return true;
}
