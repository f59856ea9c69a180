#include "schedule/count.h"

#include <inttypes.h>

#include "base/checked.h"

enum { COPY_BYTES = 16, SECTOR_BYTES = 32, LEAST_WARP = 32 };

/* The walk through a schedule. */
typedef struct CountWalk {
    const TileRules *rules;
    const DeviceSpec *device;
    const CountedBlock *block;
    Region region, loaded;   // of what is stored, of the tiles of inputs
    Counts *counts;
    bool multiplies;     // register tiles share what they read: a product
    int64_t under_way;   // groups of copies
    bool dealt;          // totals of a tile are made by several blocks
} CountWalk;

static int at_least_1(int times) { return times > 0 ? times : 1; }

static int log2_of(int64_t lanes)
{
    int steps = 0;
    while (lanes > 1) {
        lanes /= 2;
        steps++;
    }
    return steps;
}

// ---- rounds ----

static int64_t rounds_of(const CountWalk *walk, const Loop *loop)
{
    const RTile *shared = walk->block->shared, *inner = walk->block->inner;
    const Axis *axis = &walk->rules->space.axes[loop->axis];
    if (loop->times)   // rows that a block makes in turn may be fewer at the end
        return axis->reduction ? loop->times : ceil_div(walk->region.count[loop->axis], shared->size[loop->axis]);
    if (loop->by_thread)
        return ceil_div(shared->size[loop->axis], inner->size[loop->axis]);
    int64_t steps = ceil_div(axis->extent, shared->size[loop->axis]);
    int64_t cluster = at_least_1(walk->rules->cluster_blocks), rank = walk->block->last ? cluster - 1 : 0;
    return axis->reduction ? ceil_div(steps - rank, cluster) : steps;   // in turn
}

/* How often the block comes by the item. */
static int64_t times_at(const CountWalk *walk, int item)
{
    int64_t times = 1;
    for (int i = item - 1, closed = 0; i >= 0; i--) {
        const Item *before = &walk->rules->schedule.items[i];
        if (before->kind == ITEM_END)
            closed++;
        else if (before->kind == ITEM_LOOP && closed)
            closed--;
        else if (before->kind == ITEM_LOOP)
            times *= rounds_of(walk, &before->loop);
    }
    return times;
}

// ---- loads and stores ----

static bool is_memory(int place) { return place == PLACE_MEMORY || place == PLACE_L2; }

/* Whole tiles are written, but along the dimension that is contiguous in memory no further than there is something. */
static int64_t turned_bytes(const CountWalk *walk, const DataTile *tile)
{
    const RTile *shared = walk->block->shared;
    RTile written = *shared;
    for (int a = 0; a < walk->rules->space.axis_count; a++)
        if (tile->dims[tile->staged_inner].index.coef[a])
            written.size[a] = walk->region.count[a];
    return data_tile_elements(tile, &written, walk->rules->space.axis_count) * tile->element_bits / 8;
}

/* Register tiles of the block along the axes of one kind. */
static int64_t tiles_along(const CountWalk *walk, bool reduction)
{
    int64_t tiles = 1;
    for (int a = 0; a < walk->rules->space.axis_count; a++)
        if (walk->rules->space.axes[a].reduction == reduction)
            tiles *= walk->block->shared->size[a] / walk->block->inner->size[a];
    return tiles;
}

/* The shared tile, without what is cut off. */
static RTile loaded_tile(const CountWalk *walk)
{
    RTile tile = *walk->block->shared;
    for (int a = 0; a < walk->rules->space.axis_count; a++) {
        int64_t most = round_up(walk->rules->space.axes[a].extent, 8);
        if (walk->rules->schedule.cut >> a & 1 && tile.size[a] > most)
            tile.size[a] = most;
    }
    return tile;
}

/* What the block's threads read of a staged tile, or write one by one. Operands of a product are read by every register tile
   that needs them, behind the last step as often as they are read ahead, and whole tiles of them are written. */
