// The parameter block of resident kernels.
#include <assert.h>

#include "codegen/family/rows/resident_parts.h"

#define IN ROWS_INDENT

/* Axes whose positions some of the reads need (bit i: read i). */
static uint32_t axes_of(const Reads *reads, uint32_t which)
{
    uint32_t axes = 0;
    FOR_BITS (i, which)
        axes |= access_axes(reads->reads[i].access);
    return axes;
}

// ---- passes: what each reads of a vector, and how their structs are ----

static void add_loads(const PassEmitter *emitter, Step *step, uint32_t used)
{
    uint32_t kept = ((const ResidentView *)emitter->plan->view)->kept;
    step->axes = axes_of(&emitter->reads, used & ~kept);
    FOR_BITS (i, used) {
        const Read *read = &emitter->reads.reads[i];
        const Tensor *tensor = read->access->tensor;
        strbuf_printf(&step->text, IN "%s<VECTOR>(", tensor->dtype == DTYPE_B1 ? "load_bits" : "load_vector");
        if (kept >> i & 1) {
            strbuf_printf(&step->text, "(const %s *)(rollerc_shared + KEPT_X%d), own",
                          memory_type(tensor->dtype), i);
        } else {
            strbuf_printf(&step->text, "t.in%d, ", input_position(emitter->fusion, tensor));
            emit_affine(&step->text, &read->offset, emitter->first.axis);
        }
        strbuf_printf(&step->text, ", in.x%d);\n", i);
    }
}

static void emit_row_positions(StrBuf *out, const PassEmitter *emitter, uint32_t used)
{
    emit_used_positions(out, IN, "row", &emitter->first, 0, emitter->fusion->spatial_count, used);
}

static const char *bit_words(const PassEmitter *emitter, int op)
{
    int run = resident_bit_run(emitter->fusion, emitter->vector, &emitter->fusion->ops[op]);
    assert(run);   // else words are shared with other rows
    return run == 8 ? "(unsigned char *)" : run == 16 ? "(unsigned short *)" : "(unsigned *)";
}

/* Every reduction has a slot for the partial results of the row's blocks. */
static void add_result(PassEmitter *emitter, PassText *text, int op)
{
    const FusedOp *fused = &emitter->fusion->ops[op];
    const char *reduction = combiner(fused->reduce);
    int slot = pass_reduction(emitter, op);
    Arena *arena = emitter->out->arena;
    strbuf_printf(&text->function[PASS_REDUCE].text, IN "reduce_block<%s>(total%d, %d);\n", reduction, op, slot);
    const char *total = arena_printf(arena, "row_total<%s, %s>(%d)", reduction, value_type(fused->body->type), slot);
    pass_add_value(emitter, text, PASS_FINISH, op, rounded_text(arena, emitter->fusion, op, total));
}

static const PassStructs structs = {
    .whose = "A row",
    .start = "RowStart<Index>",
    .invariant = {"inv", ""},
    .signature =
        {
            [PASS_LOAD] = "load_inputs(const Tensors &t, Index at, Index own, Inputs &in)",
            [PASS_MAKE] = "make(const Tensors &t, Index at, const Inputs &in, Elements &el)",
            [PASS_ADD] = "add(const Tensors &t, Index at, const Inputs &in, const Elements &el)",
            [PASS_STORE_ELEMENTS] = "store_elements(const Tensors &t, Index at, const Elements &el) const",
            [PASS_PACK_ELEMENTS] =
                "pack_elements(const Tensors &t, Index at, const Elements &el, bool within) "
                "const",
            [PASS_REDUCE] = "reduce()",
            [PASS_FINISH] = "finish(const Tensors &t)",
            [PASS_STORE_ROW] = "store_row(const Tensors &t) const",
        },
    .positions = emit_row_positions,
    .load = add_loads,
    .result = add_result,
    .bit_words = bit_words,
};

static void begin(PassEmitter *emitter, StrBuf *out, const KernelPlan *plan)
{
    const ResidentView *view = plan->view;
    pass_begin(emitter, out, plan, &structs, view->passes, &view->reads, plan->fusion->axis_count - 1);
}

/* Reads that are the same for all of the row. */
static void add_invariants(const PassEmitter *emitter, PassText *text)
{
    const Invariants *invariants = &emitter->invariants;
    Step *finish = &text->function[PASS_FINISH];
    finish->axes |= invariants_axes(invariants);
    for (int i = 0; i < invariants->count; i++) {
        const Tensor *tensor = invariants->access[i]->tensor;
        pass_declare(emitter, text, tensor->dtype, "inv", i);
        strbuf_printf(&finish->text, IN "inv%d = %s(t.in%d, %s);\n", i, tensor->dtype == DTYPE_B1 ? "load_bit" : "load",
                      input_position(emitter->fusion, tensor),
                      affine_text(finish->text.arena, &invariants->offset[i], emitter->first.axis));
    }
}

static void emit_each_pass(PassEmitter *emitter)
{
    for (int pass = 0; pass < emitter->passes->count; pass++)
        pass_emit(emitter, &emitter->passes->pass[pass]);
}

