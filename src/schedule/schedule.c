#include "schedule/schedule.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

// ---- making one ----

static Item *add(Schedule *schedule, ItemKind kind)
{
    schedule->overflows = schedule->overflows || schedule->count == MAX_ITEMS;
    schedule->count += !schedule->overflows;
    Item *item = memset(&schedule->items[schedule->count - 1], 0, sizeof *item);   // all bytes are hashed
    item->kind = (uint8_t)kind;
    return item;
}

int64_t loop_rounds_together(const Loop *loop, int64_t elements)
{
    return loop && loop->together > elements ? loop->together / elements : 1;
}

void schedule_loop(Schedule *schedule, Loop loop) { add(schedule, ITEM_LOOP)->loop = loop; }

void schedule_end(Schedule *schedule) { add(schedule, ITEM_END); }

static void add_move(Schedule *schedule, ItemKind kind, Move move, Place from, Place to)
{
    move.from = (uint8_t)(move.from == PLACE_USUAL ? from : move.from);
    move.to = (uint8_t)(move.to == PLACE_USUAL ? to : move.to);
    if (move.tiles || move.bytes)
        add(schedule, kind)->move = move;
}

void schedule_load(Schedule *schedule, Move move)
{
    add_move(schedule, ITEM_LOAD, move, PLACE_MEMORY, PLACE_REGISTERS);
}

void schedule_store(Schedule *schedule, Move move)
{
    add_move(schedule, ITEM_STORE, move, PLACE_REGISTERS, PLACE_MEMORY);
}

void schedule_wait(Schedule *schedule, int behind) { add(schedule, ITEM_WAIT)->behind = (uint8_t)behind; }

void schedule_map(Schedule *schedule, uint64_t ops)
{
    if (ops)
        add(schedule, ITEM_MAP)->arithmetic = (Arithmetic){.ops = ops};
}

void schedule_reduce(Schedule *schedule, uint64_t ops)
{
    if (ops)
        add(schedule, ITEM_REDUCE)->arithmetic = (Arithmetic){.ops = ops};
}

void schedule_exchange(Schedule *schedule, Exchange exchange)
{
    add(schedule, ITEM_EXCHANGE)->exchange = exchange;
}

void schedule_barrier(Schedule *schedule, ThreadScope scope)
{
    schedule_exchange(schedule, (Exchange){.scope = (uint8_t)scope});
}

void schedule_pack(Schedule *schedule, uint64_t ops, int vector, int word)
{
    if (ops)
        schedule_exchange(schedule, (Exchange){
                                        .ops = ops,
                                        .scope = SCOPE_WARP,
                                        .combine = COMBINE_BITS,
                                        .width = (int16_t)vector,
                                        .parts = (int16_t)word,
                                    });
}

void schedule_role(Schedule *schedule, WarpRole role) { add(schedule, ITEM_ROLE)->role = (uint8_t)role; }

void schedule_product(Schedule *schedule, uint64_t ops)
{
    add(schedule, ITEM_PRODUCT)->arithmetic = (Arithmetic){.ops = ops};
}

void schedule_takes(Schedule *schedule, double instructions, double waits)
{
    Item *item = &schedule->items[schedule->count - 1];
    assert(schedule->overflows || item->kind == ITEM_MAP || item->kind == ITEM_REDUCE ||
           item->kind == ITEM_PRODUCT);
    item->arithmetic.instructions = instructions;
    item->arithmetic.waits = waits;
}

uint64_t schedule_ops(const Fusion *fusion, bool reductions)
{
    uint64_t ops = 0;
    for (int i = 0; i < fusion->op_count; i++)
        if ((fusion->ops[i].reduce != REDUCE_NONE) == reductions)
            ops |= UINT64_C(1) << (i < 63 ? i : 63);
    return ops;
}

uint64_t schedule_bit_ops(const Fusion *fusion)
{
    uint64_t ops = 0;
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored && fusion->ops[i].out->dtype == DTYPE_B1)
            ops |= UINT64_C(1) << (i < 63 ? i : 63);
    return ops;
}

size_t schedule_bytes(const Schedule *schedule)
{
    return offsetof(Schedule, items) + (size_t)schedule->count * sizeof *schedule->items;
}

Schedule *schedule_copy(Arena *arena, const Schedule *schedule)
{
    return arena_copy(arena, schedule, schedule_bytes(schedule));
}

// ---- questions ----

