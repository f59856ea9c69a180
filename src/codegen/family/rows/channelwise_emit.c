// The parameter block of channelwise kernels.
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/checked.h"
#include "codegen/family/rows/channelwise_parts.h"
#include "rtile/space.h"

/* For Scope.loaded. */
static const char *find_loaded(void *context, const Expr *expr)
{
    ChannelEmitter *emitter = context;
    int index = expr->kind == EXPR_ACCESS ? invariants_position(&emitter->invariants, &expr->access) : -1;
    if (index < 0)
        return reads_loaded(&emitter->reads, expr);
    snprintf(emitter->text, sizeof emitter->text, "inv.x%d[e]", index);
    return emitter->text;
}

// ---- the parameter block ----

static void emit_constants(StrBuf *out, const KernelPlan *plan, int vector)
{
    const Fusion *fusion = plan->fusion;
    const RProgram *program = plan->program;
    int64_t lanes = program->tile[LEVEL_SHARED].size[CHANNEL] / vector;
    strbuf_printf(out, "constexpr Index CHANNELS = %" PRId64 ";\nconstexpr Index POSITIONS = %" PRId64 ";\n",
                  fusion->axes[channelwise_axis(fusion)].extent, reduction_points(fusion));
    strbuf_printf(out, "constexpr int LANES = %" PRId64 ";   // threads side by side\n", lanes);
    strbuf_printf(out, "constexpr int GROUPS = %" PRId64 ";   // rows of them\n", plan->threads / lanes);
    strbuf_printf(
        out, "constexpr int VECTOR = %d;   // neighbouring channels that a thread reads and writes at once\n",
        vector);
    strbuf_printf(out, "constexpr int POSITIONS_EACH = %" PRId64 ";   // of a thread\n",
                  program->tile[LEVEL_REGISTER].size[POSITION]);
    strbuf_printf(out,
                  "constexpr int SHARES = %" PRId64
                  ";   // blocks that hold all positions of their channels together\n",
                  channelwise_walks(plan->rules) == GRID ? program->tile[LEVEL_GLOBAL].size[SHARE] : 1);
    strbuf_printf(out,
                  "constexpr int MIN_BLOCKS_PER_SM = %" PRId64
                  ";   // that its registers must suffice for; 0: the compiler chooses\n",
                  program->cooperative ? ceil_div(program->grid, plan->device->sm_count) : 0);
}

static void emit_invariant(StrBuf *out, const ChannelEmitter *emitter, int index)
{
    const Tensor *tensor = emitter->invariants.access[index]->tensor;
    const Affine *offset = &emitter->invariants.offset[index];
    bool bits = tensor->dtype == DTYPE_B1;
    bool whole = !bits && channelwise_is_vector(emitter->fusion, offset, emitter->vector);
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

static void emit_invariants(StrBuf *out, const ChannelEmitter *emitter)
{
    const Invariants *invariants = &emitter->invariants;
    strbuf_puts(out, "\n// What is read once for a thread's channels.\nstruct Invariants {\n");
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
    strbuf_puts(out, "\n// What the channels of one position read.\n");
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

static void emit_passes(ChannelEmitter *emitter, ChannelWalk walk)
{
    StrBuf *out = emitter->out, text = strbuf_new(out->arena);
    emitter->out = &text;
    channelwise_emit_start(emitter);
    if (walk == TOTALS)
        channelwise_emit_totals(emitter);
    else if (walk == GRID)
        channelwise_emit_grid(emitter);
    else
        channelwise_emit_column(emitter);
    emitter->out = out;
    rows_emit_elements(out, emitter->fusion, emitter->elements);
    strbuf_printf(out, "%susing LastPass = Pass%d;\n", text.text, emitter->passes_emitted - 1);
}

void channelwise_emit(StrBuf *out, const KernelPlan *plan)
{
    const Fusion *fusion = plan->fusion;
    const ChannelView *view = plan->view;
    ChannelEmitter emitter = {
        .out = out,
        .fusion = fusion,
        .vector = view->vector,
        .reads = view->reads,
        .invariants = invariants_find(fusion, fusion_columns(fusion)),
        .passes = view->passes,
        .first = scope_of(plan),
    };
    emitter.element =
        rows_element_scope(out->arena, &emitter.first, channelwise_axis(fusion), fusion_columns(fusion));
    emitter.element.other_suffix = "[e]";
    emitter.element.loaded = find_loaded;
    emitter.element.context = &emitter;

    emit_constants(out, plan, view->vector);
    strbuf_printf(out, "constexpr int REDUCTIONS = %d;   // over the positions\n",
                  fusion_reductions(fusion));
    strbuf_printf(
        out, "constexpr long long SCRATCH_BYTES = %" PRId64 ";   // for what shares leave for each other\n",
        plan->rules->scratch_bytes);
    strbuf_printf(out, "constexpr int RESULT_BYTES = %" PRId64 ";   // of the widest reduction\n",
                  channelwise_result_bytes(fusion));
    strbuf_printf(out, "constexpr Index COLUMNS = %" PRId64 ";   // channels of all slabs\n",
                  spatial_points(fusion));
    strbuf_printf(
        out, "constexpr bool BACKWARDS = %s;   // the last blocks first: L2 may still hold what they read\n",
        fusion_reduces(fusion) ? "false" : "true");
    strbuf_printf(out, "constexpr bool CARRIED = %s;   // totals, from step to step\n",
                  channelwise_walks(plan->rules) == TOTALS ? "true" : "false");
    emit_invariants(out, &emitter);
    emit_load_elements(out, &emitter.first, &emitter.element, &emitter.reads);
    emit_passes(&emitter, channelwise_walks(plan->rules));
}
