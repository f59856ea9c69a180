#include "kernel/schedule/count.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "kernel/schedule/count_parts.h"

// ---- loads and stores ----

static bool is_memory(int place) { return place == PLACE_MEMORY || place == PLACE_L2; }

/* Whole tiles are written, but along the dimension that is contiguous in memory no further than there is
   something. */
static int64_t turned_bytes(const CountWalk *walk, const DataTile *tile)
{
    const RTile *shared = walk->block->shared;
    RTile written = *shared;
    for (int a = 0; a < walk->kind->space->axis_count; a++)
        if (tile->dims[tile->staged_inner].index.coef[a])
            written.size[a] = walk->region.count[a];
    return data_tile_elements(tile, &written, walk->kind->space->axis_count) * tile->element_bits / 8;
}

/* The shared tile, without what is cut off along these axes. */
static RTile loaded_tile(const CountWalk *walk, uint32_t cut, uint32_t cleared)
{
    RTile tile = count_wide_tile(walk, walk->block->shared, true);
    for (int a = 0; a < walk->kind->space->axis_count; a++) {
        int64_t extent = walk->kind->space->axes[a].extent;
        if ((cut | cleared) >> a & 1)
            tile.size[a] = smaller(tile.size[a], cleared >> a & 1 ? extent : round_up(extent, 8));
    }
    return tile;
}

/* Of an operand of a product: what is loaded in all these times, and with a block's first tile what is cleared. */
static int64_t operand_bytes(const CountWalk *walk, const DataTile *tile, int64_t times)
{
    const Schedule *schedule = walk->kind->schedule;
    int axes = walk->kind->space->axis_count;
    RTile part = loaded_tile(walk, schedule->cut, schedule->cleared), whole = loaded_tile(walk, schedule->cut, 0);
    int64_t loaded = data_tile_elements(tile, &part, axes);
    int64_t cleared = walk->tile ? 0 : schedule->stages * (data_tile_elements(tile, &whole, axes) - loaded);
    return (times * loaded + cleared) * staged_bits(tile) / 8;
}

/* What the block's threads read of a staged tile, or write one by one. Operands of a product are read by
   every register tile that needs them, behind the last step as often as they are read ahead, and whole tiles
   of them are written. */
static int64_t own_bytes(const CountWalk *walk, const DataTile *tile, const Move *move, bool write,
                         int64_t times)
{
    int axes = walk->kind->space->axis_count;
    int64_t vector = walk->kind->schedule->vector;
    if (walk->multiplies && write)
        return operand_bytes(walk, tile, times);
    if (walk->multiplies) {
        RTile inner = count_wide_tile(walk, walk->block->inner, false);
        return (times * count_tiles(walk, true) + move->ahead) * count_tiles(walk, false) *
               data_tile_elements(tile, &inner, axes) * staged_bits(tile) / 8;
    }
    if (write)
        return turned_bytes(walk, tile);
    if (vector)
        return region_pieces(&walk->region, tile, vector * tile->element_bits / 8);
    return region_elements(&walk->region, tile) * tile->element_bits / 8;
}

/* The tile says where its elements are. */
static bool is_picture(const CountWalk *walk, const DataTile *tile)
{
    return !tile->apart && region_is_countable(&walk->region, tile);
}

static void count_own(CountWalk *walk, const Move *move, int tile)
{
    bool writes = move->to == PLACE_SHARED;
    if (!writes && move->from != PLACE_SHARED)
        return;
    int64_t bytes = walk->kind->shared_moved(walk->kind, tile, writes, walk->block->shared,
                                              walk->block->inner, walk->region.first);
    count_shared(walk, writes ? 0 : bytes, writes ? bytes : 0);
}

