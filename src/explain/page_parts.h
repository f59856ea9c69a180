// The pictures of the page, each an inline SVG. They are drawn 360 units wide, so that their text can be read
// on a phone.
#pragma once
#include "base/strbuf.h"
#include "explain/report.h"

enum { PICTURE_WIDTH = 360 };

/* For what stands between tags: & < > " become entities. */
void page_text(StrBuf *out, const char *text);

void svg_begin(StrBuf *out, double height, const char *what);
void svg_end(StrBuf *out);
/* `where`: "start", "middle" or "end" of the words is at x. */
void svg_text(StrBuf *out, double x, double y, const char *where, const char *class, const char *words);
void svg_box(StrBuf *out, double x, double y, double width, double height, const char *class);
void svg_line(StrBuf *out, double x1, double y1, double x2, double y2, const char *class);

// ---- charts.c ----

/* The expected time of each candidate, by its parts, and the measured one. */
void chart_times(StrBuf *out, const Report *report);

/* Gflop/s over flop a byte, below the roofs of memory and arithmetic. */
void chart_roofline(StrBuf *out, const Report *report);

/* For what share of the expected time each resource is busy. */
void chart_rates(StrBuf *out, const ReportLaunch *launch);

// ---- drawings.c ----

/* An SM: its slots for warps, and the blocks that occupy them. */
void draw_occupancy(StrBuf *out, const Report *report, const ReportLaunch *launch);

void draw_waves(StrBuf *out, const ReportLaunch *launch);

/* The problem in blocks, a block in threads' tiles. */
void draw_tiles(StrBuf *out, const ReportLaunch *launch);
