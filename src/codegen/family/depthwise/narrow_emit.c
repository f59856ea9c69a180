// The parameter block of templates/narrow.cu.
#include <inttypes.h>

#include "codegen/family/depthwise/narrow.h"

static void emit_tiles(StrBuf *out, const KernelPlan *plan, const Depthwise *shape, const NarrowWay *way)
{
    strbuf_printf(out,
                  "constexpr int SUMMED = %" PRId64 ";   // channels of a group,\n"
                  "constexpr Index CHANNEL_STRIDE = %" PRId64 ";   // of x\n",
                  shape->summed.extent, way->channel);
    strbuf_printf(
        out,
        "constexpr int TC = %d, BF = %d, BD = %d, BA = %d;   // rTile, block: groups, filters of each, "
        "outputs\n",
        way->groups, way->filters, way->height, way->width);
    strbuf_printf(
        out,
        "constexpr int WARP_GROUPS = %d, WARP_TILES = %d;   // rTile, warp: groups, and of each eights of "
        "filters\n",
        way->warp_groups, way->warp_tiles);
    strbuf_printf(out,
                  "constexpr int FOLDED = %d, ROW_TILES = %d;   // groups that share an eight; sixteens of "
                  "outputs that a "
                  "warp multiplies together\n",
                  way->folded, way->row_tiles);
    strbuf_printf(
        out, "constexpr int THREADS = %d, MIN_BLOCKS_PER_SM = %d;   // that registers must suffice for\n",
        plan->threads, rprogram_least_blocks(plan->program, plan->threads));
}

static void emit_layout(StrBuf *out, const NarrowWay *way)
{
    strbuf_printf(
        out,
        "constexpr int RUN = %d, RUNS = %d, SHIFT = %d;   // elements; for each row of taps; of them before "
        "the first tap\n",
        way->run, way->runs, way->shift);
    strbuf_printf(out, "constexpr int TOGETHER = %d;   // taps that eight elements have\n", way->together);
    strbuf_printf(
        out,
        "constexpr bool ROW_RUNS = %s, PIECES = %s;   // a row of taps is a run; copies are of 16 bytes\n",
        way->rows ? "true" : "false", way->pieces ? "true" : "false");
    strbuf_printf(
        out,
        "constexpr int PIXEL = %d, LEAD = %d, REACH = %d;   // in shared memory: elements; before the first "
        "one; pixels,\n",
        way->pixel, way->lead, way->reach);
    strbuf_printf(out, "constexpr int LINE = %d, LINES = %d;   // elements of a line, lines\n", way->line,
                  way->lines);
    strbuf_printf(out, "constexpr int QN = %d;   // filters that are one aligned access of outputs\n",
                  way->stored);
}

/* Where filters lie, and the tensors for which they lie elsewhere. */
static void emit_filters(StrBuf *out, const Scope *scope, const Depthwise *shape, const NarrowWay *way)
{
    int64_t filter = narrow_filter(shape), group = filter * shape->multiplier.extent;
    int w = input_position(scope->fusion, factor_access(shape->w)->tensor);
    strbuf_printf(out,
                  "constexpr int FILTER_RUN = %" PRId64
                  ";   // elements of a block's filters that are one run of memory; 0: they are not\n"
                  "constexpr Index GROUP_STRIDE = %" PRId64 ", FILTER_STRIDE = %" PRId64
                  ", ALL_FILTERS = %" PRId64 ";   // elements of w\n",
                  way->filter_run, group, filter, group * shape->channel.extent);
    strbuf_printf(
        out, "\n__device__ __forceinline__ const X *filters_of(const Tensors &t) { return t.in%d; }\n", w);
    strbuf_printf(out,
                  "\n// The same with filters elsewhere.\n"
                  "__device__ __forceinline__ Tensors with_filters(Tensors t, const X *filters)\n{\n"
                  "    t.in%d = filters;\n    return t;\n}\n",
                  w);
}

void narrow_emit(StrBuf *out, const KernelPlan *plan)
{
    const Depthwise *shape = ((const DepthwiseView *)plan->view)->sum;
    const NarrowWay *way = plan->kind->choice.value;
    Scope scope = direct_emit_problem(out, plan, shape);
    direct_emit_window(out, "constexpr ", shape);
    emit_tiles(out, plan, shape, way);
    emit_layout(out, way);
    emit_filters(out, &scope, shape, way);
    direct_emit_image(out, &scope, shape);
    direct_emit_tap(out, "Index summed, ", &scope, shape);
    direct_emit_finish(out, &scope, shape, axis_group_innermost(&shape->multiplier));
}
