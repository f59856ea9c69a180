// The parameter block of resident kernels.
#include "codegen/family/rows/resident_parts.h"
#include "rtile/space.h"

/* Bit i: read i is kept in shared memory. */
static uint32_t kept_by(const PassEmitter *emitter)
{
    return ((const ResidentView *)emitter->plan->view)->kept;
}

/* Each share of what is kept ends where the next one begins, or before the block's shared memory does. */
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
    strbuf_puts(
        out,
        "\n// Starts the copies of the vector at `column`, the block's column `own`.\n"
        "__device__ __forceinline__ void keep(const Tensors &t, Index row, Index column, Index own)\n{\n");
    emit_vector_positions(emitter, resident_axes(&emitter->reads, kept_by(emitter)));
    FOR_BITS (i, kept_by(emitter)) {
        const Read *read = &emitter->reads.reads[i];
        strbuf_printf(out, "    keep_vector<VECTOR>((%s *)(rollerc_shared + KEPT_X%d) + own, t.in%d, ",
                      memory_type(read->access->tensor->dtype), i,
                      input_position(emitter->fusion, read->access->tensor));
        emit_affine(out, &read->offset, emitter->first.axis);
        strbuf_puts(out, ");\n");
    }
    strbuf_puts(out, "}\n");
}

/* What is not kept is read once, at last. */
static void emit_announce(PassEmitter *emitter)
{
    StrBuf *out = emitter->out;
    uint32_t announced = 0;
    for (int i = 0; i < emitter->reads.count; i++)
        announced |= (uint32_t)(emitter->reads.reads[i].access->tensor->dtype != DTYPE_B1) << i;
    announced &= ~kept_by(emitter);
    strbuf_puts(out, "\n// Prefetches to L2 what only the last pass reads.\n"
                     "__device__ __forceinline__ void announce(const Tensors &t, Index row, Index column, "
                     "Index own)\n{\n");
    emit_vector_positions(emitter, resident_axes(&emitter->reads, announced));
    FOR_BITS (i, announced) {
        const Read *read = &emitter->reads.reads[i];
        strbuf_printf(out, "    announce_line(t.in%d + (",
                      input_position(emitter->fusion, read->access->tensor));
        emit_affine(out, &read->offset, emitter->first.axis);
        strbuf_puts(out, "), own);\n");
    }
    strbuf_puts(out, "}\n");
}

void resident_emit(StrBuf *out, const KernelPlan *plan)
{
    PassEmitter emitter;
    resident_begin(&emitter, out, plan);
    emit_constants(&emitter);
    strbuf_puts(out, "\n// What a vector of elements loads.\n");
    reads_emit_inputs(out, &emitter.reads);
    emit_keep(&emitter);
    emit_announce(&emitter);
    resident_emit_passes(&emitter);
}
