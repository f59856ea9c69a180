// The statements that compute() of every channelwise kernel is made of.
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/checked.h"
#include "codegen/family/rows/channelwise_parts.h"
#include "rtile/space.h"

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

uint32_t channelwise_axes(const Fusion *fusion)
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

void channelwise_emit_reduction_pass(Emitter *emitter, int pass)
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
    bool bits = op->out->dtype == DTYPE_B1, whole = channelwise_is_vector(fusion, &offset, channelwise_vector(fusion));
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
    bool whole = channelwise_is_vector(fusion, &offset, channelwise_vector(fusion));
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
    channelwise_emit_positions(emitter->out, &emitter->first, channelwise_axes(emitter->fusion));
    channelwise_emit_channel_values(emitter, 0);
}
