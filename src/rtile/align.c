// The four alignments of the paper (OSDI'22, 3.1): the execution unit through granules and whole
// warps, memory transactions through the traffic of a tile, shared-memory banks through padding,
// and the tensor's shape through the share of wasted work.
#include "base/checked.h"
#include "rtile/rtile.h"

/* Sizes of the axis on this level are multiples of this. */
static int64_t granule_of(const TileSpace *space, Level level, const RTile *inner, int axis)
{
    int64_t granule = space->rule[level][axis].granule;
    if (granule < 1)
        granule = 1;
    if (level == LEVEL_REGISTER || !inner)
        return granule;
    if (granule == 1)
        return inner->size[axis];
    int64_t common = greatest_common_divisor(granule, inner->size[axis]);
    return size_product(granule / common, inner->size[axis]);
}

static int64_t power_of_two_above(int64_t count)
{
    return count ? (int64_t)2 << (63 - __builtin_clzll((uint64_t)count)) : 1;
}

/* The next size above `size` that hardware likes, in granules: 1, 2, 4, 8, …, small odd multiples of them
   that divide the axis (between 64 and 128 eighths of 64: 72 = 9 * 8, 80 = 5 * 16, …), and as many granules
   as cover it. `even`: before a power of two the size whose tiles are as few and reach less past the end (of 17 granules
   three tiles of 6 before three of 8). Once a power of two covers the axis there is no more: 0. */
static int64_t next_nice(int64_t extent, int64_t granule, int64_t count, bool even)
{
    int64_t cover = ceil_div(extent, granule), power = power_of_two_above(count);
    if (count >= cover)
        return count && 2 * count == power ? 0 : power;

    int64_t next = cover < power ? cover : power, eighth = power > 16 ? power / 16 : 1;
    bool has_odd_divisors = (cover & (cover - 1)) != 0;
    if (has_odd_divisors && extent % granule == 0 && cover % eighth == 0)
        for (int64_t multiple = count - count % eighth + eighth; multiple < next; multiple += eighth)
            if (cover % multiple == 0)
                return multiple;
    int64_t fewest = ceil_div(cover, ceil_div(cover, power));
    return even && fewest > count ? fewest : next;
}

/* Does tiling the axis by `size` waste at most the tolerated share of it? */
static bool fits_shape(int64_t extent, int64_t size, Tolerance *tolerance)
{
    if (size >= extent)
        return true;
    double covered = (double)round_up(extent, size);
    if (covered <= (double)extent * (1 + tolerance->allowed))
        return true;
    double wasted = covered / (double)extent - 1;
    if (wasted < tolerance->refused)
        tolerance->refused = wasted;
    return false;
}

static int64_t find_next_size(const TileSpace *space, Level level, const RTile *inner, int axis, int64_t size,
                              Tolerance *tolerance)
{
    int64_t extent = space->axes[axis].extent;
    int64_t limit = space->rule[level][axis].limit;
    int64_t granule = granule_of(space, level, inner, axis);
    int64_t count = size / granule;
    bool even = level == LEVEL_SHARED && space->even >> axis & 1, any = space->any >> axis & 1;
    while ((count = any && count * granule < extent ? count + 1 : next_nice(extent, granule, count, even)) != 0) {
        int64_t next = size_product(count, granule);
        if (next > (limit > 1 ? limit : 1))
            return 0;
        if (fits_shape(extent, next, tolerance))
            return next;
    }
    return 0;
}

int64_t rtile_next_size(const TileSpace *space, Level level, const RTile *inner, int axis,
                        int64_t size, Tolerance *tolerance)
{
    int64_t around = level == LEVEL_SHARED && inner ? inner->size[axis] : 0;
    int64_t place = (around * 2 + (level == LEVEL_SHARED)) * MAX_AXES + axis + 1;
    uint64_t hash = ((uint64_t)place ^ (uint64_t)size << 8) * 0x9E3779B97F4A7C15u;
    NextSize *known = &tolerance->known[hash >> (64 - KNOWN_BITS)];
    if (known->place != place || known->size != size)
        *known = (NextSize){place, size, find_next_size(space, level, inner, axis, size, tolerance)};
    return known->next;
}

