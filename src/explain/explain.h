// A ranking in words and pictures: why the first candidate is first, what bounds it, how it fills the device,
// how it is tiled.
#pragma once
#include "explain/report.h"

enum { RANKING_MAX_BYTES = 64 << 20 };   // a hundred candidates come to one or two megabytes

/* For a terminal of a hundred columns. */
char *explain_text(Arena *arena, const Report *report);

/* One HTML file that names no other: light and dark, for screens of any width. */
char *explain_page(Arena *arena, const Report *report);
