// A ranking in words and pictures: why the first candidate is first, what bounds it, how it fills the device,
// how it is tiled.
#pragma once
#include "explain/report.h"

enum { RANKING_MAX_BYTES = 256 << 20 };   // ten candidates of 16,384 statements come to 150 megabytes

/* For a terminal of a hundred columns. */
char *explain_text(Arena *arena, const Report *report);

/* One HTML file that names no other: light and dark, for screens of any width. */
char *explain_page(Arena *arena, const Report *report);
