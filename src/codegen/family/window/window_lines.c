// Lines of an image in shared memory, where each element has a place that suits the banks.
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "codegen/family/window/window_parts.h"
#include "rtile/space.h"

/* The dimension is the direction's alone, and windows do not go backwards; what lies between the first and the last
   input of any outputs is read. */
static bool find_line_axis(const Stencil *stencil, const WindowOperand *operand, Direction direction,
                           const Dim *dim, LineAxis *axis)
{
    enum { MOST = INT32_MAX / 4 };
    const WindowAxis *reach = &operand->reach[direction];
    WindowAxis window;
    if (reach->output < 0 || !window_find(stencil->fusion, dim, &window) || window.output != reach->output ||
        (window.tap >= 0 && window.tap != reach->tap))
        return false;
    int64_t outputs = window.outputs, first = -window.pad, step = window.stride;
    int64_t by_tap = window.tap < 0 ? 0 : window.dilation;
    int64_t reached = size_product(outputs - 1, step),
            taps = size_product(stencil_taps(stencil, direction) - 1, by_tap);
    if (step < 1 || by_tap < 0 || dim->size > MOST || reached > MOST || taps > MOST || first > MOST ||
        first < -MOST)
        return false;
    if (by_tap > 1 || taps + 1 < step)
        return false;
    *axis = (LineAxis){
        .inputs = (int32_t)dim->size,
        .outputs = (int32_t)outputs,
        .step = (int32_t)step,
        .unit = (int32_t)(reach->tap < 0 || reach->stride == 1 ? step : by_tap),
        .first = (int32_t)first,
        .reach = (int32_t)taps + 1,
    };
    return window_covered(axis).count > 0;
}

Covered window_covered(const LineAxis *axis)
{
    int64_t begin = larger(axis->first, 0), last = (int64_t)axis->first + (axis->outputs - 1) * axis->step;
    return (Covered){begin, smaller(last + axis->reach, axis->inputs) - begin};
}

/* What the access reads, and zero where that lies beside the image. */
static bool is_zero_outside(const Expr *expr, const Access *access)
{
    if (expr->kind != EXPR_GUARD)
        return true;
    const Expr *otherwise = expr->guard.otherwise;
    double value =
        dtype_info[otherwise->type].is_real ? otherwise->constant.real : (double)otherwise->constant.integer;
    return value == 0 && !signbit(value) && window_guards(&expr->guard, access, access->rank - DIRECTIONS);
}

bool window_has_whole_pieces(const Access *access)
{
    int64_t columns = access->dims[access->rank - 1].size;
    return size_product(columns, dtype_info[access->tensor->dtype].bits) % (8 * VECTOR_BYTES) == 0;
}

/* The last pair may reach past the end of a line, where nothing but the staged tensor may be read; and lines
   of whole pieces are better copied by pieces, as strips do. */
static bool pairs_suit(const Stencil *stencil, const Access *access)
{
    return stencil_extent(stencil, DIRECTION_ALONG) > 1 && stencil->count == 1 &&
           stencil_is_safe_along(stencil) && !window_has_whole_pieces(access);
}

bool window_lines_find(const Stencil *stencil, const StagedInput *stage, WindowLines *lines)
{
    const Access *access = stage->access;
    int64_t taps = stencil_taps(stencil, DIRECTION_DOWN) * stencil_taps(stencil, DIRECTION_ALONG);
    int bits = access ? dtype_info[access->tensor->dtype].bits : 0;
    if ((bits != 32 && bits != 64) || access->rank < DIRECTIONS || reduction_points(stencil->fusion) != taps ||
        !pairs_suit(stencil, access))
        return false;
    const WindowOperand *operand = stencil->operands;
    while (operand_access(operand->expr) != access)
        operand++;
    const Dim *last = &access->dims[access->rank - DIRECTIONS];
    *lines = (WindowLines){.element_bytes = bits / 8};
    for (Direction direction = 0; direction < DIRECTIONS; direction++)
        if (!find_line_axis(stencil, operand, direction, &last[direction], &lines->axis[direction]))
            return false;
    return last[0].size * last[1].size == stage->plane && is_zero_outside(operand->expr, access);
}

/* Of so many groups of threads, each of which copies lines of a plane, planes at the same time: all groups
   have work, or as many as there are planes. */
static int64_t planes_together(int64_t groups, int64_t planes)
{
    int64_t best = 1;
    for (int64_t together = 1; together <= smaller(groups, planes); together++)
        if (groups / together * together >= groups / best * best)
            best = together;
    return best;
}

/* Elements that each of the threads copies if so many of them share a line. */
static int64_t copies_each(const LineLayout *layout, int64_t planes, int64_t threads, int64_t lanes)
{
    int64_t groups = threads / lanes, together = planes_together(groups, planes);
    return ceil_div(layout->columns, lanes) * ceil_div(planes, together) *
           ceil_div(layout->rows, groups / together);
}

/* Threads that share a line: all of its columns where threads then copy clearly less than by warps. Of 48
   columns 63 threads copy 48 each, in warps 96; of 88 columns 126 threads 48 either way. */
static int64_t copy_lanes(const LineLayout *layout, int64_t planes, int64_t threads)
{
    enum { WARP = 32 };
    int64_t lanes = smaller(WARP, threads), by_warps = copies_each(layout, planes, threads, lanes);
    bool fits = layout->columns <= threads;
    bool pays = fits && 8 * copies_each(layout, planes, threads, layout->columns) < 7 * by_warps;
    return pays || layout->columns < lanes ? layout->columns : lanes;
}

/* Threads side by side have columns side by side, then those below them, then those of the next plane: so
   that they meet no bank twice, a plane begins in the bank behind the last of the one before it. Of 21 x 21
   elements and one column a thread planes are 469 apart, 14 * 32 + 21. */
LineLayout window_line_layout(const WindowLines *lines, const RTile *block, const RTile *inner)
{
    enum { BANK_BYTES = 128 };
    const LineAxis *row = &lines->axis[DIRECTION_DOWN], *column = &lines->axis[DIRECTION_ALONG];
    Covered rows = window_covered(row);
    int64_t banks = BANK_BYTES / lines->element_bytes, planes = block->size[OUTER];
    int64_t plane_threads = block->size[DOWN] / inner->size[DOWN] * (block->size[ALONG] / PAIR);
    LineLayout layout = {
        .whole = block->size[DOWN] == inner->size[DOWN] && block->size[DOWN] >= row->outputs,
        .phases = column->step * PAIR,
        .left = column->first,
        .columns = (block->size[ALONG] - 1) * column->step + column->reach,
    };
    layout.top = layout.whole ? rows.first : row->first;
    layout.rows = layout.whole ? rows.count : (block->size[DOWN] - 1) * row->step + row->reach;
    layout.phase = ceil_div(layout.columns, layout.phases);
    layout.line_pitch = layout.phase * layout.phases;
    int64_t plane = size_product(layout.rows, layout.line_pitch);
    layout.plane_pitch = planes > 1 ? round_up_to_rest(plane, banks, plane_threads) : plane;
    layout.bytes = round_up(size_product(size_product(planes, layout.plane_pitch), lines->element_bytes), 16);
    layout.lanes = copy_lanes(&layout, planes, planes * plane_threads);
    layout.together = planes_together(planes * plane_threads / layout.lanes, planes);
    return layout;
}