static int64_t own_bytes(const CountWalk *walk, const DataTile *tile, const Move *move, bool write, int64_t times)
{
    int axes = walk->rules->space.axis_count;
    int64_t vector = walk->rules->schedule.vector;
    if (walk->multiplies && write) {
        RTile loaded = loaded_tile(walk);
        return times * data_tile_elements(tile, &loaded, axes) * staged_bits(tile) / 8;
    }
    if (walk->multiplies) {
        return (times * tiles_along(walk, true) + move->ahead) * tiles_along(walk, false) *
               data_tile_elements(tile, walk->block->inner, axes) * staged_bits(tile) / 8;
    }
    if (write)
        return turned_bytes(walk, tile);
    if (vector)
        return region_pieces(&walk->region, tile, vector * tile->element_bits / 8);
    return region_elements(&walk->region, tile) * tile->element_bits / 8;
}

static void add(int64_t *count, int64_t more)
{
    bool known = *count != COUNT_UNKNOWN && more != COUNT_UNKNOWN;
    *count = known ? *count + more : COUNT_UNKNOWN;
}

/* The tile says where its elements are. */
static bool is_picture(const CountWalk *walk, const DataTile *tile)
{
    return !tile->apart && region_is_countable(&walk->region, tile);
}

static void add_shared(CountWalk *walk, int64_t read, int64_t written)
{
    add(&walk->counts->shared_read, read);
    add(&walk->counts->shared_written, written);
}

static void count_own(CountWalk *walk, const Move *move, int tile)
{
    bool writes = move->to == PLACE_SHARED;
    if (!writes && move->from != PLACE_SHARED)
        return;
    int64_t bytes = walk->rules->shared_moved(walk->rules, tile, writes, walk->block->shared,
                                              walk->block->inner, walk->region.first);
    add_shared(walk, writes ? 0 : bytes, writes ? bytes : 0);
}

static void count_staging(CountWalk *walk, const Move *move, int index, int64_t times)
{
    const DataTile *tile = &walk->rules->space.tiles[index];
    bool reads = move->from == PLACE_SHARED, writes = move->to == PLACE_SHARED;
    if (walk->rules->shared_moved)
        count_own(walk, move, index);
    else if ((reads && (tile->plane || tile->windows)) || ((reads || writes) && !is_picture(walk, tile)))
        add_shared(walk, reads ? COUNT_UNKNOWN : 0, writes ? COUNT_UNKNOWN : 0);
    else if (reads)
        add_shared(walk, own_bytes(walk, tile, move, false, times), 0);
    else if (writes && move->async && !walk->multiplies)
        add_shared(walk, 0, region_pieces(&walk->region, tile, COPY_BYTES));
    else if (writes)
        add_shared(walk, 0, own_bytes(walk, tile, move, true, times));
}

/* Outputs that a block collects before it stores them. */
static void count_collected(CountWalk *walk, const DataTile *tile)
{
    if (!region_is_countable(&walk->region, tile) || !region_is_run(&walk->region, tile))
        return;
    int64_t bytes = region_elements(&walk->region, tile) * tile->element_bits / 8;
    add_shared(walk, bytes, bytes);
    walk->counts->barriers[SCOPE_BLOCK]++;
}

/* Of the last tiles as much as lies inside. */
static void count_scratch(CountWalk *walk, const Item *item)
{
    int64_t bytes = item->move.bytes;
    for (int a = 0; a < walk->rules->space.axis_count; a++)
        if (!walk->rules->space.axes[a].reduction)
            bytes = bytes * walk->region.count[a] / walk->block->shared->size[a];
    int64_t sectors = bytes / SECTOR_BYTES;
    *(item->kind == ITEM_LOAD ? &walk->counts->scratch_read : &walk->counts->scratch_written) += sectors;
}

static void count_sectors(CountWalk *walk, int index)
{
    const DataTile *tile = &walk->rules->space.tiles[index];
    bool known = tile->scatter <= 1 && is_picture(walk, tile) && !(tile->output && walk->dealt);
    const Region *region = tile->output ? &walk->region : &walk->loaded;
    add(&walk->counts->sectors[index], known ? region_sectors(region, tile) : COUNT_UNKNOWN);
}

