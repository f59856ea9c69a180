// The passes of channelwise kernels that only add up elements. A thread carries its totals from step to step,
// and sum[r](sq(x[r] - m)) as the sum of squared distances from the mean of what it has seen so far.
#include "codegen/family/rows/channelwise_parts.h"

#define IN ROWS_INDENT

/* Plain reductions; those that squares are centred at also of the step alone. */
static void emit_plain(ChannelEmitter *emitter)
{
    const Fusion *fusion = emitter->fusion;
    Arena *arena = emitter->out->arena;
    uint64_t apart = channelwise_step_sums(fusion);
    ChannelPass pass = channelwise_pass(emitter);
    for (int i = 0; i < fusion->op_count; i++) {
        CentredSum sum;
        const FusedOp *op = &fusion->ops[i];
        if (op->reduce == REDUCE_NONE || channelwise_is_centred(fusion, i, &sum))
            continue;
        bool is_apart = apart >> i & 1;
        const char *target = arena_printf(arena, is_apart ? "step%d" : "total%d", i);
        channelwise_add_total(&pass, fusion, i);
        if (is_apart) {
            strbuf_printf(&pass.members, "    %s %s[VECTOR];\n", value_type(op->body->type), target);
            rows_emit_each(&pass.begin.text, IN, target, "0");
        }
        channelwise_add(emitter, &pass, i, target,
                        rows_value(arena, &emitter->element, ROWS_NOT_ROUNDED, op->body), op->body);
    }
    channelwise_emit_pass(emitter, &pass);
}

/* Squares around the step's own mean; then the step joins the totals. */
static void emit_squares(ChannelEmitter *emitter)
{
    const Fusion *fusion = emitter->fusion;
    Arena *arena = emitter->out->arena;
    uint64_t apart = channelwise_step_sums(fusion);
    ChannelPass pass = channelwise_pass(emitter);
    for (int i = 0; i < fusion->op_count; i++) {
        CentredSum sum;
        if (!channelwise_is_centred(fusion, i, &sum))
            continue;
        channelwise_add_total(&pass, fusion, i);
        channelwise_add_squares(emitter, &pass, i, &sum, "step");
        const char *total = arena_printf(arena, "total%d", i);
        rows_emit_each(&pass.finish.text, IN, total,
                       arena_printf(arena,
                                    "%s[e] + around_both(total%d[e], here.before, mean%d[e], here.count)",
                                    total, sum.total, i));
    }
    for (int i = 0; i < fusion->op_count; i++)
        if (apart >> i & 1)
            rows_emit_each(&pass.finish.text, IN, arena_printf(arena, "total%d", i),
                           arena_printf(arena, "Sum::combine(total%d[e], step%d[e])", i, i));
    channelwise_emit_pass(emitter, &pass);
}

/* A reduction over the positions of all threads, and the op's value. */
static void add_whole(ChannelEmitter *emitter, ChannelPass *pass, int op)
{
    const FusedOp *fused = &emitter->fusion->ops[op];
    Arena *arena = emitter->out->arena;
    StrBuf *out = &pass->conclude.text, rounded = strbuf_new(arena);
    const char *own = arena_printf(arena, "total%d[e]", op), *whole = arena_printf(arena, "whole%d", op);
    CentredSum sum;
    if (channelwise_is_centred(emitter->fusion, op, &sum))
        own = arena_printf(arena, "%s + around_centre(total%d[e], here.count, v%d[e])", own, sum.total,
                           sum.centre);
    strbuf_printf(out, IN "%s %s[VECTOR];\n", value_type(fused->body->type), whole);
    rows_emit_each(out, IN, whole, own);
    channelwise_add_groups(emitter, &pass->conclude, op, whole);
    emit_rounded(&rounded, emitter->fusion, op, arena_printf(arena, "%s[e]", whole));
    channelwise_add_value(emitter, pass, &pass->conclude, op, rounded.text);
}

/* What is made of the totals of all steps. */
static void emit_conclusion(ChannelEmitter *emitter)
{
    const Fusion *fusion = emitter->fusion;
    ChannelPass pass = channelwise_pass(emitter);
    for (int number = 0; number + 1 < emitter->passes.count; number++) {
        for (int i = 0; i < fusion->op_count; i++)
            if (fusion->ops[i].reduce != REDUCE_NONE && emitter->passes.of[i] == number)
                add_whole(emitter, &pass, i);
        channelwise_add_values(emitter, &pass, &pass.conclude, number + 1);
    }
    channelwise_emit_pass(emitter, &pass);
}

void channelwise_emit_totals(ChannelEmitter *emitter)
{
    emit_plain(emitter);
    if (channelwise_centres(emitter->fusion))
        emit_squares(emitter);
    emit_conclusion(emitter);
}
