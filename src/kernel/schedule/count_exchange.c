// What threads pass on to each other, in numbers.
#include "base/checked.h"
#include "kernel/schedule/count_parts.h"

static int log2_of(int64_t lanes)
{
    int steps = 0;
    while (lanes > 1) {
        lanes /= 2;
        steps++;
    }
    return steps;
}

/* Every warp leaves its result. Few are gone through by every thread, many by the lanes of every warp. */
static void count_all(CountWalk *walk, const Exchange *exchange, int64_t times)
{
    int warp = walk->device->warp_size;
    int64_t warps = (int64_t)exchange->parts * LEAST_WARP / warp, bytes = exchange->value_bytes;
    bool parts = exchange->values > 1;   // sums and distances: the sums are read once more
    if (walk->roles < 2)   // of the first warp, which copies where others compute
        walk->counts->shuffles += times * at_least_1(exchange->values) * log2_of(exchange->width);
    if (exchange->scope == SCOPE_WARP)
        return;
    int64_t readers = warps <= FEW_WARPS ? walk->block->threads : walk->block->threads / warp;
    if (warps > FEW_WARPS)
        walk->counts->shuffles += times * (parts ? 2 : 1) * log2_of(warp);
    count_shared(walk, times * readers * warps * (parts ? bytes * 3 / 2 : bytes), times * warps * bytes);
    walk->counts->barriers[exchange->scope] += times;
}

/* Every lane combines at each step of its warp's tree, then what the warps have left. */
int64_t count_all_combinations(CountWalk *walk, const Exchange *exchange)
{
    int warp = walk->device->warp_size;
    int64_t warps = (int64_t)exchange->parts * LEAST_WARP / warp, steps = log2_of(exchange->width);
    if (exchange->values > 1)
        return COUNT_UNKNOWN;   // sums and distances in one
    if (exchange->scope == SCOPE_WARP)
        return walk->block->threads * steps;
    int64_t left = walk->block->threads * warps;
    if (warps > FEW_WARPS)
        left = walk->block->threads / warp * warps + walk->block->threads * log2_of(warp);
    return walk->block->threads * steps + left;
}

/* A tile's results lie side by side along its innermost axis. */
static int columns_axis(const CountWalk *walk)
{
    int axis = walk->kind->space->axis_count - 1;
    while (axis > 0 && walk->kind->space->axes[axis].reduction)
        axis--;
    return axis;
}

/* Of warps that compute from the first one on. */
static void count_quads(CountWalk *walk, const Exchange *exchange, int64_t times)
{
    enum { ROWS_FOR_ONE = 8 };
    int rows = space_last_spatial(walk->kind->space, columns_axis(walk)), warp = walk->device->warp_size;
    int64_t each = walk->block->inner->size[rows] * warp / kind_tile_threads(walk->kind) / ROWS_FOR_ONE;
    if (walk->roles < 2)
        walk->counts->shuffles += times * each * __builtin_popcountll(exchange->ops) * log2_of(exchange->width);
}

static void count_columns(CountWalk *walk, const Exchange *exchange, int64_t times)
{
    int warp = walk->device->warp_size, lanes = exchange->width, values = exchange->values;
    int64_t groups = walk->block->threads / lanes, together = ceil_div(warp, lanes);
    int64_t parts = ceil_div(groups, together), row = (int64_t)lanes * values * exchange->value_bytes;
    walk->counts->shuffles += times * values * log2_of(together);
    if (parts == 1)
        return;
    count_shared(walk, times * (parts * row + groups * row), times * (parts + 1) * row);
    walk->counts->barriers[SCOPE_BLOCK] += 2 * times;
}

enum { PARTS_TOGETHER = 8 };   // that one of them takes