static void count_move(CountWalk *walk, const Item *item, int64_t times)
{
    const Move *move = &item->move;
    if (move->bytes && move->to == PLACE_SHARED) {
        add_shared(walk, 0, move->bytes);
        return;
    }
    bool of_memory = is_memory(item->kind == ITEM_LOAD ? move->from : move->to);
    if (move->bytes)
        count_scratch(walk, item);
    for (int i = 0; i < walk->rules->space.tile_count; i++) {
        const DataTile *tile = &walk->rules->space.tiles[i];
        if (!(move->tiles >> i & 1) || move->to == PLACE_L2)
            continue;
        if (of_memory && !move->again)
            count_sectors(walk, i);
        count_staging(walk, move, i, times);
        if (move->collected)
            count_collected(walk, tile);
    }
    walk->under_way += move->async ? at_least_1(walk->rules->schedule.rows) : 0;
}

/* Of copies several rounds ahead none is left in the last round. */
static void count_wait(CountWalk *walk, int behind, int64_t times)
{
    walk->counts->waits += times;
    if (schedule_rounds_ahead(&walk->rules->schedule) > 1) {
        walk->counts->pending += (times - 1) * behind;
        return;
    }
    walk->under_way = walk->under_way < behind ? walk->under_way : behind;
    walk->counts->pending += times * walk->under_way;
}

// ---- exchanges ----

/* Every warp leaves its result. Few are gone through by every thread, many by the lanes of every warp. */
static void count_all(CountWalk *walk, const Exchange *exchange, int64_t times)
{
    enum { FEW = 8 };
    int warp = walk->device->warp_size;
    int64_t warps = (int64_t)exchange->parts * LEAST_WARP / warp, bytes = exchange->value_bytes;
    bool parts = exchange->values > 1;   // sums and distances: the sums are read once more
    walk->counts->shuffles += times * at_least_1(exchange->values) * log2_of(exchange->width);
    if (exchange->scope == SCOPE_WARP)
        return;
    int64_t readers = warps <= FEW ? walk->block->threads : walk->block->threads / warp;
    if (warps > FEW)
        walk->counts->shuffles += times * (parts ? 2 : 1) * log2_of(warp);
    add_shared(walk, times * readers * warps * (parts ? bytes * 3 / 2 : bytes), times * warps * bytes);
    walk->counts->barriers[exchange->scope] += times;
}

static void count_columns(CountWalk *walk, const Exchange *exchange, int64_t times)
{
    int warp = walk->device->warp_size, lanes = exchange->width, values = exchange->values;
    int64_t groups = walk->block->threads / lanes, together = ceil_div(warp, lanes);
    int64_t parts = ceil_div(groups, together), row = (int64_t)lanes * values * exchange->value_bytes;
    walk->counts->shuffles += times * values * log2_of(together);
    if (parts == 1)
        return;
    add_shared(walk, times * (parts * row + groups * row), times * (parts + 1) * row);
    walk->counts->barriers[SCOPE_BLOCK] += 2 * times;
}

/* A tile's results lie side by side along its innermost axis. */
static int columns_axis(const CountWalk *walk)
{
    int axis = walk->rules->space.axis_count - 1;
    while (axis > 0 && walk->rules->space.axes[axis].reduction)
        axis--;
    return axis;
}

static void count_tree(CountWalk *walk, const Exchange *exchange)
{
    int64_t sharers = tiles_along(walk, true), lanes = 1;
    while (exchange->along && lanes < walk->device->warp_size && sharers % (2 * lanes) == 0)
        lanes *= 2;
    int64_t parts = sharers / lanes, row = tiles_along(walk, false) * exchange->width * exchange->value_bytes;
    walk->counts->shuffles += exchange->width * log2_of(lanes);
    if (parts == 1)
        return;
    add_shared(walk, 0, parts * row);
    walk->counts->barriers[SCOPE_BLOCK]++;
    for (int64_t left = parts, half; left > 1; left = half) {
        half = (left + 1) / 2;
        add_shared(walk, (left - half) * row, (left - half) * row);
        walk->counts->barriers[SCOPE_BLOCK]++;
    }
}

/* Threads of a warp that share columns: where they lie along the reduction a power of two that divides it,
   else all that there are in every warp alike. */
