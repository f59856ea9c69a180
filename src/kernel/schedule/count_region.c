// Which elements of a tensor belong to a block: position by position, since nobody waits for it.
#include <string.h>

#include "base/checked.h"
#include "kernel/schedule/count.h"

// ---- positions ----

/* Along a spatial axis the block has one shared tile, or several one after the other if it is persistent. */
static int64_t stretch_size(const KernelKind *kind, const CountedBlock *block, int axis)
{
    return block->shared->size[axis] * kind_turns(kind);
}

TilePlace region_place(const KernelKind *kind, const CountedBlock *block)
{
    TilePlace place = {{0}};
    bool last = block->last != schedule_is_backwards(kind->schedule);
    for (int a = 0; a < kind->space->axis_count && last; a++) {
        int64_t tiles = ceil_div(kind->space->axes[a].extent, stretch_size(kind, block, a));
        if (a == kind->schedule->cluster_axis)
            tiles = round_up(tiles, kind_multicast(kind));
        place.at[a] = kind->space->axes[a].reduction ? 0 : tiles - 1;
    }
    return place;
}

static void find_positions(Region *region, const TilePlace *place, int axis)
{
    const KernelKind *kind = region->kind;
    int64_t extent = kind->space->axes[axis].extent, size = stretch_size(kind, region->block, axis);
    if (kind->space->axes[axis].reduction) {
        region->count[axis] = extent;
        return;
    }
    region->first[axis] = place->at[axis] * size;
    int64_t left = extent - region->first[axis];
    region->count[axis] = left < 0 ? 0 : left < size ? left : size;
}

/* What it loads of tiles that lie back. */
static void lie_back(Region *region, int axis)
{
    int64_t extent = region->kind->space->axes[axis].extent, size = region->block->shared->size[axis];
    if (extent < size || !(region->kind->schedule->back >> axis & 1))
        return;
    if (region->first[axis] > extent - size)
        region->first[axis] = extent - size;
    region->count[axis] = size;
}

Region region_of(Arena *arena, const KernelKind *kind, const CountedBlock *block, const TilePlace *place,
                 bool loaded)
{
    Region region = {.arena = arena, .kind = kind, .block = block};
    for (int a = 0; a < kind->space->axis_count; a++) {
        find_positions(&region, place, a);
        if (loaded)
            lie_back(&region, a);
    }
    return region;
}

/* Of a reduction that a cluster shares (cluster split-K), blocks have runs round-robin. */
typedef struct OwnRuns {
    int64_t shift, run, rank, cluster;   // positions that the first run lacks; of a run; the block's rank, of so many
} OwnRuns;

static OwnRuns own_runs(const Region *region, int axis)
{
    const KernelKind *kind = region->kind;
    const Schedule *schedule = kind->schedule;
    return (OwnRuns){
        .shift = schedule->vector ? region->first[0] * schedule->points % schedule->vector : 0,
        .run = schedule->run ? schedule->run : region->block->shared->size[axis],
        .rank = region->block->last ? kind_splits(kind) - 1 : 0,
        .cluster = kind_splits(kind),
    };
}

static bool is_shared(const Region *region, int axis)
{
    return axis == region->kind->schedule->cluster_axis && kind_splits(region->kind) > 1;
}

bool region_is_own(const Region *region, int axis, int64_t position)
{
    const Dealt *dealt = &region->dealt;
    if (dealt->run && axis == dealt->axis)
        return (position - dealt->from) / dealt->run % kind_splits(region->kind) ==
               (region->block->last ? kind_splits(region->kind) - 1 : 0);
    if (!is_shared(region, axis))
        return true;
    OwnRuns runs = own_runs(region, axis);
    return (position + runs.shift) / runs.run % runs.cluster == runs.rank;
}

bool region_is_own_number(const Region *region, int64_t number)
{
    int splits = kind_splits(region->kind);
    return !region->dealt.threads ||
           number / region->dealt.threads % splits == (region->block->last ? splits - 1 : 0);
}

/* Its positions among the first ones of all runs. */
static int64_t own_before(const OwnRuns *runs, int64_t end)
{
    int64_t cycle = runs->run * runs->cluster, left = end % cycle - runs->rank * runs->run;
    return end / cycle * runs->run + (left < 0 ? 0 : left < runs->run ? left : runs->run);
}

int64_t region_positions(const Region *region, int axis)
{
    int64_t count = region->count[axis], points = region->kind->schedule->points;
    if (region->kind->space->axes[axis].reduction && points && points < count)
        count = points;
    if (!is_shared(region, axis))
        return count;
    OwnRuns runs = own_runs(region, axis);
    return own_before(&runs, runs.shift + count) - own_before(&runs, runs.shift);
}

