// Sectors of tensors whose elements are strided or scattered: one by one, as the fusion's accesses say.
#include <string.h>

#include "base/checked.h"
#include "kernel/schedule/count_parts.h"
#include "rtile/space.h"

enum { MOST_POINTS = 1 << 21 };

/* One axis of all the fusion's outputs, and one of all its terms. */
static bool is_flat(const TileSpace *space, const Fusion *fusion)
{
    return fusion->op_count > 0 && space->axis_count <= 2 && !space->axes[0].reduction &&
           space->axes[0].extent == spatial_points(fusion) &&
           (space->axis_count == 1 || space->axes[1].extent >= reduction_points(fusion));
}

/* Where the tile's elements are in memory, if all accesses of its tensor have them there, and at all positions. */
static bool offset_of(const Fusion *fusion, const DataTile *tile, Affine *offset)
{
    FusedAccess found[MAX_ACCESSES];
    int count = tile->output ? 0 : fusion_accesses(fusion, found, MAX_ACCESSES), uses = 0;
    bool alike = true;
    for (int i = 0; i < count + (tile->output ? fusion->op_count : 0); i++) {
        const Access *access = tile->output ? &fusion->ops[i].store : found[i].access;
        if ((tile->output && !fusion->ops[i].stored) || strcmp(access->tensor->name, tile->name) != 0)
            continue;
        Affine here = tile->output ? access_offset(access) : fused_offset(fusion, &found[i]);
        alike &= tile->output || (!found[i].guarded && !found[i].fetch);
        alike &= uses++ == 0 || memcmp(&here, offset, sizeof here) == 0;
        *offset = here;
    }
    return uses > 0 && alike;
}

/* Of a position along the fusion's axes [first, end), of which the last is the innermost. */
static int64_t offset_at(const Fusion *fusion, const Affine *offset, int first, int end, int64_t position)
{
    int64_t at = 0;
    for (int a = end - 1; a >= first; a--) {
        at += offset->coef[a] * (position % fusion->axes[a].extent);
        position /= fusion->axes[a].extent;
    }
    return at;
}

/* Room for what all tiles of the block bring of the tensor, `terms` of each of their points. */
static SectorSet *set_of(CountWalk *walk, int index, int64_t terms)
{
    const KernelKind *kind = walk->kind;
    SectorSet *set = &walk->scattered[index];
    int64_t most = walk->tiles * terms;
    for (int a = 0; a < kind->space->axis_count; a++) {
        int64_t extent = kind->space->axes[a].extent, size = walk->block->shared->size[a] * kind_turns(kind);
        most *= kind->space->axes[a].reduction ? 1 : size < extent ? size : extent;
    }
    if (set->places && walk->in_turn)
        return set;
    set->bits = 1;
    while (INT64_C(1) << set->bits < 2 * most)
        set->bits++;
    set->places = NEW_ARRAY(walk->region.arena, int64_t, (size_t)1 << set->bits);
    return set;
}

static bool is_new(SectorSet *set, int64_t sector)
{
    uint64_t at = ((uint64_t)sector * 0x9E3779B97F4A7C15u) >> (64 - set->bits);
    while (set->places[at] && set->places[at] != sector + 1)
        at = (at + 1) & ((UINT64_C(1) << set->bits) - 1);
    bool found = set->places[at] != 0;
    set->places[at] = sector + 1;
    return !found;
}

/* Each of the fusion's outputs is at one position along the space's axes. */
static bool goes_along_axes(const TileSpace *space, const Fusion *fusion)
{
    uint32_t axes = 0;
    for (int a = 0; a < space->axis_count; a++)
        axes |= space->axes[a].reduction ? 0 : space->fused[a];
    return axes && fusion->spatial_count < MAX_AXES && axes == (1u << fusion->spatial_count) - 1;
}

typedef struct Outputs {
    const Region *region;
    const Fusion *fusion;
    const Affine *offset;
    int bits;   // of an element
    SectorSet *seen;
    int64_t sectors;
} Outputs;

/* Of the position along some of the fusion's axes. */
static int64_t offset_along(const Outputs *outputs, uint32_t axes, int64_t position)
{
    int64_t at = 0;
    for (int a = outputs->fusion->spatial_count - 1; a >= 0; a--)
        if (axes >> a & 1) {
            at += outputs->offset->coef[a] * (position % outputs->fusion->axes[a].extent);
            position /= outputs->fusion->axes[a].extent;
        }
    return at;
}

/* Those of the block from the space's axis on. `number`: of the position in the block's tile, row by row. */
static void add_outputs(Outputs *outputs, int axis, int64_t element, int64_t number)
{
    const Region *region = outputs->region;
    const TileSpace *space = region->kind->space;
    while (axis < space->axis_count && space->axes[axis].reduction)
        axis++;
    if (axis == space->axis_count) {
        if (region_is_own_number(region, number))
            outputs->sectors += is_new(outputs->seen, element * outputs->bits / (8 * SECTOR_BYTES));
        return;
    }
    for (int64_t p = region->first[axis]; p < region->first[axis] + region->count[axis]; p++)
        if (region_is_own(region, axis, p))
            add_outputs(outputs, axis + 1, element + offset_along(outputs, space->fused[axis], p),
                        number * region->block->shared->size[axis] + p - region->first[axis]);
}

/* Of a tile along several axes, each of which goes along some of the fusion's. */
static int64_t count_outputs(CountWalk *walk, const Region *region, int index, const Affine *offset)
{
    const TileSpace *space = walk->kind->space;
    const DataTile *tile = &space->tiles[index];
    int64_t points = 1;
    for (int a = 0; a < space->axis_count; a++)
        points = size_product(points, space->axes[a].reduction ? 1 : region->count[a]);
    if (points > MOST_POINTS || tile->element_bits < 8)
        return COUNT_UNKNOWN;
    Outputs outputs = {region, walk->fusion, offset, tile->element_bits, set_of(walk, index, 1), 0};
    add_outputs(&outputs, 0, offset->constant, 0);
    return outputs.sectors;
}

int64_t count_scattered(CountWalk *walk, const Region *region, int index)
{
    const TileSpace *space = walk->kind->space;
    const DataTile *tile = &space->tiles[index];
    const Fusion *fusion = walk->fusion;
    Affine offset;
    bool of_results = tile->output || (tile->beside && region->dealt.threads);
    if (of_results && goes_along_axes(space, fusion) && offset_of(fusion, tile, &offset))
        return region_is_stored_elsewhere(region, tile) ? 0 : count_outputs(walk, region, index, &offset);
    if (region->dealt.threads || !is_flat(space, fusion) || !tile->name || !offset_of(fusion, tile, &offset))
        return COUNT_UNKNOWN;
    int64_t terms = reduction_points(fusion), sectors = 0;
    if (size_product(region->count[0], terms) > MOST_POINTS || region_is_stored_elsewhere(region, tile))
        return region_is_stored_elsewhere(region, tile) ? 0 : COUNT_UNKNOWN;
    SectorSet *seen = set_of(walk, index, terms);
    for (int64_t p = region->first[0]; p < region->first[0] + region->count[0]; p++)
        for (int64_t t = 0; t < terms; t++) {
            int64_t element = offset.constant + offset_at(fusion, &offset, 0, fusion->spatial_count, p) +
                              offset_at(fusion, &offset, fusion->spatial_count, fusion->axis_count, t);
            bool own = space->axis_count == 1 || region_is_own(region, 1, t);
            sectors += own && is_new(seen, element * tile->element_bits / (8 * SECTOR_BYTES));
        }
    return sectors;
}
