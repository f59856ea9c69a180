// The passes of channelwise kernels: structs of the parameter block, and what they have in common.
#include <assert.h>
#include <inttypes.h>

#include "base/checked.h"
#include "codegen/family/rows/channelwise_parts.h"
#include "rtile/space.h"

#define IN ROWS_INDENT
#define AT_CHANNELS "(const Tensors &t, const Here<Index> &here, const Invariants &inv)"
#define AT_ELEMENTS                                                                                          \
    "(const Tensors &t, const Here<Index> &here, Index at, const Inputs &in, const Invariants &inv, "        \
    "Elements &el)"

void channelwise_emit_positions(StrBuf *out, const char *indent, const char *here, const Scope *scope,
                                uint32_t used)
{
    const Fusion *fusion = scope->fusion;
    int channel = channelwise_axis(fusion);
    int64_t behind = 1;
    for (int a = channel + 1; a < fusion->spatial_count; a++)
        behind *= fusion->axes[a].extent;
    const char *slab = arena_printf(out->arena, "%sslab", here);
    const char *outer = behind > 1 ? arena_printf(out->arena, "%s / %" PRId64, slab, behind) : slab;
    const char *inner = channel > 0 ? arena_printf(out->arena, "%s %% %" PRId64, slab, behind) : slab;
    emit_used_positions(out, indent, outer, scope, 0, channel, used);
    emit_used_positions(out, indent, inner, scope, channel + 1, fusion->spatial_count, used);
    if (used >> channel & 1)
        strbuf_printf(out, "%sconst Index %s = %schannel;\n", indent, axis_names[channel], here);
}

// ---- a struct ----

ChannelPass channelwise_pass(const ChannelEmitter *emitter)
{
    Arena *arena = emitter->out->arena;
    return (ChannelPass){
        .members = strbuf_new(arena),
        .start = rows_step(arena),
        .begin = rows_step(arena),
        .add = rows_step(arena),
        .store_elements = rows_step(arena),
        .pack_elements = rows_step(arena),
        .finish = rows_step(arena),
        .publish = rows_step(arena),
        .collect = rows_step(arena),
        .conclude = rows_step(arena),
        .store_channels = rows_step(arena),
    };
}

/* The positions of the axes that the statements need; those along the reduced ones from `at`. */
static void emit_function(const ChannelEmitter *emitter, const char *signature, const Step *step)
{
    const Fusion *fusion = emitter->fusion;
    StrBuf opening = strbuf_new(emitter->out->arena);
    channelwise_emit_positions(&opening, IN, "here.", &emitter->first, step->axes);
    emit_used_positions(&opening, IN, "at", &emitter->first, fusion->spatial_count, fusion->axis_count,
                        step->axes);
    rows_emit_function(emitter->out, signature, opening.text, step);
}

static void emit_make(ChannelEmitter *emitter, uint64_t ops)
{
    Step make = rows_make(emitter->out->arena, &emitter->element, ops);
    emitter->elements |= ops;
    emit_function(emitter, "make" AT_ELEMENTS, &make);
}

static void emit_functions(ChannelEmitter *emitter, const ChannelPass *pass)
{
    emit_function(emitter, "start" AT_CHANNELS, &pass->start);
    emit_function(emitter, "begin" AT_CHANNELS, &pass->begin);
    emit_make(emitter, pass->ops);
    emit_function(emitter, "add" AT_ELEMENTS, &pass->add);
    emit_function(
        emitter,
        "store_elements(const Tensors &t, const Here<Index> &here, Index at, const Elements &el) const",
        &pass->store_elements);
    emit_function(emitter,
                  "pack_elements(const Tensors &t, const Here<Index> &here, Index at, const Elements &el, "
                  "bool within) const",
                  &pass->pack_elements);
    emit_function(emitter, "finish" AT_CHANNELS, &pass->finish);
    emit_function(emitter, "publish(const Tensors &t, const Here<Index> &here) const", &pass->publish);
    emit_function(emitter, "collect" AT_CHANNELS, &pass->collect);
    emit_function(emitter, "conclude" AT_CHANNELS, &pass->conclude);
    emit_function(emitter, "store_channels(const Tensors &t, const Here<Index> &here) const",
                  &pass->store_channels);
}