int64_t region_vectors(const Region *region, int64_t row)
{
    const Schedule *schedule = region->kind->schedule;
    OwnRuns runs = own_runs(region, 0);
    int64_t vector = schedule->vector ? schedule->vector : 1, shift = row * schedule->points % vector;
    return own_before(&runs, round_up(shift + schedule->points, vector));
}

bool region_is_stored_elsewhere(const Region *region, const DataTile *tile)
{
    const KernelKind *kind = region->kind;
    bool elsewhere = false, reduced = false;
    for (int a = 0; a < kind->space->axis_count; a++)
        if (kind->space->axes[a].reduction)
            reduced |= data_tile_depends(tile, a);
        else
            elsewhere |= region->first[a] > 0 && !data_tile_depends(tile, a);
    bool makes_none = !region->dealt.run && !region->dealt.threads && !reduced && kind_splits(kind) > 1 &&
                      region->block->last;
    return (tile->output && (elsewhere || makes_none)) || (tile->beside && makes_none);
}

/* The least or the greatest index along a dimension, of all that the block loads, be it in the tensor or not. */
static int64_t end_of(const Region *region, const Dim *dim, bool last, bool inside)
{
    int64_t index = dim->index.constant;
    for (int a = 0; a < region->kind->space->axis_count; a++) {
        bool whole = !region->kind->space->axes[a].reduction && !inside;
        int64_t count = whole ? region->block->shared->size[a] : region->count[a];
        index += dim->index.coef[a] * (region->first[a] + (last ? count - 1 : 0));
    }
    return index;
}

/* Coordinates along a dimension of the tensor. */
typedef struct Coordinates {
    int64_t size;          // of the dimension, as it lies in memory
    int64_t count;
    int64_t *at;           // ascending, each once
    int64_t positions;     // that have them
} Coordinates;

static int64_t size_of(const Region *region, const Dim *dim)
{
    int64_t points = region->kind->schedule->points;
    for (int a = 0; a < region->kind->space->axis_count; a++)
        if (points && region->kind->space->axes[a].reduction && dim->index.coef[a] && points < dim->size)
            return points;
    return dim->size;
}

/* The part of a dimension that the block's index reaches. */
typedef struct Stretch {
    int64_t low, end;
} Stretch;

static Stretch stretch_of(const Region *region, const Dim *dim)
{
    int64_t low = end_of(region, dim, false, true), end = end_of(region, dim, true, true) + 1,
            size = size_of(region, dim);
    return (Stretch){low < 0 ? 0 : low, end > size ? size : end};
}

bool region_is_countable(const Region *region, const DataTile *tile)
{
    enum { MOST_ELEMENTS = 1 << 24 };
    int64_t reached = 1, elements = 1;
    for (int d = 0; d < tile->rank; d++) {
        Stretch stretch = stretch_of(region, &tile->dims[d]);
        reached = size_product(reached, stretch.end > stretch.low ? stretch.end - stretch.low : 0);
        elements = size_product(elements, tile->dims[d].size);
        if (d < MAX_REPEATED && tile->repeats[d].run && tile->dims[d].size > MOST_ELEMENTS)
            return false;
    }
    return reached <= MOST_ELEMENTS && elements <= (int64_t)MOST_ELEMENTS << 10;
}

/* Marks what the index reaches with the axes from `axis` on. */
static void mark(const Region *region, const Affine *index, int axis, int64_t value, Stretch stretch,
                 bool *marks)
{
    while (axis < region->kind->space->axis_count && !index->coef[axis])
        axis++;
    if (axis == region->kind->space->axis_count) {
        if (value >= stretch.low && value < stretch.end)
            marks[value - stretch.low] = true;
        return;
    }
    for (int64_t i = region->first[axis]; i < region->first[axis] + region->count[axis]; i++)
        if (region_is_own(region, axis, i))
            mark(region, index, axis + 1, value + index->coef[axis] * i, stretch, marks);
}

/* The element that a position of repeated ones has. */
static int64_t element_at(const Repeats *repeats, int64_t position)
{
    int64_t cycle = repeats->run * repeats->cycle;
    return position / (cycle * repeats->again) * repeats->cycle + position / repeats->run % repeats->cycle;
}

/* The channel of a filter at a position along k; -1: there is none. */
static int64_t channel_at(const TapTile *taps, int64_t position)
{
    int64_t channel = position % taps->step;
    return channel < taps->channels ? position / taps->step * taps->channels + channel : -1;
}

