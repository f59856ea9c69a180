#include "ir/window.h"

#include "base/checked.h"

enum { MAX_TAPS = 64 };   // along an axis: the largest depthwise filters in use are 51 x 51

const WindowAxis window_point = {
    .output = -1, .tap = -1, .outputs = 1, .taps = 1, .inputs = 1, .stride = 1, .dilation = 1};

int window_only_axis(const Affine *form, int first, int end)
{
    int found = -1;
    for (int a = first; a < end; a++)
        if (form->coef[a])
            found = found == -1 ? a : -2;
    return found;
}

bool window_find_standing(const Fusion *fusion, const Dim *dim, WindowAxis *axis)
{
    int output = window_only_axis(&dim->index, 0, fusion->spatial_count);
    int tap = window_only_axis(&dim->index, fusion->spatial_count, fusion->axis_count);
    if (output < -1 || tap < -1)
        return false;
    *axis = window_point;
    axis->output = output, axis->tap = tap;
    axis->inputs = dim->size;
    axis->pad = -dim->index.constant;
    if (output >= 0) {
        axis->outputs = fusion->axes[output].extent;
        axis->stride = dim->index.coef[output];
    }
    if (tap >= 0) {
        axis->taps = fusion->axes[tap].extent;
        axis->dilation = dim->index.coef[tap];
    }
    return true;
}

bool window_find(const Fusion *fusion, const Dim *dim, WindowAxis *axis)
{
    return window_find_standing(fusion, dim, axis) && axis->output >= 0;
}

Affine window_index(const WindowAxis *axis, int output, int tap)
{
    Affine index = {.constant = -axis->pad};
    index.coef[output] = axis->stride;
    index.coef[tap] = axis->dilation;
    return index;
}

bool window_has_tap(const Fusion *fusion, int axis)
{
    uint32_t outputs = (1u << fusion->spatial_count) - 1;
    if (fusion->axes[axis].extent > MAX_TAPS)
        return false;
    FusedAccess found[MAX_ACCESSES];
    int count = fusion_accesses(fusion, found, MAX_ACCESSES);
    for (int i = 0; i < count; i++)
        for (int d = 0; d < found[i].access->rank; d++) {
            const Affine *index = &found[i].access->dims[d].index;
            if (index->coef[axis] && affine_axes(index) & outputs)
                return true;
        }
    return false;
}

/* The form has a position and taps; and neighbouring positions have taps in common. */
static bool slides(const Fusion *fusion, const Affine *form, bool *overlap)
{
    int64_t step = 0, reach = 0;
    for (int a = 0; a < fusion->axis_count; a++) {
        int64_t coef = form->coef[a] < 0 ? -form->coef[a] : form->coef[a];
        if (a >= fusion->spatial_count)
            reach += fitting_mul(coef, fusion->axes[a].extent - 1);
        else if (coef && (!step || coef < step))
            step = coef;
    }
    *overlap |= step && step <= reach;
    return step && reach;
}

bool window_is_share(const Fusion *fusion)
{
    enum { MOST = 24 };   // accesses of one fused kernel
    FusedAccess found[MOST];
    int count = fusion_accesses(fusion, found, MOST), sliding = 0;
    bool overlap = false;
    for (int i = 0; i < count; i++) {
        bool any = false;
        for (int d = 0; d < found[i].access->rank; d++)
            any |= slides(fusion, &found[i].access->dims[d].index, &overlap);
        sliding += any;
    }
    return sliding > 1 && !overlap;
}

bool window_guards(const Guard *guard, const Access *access)
{
    for (int i = 0; i < guard->count; i++) {
        bool found = false;
        for (int d = 0; d < access->rank; d++)
            found |= guard->bounds[i].size == access->dims[d].size &&
                     affine_equal(&guard->bounds[i].index, &access->dims[d].index);
        if (!found)
            return false;
    }
    return true;
}

WindowAxis window_exchanged(const WindowAxis *axis)
{
    WindowAxis other = *axis;
    other.output = axis->tap, other.tap = axis->output;
    other.outputs = axis->taps, other.taps = axis->outputs;
    other.stride = axis->dilation, other.dilation = axis->stride;
    return other;
}

bool window_is_dense(const WindowAxis *axis) { return axis->stride == 1 && axis->dilation == 1; }

int64_t window_reach(const WindowAxis *axis, int64_t outputs)
{
    return axis->stride * (outputs - 1) + axis->dilation * (axis->taps - 1) + 1;
}

int64_t window_open(const WindowAxis *axis) { return (axis->taps - 1) * axis->dilation / axis->stride + 1; }

int64_t window_pairs_inside(const WindowAxis *axis)
{
    int64_t pairs = 0;
    for (int64_t tap = 0; tap < axis->taps; tap++) {
        /* Outputs i with 0 <= i * stride + first < inputs. */
        int64_t first = tap * axis->dilation - axis->pad, last = axis->inputs - 1 - first;
        int64_t low = first >= 0 ? 0 : ceil_div(-first, axis->stride);
        int64_t high = last < 0 ? -1 : last / axis->stride;
        high = high < axis->outputs - 1 ? high : axis->outputs - 1;
        pairs += high >= low ? high - low + 1 : 0;
    }
    return pairs;
}

int64_t window_pairs_together(const WindowAxis *axis, int64_t lines)
{
    WindowAxis several = *axis;   // as one output that reaches as far
    int64_t more = (lines - 1) * axis->stride;
    several.outputs = ceil_div(axis->outputs, lines), several.stride *= lines;
    several.inputs += more, several.pad -= more;
    return lines * window_pairs_inside(&several);
}
