// The parameter block of channelwise kernels that only add up elements. A thread carries its totals from step to step, and
// sum[r](sq(x[r] - m)) as the sum of squared distances from the mean of what it has seen so far.
#include <inttypes.h>

#include "codegen/cuda/expr.h"
#include "codegen/family/rows/channelwise_parts.h"

static void emit_struct(Emitter *emitter)
{
    const Fusion *fusion = emitter->fusion;
    StrBuf *out = emitter->out, identities = strbuf_new(out->arena);
    strbuf_puts(out, "\n// What is carried from step to step.\nstruct Totals {\n");
    for (int i = 0; i < fusion->op_count; i++) {
        if (fusion->ops[i].reduce == REDUCE_NONE)
            continue;
        const char *type = value_type(fusion->ops[i].body->type);
        strbuf_printf(out, "    %s x%d[VECTOR];\n", type, i);
        strbuf_printf(&identities, "            x%d[e] = %s::identity<%s>();\n", i,
                      combiner(fusion->ops[i].reduce), type);
    }
    strbuf_printf(out,
                  "    __device__ __forceinline__ Totals()\n    {\n"
                  "        UNROLL for (int e = 0; e < VECTOR; ++e) {\n%s        }\n    }\n};\n",
                  identities.text);
}

void channelwise_add_addend(Emitter *emitter, Addends *addends, const Expr *expr)
{
    Needs needs = needs_of(emitter->fusion, &emitter->reads, expr);
    addends->ops |= needs.ops;
    addends->axes |= reads_axes_left(&emitter->reads, expr);
    for (int i = 0; i < emitter->fusion->op_count; i++)
        if (needs.ops >> i & 1)
            addends->axes |= reads_axes_left(&emitter->reads, emitter->fusion->ops[i].body);
}

void channelwise_emit_addends(Emitter *emitter, const Addends *addends)
{
    channelwise_emit_loop(emitter, "", addends->axes);
    channelwise_emit_values(emitter, addends->ops);
    strbuf_printf(emitter->out, "%s    }\n", addends->statements.text);
}

/* Plain reductions. */
static void emit_plain(Emitter *emitter)
{
    const Fusion *fusion = emitter->fusion;
    uint64_t apart = channelwise_step_sums(fusion);
    Addends addends = {.statements = strbuf_new(emitter->out->arena)};
    for (int i = 0; i < fusion->op_count; i++) {
        CentredSum sum;
        const FusedOp *op = &fusion->ops[i];
        if (fusion->ops[i].reduce == REDUCE_NONE || channelwise_is_centred(fusion, i, &sum))
            continue;
        const char *type = value_type(op->body->type);
        const char *target = apart >> i & 1 ? "step" : "totals.x";
        if (apart >> i & 1)
            strbuf_printf(emitter->out,
                          "    %s step%d[VECTOR];\n    UNROLL for (int e = 0; e < VECTOR; ++e)\n        "
                          "step%d[e] = 0;\n",
                          type, i, i);
        strbuf_printf(&addends.statements,
                      "        UNROLL for (int e = 0; within && e < VECTOR; ++e)\n            %s%d[e] = "
                      "%s::combine(%s%d[e], ",
                      target, i, combiner(op->reduce), target, i);
        emit_expr(&addends.statements, &emitter->element, op->body);
        strbuf_puts(&addends.statements, ");\n");
        channelwise_add_addend(emitter, &addends, op->body);
    }
    channelwise_emit_addends(emitter, &addends);
}

/* Squares around the step's own mean. */
static void emit_squares(Emitter *emitter)
{
    const Fusion *fusion = emitter->fusion;
    Addends addends = {.statements = strbuf_new(emitter->out->arena)};
    StrBuf *out = emitter->out;
    for (int i = 0; i < fusion->op_count; i++) {
        CentredSum sum;
        if (!channelwise_is_centred(fusion, i, &sum))
            continue;
        const char *type = value_type(fusion->ops[i].body->type);
        strbuf_printf(out,
                      "    %s mean%d[VECTOR];\n    UNROLL for (int e = 0; e < VECTOR; ++e)\n"
                      "        mean%d[e] = mean_of(step%d[e], count);\n",
                      type, i, i, sum.total);
        strbuf_printf(
            &addends.statements,
            "        UNROLL for (int e = 0; within && e < VECTOR; ++e)\n            totals.x%d[e] = "
            "Sum::combine(totals.x%d[e], op_sq(op_sub(",
            i, i);
        emit_expr(&addends.statements, &emitter->element, sum.element);
        strbuf_printf(&addends.statements, ", mean%d[e])));\n", i);
        channelwise_add_addend(emitter, &addends, sum.element);
    }
    channelwise_emit_addends(emitter, &addends);
}

