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

/* Moved by taps and phases, and by nothing else. */
static bool is_of_taps(const Im2col *im2col, const Product *product, const Dim *dim, int column)
{
    uint32_t phases = axis_group_mask(&product->group[GROUP_N]) & ~(1u << column);
    return !(affine_axes(&dim->index) & ~(axis_group_mask(&im2col->taps) | phases));
}

/* One dimension has the columns of a phase, one the channels that are summed, the others are taps. */
static bool find_dims(const Fusion *fusion, const Product *product, const Im2col *im2col,
                      PhasedFilter *filter)
{
    const Access *access = filter->access;
    int columns = 0, channels = 0;
    for (int d = 0; d < access->rank; d++) {
        int axis = whole_axis(fusion, &access->dims[d]);
        columns += axis == filter->column;
        channels += axis == im2col->channel;
        if (axis != filter->column && axis != im2col->channel &&
            !is_of_taps(im2col, product, &access->dims[d], filter->column))
            return false;
    }
    int innermost = whole_axis(fusion, &access->dims[access->rank - 1]);
    filter->along_k = innermost == im2col->channel;
    return columns == 1 && channels == 1 && (filter->along_k || innermost == filter->column) &&
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
    phases->column_stride = form.coef[filter->column];
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
    int column = axis_group_innermost(&product->group[GROUP_N]);
    int64_t columns = fusion->axes[column].extent, phases = product->group[GROUP_N].extent / columns;
    *filter = (PhasedFilter){.access = mma_access(product->factor[1]), .column = column};
    filter->phases = (TapPhases){.columns_axis = GROUP_N,
                                 .k_axis = GROUP_K,
                                 .count = (int)phases,
                                 .columns = columns,
                                 .step = im2col->step};
    if (!filter->access || (guard && !window_guards(guard, filter->access)) || filter->access->rank > MAX_MAP_RANK ||
        phases > MAX_PHASES || im2col->taps.extent > MAX_TAPS || !find_dims(fusion, product, im2col, filter))
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
    for (int i = 0; i < access->rank; i++) {
        const Dim *dim = &access->dims[access->rank - 1 - i];
        int axis = whole_axis(plan->fusion, dim);
        map.sizes[i] = dim->size;
        map.box[i] = axis == filter->column             ? BOX_LINES
                     : axis == product->pixels->channel ? (int)plan->program->tile[LEVEL_SHARED].size[GROUP_K]
                                                        : 1;
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
    begin_function(out, "Whether a phase has a tap; its other taps are zeros.", "bool has_tap(Index phase, Index tap)",
                   NULL);
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
                   "void fetch_filter(const TensorMap *map, Index n, Index k, Element *tile, unsigned long long *full)",
                   NULL);
    strbuf_printf(out, "    const Index %s = k %% TAP;\n", scope->axis[im2col->channel]);
    if (im2col->taps.count)
        strbuf_puts(out, "    const Index tap = k / TAP;\n");
    emit_group_positions(out, "    ", "tap", scope, &im2col->taps, ~0u);
    emit_group_positions(out, "    ", "n", scope, &product->group[GROUP_N], ~0u);
    strbuf_puts(out, "    const int at[] = {");
    for (int d = access->rank - 1; d >= 0; d--) {
        strbuf_puts(out, "static_cast<int>(");
        emit_affine(out, &access->dims[d].index, scope->axis);
        strbuf_puts(out, d ? "), " : ")};\n");
    }
    strbuf_puts(out, "    copy_box_at(tile, map, at, full);\n}\n");
}