/* Positions along k become channels of all taps. */
static void leave_out_rest(const TapTile *taps, Coordinates *found)
{
    int64_t count = 0;
    for (int64_t i = 0; i < found->count; i++)
        if (channel_at(taps, found->at[i]) >= 0)
            found->at[count++] = channel_at(taps, found->at[i]);
    found->count = count;
    found->size = channel_at(taps, found->size - taps->step) + taps->channels;
}

static uint64_t used_taps(const Region *region, const TapPhases *phases)
{
    int columns = phases->columns_axis;
    return phases_used(phases, region->first[columns], region->block->shared->size[columns]);
}

/* Of the taps that the block's columns have all channels. */
static Coordinates used_channels(const Region *region, const TapPhases *phases)
{
    uint64_t used = used_taps(region, phases);
    Coordinates found = {.size = phases->taps * phases->channels};
    found.at = NEW_ARRAY(region->arena, int64_t, found.size);
    for (int64_t i = 0; i < found.size; i++)
        if (used >> i / phases->channels & 1)
            found.at[found.count++] = i;
    found.positions = found.count;
    return found;
}

static Coordinates coordinates_of(const Region *region, const DataTile *tile, int d)
{
    const Dim *dim = &tile->dims[d];
    const TapPhases *phases = region->kind->space->phases;
    if (phases && tile->taps.step && d == tile->taps.k)
        return used_channels(region, phases);
    const Repeats *repeats = d < MAX_REPEATED && tile->repeats[d].run ? &tile->repeats[d] : NULL;
    int64_t size = size_of(region, dim);
    Stretch stretch = stretch_of(region, dim), kept = stretch;
    int64_t length = stretch.end > stretch.low ? stretch.end - stretch.low : 0;
    if (repeats)
        kept = (Stretch){0, element_at(repeats, size - 1) + 1};
    bool *marks = NEW_ARRAY(region->arena, bool, length + 1);
    bool *elements = repeats ? NEW_ARRAY(region->arena, bool, kept.end) : marks;
    Coordinates found = {.size = repeats ? kept.end : size};
    mark(region, &dim->index, 0, dim->index.constant, stretch, marks);
    for (int64_t i = 0; i < length; i++) {
        found.positions += marks[i];
        if (repeats && marks[i])
            elements[element_at(repeats, stretch.low + i)] = true;
    }
    found.at = NEW_ARRAY(region->arena, int64_t, found.positions + 1);
    for (int64_t i = 0; i < (repeats ? kept.end : length); i++)
        if (elements[i])
            found.at[found.count++] = kept.low + i;
    if (tile->taps.step && d == tile->taps.k)
        leave_out_rest(&tile->taps, &found);
    return found;
}

// ---- runs of memory ----

/* Goes through the runs of the block's part in order. */
typedef struct RunWalk {
    int64_t first, end;   // of the run under way, elements; equal: there is none
    int bits, count;      // of an element; runs so far
    unsigned char *seen;  // NULL, or a bit for each sector
    int64_t piece_bytes, tensor_bytes;
    int64_t sectors, bytes;   // of vectors, inside the tensor
} RunWalk;

static void end_run(RunWalk *runs)
{
    if (runs->first == runs->end)
        return;
    int64_t begin = runs->first * runs->bits / 8, last = (runs->end * runs->bits - 1) / 8;
    for (int64_t s = begin / SECTOR_BYTES; s <= last / SECTOR_BYTES; s++) {
        runs->sectors += !(runs->seen[s / 8] >> s % 8 & 1);
        runs->seen[s / 8] = (unsigned char)(runs->seen[s / 8] | 1 << s % 8);
    }
    int64_t piece = runs->piece_bytes, end = (last / piece + 1) * piece;
    runs->bytes += (end < runs->tensor_bytes ? end : runs->tensor_bytes) - begin / piece * piece;
    runs->count++;
}

static void add_element(RunWalk *runs, int64_t element)
{
    if (element != runs->end || runs->first == runs->end) {
        end_run(runs);
        runs->first = element;
    }
    runs->end = element + 1;
}

/* Runs of a tile that is kept row by row end with its rows; others go on wherever memory does. */
static void walk_dims(RunWalk *runs, const Coordinates *dims, int rank, int64_t element, bool joins)
{
    if (rank == 0) {
        add_element(runs, element);
        return;
    }
    int64_t stride = 1;
    for (int d = 1; d < rank; d++)
        stride *= dims[d].size;
    for (int64_t i = 0; i < dims[0].count; i++)
        walk_dims(runs, dims + 1, rank - 1, element + dims[0].at[i] * stride, joins);
    if (rank == 1 && !joins) {
        end_run(runs);
        runs->first = runs->end;
    }
}

/* The run from the first element to the last one: of whole planes, and of the lines of one to both its
   ends. */
