// The parameter block of channelwise kernels.
#include "codegen/family/rows/channelwise_parts.h"

#define IN ROWS_INDENT

// ---- passes ----

/* Of kernels whose threads hold their positions, or go on from one to the next. */
static void emit_column(PassEmitter *emitter)
{
    const RowPass *last = passes_last(emitter->passes);
    for (const RowPass *pass = emitter->passes->pass; pass < last; pass++)
        pass_emit(emitter, pass);
    if (last->made)   // something is stored of every element
        pass_emit(emitter, last);
}

// ---- passes that only add up elements ----
//
// A thread carries its totals from step to step, and sum[r](sq(x[r] - m)) as the sum of squared distances from the mean
// of what it has seen so far.

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
        pass_declare(&text, body->type, "step", i);
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
    pass_declare(text, emitter->fusion->ops[op].body->type, "mean", op);
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
    const char *own = arena_printf(arena, "total%d[e]", op), *whole = arena_printf(arena, "whole%d", op);
    CentredSum sum;
    if (channelwise_is_centred(emitter->fusion, op, &sum))
        own = arena_printf(arena, "%s + around_centre(total%d[e], here.count, v%d[e])", own, sum.total,
                           sum.centre);
    strbuf_printf(&conclude->text, IN "%s %s[VECTOR];\n", value_type(emitter->fusion->ops[op].body->type),
                  whole);
    rows_emit_each(&conclude->text, IN, whole, own);
    pass_add_groups(emitter, conclude, op, whole);
    pass_add_value(emitter, text, PASS_CONCLUDE, op,
                   rounded_text(arena, emitter->fusion, op, arena_printf(arena, "%s[e]", whole)));
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

static void emit_totals(PassEmitter *emitter)
{
    emit_plain(emitter);
    if (channelwise_centres(emitter->fusion))
        emit_squares(emitter);
    emit_conclusion(emitter);
}

// ---- the block ----

static void emit_constants(StrBuf *out, const KernelPlan *plan, int vector)
{
    const Fusion *fusion = plan->fusion;
    const RProgram *program = plan->program;
    ChannelWalk walk = channelwise_walks(plan->kind);
    int64_t lanes = program->tile[LEVEL_SHARED].size[CHANNEL] / vector;
    CONSTEXPR(out, "Index CHANNELS", NULL, fusion->axes[channelwise_axis(fusion)].extent);
    CONSTEXPR(out, "Index POSITIONS", NULL, reduction_points(fusion));
    CONSTEXPR(out, "int LANES", "threads along the channels", lanes);
    CONSTEXPR(out, "int GROUPS", "threads along the positions", plan->threads / lanes);
    CONSTEXPR(out, "int VECTOR", "contiguous channels of an access", vector);
    CONSTEXPR(out, "int POSITIONS_EACH", "of a thread", program->tile[LEVEL_REGISTER].size[POSITION]);
    CONSTEXPR(out, "int RESULT_BYTES", "of the widest reduction", channelwise_result_bytes(fusion));
    CONSTEXPR(out, "bool BACKWARDS", "the last blocks first: L2 may still hold what they read",
              !fusion_reduces(fusion));
    CONSTEXPR(out, "bool CARRIED", "totals are kept from step to step", walk == TOTALS);
}

static void emit_invariant(StrBuf *out, const PassEmitter *emitter, int index)
{
    const Tensor *tensor = emitter->invariants.access[index]->tensor;
    const Affine *offset = &emitter->invariants.offset[index];
    bool bits = tensor->dtype == DTYPE_B1;
    bool whole = !bits && affine_allows_vector(offset, emitter->axis, emitter->vector);
    StrBuf load = strbuf_new(out->arena);
    strbuf_printf(&load,
                  whole  ? "load_vector<VECTOR>(t.in%d, "
                  : bits ? "load_bit(t.in%d, "
                         : "load(t.in%d, ",
                  input_position(emitter->fusion, tensor));
    emit_affine(&load, offset, whole ? emitter->first.axis : emitter->element.axis);
    if (whole)
        strbuf_printf(out, "    %s, inv.x%d);\n", load.text, index);
    else
        rows_emit_each(out, "    ", arena_printf(out->arena, "inv.x%d", index),
                       arena_printf(out->arena, "%s)", load.text));
}

static void emit_invariants(StrBuf *out, const PassEmitter *emitter)
{
    const Invariants *invariants = &emitter->invariants;
    strbuf_puts(out, "\n// Invariants: inputs that a thread loads once for its channels.\nstruct Invariants {\n");
    for (int i = 0; i < invariants->count; i++)
        strbuf_printf(out, "    %s x%d[VECTOR];\n", value_type(invariants->access[i]->tensor->dtype), i);
    strbuf_puts(
        out,
        "};\n\n__device__ __forceinline__ void load_invariants(const Tensors &t, Index slab, Index channel, "
        "Invariants &inv)\n{\n");
    /* The address of a scalar is known before the wait for the launch that stores it. */
    if (invariants->count)
        strbuf_puts(out, "    hold_loads();\n");
    pass_emit_positions(out, "    ", "", &emitter->first, invariants_axes(invariants));
    for (int i = 0; i < invariants->count; i++)
        emit_invariant(out, emitter, i);
    strbuf_puts(out, "}\n");
}

static void emit_load_elements(StrBuf *out, const Scope *first, const Scope *element, const Reads *reads)
{
    const Fusion *fusion = first->fusion;
    strbuf_puts(out, "\n// What the channels of one position load.\n");
    reads_emit_inputs(out, reads);
    begin_function(out, NULL, "void load_elements(const Tensors &t, Index slab, Index channel, Index at, Inputs &in)");
    uint32_t used = reads_axes(reads);
    pass_emit_positions(out, "    ", "", first, used);
    emit_used_positions(out, "    ", "at", first, fusion->spatial_count, fusion->axis_count, used);
    reads_emit_vectors(out, "    ", first, reads, "at");
    StrBuf gathers = strbuf_new(out->arena);
    reads_emit_gathers(&gathers, "            ", element, reads);
    if (gathers.length)
        rows_emit_block_each(out, "", gathers.text);
    strbuf_puts(out, "}\n");
}

void channelwise_emit(StrBuf *out, const KernelPlan *plan)
{
    const Fusion *fusion = plan->fusion;
    const ChannelView *view = plan->view;
    ChannelWalk walk = channelwise_walks(plan->kind);
    PassEmitter emitter;
    pass_begin(&emitter, out, plan, view->passes, &view->reads, channelwise_axis(fusion));
    emit_constants(out, plan, emitter.vector);
    emit_invariants(out, &emitter);
    emit_load_elements(out, &emitter.first, &emitter.element, &emitter.reads);
    pass_emit_all(&emitter, walk == TOTALS ? emit_totals : emit_column);
}
