#include <math.h>
#include <string.h>

#include "explain/page_parts.h"
#include "explain/tiles.h"
#include "explain/why.h"

// ---- an SM and its warps ----

enum { SLOTS_ACROSS = 16, MAX_SLOTS = 128, SLOT = 20, SLOT_GAP = 2 };

static void draw_slots(StrBuf *out, const Report *report, const ReportLaunch *launch)
{
    double warps = ceil(launch->threads / report->device.warp_size),
           used = warps * report_resident(report, launch);
    double most = fmin(floor(report->device.max_threads / report->device.warp_size), MAX_SLOTS);
    for (int i = 0; i < most; i++) {
        double x = 10 + i % SLOTS_ACROSS * (SLOT + 1.2), y = 4 + i / SLOTS_ACROSS * (SLOT / 2 + SLOT_GAP);
        int block = (int)(i / warps);
        svg_box(out, x, y, SLOT, SLOT / 2., i >= used ? "empty" : block % 2 ? "part1" : "part0");
    }
}

/* A bar for each resource, as long as the blocks that it has room for; the shortest one limits. */
static void draw_room(StrBuf *out, const ReportLaunch *launch, double top)
{
    enum { LEFT = 112, RIGHT = 40 };
    double most = 1, y = top;
    for (Resource i = 0; i < RESOURCE_COUNT; i++)
        most = fmax(most, launch->room[i]);
    for (Resource i = 0; i < RESOURCE_COUNT; i++) {
        bool limits = launch->room[i] == launch->blocks_per_sm;
        if (launch->room[i] < 0)
            continue;
        double width =
            (PICTURE_WIDTH - LEFT - RIGHT) * sqrt(launch->room[i] / most);   // long ones are of no interest
        svg_text(out, LEFT - 6, y + 10, "end", "", resource_name[i]);
        svg_box(out, LEFT, y, width, 13, limits ? "part2" : "empty");
        svg_text(out, LEFT + width + 5, y + 10, "start", "",
                 arena_printf(out->arena, "%.0f", launch->room[i]));
        y += 18;
    }
}

void draw_occupancy(StrBuf *out, const Report *report, const ReportLaunch *launch)
{
    double most = fmin(floor(report->device.max_threads / report->device.warp_size), MAX_SLOTS);
    double slots = ceil(most / SLOTS_ACROSS) * (SLOT / 2 + SLOT_GAP) + 12;
    svg_begin(out, slots + RESOURCE_COUNT * 18, "warps on an SM, and room for blocks by resource");
    draw_slots(out, report, launch);
    draw_room(out, launch, slots);
    svg_end(out);
}

// ---- waves ----

void draw_waves(StrBuf *out, const ReportLaunch *launch)
{
    enum { MOST = 12 };
    int shown = launch->waves <= MOST ? (int)ceil(launch->waves) : MOST;
    double width = 340.0 / (shown > 4 ? shown : 4);
    svg_begin(out, 40, "waves of blocks");
    for (int i = 0; i < shown; i++) {
        bool gap = launch->waves > MOST && i == MOST - 2;
        bool last = i == shown - 1;
        double full = last ? launch->waves - ceil(launch->waves) + 1 : 1, x = 10 + i * width;
        if (gap) {
            svg_text(out, x + width / 2, 18, "middle", "muted", "...");
            continue;
        }
        svg_box(out, x, 4, width - 3, 18, "empty");
        svg_box(out, x, 4, (width - 3) * full, 18, "part0");
        double number = last ? ceil(launch->waves) : i + 1;
        svg_text(out, x + width / 2, 35, "middle", "muted", arena_printf(out->arena, "%.0f", number));
    }
    svg_end(out);
}

// ---- tiles ----

enum { PANEL = 150, MAX_PARTS = 32 };

/* As long as it is, but neither so flat that it cannot be seen: 49152 x 1024 is drawn 150 x 45. */
static void panel_size(const TileView *view, TileLevel level, double *width, double *height)
{
    double across = view->across ? view->across->size[level] : 1,
           down = view->down ? view->down->size[level] : 1;
    double longest = fmax(across, down);
    *width = PANEL * fmax(across / longest, 0.3);
    *height = PANEL * fmax(down / longest, 0.3);
}

/* Lines between parts. Of more than 32 only every second, fourth, … is drawn. */
static void draw_lines(StrBuf *out, double parts, double x, double y, double width, double height,
                       bool across)
{
    double step = 1;
    while (parts / step > MAX_PARTS)
        step *= 2;
    for (double i = step; i < parts; i += step)
        if (across)
            svg_line(out, x + width * i / parts, y, x + width * i / parts, y + height, "line");
        else
            svg_line(out, x, y + height * i / parts, x + width, y + height * i / parts, "line");
}

static void draw_panel(StrBuf *out, const TileView *view, TileLevel level, double x, double y)
{
    double width, height, across = tile_parts(view->across, level), down = tile_parts(view->down, level);
    panel_size(view, level, &width, &height);
    svg_box(out, x, y, width, height, "sheet");
    draw_lines(out, across, x, y, width, height, true);
    draw_lines(out, down, x, y, width, height, false);
    svg_box(out, x, y, fmax(width / across, 2), fmax(height / down, 2), "part2");
    svg_box(out, x, y, width, height, "frame");
}

static const char *parts_of(Arena *arena, const TileView *view, TileLevel level, const char *what)
{
    double across = tile_parts(view->across, level), down = tile_parts(view->down, level);
    if (!view->down)
        return arena_printf(arena, "%.0f %s%s", across, what, plural(across));
    return arena_printf(arena, "%.0f x %.0f %s%s", down, across, what, plural(down * across));
}

static void draw_level(StrBuf *out, const ReportLaunch *launch, TileLevel level, double x, const char *name,
                       const char *parts)
{
    TileView view = tile_view(launch, level);
    double width, height;
    panel_size(&view, level, &width, &height);
    svg_text(out, x, 12, "start", "strong", name);
    draw_panel(out, &view, level, x, 20);
    svg_text(out, x, 20 + height + 15, "start", "", parts_of(out->arena, &view, level, parts));
}

void draw_tiles(StrBuf *out, const ReportLaunch *launch)
{
    TileView whole = tile_view(launch, TILE_PROBLEM), part = tile_view(launch, TILE_BLOCK);
    double width, problem, block;
    panel_size(&whole, TILE_PROBLEM, &width, &problem);
    panel_size(&part, TILE_BLOCK, &width, &block);
    svg_begin(out, 20 + fmax(problem, block) + 22,
              "the problem cut into blocks, and a block into threads' tiles");
    draw_level(out, launch, TILE_PROBLEM, 10, "the problem", "block tile");
    draw_level(out, launch, TILE_BLOCK, 195, "a block", "thread tile");
    svg_end(out);
}
