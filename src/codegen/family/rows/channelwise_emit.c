// The parameter block of channelwise kernels.
#include "codegen/family/rows/channelwise_parts.h"
#include "rtile/space.h"

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
    channelwise_emit_positions(out, "    ", "", &emitter->first, invariants_axes(invariants));
    for (int i = 0; i < invariants->count; i++)
        emit_invariant(out, emitter, i);
    strbuf_puts(out, "}\n");
}

static void emit_load_elements(StrBuf *out, const Scope *first, const Scope *element, const Reads *reads)
{
    const Fusion *fusion = first->fusion;
    strbuf_puts(out, "\n// What the channels of one position load.\n");
    reads_emit_inputs(out, reads);
    strbuf_puts(
        out, "\n__device__ __forceinline__ void load_elements(const Tensors &t, Index slab, Index channel, "
             "Index at, Inputs &in)\n{\n");
    uint32_t used = reads_axes(reads);
    channelwise_emit_positions(out, "    ", "", first, used);
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
    pass_begin(&emitter, out, plan, &channelwise_structs, view->passes, &view->reads, channelwise_axis(fusion));
    emit_constants(out, plan, emitter.vector);
    emit_invariants(out, &emitter);
    emit_load_elements(out, &emitter.first, &emitter.element, &emitter.reads);
    PassText start = pass_text(&emitter);
    pass_emit_all(&emitter, &start,
                  walk == TOTALS ? channelwise_emit_totals : channelwise_emit_column);
}
