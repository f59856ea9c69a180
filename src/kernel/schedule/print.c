#include "kernel/schedule/print.h"

#include <inttypes.h>

static const char *const place_name[] = {
    [PLACE_MEMORY] = "memory", [PLACE_L2] = "L2",
    [PLACE_SHARED] = "shared", [PLACE_REGISTERS] = "registers",
};
static const char *const scope_name[SCOPE_COUNT] = {
    [SCOPE_WARP] = "warp", [SCOPE_BLOCK] = "block", [SCOPE_CLUSTER] = "cluster"};
static const char *const order_name[] = {
    [ORDER_FORWARDS] = "forwards", [ORDER_BACKWARDS] = "backwards", [ORDER_PANELS] = "in panels",
    [ORDER_PANELS_BACKWARDS] = "in panels, backwards"};

static void print_ops(StrBuf *out, const Fusion *fusion, uint64_t ops, bool reduces)
{
    bool first = true;
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        if (!(ops >> (i < 63 ? i : 63) & 1) || (op->reduce != REDUCE_NONE) != reduces)
            continue;
        strbuf_puts(out, first ? " " : ", ");
        if (reduces)
            strbuf_printf(out, "%s ", reduce_name[op->reduce]);
        strbuf_puts(out, op->out->name);
        first = false;
    }
}

static void print_tiles(StrBuf *out, const TileSpace *space, uint32_t tiles)
{
    const char *separator = " ";
    for (int i = 0; i < space->tile_count; i++)
        if (tiles >> i & 1 && space->tiles[i].name) {
            strbuf_printf(out, "%s%s", separator, space->tiles[i].name);
            separator = ", ";
        }
}

/* From memory and to it goes without saying. */
static void print_move(StrBuf *out, const TileSpace *space, const Item *item)
{
    const Move *move = &item->move;
    bool loads = item->kind == ITEM_LOAD;
    strbuf_puts(out, loads ? "load" : "store");
    if (move->bytes && move->to == PLACE_SHARED)
        strbuf_puts(out, " zeros");
    print_tiles(out, space, move->tiles);
    if (move->bytes && move->to != PLACE_SHARED)
        strbuf_printf(out, " results of %" PRId32 " bytes", move->bytes);
    if (loads && move->from != PLACE_MEMORY)
        strbuf_printf(out, " from %s", place_name[move->from]);
    if (move->to != (loads ? PLACE_REGISTERS : PLACE_MEMORY))
        strbuf_printf(out, " -> %s", place_name[move->to]);
    strbuf_puts(out, move->async ? " async" : "");
    if (move->ahead)
        strbuf_printf(out, " ahead %d", move->ahead);
    strbuf_puts(out, move->again ? " again" : "");
    strbuf_puts(out, move->collected ? " collected" : "");
    if (move->lanes)
        strbuf_printf(out, " collected below %d lanes", move->lanes);
}

static const char *const role_name[] = {[WARPS_COPY] = "copy", [WARPS_COMPUTE] = "compute"};

static void print_loop(StrBuf *out, const TileSpace *space, const Loop *loop)
{
    strbuf_printf(out, "loop %s", loop->tiles ? "tiles" : space->axes[loop->axis].name);
    if (loop->times)
        strbuf_printf(out, ", %" PRId32 " rounds", loop->times);
}

static void print_exchange(StrBuf *out, const Exchange *exchange)
{
    strbuf_printf(out, "%s %s",
                  exchange->combine == COMBINE_BITS ? "pack"
                  : exchange->ops                   ? "exchange"
                                                    : "barrier",
                  exchange->combine == COMBINE_BITS ? "bits" : scope_name[exchange->scope]);
}

static void print_item(StrBuf *out, const TileSpace *space, const Fusion *fusion, const Item *item)
{
    switch ((ItemKind)item->kind) {
    case ITEM_LOOP: print_loop(out, space, &item->loop); return;
    case ITEM_END: return;
    case ITEM_LOAD:
    case ITEM_STORE: print_move(out, space, item); return;
    case ITEM_WAIT: strbuf_printf(out, "wait %d", item->behind); return;
    case ITEM_MAP:
    case ITEM_REDUCE:
    case ITEM_PRODUCT:
        strbuf_puts(out, item->kind == ITEM_MAP ? "map" : item->kind == ITEM_REDUCE ? "reduce" : "product");
        print_ops(out, fusion, item->arithmetic.ops, item->kind != ITEM_MAP);
        return;
    case ITEM_EXCHANGE: print_exchange(out, &item->exchange); return;
    case ITEM_ROLE: strbuf_printf(out, "warps that %s", role_name[item->role]); return;
    }
}

/* What is made of something stands behind it, in its line. */
static bool goes_on(const Item *before, const Item *item)
{
    bool makes = before->kind == ITEM_MAP || before->kind == ITEM_REDUCE || before->kind == ITEM_PRODUCT ||
                 (before->kind == ITEM_EXCHANGE && before->exchange.ops);
    return makes && item->kind != ITEM_LOAD && item->kind != ITEM_LOOP && item->kind != ITEM_WAIT &&
           item->kind != ITEM_END && item->kind != ITEM_ROLE &&
           !(item->kind == ITEM_MAP && before->kind == ITEM_EXCHANGE) &&
           !(item->kind == ITEM_REDUCE && before->kind == ITEM_EXCHANGE);
}

void schedule_print(StrBuf *out, const KernelKind *kind, const Fusion *fusion, const char *pace)
{
    const Schedule *schedule = kind->schedule;
    int depth = 1;
    strbuf_printf(out, "schedule %s: threads %s, blocks %s\n", kind->name, pace, order_name[schedule->order]);
    for (int i = 0; i < schedule->count; i++) {
        const Item *item = &schedule->items[i];
        depth -= item->kind == ITEM_END;
        if (item->kind == ITEM_END)
            continue;
        bool last = i + 1 == schedule->count, joins = i > 0 && goes_on(item - 1, item);
        if (joins)
            strbuf_puts(out, "   ");
        else
            strbuf_printf(out, "%*s", 2 * depth, "");
        print_item(out, kind->space, fusion, item);
        depth += item->kind == ITEM_LOOP;
        strbuf_puts(out, last || !goes_on(item, item + 1) ? "\n" : "");
    }
}

void schedule_print_short(StrBuf *out, const KernelKind *kind, const Fusion *fusion)
{
    const Schedule *schedule = kind->schedule;
    bool opens = true;     // nothing stands before it in its loop
    unsigned loops = 0;    // that are open, a bit each, the innermost last: over a persistent block's tiles 0, not shown
    for (int i = 0; i < schedule->count; i++) {
        const Item *item = &schedule->items[i];
        if (item->kind == ITEM_END) {
            strbuf_puts(out, loops & 1 ? " }" : "");
            loops >>= 1;
            continue;
        }
        if (item->kind == ITEM_LOOP)
            loops = loops << 1 | !item->loop.tiles;
        if (item->kind == ITEM_LOOP && item->loop.tiles)
            continue;
        strbuf_puts(out, opens ? "" : goes_on(item - 1, item) ? ", " : "; ");
        print_item(out, kind->space, fusion, item);
        opens = item->kind == ITEM_LOOP;
        strbuf_puts(out, opens ? " { " : "");
    }
}
