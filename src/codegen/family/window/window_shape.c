// What a window kernel keeps of its input, and what a block stages.
#include "base/checked.h"
#include "codegen/family/window/window_parts.h"
#include "rtile/space.h"

WindowChoice window_choice(const TileRules *rules)
{
    WindowChoice choice;
    rules_chosen(rules, &choice, sizeof choice);
    return choice;
}

Stencil window_stencil(const Fusion *fusion, WindowKeeps keeps)
{
    return keeps == KEEPS_NOTHING ? stencil_none(fusion) : stencil_find(fusion);
}

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
    const FusedOp *found = NULL;
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored) {
            if (found)
                return NULL;
            found = &fusion->ops[i];
        }
    return access_is_flat(&found->store, fusion) ? found : NULL;
}

StagedInput window_stage(const Stencil *stencil)
{
    StagedInput best = {0};
    for (int i = 0; i < stencil->count; i++) {
        const Access *access = operand_access(stencil->operands[i].expr);
        StagedInput stage = access ? stage_of(stencil, access) : (StagedInput){0};
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

// ---- lines ----

/* The dimension is the direction's alone, and windows do not go backwards. */
static bool find_line_axis(const Stencil *stencil, const WindowOperand *operand, Direction direction,
                           const Dim *dim, LineAxis *axis)
{
    enum { MOST = INT32_MAX / 4 };
    const TapReach *reach = &operand->reach[direction];
    int output = stencil->axis[direction], tap = reach->tap;
    if (output < 0 || !reach->moves)
        return false;
    for (int a = 0; a < stencil->fusion->axis_count; a++)
        if (a != output && a != tap && dim->index.coef[a])
            return false;
    int64_t outputs = stencil_extent(stencil, direction), first = dim->index.constant;
    int64_t step = dim->index.coef[output], by_tap = tap < 0 ? 0 : dim->index.coef[tap];
    int64_t reached = size_product(outputs - 1, step),
            covered = size_product(stencil_taps(stencil, direction) - 1, by_tap);
    if (step < 1 || by_tap < 0 || dim->size > MOST || reached > MOST || covered > MOST || first > MOST ||
        first < -MOST)
        return false;
    int64_t begin = larger(first, 0), end = smaller(first + reached + covered + 1, dim->size);
    *axis = (LineAxis){
        .inputs = (int32_t)dim->size,
        .outputs = (int32_t)outputs,
        .step = (int32_t)step,
        .unit = (int32_t)(tap < 0 || reach->step == 1 ? step : by_tap),
        .first = (int32_t)first,
        .begin = (int32_t)begin,
        .count = (int32_t)(end - begin),
    };
    return begin < end;
}

bool window_lines_find(const Stencil *stencil, const StagedInput *stage, WindowLines *lines)
{
    const Access *access = stage->access;
    int64_t taps = stencil_taps(stencil, DIRECTION_DOWN) * stencil_taps(stencil, DIRECTION_ALONG);
    int bits = access ? dtype_info[access->tensor->dtype].bits : 0;
    if ((bits != 32 && bits != 64) || access->rank < DIRECTIONS ||
        reduction_points(stencil->fusion) != taps ||
        stencil_extent(stencil, DIRECTION_DOWN) > MAX_WINDOW_HEIGHT)
        return false;
    const WindowOperand *operand = stencil->operands;
    while (operand_access(operand->expr) != access)
        operand++;
    const Dim *last = &access->dims[access->rank - DIRECTIONS];
    *lines = (WindowLines){.element_bytes = bits / 8};
    for (Direction direction = 0; direction < DIRECTIONS; direction++)
        if (!find_line_axis(stencil, operand, direction, &last[direction], &lines->axis[direction]))
            return false;
    return last[0].size * last[1].size == stage->plane;
}

/* Threads side by side have columns side by side, then those of the next plane: so that they meet no bank
   twice, a plane begins in the bank behind the last column of the one before it. Of 21 x 21 elements planes
   are 469 apart, 14 * 32 + 21. */
LineLayout window_line_layout(const WindowLines *lines, int64_t planes)
{
    enum { BANK_BYTES = 128 };
    const LineAxis *row = &lines->axis[DIRECTION_DOWN], *column = &lines->axis[DIRECTION_ALONG];
    int64_t banks = BANK_BYTES / lines->element_bytes;
    LineLayout layout = {.phase = ceil_div(column->count, column->step)};
    layout.line_pitch = layout.phase * column->step;
    int64_t plane = size_product(row->count, layout.line_pitch);
    layout.plane_pitch = round_up_to_rest(plane, banks, column->outputs);
    layout.bytes = round_up(size_product(size_product(planes, layout.plane_pitch), lines->element_bytes), 16);
    return layout;
}
