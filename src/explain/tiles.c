#include "explain/tiles.h"

#include <math.h>
#include <string.h>

#include "explain/why.h"

/* Of what is worth a drawing the more: an axis that blocks or threads divide, then one that they do not, then
   one that is reduced over, which is walked along. 0: nothing. */
static int worth(const TileAxis *axis, TileLevel level)
{
    if (axis->size[TILE_PROBLEM] <= 1)
        return 0;
    return axis->reduced ? 1 : tile_parts(axis, level) > 1 ? 3 : 2;
}

/* The last two of the worthiest axes. */
TileView tile_view(const ReportLaunch *launch, TileLevel level)
{
    const TileAxis *best = NULL, *next = NULL;
    for (int a = launch->axis_count - 1; a >= 0; a--) {
        const TileAxis *axis = &launch->axes[a];
        int worthy = worth(axis, level);
        if (worthy > (best ? worth(best, level) : 0)) {
            next = best;
            best = axis;
        } else if (worthy > (next ? worth(next, level) : 0)) {
            next = axis;
        }
    }
    bool best_is_down = next && best < next;
    return (TileView){.across = best_is_down ? next : best, .down = best_is_down ? best : next};
}

double tile_parts(const TileAxis *axis, TileLevel level)
{
    return axis ? ceil(axis->size[level] / axis->size[level + 1]) : 1;
}

const char *tile_holder(Arena *arena, const ReportLaunch *launch)
{
    return launch->tile_threads > 1 ? arena_printf(arena, "%.0f threads take", launch->tile_threads)
                                    : "a thread takes";
}

void tile_sizes(StrBuf *out, const ReportLaunch *launch, TileLevel level)
{
    int shown = 0;
    for (int a = 0; a < launch->axis_count; a++) {
        const TileAxis *axis = &launch->axes[a];
        if (axis->size[TILE_PROBLEM] > 1)
            strbuf_printf(out, "%s%s %.0f", shown++ ? " x " : "", axis->name, axis->size[level]);
    }
    strbuf_puts(out, shown ? "" : "1");
}

void tile_steps(StrBuf *out, const ReportLaunch *launch, TileLevel level)
{
    TileView view = tile_view(launch, level);
    int shown = 0;
    for (int a = 0; a < launch->axis_count; a++) {
        const TileAxis *axis = &launch->axes[a];
        double parts = tile_parts(axis, level);
        if (axis == view.down || axis == view.across || parts <= 1)
            continue;
        strbuf_printf(out, "%s%s in %.0f %s of %.0f", shown++ ? ", " : "", axis->name, parts,
                      axis->reduced ? "steps" : "parts", axis->size[level + 1]);
    }
}

// ---- in text ----

enum { MAX_CELLS = 6, CELL = 4, ROWS = 2 * MAX_CELLS + 2, COLUMNS = MAX_CELLS * CELL + 8, GAP = 4 };

typedef struct Panel {
    char line[ROWS][COLUMNS];
    int rows, columns;
} Panel;

/* Up to six parts are drawn; of more the first ones, a gap, and the last. */
static int cells_of(double parts) { return parts <= MAX_CELLS ? (int)parts : MAX_CELLS; }

static bool is_gap(double parts, int cell) { return parts > MAX_CELLS && cell == MAX_CELLS - 2; }

/* +---+---+
   |###|   |     the first part is filled
   +---+---+ */
static Panel draw(double parts_down, double parts_across)
{
    int down = cells_of(parts_down), across = cells_of(parts_across);
    Panel panel = {.rows = 2 * down + 1, .columns = across * CELL + 1};
    for (int y = 0; y < panel.rows; y++)
        for (int x = 0; x < panel.columns; x++) {
            bool on_row = y % 2 == 0, on_column = x % CELL == 0, first = y < 2 && x < CELL;
            bool gap = is_gap(parts_down, y / 2) || is_gap(parts_across, x / CELL);
            panel.line[y][x] = on_row && on_column ? '+'
                               : gap               ? (on_row || on_column ? ' ' : '.')
                               : on_row            ? '-'
                               : on_column         ? '|'
                               : first             ? '#'
                                                   : ' ';
        }
    return panel;
}

static void print_side_by_side(StrBuf *out, const Panel *left, const Panel *right, const char *indent)
{
    for (int y = 0; y < left->rows || y < right->rows; y++) {
        StrBuf line = strbuf_new(out->arena);
        strbuf_printf(&line, "%s%-*s", indent, left->columns + GAP, y < left->rows ? left->line[y] : "");
        strbuf_puts(&line, y < right->rows ? right->line[y] : "");
        while (line.length > 0 && line.text[line.length - 1] == ' ')
            line.length--;
        strbuf_write(out, line.text, line.length);
        strbuf_putc(out, '\n');
    }
}

/* `left, the problem: m 4096 x n 2048 in 32 x 16 blocks, m by n` */
static void print_caption(StrBuf *out, const ReportLaunch *launch, TileLevel level, const char *indent,
                          const char *what, const char *part)
{
    TileView view = tile_view(launch, level);
    double down = tile_parts(view.down, level), across = tile_parts(view.across, level);
    strbuf_printf(out, "%s%s ", indent, what);
    tile_sizes(out, launch, level);
    if (view.down)
        strbuf_printf(out, ", drawn as %.0f x %.0f %s%s, %s by %s", down, across, part, plural(down * across),
                      view.down->name, view.across->name);
    else if (view.across)
        strbuf_printf(out, ", drawn as %.0f %s%s along %s", across, part, plural(across), view.across->name);
    StrBuf steps = strbuf_new(out->arena);
    tile_steps(&steps, launch, level);
    strbuf_printf(out, "%s%s\n", steps.length ? "; " : "", steps.length ? steps.text : "");
}

void tiles_print(StrBuf *out, const ReportLaunch *launch, const char *indent)
{
    TileView whole = tile_view(launch, TILE_PROBLEM), part = tile_view(launch, TILE_BLOCK);
    Panel problem = draw(tile_parts(whole.down, TILE_PROBLEM), tile_parts(whole.across, TILE_PROBLEM));
    Panel block = draw(tile_parts(part.down, TILE_BLOCK), tile_parts(part.across, TILE_BLOCK));
    print_side_by_side(out, &problem, &block, indent);
    print_caption(out, launch, TILE_PROBLEM, indent, "left, the problem:", "block");
    print_caption(out, launch, TILE_BLOCK, indent, "right, a block:", "part");
    strbuf_printf(out, "%s%s ", indent, tile_holder(out->arena, launch));
    tile_sizes(out, launch, TILE_THREAD);
    strbuf_puts(out, " at a time\n");
}
