#include "codegen/family/gemm/phases.h"

#include <inttypes.h>

#include "base/checked.h"

/* Columns or channels of a box; columns that one instruction multiplies at most, and of which it multiplies multiples. */
enum { MAX_TAPS = 64, BOX_LINES = 64, MAX_COLUMNS = 256, ATOM_COLUMNS = 32 };

/* Columns of every tile of a phase that has no whole boxes: the most that divide it and that one instruction multiplies.
   0: there is no such tile of elements of 16 bits in whole vectors, or none with a whole box: a persistent block has so
   many small tiles then that mma.sync by several blocks of an SM is faster (tuning-log 232). */
static int64_t find_tile(const Fusion *fusion, const Product *product, int64_t columns)
{
    if (mma_columns(fusion, product) != MAX_VECTOR || product_element_bits(product->factor[0]) != 16)
        return 0;
    int64_t parts = ceil_div(columns, MAX_COLUMNS);
    while (columns / MAX_VECTOR % parts)
        parts++;
    return columns / parts > BOX_LINES ? columns / parts : 0;
}

/* The only axis of the dimension, which it goes along from its first element to its last. */
static int whole_axis(const Fusion *fusion, const Dim *dim)
{
    int axis = affine_single_axis(&dim->index);
    return axis >= 0 && fusion->axes[axis].extent == dim->size ? axis : -1;
}

/* The last axes of the product's columns that whole dimensions of the filter go along, one after the other: a channel,
   or the channels and the last phase of planes, whose elements lie side by side. */
static uint32_t find_columns(const Fusion *fusion, const Product *product, const Access *access)
{
    const AxisGroup *all = &product->group[GROUP_N];
    int at = all->count - 1, d = access->rank - 1;
    uint32_t columns = 1u << all->axes[at];
    while (d >= 0 && whole_axis(fusion, &access->dims[d]) != all->axes[at])
        d--;
    while (--d >= 0 && --at >= 0 && whole_axis(fusion, &access->dims[d]) == all->axes[at])
        columns |= 1u << all->axes[at];
    return columns;
}

static int64_t extent_of(const Fusion *fusion, uint32_t axes)
{
    int64_t extent = 1;
    for (int a = 0; a < fusion->axis_count; a++)
        extent *= axes >> a & 1 ? fusion->axes[a].extent : 1;
    return extent;
}

/* Moved by taps and phases, and by nothing else. */
static bool is_of_taps(const Im2col *im2col, const Product *product, const Dim *dim, uint32_t columns)
{
    uint32_t phases = axis_group_mask(&product->group[GROUP_N]) & ~columns;
    return !(affine_axes(&dim->index) & ~(axis_group_mask(&im2col->taps) | phases));
}

/* Some dimensions have the columns of a phase, one the channels that are summed, one the groups, the others are taps. */
static bool find_dims(const Fusion *fusion, const Product *product, const Im2col *im2col,
                      PhasedFilter *filter)
{
    const Access *access = filter->access;
    uint32_t channel = 1u << im2col->channel, found = 0;
    uint32_t all = filter->columns | channel | axis_group_mask(&product->group[GROUP_BATCH]);
    for (int d = 0; d < access->rank; d++) {
        int axis = whole_axis(fusion, &access->dims[d]);
        uint32_t own = axis < 0 ? 0 : 1u << axis & all;
        if ((own & found) || (!own && !is_of_taps(im2col, product, &access->dims[d], filter->columns)))
            return false;
        found |= own;
    }
    int innermost = whole_axis(fusion, &access->dims[access->rank - 1]);
    filter->along_k = innermost == im2col->channel;
    return found == all && (filter->along_k || filter->columns == 1u << innermost) &&
           access->dims[access->rank - 1].size % mma_piece(product) == 0;
}

/* Where the element lies, of columns and channels the first one's; -1: outside. */
static int64_t offset_at(const Access *access, const int64_t *at)
{
    int64_t offset = 0;
    for (int d = 0; d < access->rank; d++) {
        int64_t index = access->dims[d].index.constant;
        for (int a = 0; a < MAX_AXES; a++)
            index += access->dims[d].index.coef[a] * at[a];
        if (index < 0 || index >= access->dims[d].size)
            return -1;
        offset = offset * access->dims[d].size + index;
    }
    return offset;
}

static void find_used(Arena *arena, const Fusion *fusion, const Product *product, const Im2col *im2col,
                      PhasedFilter *filter)
{
    TapPhases *phases = &filter->phases;
    Affine form = access_offset(filter->access);
    phases->taps = (int)im2col->taps.extent;
    phases->channels = im2col->channels;
    phases->column_stride = form.coef[axis_group_innermost(&product->group[GROUP_N])];
    phases->channel_stride = form.coef[im2col->channel];
    int64_t *offsets = NEW_ARRAY(arena, int64_t, phases->count * phases->taps);
    for (int i = 0; i < phases->count * phases->taps; i++) {
        int64_t at[MAX_AXES] = {0};
        axis_group_place(&product->group[GROUP_N], fusion, i / phases->taps * phases->columns, at);
        axis_group_place(&im2col->taps, fusion, i % phases->taps, at);
        offsets[i] = offset_at(filter->access, at);
        phases->used[i / phases->taps] |= (uint64_t)(offsets[i] >= 0) << i % phases->taps;
    }
    phases->offsets = offsets;
}

