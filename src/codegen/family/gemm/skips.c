#include "codegen/family/gemm/skips.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/family/gemm/phases.h"

enum { MAX_TAPS = 64, LEAST_ROWS = 64, LEAST_MMA_ROWS = 32 };   // of a phase, so that tiles lie within one

static AxisGroup only_axes(const Fusion *fusion, const AxisGroup *group, uint32_t axes)
{
    AxisGroup only = {.extent = 1};
    for (int i = 0; i < group->count; i++)
        if (axes >> group->axes[i] & 1)
            axis_group_add(&only, fusion, group->axes[i]);
    return only;
}

/* What a position of the group adds to the bound's index. */
static int64_t index_at(const Fusion *fusion, const Dim *bound, const AxisGroup *group, int64_t position)
{
    int64_t at[MAX_AXES] = {0}, index = 0;
    axis_group_place(group, fusion, position, at);
    for (int a = 0; a < MAX_AXES; a++)
        index += bound->index.coef[a] * at[a];
    return index;
}

/* False: every phase has every tap. */
static bool find_used(const Fusion *fusion, const Guard *guard, const AxisGroup *rows, const AxisGroup *taps,
                      TapPhases *phases)
{
    uint64_t outside[MAX_PHASES] = {0}, any = 0;
    for (const Dim *bound = guard->bounds; bound < guard->bounds + guard->count; bound++) {
        int64_t of_tap[MAX_TAPS];
        for (int64_t tap = 0; tap < taps->extent; tap++)
            of_tap[tap] = index_at(fusion, bound, taps, tap);
        for (int64_t row = 0; row < rows->extent; row++) {
            int64_t from = bound->index.constant + index_at(fusion, bound, rows, row);
            for (int64_t tap = 0; tap < taps->extent; tap++)
                outside[row] |= (uint64_t)(from + of_tap[tap] < 0 || from + of_tap[tap] >= bound->size) << tap;
        }
    }
    for (int64_t row = 0; row < rows->extent; row++) {
        phases->used[row] = ~outside[row] & UINT64_MAX >> (64 - taps->extent);
        any |= outside[row];
    }
    return any;
}

static void put_outermost(const Fusion *fusion, AxisGroup *group, const AxisGroup *first)
{
    AxisGroup ordered = *first;
    uint32_t others = axis_group_mask(group) & ~axis_group_mask(first);
    for (int i = 0; i < group->count; i++)
        if (others >> group->axes[i] & 1)
            axis_group_add(&ordered, fusion, group->axes[i]);
    *group = ordered;
}

/* Phases come before the rows of one, and taps before the channels of one. Rows of B are columns of C, whose neighbours stay
   where they are. */
static bool put_in_order(const Fusion *fusion, Product *product, int rows, const AxisGroup *phases, const AxisGroup *taps)
{
    AxisGroup *group = &product->group[rows];
    if (rows == GROUP_N && memcmp(group->axes, phases->axes, sizeof(int) * (size_t)phases->count))
        return false;
    put_outermost(fusion, group, phases);
    put_outermost(fusion, &product->group[GROUP_K], taps);
    return true;
}

/* The axis along which steps of one tap go; -1: there is none. Of tensor cores it is whole steps, by threads the longest one
   that no bound is asked for along. */
static int channel_of(const Fusion *fusion, const Product *product, const Guard *guard)
{
    const AxisGroup *k = &product->group[GROUP_K];
    if (product->atom)
        return product_steps(fusion, product, SKIPPED_PARTS * product->atom->k).channel;
    int channel = -1;
    for (int i = 0; i < k->count; i++) {
        int axis = k->axes[i];
        bool longer = channel < 0 || fusion->axes[axis].extent > fusion->axes[channel].extent;
        if (longer && !(guard_axes(guard) >> axis & 1))
            channel = axis;
    }
    return channel;
}

/* Tensor cores take terms and rows in their order: taps outermost, and phases. */
static bool is_in_order(const Product *product, int channel, int rows, const AxisGroup *phases)
{
    return axis_group_innermost(&product->group[GROUP_K]) == channel && !product->group[GROUP_BATCH].count &&
           !memcmp(product->group[rows].axes, phases->axes, sizeof(int) * (size_t)phases->count);
}

/* Rows a of w[a - 2*t + 1] lie within a stride of t. Pixels h + r at the border lack taps, too: there are many more of these. */
static bool is_by_stride(const Fusion *fusion, const Guard *guard, uint32_t rows, uint32_t taps)
{
    bool within = true;
    for (int i = 0; i < guard->count; i++)
        for (int a = 0; a < MAX_AXES; a++)
            for (int t = 0; t < MAX_AXES; t++) {
                int64_t row = rows >> a & 1 ? llabs(guard->bounds[i].index.coef[a]) : 0, tap = llabs(guard->bounds[i].index.coef[t]);
                within &= !row || !tap || !(taps >> t & 1) || fusion->axes[a].extent * row <= tap;
            }
    return within;
}

