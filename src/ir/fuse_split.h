// Parts of a reduction that begin anywhere among its points.
//
// fusion_split() of fuse.h cuts one axis. A sum over images, rows and columns may be cut between any two
// pixels instead, so that there is a part for each block.
#pragma once
#include "ir/axis_group.h"

/* The pair of fusion_split(), whose parts have `chunk` of the points of all reduction axes in that order. A
   part runs over all of them, and is guarded by those that are its own: 0 <= point - part * chunk < chunk.
   NULL: one part has them all. */
FusionPair *fusion_split_points(Arena *arena, const Fusion *fusion, const AxisGroup *points, int64_t chunk);

/* The points of one part. */
typedef struct PointsShare {
    int part;        // the spatial axis
    int64_t chunk;   // points of a part; 0: the fusion has no such parts
    AxisGroup points;
} PointsShare;

/* Whether the guard is that of such parts, and which. */
bool points_share_find(const Fusion *fusion, const Guard *guard, PointsShare *share);