static void count_tree(CountWalk *walk, const Exchange *exchange)
{
    int64_t reducers = count_tiles(walk, true), columns = count_tiles(walk, false),
            lanes = combining_lanes(exchange, walk->device->warp_size, reducers, columns), parts = reducers / lanes;
    int64_t row = columns * exchange->width * exchange->value_bytes;
    walk->counts->shuffles += exchange->width * log2_of(lanes);
    if (parts == 1)
        return;
    count_shared(walk, 0, parts * row);
    for (int64_t all = parts, left; all > 1; all = left) {
        left = ceil_div(all, PARTS_TOGETHER);
        count_shared(walk, (all - left) * row, left > 1 ? left * row : 0);
        walk->counts->barriers[SCOPE_BLOCK]++;
    }
}

/* Every thread combines its own results, then what shuffles bring; of the parts all but one join another. */
int64_t count_tree_combinations(const CountWalk *walk, const Exchange *exchange)
{
    int64_t reducers = count_tiles(walk, true), columns = count_tiles(walk, false),
            lanes = combining_lanes(exchange, walk->device->warp_size, reducers, columns), parts = reducers / lanes;
    int64_t inner = (int64_t)(rtile_points(walk->kind->space, walk->block->inner, false) *
                              rtile_points(walk->kind->space, walk->block->inner, true));
    int64_t own = exchange->values ? inner / exchange->values : exchange->width;
    return walk->block->threads * (own - exchange->width + exchange->width * log2_of(lanes)) +
           (parts - 1) * count_tiles(walk, false) * exchange->width;
}

/* Shuffles until every lane has what it keeps: with 4 sums of 4 lanes 2 + 1, of an odd number all stay. */
static int64_t halving_shuffles(int64_t sums, int64_t lanes)
{
    int64_t shuffles = 0;
    for (; lanes > 1; lanes /= 2) {
        sums = sums % 2 == 0 ? sums / 2 : sums;
        shuffles += sums;
    }
    return shuffles;
}

/* Partial sums that are reduced in shared memory. */
typedef struct Partials {
    int64_t lanes;           // that halve their sums
    int64_t rows, columns;   // of the block's tile,
    int64_t parts;           // of each sum,
    bool joins;              // which each block of a cluster adds up by itself
} Partials;

static Partials partials_of(const CountWalk *walk, const Exchange *exchange)
{
    const RTile *shared = walk->block->shared;
    int64_t reducers = count_tiles(walk, true), warp = walk->device->warp_size;
    Partials partials = {.columns = shared->size[columns_axis(walk)],
                         .lanes = combining_lanes(exchange, warp, reducers, count_tiles(walk, false))};
    partials.parts = reducers / partials.lanes;
    partials.joins = kind_splits(walk->kind) > 1 && partials.parts > 1;
    partials.rows = (int64_t)rtile_points(walk->kind->space, shared, false) / partials.columns;
    return partials;
}

/* Totals that fall to the block: a cluster's threads take one each, those of its first block before the next
   block's. */
static int64_t dealt_totals(const CountWalk *walk, const Partials *partials)
{
    int64_t cluster = kind_splits(walk->kind), rank = walk->block->last ? cluster - 1 : 0, totals = 0;
    int64_t inside = walk->region.count[columns_axis(walk)];
    for (int64_t row = 0; row < partials->rows; row++)
        for (int64_t column = 0; column < inside; column++) {
            int64_t turn = (row * partials->columns + column) / walk->block->threads;
            totals += turn % cluster == rank;
        }
    return totals;
}

/* Of all rows of a tile, inside or not, that are cut. */
typedef struct CutRows {
    int64_t results;   // that the epilogue makes
    int64_t read;      // elements, from shared memory
} CutRows;

/* A warp group stores its columns slab by slab, as long as these begin inside, and makes a vector of columns before every slab
   but the first again. Example: of 150 columns and two groups of 128, the first makes 64 + 72, the second 64 for 22. Each
   vector of C lies in two vectors of the slab. A slab at one end of a group's columns also has a vector's worth of single
   elements, and twice as many where the tensor ends within it. */