void channelwise_emit_pass(ChannelEmitter *emitter, ChannelPass *pass)
{
    StrBuf *out = emitter->out;
    int number = emitter->passes_emitted++;
    const char *before = number ? arena_printf(out->arena, "Pass%d", number - 1) : "Start";
    strbuf_printf(out, "\nstruct Pass%d : Pass<%s> {\n", number, before);
    size_t start = out->length;
    if (pass->store_elements.text.length || pass->pack_elements.text.length)
        strbuf_puts(out, "    static constexpr bool STORES = true;\n");
    if (pass->publish.text.length)
        strbuf_puts(out, "    static constexpr bool MEETS = true;\n");
    strbuf_puts(out, pass->members.text);
    strbuf_puts(out, out->length > start ? "\n" : "");
    emit_functions(emitter, pass);
    strbuf_puts(out, "};\n");
}

void channelwise_emit_start(ChannelEmitter *emitter)
{
    StrBuf *out = emitter->out, functions = strbuf_new(out->arena);
    ChannelPass pass = channelwise_pass(emitter);
    channelwise_add_values(emitter, &pass, &pass.finish, 0);
    emitter->out = &functions;
    emit_functions(emitter, &pass);
    emitter->out = out;
    strbuf_printf(out,
                  "\n// A thread's channels, pass by pass: each knows what those before have found out.\n"
                  "struct Start : ChannelStart {%s%s%s%s};\n",
                  pass.members.length ? "\n" : "", pass.members.text, functions.length ? "\n" : "",
                  functions.text);
}

// ---- statements ----

static void declare(ChannelPass *pass, DType type, const char *name, int op)
{
    strbuf_printf(&pass->members, "    %s %s%d[VECTOR];\n", value_type(type), name, op);
}

void channelwise_add(const ChannelEmitter *emitter, ChannelPass *pass, int op, const char *total,
                     const char *term, const Expr *expr)
{
    const char *reduction = combiner(emitter->fusion->ops[op].reduce);
    pass->ops |= needs_of(emitter->fusion, &emitter->reads, expr).ops;
    pass->add.axes |= rows_axes_left(&emitter->element, expr);
    rows_emit_each(&pass->add.text, IN, total,
                   arena_printf(emitter->out->arena, "%s::combine(%s[e], %s)", reduction, total, term));
}

void channelwise_add_squares(const ChannelEmitter *emitter, ChannelPass *pass, int op, const CentredSum *sum,
                             const char *sums)
{
    Arena *arena = emitter->out->arena;
    const char *element = rows_value(arena, &emitter->element, ROWS_NOT_ROUNDED, sum->element);
    declare(pass, emitter->fusion->ops[op].body->type, "mean", op);
    rows_emit_each(&pass->begin.text, IN, arena_printf(arena, "mean%d", op),
                   arena_printf(arena, "mean_of(%s%d[e], here.count)", sums, sum->total));
    channelwise_add(emitter, pass, op, arena_printf(arena, "total%d", op),
                    arena_printf(arena, "op_sq(op_sub(%s, mean%d[e]))", element, op), sum->element);
}

void channelwise_add_total(ChannelPass *pass, const Fusion *fusion, int op)
{
    const FusedOp *fused = &fusion->ops[op];
    Arena *arena = pass->members.arena;
    declare(pass, fused->body->type, "total", op);
    rows_emit_each(
        &pass->start.text, IN, arena_printf(arena, "total%d", op),
        arena_printf(arena, "%s::identity<%s>()", combiner(fused->reduce), value_type(fused->body->type)));
}

void channelwise_add_value(const ChannelEmitter *emitter, ChannelPass *pass, Step *step, int op,
                           const char *value)
{
    const FusedOp *fused = &emitter->fusion->ops[op];
    const char *array = arena_printf(emitter->out->arena, "v%d", op);
    Affine offset = access_offset(&fused->store);
    declare(pass, fused->out->dtype, "v", op);
    rows_emit_each(&step->text, IN, array, value);
    if (fused->stored)
        rows_emit_store(&pass->store_channels, &emitter->first, &emitter->element, op, array,
                        channelwise_is_vector(emitter->fusion, &offset, emitter->vector));
}

