#include "codegen/family/gemm/im2col.h"

#include <inttypes.h>

#include "base/checked.h"

/* What the driver and the instruction take, by the number of axes that the filter slides along. */
static const struct {
    int64_t low, high;   // of a corner
    int64_t offset;      // of a tap, at most
} LIMITS[MAX_PIXEL_AXES + 1] = {
    [1] = {-32768, 32767, 65535},
    [2] = {-128, 127, 255},
    [3] = {-16, 15, 31},
};
enum { MAX_STRIDE = 8 };
static const int64_t MAX_SIZE = (int64_t)1 << 31;   // coordinates are signed

// ---- axes ----

static bool is_in_group(const AxisGroup *group, int axis) { return axis_group_mask(group) >> axis & 1; }

/* Windows slide along what is the product's rows, and their taps are of its sum; or the other way round. */
static bool find_window(const Fusion *fusion, const Product *product, const Dim *dim, const Im2col *im2col,
                        WindowAxis *axis)
{
    if (!window_find_standing(fusion, dim, axis))
        return false;
    if (im2col->pixels == GROUP_K)
        *axis = window_exchanged(axis);
    return axis->stride >= 1 && axis->stride <= MAX_STRIDE &&
           (axis->output < 0 || is_in_group(&product->group[im2col->pixels], axis->output)) &&
           (axis->tap < 0 || is_in_group(&product->group[im2col->seen], axis->tap));
}

/* Images follow along the first dimension, if the filter does not slide along it. */
static bool is_of_images(const Fusion *fusion, const AxisGroup *pixels, const Dim *dim)
{
    int axis = affine_single_axis(&dim->index);
    return axis >= 0 && is_in_group(pixels, axis) && fusion->axes[axis].extent == dim->size;
}

/* Channels of groups follow along the last dimension but one. */
static bool is_of_groups(const Fusion *fusion, const AxisGroup *batch, const Dim *dim)
{
    return batch->count == 1 && affine_single_axis(&dim->index) == batch->axes[0] &&
           fusion->axes[batch->axes[0]].extent == dim->size;
}

/* Batches are groups of channels; or else parts of k. */
static bool is_grouped(const Product *product) { return product->group[GROUP_BATCH].count && !product->share.chunk; }

static bool find_axes(const Fusion *fusion, const Product *product, const Access *access, Im2col *im2col)
{
    bool grouped = is_grouped(product);
    if (grouped && !is_of_groups(fusion, &product->group[GROUP_BATCH], &access->dims[access->rank - 2]))
        return false;
    im2col->groups = grouped ? product->group[GROUP_BATCH].extent : 1;
    int first = is_of_images(fusion, &product->group[im2col->pixels], &access->dims[0]);
    im2col->image = first ? affine_single_axis(&access->dims[0].index) : -1;
    im2col->images = first ? access->dims[0].size : 1;
    im2col->walk.count = access->rank - 1 - first - grouped;
    if (im2col->walk.count < 1 || im2col->walk.count > MAX_PIXEL_AXES)
        return false;
    for (int i = 0; i < im2col->walk.count; i++)
        if (!find_window(fusion, product, &access->dims[first + i], im2col, &im2col->walk.axis[i]))
            return false;
    Affine channels = access->dims[access->rank - 1].index;
    im2col->first = channels.constant;
    channels.constant = 0;
    im2col->channel = affine_single_axis(&channels);
    return im2col->channel >= 0 && is_in_group(&product->group[im2col->seen], im2col->channel);
}

/* Images, and of each the outputs in the order of its axes. */
static void find_outputs(const Fusion *fusion, Im2col *im2col)
{
    im2col->outputs = (AxisGroup){.extent = 1};
    if (im2col->image >= 0)
        axis_group_add(&im2col->outputs, fusion, im2col->image);
    for (int i = 0; i < im2col->walk.count; i++)
        if (im2col->walk.axis[i].output >= 0)
            axis_group_add(&im2col->outputs, fusion, im2col->walk.axis[i].output);
}

static bool same_axes(const AxisGroup *a, const AxisGroup *b)
{
    bool same = a->count == b->count;
    for (int i = 0; i < a->count && same; i++)
        same = a->axes[i] == b->axes[i];
    return same;
}

/* Rows of the product are in that order, and of parts of k, too; all of k may be walked in any. */
static bool has_pixels_in_order(const Product *product, const Im2col *im2col)
{
    const AxisGroup *pixels = product->share.chunk ? &product->share.points : &product->group[im2col->pixels];
    return im2col->pixels == GROUP_K && !product->share.chunk ? pixels->count == im2col->outputs.count
                                                              : same_axes(pixels, &im2col->outputs);
}

