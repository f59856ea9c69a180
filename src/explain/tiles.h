// How a kernel cuts its problem into blocks, and a block into threads' tiles: what drawings in text and
// pictures share.
#pragma once
#include "base/strbuf.h"
#include "explain/report.h"

/* Two axes are drawn, the others are told. */
typedef struct TileView {
    const TileAxis *down,
        *across;   // NULL: the kernel has no second one, or none at all, that is longer than 1
} TileView;

TileView tile_view(const ReportLaunch *launch, TileLevel level);

/* Tiles of the level below along the axis. NULL: one. */
double tile_parts(const TileAxis *axis, TileLevel level);

/* `a thread takes`, `32 threads take`: what holds the smallest tile. */
const char *tile_holder(Arena *arena, const ReportLaunch *launch);

/* `m 128 x n 128`: all axes longer than 1 at the level. */
void tile_sizes(StrBuf *out, const ReportLaunch *launch, TileLevel level);

/* `k in 256 steps of 16`: the axes that no picture of the level shows. */
void tile_steps(StrBuf *out, const ReportLaunch *launch, TileLevel level);

/* The problem and, to its right, one block; each line begins with `indent`. */
void tiles_print(StrBuf *out, const ReportLaunch *launch, const char *indent);
