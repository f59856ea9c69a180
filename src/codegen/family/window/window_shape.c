// What a window kernel keeps of its input, and what a block stages.
#include "base/checked.h"
#include "codegen/family/window/window_parts.h"
#include "rtile/space.h"

// ---- what is staged ----

/* Do the access' elements lie plane after plane, in the order of the outer positions? Then elements of one
   plane. */
static int64_t plane_of(const Stencil *stencil, const Access *access, const Affine *offset)
{
    int64_t plane = 1, stride;
    int outer_end = stencil->fusion->spatial_count - DIRECTIONS;
    for (int d = access->rank - 1; d >= 0; d--) {
        bool is_inner = false;
        for (int a = outer_end < 0 ? 0 : outer_end; a < stencil->fusion->axis_count; a++)
            is_inner |= access->dims[d].index.coef[a] != 0;
        if (is_inner)
            plane *= access->dims[d].size;
        else if (access->dims[d].index.constant)
            return 0;   // another plane than the outputs'
    }
    stride = plane;
    for (int a = outer_end - 1; a >= 0; a--) {
        if (offset->coef[a] != stride)
            return 0;
        stride *= stencil->fusion->axes[a].extent;
    }
    return stride == tensor_elements(access->tensor) ? plane : 0;
}

const Access *operand_access(const Expr *expr)
{
    if (expr->kind == EXPR_GUARD)
        expr = expr->guard.body;
    return expr->kind == EXPR_ACCESS && expr->access.tensor->dtype != DTYPE_B1 ? &expr->access : NULL;
}

static StagedInput stage_of(const Stencil *stencil, const Access *access)
{
    const Fusion *fusion = stencil->fusion;
    Affine offset = access_offset(access);
    StagedInput stage = {.access = access, .plane = plane_of(stencil, access, &offset)};
    if (stencil->axis[DIRECTION_DOWN] >= 0)
        stage.down_step = offset.coef[stencil->axis[DIRECTION_DOWN]];
    int64_t extents[MAX_AXES];
    for (int a = 0; a < fusion->axis_count; a++)
        extents[a] = a < stencil->axis[DIRECTION_ALONG] ? 1 : fusion->axes[a].extent;
    bool known = affine_range(&offset, extents, fusion->axis_count, &stage.low, &stage.high);
    return known && stage.plane && stage.down_step >= 0 ? stage : (StagedInput){0};
}

const FusedOp *window_collected(const Fusion *fusion)
{
    const FusedOp *only = fusion_only_output(fusion);
    return only && access_is_flat(&only->store, fusion) ? only : NULL;
}

/* Adjacent outputs read common elements, or elements are narrower than a word, of which a thread loads one at a time. */
static bool gains_by_staging(const WindowOperand *operand, const Access *access)
{
    bool overlap = false;
    for (Direction d = 0; d < DIRECTIONS; d++)
        overlap |= operand_extent(operand, d, 2) < 2 * operand_extent(operand, d, 1);
    return overlap || dtype_info[access->tensor->dtype].bits < 32;
}

StagedInput window_stage(const Stencil *stencil)
{
    StagedInput best = {0};
    for (int i = 0; i < stencil->count; i++) {
        const Access *access = operand_access(stencil->operands[i].expr);
        bool gains = access && gains_by_staging(&stencil->operands[i], access);
        StagedInput stage = gains ? stage_of(stencil, access) : (StagedInput){0};
        if (stage.access &&
            (!best.access || tensor_elements(access->tensor) > tensor_elements(best.access->tensor)))
            best = stage;
    }
    return best;
}

bool window_reads_filters_first(const Stencil *stencil, const StagedInput *stage)
{
    int64_t taps = stencil_taps(stencil, DIRECTION_DOWN) * stencil_taps(stencil, DIRECTION_ALONG);
    return stage->access && stencil->filter_count && stencil_filter_elements(stencil) <= MAX_KEPT_TAPS &&
           reduction_points(stencil->fusion) == taps;
}
