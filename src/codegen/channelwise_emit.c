// The parameter block of channelwise kernels.
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/checked.h"
#include "codegen/channelwise_parts.h"
#include "codegen/space.h"

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

/* Whether the channels of a vector are one aligned access. */
static bool is_vector(const Fusion *fusion, const Affine *offset, int vector)
{
    int channel = channelwise_axis(fusion);
    for (int a = 0; a < MAX_AXES; a++)
        if (a != channel && offset->coef[a] % vector)
            return false;
    return offset->coef[channel] == 1 && offset->constant % vector == 0;
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
                  plan->rules->variant == GRID ? program->tile[LEVEL_GLOBAL].size[SHARE] : 1);
    strbuf_printf(out,
                  "constexpr int LEAST_BLOCKS = %" PRId64
                  ";   // that a unit's registers must suffice for; 0: the compiler chooses\n",
                  program->cooperative ? ceil_div(program->grid, plan->device->sm_count) : 0);
}

/* From the channel and the flat position of all others. */
void channelwise_emit_positions(StrBuf *out, const Scope *scope, uint32_t used)
{
    const Fusion *fusion = scope->fusion;
    int channel = channelwise_axis(fusion);
    int64_t behind = 1;
    for (int a = channel + 1; a < fusion->spatial_count; a++)
        behind *= fusion->axes[a].extent;
    const char *outer = behind > 1 ? arena_printf(out->arena, "slab / %" PRId64, behind) : "slab";
    const char *inner = channel > 0 ? arena_printf(out->arena, "slab %% %" PRId64, behind) : "slab";
    emit_used_positions(out, "    ", outer, scope, 0, channel, used);
    emit_used_positions(out, "    ", inner, scope, channel + 1, fusion->spatial_count, used);
    if (used >> channel & 1)
        strbuf_printf(out, "    const Index %s = channel;\n", axis_names[channel]);
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
        bool whole = !bits && is_vector(fusion, &fixed->offset[i], channelwise_vector(fusion));
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

static void emit_channel_value(StrBuf *out, const Scope *channel, int index)
{
    const FusedOp *op = &channel->fusion->ops[index];
    StrBuf body = strbuf_new(out->arena);
    emit_expr(&body, channel, op->body);
    strbuf_printf(out, "    %s v%d[VECTOR];\n    UNROLL for (int e = 0; e < VECTOR; ++e)\n        v%d[e] = ",
                  value_type(op->out->dtype), index, index);
    emit_rounded(out, channel->fusion, index, body.text);
    strbuf_puts(out, ";\n");
}

static uint32_t axes_used(const Fusion *fusion)
{
    uint32_t used = 0;
    for (int i = 0; i < fusion->op_count; i++) {
        used |= expr_axes(fusion->ops[i].body);
        used |= fusion->ops[i].stored ? access_axes(&fusion->ops[i].store) : 0;
    }
    return used;
}

void channelwise_emit_values(Emitter *emitter, uint64_t ops)
{
    for (int i = 0; i < emitter->fusion->op_count; i++) {
        const FusedOp *op = &emitter->fusion->ops[i];
        if (!(ops >> i & 1))
            continue;
        StrBuf body = strbuf_new(emitter->out->arena);
        emit_expr(&body, &emitter->element, op->body);
        strbuf_printf(
            emitter->out,
            "        %s v%d[VECTOR];\n        UNROLL for (int e = 0; e < VECTOR; ++e)\n            v%d[e] = ",
            value_type(op->out->dtype), i, i);
        emit_rounded(emitter->out, emitter->fusion, i, body.text);
        strbuf_puts(emitter->out, ";\n");
    }
}

void channelwise_emit_loop(Emitter *emitter, const char *condition, uint32_t used)
{
    const Fusion *fusion = emitter->fusion;
    strbuf_printf(emitter->out,
                  "    UNROLL for (int k = 0; k < POSITIONS_EACH; ++k) {\n"
                  "        const bool within = %sis_inside(position, k);\n"
                  "        const Index at = within ? position + k * GROUPS : 0;\n"
                  "        const Inputs &in = inputs[k];\n        (void)in, (void)at;\n",
                  condition);
    emit_used_positions(emitter->out, "        ", "at", &emitter->first, fusion->spatial_count,
                        fusion->axis_count, used);
}

/* Axes whose positions a pass still needs when its inputs are there. */
static uint32_t pass_axes(const Emitter *emitter, const Needs *needs, int pass)
{
    bool last = pass == emitter->passes.count - 1;
    uint32_t used = 0;
    for (int i = 0; i < emitter->fusion->op_count; i++) {
        const FusedOp *op = &emitter->fusion->ops[i];
        bool reduces = op->reduce != REDUCE_NONE && emitter->passes.of[i] == pass;
        if (needs->ops >> i & 1 || reduces)
            used |= reads_axes_left(&emitter->reads, op->body);
        if (last && op->stored)
            used |= access_axes(&op->store);
    }
    return used;
}

void channelwise_emit_identity(Emitter *emitter, int index)
{
    const FusedOp *op = &emitter->fusion->ops[index];
    const char *type = value_type(op->body->type);
    strbuf_printf(emitter->out,
                  "    %s total%d[VECTOR];\n    UNROLL for (int e = 0; e < VECTOR; ++e)\n"
                  "        total%d[e] = %s::identity<%s>();\n",
                  type, index, index, combiner(op->reduce), type);
}

void channelwise_emit_combine(StrBuf *out, const Fusion *fusion, int index)
{
    strbuf_printf(out,
                  "        UNROLL for (int e = 0; within && e < VECTOR; ++e)\n            total%d[e] = "
                  "%s::combine(total%d[e], ",
                  index, combiner(fusion->ops[index].reduce), index);
}

void channelwise_emit_groups(Emitter *emitter, StrBuf *out, int index)
{
    strbuf_printf(out, "    reduce_columns<%s>(total%d, %d);\n", combiner(emitter->fusion->ops[index].reduce),
                  index, emitter->places++ % 2);
}

void channelwise_emit_total_value(Emitter *emitter, StrBuf *out, int index)
{
    strbuf_printf(out, "    %s v%d[VECTOR];\n    UNROLL for (int e = 0; e < VECTOR; ++e)\n        v%d[e] = ",
                  value_type(emitter->fusion->ops[index].out->dtype), index, index);
    emit_rounded(out, emitter->fusion, index, arena_printf(out->arena, "total%d[e]", index));
    strbuf_puts(out, ";\n");
}

void channelwise_emit_result(Emitter *emitter, StrBuf *out, int index)
{
    channelwise_emit_groups(emitter, out, index);
    channelwise_emit_total_value(emitter, out, index);
}

static void emit_reduction_pass(Emitter *emitter, int pass)
{
    const Fusion *fusion = emitter->fusion;
    Needs needs = passes_needs(fusion, &emitter->reads, &emitter->passes, pass);
    StrBuf *out = emitter->out, ends = strbuf_new(out->arena), combines = strbuf_new(out->arena);
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        if (op->reduce == REDUCE_NONE || emitter->passes.of[i] != pass)
            continue;
        channelwise_emit_identity(emitter, i);
        channelwise_emit_combine(&combines, fusion, i);
        emit_expr(&combines, &emitter->element, op->body);
        strbuf_puts(&combines, ");\n");
        channelwise_emit_result(emitter, &ends, i);
    }
    channelwise_emit_loop(emitter, "", pass_axes(emitter, &needs, pass));
    channelwise_emit_values(emitter, needs.ops);
    strbuf_printf(out, "%s    }\n%s", combines.text, ends.text);
}

