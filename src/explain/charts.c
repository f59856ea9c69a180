#include <math.h>

#include "explain/page_parts.h"
#include "explain/why.h"

// ---- expected and measured times ----

enum { MAX_BARS = 20, BAR_TOP = 6, BAR_STEP = 20, BAR_HEIGHT = 13, BAR_LEFT = 24, BAR_RIGHT = 60 };

/* Bars end at four times the first candidate's time: one that is a hundred times slower would make its bar
   invisible. */
static const double LONGEST_BAR = 4;

static double widest_us(const Report *report)
{
    const ReportCandidate *first = &report->candidates[0];
    double widest = 0, most = LONGEST_BAR * fmax(first->costs.time, first->measured_us);
    for (int i = 0; i < report->count && i < MAX_BARS; i++)
        widest = fmax(widest, fmax(report->candidates[i].costs.time, report->candidates[i].measured_us));
    return fmin(widest, most);
}

/* Times are added up only where they are drawn: rounding must not leave gaps. */
static void draw_parts(StrBuf *out, const Costs *costs, double y, double scale, double room)
{
    double from_us = 0;
    for (Part i = 0; i < PART_COUNT; i++) {
        double left = fmin(from_us * scale, room), right = fmin((from_us + costs->part[i]) * scale, room);
        if (right - left > 0.05)
            svg_box(out, BAR_LEFT + left, y, right - left, BAR_HEIGHT, arena_printf(out->arena, "part%d", i));
        from_us += costs->part[i];
    }
}

static void draw_measured(StrBuf *out, double us, double y, double scale, double room)
{
    double x = BAR_LEFT + fmin(us * scale, room);
    svg_line(out, x, y - 2, x, y + BAR_HEIGHT + 2, "mark");
}

static void draw_bar(StrBuf *out, const ReportCandidate *candidate, int position, double scale)
{
    double y = BAR_TOP + position * BAR_STEP, room = PICTURE_WIDTH - BAR_LEFT - BAR_RIGHT;
    double base = y + BAR_HEIGHT - 3;
    svg_text(out, BAR_LEFT - 5, base, "end", candidate->status ? "muted" : "",
             arena_printf(out->arena, "%d", position + 1));
    draw_parts(out, &candidate->costs, y, scale, room);
    if (candidate->measured_us > 0)
        draw_measured(out, candidate->measured_us, y, scale, room);
    double us = candidate->measured_us > 0 ? candidate->measured_us : candidate->costs.time;
    StrBuf words = strbuf_new(out->arena);
    if (candidate->status)
        strbuf_puts(&words, candidate->status);
    else
        quantity(&words, us * 1e-6, "s");
    svg_text(out, PICTURE_WIDTH - BAR_RIGHT + 5, base, "start", "", words.text);
    if (candidate->costs.time * scale > room)
        svg_box(out, BAR_LEFT + room - 12, y, 3, BAR_HEIGHT, "cut");
}

static void draw_legend(StrBuf *out, double y, bool measured)
{
    static const double x[PART_COUNT] = {BAR_LEFT, 112, 236, BAR_LEFT, 112};
    for (Part i = 0; i < PART_COUNT; i++) {
        double row = y + (i >= PART_WAIT ? 16 : 0);
        svg_box(out, x[i], row - 8, 9, 9, arena_printf(out->arena, "part%d", i));
        svg_text(out, x[i] + 13, row, "start", "", part_name[i]);
    }
    if (!measured)
        return;
    svg_line(out, 240, y + 6, 240, y + 18, "mark");
    svg_text(out, 249, y + 16, "start", "", "measured");
}

void chart_times(StrBuf *out, const Report *report)
{
    int count = report->count < MAX_BARS ? report->count : MAX_BARS;
    double bottom = BAR_TOP + count * BAR_STEP,
           scale = (PICTURE_WIDTH - BAR_LEFT - BAR_RIGHT) / widest_us(report);
    svg_begin(out, bottom + 42, "expected time of each candidate, by its parts");
    for (int i = 0; i < count; i++)
        draw_bar(out, &report->candidates[i], i, scale);
    draw_legend(out, bottom + 16, report->gpu != NULL);
    svg_end(out);
}

