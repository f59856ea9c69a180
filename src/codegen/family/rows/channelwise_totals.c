// The passes of channelwise kernels that only add up elements. A thread carries its totals from step to step,
// and sum[r](sq(x[r] - m)) as the sum of squared distances from the mean of what it has seen so far.
#include "codegen/family/rows/channelwise_parts.h"

#define IN ROWS_INDENT

/* Plain reductions; those that squares are centred at also of the step alone. */
static void emit_plain(PassEmitter *emitter)
{
    const Fusion *fusion = emitter->fusion;
    Arena *arena = emitter->out->arena;
    uint64_t apart = channelwise_step_sums(fusion);
    PassText text = pass_text(emitter);
    FOR_BITS (i, schedule_ops(fusion, true) & ~channelwise_centred_ops(fusion)) {
        const Expr *body = fusion->ops[i].body;
        const char *step = arena_printf(arena, "step%d", i);
        if (!(apart & OP_BIT(i))) {
            pass_add_reduction(emitter, &text, i);
            continue;
        }
        pass_add_total(emitter, &text, i);
        pass_declare(emitter, &text, body->type, "step", i);
        rows_emit_each(&text.function[PASS_BEGIN].text, IN, step, "0");
        pass_add_term(emitter, &text, i, step, rows_value(arena, &emitter->element, ROWS_NOT_ROUNDED, body),
                      body);
    }
    pass_emit_struct(emitter, &text);
}

/* Squares of the distances from the mean of what the step adds up, which is made as the pass begins. */
static void add_squares(const PassEmitter *emitter, PassText *text, int op, const CentredSum *sum)
{
    Arena *arena = emitter->out->arena;
    const char *element = rows_value(arena, &emitter->element, ROWS_NOT_ROUNDED, sum->element);
    pass_add_total(emitter, text, op);
    pass_declare(emitter, text, emitter->fusion->ops[op].body->type, "mean", op);
    rows_emit_each(&text->function[PASS_BEGIN].text, IN, arena_printf(arena, "mean%d", op),
                   arena_printf(arena, "mean_of(step%d[e], here.count)", sum->total));
    pass_add_term(emitter, text, op, arena_printf(arena, "total%d", op),
                  arena_printf(arena, "op_sq(op_sub(%s, mean%d[e]))", element, op), sum->element);
}

/* Squares around the step's own mean; then the step joins the totals. */
static void emit_squares(PassEmitter *emitter)
{
    const Fusion *fusion = emitter->fusion;
    Arena *arena = emitter->out->arena;
    PassText text = pass_text(emitter);
    StrBuf *finish = &text.function[PASS_FINISH].text;
    FOR_BITS (i, channelwise_centred_ops(fusion)) {
        CentredSum sum;
        channelwise_is_centred(fusion, i, &sum);
        add_squares(emitter, &text, i, &sum);
        const char *total = arena_printf(arena, "total%d", i);
        rows_emit_each(finish, IN, total,
                       arena_printf(arena,
                                    "%s[e] + around_both(total%d[e], here.before, mean%d[e], here.count)",
                                    total, sum.total, i));
    }
    FOR_BITS (i, channelwise_step_sums(fusion))
        rows_emit_each(finish, IN, arena_printf(arena, "total%d", i),
                       arena_printf(arena, "Sum::combine(total%d[e], step%d[e])", i, i));
    pass_emit_struct(emitter, &text);
}

/* A reduction over the positions of all threads, and the op's value. */
static void add_whole(PassEmitter *emitter, PassText *text, int op)
{
    Arena *arena = emitter->out->arena;
    Step *conclude = &text->function[PASS_CONCLUDE];
    StrBuf rounded = strbuf_new(arena);
    const char *own = arena_printf(arena, "total%d[e]", op), *whole = arena_printf(arena, "whole%d", op);
    CentredSum sum;
    if (channelwise_is_centred(emitter->fusion, op, &sum))
        own = arena_printf(arena, "%s + around_centre(total%d[e], here.count, v%d[e])", own, sum.total,
                           sum.centre);
    strbuf_printf(&conclude->text, IN "%s %s[VECTOR];\n", value_type(emitter->fusion->ops[op].body->type),
                  whole);
    rows_emit_each(&conclude->text, IN, whole, own);
    channelwise_add_groups(emitter, conclude, op, whole);
    emit_rounded(&rounded, emitter->fusion, op, arena_printf(arena, "%s[e]", whole));
    pass_add_value(emitter, text, PASS_CONCLUDE, op, rounded.text);
}

/* What is made of the totals of all steps. */
static void emit_conclusion(PassEmitter *emitter)
{
    PassText text = pass_text(emitter);
    for (const RowPass *pass = emitter->passes->pass; pass < passes_last(emitter->passes); pass++) {
        FOR_BITS (i, pass->reduced)
            add_whole(emitter, &text, i);
        pass_add_values(emitter, &text, PASS_CONCLUDE, pass->values);
    }
    pass_emit_struct(emitter, &text);
}

void channelwise_emit_totals(PassEmitter *emitter)
{
    emit_plain(emitter);
    if (channelwise_centres(emitter->fusion))
        emit_squares(emitter);
    emit_conclusion(emitter);
}
