// The parameter block of templates/strip.cu.

#include "base/checked.h"
#include "codegen/family/depthwise/strip.h"

/* Along which outputs lie side by side. */
static int inner_axis(const Depthwise *shape, const StripWay *way)
{
    return way->channels_last ? axis_group_innermost(&shape->channel)
                              : shape->image[shape->image_count - 1].output;
}

/* The largest power of two that divides both. */
static int64_t common_power(int64_t a, int64_t b) { return (a | b) & -(a | b); }

static void emit_tiles(StrBuf *out, const KernelPlan *plan, const Depthwise *shape, const StripWay *way)
{
    const int64_t *block = plan->program->tile[LEVEL_SHARED].size,
                  *each = plan->program->tile[LEVEL_REGISTER].size;
    int64_t columns = strip_piece(way, each[ALONG], slide_along(shape)->stride);
    CONSTEXPR(out, "int TB, TC, BD, BA", "rTile, block", block[BATCH], block[CHANNEL], block[DOWN], block[ALONG]);
    CONSTEXPR(out, "int HEIGHT, WIDTH, LANES", "rTile, registers of a thread: down, along, channels", each[DOWN],
              each[ALONG], each[CHANNEL]);
    CONSTEXPR(out, "int THREADS, MIN_BLOCKS_PER_SM", "of the launch bounds", plan->threads,
              rprogram_least_blocks(plan->program, plan->threads));
    CONSTEXPR(out, "int AHEAD", "rows of the input in flight",
              strip_ahead(shape, each[CHANNEL], each[ALONG]));
    CONSTEXPR(out, "bool CHANNELS_LAST", "adjacent threads have adjacent channels; else columns",
              way->channels_last);
    CONSTEXPR(out, "int PIECE", "columns of x in one aligned access, at most", columns);
    CONSTEXPR(out, "int QN", "outputs in one: adjacent columns, or channels",
              common_power(each[way->channels_last ? CHANNEL : ALONG], way->stored));
}

void strip_emit(StrBuf *out, const KernelPlan *plan)
{
    const Depthwise *shape = ((const DepthwiseView *)plan->view)->sum;
    const StripWay *way = plan->kind->choice.value;
    Scope scope = direct_emit_problem(out, plan, shape);
    direct_emit_window(out, "constexpr ", shape);
    emit_tiles(out, plan, shape, way);
    direct_emit_image(out, &scope, shape);
    direct_emit_tap(out, "", &scope, shape);
    direct_emit_finish(out, &scope, shape, inner_axis(shape, way));
}