/* Of the axes with taps that are not used the one whose taps lie farthest apart in the filter; -1: there is none. */
static int next_taps(const PixelWalk *walk, const Affine *filter, const bool *used)
{
    int next = -1;
    for (int i = 0; i < walk->count; i++)
        if (walk->axis[i].tap >= 0 && !used[i] &&
            (next < 0 || filter->coef[walk->axis[i].tap] > filter->coef[walk->axis[next].tap]))
            next = i;
    return next;
}

/* Those that lie farthest apart outermost. False: there are other axes with channels, too. */
static bool order_taps(const Fusion *fusion, const Affine *filter, const AxisGroup *seen, Im2col *im2col)
{
    PixelWalk *walk = &im2col->walk;
    bool used[MAX_PIXEL_AXES] = {false};
    im2col->taps = (AxisGroup){.extent = 1};
    for (int i = 0; i < walk->count; i++)
        walk->tap_step[i] = 1;
    for (int next; (next = next_taps(walk, filter, used)) >= 0;) {
        for (int i = 0; i < walk->count; i++)   // one of those before follows when all of these were
            walk->tap_step[i] *= used[i] ? walk->axis[next].taps : 1;
        used[next] = true;
        axis_group_add(&im2col->taps, fusion, walk->axis[next].tap);
    }
    return im2col->taps.count + 1 == seen->count;
}

// ---- what the hardware can do ----

/* A row of the walk begins at the lower corner, and is as wide as the image but for what lies between the
   upper corner and its end: so many that there is an output for each stride. */
static bool find_corners(Im2col *im2col)
{
    int count = im2col->walk.count;
    for (int i = 0; i < count; i++) {
        const WindowAxis *axis = &im2col->walk.axis[i];
        int64_t reach = size_product(axis->taps - 1, axis->dilation < 0 ? -axis->dilation : axis->dilation);
        if (axis->inputs >= MAX_SIZE || axis->outputs >= MAX_SIZE || reach > LIMITS[count].offset)
            return false;
        int64_t lower = -axis->pad - (axis->dilation < 0 ? reach : 0);
        int64_t upper = lower + (axis->outputs - 1) * axis->stride + 1 - axis->inputs;
        if (lower < LIMITS[count].low || lower > LIMITS[count].high || upper < LIMITS[count].low ||
            upper > LIMITS[count].high)
            return false;
        im2col->lower[i] = lower;
        im2col->upper[i] = upper;
    }
    return im2col->images < MAX_SIZE;
}

/* Lines end within a tap's channels only where the image ends, too: what comes from beyond is zero then. */
static bool has_whole_channels(const Fusion *fusion, const Product *product, const Access *access,
                               Im2col *im2col)
{
    int64_t line = LINE_PIECES * mma_piece(product);
    im2col->channels = fusion->axes[im2col->channel].extent;
    int64_t own = access->dims[access->rank - 1].size;   // of a group
    im2col->pixel = size_product(own, im2col->groups);
    im2col->step = round_up(im2col->channels, line);
    return im2col->pixel % mma_piece(product) == 0 && im2col->first % mma_piece(product) == 0 &&
           (im2col->channels == im2col->pixel || (im2col->channels == im2col->step && (im2col->groups == 1 || own == im2col->channels)));
}

/* `filter`: where taps lie in their order. */
static bool find(const Fusion *fusion, const Product *product, const Affine *filter, Im2col *im2col)
{
    const Access *access = mma_access(product->factor[im2col->factor]);
    const Guard *guard = mma_guard(product, im2col->factor);
    if (access->rank < 2 + is_grouped(product) || !find_axes(fusion, product, access, im2col))
        return false;
    find_outputs(fusion, im2col);
    return has_pixels_in_order(product, im2col) &&
           order_taps(fusion, filter, &product->group[im2col->seen], im2col) &&
           (!guard || window_guards(guard, access)) && find_corners(im2col) &&
           has_whole_channels(fusion, product, access, im2col);
}

bool im2col_find(const Fusion *fusion, const Product *product, int factor, Im2col *im2col)
{
    *im2col = (Im2col){.factor = factor, .pixels = factor ? GROUP_N : GROUP_M, .seen = GROUP_K, .images = 1};
    if (!mma_access(product->factor[0]) || !mma_access(product->factor[1]) || product->guard)
        return false;
    Affine filter = access_offset(mma_access(product->factor[1 - factor]));
    return find(fusion, product, &filter, im2col);
}

/* Boxes hold whole lines of a tap's channels, so that rows of the product are those and no others. */
static bool has_rows_of_lines(const Product *product, const Im2col *im2col)
{
    const AxisGroup *rows = &product->group[im2col->seen];
    bool taps_outside = true;
    for (int i = 0; i < im2col->taps.count; i++)
        taps_outside &= rows->axes[i] == im2col->taps.axes[i];
    return taps_outside && axis_group_innermost(rows) == im2col->channel && im2col->channels == im2col->step;
}