static void add_span(RunWalk *runs, const Region *region, const DataTile *tile)
{
    int64_t outer[2] = {0}, inner[2] = {0}, stride = 1;
    for (int d = tile->rank - 1; d >= 0; stride *= tile->dims[d--].size)
        for (int last = 0; last < 2; last++) {
            bool is_outer = stride >= tile->plane;
            *(is_outer ? &outer[last] : &inner[last]) +=
                stride * end_of(region, &tile->dims[d], last, is_outer);
        }
    for (int last = 0; last < 2; last++) {
        int64_t at = inner[last] + last;
        inner[last] = at < 0 ? 0 : at > tile->plane ? tile->plane : at;
    }
    runs->first = outer[0] + inner[0];
    runs->end = outer[1] + inner[1];
    end_run(runs);
}

/* What the block's outputs see: channels of all taps along one dimension, outputs along the one before, groups, whose channels
   follow in a pixel, along the first. */
static void walk_pixels(RunWalk *runs, const PixelWalk *walk, const TapTile *taps, const Coordinates *dims)
{
    const Coordinates *groups = &dims[taps->k - 2], *outputs = &dims[taps->k - 1], *seen = &dims[taps->k];
    for (int64_t g = 0; g < groups->count; g++)
        for (int64_t i = 0; i < outputs->count; i++)
            for (int64_t c = 0; c < seen->count; c++) {
                int64_t pixel = pixel_at(walk, outputs->at[i], seen->at[c] / taps->channels);
                int64_t first = (pixel * groups->size + groups->at[g]) * taps->channels;
                if (pixel >= 0)
                    add_element(runs, first + seen->at[c] % taps->channels);
            }
}

/* A filter's columns: of each phase its own taps. */
static void walk_phases(RunWalk *runs, const Region *region, const TapPhases *phases)
{
    int64_t first = region->first[phases->columns_axis];
    for (int64_t n = first; n < first + region->count[phases->columns_axis]; n++)
        for (int tap = 0; tap < phases->taps; tap++) {
            int64_t phase = n / phases->columns;
            int64_t at = phases->offsets[phase * phases->taps + tap] + n % phases->columns * phases->column_stride;
            for (int64_t c = 0; c < phases->channels && phases->used[phase] >> tap & 1; c++)
                add_element(runs, at + c * phases->channel_stride);
        }
}

static RunWalk runs_of(const Region *region, const DataTile *tile, int64_t piece_bytes, unsigned char **seen)
{
    Coordinates dims[MAX_RANK];
    int64_t elements = 1;
    for (int d = 0; d < tile->rank; d++) {
        dims[d] = coordinates_of(region, tile, d);
        elements *= dims[d].size;
    }
    if (tile->taps.pixels > 0)
        elements = pixels_of(&region->kind->space->walk, dims[tile->taps.k - 1].size) * dims[tile->taps.k - 2].size * tile->taps.channels;
    RunWalk runs = {.bits = tile->element_bits, .piece_bytes = piece_bytes};
    int64_t bytes = ceil_div(elements * tile->element_bits, 8), sectors = bytes / SECTOR_BYTES + 2;
    runs.tensor_bytes = region->kind->schedule->kept ? INT64_MAX : bytes;   // the last vector of all rows is copied whole
    runs.seen = seen && *seen ? *seen : NEW_ARRAY(region->arena, unsigned char, sectors / 8 + 1);
    if (seen)
        *seen = runs.seen;
    if (region_is_stored_elsewhere(region, tile))
        return runs;
    if (tile->plane && !tile->output) {
        add_span(&runs, region, tile);
        return runs;
    }
    if (tile->taps.step && tile->taps.pixels <= 0 && region->kind->space->phases)
        walk_phases(&runs, region, region->kind->space->phases);
    else if (tile->taps.pixels > 0)
        walk_pixels(&runs, &region->kind->space->walk, &tile->taps, dims);
    else
        walk_dims(&runs, dims, tile->rank, 0, !region->kind->schedule->kept);
    end_run(&runs);
    return runs;
}

int64_t region_sectors(const Region *region, const DataTile *tile, unsigned char **seen)
{
    return runs_of(region, tile, SECTOR_BYTES, seen).sectors;
}

int64_t region_pieces(const Region *region, const DataTile *tile, int64_t piece_bytes)
{
    return runs_of(region, tile, piece_bytes, NULL).bytes;
}

bool region_is_run(const Region *region, const DataTile *tile)
{
    return runs_of(region, tile, SECTOR_BYTES, NULL).count == 1;
}

int64_t region_elements(const Region *region, const DataTile *tile)
{
    int64_t elements = 1;
    for (int d = 0; d < tile->rank; d++)
        elements *= coordinates_of(region, tile, d).positions;
    return elements;
}