/* Bits are packed by all lanes of a warp together. */
static void emit_element_store(Emitter *emitter, int index)
{
    const Fusion *fusion = emitter->fusion;
    const FusedOp *op = &fusion->ops[index];
    StrBuf *out = emitter->out;
    Affine offset = access_offset(&op->store);
    bool bits = op->out->dtype == DTYPE_B1, whole = is_vector(fusion, &offset, channelwise_vector(fusion));
    assert(!bits || channelwise_packs_bits(fusion));
    if (!bits)
        strbuf_puts(out, whole ? "        if (within)\n    "
                               : "        UNROLL for (int e = 0; within && e < VECTOR; ++e)\n    ");
    strbuf_printf(out,
                  bits    ? "        store_bits<VECTOR>(t.out%d, "
                  : whole ? "        store_vector<VECTOR>(t.out%d, "
                          : "        store(t.out%d, ",
                  output_position(fusion, op->out));
    emit_affine(out, &offset, bits || whole ? emitter->first.axis : emitter->channel.axis);
    strbuf_printf(out, bits ? ", v%d, within);\n" : whole ? ", v%d);\n" : ", v%d[e]);\n", index);
}

void channelwise_emit_element_pass(Emitter *emitter)
{
    const Fusion *fusion = emitter->fusion;
    Needs needs = passes_needs(fusion, &emitter->reads, &emitter->passes, emitter->passes.count - 1);
    if (!needs.ops)
        return;
    channelwise_emit_loop(emitter, "stores && ", pass_axes(emitter, &needs, emitter->passes.count - 1));
    channelwise_emit_values(emitter, needs.ops);
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored && fusion_op_is_of_elements(fusion, &fusion->ops[i]))
            emit_element_store(emitter, i);
    strbuf_puts(emitter->out, "    }\n");
}

