// The parameter block of channelwise kernels whose blocks hold all positions together, each a share of them. They meet once for
// all reductions that do not wait for each other, and for sum[r](sq(x[r] - m)) along with the sum that m is made of: a block
// leaves the squared distances from the mean of its own share.
#include <inttypes.h>

#include "codegen/cuda/expr.h"
#include "codegen/family/rows/channelwise_parts.h"

/* What the blocks meet for. */
typedef struct Meeting {
    Emitter *emitter;
    int pass;
    int turn[MAX_PASS_OPS];   // by op: where in the scratch memory the blocks leave its results
} Meeting;

static ChannelMeeting results_of(const Meeting *meeting)
{
    return channelwise_meeting(meeting->emitter->fusion, &meeting->emitter->passes, meeting->pass);
}

/* The op is reduced in the meeting, to a plain result or to squared distances from `sum->centre`. */
static bool is_plain(const Meeting *meeting, int op) { return results_of(meeting).plain >> op & 1; }

static bool is_centred(const Meeting *meeting, int op, CentredSum *sum)
{
    return results_of(meeting).centred >> op & 1 && channelwise_is_centred(meeting->emitter->fusion, op, sum);
}

/* The block's own plain results. */
static void emit_plain(const Meeting *meeting)
{
    Emitter *emitter = meeting->emitter;
    StrBuf *out = emitter->out, ends = strbuf_new(out->arena);
    Addends addends = {.statements = strbuf_new(out->arena)};
    for (int i = 0; i < emitter->fusion->op_count; i++) {
        if (!is_plain(meeting, i))
            continue;
        const Expr *body = emitter->fusion->ops[i].body;
        channelwise_emit_identity(emitter, i);
        channelwise_emit_combine(&addends.statements, emitter->fusion, i);
        emit_expr(&addends.statements, &emitter->element, body);
        strbuf_puts(&addends.statements, ");\n");
        channelwise_add_addend(emitter, &addends, body);
        channelwise_emit_groups(emitter, &ends, i);
    }
    channelwise_emit_addends(emitter, &addends);
    strbuf_puts(out, ends.text);
}

/* Squared distances from the mean of the block's own share. */
static void emit_squares(const Meeting *meeting)
{
    Emitter *emitter = meeting->emitter;
    StrBuf *out = emitter->out, ends = strbuf_new(out->arena);
    Addends addends = {.statements = strbuf_new(out->arena)};
    int count = 0;
    for (int i = 0; i < emitter->fusion->op_count; i++) {
        CentredSum sum;
        if (!is_centred(meeting, i, &sum))
            continue;
        strbuf_printf(out,
                      "    %s mean%d[VECTOR];\n    UNROLL for (int e = 0; e < VECTOR; ++e)\n"
                      "        mean%d[e] = mean_of(total%d[e], positions_of_share(own_share()));\n",
                      value_type(emitter->fusion->ops[i].body->type), i, i, sum.total);
        channelwise_emit_identity(emitter, i);
        channelwise_emit_combine(&addends.statements, emitter->fusion, i);
        strbuf_puts(&addends.statements, "op_sq(op_sub(");
        emit_expr(&addends.statements, &emitter->element, sum.element);
        strbuf_printf(&addends.statements, ", mean%d[e])));\n", i);
        channelwise_add_addend(emitter, &addends, sum.element);
        channelwise_emit_groups(emitter, &ends, i);
        count++;
    }
    if (count)
        channelwise_emit_addends(emitter, &addends);
    strbuf_puts(out, ends.text);
}

static void emit_barrier(const Meeting *meeting)
{
    Emitter *emitter = meeting->emitter;
    CentredSum sum;
    for (int i = 0; i < emitter->fusion->op_count; i++)
        if (is_plain(meeting, i) || is_centred(meeting, i, &sum))
            strbuf_printf(emitter->out, "    leave_share(t.scratch, column, total%d, %d, stores);\n", i,
                          meeting->turn[i]);
    strbuf_puts(emitter->out, "    grid_sync();\n");
}

/* The results of all blocks, and the channels' values that are made of them. */
static void emit_results(const Meeting *meeting)
{
    Emitter *emitter = meeting->emitter;
    StrBuf *out = emitter->out;
    CentredSum sum;
    for (int i = 0; i < emitter->fusion->op_count; i++) {
        if (!is_plain(meeting, i))
            continue;
        strbuf_printf(out, "    reduce_shares<%s>(t.scratch, column, total%d, %d);\n",
                      combiner(emitter->fusion->ops[i].reduce), i, meeting->turn[i]);
        channelwise_emit_groups(emitter, out, i);
        channelwise_emit_total_value(emitter, out, i);
    }
    channelwise_emit_channel_values(emitter, meeting->pass + 1);
    for (int i = 0; i < emitter->fusion->op_count; i++) {
        if (!is_centred(meeting, i, &sum))
            continue;
        strbuf_printf(out, "    reduce_share_distances(t.scratch, column, total%d, %d, %d, v%d);\n", i,
                      meeting->turn[i], meeting->turn[sum.total], sum.centre);
        channelwise_emit_groups(emitter, out, i);
        channelwise_emit_total_value(emitter, out, i);
    }
}

static bool meets(const Meeting *meeting) { return results_of(meeting).plain != 0; }

void channelwise_emit_grid(Emitter *emitter)
{
    Meeting meeting = {.emitter = emitter};
    for (int i = 0, turns = 0; i < emitter->fusion->op_count; i++)
        if (emitter->fusion->ops[i].reduce != REDUCE_NONE)
            meeting.turn[i] = turns++;
    channelwise_emit_holding_compute(emitter);
    strbuf_puts(emitter->out, "    const Index column = slab * CHANNELS + channel;\n");
    for (; meeting.pass + 1 < emitter->passes.count; meeting.pass++) {
        if (!meets(&meeting)) {
            channelwise_emit_channel_values(emitter, meeting.pass + 1);
            continue;
        }
        emit_plain(&meeting);
        emit_squares(&meeting);
        emit_barrier(&meeting);
        emit_results(&meeting);
    }
    channelwise_emit_channel_stores(emitter);
    channelwise_emit_element_pass(emitter);
    strbuf_puts(emitter->out, "}\n");
}