void channelwise_add_values(const ChannelEmitter *emitter, ChannelPass *pass, Step *step, int passes)
{
    for (int i = 0; i < emitter->fusion->op_count; i++) {
        const FusedOp *op = &emitter->fusion->ops[i];
        if (op->reduce != REDUCE_NONE || fusion_op_is_of_elements(emitter->fusion, i) ||
            emitter->passes.of[i] != passes)
            continue;
        step->axes |= expr_axes(op->body);
        channelwise_add_value(emitter, pass, step, i,
                              rows_value(emitter->out->arena, &emitter->element, i, op->body));
    }
}

void channelwise_add_groups(ChannelEmitter *emitter, Step *step, int op, const char *total)
{
    strbuf_printf(&step->text, IN "reduce_columns<%s>(%s, %d);\n", combiner(emitter->fusion->ops[op].reduce),
                  total, emitter->places++ % 2);
}

void channelwise_add_result(ChannelEmitter *emitter, ChannelPass *pass, Step *step, int op)
{
    Arena *arena = emitter->out->arena;
    StrBuf rounded = strbuf_new(arena);
    channelwise_add_groups(emitter, step, op, arena_printf(arena, "total%d", op));
    emit_rounded(&rounded, emitter->fusion, op, arena_printf(arena, "total%d[e]", op));
    channelwise_add_value(emitter, pass, step, op, rounded.text);
}

// ---- passes ----

static void emit_reduction_pass(ChannelEmitter *emitter, int number)
{
    const Fusion *fusion = emitter->fusion;
    Arena *arena = emitter->out->arena;
    ChannelPass pass = channelwise_pass(emitter);
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        if (op->reduce == REDUCE_NONE || emitter->passes.of[i] != number)
            continue;
        channelwise_add_total(&pass, fusion, i);
        channelwise_add(emitter, &pass, i, arena_printf(arena, "total%d", i),
                        rows_value(arena, &emitter->element, ROWS_NOT_ROUNDED, op->body), op->body);
        channelwise_add_result(emitter, &pass, &pass.finish, i);
    }
    channelwise_add_values(emitter, &pass, &pass.finish, number + 1);
    channelwise_emit_pass(emitter, &pass);
}

/* Bits are packed by all lanes of a warp together. */
static void add_element_store(const ChannelEmitter *emitter, ChannelPass *pass, int op)
{
    const Fusion *fusion = emitter->fusion;
    const FusedOp *fused = &fusion->ops[op];
    const char *array = arena_printf(emitter->out->arena, "el.v%d", op);
    Affine offset = access_offset(&fused->store);
    if (fused->out->dtype != DTYPE_B1) {
        rows_emit_store(&pass->store_elements, &emitter->first, &emitter->element, op, array,
                        channelwise_is_vector(fusion, &offset, emitter->vector));
        return;
    }
    assert(channelwise_packs_bits(fusion));
    Step *step = &pass->pack_elements;
    step->axes |= access_axes(&fused->store);
    strbuf_printf(&step->text, IN "store_bits<VECTOR>(t.out%d, ", output_position(fusion, fused->out));
    emit_affine(&step->text, &offset, emitter->first.axis);
    strbuf_printf(&step->text, ", %s, within);\n", array);
}

void channelwise_emit_element_pass(ChannelEmitter *emitter)
{
    const Fusion *fusion = emitter->fusion;
    ChannelPass pass = channelwise_pass(emitter);
    pass.ops = passes_needs(fusion, &emitter->reads, &emitter->passes, emitter->passes.count - 1).ops;
    if (!pass.ops)
        return;
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored && fusion_op_is_of_elements(fusion, i))
            add_element_store(emitter, &pass, i);
    channelwise_emit_pass(emitter, &pass);
}

void channelwise_emit_column(ChannelEmitter *emitter)
{
    for (int pass = 0; pass + 1 < emitter->passes.count; pass++)
        emit_reduction_pass(emitter, pass);
    channelwise_emit_element_pass(emitter);
}