// ---- roofline ----

enum { ROOF_LEFT = 46, ROOF_RIGHT = 350, ROOF_TOP = 14, ROOF_BOTTOM = 190 };

/* Both axes are logarithmic. */
typedef struct Roofline {
    double peak, dram_gb_s, l2_gb_s;           // Gflop/s, GB/s
    double least_x, most_x, least_y, most_y;   // flop a byte, Gflop/s
} Roofline;

static double x_of(const Roofline *roof, double intensity)
{
    double share = log(intensity / roof->least_x) / log(roof->most_x / roof->least_x);
    return ROOF_LEFT + share * (ROOF_RIGHT - ROOF_LEFT);
}

static double y_of(const Roofline *roof, double gflop_s)
{
    double share = log(gflop_s / roof->least_y) / log(roof->most_y / roof->least_y);
    return ROOF_BOTTOM - share * (ROOF_BOTTOM - ROOF_TOP);
}

/* From a tenth of the ridge point to ten times it, and every point inside. */
static Roofline roofline_of(const Report *report, const ReportCandidate *candidate)
{
    Roofline roof = {.dram_gb_s = report->device.dram_gb_s, .l2_gb_s = report->device.l2_gb_s};
    for (int i = 0; i < candidate->launch_count; i++)
        roof.peak = fmax(roof.peak, candidate->launches[i].peak_gflop_s);
    double ridge = roof.peak / roof.dram_gb_s;
    roof.least_x = ridge / 10;
    roof.most_x = ridge * 10;
    roof.least_y = roof.peak;
    for (int i = 0; i < candidate->launch_count; i++) {
        const ReportLaunch *launch = &candidate->launches[i];
        if (!launch_has_roofline(launch))
            continue;
        roof.least_x = fmin(roof.least_x, launch->flops / launch->dram_bytes / 3);
        roof.most_x = fmax(roof.most_x, launch->flops / launch->dram_bytes * 3);
        roof.least_y = fmin(roof.least_y, launch->flops / launch->costs.time / 1e3);
    }
    roof.least_y = fmin(roof.least_y, roof.least_x * roof.dram_gb_s) / 2;
    roof.most_y = roof.peak * 3;
    return roof;
}

static void draw_decades(StrBuf *out, const Roofline *roof)
{
    for (double x = pow(10, ceil(log10(roof->least_x))); x <= roof->most_x; x *= 10) {
        svg_line(out, x_of(roof, x), ROOF_TOP, x_of(roof, x), ROOF_BOTTOM, "grid");
        svg_text(out, x_of(roof, x), ROOF_BOTTOM + 13, "middle", "muted", arena_printf(out->arena, "%g", x));
    }
    for (double y = pow(10, ceil(log10(roof->least_y))); y <= roof->most_y; y *= 10) {
        svg_line(out, ROOF_LEFT, y_of(roof, y), ROOF_RIGHT, y_of(roof, y), "grid");
        StrBuf label = strbuf_new(out->arena);
        quantity(&label, y * 1e9, "");
        svg_text(out, ROOF_LEFT - 4, y_of(roof, y) + 4, "end", "muted", label.text);
    }
    svg_text(out, ROOF_RIGHT, ROOF_BOTTOM + 27, "end", "muted", "flop a byte of DRAM");
    svg_text(out, 2, ROOF_TOP - 4, "start", "muted", "flop/s");
}

