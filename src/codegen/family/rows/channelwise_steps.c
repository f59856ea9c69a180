// The passes of channelwise kernels: what their structs have in common.
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

// ---- structs ----

static void emit_own_positions(StrBuf *out, const PassEmitter *emitter, uint32_t used)
{
    channelwise_emit_positions(out, IN, "here.", &emitter->first, used);
}

static void add_result(PassEmitter *emitter, PassText *text, int op)
{
    channelwise_add_result(emitter, text, PASS_FINISH, op);
}

/* All lanes of a warp pack theirs together. */
static const char *bit_words(const PassEmitter *emitter, int op)
{
    (void)op;
    assert(channelwise_packs_bits(emitter->fusion));
    return "";
}

const PassStructs channelwise_structs = {
    .whose = "A thread's channels",
    .start = "ChannelStart",
    .invariant = {"inv.x", "[e]"},
    .neighbours = true,
    .says_what = true,
    .signature =
        {
            [PASS_START] = "start" AT_CHANNELS,
            [PASS_BEGIN] = "begin" AT_CHANNELS,
            [PASS_MAKE] = "make" AT_ELEMENTS,
            [PASS_ADD] = "add" AT_ELEMENTS,
            [PASS_STORE_ELEMENTS] = "store_elements(const Tensors &t, const Here<Index> &here, Index at, "
                                    "const Elements &el) const",
            [PASS_PACK_ELEMENTS] = "pack_elements(const Tensors &t, const Here<Index> &here, Index at, "
                                   "const Elements &el, bool within) const",
            [PASS_FINISH] = "finish" AT_CHANNELS,
            [PASS_PUBLISH] = "publish(const Tensors &t, const Here<Index> &here) const",
            [PASS_COLLECT] = "collect" AT_CHANNELS,
            [PASS_CONCLUDE] = "conclude" AT_CHANNELS,
            [PASS_STORE_ROW] = "store_channels(const Tensors &t, const Here<Index> &here) const",
        },
    .positions = emit_own_positions,
    .result = add_result,
    .bit_words = bit_words,
};

// ---- statements ----

void channelwise_add_squares(const PassEmitter *emitter, PassText *text, int op, const CentredSum *sum,
                             const char *sums)
{
    Arena *arena = emitter->out->arena;
    const char *element = rows_value(arena, &emitter->element, ROWS_NOT_ROUNDED, sum->element);
    pass_add_total(emitter, text, op);
    pass_declare(emitter, text, emitter->fusion->ops[op].body->type, "mean", op);
    rows_emit_each(&text->function[PASS_BEGIN].text, IN, arena_printf(arena, "mean%d", op),
                   arena_printf(arena, "mean_of(%s%d[e], here.count)", sums, sum->total));
    pass_add_term(emitter, text, op, arena_printf(arena, "total%d", op),
                  arena_printf(arena, "op_sq(op_sub(%s, mean%d[e]))", element, op), sum->element);
}

void channelwise_add_groups(PassEmitter *emitter, Step *step, int op, const char *total)
{
    strbuf_printf(&step->text, IN "reduce_columns<%s>(%s, %d);\n", combiner(emitter->fusion->ops[op].reduce),
                  total, emitter->places++ % 2);
}

void channelwise_add_result(PassEmitter *emitter, PassText *text, PassFunction function, int op)
{
    Arena *arena = emitter->out->arena;
    StrBuf rounded = strbuf_new(arena);
    channelwise_add_groups(emitter, &text->function[function], op, arena_printf(arena, "total%d", op));
    emit_rounded(&rounded, emitter->fusion, op, arena_printf(arena, "total%d[e]", op));
    pass_add_value(emitter, text, function, op, rounded.text);
}

// ---- passes ----

void channelwise_emit_element_pass(PassEmitter *emitter)
{
    const RowPass *last = passes_last(emitter->passes);
    if (last->made)
        pass_emit(emitter, last);
}

void channelwise_emit_column(PassEmitter *emitter)
{
    for (const RowPass *pass = emitter->passes->pass; pass < passes_last(emitter->passes); pass++)
        pass_emit(emitter, pass);
    channelwise_emit_element_pass(emitter);
}