static void emit_passes(PassEmitter *emitter)
{
    PassText start = pass_text(emitter);
    add_invariants(emitter, &start);
    pass_emit_all(emitter, &start, emit_each_pass);
}

// ---- the block ----

/* Bit i: read i is kept in shared memory. */
static uint32_t kept_by(const PassEmitter *emitter)
{
    return ((const ResidentView *)emitter->plan->view)->kept;
}

/* Each held share ends where the next one begins, or within the block's shared memory. */
static void emit_room(PassEmitter *emitter)
{
    const char *end = "SHARED_BYTES";
    for (int i = emitter->reads.count - 1; i >= 0; i--) {
        if (!(kept_by(emitter) >> i & 1))
            continue;
        strbuf_printf(emitter->out,
                      "static_assert(KEPT_X%d + SHARE * (int)sizeof(%s) <= %s, \"what is kept has room\");\n",
                      i, memory_type(emitter->reads.reads[i].access->tensor->dtype), end);
        end = arena_printf(emitter->out->arena, "KEPT_X%d", i);
    }
}

static void emit_constants(PassEmitter *emitter)
{
    const KernelPlan *plan = emitter->plan;
    StrBuf *out = emitter->out;
    int cluster = plan->program->cluster;
    ScheduleLayout layout = schedule_layout(plan->kind);
    CONSTEXPR(out, "Index COLUMNS", NULL, reduction_points(emitter->fusion));
    CONSTEXPR(out, "Index SHARE", "columns of a block", resident_share(emitter->fusion, cluster));
    CONSTEXPR(out, "int CLUSTER", "blocks of a row", cluster);
    CONSTEXPR(out, "int THREADS", NULL, plan->threads);
    CONSTEXPR(out, "int VECTOR", "contiguous elements of an access", emitter->vector);
    CONSTEXPR(out, "int SLOTS", "reductions", fusion_reductions(emitter->fusion));
    CONSTEXPR(out, "int KEPT_AT_ONCE", "vectors of a thread whose loads are in flight", (int64_t)KEPT_AT_ONCE);
    CONSTEXPR(out, "int KEPT", "bytes of shared memory before the copy of the row", layout.partial_bytes);
    FOR_BITS (i, kept_by(emitter))
        CONSTEXPR(out, arena_printf(out->arena, "int KEPT_X%d", i), NULL, layout.at[i]);
    emit_room(emitter);
}

static void emit_vector_positions(PassEmitter *emitter, uint32_t used)
{
    const Fusion *fusion = emitter->fusion;
    emit_used_positions(emitter->out, "    ", "row", &emitter->first, 0, fusion->spatial_count, used);
    emit_used_positions(emitter->out, "    ", "column", &emitter->first, fusion->spatial_count,
                        fusion->axis_count, used);
}

static void emit_keep(PassEmitter *emitter)
{
    StrBuf *out = emitter->out;
    begin_function(out, "Starts the copies of the vector at `column`, the block's column `own`.",
                   "void keep(const Tensors &t, Index row, Index column, Index own)");
    emit_vector_positions(emitter, axes_of(&emitter->reads, kept_by(emitter)));
    FOR_BITS (i, kept_by(emitter)) {
        const Read *read = &emitter->reads.reads[i];
        strbuf_printf(out, "    keep_vector<VECTOR>((%s *)(rollerc_shared + KEPT_X%d) + own, t.in%d, %s);\n",
                      memory_type(read->access->tensor->dtype), i,
                      input_position(emitter->fusion, read->access->tensor),
                      affine_text(out->arena, &read->offset, emitter->first.axis));
    }
    strbuf_puts(out, "}\n");
}

/* Inputs that are not held are read once, in the last pass. */
static void emit_announce(PassEmitter *emitter)
{
    StrBuf *out = emitter->out;
    uint32_t announced = 0;
    for (int i = 0; i < emitter->reads.count; i++)
        announced |= (uint32_t)(emitter->reads.reads[i].access->tensor->dtype != DTYPE_B1) << i;
    announced &= ~kept_by(emitter);
    begin_function(out, "Prefetches to L2 what only the last pass reads.",
                   "void announce(const Tensors &t, Index row, Index column, Index own)");
    emit_vector_positions(emitter, axes_of(&emitter->reads, announced));
    FOR_BITS (i, announced) {
        const Read *read = &emitter->reads.reads[i];
        strbuf_printf(out, "    announce_line(t.in%d + (%s), own);\n",
                      input_position(emitter->fusion, read->access->tensor),
                      affine_text(out->arena, &read->offset, emitter->first.axis));
    }
    strbuf_puts(out, "}\n");
}

void resident_emit(StrBuf *out, const KernelPlan *plan)
{
    PassEmitter emitter;
    begin(&emitter, out, plan);
    emit_constants(&emitter);
    strbuf_puts(out, "\n// What a vector of elements loads.\n");
    reads_emit_inputs(out, &emitter.reads);
    emit_keep(&emitter);
    emit_announce(&emitter);
    emit_passes(&emitter);
}
