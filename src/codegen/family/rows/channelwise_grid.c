// The passes of channelwise kernels whose blocks hold a share of the positions each. Each block leaves its
// results for the others, then all meet. Squared distances from a mean go along with the sum that it is made
// of, as those from the mean of the block's own share: the blocks meet once for both.
#include "codegen/family/rows/channelwise_parts.h"

#define IN ROWS_INDENT

/* The op is reduced in the pass, to a plain result or to squared distances from `sum->centre`. */
static bool is_plain(const Fusion *fusion, const Passes *passes, int pass, int op)
{
    return channelwise_meeting(fusion, passes, pass).plain >> op & 1;
}

static bool is_centred(const Fusion *fusion, const Passes *passes, int pass, int op, CentredSum *sum)
{
    return channelwise_meeting(fusion, passes, pass).centred >> op & 1 &&
           channelwise_is_centred(fusion, op, sum);
}

static bool meets(const Fusion *fusion, const Passes *passes, int pass)
{
    return channelwise_meeting(fusion, passes, pass).plain != 0;
}

/* Where in the scratch memory the blocks leave the op's results. */
static int reduction_index(const Fusion *fusion, int op)
{
    int index = 0;
    for (int i = 0; i < op; i++)
        index += fusion->ops[i].reduce != REDUCE_NONE;
    return index;
}

/* The block's own plain results. */
static bool add_plain(ChannelEmitter *emitter, ChannelPass *pass, int number)
{
    Arena *arena = emitter->out->arena;
    CentredSum sum;
    bool centres = false;
    for (int i = 0; i < emitter->fusion->op_count; i++) {
        const Expr *body = emitter->fusion->ops[i].body;
        centres |= is_centred(emitter->fusion, &emitter->passes, number, i, &sum);
        if (!is_plain(emitter->fusion, &emitter->passes, number, i))
            continue;
        const char *total = arena_printf(arena, "total%d", i);
        channelwise_add_total(pass, emitter->fusion, i);
        channelwise_add(emitter, pass, i, total, rows_value(arena, &emitter->element, ROWS_NOT_ROUNDED, body),
                        body);
        channelwise_add_groups(emitter, &pass->finish, i, total);
    }
    return centres;
}

/* Squared distances from the mean of the block's own share. */
static void add_squares(ChannelEmitter *emitter, ChannelPass *pass, int number)
{
    Arena *arena = emitter->out->arena;
    for (int i = 0; i < emitter->fusion->op_count; i++) {
        CentredSum sum;
        if (!is_centred(emitter->fusion, &emitter->passes, number, i, &sum))
            continue;
        const char *total = arena_printf(arena, "total%d", i);
        channelwise_add_total(pass, emitter->fusion, i);
        channelwise_add_squares(emitter, pass, i, &sum, "total");
        channelwise_add_groups(emitter, &pass->finish, i, total);
    }
}

static void add_publishing(ChannelEmitter *emitter, ChannelPass *pass, int number)
{
    CentredSum sum;
    for (int i = 0; i < emitter->fusion->op_count; i++)
        if (is_plain(emitter->fusion, &emitter->passes, number, i) ||
            is_centred(emitter->fusion, &emitter->passes, number, i, &sum))
            strbuf_printf(&pass->publish.text,
                          IN "publish_partial(t.scratch, here.column, total%d, %d, here.stores);\n", i,
                          reduction_index(emitter->fusion, i));
}

/* The results of all blocks, and the channels' values that are made of them. */
static void add_results(ChannelEmitter *emitter, ChannelPass *pass, int number)
{
    const Fusion *fusion = emitter->fusion;
    StrBuf *out = &pass->collect.text;
    CentredSum sum;
    for (int i = 0; i < fusion->op_count; i++) {
        if (!is_plain(fusion, &emitter->passes, number, i))
            continue;
        strbuf_printf(out, IN "reduce_shares<%s>(t.scratch, here.column, total%d, %d);\n",
                      combiner(fusion->ops[i].reduce), i, reduction_index(fusion, i));
        channelwise_add_result(emitter, pass, &pass->collect, i);
    }
    channelwise_add_values(emitter, pass, &pass->collect, number + 1);
    for (int i = 0; i < fusion->op_count; i++) {
        if (!is_centred(fusion, &emitter->passes, number, i, &sum))
            continue;
        strbuf_printf(out, IN "reduce_share_distances(t.scratch, here.column, total%d, %d, %d, v%d);\n", i,
                      reduction_index(fusion, i), reduction_index(fusion, sum.total), sum.centre);
        channelwise_add_result(emitter, pass, &pass->collect, i);
    }
}

/* One meeting, and the values that are made without another one behind it. */
static int emit_meeting(ChannelEmitter *emitter, int number)
{
    ChannelPass plain = channelwise_pass(emitter), squares = channelwise_pass(emitter);
    bool centres = add_plain(emitter, &plain, number);
    ChannelPass *last = centres ? &squares : &plain;
    if (centres)
        channelwise_emit_pass(emitter, &plain);
    add_squares(emitter, &squares, number);
    add_publishing(emitter, last, number);
    add_results(emitter, last, number);
    int next = number + 1;
    for (; next + 1 < emitter->passes.count && !meets(emitter->fusion, &emitter->passes, next); next++)
        channelwise_add_values(emitter, last, &last->collect, next + 1);
    channelwise_emit_pass(emitter, last);
    return next;
}

void channelwise_emit_grid(ChannelEmitter *emitter)
{
    for (int pass = 0; pass + 1 < emitter->passes.count;)
        pass = emit_meeting(emitter, pass);
    channelwise_emit_element_pass(emitter);
}
