// The parameter block of templates/narrow.cu.

#include <inttypes.h>

#include "codegen/family/depthwise/narrow.h"

static void emit_tiles(StrBuf *out, const KernelPlan *plan, const Depthwise *shape, const NarrowWay *way)
{
    CONSTEXPR(out, "int SUMMED", "channels of a group", shape->summed.extent);
    CONSTEXPR(out, "Index CHANNEL_STRIDE", "of x", way->channel);
    CONSTEXPR(out, "int TC, BF, BD, BA", "rTile, block: groups, filters of each, outputs", way->groups, way->filters,
              way->height, way->width);
    CONSTEXPR(out, "int WARP_GROUPS, WARP_TILES", "rTile, warp: groups, 8-filter tiles of each",
              way->warp_groups, way->warp_tiles);
    CONSTEXPR(out, "int FOLDED, ROW_TILES",
              "groups in an 8-filter tile; 16-output tiles of a warp", way->folded,
              way->row_tiles);
    CONSTEXPR(out, "int BESIDE", "8-filter tiles whose filters are interleaved", way->beside);
    /* The bias of a plane is one element for all of a lane's outputs. */
    bool loads = way->adjacent > 1 ? narrow_loads_outputs(plan->kind->space) : narrow_loads(plan->kind->space) != 0;
    CONSTEXPR(out, "bool LOADS", "the epilogue loads something for each lane's outputs", loads);
    CONSTEXPR(out, "int THREADS, MIN_BLOCKS_PER_SM", "of the launch bounds", plan->threads,
              rprogram_least_blocks(plan->program, plan->threads));
}

static void emit_layout(StrBuf *out, const NarrowWay *way)
{
    CONSTEXPR(out, "int RUN, RUNS, SHIFT", "elements; for each row of taps; zeros before the first tap", way->run,
              way->runs, way->shift);
    CONSTEXPR(out, "int TOGETHER", "taps in eight elements", way->together);
    CONSTEXPR(out, "bool ROW_RUNS, PIECES", "a row of taps is a run; copies are 16-byte vectors", way->rows, way->pieces);
    CONSTEXPR(out, "int PIXEL, LEAD, REACH", "in shared memory: elements; before the first one; pixels,", way->pixel,
              way->lead, way->reach);
    CONSTEXPR(out, "int LINE, LINES", "elements of a line, lines", way->line, way->lines);
    CONSTEXPR(out, "int VECTOR", "columns of a plane in an aligned vector; 0: no planes, or element by element", way->vector);
    CONSTEXPR(out, "int PHASES, PHASE", "every PHASES-th pixel of a line is contiguous, so many", way->phases, way->phase);
    CONSTEXPR(out, "int ADJACENT", "outputs of a line that a lane has", way->adjacent);
    CONSTEXPR(out, "int QN", "filters, or such outputs, in one aligned access", way->stored);
}

/* Where filters lie, and their elements. */
static void emit_filters(StrBuf *out, const Scope *scope, const Depthwise *shape, const NarrowWay *way)
{
    int64_t filter = narrow_filter(shape), group = filter * shape->multiplier.extent;
    int w = input_position(scope->fusion, factor_access(shape->w)->tensor);
    CONSTEXPR(out, "int FILTER_RUN", "elements of a block's contiguous filters; 0: not contiguous",
              way->filter_run);
    CONSTEXPR(out, "Index GROUP_STRIDE, FILTER_STRIDE, ALL_FILTERS", "elements of w", group, filter,
              group * shape->channel.extent);
    CONSTEXPR(out, "int SKEW", "elements between which eight are left out in shared memory, for its banks", way->skew);
    CONSTEXPR(out, "bool BY_TERMS, WORDS", "they are those of a summed channel, else of eight filters; two channels are a word",
              way->by_terms, way->words);
    CONSTEXPR(out, "bool VECTORS", "a lane's filters and their neighbours' are one vector, for each summed channel", way->vectors);
    strbuf_printf(
        out, "\n__device__ __forceinline__ const X *filters_of(const Tensors &t) { return t.in%d; }\n", w);
}

/* Taps along `deep` come before the channels of each. */
static void emit_elements(StrBuf *out, const Scope *scope, const Depthwise *shape)
{
    begin_function(out, "Where an element of a pixel's channels lies, from the first one on; false: in an image that does not exist.",
                   "bool find_element(Index batch, int element, Index &at)");
    if (!shape->deep) {
        strbuf_puts(out, "    at = element;\n    return true;\n}\n");
        return;
    }
    Affine from = depthwise_form(&shape->x_offset, 0, &shape->summed, &(AxisGroup){.count = 0});
    strbuf_puts(out, "    const Index summed = element % SUMMED;\n");
    direct_emit_groups(out, scope, shape, affine_axes(&shape->deep->index) | axis_group_mask(&shape->summed));
    strbuf_printf(out, "    at = element / SUMMED * %" PRId64 " + %s;\n    return inside(%s, %" PRId64 ");\n}\n",
                  depthwise_channels(scope->fusion, shape).extent, affine_text(out->arena, &from, scope->axis),
                  affine_text(out->arena, &shape->deep->index, scope->axis), shape->deep->size);
}

void narrow_emit(StrBuf *out, const KernelPlan *plan)
{
    const Depthwise *shape = ((const DepthwiseView *)plan->view)->flat;
    const NarrowWay *way = plan->kind->choice.value;
    Scope scope = direct_emit_problem(out, plan, shape);
    direct_emit_window(out, "constexpr ", shape);
    emit_tiles(out, plan, shape, way);
    emit_layout(out, way);
    emit_filters(out, &scope, shape, way);
    direct_emit_image(out, &scope, shape);
    emit_elements(out, &scope, shape);
    direct_emit_tap(out, "Index summed, ", &scope, shape);
    if (way->filter_run)
        direct_emit_tap_at(out, "Index summed, ", &scope, shape);
    direct_emit_finish(out, &scope, shape, way->adjacent > 1 ? slide_along(shape)->output : axis_group_innermost(&shape->multiplier),
                       way->stored);
}
