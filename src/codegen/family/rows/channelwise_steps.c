// The passes of channelwise kernels: what their structs have in common.
#include <assert.h>
#include <inttypes.h>

#include "base/checked.h"
#include "codegen/family/rows/channelwise_parts.h"

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

void channelwise_add_groups(PassEmitter *emitter, Step *step, int op, const char *total)
{
    strbuf_printf(&step->text, IN "reduce_columns<%s>(%s, %d);\n", combiner(emitter->fusion->ops[op].reduce),
                  total, emitter->places++ % 2);
}

static void add_result(PassEmitter *emitter, PassText *text, int op)
{
    Arena *arena = emitter->out->arena;
    StrBuf rounded = strbuf_new(arena);
    channelwise_add_groups(emitter, &text->function[PASS_FINISH], op, arena_printf(arena, "total%d", op));
    emit_rounded(&rounded, emitter->fusion, op, arena_printf(arena, "total%d[e]", op));
    pass_add_value(emitter, text, PASS_FINISH, op, rounded.text);
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
            [PASS_CONCLUDE] = "conclude" AT_CHANNELS,
            [PASS_STORE_ROW] = "store_channels(const Tensors &t, const Here<Index> &here) const",
        },
    .positions = emit_own_positions,
    .result = add_result,
    .bit_words = bit_words,
};

// ---- passes ----

void channelwise_emit_column(PassEmitter *emitter)
{
    const RowPass *last = passes_last(emitter->passes);
    for (const RowPass *pass = emitter->passes->pass; pass < last; pass++)
        pass_emit(emitter, pass);
    if (last->made)   // something is stored of every element
        pass_emit(emitter, last);
}
