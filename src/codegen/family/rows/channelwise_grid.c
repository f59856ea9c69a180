// The passes of channelwise kernels whose blocks hold a share of the positions each. Each block leaves its
// results for the others, then all meet. Squared distances from a mean go along with the sum that it is made
// of, as those from the mean of the block's own share: the blocks meet once for both.
#include "codegen/family/rows/channelwise_parts.h"

#define IN ROWS_INDENT

// ---- the plan ----

/* Squared distances whose centre is known after the pass that makes the sum of the same elements. */
static bool goes_along(const PassPlan *plan, int op, CentredSum *sum)
{
    return channelwise_is_centred(plan->fusion, op, sum) && sum->total >= 0 &&
           plan->of[sum->centre] <= plan->of[sum->total] + 1;
}

const PassPlan *channelwise_grid_passes(Arena *arena, const PassPlan *plan)
{
    PassPlan *grid = arena_copy(arena, plan, sizeof *plan);
    CentredSum sum;
    grid->pass = arena_copy(arena, plan->pass, (size_t)plan->count * sizeof *plan->pass);
    for (int i = 0; i < plan->fusion->op_count; i++)
        if (goes_along(plan, i, &sum)) {
            grid->leader[i] = sum.total;
            grid->pass[plan->of[i]].reduced &= ~OP_BIT(i);
            grid->pass[plan->of[sum.total]].reduced |= OP_BIT(i);
        }
    return grid;
}

uint64_t channelwise_centred(const PassPlan *plan, const RowPass *pass)
{
    uint64_t centred = 0;
    FOR_BITS (i, pass->reduced)
        centred |= plan->leader[i] >= 0 ? OP_BIT(i) : 0;
    return centred;
}

// ---- the text ----

static void add_own_groups(PassEmitter *emitter, PassText *text, int op)
{
    channelwise_add_groups(emitter, &text->function[PASS_FINISH], op,
                           arena_printf(emitter->out->arena, "total%d", op));
}

/* The block's own plain results. */
static void add_plain(PassEmitter *emitter, PassText *text, uint64_t plain)
{
    FOR_BITS (i, plain) {
        pass_add_reduction(emitter, text, i);
        add_own_groups(emitter, text, i);
    }
}

/* Squared distances from the mean of the block's own share. */
static void add_squares(PassEmitter *emitter, PassText *text, uint64_t centred)
{
    FOR_BITS (i, centred) {
        CentredSum sum;
        channelwise_is_centred(emitter->fusion, i, &sum);
        channelwise_add_squares(emitter, text, i, &sum, "total");
        add_own_groups(emitter, text, i);
    }
}

/* Every reduction has a place in the scratch memory. */
static void add_publishing(PassEmitter *emitter, PassText *text, uint64_t ops)
{
    FOR_BITS (i, ops)
        strbuf_printf(&text->function[PASS_PUBLISH].text,
                      IN "publish_partial(t.scratch, here.column, total%d, %d, here.stores);\n", i,
                      pass_reduction(emitter, i));
}

/* The results of all blocks, and the channels' values that are made of them. */
static void add_results(PassEmitter *emitter, PassText *text, const RowPass *pass, uint64_t centred)
{
    StrBuf *out = &text->function[PASS_COLLECT].text;
    FOR_BITS (i, pass->reduced & ~centred) {
        strbuf_printf(out, IN "reduce_shares<%s>(t.scratch, here.column, total%d, %d);\n",
                      combiner(emitter->fusion->ops[i].reduce), i, pass_reduction(emitter, i));
        channelwise_add_result(emitter, text, PASS_COLLECT, i);
    }
    pass_add_values(emitter, text, PASS_COLLECT, pass->values);
    FOR_BITS (i, centred) {
        CentredSum sum;
        channelwise_is_centred(emitter->fusion, i, &sum);
        strbuf_printf(out, IN "reduce_share_distances(t.scratch, here.column, total%d, %d, %d, v%d);\n", i,
                      pass_reduction(emitter, i), pass_reduction(emitter, sum.total), sum.centre);
        channelwise_add_result(emitter, text, PASS_COLLECT, i);
    }
}

/* One meeting, and the values that are made without another one behind it: gives the next pass. */
static const RowPass *emit_meeting(PassEmitter *emitter, const RowPass *pass, const RowPass *last)
{
    PassText plain = pass_text(emitter), squares = pass_text(emitter);
    uint64_t centred = channelwise_centred(emitter->passes, pass);
    PassText *text = centred ? &squares : &plain;
    add_plain(emitter, &plain, pass->reduced & ~centred);
    if (centred)
        pass_emit_struct(emitter, &plain);
    add_squares(emitter, &squares, centred);
    add_publishing(emitter, text, pass->reduced);
    add_results(emitter, text, pass, centred);
    for (pass++; pass < last && !pass->reduced; pass++)
        pass_add_values(emitter, text, PASS_COLLECT, pass->values);
    pass_emit_struct(emitter, text);
    return pass;
}

void channelwise_emit_grid(PassEmitter *emitter)
{
    const RowPass *last = passes_last(emitter->passes);
    for (const RowPass *pass = emitter->passes->pass; pass < last;)
        pass = emit_meeting(emitter, pass, last);
    channelwise_emit_element_pass(emitter);
}