int64_t rtile_previous_size(const TileSpace *space, const RTile *inner, int axis, int64_t size, Tolerance *tolerance)
{
    int64_t previous = 0, next = 0;
    while ((next = rtile_next_size(space, LEVEL_SHARED, inner, axis, next, tolerance)) != 0 && next < size)
        previous = next;
    return previous;
}

bool rtile_smallest(const TileSpace *space, Level level, const RTile *inner, Tolerance *tolerance,
                    RTile *tile)
{
    *tile = (RTile){0};
    for (int a = 0; a < space->axis_count; a++) {
        tile->size[a] = rtile_next_size(space, level, inner, a, 0, tolerance);
        if (!tile->size[a])
            return false;
    }
    return true;
}

/* A [3,4] tile read by columns, 4 banks of one element. The digits are banks:
 *
 *      0 1 2 3          0 1 2 3 .          without padding a column lies in one bank;
 *      0 1 2 3    ->    1 2 3 0 .          one more element a row moves it on by one
 *      0 1 2 3          2 3 0 1 .
 *
 * Pieces of row after row start `stride` elements apart, so they begin at multiples of
 * gcd(stride, one line of banks). They meet no bank twice when that distance is no more than one
 * piece: then the line is used up first. */
int64_t bank_padding(int64_t inner_extent, int64_t read_extent, int element_bytes, int granule,
                     int banks, int bank_bytes)
{
    int64_t line = (int64_t)banks * bank_bytes / element_bytes;   // elements in all banks once
    int64_t per_bank = bank_bytes > element_bytes ? bank_bytes / element_bytes : 1;
    int64_t step = granule > 1 ? granule : 1;
    int64_t piece = read_extent;
    piece = piece > per_bank ? piece : per_bank;
    piece = piece > step ? piece : step;
    for (int64_t padding = 0; padding < line; padding += step)
        if (greatest_common_divisor(inner_extent + padding, line) <= piece)
            return padding;
    return 0;
}

/* Is the staged tile ever accessed across its lines by the threads of one warp? It is when it is
   transposed on its way into shared memory, or when neighbouring threads own different lines. A
   tile whose lines are steps of a reduction that every thread walks alike is only read along its
   lines. */
static bool crosses_lines(const TileSpace *space, const DataTile *tile, const RTile *shared,
                          const RTile *inner)
{
    if (tile->staged_inner != tile->rank - 1)
        return true;
    for (int d = 0; d < tile->rank; d++)
        for (int a = 0; a < space->axis_count && d != tile->staged_inner; a++)
            if (tile->dims[d].index.coef[a] && shared->size[a] > inner->size[a]
                && (!space->axes[a].reduction || space->least_reducers))
                return true;
    return false;
}

/* Of swizzled lines: they hold 2, 4 or a multiple of 8 vectors of 16 bytes. */
static int64_t swizzled_padding(int64_t width, int64_t vector)
{
    int64_t vectors = ceil_div(width, vector);
    return (vectors > 4 ? round_up(vectors, 8) : vectors > 2 ? 4 : 2) * vector - width;
}

static int64_t padding_of(const TileSpace *space, const DataTile *tile, int64_t width, const RTile *inner,
                          const DeviceSpec *device)
{
    int element_bytes = staged_bits(tile) / 8;
    int64_t vector = VECTOR_BYTES / element_bytes;
    if (tile->swizzled)
        return swizzled_padding(width, vector);
    if (space->unpadded)
        return 0;
    const Affine *contiguous = &tile->dims[tile->staged_inner].index;
    int64_t read = affine_extent(contiguous, inner->size, space->axis_count);
    return bank_padding(width, read < vector ? read : vector, element_bytes, tile->staged_granule,
                        device->shared_banks, device->shared_bank_bytes);
}

StagedLines staged_lines(const TileSpace *space, const DataTile *tile, const RTile *shared,
                         const RTile *inner, const DeviceSpec *device)
{
    int axis_count = space->axis_count;
    const Affine *contiguous = &tile->dims[tile->staged_inner].index;
    StagedLines lines = {.width = affine_extent(contiguous, shared->size, axis_count)};
    lines.count = data_tile_elements(tile, shared, axis_count) / lines.width;
    bool padded = tile->swizzled || (lines.count > 1 && crosses_lines(space, tile, shared, inner));
    if (staged_bits(tile) >= 8 && !tile->plane && padded)
        lines.padding = padding_of(space, tile, lines.width, inner, device);
    return lines;
}