bool phases_find(Arena *arena, const Fusion *fusion, const Product *product, const Im2col *im2col,
                 PhasedFilter *filter)
{
    const Guard *guard = mma_guard(product, 1);
    const Access *access = mma_access(product->factor[1]);
    if (!access || !product->group[GROUP_N].count || access->rank > MAX_MAP_RANK || (guard && !window_guards(guard, access)))
        return false;
    uint32_t column_axes = find_columns(fusion, product, access);
    int64_t columns = extent_of(fusion, column_axes), phases = product->group[GROUP_N].extent / columns;
    int64_t inner = columns / fusion->axes[__builtin_ctz(column_axes)].extent;   // axes are in the order of the columns
    *filter = (PhasedFilter){.access = access, .columns = column_axes};
    filter->phases = (TapPhases){.columns_axis = GROUP_N,
                                 .k_axis = GROUP_K,
                                 .count = (int)phases,
                                 .columns = columns,
                                 .step = im2col->step};
    if (phases > MAX_PHASES || (!guard && phases == 1) || im2col->taps.extent > MAX_TAPS || !find_dims(fusion, product, im2col, filter) ||
        (inner > 1 && (columns % BOX_LINES || BOX_LINES % inner)))   // a box has those within the outermost one whole
        return false;
    if (columns % BOX_LINES) {
        filter->tile = find_tile(fusion, product, columns);
        filter->phases.box = BOX_LINES;
        filter->phases.atom = ATOM_COLUMNS;
        if (!filter->tile)
            return false;
    }
    find_used(arena, fusion, product, im2col, filter);
    return true;
}

TensorMap phases_map(const KernelPlan *plan, const Product *product, const PhasedFilter *filter)
{
    const Access *access = filter->access;
    int64_t element_bytes = VECTOR_BYTES / mma_piece(product), stride = element_bytes;
    TensorMap map = {
        .arg = input_position(plan->fusion, access->tensor),
        .rank = access->rank,
        .element_bytes = (int)element_bytes,
        .tf32 = mma_element_type(product) == DTYPE_F32,
    };
    uint32_t columns = filter->columns;
    for (int i = 0, lines = BOX_LINES; i < access->rank; i++) {
        const Dim *dim = &access->dims[access->rank - 1 - i];
        int axis = whole_axis(plan->fusion, dim);
        map.sizes[i] = dim->size;
        map.box[i] = 1;
        if (axis >= 0 && columns >> axis & 1) {
            columns &= ~(1u << axis);
            map.box[i] = columns ? (int)dim->size : lines;   // the outermost one is cut
            lines /= map.box[i];
        } else if (axis == product->pixels->channel) {
            map.box[i] = (int)plan->program->tile[LEVEL_SHARED].size[GROUP_K];
        }
        if (i > 0)
            map.strides[i - 1] = stride;
        stride *= dim->size;
    }
    return map;
}

void phases_emit_taps(StrBuf *out, const TapPhases *phases)
{
    for (int p = 0; p + 1 < phases->count; p++)
        strbuf_printf(out, "phase == %d ? 0x%" PRIx64 "ull : ", p, phases->used[p]);
    strbuf_printf(out, "0x%" PRIx64 "ull", phases->used[phases->count - 1]);
}

static void emit_used(StrBuf *out, const TapPhases *phases)
{
    begin_function(out, "Whether a phase has a tap; its other taps are zeros.", "bool has_tap(Index phase, Index tap)");
    strbuf_puts(out, "    const unsigned long long taps = ");
    phases_emit_taps(out, phases);
    strbuf_puts(out, ";\n    return taps >> tap & 1;\n}\n");
}

void phases_emit(StrBuf *out, const Scope *scope, const Product *product, const PhasedFilter *filter)
{
    const Im2col *im2col = product->pixels;
    const Access *access = filter->access;
    CONSTEXPR(out, "Index PHASE, TAPS", "columns of a phase, taps in all", filter->phases.columns,
              im2col->taps.extent);
    emit_used(out, &filter->phases);
    begin_function(out, "Copies a box of the filter from column n on; k is the tap and first channel.",
                   "void fetch_filter(const TensorMap *map, Index batch, Index n, Index k, Element *tile, "
                   "unsigned long long *full)");
    strbuf_printf(out, "    const Index %s = k %% TAP;\n", scope->axis[im2col->channel]);
    if (im2col->taps.count)
        strbuf_puts(out, "    const Index tap = k / TAP;\n");
    emit_group_positions(out, "    ", "tap", scope, &im2col->taps, ~0u);
    emit_group_positions(out, "    ", "n", scope, &product->group[GROUP_N], ~0u);
    emit_group_positions(out, "    ", "batch", scope, &product->group[GROUP_BATCH], ~0u);
    strbuf_puts(out, "    const int at[] = {");
    for (int d = access->rank - 1; d >= 0; d--) {
        strbuf_puts(out, "static_cast<int>(");
        emit_affine(out, &access->dims[d].index, scope->axis);
        strbuf_puts(out, d ? "), " : ")};\n");
    }
    strbuf_puts(out, "    copy_box_at(tile, map, at, full);\n}\n");
}
