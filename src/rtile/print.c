// What `-d rtile` shows.
#include <inttypes.h>

#include "rtile/rtile.h"

static const char *const level_name[LEVEL_COUNT] = {
    [LEVEL_REGISTER] = "register", [LEVEL_SHARED] = "shared", [LEVEL_GLOBAL] = "global",
};

void rtile_print_axes(StrBuf *out, const TileSpace *space)
{
    strbuf_printf(out, "  %-9s", "level");
    for (int a = 0; a < space->axis_count; a++)
        strbuf_printf(out, " %9s", space->axes[a].name);
    strbuf_putc(out, '\n');
}

void rtile_print(StrBuf *out, const TileSpace *space, Level level, const RTile *tile)
{
    strbuf_printf(out, "  %-9s", level_name[level]);
    for (int a = 0; a < space->axis_count; a++)
        strbuf_printf(out, " %9" PRId64, tile->size[a]);
    strbuf_putc(out, '\n');
}

static void print_data_tile(StrBuf *out, const TileSpace *space, const DataTile *tile)
{
    strbuf_printf(out, "  %-9s [", tile->output ? "store" : "load");
    for (int d = 0; d < tile->rank; d++) {
        strbuf_puts(out, d ? ", " : "");
        affine_print(out, &tile->dims[d].index, space->axes, space->axis_count);
        if (d < MAX_REPEATED && tile->repeats[d].run)
            strbuf_printf(out, " in runs of %" PRId64 ", cycles of %" PRId64 ", %" PRId64 " times",
                          tile->repeats[d].run, tile->repeats[d].cycle, tile->repeats[d].again);
    }
    strbuf_printf(out, "] %d bits", tile->element_bits);
    if (tile->staged)
        strbuf_printf(out, ", staged along dimension %d", tile->staged_inner);
    if (tile->scatter > 1)
        strbuf_printf(out, ", scatter %.3g", tile->scatter);
    strbuf_putc(out, '\n');
}

static void print_rule(StrBuf *out, const TileSpace *space, Level level)
{
    strbuf_printf(out, "  %-9s", level_name[level]);
    for (int a = 0; a < space->axis_count; a++) {
        const AxisRule *rule = &space->rule[level][a];
        strbuf_printf(out, "  %2" PRId64 "..%-4" PRId64, rule->granule, rule->limit);
    }
    strbuf_putc(out, '\n');
}

void space_print(StrBuf *out, const TileSpace *space)
{
    RTile problem = rtile_problem(space);
    rtile_print_axes(out, space);
    rtile_print(out, space, LEVEL_GLOBAL, &problem);
    print_rule(out, space, LEVEL_SHARED);
    print_rule(out, space, LEVEL_REGISTER);
    for (int i = 0; i < space->tile_count; i++)
        print_data_tile(out, space, &space->tiles[i]);
}
