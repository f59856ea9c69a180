// What one block of a channelwise kernel does with its channels: all positions at once, or step by step.
#include "base/checked.h"
#include "codegen/family/rows/channelwise_parts.h"

/* The statement under construction. */
typedef struct ChannelStatement {
    Schedule *schedule;
    const ChannelKernel *kernel;
    uint32_t elements;   // tiles that move along the positions
} ChannelStatement;

static void load(const ChannelStatement *s, bool of_elements)
{
    uint32_t tiles = space_inputs(s->kernel->space) & (of_elements ? s->elements : ~s->elements);
    schedule_load(s->schedule, (Move){.tiles = tiles});
}

/* What is made of totals. */
static void store_channels(const ChannelStatement *s)
{
    const Fusion *fusion = s->kernel->fusion;
    uint64_t of_elements = 0;
    for (int i = 0; i < fusion->op_count; i++)
        of_elements |= fusion_is_of_elements(fusion, &fusion->ops[i]) ? OP_BIT(i) : 0;
    passes_store(s->schedule, fusion, s->kernel->space, ~of_elements);
}

static uint8_t value_bytes(const FusedOp *op) { return dtype_info[op->body->type].bits > 32 ? 8 : 4; }

/* One exchange for each result, down the groups; a single one has them. */
static void exchange(const ChannelStatement *s, uint64_t ops)
{
    const ChannelKernel *kernel = s->kernel;
    if (kernel->groups == 1)
        return;
    bool is_warp = kernel->groups * kernel->lanes <= kernel->warp;
    FOR_BITS (i, ops)
        schedule_exchange(s->schedule, (Exchange){
                                           .ops = OP_BIT(i),
                                           .scope = is_warp ? SCOPE_WARP : SCOPE_BLOCK,
                                           .combine = COMBINE_COLUMNS,
                                           .bytes = (uint8_t)channelwise_result_bytes(kernel->fusion),
                                           .value_bytes = value_bytes(&kernel->fusion->ops[i]),
                                           .values = (uint8_t)kernel->reads->walk.vector,
                                           .parts = (int16_t)kernel->groups,
                                           .width = (int16_t)kernel->lanes,
                                       });
}

static void reduce(const ChannelStatement *s, uint64_t ops)
{
    schedule_reduce(s->schedule, ops);
    exchange(s, ops);
}

static void make_elements(const ChannelStatement *s)
{
    const ChannelKernel *kernel = s->kernel;
    const RowPass *last = passes_last(kernel->passes);
    schedule_map(s->schedule, last->made);
    schedule_pack(s->schedule, schedule_bit_ops(kernel->fusion), kernel->reads->walk.vector, WORD_BITS);
    passes_store(s->schedule, kernel->fusion, kernel->space, last->stored);
}

/* Positions stay in registers until all that is made of them is known. */
static void hold(const ChannelStatement *s)
{
    const PassPlan *passes = s->kernel->passes;
    load(s, true);
    schedule_map(s->schedule, passes->before.values);
    for (const RowPass *pass = passes->pass; pass < passes_last(passes); pass++) {
        schedule_map(s->schedule, pass->made);
        reduce(s, pass->reduced);
        schedule_map(s->schedule, pass->values);
    }
    store_channels(s);
    make_elements(s);
}

/* A thread adds up over all steps before any threads meet. */
static void add_up(const ChannelStatement *s)
{
    const PassPlan *passes = s->kernel->passes;
    schedule_loop(s->schedule, (Loop){.axis = POSITION, .at_once = 1});
    load(s, true);
    for (const RowPass *pass = passes->pass; pass < passes_last(passes); pass++)
        schedule_map(s->schedule, pass->made);
    schedule_reduce(s->schedule, schedule_ops(s->kernel->fusion, true));
    schedule_end(s->schedule);
    schedule_map(s->schedule, passes->before.values);
    for (const RowPass *pass = passes->pass; pass < passes_last(passes); pass++) {
        exchange(s, pass->reduced);
        schedule_map(s->schedule, pass->values);
    }
    store_channels(s);
}

void channelwise_state(Schedule *schedule, const ChannelKernel *kernel)
{
    ChannelStatement s = {
        .schedule = schedule, .kernel = kernel, .elements = space_along(kernel->space, POSITION)};
    schedule->order = fusion_reduces(kernel->fusion) ? ORDER_FORWARDS : ORDER_BACKWARDS;
    schedule->computes = COMPUTES_VECTORS;
    schedule->points = reduction_points(kernel->fusion);
    load(&s, false);
    if (kernel->walk == TOTALS) {
        add_up(&s);
        return;
    }
    if (kernel->walk == ELEMENTS)
        schedule_loop(schedule, (Loop){.axis = POSITION});
    hold(&s);
    if (kernel->walk == ELEMENTS)
        schedule_end(schedule);
}
