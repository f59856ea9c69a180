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
    Emitter *emitter = context;
    int index = expr->kind == EXPR_ACCESS ? fixed_position(&emitter->fixed, &expr->access) : -1;
    if (index < 0)
        return reads_loaded(&emitter->reads, expr);
    snprintf(emitter->text, sizeof emitter->text, "fixed.x%d[e]", index);
    return emitter->text;
}

// ---- the parameter block ----

static void emit_constants(StrBuf *out, const KernelPlan *plan)
{
    const Fusion *fusion = plan->fusion;
    const RProgram *program = plan->program;
    int vector = channelwise_vector(fusion);
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
                  ";   // that a unit's registers must suffice for; 0: the compiler chooses\n",
                  program->cooperative ? ceil_div(program->grid, plan->device->sm_count) : 0);
}

static void emit_fixed(StrBuf *out, const Scope *first, const Scope *channel, const Fixed *fixed)
{
    const Fusion *fusion = first->fusion;
    strbuf_puts(out, "\n// What is read once for a thread's channels.\nstruct Fixed {\n");
    for (int i = 0; i < fixed->count; i++)
        strbuf_printf(out, "    %s x%d[VECTOR];\n", value_type(fixed->access[i]->tensor->dtype), i);
    strbuf_puts(
        out, "};\n\n__device__ __forceinline__ void load_fixed(const Tensors &t, Index slab, Index channel, "
             "Fixed &fixed)\n{\n    (void)t, (void)slab, (void)channel, (void)fixed;\n");
    channelwise_emit_positions(out, first, fixed_axes(fixed));
    for (int i = 0; i < fixed->count; i++) {
        const Tensor *tensor = fixed->access[i]->tensor;
        bool bits = tensor->dtype == DTYPE_B1;
        bool whole = !bits && channelwise_is_vector(fusion, &fixed->offset[i], channelwise_vector(fusion));
        if (!whole)
            strbuf_printf(out, "    UNROLL for (int e = 0; e < VECTOR; ++e)\n        fixed.x%d[e] = ", i);
        strbuf_printf(out,
                      whole  ? "    load_vector<VECTOR>(t.in%d, "
                      : bits ? "load_bit(t.in%d, "
                             : "load(t.in%d, ",
                      input_position(fusion, tensor));
        emit_affine(out, &fixed->offset[i], whole ? first->axis : channel->axis);
        if (whole)
            strbuf_printf(out, ", fixed.x%d", i);
        strbuf_puts(out, ");\n");
    }
    strbuf_puts(out, "}\n");
}

static void emit_load_elements(StrBuf *out, const Scope *first, const Scope *element, const Reads *reads)
{
    const Fusion *fusion = first->fusion;
    strbuf_puts(out, "\n// What the channels of one position read.\n");
    reads_emit_inputs(out, reads);
    strbuf_puts(
        out, "\n__device__ __forceinline__ void load_elements(const Tensors &t, Index slab, Index channel, "
             "Index at, Inputs &in)\n{\n    (void)t, (void)slab, (void)channel, (void)at, (void)in;\n");
    uint32_t used = reads_axes(reads);
    channelwise_emit_positions(out, first, used);
    emit_used_positions(out, "    ", "at", first, fusion->spatial_count, fusion->axis_count, used);
    reads_emit_vectors(out, "    ", first, reads, "at");
    if (reads_have(reads, PATTERN_GATHER)) {
        strbuf_puts(out, "    UNROLL for (int e = 0; e < VECTOR; ++e) {\n");
        reads_emit_gathers(out, "        ", element, reads);
        strbuf_puts(out, "    }\n");
    }
    strbuf_puts(out, "}\n");
}

static void emit_compute(Emitter *emitter)
{
    channelwise_emit_holding_compute(emitter);
    for (int pass = 0; pass + 1 < emitter->passes.count; pass++) {
        channelwise_emit_reduction_pass(emitter, pass);
        channelwise_emit_channel_values(emitter, pass + 1);
    }
    channelwise_emit_channel_stores(emitter);
    channelwise_emit_element_pass(emitter);
    strbuf_puts(emitter->out, "}\n");
}

/* Of kernels that have all results when their one step ends. */
static void emit_no_finish(StrBuf *out)
{
    strbuf_puts(out, "\n// What is made of the totals.\n__device__ __forceinline__ void finish(const Tensors "
                     "&, Index, Index, "
                     "Index, bool, const Fixed &, const Totals &) {}\n");
}

void channelwise_emit(StrBuf *out, const KernelPlan *plan)
{
    const Fusion *fusion = plan->fusion;
    int lane = channelwise_axis(fusion);
    Emitter emitter = {
        .out = out,
        .fusion = fusion,
        .reads = reads_find(channelwise_walk(fusion, channelwise_vector(fusion))),
        .fixed = fixed_find(fusion, channelwise_positions(fusion)),
        .passes = passes_find(fusion),
    };
    Scope first = {.fusion = fusion, .wide = plan->wide};
    for (int a = 0; a < fusion->axis_count; a++)
        first.axis[a] = axis_names[a];
    Scope each = first;   // channel e of the thread's vector
    each.axis[lane] = arena_printf(out->arena, "(%s + e)", axis_names[lane]);
    each.suffix = each.other_suffix = "[e]";
    emitter.first = first;
    emitter.channel = emitter.element = each;
    emitter.channel.loaded = emitter.element.loaded = find_loaded;
    emitter.channel.context = emitter.element.context = &emitter;

    emit_constants(out, plan);
    strbuf_printf(out, "constexpr int REDUCTIONS = %d;   // over the positions\n", channelwise_reductions(fusion));
    strbuf_printf(out,
                  "constexpr long long SCRATCH_BYTES = %" PRId64 ";   // for what shares leave for each other\n",
                  plan->rules->scratch_bytes);
    strbuf_printf(out, "constexpr int RESULT_BYTES = %" PRId64 ";   // of the widest reduction\n",
                  channelwise_result_bytes(fusion));
    strbuf_printf(out, "constexpr Index COLUMNS = %" PRId64 ";   // channels of all slabs\n",
                  spatial_points(fusion));
    strbuf_printf(
        out, "constexpr bool BACKWARDS = %s;   // the last blocks first: L2 may still hold what they read\n",
        fusion_reduces(fusion) ? "false" : "true");
    emit_fixed(out, &first, &each, &emitter.fixed);
    emit_load_elements(out, &first, &each, &emitter.reads);
    if (channelwise_walks(plan->rules) == TOTALS) {
        channelwise_emit_totals(&emitter, channelwise_axes(fusion));
        return;
    }
    if (channelwise_walks(plan->rules) == GRID)
        channelwise_emit_grid(&emitter);
    else
        emit_compute(&emitter);
    emit_no_finish(out);
}
