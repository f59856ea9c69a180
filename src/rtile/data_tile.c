// What a data tile holds and moves inside a tile of the axes.
#include "base/checked.h"
#include "rtile/rtile.h"

uint32_t data_tile_axes(const DataTile *tile, int axis_count)
{
    uint32_t axes = 0;
    for (int d = 0; d < tile->rank; d++)
        for (int a = 0; a < axis_count; a++)
            axes |= (uint32_t)(tile->dims[d].index.coef[a] != 0) << a;
    return axes;
}

bool data_tile_lines_even(const DataTile *tile, const RTile *of, int axis_count, int64_t threads)
{
    int64_t line = affine_extent(&tile->dims[tile->rank - 1].index, of->size, axis_count);
    if (tile->vector)
        line = ceil_div(line, tile->vector);
    return threads % line == 0 || line % threads == 0;
}

int64_t data_tile_elements(const DataTile *tile, const RTile *of, int axis_count)
{
    int64_t elements = 1;
    for (int d = 0; d < tile->rank; d++) {
        int64_t extent = affine_extent(&tile->dims[d].index, of->size, axis_count);
        elements = size_product(elements, extent);
    }
    return elements;
}

/* Different elements among so many neighbouring positions along dimension d: of the rows (b,h,q) of 4 heads
   of 512 a mask[q] has 100 for 100 rows and 512 for 1000, a scale[b] one for each of them. */
static int64_t distinct_of(const Repeats *repeats, int64_t positions)
{
    int64_t cycle = repeats->run * repeats->cycle;
    return positions <= cycle ? ceil_div(positions, repeats->run)
                              : ceil_div(positions, cycle * repeats->again) * repeats->cycle;
}

/* Of a factor of a convolution those channels that there are. */
static int64_t channels_among(const TapTile *taps, int64_t positions)
{
    int64_t last = positions % taps->step;
    return positions / taps->step * taps->channels + (last < taps->channels ? last : taps->channels);
}

static inline int64_t distinct_among(const DataTile *tile, int d, int64_t positions)
{
    if (tile->taps.step && d == tile->taps.k)
        return channels_among(&tile->taps, positions);
    return d < MAX_REPEATED && tile->repeats[d].run ? distinct_of(&tile->repeats[d], positions) : positions;
}

int64_t data_tile_distinct(const DataTile *tile, const RTile *of, int axis_count)
{
    int64_t elements = 1;
    for (int d = 0; d < tile->rank; d++) {
        int64_t extent = affine_extent(&tile->dims[d].index, of->size, axis_count);
        elements = size_product(elements, distinct_among(tile, d, extent));
    }
    return elements;
}

/* Different elements along dimension d of the tensor, and those of them inside the tile. */
static int64_t distinct_size(const DataTile *tile, int d)
{
    return distinct_among(tile, d, tile->dims[d].size);
}

/* Of those inside the tile, whose positions are `extent`. */
static int64_t distinct_inside(const DataTile *tile, int d, int64_t extent)
{
    return distinct_among(tile, d, extent < tile->dims[d].size ? extent : tile->dims[d].size);
}

/* Positions inside the tile along each dimension. */
typedef struct Extents {
    int64_t of[MAX_RANK];
} Extents;

static Extents extents_of(const DataTile *tile, const RTile *of, int axis_count)
{
    Extents extents = {{0}};
    for (int d = 0; d < tile->rank; d++)
        extents.of[d] = affine_extent(&tile->dims[d].index, of->size, axis_count);
    return extents;
}

/* Of the pixels under several taps most are those of the outputs beside: share of them that differ. */
static double pixels_share(const DataTile *tile, const RTile *of, int axis_count)
{
    if (tile->taps.pixels <= 0)
        return 1;
    int64_t k = affine_extent(&tile->dims[tile->taps.k].index, of->size, axis_count);
    double seen = (double)ceil_div(k, tile->taps.step);
    return seen > tile->taps.pixels ? tile->taps.pixels / seen : 1;
}

double data_tile_bytes(const DataTile *tile, const RTile *of, int axis_count)
{
    double bytes = tile->element_bits / 8.0;
    for (int d = 0; d < tile->rank; d++)
        bytes *= (double)distinct_inside(tile, d, affine_extent(&tile->dims[d].index, of->size, axis_count));
    return bytes * pixels_share(tile, of, axis_count);
}

