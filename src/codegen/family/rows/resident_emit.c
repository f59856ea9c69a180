// The parameter block of resident kernels.
#include <inttypes.h>
#include <stdio.h>

#include "codegen/family/rows/resident_parts.h"
#include "rtile/space.h"

/* For Scope.loaded. */
static const char *find_loaded(void *context, const Expr *expr)
{
    ResidentEmitter *emitter = context;
    int index = expr->kind == EXPR_ACCESS ? invariants_position(&emitter->invariants, &expr->access) : -1;
    if (index < 0)
        return reads_loaded(&emitter->reads, expr);
    snprintf(emitter->text, sizeof emitter->text, "inv%d", index);
    return emitter->text;
}

/* Each share of what is kept ends where the next one begins, or before the block's shared memory does. */
static void emit_room(ResidentEmitter *emitter)
{
    const char *end = "SHARED_BYTES";
    for (int i = emitter->reads.count - 1; i >= 0; i--) {
        if (!(emitter->kept >> i & 1))
            continue;
        strbuf_printf(emitter->out,
                      "static_assert(KEPT_X%d + SHARE * (int)sizeof(%s) <= %s, \"what is kept has room\");\n",
                      i, memory_type(emitter->reads.reads[i].access->tensor->dtype), end);
        end = arena_printf(emitter->out->arena, "KEPT_X%d", i);
    }
}

static void emit_constants(ResidentEmitter *emitter)
{
    const KernelPlan *plan = emitter->plan;
    StrBuf *out = emitter->out;
    int cluster = plan->program->cluster;
    ScheduleLayout layout = schedule_layout(plan->rules);
    strbuf_printf(
        out,
        "constexpr Index COLUMNS = %" PRId64 ";\nconstexpr Index SHARE = %" PRId64
        ";   // columns of a block\nconstexpr int CLUSTER = %d;   // blocks of a row\n"
        "constexpr int THREADS = %d;\n"
        "constexpr int VECTOR = %d;   // neighbouring elements that a thread reads and writes at once\n"
        "constexpr int SLOTS = %d;   // reductions\n"
        "constexpr int KEPT = %" PRId64 ";   // bytes of shared memory before what is kept\n",
        reduction_points(emitter->fusion), resident_share(emitter->fusion, cluster), cluster, plan->threads,
        emitter->vector, fusion_reductions(emitter->fusion), layout.partial_bytes);
    for (int i = 0; i < emitter->reads.count; i++)
        if (emitter->kept >> i & 1)
            strbuf_printf(out, "constexpr int KEPT_X%d = %" PRId64 ";\n", i, layout.at[i]);
    emit_room(emitter);
}

static void emit_vector_positions(ResidentEmitter *emitter, uint32_t used)
{
    const Fusion *fusion = emitter->fusion;
    emit_used_positions(emitter->out, "    ", "row", &emitter->first, 0, fusion->spatial_count, used);
    emit_used_positions(emitter->out, "    ", "column", &emitter->first, fusion->spatial_count,
                        fusion->axis_count, used);
}

static void emit_keep(ResidentEmitter *emitter)
{
    StrBuf *out = emitter->out;
    strbuf_puts(
        out,
        "\n// Begins the copies of the vector at `column`, which is the block's at `own`.\n"
        "__device__ __forceinline__ void keep(const Tensors &t, Index row, Index column, Index own)\n{\n");
    emit_vector_positions(emitter, resident_axes(emitter, emitter->kept));
    for (int i = 0; i < emitter->reads.count; i++) {
        const Read *read = &emitter->reads.reads[i];
        if (!(emitter->kept >> i & 1))
            continue;
        strbuf_printf(out, "    keep_vector<VECTOR>((%s *)(rollerc_shared + KEPT_X%d) + own, t.in%d, ",
                      memory_type(read->access->tensor->dtype), i,
                      input_position(emitter->fusion, read->access->tensor));
        emit_affine(out, &read->offset, emitter->first.axis);
        strbuf_puts(out, ");\n");
    }
    strbuf_puts(out, "}\n");
}

/* What is not kept is read once, at last. */
static void emit_announce(ResidentEmitter *emitter)
{
    StrBuf *out = emitter->out;
    uint32_t announced = ~emitter->kept;
    for (int i = 0; i < emitter->reads.count; i++)
        if (emitter->reads.reads[i].access->tensor->dtype == DTYPE_B1)
            announced &= ~(1u << i);
    strbuf_puts(out, "\n// Asks L2 for what the last pass alone reads of it.\n"
                     "__device__ __forceinline__ void announce(const Tensors &t, Index row, Index column, "
                     "Index own)\n{\n");
    emit_vector_positions(emitter, resident_axes(emitter, announced));
    for (int i = 0; i < emitter->reads.count; i++) {
        const Read *read = &emitter->reads.reads[i];
        if (!(announced >> i & 1))
            continue;
        strbuf_printf(out, "    announce_line(t.in%d + (",
                      input_position(emitter->fusion, read->access->tensor));
        emit_affine(out, &read->offset, emitter->first.axis);
        strbuf_puts(out, "), own);\n");
    }
    strbuf_puts(out, "}\n");
}

void resident_emit(StrBuf *out, const KernelPlan *plan)
{
    const Fusion *fusion = plan->fusion;
    const ResidentView *view = plan->view;
    ResidentEmitter emitter = {
        .out = out,
        .plan = plan,
        .fusion = fusion,
        .vector = view->vector,
        .reads = view->reads,
        .invariants = invariants_find(fusion, fusion_columns(fusion)),
        .passes = view->passes,
        .kept = view->kept,
        .first = scope_of(plan),
    };
    emitter.first.loaded = find_loaded;
    emitter.first.context = &emitter;
    emitter.element =
        rows_element_scope(out->arena, &emitter.first, fusion->axis_count - 1, fusion_columns(fusion));
    emit_constants(&emitter);
    strbuf_puts(out, "\n// What a vector of elements reads.\n");
    reads_emit_inputs(out, &emitter.reads);
    emit_keep(&emitter);
    emit_announce(&emitter);
    resident_emit_passes(&emitter);
}
