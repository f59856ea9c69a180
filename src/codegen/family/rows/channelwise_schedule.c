// What one block of a channelwise kernel does with its channels: all positions at once, step by step, or a
// share of them.
#include "base/checked.h"
#include "codegen/family/rows/channelwise_parts.h"
#include "model/calibration.h"

enum { WORD_BITS = 32 };   // of a word of one-bit elements

// ---- what blocks meet for ----

/* Squared distances whose centre is known after the pass that makes the sum of the same elements. */
static bool goes_along(const Fusion *fusion, const Passes *passes, int op, CentredSum *sum)
{
    return channelwise_is_centred(fusion, op, sum) && sum->total >= 0 &&
           passes->of[sum->centre] <= passes->of[sum->total] + 1;
}

ChannelMeeting channelwise_meeting(const Fusion *fusion, const Passes *passes, int pass)
{
    ChannelMeeting meeting = {0};
    CentredSum sum;
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].reduce != REDUCE_NONE && passes->of[i] == pass &&
            !goes_along(fusion, passes, i, &sum))
            meeting.plain |= UINT64_C(1) << i;
    for (int i = 0; i < fusion->op_count; i++)
        if (goes_along(fusion, passes, i, &sum) && meeting.plain >> sum.total & 1)
            meeting.centred |= UINT64_C(1) << i;
    return meeting;
}

// ---- the schedule ----

/* The statement under construction. */
typedef struct ChannelStatement {
    Schedule *schedule;
    const ChannelKernel *kernel;
    uint32_t elements;   // tiles that move along the positions
} ChannelStatement;

static uint64_t bit(int op) { return UINT64_C(1) << op; }

static void load(const ChannelStatement *s, uint32_t tiles)
{
    double instructions = s->kernel->walk == GRID ? calibration.channels.grid_instructions : 0;
    schedule_load(s->schedule, (Move){.tiles = tiles, .instructions = instructions});
}

static void load_invariants(const ChannelStatement *s)
{
    load(s, space_inputs(s->kernel->space) & ~s->elements);
}

static void load_elements(const ChannelStatement *s)
{
    load(s, space_inputs(s->kernel->space) & s->elements);
}

static void store(const ChannelStatement *s, bool of_elements)
{
    uint32_t tiles = space_outputs(s->kernel->space) & (of_elements ? s->elements : ~s->elements);
    schedule_store(s->schedule, (Move){.tiles = tiles});
}

/* Of the channels themselves, once so many passes have ended. */
static void map_channels(const ChannelStatement *s, int passes)
{
    const Fusion *fusion = s->kernel->fusion;
    uint64_t ops = 0;
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].reduce == REDUCE_NONE && !fusion_op_is_of_elements(s->kernel->fusion, i) &&
            s->kernel->passes->of[i] == passes)
            ops |= bit(i);
    schedule_map(s->schedule, ops);
}

static void map_elements(const ChannelStatement *s, int pass)
{
    const ChannelKernel *kernel = s->kernel;
    schedule_map(s->schedule, passes_needs(kernel->fusion, kernel->reads, kernel->passes, pass).ops);
}

static uint8_t value_bytes(const FusedOp *op) { return dtype_info[op->body->type].bits > 32 ? 8 : 4; }

/* One exchange for each result, down the groups. */
static void exchange(const ChannelStatement *s, uint64_t ops)
{
    const ChannelKernel *kernel = s->kernel;
    bool is_warp = kernel->groups * kernel->lanes <= kernel->warp;
    for (int i = 0; i < kernel->fusion->op_count; i++)
        if (ops >> i & 1)
            schedule_exchange(s->schedule, (Exchange){
                                               .ops = bit(i),
                                               .scope = is_warp ? SCOPE_WARP : SCOPE_BLOCK,
                                               .combine = COMBINE_COLUMNS,
                                               .bytes = (uint8_t)channelwise_result_bytes(kernel->fusion),
                                               .value_bytes = value_bytes(&kernel->fusion->ops[i]),
                                               .values = (uint8_t)kernel->reads->walk.vector,
                                               .parts = (int16_t)kernel->groups,
                                               .width = (int16_t)kernel->lanes,
                                           });
}

