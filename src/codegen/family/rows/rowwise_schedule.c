// What one block of a row kernel does: its passes over the row, and how its threads meet after each.
#include "codegen/family/rows/rowwise_parts.h"
#include "model/calibration.h"

enum { ROW, COLUMN };   // space axes
enum { READS_IN = 1, READS_WEIGHTS = 2 };   // what an op reads at an element

/* The statement under construction. */
typedef struct RowStatement {
    Schedule *schedule;
    const RowKernel *row;
    uint64_t made;                   // ops whose elements are in registers
    uint32_t in, weights, copied;    // tiles: of the row, the same for every row; of `in` those in shared memory
    bool weights_first, seen_weights, seen_in, met;
} RowStatement;

static uint64_t bit(int op) { return UINT64_C(1) << op; }

typedef struct ReadSearch {
    const Reads *reads;
    int found;
} ReadSearch;

static void read_visit(Expr *expr, void *context)
{
    ReadSearch *search = context;
    if (expr->kind != EXPR_ACCESS)
        return;
    int index = reads_index(search->reads, &expr->access);
    search->found |= index >= 0 && rowwise_is_weight(search->reads, index) ? READS_WEIGHTS : READS_IN;
}

static int reads_of(const RowStatement *s, uint64_t ops)
{
    ReadSearch search = {.reads = s->row->reads};
    for (int i = 0; i < s->row->fusion->op_count; i++)
        if (ops >> i & 1)
            expr_visit(s->row->fusion->ops[i].body, read_visit, &search);
    return search.found;
}

/* Reductions that the pass ends with; ops whose elements it stores; ops whose elements it makes for these. */
typedef struct PassOps {
    uint64_t reduced, stored, mapped;
} PassOps;

static PassOps ops_of(const RowStatement *s, int pass)
{
    const Fusion *fusion = s->row->fusion;
    PassOps ops = {0};
    uint64_t needs = 0;
    for (int i = 0; i < fusion->op_count; i++) {
        bool reduces = fusion->ops[i].reduce != REDUCE_NONE;
        bool stores = !reduces && fusion->ops[i].stored && fusion_op_is_of_elements(s->row->fusion, i);
        if (s->row->passes->pass[i] != pass || !(reduces || stores))
            continue;
        ops.reduced |= reduces ? bit(i) : 0;
        ops.stored |= stores ? bit(i) : 0;
        needs |= s->row->passes->needs[i];
    }
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion_op_is_of_elements(s->row->fusion, i) && !(s->made >> i & 1) && (needs | ops.stored) >> i & 1)
            ops.mapped |= bit(i);
    return ops;
}

/* The tiles of those of the ops that are stored: each has one, in order. */
static void state_store(RowStatement *s, uint64_t ops)
{
    const TileSpace *space = s->row->space;
    uint32_t tiles = 0;
    int tile = 0;
    for (int i = 0; i < s->row->fusion->op_count; i++) {
        if (!s->row->fusion->ops[i].stored)
            continue;
        while (tile < space->tile_count && !space->tiles[tile].output)
            tile++;
        tiles |= tile < space->tile_count && ops >> i & 1 ? 1u << tile : 0;
        tile++;
    }
    schedule_store(s->schedule, (Move){.tiles = tiles});
}

static void state_row_values(RowStatement *s, int pass)
{
    const Fusion *fusion = s->row->fusion;
    uint64_t known = 0;
    for (int i = 0; i < fusion->op_count; i++) {
        bool reduces = fusion->ops[i].reduce != REDUCE_NONE;
        if (!fusion_op_is_of_elements(s->row->fusion, i) && s->row->passes->pass[i] + reduces == pass)
            known |= bit(i);
    }
    schedule_map(s->schedule, known & schedule_ops(fusion, false));
    state_store(s, known);
}

/* One for every turn of the group; sums and squared distances that grow along share theirs. */
static void state_exchanges(RowStatement *s, int pass)
{
    enum { LEAST_WARP = 32, FIELDS = 2, PART_VALUES = 3 };   // the last two of a Part in templates/rowwise.cu
    const RowVariant *variant = s->row->variant;
    const Fusion *fusion = s->row->fusion;
    for (int i = 0; i < fusion->op_count; i++) {
        if (s->row->passes->pass[i] != pass || !rowwise_takes_round(fusion, s->row->passes, i))
            continue;
        if (variant->cluster > 1 && !s->met)
            schedule_barrier(s->schedule, SCOPE_CLUSTER);   // all blocks have started
        s->met = true;
        bool parts = rowwise_shares_parts(fusion, s->row->passes, i);
        int bytes = dtype_info[fusion->ops[i].body->type].bits > 32 ? 8 : 4;
        Exchange exchange = {
            .ops = bit(i) | (parts ? bit(s->row->passes->along[i]) : 0),
            .scope = variant->cluster > 1             ? SCOPE_CLUSTER
                     : variant->group > s->row->warp ? SCOPE_BLOCK
                                                     : SCOPE_WARP,
            .combine = variant->group > LEAST_WARP ? COMBINE_ALL : COMBINE_LANES,
            .bytes = (uint8_t)(parts ? FIELDS * bytes : bytes),
            .value_bytes = (uint8_t)(parts ? FIELDS * bytes : bytes),
            .values = parts ? PART_VALUES : 1,
            .times = (uint8_t)(variant->together ? variant->together : 1),
            .parts = (int16_t)(variant->group / LEAST_WARP),
            .width = (int16_t)(variant->group < s->row->warp ? variant->group : s->row->warp),
        };
        schedule_exchange(s->schedule, exchange);
    }
}