static CutRows cut_rows(const CountWalk *walk, const Exchange *exchange)
{
    int axis = columns_axis(walk), vector = VECTOR_BYTES / exchange->value_bytes;
    int64_t all = walk->block->shared->size[axis], wide = walk->block->inner->size[axis], count = walk->region.count[axis];
    int64_t rows = (int64_t)rtile_points(walk->kind->space, walk->block->shared, false) / all;
    CutRows cut = {0};
    for (int64_t first = 0; first < smaller(all, count); first += exchange->slab) {
        bool begins = first % wide == 0, ends = (first + exchange->slab) % wide == 0 || count - first <= exchange->slab;
        cut.results += rows * (exchange->slab + (begins ? 0 : vector));
        cut.read += rows * 2 * exchange->slab;
        if (begins || ends)
            cut.read += rows * vector * (count - first < exchange->slab ? 2 : 1);
    }
    return cut;
}

/* What is made of a tile's totals falls to the blocks that make these. */
static void share_totals(CountWalk *walk, const Exchange *exchange, int64_t own)
{
    walk->shares = exchange->slab || kind_splits(walk->kind) > 1;
    walk->own = exchange->slab ? cut_rows(walk, exchange).results : own;
}

/* All parts of the sums are left. A block of a cluster adds up its own; whoever makes the total of one that lies inside reads
   what each has of it, and none leaves before. */
static void count_halves(CountWalk *walk, const Exchange *exchange)
{
    Partials partials = partials_of(walk, exchange);
    int64_t cluster = kind_splits(walk->kind), own = dealt_totals(walk, &partials);
    int64_t sums = partials.rows * partials.columns, bytes = exchange->value_bytes;
    walk->counts->shuffles += halving_shuffles(
        (int64_t)rtile_points(walk->kind->space, walk->block->inner, false), partials.lanes);
    share_totals(walk, exchange, own);
    count_shared(walk, own * cluster * (partials.joins ? 1 : partials.parts) * bytes, sums * partials.parts * bytes);
    if (partials.joins) {
        count_shared(walk, sums * partials.parts * bytes, sums * bytes);
        walk->counts->barriers[SCOPE_BLOCK]++;
    }
    walk->counts->barriers[exchange->scope] += cluster > 1 ? 2 : 1;
    walk->dealt = cluster > 1 && sums > walk->block->threads;
    walk->order = (Dealt){.threads = walk->dealt ? walk->block->threads : 0};
}

/* Every thread adds what shuffles bring, and of each sum all parts. */
int64_t count_halves_combinations(const CountWalk *walk, const Exchange *exchange)
{
    Partials partials = partials_of(walk, exchange);
    int64_t sums = (int64_t)rtile_points(walk->kind->space, walk->block->inner, false);
    int64_t joined = partials.joins ? partials.rows * partials.columns * (partials.parts - 1) : 0;
    return walk->block->threads * halving_shuffles(sums, partials.lanes) + joined +
           dealt_totals(walk, &partials) * kind_splits(walk->kind) * (partials.joins ? 1 : partials.parts);
}

/* All sums of the block's tile are left, and those that lie inside are read again: of a cluster every block
   reads those of all, but only of some rows, which are dealt round-robin from the first of the tile on. */
static void count_rows(CountWalk *walk, const Exchange *exchange)
{
    int64_t cluster = kind_splits(walk->kind), rank = walk->block->last ? cluster - 1 : 0;
    int64_t columns = walk->region.count[columns_axis(walk)], before = 0;
    int64_t rows = columns ? count_inside(walk) / columns : 0;
    int64_t sums = cluster > 1 ? __builtin_popcountll(exchange->ops) : 1;   // all of them at once
    int64_t points = (int64_t)rtile_points(walk->kind->space, walk->block->shared, false);
    int axis = space_last_spatial(walk->kind->space, columns_axis(walk));
    if (axis >= 0) {
        before = walk->region.first[axis] - walk->loaded.first[axis];
        walk->order = (Dealt){.axis = axis, .from = walk->loaded.first[axis], .run = 1};
    }
    int64_t own = (ceil_div(before + rows - rank, cluster) - ceil_div(before - rank, cluster)) * columns;
    CutRows cut = exchange->slab ? cut_rows(walk, exchange) : (CutRows){sums * points, sums * own * cluster};
    count_shared(walk, cut.read * exchange->value_bytes, cut.results * exchange->value_bytes);
    if (exchange->scope == SCOPE_CLUSTER)
        walk->counts->barriers[SCOPE_CLUSTER] += 2;   // before, all have started
    count_add(&walk->counts->additions, sums * own * (cluster - 1));
    walk->dealt = cluster > 1;
    share_totals(walk, exchange, own);
}

