// Facts about a fused kernel that several families and the model need.
#include "base/checked.h"
#include "ir/fuse.h"

typedef struct AccessSearch {
    FusedAccess *found;
    int count, most, op;
    int places;   // of fetches around
} AccessSearch;

static void find_accesses(AccessSearch *search, const Expr *expr, bool guarded);

/* What its places read, then the element itself. */
static void find_fetch(AccessSearch *search, const Expr *expr, bool guarded)
{
    const Fetch *fetch = &expr->fetch;
    search->places++;
    for (int i = 0; i < fetch->count; i++)
        find_accesses(search, fetch->places[i].value, guarded);
    search->places--;
    if (search->count < search->most)
        search->found[search->count] =
            (FusedAccess){&fetch->access, fetch, search->places > 0, guarded, search->op};
    search->count++;
}

static void find_accesses(AccessSearch *search, const Expr *expr, bool guarded)
{
    switch (expr->kind) {
    case EXPR_ACCESS:
        if (search->count < search->most)
            search->found[search->count] =
                (FusedAccess){&expr->access, NULL, search->places > 0, guarded, search->op};
        search->count++;
        break;
    case EXPR_FETCH: find_fetch(search, expr, guarded); break;
    case EXPR_GUARD: find_accesses(search, expr->guard.body, true); break;
    case EXPR_CAST: find_accesses(search, expr->cast.body, guarded); break;
    case EXPR_APPLY:
        for (int i = 0; i < op_info[expr->apply.op].operands; i++)
            find_accesses(search, expr->apply.operands[i], guarded);
        break;
    case EXPR_CONST:
    case EXPR_INDEX:
    case EXPR_VALUE: break;
    }
}

int fusion_accesses(const Fusion *fusion, FusedAccess *found, int most)
{
    AccessSearch search = {.found = found, .most = most};
    for (search.op = 0; search.op < fusion->op_count; search.op++)
        find_accesses(&search, fusion->ops[search.op].body, false);
    return search.count < most ? search.count : most;
}

Affine fused_offset(const Fusion *fusion, const FusedAccess *found)
{
    Affine offset = access_offset(found->access);
    for (int i = 0; found->fetch && i < found->fetch->count; i++) {
        uint32_t axes = expr_axes(found->fetch->places[i].value);
        int64_t stride = found->fetch->places[i].stride;
        for (int a = fusion->axis_count - 1; a >= 0; a--)
            if (axes >> a & 1) {
                offset.coef[a] = fitting_add(offset.coef[a], stride);
                stride = fitting_mul(stride, fusion->axes[a].extent);
            }
    }
    return offset;
}

static void fetch_visit(Expr *expr, void *context) { *(bool *)context |= expr->kind == EXPR_FETCH; }

bool fusion_fetches(const Fusion *fusion)
{
    bool found = false;
    for (int i = 0; i < fusion->op_count; i++)
        expr_visit(fusion->ops[i].body, fetch_visit, &found);
    return found;
}

bool fusion_is_uniform(const Fusion *fusion)
{
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].spatial != (1u << fusion->spatial_count) - 1)
            return false;
    return true;
}

bool fusion_reduces(const Fusion *fusion)
{
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].reduce != REDUCE_NONE)
            return true;
    return false;
}

const FusedOp *fusion_only_output(const Fusion *fusion)
{
    const FusedOp *only = NULL;
    for (int i = 0; i < fusion->op_count; i++) {
        if (fusion->ops[i].stored && only)
            return NULL;
        only = fusion->ops[i].stored ? &fusion->ops[i] : only;
    }
    return only;
}

bool fusion_is_reduction(const Fusion *fusion)
{
    uint32_t spatial = (1u << fusion->spatial_count) - 1, all = (1u << fusion->axis_count) - 1;
    const FusedOp *ops = fusion->ops;
    if (ops[0].reduce == REDUCE_NONE || ops[0].reduced != (all & ~spatial) || !ops[0].reduced)
        return false;
    for (int i = 1; i < fusion->op_count; i++)
        if (ops[i].reduce != REDUCE_NONE)
            return false;
    return fusion_is_uniform(fusion);
}

bool fusion_is_beside(const Fusion *fusion)
{
    uint32_t seen = 0;
    int reductions = 0;
    for (int i = 0; i < fusion->op_count; i++) {
        if (seen & fusion->ops[i].reduced)
            return false;
        seen |= fusion->ops[i].reduced;
        reductions += fusion->ops[i].reduce != REDUCE_NONE;
    }
    return reductions > 1;
}

static void work_visit(Expr *expr, void *context)
{
    FusionWork *work = context;
    work->is_f64 |= expr->type == DTYPE_F64;
    if (expr->kind != EXPR_APPLY)
        return;
    OpClass class = op_info[expr->apply.op].class;
    bool divides =
        expr->apply.op == OP_DIV && expr->apply.operands[1]->kind != EXPR_CONST;   // else it multiplies
    if (class == OP_CLASS_REAL || divides)
        work->special += 1;
    work->flops += 1;
}

FusionWork fusion_work(const Fusion *fusion)
{
    FusionWork total = {0};
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        FusionWork work = {.flops = op->reduce != REDUCE_NONE};
        expr_visit(op->body, work_visit, &work);
        double points = 1;   // of the whole space for one of the op's
        for (int a = fusion->spatial_count; a < fusion->axis_count; a++)
            points *= (op->spatial | op->reduced) >> a & 1 ? 1 : (double)fusion->axes[a].extent;
        double share = 1 / points;
        total.flops += work.flops * share;
        total.special += work.special * share;
        total.is_f64 |= work.is_f64;
    }
    return total;
}