int schedule_makers(const Schedule *schedule) { return schedule->makers > 1 ? schedule->makers : 1; }

int schedule_buffers(const Schedule *schedule)
{
    int each = schedule->vectors > 0 ? schedule->vectors : 1;
    return schedule->stages > 0 ? schedule->stages : each;
}

bool schedule_is_around(const Schedule *schedule, int loop, int item)
{
    if (schedule->items[loop].kind != ITEM_LOOP)
        return false;
    int depth = 1;
    for (int i = loop + 1; i < item && depth > 0; i++)
        depth += (schedule->items[i].kind == ITEM_LOOP) - (schedule->items[i].kind == ITEM_END);
    return depth > 0;
}

int64_t schedule_rounds(const Schedule *schedule, int item)
{
    int64_t rounds = 1;
    for (int i = 0; i < item; i++)
        if (schedule_is_around(schedule, i, item) && schedule->items[i].loop.times)
            rounds *= schedule->items[i].loop.times;
    return rounds;
}

/* Of a tile, and not of all those that a persistent block makes. */
static bool is_in_loop(const Schedule *schedule, int item)
{
    bool found = false;
    for (int i = 0; i < item; i++)
        found |= schedule_is_around(schedule, i, item) && !schedule->items[i].loop.tiles;
    return found;
}

bool schedule_loads_ahead(const Schedule *schedule)
{
    for (const Item *load = NULL; (load = schedule_next(schedule, ITEM_LOAD, load));)
        if (load->move.from == PLACE_MEMORY && load->move.ahead)
            return true;
    return false;
}

int schedule_rounds_ahead(const Schedule *schedule)
{
    int most = 0;
    for (const Item *load = NULL; (load = schedule_next(schedule, ITEM_LOAD, load));)
        if (load->move.async && load->move.ahead > most)
            most = load->move.ahead;
    return most;
}

const Loop *schedule_open_loop(const Schedule *schedule)
{
    const ItemKind open[] = {ITEM_LOOP, ITEM_LOAD, ITEM_REDUCE, ITEM_END};
    for (int i = 0; i < 4; i++)
        if (i >= schedule->count || schedule->items[i].kind != open[i])
            return NULL;
    return schedule->items[0].loop.waits ? NULL : &schedule->items[0].loop;
}

bool schedule_reads_late(const Schedule *schedule)
{
    for (const Item *load = NULL; (load = schedule_next(schedule, ITEM_LOAD, load));)
        if (load->move.from == PLACE_L2 && is_in_loop(schedule, (int)(load - schedule->items)))
            return true;
    return false;
}

/* Its first loop over the block's shared tiles; NULL: there is none. */
static const Loop *tile_loop(const Schedule *schedule)
{
    for (const Item *item = NULL; (item = schedule_next(schedule, ITEM_LOOP, item));)
        if (item->loop.tiles)
            return &item->loop;
    return NULL;
}

bool schedule_is_persistent(const Schedule *schedule)
{
    const Loop *tiles = tile_loop(schedule);
    return tiles && !tiles->times;
}

bool schedule_counts_turns(const Schedule *schedule) { return tile_loop(schedule) != NULL; }

ScheduleFacts schedule_facts(const Schedule *schedule)
{
    ScheduleFacts facts = {
        .is_persistent = schedule_is_persistent(schedule),
        .rounds_ahead = schedule_rounds_ahead(schedule),
        .open_loop = schedule_open_loop(schedule),
    };
    for (int i = schedule->count - 1; i >= 0; i--) {
        const Item *item = &schedule->items[i];
        bool exchanges = item->kind == ITEM_EXCHANGE;
        bool rows = exchanges && item->exchange.combine == COMBINE_ROWS;
        facts.multiplies |= item->kind == ITEM_PRODUCT;
        facts.cuts_rows |= exchanges && item->exchange.slab;
        facts.combines_rows |= rows && item->exchange.scope == SCOPE_BLOCK;
        facts.passes_rows |= rows && item->exchange.scope == SCOPE_CLUSTER;
        if (item->kind == ITEM_LOOP && item->loop.waits)
            facts.waiting_loop = &item->loop;
        if (item->kind == ITEM_STORE && !facts.last_store)
            facts.last_store = &item->move;
        if (item->kind == ITEM_STORE && item->move.lanes > facts.collecting_lanes)
            facts.collecting_lanes = item->move.lanes;
    }
    return facts;
}