/* Every warp leaves a mark, and all threads read them. */
static void count_marks(CountWalk *walk)
{
    enum { MARK_BYTES = 4 };
    int64_t threads = walk->block->threads, warps = ceil_div(threads, walk->device->warp_size);
    count_shared(walk, threads * warps * MARK_BYTES, warps * MARK_BYTES);
    walk->counts->shuffles++;
    walk->counts->barriers[SCOPE_BLOCK]++;
}

/* Shuffles combine those of lanes that share them. Then the results of all parts, inside or not: the first
   one is written, the others are added to it, and in the end those that lie inside are read twice: is one of
   them no number? */
static void count_turns(CountWalk *walk, const Exchange *exchange)
{
    int64_t parts = count_tiles(walk, true) / at_least_1(exchange->width);
    int64_t points =
        (int64_t)rtile_points(walk->kind->space, walk->block->shared, false) * exchange->value_bytes;
    walk->counts->shuffles += at_least_1(exchange->values) * log2_of(exchange->width);
    count_shared(walk, (parts - 1) * points + 2 * count_inside(walk) * exchange->value_bytes, parts * points);
    walk->counts->barriers[SCOPE_BLOCK] += parts + 1;
    count_marks(walk);
}

/* Every thread adds what shuffles bring; all parts but one of a result, inside or not, join the first; and each result that
   exists is compared with itself. */
int64_t count_turns_combinations(const CountWalk *walk, const Exchange *exchange)
{
    int64_t parts = count_tiles(walk, true) / at_least_1(exchange->width);
    int64_t points = (int64_t)rtile_points(walk->kind->space, walk->block->shared, false);
    return walk->block->threads * at_least_1(exchange->values) * log2_of(exchange->width) +
           (parts - 1) * points + count_inside(walk);
}

/* The lanes that share a word of bits pack it, for each of a thread's vectors, unless a vector is a word. */
static void count_bits(CountWalk *walk, const Exchange *exchange, int64_t times)
{
    const RTile *inner = walk->block->inner;
    int64_t points = (int64_t)(rtile_points(walk->kind->space, inner, false) *
                               rtile_points(walk->kind->space, inner, true));
    int64_t vectors = points / kind_tile_threads(walk->kind) / exchange->width;
    int64_t each = exchange->parts > exchange->width ? 1 + log2_of(exchange->parts / exchange->width) : 0;
    walk->counts->shuffles += times * vectors * each * __builtin_popcountll(exchange->ops);
}

void count_exchange(CountWalk *walk, const Exchange *exchange, int64_t times)
{
    times *= at_least_1(exchange->times);
    switch ((Combine)exchange->combine) {
    case COMBINE_NOTHING: walk->counts->barriers[exchange->scope] += times; return;
    case COMBINE_QUADS: count_quads(walk, exchange, times); return;
    case COMBINE_LANES:
    case COMBINE_ALL: count_all(walk, exchange, times); return;
    case COMBINE_COLUMNS: count_columns(walk, exchange, times); return;
    case COMBINE_TREE: count_tree(walk, exchange); return;
    case COMBINE_HALVES: count_halves(walk, exchange); return;
    case COMBINE_TURNS: count_turns(walk, exchange); return;
    case COMBINE_DIAGONALS:   // which of them lie where, only the template knows
        count_shared(walk, COUNT_UNKNOWN, COUNT_UNKNOWN);
        walk->counts->barriers[SCOPE_BLOCK]++;
        count_marks(walk);
        return;
    case COMBINE_ROWS: count_rows(walk, exchange); return;
    case COMBINE_BITS: count_bits(walk, exchange, times); return;
    }
}
