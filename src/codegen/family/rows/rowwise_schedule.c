// What one block of a row kernel does: its passes over the row, and how its threads reduce after each.
#include "codegen/family/rows/rowwise_parts.h"
#include "model/calibration.h"

enum { ROW, COLUMN };   // space axes

/* The statement under construction. */
typedef struct RowStatement {
    Schedule *schedule;
    const RowKernel *row;
    uint32_t in, weights, copied;    // tiles: of the row, the same for every row; of `in` those in shared memory
    uint32_t weight_reads;           // bit i: read i is the same for every row
    bool weights_first, seen_weights, seen_in, met;
} RowStatement;

static bool reads_weights(const RowStatement *s, const RowPass *pass)
{
    return pass->reads & s->weight_reads;
}

static void state_store(RowStatement *s, uint64_t ops)
{
    passes_store(s->schedule, s->row->fusion, s->row->space, ops);
}

static void state_row_values(RowStatement *s, const RowPass *pass)
{
    schedule_map(s->schedule, pass->values);
    state_store(s, pass->reduced | pass->values);
}

/* One exchange for each reduction of the pass; sums and squared distances that are accumulated together share one. */
static void state_exchanges(RowStatement *s, int pass)
{
    enum { FIELDS = 2, PART_VALUES = 3 };   // the last two of a Part in templates/rowwise.cu
    const RowVariant *variant = s->row->variant;
    const Fusion *fusion = s->row->fusion;
    FOR_BITS (i, rowwise_rounds(s->row->passes, pass)) {
        if (variant->cluster > 1 && !s->met)
            schedule_barrier(s->schedule, SCOPE_CLUSTER);   // all blocks have started
        s->met = true;
        bool parts = rowwise_shares_parts(s->row->passes, i);
        int bytes = dtype_info[fusion->ops[i].body->type].bits > 32 ? 8 : 4;
        Exchange exchange = {
            .ops = OP_BIT(i) | (parts ? OP_BIT(s->row->passes->along[i]) : 0),
            .scope = variant->cluster > 1            ? SCOPE_CLUSTER
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

/* Instructions of a thread for each new element. */
static double instructions_of(const RowStatement *s, bool again)
{
    return s->row->variant->home == ROW_AHEAD && !again ? calibration.row_copy_instructions : 0;
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

/* Rows in registers need no loop; weights that are read late, and rows that are not held, are read vector by vector. */
static void state_pass(RowStatement *s, int number)
{
    const RowPass *pass = &s->row->passes->pass[number];
    bool keeps = rowwise_keeps(s->row->variant->home);
    bool weights = reads_weights(s, pass) && !s->weights_first, loops = !keeps || weights;
    int at_once = s->row->variant->at_once;
    at_once = weights ? (at_once + 1) / 2 : at_once;   // weights are loaded with them
    if (loops)
        schedule_loop(s->schedule,
                      (Loop){.axis = COLUMN, .times = (int32_t)s->row->vectors, .at_once = (int16_t)at_once});
    if (!keeps && (pass->reads & ~s->weight_reads || pass->beside))
        state_row_loads(s);
    if (weights)
        state_weight_loads(s);
    schedule_map(s->schedule, pass->made);
    schedule_reduce(s->schedule, pass->reduced);
    int vector = s->row->shape.vector;
    schedule_pack(s->schedule, pass->stored & schedule_bit_ops(s->row->fusion), vector, vector);
    state_store(s, pass->stored);
    if (loops)
        schedule_end(s->schedule);
    state_exchanges(s, number);
    state_row_values(s, pass);
}

/* Rows that are computed together each wait for their own copies, unless the first pass reads weights for both. */
static void state_fetch(RowStatement *s)
{
    RowHome home = s->row->variant->home;
    if (home == ROW_IN_SHARED)
        schedule_load(s->schedule, copy_of(s));
    int together = s->row->variant->together;
    bool each = together > 1 && !reads_weights(s, &s->row->passes->pass[0]);
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
        .weight_reads = rowwise_weights(row->reads),
        .weights = rowwise_weights(row->reads) ? inputs & along & ~space_along(space, ROW) : 0,
        .weights_first = rowwise_reads_weights_first(row->reads, *row->variant, row->vectors),
        .copied = rowwise_copies(row->variant->home) ? row->copied : 0,
    };
    s.in = inputs & ~s.weights;
    schedule->rows = row->variant->together;
    schedule->cluster = row->variant->cluster;
    schedule->cluster_axis = COLUMN;
    schedule->vectors = (int)row->vectors;
    schedule->stages = row->variant->home != ROW_IN_SHARED;   // otherwise each vector has a buffer
    schedule->computes = COMPUTES_VECTORS;
    schedule->points = reduction_points(row->fusion);
    schedule->run = rowwise_places(row->shape, *row->variant);
    schedule->vector = row->shape.unaligned ? row->shape.vector : 0;
    schedule->kept = s.copied ? row->vectors * rowwise_places(row->shape, *row->variant) : 0;
    if (ahead)
        schedule_loop(schedule, (Loop){.axis = ROW, .times = row->variant->turns});
    state_fetch(&s);
    state_row_values(&s, &row->passes->before);
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