static void count_staging(CountWalk *walk, const Move *move, int index, int64_t times)
{
    const DataTile *tile = &walk->kind->space->tiles[index];
    bool reads = move->from == PLACE_SHARED, writes = move->to == PLACE_SHARED;
    if (walk->kind->shared_moved)
        count_own(walk, move, index);
    else if (walk->kind->shared.unstated || (reads && (tile->plane || tile->windows)) ||
             ((reads || writes) && !walk->multiplies && !is_picture(walk, tile)))
        count_shared(walk, reads ? COUNT_UNKNOWN : 0, writes ? COUNT_UNKNOWN : 0);
    else if (reads)
        count_shared(walk, own_bytes(walk, tile, move, false, times), 0);
    else if (writes && move->async && !walk->multiplies)
        count_shared(walk, 0, region_pieces(&walk->region, tile, VECTOR_BYTES));
    else if (writes)
        count_shared(walk, 0, own_bytes(walk, tile, move, true, times));
}

/* Outputs that a block collects before it stores them. */
static void count_collected(CountWalk *walk, const DataTile *tile)
{
    if (!region_is_countable(&walk->region, tile) || !region_is_run(&walk->region, tile))
        return;
    int64_t bytes = region_elements(&walk->region, tile) * tile->element_bits / 8;
    count_shared(walk, bytes, bytes);
    walk->counts->barriers[SCOPE_BLOCK]++;
}

/* All sums of the tile are left, a row of each thread at a time, and those that lie inside are read again. */
static void count_lines(CountWalk *walk)
{
    const RTile *shared = walk->block->shared;
    int64_t bytes = walk->kind->registers.accumulator_bits / 8;
    int columns = space_last_spatial(walk->kind->space, walk->kind->space->axis_count),
        rows = space_last_spatial(walk->kind->space, columns);
    count_shared(walk, count_inside(walk) * bytes, (int64_t)rtile_points(walk->kind->space, shared, false) * bytes);
    walk->counts->barriers[SCOPE_BLOCK] += 2 * walk->block->inner->size[rows];
}

/* Fewer threads than that share a row of the block's tile. */
static bool has_fewer_lanes(const CountWalk *walk, int lanes)
{
    int columns = space_last_spatial(walk->kind->space, walk->kind->space->axis_count);
    return walk->block->shared->size[columns] / walk->block->inner->size[columns] < lanes;
}

static void count_sectors(CountWalk *walk, int index, const ItemWork *own)
{
    if (own && own->tiles >> index & 1) {
        count_add(&walk->counts->sectors[index], own->sectors[index]);
        return;
    }
    const DataTile *tile = &walk->kind->space->tiles[index];
    bool of_results = tile->output || tile->beside;
    bool dealt = of_results && walk->dealt && !walk->order.run, known = tile->scatter <= 1 && is_picture(walk, tile);
    Region region = of_results ? walk->region : walk->loaded;
    if (of_results && walk->dealt)
        region.dealt = walk->order;
    unsigned char **seen = walk->in_turn ? &walk->seen[index] : NULL;
    bool shares = tile->repeats[0].run || tile->repeats[1].run;   // positions share elements, said with one gap
    bool scattered = dealt ? walk->order.threads > 0 : !known || shares;
    int64_t sectors = scattered ? count_scattered(walk, &region, index) : COUNT_UNKNOWN;
    if (sectors == COUNT_UNKNOWN && known && !dealt)
        sectors = region_sectors(&region, tile, seen);
    count_add(&walk->counts->sectors[index], sectors);
}

/* What the family states of the item. */
static bool has_own_work(const CountWalk *walk, const Item *item, int64_t times, ItemWork *work)
{
    const CountedBlock *block = walk->block;
    const CountedItem at = {
        .arena = walk->region.arena,
        .device = walk->device,
        .item = item,
        .kind = walk->kind,
        .fusion = walk->fusion,
        .shared = block->shared,
        .inner = block->inner,
        .first = walk->region.first,
        .count = walk->region.count,
        .times = times,
        .threads = block->threads,
        .last = block->last,
    };
    *work = (ItemWork){0};
    return block->work && block->work(block->view, &at, work);
}