/* The step joins the totals. */
static void emit_joining(Emitter *emitter)
{
    const Fusion *fusion = emitter->fusion;
    uint64_t apart = channelwise_step_sums(fusion);
    strbuf_puts(emitter->out, "    UNROLL for (int e = 0; e < VECTOR; ++e) {\n");
    for (int i = 0; i < fusion->op_count; i++) {
        CentredSum sum;
        if (channelwise_is_centred(fusion, i, &sum))
            strbuf_printf(emitter->out,
                          "        totals.x%d[e] += around_both(totals.x%d[e], before, mean%d[e], count);\n",
                          i, sum.total, i);
    }
    for (int i = 0; i < fusion->op_count; i++)
        if (apart >> i & 1)
            strbuf_printf(emitter->out, "        totals.x%d[e] = Sum::combine(totals.x%d[e], step%d[e]);\n",
                          i, i, i);
    strbuf_puts(emitter->out, "    }\n");
}

/* Positions of the axes in `used`, whether they are needed or not. */
static void emit_all_positions(const Emitter *emitter, uint32_t used)
{
    channelwise_emit_positions(emitter->out, &emitter->first, used);
    for (int a = 0; a < emitter->fusion->spatial_count; a++)
        if (used >> a & 1)
            strbuf_printf(emitter->out, "    (void)%s;\n", axis_names[a]);
}

static void emit_compute(Emitter *emitter, uint32_t used)
{
    StrBuf *out = emitter->out;
    strbuf_puts(out,
                "\n// A step of this thread's channels. Its position k is `position + k * GROUPS`.\n"
                "__device__ __forceinline__ void compute(const Tensors &t, Index slab, Index channel, Index "
                "position, bool,\n                                        const Fixed &fixed, const Inputs "
                "(&inputs)[POSITIONS_EACH], Totals &totals)\n{\n    (void)t, (void)slab, (void)channel, "
                "(void)fixed;\n");
    emit_all_positions(emitter, used);
    channelwise_emit_channel_values(emitter, 0);
    emit_plain(emitter);
    if (channelwise_centres(emitter->fusion)) {
        strbuf_puts(out, "    const int before = static_cast<int>(position / GROUPS), count = "
                         "positions_inside(position);\n");
        emit_squares(emitter);
        emit_joining(emitter);
    }
    strbuf_puts(out, "}\n");
}

/* `total3[e] = …;`, of one thread so far. */
static void emit_total(Emitter *emitter, int index)
{
    const Fusion *fusion = emitter->fusion;
    StrBuf *out = emitter->out;
    CentredSum sum;
    strbuf_printf(out,
                  "    %s total%d[VECTOR];\n    UNROLL for (int e = 0; e < VECTOR; ++e)\n        total%d[e] "
                  "= totals.x%d[e]",
                  value_type(fusion->ops[index].body->type), index, index, index);
    if (channelwise_is_centred(fusion, index, &sum))
        strbuf_printf(out, " + around_centre(totals.x%d[e], count, v%d[e])", sum.total, sum.centre);
    strbuf_puts(out, ";\n");
}

static void emit_finish(Emitter *emitter, uint32_t used)
{
    const Fusion *fusion = emitter->fusion;
    StrBuf *out = emitter->out;
    strbuf_puts(
        out,
        "\n// What is made of the totals, which are those of positions `position`, `position + GROUPS`, …\n"
        "__device__ __forceinline__ void finish(const Tensors &t, Index slab, Index channel, Index position, "
        "bool "
        "stores,\n                                       const Fixed &fixed, const Totals &totals)\n{\n"
        "    (void)t, (void)slab, (void)channel, (void)fixed;\n");
    emit_all_positions(emitter, used);
    if (channelwise_centres(fusion))
        strbuf_puts(out, "    const int count = static_cast<int>(position < POSITIONS ? (POSITIONS - "
                         "position + GROUPS - 1) / "
                         "GROUPS : 0);\n");
    channelwise_emit_channel_values(emitter, 0);
    for (int pass = 0; pass + 1 < emitter->passes.count; pass++) {
        for (int i = 0; i < fusion->op_count; i++)
            if (fusion->ops[i].reduce != REDUCE_NONE && emitter->passes.of[i] == pass) {
                emit_total(emitter, i);
                channelwise_emit_result(emitter, out, i);
            }
        channelwise_emit_channel_values(emitter, pass + 1);
    }
    channelwise_emit_channel_stores(emitter);
    strbuf_puts(out, "}\n");
}

void channelwise_emit_totals(Emitter *emitter, uint32_t used)
{
    emit_struct(emitter);
    emit_compute(emitter, used);
    emit_finish(emitter, used);
}