static Move copy_of(const RowStatement *s)
{
    return (Move){.tiles = s->copied, .to = PLACE_SHARED, .async = true};
}

/* Of a thread for each element that it had not before. */
static double instructions_of(const RowStatement *s, bool again)
{
    return s->row->variant->home == ROW_AHEAD && !again ? calibration.rows.ahead_instructions : 0;
}

static void state_row_loads(RowStatement *s)
{
    double instructions = instructions_of(s, s->seen_in);
    schedule_load(s->schedule,
                  (Move){.tiles = s->copied, .from = PLACE_SHARED, .instructions = instructions});
    schedule_load(s->schedule, (Move){
                                   .tiles = s->in & ~s->copied,
                                   .again = s->seen_in,
                                   .instructions = instructions,
                               });
    s->seen_in = true;
}

static void state_weight_loads(RowStatement *s)
{
    schedule_load(s->schedule, (Move){
                                   .tiles = s->weights,
                                   .from = PLACE_L2,
                                   .again = s->seen_weights,
                                   .instructions = instructions_of(s, s->seen_weights),
                               });
    s->seen_weights = true;
}

/* What stays in registers needs no loop; weights that are read late, and rows that do not stay, come vector
   by vector. */
static void state_pass(RowStatement *s, int pass)
{
    PassOps ops = ops_of(s, pass);
    bool keeps = rowwise_keeps(s->row->variant->home);
    int reads = reads_of(s, ops.reduced | ops.mapped);
    bool weights = reads & READS_WEIGHTS && !s->weights_first, loops = !keeps || weights;
    if (loops)
        schedule_loop(s->schedule, (Loop){.axis = COLUMN, .times = (int32_t)s->row->vectors});
    if (!keeps && reads & READS_IN)
        state_row_loads(s);
    if (weights)
        state_weight_loads(s);
    schedule_map(s->schedule, ops.mapped);
    schedule_reduce(s->schedule, ops.reduced);
    state_store(s, ops.stored);
    if (loops)
        schedule_end(s->schedule);
    s->made |= keeps ? ops.mapped : 0;
    state_exchanges(s, pass);
    state_row_values(s, pass + 1);
}

/* Rows that are made together each wait for their own copies, unless the first pass reads weights for
   both. */
static void state_fetch(RowStatement *s)
{
    RowHome home = s->row->variant->home;
    if (home == ROW_IN_SHARED)
        schedule_load(s->schedule, copy_of(s));
    PassOps ops = ops_of(s, 0);
    int together = s->row->variant->together;
    bool each = together > 1 && !(reads_of(s, ops.mapped | ops.reduced) & READS_WEIGHTS);
    for (int left = each ? together - 1 : 0; left >= 0 && rowwise_copies(home); left--)
        schedule_wait(s->schedule, left);
    if (s->weights_first)
        state_weight_loads(s);
    if (rowwise_keeps(home))
        state_row_loads(s);
}

void rowwise_state(Schedule *schedule, const RowKernel *row)
{
    const TileSpace *space = row->space;
    uint32_t inputs = space_inputs(space), along = space_along(space, COLUMN);
    bool ahead = row->variant->home == ROW_AHEAD;
    RowStatement s = {
        .schedule = schedule,
        .row = row,
        .weights = rowwise_weights(row->reads) ? inputs & along & ~space_along(space, ROW) : 0,
        .weights_first = rowwise_reads_weights_first(row->reads, *row->variant, row->vectors),
        .copied = rowwise_copies(row->variant->home) ? row->copied : 0,
    };
    s.in = inputs & ~s.weights;
    schedule->rows = row->variant->together;
    schedule->computes = COMPUTES_VECTORS;
    schedule->points = reduction_points(row->fusion);
    schedule->run = rowwise_places(row->shape, *row->variant);
    schedule->vector = row->shape.unaligned ? row->shape.vector : 0;
    schedule->kept = s.copied ? row->vectors * rowwise_places(row->shape, *row->variant) : 0;
    if (ahead)
        schedule_loop(schedule, (Loop){.axis = ROW, .times = row->variant->turns});
    state_fetch(&s);
    state_row_values(&s, 0);
    for (int pass = 0; pass < row->passes->count; pass++) {
        state_pass(&s, pass);
        Move next = copy_of(&s);
        next.ahead = 1;
        if (pass == 0 && ahead)
            schedule_load(schedule, next);
    }
    if (ahead)
        schedule_end(schedule);
}