static int64_t halving_lanes(const CountWalk *walk, bool along)
{
    int64_t warp = walk->device->warp_size, sharers = tiles_along(walk, true), columns = tiles_along(walk, false);
    if (along)
        return (sharers | warp) & -(sharers | warp);
    return warp % columns == 0 && sharers % (warp / columns) == 0 ? warp / columns : 1;
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

/* What meets in shared memory at a time. */
typedef struct Meeting {
    int64_t rows, columns;   // of the block's tile,
    int64_t together;        // rows that there is room for,
    int64_t parts;           // of each sum
} Meeting;

static Meeting meeting_of(const CountWalk *walk, const Exchange *exchange, int64_t lanes)
{
    const RTile *shared = walk->block->shared;
    Meeting meeting = {.columns = shared->size[columns_axis(walk)], .parts = tiles_along(walk, true) / lanes};
    meeting.rows = (int64_t)rtile_points(&walk->rules->space, shared, false) / meeting.columns;
    int64_t room = (int64_t)exchange->parts * exchange->width / (meeting.parts * meeting.columns);
    meeting.together = room < meeting.rows ? room : meeting.rows;
    return meeting;
}

/* Totals that fall to the block: a cluster's threads take one each, those of its first block before the next block's. */
static int64_t dealt_totals(const CountWalk *walk, const Meeting *meeting)
{
    int64_t cluster = at_least_1(walk->rules->cluster_blocks), rank = walk->block->last ? cluster - 1 : 0, totals = 0;
    int64_t inside = walk->region.count[columns_axis(walk)];
    for (int64_t row = 0; row < meeting->rows; row++)
        for (int64_t column = 0; column < inside; column++) {
            int64_t turn = (row % meeting->together * meeting->columns + column) / walk->block->threads;
            totals += turn % cluster == rank;
        }
    return totals;
}

/* All parts of the sums are left, and those that lie inside are read by whoever makes the total, those of a
   cluster's other blocks, too. None goes on to write while others read. */
static void count_halves(CountWalk *walk, const Exchange *exchange)
{
    int64_t lanes = halving_lanes(walk, exchange->along), cluster = at_least_1(walk->rules->cluster_blocks);
    Meeting meeting = meeting_of(walk, exchange, lanes);
    int64_t meetings = ceil_div(meeting.rows, meeting.together), bytes = meeting.parts * exchange->value_bytes;
    walk->counts->shuffles +=
        halving_shuffles((int64_t)rtile_points(&walk->rules->space, walk->block->inner, false), lanes);
    add_shared(walk, dealt_totals(walk, &meeting) * cluster * bytes, meeting.rows * meeting.columns * bytes);
    walk->counts->barriers[exchange->scope] += meetings * (meetings > 1 || cluster > 1 ? 2 : 1);
    walk->dealt = cluster > 1 && meeting.together * meeting.columns > walk->block->threads;
}

/* Each result passes two barriers on its way to the block's total; then all meet once. */
static void count_slots(CountWalk *walk, const Exchange *exchange)
{
    int64_t results = __builtin_popcountll(exchange->ops), bytes = exchange->value_bytes;
    int64_t cluster = at_least_1(walk->rules->cluster_blocks);
    walk->counts->shuffles += results * log2_of(exchange->width);
    add_shared(walk, results * bytes * (exchange->parts + walk->block->threads * cluster),
               results * bytes * (exchange->parts + 1));
    walk->counts->barriers[SCOPE_BLOCK] += 2 * results;
    walk->counts->barriers[exchange->scope]++;
}

/* Outputs of the block's tile that exist. */
static int64_t points_inside(const CountWalk *walk)
{
    int64_t inside = 1;
    for (int a = 0; a < walk->rules->space.axis_count; a++)
        if (!walk->rules->space.axes[a].reduction)
            inside *= walk->region.count[a];
    return inside;
}

/* All sums of the block's tile are left, and those that lie inside are read again: of a cluster every block
   reads those of all, but only of some rows, which they left with it. */
static void count_rows(CountWalk *walk, const Exchange *exchange)
{
    int64_t cluster = at_least_1(walk->rules->cluster_blocks), rank = walk->block->last ? cluster - 1 : 0;
    int64_t columns = walk->region.count[columns_axis(walk)];
    int64_t rows = columns ? points_inside(walk) / columns : 0;
    int64_t points = (int64_t)rtile_points(&walk->rules->space, walk->block->shared, false);
    int64_t own = ceil_div(rows - rank, cluster) * columns;
    add_shared(walk, own * cluster * exchange->value_bytes, points * exchange->value_bytes);
    if (exchange->scope == SCOPE_CLUSTER)
        walk->counts->barriers[SCOPE_CLUSTER] += 2;   // before, all have started
    walk->dealt = cluster > 1;
}

/* Of the first rows of the block's tile those that fall to it: so many side by side, then as many to the cluster's
   next block. */
static int64_t rows_of_share(const CountWalk *walk, int64_t rows, int64_t together)
{
    int64_t cluster = at_least_1(walk->rules->cluster_blocks), rank = walk->block->last ? cluster - 1 : 0;
    int64_t left = rows % (cluster * together) - rank * together;
    return rows / (cluster * together) * together + (left < 0 ? 0 : left < together ? left : together);
}

/* Each block leaves the sums of the others' rows, whether they exist or not, and reads what comes in their place.
   All of its own rows go on as those of COMBINE_ROWS. */
static void count_shares(CountWalk *walk, const Exchange *exchange)
{
    int64_t cluster = at_least_1(walk->rules->cluster_blocks), together = exchange->parts;
    int columns = columns_axis(walk), rows = space_last_spatial(&walk->rules->space, columns);
    int64_t first = walk->region.first[rows] - walk->loaded.first[rows], end = first + walk->region.count[rows];
    int64_t own = (rows_of_share(walk, end, together) - rows_of_share(walk, first, together)) * walk->region.count[columns];
    int64_t share = (int64_t)rtile_points(&walk->rules->space, walk->block->shared, false) / cluster;
    int64_t left = share * (cluster - 1) * exchange->bytes;
    add_shared(walk, left + own * exchange->value_bytes, left + share * exchange->value_bytes);
    walk->counts->barriers[SCOPE_CLUSTER]++;
    walk->dealt = true;
}

/* Every warp leaves a mark, and all threads read them. */
static void count_marks(CountWalk *walk)
{
    enum { MARK_BYTES = 4 };
    int64_t threads = walk->block->threads, warps = ceil_div(threads, walk->device->warp_size);
    add_shared(walk, threads * warps * MARK_BYTES, warps * MARK_BYTES);
    walk->counts->shuffles++;
    walk->counts->barriers[SCOPE_BLOCK]++;
}

/* Shuffles combine those of lanes that share them. Then the results of all parts, inside or not: the first one is written, the others are added to it, and in the
   end those that lie inside are read twice: is one of them no number? */
static void count_turns(CountWalk *walk, const Exchange *exchange)
{
    int64_t parts = tiles_along(walk, true) / at_least_1(exchange->width);
    int64_t points =
        (int64_t)rtile_points(&walk->rules->space, walk->block->shared, false) * exchange->value_bytes;
    walk->counts->shuffles += at_least_1(exchange->values) * log2_of(exchange->width);
    add_shared(walk, (parts - 1) * points + 2 * points_inside(walk) * exchange->value_bytes, parts * points);
    walk->counts->barriers[SCOPE_BLOCK] += parts + 1;
    count_marks(walk);
}

/* The lanes that share a word of bits put it together, for each of a thread's vectors. */
static void count_bits(CountWalk *walk, const Exchange *exchange, int64_t times)
{
    const RTile *inner = walk->block->inner;
    int64_t points = (int64_t)(rtile_points(&walk->rules->space, inner, false) *
                               rtile_points(&walk->rules->space, inner, true));
    int64_t vectors = points / at_least_1(walk->rules->tile_threads) / exchange->width;
    int64_t each = 1 + log2_of(exchange->parts / exchange->width);
    walk->counts->shuffles += times * vectors * each * __builtin_popcountll(exchange->ops);
}

static void count_exchange(CountWalk *walk, const Exchange *exchange, int64_t times)
{
    times *= at_least_1(exchange->times);
    switch ((Combine)exchange->combine) {
    case COMBINE_NOTHING: walk->counts->barriers[exchange->scope] += times; return;
    case COMBINE_LANES:
    case COMBINE_ALL: count_all(walk, exchange, times); return;
    case COMBINE_COLUMNS: count_columns(walk, exchange, times); return;
    case COMBINE_TREE: count_tree(walk, exchange); return;
    case COMBINE_HALVES: count_halves(walk, exchange); return;
    case COMBINE_SLOTS: count_slots(walk, exchange); return;
    case COMBINE_TURNS: count_turns(walk, exchange); return;
    case COMBINE_DIAGONALS:   // which of them lie where, only the template knows
        add_shared(walk, COUNT_UNKNOWN, COUNT_UNKNOWN);
        walk->counts->barriers[SCOPE_BLOCK]++;
        count_marks(walk);
        return;
    case COMBINE_ROWS: count_rows(walk, exchange); return;
    case COMBINE_SHARES: count_shares(walk, exchange); return;
    case COMBINE_BITS: count_bits(walk, exchange, times); return;
    }
}

/* Which tiles a block makes in its further turns the rules do not say. */
static void forget(Counts *counts)
{
    for (int i = 0; i < MAX_DATA_TILES; i++)
        counts->sectors[i] = counts->sectors[i] ? COUNT_UNKNOWN : 0;
    counts->shared_read = counts->shared_written = counts->waits = counts->pending = COUNT_UNKNOWN;
}

Counts schedule_count(Arena *arena, const TileRules *rules, const DeviceSpec *device, const CountedBlock *block)
{
    Counts counts = {0};
    CountWalk walk = {.rules = rules, .device = device, .block = block, .counts = &counts};
    walk.region = region_of(arena, rules, block, false);
    walk.loaded = region_of(arena, rules, block, true);
    const Schedule *schedule = &rules->schedule;
    for (int i = 0; i < schedule->count; i++)
        walk.multiplies |= schedule->items[i].kind == ITEM_PRODUCT;
    for (int i = 0; i < schedule->count; i++) {
        const Item *item = &schedule->items[i];
        int64_t times = times_at(&walk, i);
        if (item->kind == ITEM_LOAD || item->kind == ITEM_STORE)
            count_move(&walk, item, times);
        else if (item->kind == ITEM_WAIT)
            count_wait(&walk, item->behind, times);
        else if (item->kind == ITEM_EXCHANGE)
            count_exchange(&walk, &item->exchange, times);
    }
    if (rules->fills_once && block->turns > 1)
        forget(&counts);
    return counts;
}

static void print_count(StrBuf *out, int64_t count)
{
    if (count == COUNT_UNKNOWN)
        strbuf_puts(out, "unknown");
    else
        strbuf_printf(out, "%" PRId64, count);
}

void counts_print(StrBuf *out, const TileSpace *space, const Counts *counts)
{
    const char *separator = " ";
    strbuf_puts(out, "    sectors");
    for (int i = 0; i < space->tile_count; i++)
        if (counts->sectors[i] && space->tiles[i].name) {
            strbuf_printf(out, "%s%s ", separator, space->tiles[i].name);
            print_count(out, counts->sectors[i]);
            separator = ", ";
        }
    if (counts->scratch_read)
        strbuf_printf(out, ", scratch %" PRId64 " and %" PRId64, counts->scratch_read, counts->scratch_written);
    strbuf_puts(out, "\n    shared bytes read ");
    print_count(out, counts->shared_read);
    strbuf_puts(out, ", written ");
    print_count(out, counts->shared_written);
    strbuf_printf(out, "\n    shuffles %" PRId64 ", barriers block %" PRId64 ", cluster %" PRId64 ", grid %" PRId64 "\n",
                  counts->shuffles, counts->barriers[SCOPE_BLOCK], counts->barriers[SCOPE_CLUSTER],
                  counts->barriers[SCOPE_GRID]);
    strbuf_puts(out, "    waits ");
    print_count(out, counts->waits);
    strbuf_puts(out, ", pending ");
    print_count(out, counts->pending);
    strbuf_puts(out, "\n");
}