/* `own`: what the family states of it, or NULL. */
static void count_move(CountWalk *walk, const Item *item, int64_t times, const ItemWork *own)
{
    const Move *move = &item->move;
    if (move->bytes) {
        count_shared(walk, 0, move->bytes);
        return;
    }
    bool of_memory = is_memory(item->kind == ITEM_LOAD ? move->from : move->to);
    for (int i = 0; i < walk->kind->space->tile_count; i++) {
        const DataTile *tile = &walk->kind->space->tiles[i];
        if (!(move->tiles >> i & 1))
            continue;
        if (of_memory && !move->again)
            count_sectors(walk, i, own);
        if (!own)
            count_staging(walk, move, i, times);
        if (move->collected)
            count_collected(walk, tile);
    }
    if (move->lanes && has_fewer_lanes(walk, move->lanes))
        count_lines(walk);
    walk->under_way += move->async ? at_least_1(walk->kind->schedule->rows) : 0;
}

static bool is_in_loop(const Schedule *schedule, int item)
{
    bool inside = false;
    for (int i = 0; i < item; i++)
        inside |= schedule_is_around(schedule, i, item);
    return inside;
}

/* Groups of copies for the rounds of the loop behind an item, of those that begin before it. */
static int64_t groups_ahead(const CountWalk *walk, int item)
{
    const Schedule *schedule = walk->kind->schedule;
    while (item < schedule->count && schedule->items[item].kind != ITEM_LOOP)
        item++;
    return item < schedule->count ? count_rounds(walk, &schedule->items[item].loop) - 1 : 0;
}

/* What those who copy do, and the last threads, where groups make tiles in turn. */
static bool is_of_last_maker(const CountWalk *walk)
{
    int makers = schedule_makers(walk->kind->schedule);
    return walk->roles < 2 || walk->tile % makers == makers - 1;
}

/* Of copies several rounds ahead none is left in the last round; before a loop those for its first rounds are under way, if what
   all of these need has been asked for, too. */
static void count_wait(CountWalk *walk, int item, int64_t times)
{
    int behind = walk->kind->schedule->items[item].behind;
    if (!is_of_last_maker(walk))
        return;
    walk->counts->waits += times;
    int ahead = schedule_rounds_ahead(walk->kind->schedule);
    if (ahead > 1) {
        bool before = walk->under_way && !is_in_loop(walk->kind->schedule, item);
        int64_t groups = groups_ahead(walk, item) + (behind == ahead);   // it may wait for none of the loop's
        walk->counts->pending += before ? smaller(behind, groups) : (times - 1) * behind;
        return;
    }
    walk->under_way = walk->under_way < behind ? walk->under_way : behind;
    walk->counts->pending += times * walk->under_way;
}

/* Shuffles and barriers always follow from the item. */
static void count_meeting(CountWalk *walk, const Exchange *exchange, int64_t times, bool own)
{
    const Counts before = *walk->counts;
    count_exchange(walk, exchange, times);
    if (own) {
        walk->counts->additions = before.additions;
        walk->counts->shared_read = before.shared_read;
        walk->counts->shared_written = before.shared_written;
        return;
    }
    count_combined(walk, exchange, times);
}

static void count_item(CountWalk *walk, int index, int64_t times)
{
    const Item *item = &walk->kind->schedule->items[index];
    ItemWork work;
    bool own = has_own_work(walk, item, times, &work);
    if (own)
        count_work(walk->counts, &work);
    switch ((ItemKind)item->kind) {
    case ITEM_LOAD:
    case ITEM_STORE: count_move(walk, item, times, own ? &work : NULL); return;
    case ITEM_WAIT: count_wait(walk, index, times); return;
    case ITEM_EXCHANGE: count_meeting(walk, &item->exchange, times, own); return;
    case ITEM_MAP:
    case ITEM_REDUCE:
        if (!own)
            count_ops(walk, index);
        return;
    case ITEM_PRODUCT: count_product(walk, times, own ? &work : NULL); return;
    case ITEM_ROLE: count_role(walk, (WarpRole)item->role); return;
    case ITEM_LOOP:
    case ITEM_END: return;
    }
}