static bool find_in(const Fusion *fusion, Product *product, int factor, Skips *skips)
{
    const Guard *guard = mma_guard(product, factor);
    bool guarded = guard && mma_access(product->factor[factor]);
    int rows = factor ? GROUP_N : GROUP_M, channel = guarded ? channel_of(fusion, product, guard) : -1;
    if (channel < 0)
        return false;
    uint32_t own = axis_group_mask(&product->group[rows]), terms = axis_group_mask(&product->group[GROUP_K]);
    uint32_t used = guard_axes(guard);
    AxisGroup phases = only_axes(fusion, &product->group[rows], used);
    AxisGroup taps = only_axes(fusion, &product->group[GROUP_K], ~(1u << channel));
    if (used & ~(own | terms) || used >> channel & 1 || !phases.count ||
        phases.count == product->group[rows].count || phases.extent > MAX_PHASES || taps.extent > MAX_TAPS)
        return false;
    *skips = (Skips){.rows = rows, .channel = channel, .whole = product->atom};
    skips->phases = (TapPhases){.columns_axis = rows,
                                .k_axis = GROUP_K,
                                .count = (int)phases.extent,
                                .columns = product->group[rows].extent / phases.extent,
                                .step = product->group[GROUP_K].extent / taps.extent,
                                .taps = (int)taps.extent};
    skips->by_stride = is_by_stride(fusion, guard, axis_group_mask(&phases), axis_group_mask(&taps));
    int least = product->atom ? LEAST_MMA_ROWS : skips->by_stride ? 1 : LEAST_ROWS;
    return skips->phases.columns >= least &&
           find_used(fusion, guard, &phases, &taps, &skips->phases) &&
           phases_extent(&skips->phases, SKIPPED_STEP / 2, skips->phases.columns) <
               product->group[GROUP_K].extent &&
           (product->atom ? is_in_order(product, channel, rows, &phases)
                          : put_in_order(fusion, product, rows, &phases, &taps));
}

const Skips *skips_find(Arena *arena, const Fusion *fusion, Product *product)
{
    Skips skips;
    for (int factor = 0; factor < 2; factor++)
        if (find_in(fusion, product, factor, &skips))
            return arena_copy(arena, &skips, sizeof skips);
    return NULL;
}

void skips_set_tiles(TileSpace *space, const Skips *skips, int64_t most)
{
    int64_t step = most;
    while (skips->whole && skips->phases.taps > 1 && skips->phases.step % step)   // of one tap the last step may be shorter
        step /= 2;
    space->phases = &skips->phases;
    space->axes[GROUP_K].extent = phases_extent(&skips->phases, 1, skips->phases.columns);
    AxisRule *k = &space->rule[LEVEL_SHARED][GROUP_K], *rows = &space->rule[LEVEL_SHARED][skips->rows];
    *k = (AxisRule){smaller(k->granule, step), step};
    if (!skips->whole)   // some tile size divides a phase
        rows->granule = greatest_common_divisor(rows->granule, skips->phases.columns);
    if (2 * skips->phases.columns > rows->limit)
        rows->limit = larger(smaller(rows->limit, skips->phases.columns), rows->granule);
}

BlockOrder phases_order(const TapPhases *phases)
{
    bool grows = phases && tap_count(phases->used[phases->count - 1]) > tap_count(phases->used[0]);
    return grows ? ORDER_PANELS_BACKWARDS : ORDER_PANELS;
}

static void emit_taps(StrBuf *out, const Skips *skips, const char *mask, const char *name)
{
    const TapPhases *phases = &skips->phases;
    const char *first = skips->rows == GROUP_M ? "m0" : "n0", *tile = skips->rows == GROUP_M ? "BM" : "BN";
    strbuf_printf(out,
                  "constexpr int TAPS = %d;   // of a channel\n\n"
                  "// The taps that some of the rows has; the others are zeros.\n"
                  "__device__ __forceinline__ %s %s(Index m0, Index n0)\n{\n"
                  "    %s taps = 0;\n"
                  "    for (Index phase = %s / %" PRId64 "; phase < %d && phase * %" PRId64
                  " < %s + %s; ++phase)\n"
                  "        taps |= ",
                  phases->taps, mask, name, mask, first, phases->columns, phases->count, phases->columns, first, tile);
    phases_emit_taps(out, phases);
    strbuf_puts(out, ";\n    return taps;\n}\n");
}

static void emit_constants(StrBuf *out, const Skips *skips)
{
    CONSTEXPR(out, "bool SKIPS", "taps that no row of a tile has", skips != NULL);
    CONSTEXPR(out, "bool BACKWARDS", "the last tiles first: they have the most taps",
              phases_order(skips ? &skips->phases : NULL) == ORDER_PANELS_BACKWARDS);
}

void skips_emit(StrBuf *out, const Skips *skips)
{
    emit_constants(out, skips);
    if (skips)
        emit_taps(out, skips, "unsigned long long", "taps_of_tile");
}

void skips_emit_walk(StrBuf *out, const Skips *skips)
{
    emit_constants(out, skips);
    if (!skips)
        return;
    const char *mask = skips->phases.taps <= 32 ? "unsigned" : "unsigned long long";
    emit_taps(out, skips, mask, "taps_of_tile");
    strbuf_printf(out, "\n"
                       "// The steps of a tile, in order, each of one of its taps: those of some channels, then of the next ones.\n"
                       "struct Walk {\n"
                       "    %s taps, left;   // of the tile; of these channels from the step's on\n"
                       "    Index step = 0, count = 0;\n"
                       "    __device__ __forceinline__ Walk(Index m0, Index n0) : taps(taps_of_tile(m0, n0)), left(taps)\n"
                       "    {\n"
                       "        UNROLL for (int tap = 0; tap < TAPS; ++tap)\n"
                       "            count += (Index)(taps >> tap & 1) * ((K / TAPS + BK - 1) / BK);\n"
                       "        pass_over();\n"
                       "    }\n"
                       "    __device__ __forceinline__ void pass_over()\n"
                       "    {\n"
                       "        for (; left && !(left & 1); left >>= 1)\n"
                       "            ++step;\n"
                       "    }\n"
                       "    __device__ __forceinline__ void advance()\n"
                       "    {\n"
                       "        ++step;\n"
                       "        left >>= 1;\n"
                       "        if (!left) {\n"
                       "            step = quotient_by<TAPS>(step + TAPS - 1) * TAPS;\n"
                       "            left = taps;\n"
                       "        }\n"
                       "        pass_over();\n"
                       "    }\n"
                       "};\n", mask);
}