bool im2col_find_along_k(const Fusion *fusion, const Product *product, int factor, Im2col *im2col)
{
    *im2col = (Im2col){.factor = factor, .pixels = GROUP_K, .seen = factor ? GROUP_N : GROUP_M, .images = 1};
    if (!mma_access(product->factor[0]) || !mma_access(product->factor[1]) || product->guard || !product->group[im2col->seen].count)
        return false;
    Affine rows = affine_constant(0);   // in their order
    int64_t stride = 1;
    for (int i = product->group[im2col->seen].count - 1; i >= 0; i--) {
        int axis = product->group[im2col->seen].axes[i];
        rows.coef[axis] = stride;
        stride *= fusion->axes[axis].extent;
    }
    return find(fusion, product, &rows, im2col) && has_rows_of_lines(product, im2col);
}

// ---- text ----

/* Coordinates in the instruction's order, the innermost axis first. */
static void emit_list(StrBuf *out, const Scope *scope, const char *name, const char *first,
                      const Affine *forms, int count, const char *last)
{
    strbuf_printf(out, "    const int %s[] = {%s", name, first);
    for (int i = count - 1; i >= 0; i--) {
        strbuf_puts(out, i < count - 1 || *first ? ", static_cast<int>(" : "static_cast<int>(");
        emit_affine(out, &forms[i], scope->axis);
        strbuf_puts(out, ")");
    }
    strbuf_printf(out, "%s};\n", last);
}

/* Where the first tap sees the pixel, and how far from there the others do. */
static void find_forms(const Im2col *im2col, Affine *origins, Affine *offsets)
{
    for (int i = 0; i < im2col->walk.count; i++) {
        const WindowAxis *axis = &im2col->walk.axis[i];
        origins[i] = affine_constant(im2col->lower[i]);
        offsets[i] = affine_constant(-axis->pad - im2col->lower[i]);
        if (axis->output >= 0)
            origins[i].coef[axis->output] = axis->stride;
        if (axis->tap >= 0)
            offsets[i].coef[axis->tap] = axis->dilation;
    }
}

/* Behind the last pixel, where the last part of k may go on, there are no channels: what comes from there is zero. */
static const char *end_of_pixels(Arena *arena, const Product *product, const Im2col *im2col)
{
    if (!product->share.chunk || im2col->outputs.extent % product->share.chunk == 0)
        return "";
    return arena_printf(arena,
                        "    if (pixel >= %" PRId64 ")\n        pixel = 0, channel = %" PRId64 ";\n",
                        im2col->outputs.extent, im2col->channels);
}

void im2col_emit_flags(StrBuf *out, const Im2col *im2col, int factor)
{
    bool walked = im2col && im2col->factor == factor, rows = walked && im2col_has_rows(im2col);
    char name = "AB"[factor];
    strbuf_printf(out,
                  "constexpr bool IM2COL_%c = %s;   // implicit GEMM: its rows are pixels, k is channels within taps\n"
                  "constexpr bool TAPS_%c = %s;     // filter gradient: its rows are channels within taps, k is pixels\n",
                  name, rows ? "true" : "false", name, walked && !rows ? "true" : "false");
}

void im2col_emit(StrBuf *out, const Scope *scope, const Product *product, const Im2col *im2col)
{
    Affine origins[MAX_PIXEL_AXES], offsets[MAX_PIXEL_AXES];
    int count = im2col->walk.count;
    find_forms(im2col, origins, offsets);
    begin_function(
        out, "Copies a box of consecutive pixels, shifted by a tap; `seen` is the tap and first channel.",
        "void fetch_pixels(const TensorMap *map, Index batch, Index pixel, Index seen, Element *tile, unsigned long long *full)");
    strbuf_printf(out, "    int channel = static_cast<int>(seen %% TAP%s);\n", im2col->groups > 1 ? " + batch * TAP" : "");
    if (im2col->taps.count)
        strbuf_puts(out, "    const Index tap = seen / TAP;\n");
    strbuf_puts(out, end_of_pixels(out->arena, product, im2col));
    emit_group_positions(out, "    ", "pixel", scope, &im2col->outputs, ~0u);
    emit_group_positions(out, "    ", "tap", scope, &im2col->taps, ~0u);
    StrBuf image = strbuf_new(out->arena);
    if (im2col->image >= 0)
        strbuf_printf(&image, ", static_cast<int>(%s)", scope->axis[im2col->image]);
    else
        strbuf_puts(&image, ", 0");
    emit_list(out, scope, "at", "channel", origins, count, image.text);
    emit_list(out, scope, "offset", "", offsets, count, "");
    strbuf_puts(out, "    copy_pixels(tile, map, at, offset, full);\n}\n");
}
