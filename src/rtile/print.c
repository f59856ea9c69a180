// What `-d rtile` and `-d rprogram` show.
#include <inttypes.h>

#include "rtile/rprogram.h"

static const char *const level_name[LEVEL_COUNT] = {
    [LEVEL_REGISTER] = "register", [LEVEL_SHARED] = "shared", [LEVEL_GLOBAL] = "global",
};

static const char *variant_of(const TileRules *rules)
{
    return rules->variant_name ? rules->variant_name : "-";
}

static void print_axis_names(StrBuf *out, const TileSpace *space)
{
    strbuf_printf(out, "  %-9s", "level");
    for (int a = 0; a < space->axis_count; a++)
        strbuf_printf(out, " %9s", space->axes[a].name);
    strbuf_putc(out, '\n');
}

/* One row of the table below print_axis_names. */
void rtile_print(StrBuf *out, const TileSpace *space, const RTile *tile)
{
    for (int a = 0; a < space->axis_count; a++)
        strbuf_printf(out, " %9" PRId64, tile->size[a]);
}

static void print_data_tile(StrBuf *out, const TileSpace *space, const DataTile *tile)
{
    strbuf_printf(out, "  %-9s [", tile->output ? "store" : "load");
    for (int d = 0; d < tile->rank; d++) {
        strbuf_puts(out, d ? ", " : "");
        affine_print(out, &tile->dims[d].index, space->axes, space->axis_count);
        if (d < MAX_REPEATED && tile->repeats[d].run)
            strbuf_printf(out, " in runs of %" PRId64 ", cycles of %" PRId64 ", %" PRId64 " times", tile->repeats[d].run,
                          tile->repeats[d].cycle, tile->repeats[d].again);
    }
    strbuf_printf(out, "] %d bits", tile->element_bits);
    if (tile->staged)
        strbuf_printf(out, ", staged along dimension %d", tile->staged_inner);
    if (tile->scatter > 1)
        strbuf_printf(out, ", scatter %.3g", tile->scatter);
    strbuf_putc(out, '\n');
}

static void print_rule(StrBuf *out, const TileRules *rules, Level level)
{
    strbuf_printf(out, "  %-9s", level_name[level]);
    for (int a = 0; a < rules->space.axis_count; a++) {
        const AxisRule *rule = &rules->rule[level][a];
        strbuf_printf(out, "  %2" PRId64 "..%-4" PRId64, rule->granule, rule->limit);
    }
    strbuf_putc(out, '\n');
}

void tile_rules_print(StrBuf *out, const TileRules *rules)
{
    const TileSpace *space = &rules->space;
    RTile problem = rtile_problem(space);
    strbuf_printf(out, "rules %s: %d stages, %.4g flop a point on %s\n", variant_of(rules),
                  rules->stages, space->flops, unit_name[space->unit]);
    print_axis_names(out, space);
    strbuf_printf(out, "  %-9s", level_name[LEVEL_GLOBAL]);
    rtile_print(out, space, &problem);
    strbuf_putc(out, '\n');
    print_rule(out, rules, LEVEL_SHARED);
    print_rule(out, rules, LEVEL_REGISTER);
    for (int i = 0; i < space->tile_count; i++)
        print_data_tile(out, space, &space->tiles[i]);
}

static void print_perf(StrBuf *out, const PerfEstimate *perf)
{
    const char *bound = bound_name[perf->bound_by];
    strbuf_printf(out, "  predicted %.4g us, bound by %s", perf->time_us, bound);
    strbuf_printf(out, ": compute %.4g, special %.4g", perf->compute_us, perf->special_us);
    strbuf_printf(out, ", shared %.4g, l2 %.4g", perf->shared_us, perf->l2_us);
    strbuf_printf(out, ", dram %.4g, start %.4g", perf->dram_us, perf->start_us);
    strbuf_printf(out, ", latency %.4g", perf->latency_us);
    strbuf_printf(out, ", launch %.4g\n", perf->launch_us);
    strbuf_printf(out, "  %.4g waves of %d blocks a unit (limited by %s), tail %.3f, waste %.3f\n",
                  perf->waves, perf->blocks_per_sm, limiter_name[perf->limiter],
                  perf->tail_efficiency, perf->padding_waste);
}

void rprogram_print(StrBuf *out, const TileRules *rules, const RProgram *program)
{
    strbuf_printf(out, "program %s: %" PRId64 " blocks of %d threads, ", variant_of(rules),
                  program->grid, program->threads);
    if (program->cluster > 1)
        strbuf_printf(out, "in clusters of %d, ", program->cluster);
    strbuf_printf(out, "%" PRId64 " bytes shared, %d registers\n", program->shared_bytes,
                  program->registers);
    print_axis_names(out, &rules->space);
    for (int level = LEVEL_GLOBAL; level >= LEVEL_REGISTER; level--) {
        strbuf_printf(out, "  %-9s", level_name[level]);
        rtile_print(out, &rules->space, &program->tile[level]);
        strbuf_putc(out, '\n');
    }
    print_perf(out, &program->perf);
}