static void emit_channel_store(Emitter *emitter, int index)
{
    const Fusion *fusion = emitter->fusion;
    StrBuf *out = emitter->out;
    Affine offset = access_offset(&fusion->ops[index].store);
    bool whole = is_vector(fusion, &offset, channelwise_vector(fusion));
    strbuf_puts(out,
                whole ? "    if (stores && position == 0)\n        "
                      : "    UNROLL for (int e = 0; stores && position == 0 && e < VECTOR; ++e)\n        ");
    strbuf_printf(out, whole ? "store_vector<VECTOR>(t.out%d, " : "store(t.out%d, ",
                  output_position(fusion, fusion->ops[index].out));
    emit_affine(out, &offset, whole ? emitter->first.axis : emitter->channel.axis);
    strbuf_printf(out, whole ? ", v%d);\n" : ", v%d[e]);\n", index);
}

void channelwise_emit_channel_values(Emitter *emitter, int passes)
{
    for (int i = 0; i < emitter->fusion->op_count; i++) {
        const FusedOp *op = &emitter->fusion->ops[i];
        if (op->reduce == REDUCE_NONE && !fusion_op_is_of_elements(emitter->fusion, op) &&
            emitter->passes.of[i] == passes)
            emit_channel_value(emitter->out, &emitter->channel, i);
    }
}

void channelwise_emit_channel_stores(Emitter *emitter)
{
    const Fusion *fusion = emitter->fusion;
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored && !fusion_op_is_of_elements(fusion, &fusion->ops[i]))
            emit_channel_store(emitter, i);
}

void channelwise_emit_holding_compute(Emitter *emitter)
{
    strbuf_puts(
        emitter->out,
        "\n// What is carried from step to step.\nstruct Totals {};\n"
        "\n// This thread's channels, step by step. Its position k is `position + k * GROUPS`.\n"
        "__device__ __forceinline__ void compute(const Tensors &t, Index slab, Index channel, Index "
        "position,\n                                        bool stores, const Fixed &fixed, const Inputs "
        "(&inputs)[POSITIONS_EACH], Totals &)\n{\n    (void)t, (void)slab, (void)channel, (void)fixed;\n");
    channelwise_emit_positions(emitter->out, &emitter->first, axes_used(emitter->fusion));
    channelwise_emit_channel_values(emitter, 0);
}

static void emit_compute(Emitter *emitter)
{
    channelwise_emit_holding_compute(emitter);
    for (int pass = 0; pass + 1 < emitter->passes.count; pass++) {
        emit_reduction_pass(emitter, pass);
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
    if (plan->rules->variant == TOTALS) {
        channelwise_emit_totals(&emitter, axes_used(fusion));
        return;
    }
    if (plan->rules->variant == GRID)
        channelwise_emit_grid(&emitter);
    else
        emit_compute(&emitter);
    emit_no_finish(out);
}