static void go_to(CountWalk *walk, Arena *arena, const TilePlace *place)
{
    walk->region = region_of(arena, walk->kind, walk->block, place, false);
    walk->loaded = region_of(arena, walk->kind, walk->block, place, true);
}

/* Loops over a persistent block's tiles around the item. */
static int tile_loops(const Schedule *schedule, int item)
{
    int loops = 0;
    for (int i = 0; i < item; i++)
        loops += schedule_is_around(schedule, i, item) && schedule->items[i].loop.tiles;
    return loops;
}

/* In a loop over tiles for each of them. */
static void count_in_turn(CountWalk *walk, Arena *arena, const TilePlace *places, int64_t count, int index)
{
    int loops = tile_loops(walk->kind->schedule, index);
    int64_t again = 1;
    for (int i = 1; i < loops; i++)
        again *= count;
    memset(walk->seen, 0, sizeof walk->seen);
    memset(walk->scattered, 0, sizeof walk->scattered);
    for (int64_t i = 0; i < (loops ? count : 1); i++) {
        walk->tile = i;
        go_to(walk, arena, &places[i]);
        count_item(walk, index, again * count_times(walk, index));
    }
}

Counts schedule_count(Arena *arena, const KernelKind *kind, const Fusion *fusion, const DeviceSpec *device,
                      const CountedBlock *block)
{
    Counts counts = {0};
    CountWalk walk = {.kind = kind, .fusion = fusion, .device = device, .block = block, .counts = &counts};
    const Schedule *schedule = kind->schedule;
    TilePlace *places = NEW_ARRAY(arena, TilePlace, at_least_1(block->turns)), only = region_place(kind, block);
    walk.in_turn = schedule_is_persistent(schedule) && block->turns > 1;
    walk.tiles = walk.in_turn ? count_places(&walk, places) : 1;
    for (int i = 0; i < schedule->count; i++)
        walk.multiplies |= schedule->items[i].kind == ITEM_PRODUCT;
    for (int i = 0; i < schedule->count; i++)
        count_in_turn(&walk, arena, walk.in_turn ? places : &only, walk.tiles, i);
    return counts;
}

static void print_count(StrBuf *out, int64_t count)
{
    if (count == COUNT_UNKNOWN)
        strbuf_puts(out, "unknown");
    else
        strbuf_printf(out, "%" PRId64, count);
}

/* Of what there is. */
static void print_arithmetic(StrBuf *out, const Counts *counts)
{
    const struct {
        const char *what;
        int64_t count;
    } lines[] = {
        {"multiplications", counts->multiplications}, {"additions", counts->additions},
        {"comparisons", counts->comparisons},         {"functions", counts->functions},
        {"products of tensor cores", counts->tensor_products},
    };
    const char *separator = "    ";
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (lines[i].count) {
            strbuf_printf(out, "%s%s ", separator, lines[i].what);
            print_count(out, lines[i].count);
            separator = ", ";
        }
    strbuf_puts(out, *separator == ',' ? "\n" : "");
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
    strbuf_puts(out, "\n    shared bytes read ");
    print_count(out, counts->shared_read);
    strbuf_puts(out, ", written ");
    print_count(out, counts->shared_written);
    strbuf_printf(out, "\n    shuffles %" PRId64 ", barriers block %" PRId64 ", cluster %" PRId64 "\n",
                  counts->shuffles, counts->barriers[SCOPE_BLOCK], counts->barriers[SCOPE_CLUSTER]);
    print_arithmetic(out, counts);
    strbuf_puts(out, "    waits ");
    print_count(out, counts->waits);
    strbuf_puts(out, ", pending ");
    print_count(out, counts->pending);
    strbuf_puts(out, "\n");
}