/* A data tile in memory: contiguous runs, whose stride is a multiple of the row length.
 *
 *      |<--------- row --------->|
 *      ....[== run ==]...........        a 3 x 11 tile of a [.., 25] tensor: 3 runs of 11
 *      ....[== run ==]...........        a tile as wide as the tensor: one run of 3 * 25
 *      ....[== run ==]...........
 */
typedef struct Runs {
    double count;
    int64_t elements;   // of one run
    int row;            // the first dimension that a row spans
    bool whole;         // the tile is the tensor
} Runs;

static Runs find_runs(const DataTile *tile, const Extents *extents)
{
    Runs runs = {.count = 1, .elements = 1, .whole = true};
    for (int d = tile->rank - 1; d >= 0; d--) {
        int64_t extent = distinct_inside(tile, d, extents->of[d]);
        bool ends = tile->run && d == tile->rank - 1 && extent > tile->run;
        if (ends) {
            runs.elements = tile->run;
            runs.count = (double)extent / (double)tile->run;
        } else if (runs.whole) {
            runs.elements = size_product(runs.elements, extent);
            runs.row = d;
        } else
            runs.count *= (double)extent;
        runs.whole = runs.whole && !ends && extent == distinct_size(tile, d);
    }
    return runs;
}

/* Row after row begins at a multiple of the transaction. */
static bool rows_aligned(const DataTile *tile, int row, int64_t transaction_bits)
{
    int64_t row_bits = tile->element_bits;
    for (int d = row; d < tile->rank; d++)
        row_bits = size_product(row_bits, distinct_size(tile, d));
    return row_bits % transaction_bits == 0;
}

/* Windows may reach past their plane, and what is copied ends where it does: of 64 lines of 27 elements a
   column that begins two lines above the first spans 1728 elements, though from the column's first to its
   last there are 63 * 27 + 1. */
static int64_t span_bytes(const DataTile *tile, const Extents *extents)
{
    int64_t span = 1, stride = 1;
    for (int d = tile->rank - 1; d >= 0; d--) {
        int64_t extent = extents->of[d], size = tile->dims[d].size;
        bool counts_planes = stride >= tile->plane;
        int64_t steps = (counts_planes && extent > size ? size : extent) - 1;
        if (!checked_add(span, size_product(steps, stride), &span))
            return INT64_MAX;
        stride = size_product(stride, size);
        if (stride == tile->plane && span > tile->plane)
            span = tile->plane;
    }
    int64_t bits = size_product(span, tile->element_bits);
    return bits > TOO_MANY_BITS ? INT64_MAX : round_up(ceil_div(bits, 8), 16) + 2 * 16;
}

int64_t data_tile_span_bytes(const DataTile *tile, const RTile *of, int axis_count)
{
    Extents extents = extents_of(tile, of, axis_count);
    return span_bytes(tile, &extents);
}

double data_tile_traffic(const DataTile *tile, const RTile *of, int axis_count, int transaction_bytes)
{
    int64_t transaction_bits = transaction_bytes * 8;
    Extents extents = extents_of(tile, of, axis_count);
    if (tile->plane)
        return (double)span_bytes(tile, &extents);
    Runs runs = find_runs(tile, &extents);
    int64_t run_bits = size_product(runs.elements, tile->element_bits);
    if (run_bits > INT64_MAX / 2)
        return data_tile_bytes(tile, of, axis_count);

    if (tile->run) {   // whole vectors, each of which begins at a multiple of what runs and whole runs share
        int64_t shared = greatest_common_divisor(tile->run * tile->element_bits, run_bits),
                granule = greatest_common_divisor(shared, transaction_bits);
        return runs.count / 8 * (double)(run_bits + transaction_bits - granule);
    }
    bool fits = run_bits % transaction_bits == 0 || transaction_bits % run_bits == 0;
    bool aligned = runs.whole || (fits && rows_aligned(tile, runs.row, transaction_bits));
    int64_t moved_bits = aligned ? round_up(run_bits, transaction_bits)
                                 : run_bits + transaction_bits - tile->element_bits;
    double moved = runs.count * (double)moved_bits / 8, span = (double)span_bytes(tile, &extents);
    return moved < span ? moved : span;   // runs that lie closer together than a transaction share it
}

double data_tile_visits(const TileSpace *space, const DataTile *tile, const RTile *of)
{
    double visits = 1;
    for (int a = 0; a < space->axis_count; a++)
        if (space->axes[a].reduction && data_tile_depends(tile, a))
            visits *= (double)ceil_div(space->axes[a].extent, of->size[a]);
    return visits;
}

int staged_bits(const DataTile *tile)
{
    return tile->staged_bits ? tile->staged_bits : tile->element_bits;
}