static uint64_t reductions_of(const ChannelStatement *s, int pass)
{
    uint64_t ops = 0;
    for (int i = 0; i < s->kernel->fusion->op_count; i++)
        if (s->kernel->fusion->ops[i].reduce != REDUCE_NONE && s->kernel->passes->of[i] == pass)
            ops |= bit(i);
    return ops;
}

static void make_elements(const ChannelStatement *s)
{
    map_elements(s, s->kernel->passes->count - 1);
    schedule_pack(s->schedule, schedule_bit_ops(s->kernel->fusion), s->kernel->reads->walk.vector, WORD_BITS);
    store(s, true);
}

static void column(const ChannelStatement *s)
{
    load_elements(s);
    map_channels(s, 0);
    for (int pass = 0; pass + 1 < s->kernel->passes->count; pass++) {
        uint64_t ops = reductions_of(s, pass);
        map_elements(s, pass);
        schedule_reduce(s->schedule, ops);
        exchange(s, ops);
        map_channels(s, pass + 1);
    }
    store(s, false);
    make_elements(s);
}

/* Blocks leave the results of their shares, and go through those of all when they have met. Squared distances
   from a share's own mean go along with the sums that it is made of. */
static void grid(const ChannelStatement *s)
{
    int64_t each =
        channelwise_result_bytes(s->kernel->fusion) * s->kernel->lanes * s->kernel->reads->walk.vector;
    load_elements(s);
    map_channels(s, 0);
    for (int pass = 0; pass + 1 < s->kernel->passes->count; pass++) {
        ChannelMeeting meeting = channelwise_meeting(s->kernel->fusion, s->kernel->passes, pass);
        int64_t bytes = each * __builtin_popcountll(meeting.plain | meeting.centred);
        map_elements(s, pass);
        for (int centred = 0; centred < 2; centred++) {
            uint64_t ops = centred ? meeting.centred : meeting.plain;
            schedule_reduce(s->schedule, ops);
            exchange(s, ops);
        }
        if (bytes) {
            schedule_store(s->schedule, (Move){.to = PLACE_SCRATCH, .bytes = (int32_t)bytes});
            schedule_barrier(s->schedule, SCOPE_GRID);
            bytes *= s->kernel->shares;
            schedule_load(s->schedule, (Move){.from = PLACE_SCRATCH, .bytes = (int32_t)bytes});
        }
        exchange(s, meeting.plain);
        map_channels(s, pass + 1);
        exchange(s, meeting.centred);
    }
    store(s, false);
    make_elements(s);
}

/* A thread adds up over all steps before any threads meet. */
static void totals(const ChannelStatement *s)
{
    schedule_loop(s->schedule, (Loop){.axis = POSITION});
    load_elements(s);
    for (int pass = 0; pass + 1 < s->kernel->passes->count; pass++)
        map_elements(s, pass);
    schedule_reduce(s->schedule, schedule_ops(s->kernel->fusion, true));
    schedule_end(s->schedule);
    map_channels(s, 0);
    for (int pass = 0; pass + 1 < s->kernel->passes->count; pass++) {
        exchange(s, reductions_of(s, pass));
        map_channels(s, pass + 1);
    }
    store(s, false);
}

static void elements(const ChannelStatement *s)
{
    schedule_loop(s->schedule, (Loop){.axis = POSITION});
    load_elements(s);
    map_channels(s, 0);
    make_elements(s);
    schedule_end(s->schedule);
}

void channelwise_state(Schedule *schedule, const ChannelKernel *kernel)
{
    static void (*const states[])(const ChannelStatement *) = {
        [COLUMN] = column, [GRID] = grid, [ELEMENTS] = elements, [TOTALS] = totals};
    ChannelStatement s = {
        .schedule = schedule, .kernel = kernel, .elements = space_along(kernel->space, POSITION)};
    schedule->order = fusion_reduces(kernel->fusion) ? ORDER_FORWARDS : ORDER_BACKWARDS;
    schedule->computes = COMPUTES_VECTORS;
    schedule->points = reduction_points(kernel->fusion);
    load_invariants(&s);
    states[kernel->walk](&s);
}