/* The name of a roof stands on the side where no other roof is: that of DRAM below it. */
static void draw_roof(StrBuf *out, const Roofline *roof, double gb_s, const char *class, const char *name)
{
    double ridge = roof->peak / gb_s, first = fmax(roof->least_x, roof->least_y / gb_s);
    if (ridge <= first || ridge >= roof->most_x)
        return;
    svg_line(out, x_of(roof, first), y_of(roof, first * gb_s), x_of(roof, ridge), y_of(roof, roof->peak),
             class);
    svg_line(out, x_of(roof, ridge), y_of(roof, roof->peak), ROOF_RIGHT, y_of(roof, roof->peak), class);
    double middle = sqrt(first * ridge), x = x_of(roof, middle), y = y_of(roof, middle * gb_s);
    bool below = gb_s == roof->dram_gb_s;
    svg_text(out, below ? x + 7 : x - 7, below ? y + 9 : y - 3, below ? "start" : "end", "muted", name);
}

static void draw_point(StrBuf *out, const Roofline *roof, const ReportLaunch *launch, double us,
                       const char *class)
{
    double x = x_of(roof, launch->flops / launch->dram_bytes), y = y_of(roof, launch->flops / us / 1e3);
    strbuf_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\" class=\"%s\"/>\n", x, fmax(y, ROOF_TOP),
                  class);
}

/* A measured time is that of all launches: it has a point where there is but one. */
void chart_roofline(StrBuf *out, const Report *report)
{
    const ReportCandidate *first = &report->candidates[0];
    Roofline roof = roofline_of(report, first);
    bool measured = first->launch_count == 1 && first->measured_us > 0;
    svg_begin(out, ROOF_BOTTOM + 50, "roofline");
    draw_decades(out, &roof);
    draw_roof(out, &roof, roof.l2_gb_s, "roof dashed", "L2");
    draw_roof(out, &roof, roof.dram_gb_s, "roof", "DRAM");
    svg_text(out, ROOF_RIGHT, y_of(&roof, roof.peak) - 5, "end", "muted", first->launches[0].unit);
    for (int i = 0; i < first->launch_count; i++)
        if (launch_has_roofline(&first->launches[i]))
            draw_point(out, &roof, &first->launches[i], first->launches[i].costs.time, "expected");
    if (measured && launch_has_roofline(first->launches))
        draw_point(out, &roof, first->launches, first->measured_us, "measured");
    strbuf_printf(out, "<circle cx=\"%d\" cy=\"%d\" r=\"4.5\" class=\"expected\"/>\n", ROOF_LEFT + 5,
                  ROOF_BOTTOM + 40);
    svg_text(out, ROOF_LEFT + 14, ROOF_BOTTOM + 44, "start", "", "expected");
    if (measured) {
        strbuf_printf(out, "<circle cx=\"%d\" cy=\"%d\" r=\"4.5\" class=\"measured\"/>\n", ROOF_LEFT + 85,
                      ROOF_BOTTOM + 40);
        svg_text(out, ROOF_LEFT + 94, ROOF_BOTTOM + 44, "start", "", "measured");
    }
    svg_end(out);
}

// ---- how busy ----

void chart_rates(StrBuf *out, const ReportLaunch *launch)
{
    enum { LEFT = 112, RIGHT = 46 };
    double room = PICTURE_WIDTH - LEFT - RIGHT;
    svg_begin(out, TERM_COUNT * BAR_STEP + 4, "share of the time for which each resource is busy");
    for (Term i = 0; i < TERM_COUNT; i++) {
        double y = 2 + i * BAR_STEP, share = fmin(launch->costs.term[i] / launch->costs.time, 1);
        bool longest = i == longest_term(&launch->costs);
        svg_text(out, LEFT - 6, y + BAR_HEIGHT - 3, "end", "", term_name[i]);
        svg_box(out, LEFT, y, room, BAR_HEIGHT, "empty");
        svg_box(out, LEFT, y, room * share, BAR_HEIGHT, longest ? "part0" : "part1");
        svg_text(out, LEFT + room + 5, y + BAR_HEIGHT - 3, "start", "",
                 arena_printf(out->arena, "%.0f %%", 100 * share));
    }
    svg_end(out);
}
