#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codegen/family/rows/channelwise_parts.h"

#define IN ROWS_INDENT
#define AT_CHANNELS "(const Tensors &t, const Here<Index> &here, const Invariants &inv)"
#define AT_ELEMENTS                                                                                          \
    "(const Tensors &t, const Here<Index> &here, Index at, const Inputs &in, const Invariants &inv, "        \
    "Elements &el)"

// ---- reads that stay the same ----

/* Position of the access among them; -1: it is not there. */
static int invariants_position(const Invariants *invariants, const Access *access)
{
    Affine offset = access_offset(access);
    for (int i = 0; i < invariants->count; i++)
        if (invariants->access[i]->tensor == access->tensor &&
            memcmp(&invariants->offset[i], &offset, sizeof offset) == 0)
            return i;
    return -1;
}

/* The distinct unguarded reads that move along none of the axes. */
static Invariants invariants_find(const Fusion *fusion, uint32_t moving)
{
    Invariants invariants = {.count = 0};
    FusedAccess found[MAX_ACCESSES];
    int count = fusion_accesses(fusion, found, MAX_ACCESSES);
    for (int i = 0; i < count && invariants.count < MAX_INVARIANTS; i++) {
        const Access *access = found[i].access;
        if (found[i].fetch || found[i].guarded || access_axes(access) & moving ||
            invariants_position(&invariants, access) >= 0)
            continue;
        invariants.access[invariants.count] = access;
        invariants.offset[invariants.count++] = access_offset(access);
    }
    return invariants;
}

uint32_t invariants_axes(const Invariants *invariants)
{
    uint32_t axes = 0;
    for (int i = 0; i < invariants->count; i++)
        axes |= access_axes(invariants->access[i]);
    return axes;
}

// ---- emitters ----

/* For Scope.loaded. */
static const char *find_loaded(void *context, const Expr *expr)
{
    PassEmitter *emitter = context;
    int index = expr->kind == EXPR_ACCESS ? invariants_position(&emitter->invariants, &expr->access) : -1;
    if (index < 0)
        return reads_loaded(&emitter->reads, expr);
    snprintf(emitter->text, sizeof emitter->text, "inv.x%d[e]", index);
    return emitter->text;
}

void pass_begin(PassEmitter *emitter, StrBuf *out, const KernelPlan *plan, const PassPlan *passes,
                const Reads *reads, int axis)
{
    const Fusion *fusion = plan->fusion;
    *emitter = (PassEmitter){
        .out = out,
        .fusion = fusion,
        .passes = passes,
        .reads = *reads,
        .invariants = invariants_find(fusion, fusion_columns(fusion)),
        .axis = axis,
        .vector = reads->walk.vector,
        .first = scope_of(plan),
    };
    emitter->first.loaded = find_loaded;
    emitter->first.context = emitter;
    emitter->element = rows_element_scope(out->arena, &emitter->first, axis, fusion_columns(fusion));
    emitter->element.other_suffix = "[e]";
}

PassText pass_text(const PassEmitter *emitter)
{
    PassText text = {.members = strbuf_new(emitter->out->arena)};
    for (int i = 0; i < PASS_FUNCTIONS; i++)
        text.function[i] = rows_step(emitter->out->arena);
    return text;
}

// ---- totals ----

void pass_declare(PassText *text, DType type, const char *name, int op)
{
    strbuf_printf(&text->members, "    %s %s%d[VECTOR];\n", value_type(type), name, op);
}

void pass_add_total(const PassEmitter *emitter, PassText *text, int op)
{
    const FusedOp *fused = &emitter->fusion->ops[op];
    Arena *arena = emitter->out->arena;
    pass_declare(text, fused->body->type, "total", op);
    const char *identity =
        arena_printf(arena, "%s::identity<%s>()", combiner(fused->reduce), value_type(fused->body->type));
    rows_emit_each(&text->function[PASS_START].text, IN, arena_printf(arena, "total%d", op), identity);
}

void pass_add_term(const PassEmitter *emitter, PassText *text, int op, const char *total, const char *term,
                   const Expr *expr)
{
    const char *reduction = combiner(emitter->fusion->ops[op].reduce);
    Step *add = &text->function[PASS_ADD];
    text->made |= passes_elements(emitter->fusion, expr);
    add->axes |= rows_axes_left(&emitter->element, expr);
    rows_emit_each(&add->text, IN, total,
                   arena_printf(emitter->out->arena, "%s::combine(%s[e], %s)", reduction, total, term));
}

void pass_add_reduction(const PassEmitter *emitter, PassText *text, int op)
{
    Arena *arena = emitter->out->arena;
    const Expr *body = emitter->fusion->ops[op].body;
    pass_add_total(emitter, text, op);
    pass_add_term(emitter, text, op, arena_printf(arena, "total%d", op),
                  rows_value(arena, &emitter->element, ROWS_NOT_ROUNDED, body), body);
}

// ---- values of the channels ----

void pass_add_groups(PassEmitter *emitter, Step *step, int op, const char *total)
{
    strbuf_printf(&step->text, IN "reduce_columns<%s>(%s, %d);\n", combiner(emitter->fusion->ops[op].reduce),
                  total, emitter->places++ % 2);
}

void pass_add_value(const PassEmitter *emitter, PassText *text, PassFunction function, int op,
                    const char *value)
{
    const FusedOp *fused = &emitter->fusion->ops[op];
    const char *name = arena_printf(emitter->out->arena, "v%d", op);
    pass_declare(text, fused->out->dtype, "v", op);
    rows_emit_each(&text->function[function].text, IN, name, value);
    if (fused->stored)
        rows_emit_store(&text->function[PASS_STORE_CHANNELS], &emitter->first, &emitter->element, op, name,
                        emitter->axis, emitter->vector);
}

void pass_add_values(const PassEmitter *emitter, PassText *text, PassFunction function, uint64_t ops)
{
    FOR_BITS (i, ops) {
        const Expr *body = emitter->fusion->ops[i].body;
        text->function[function].axes |= rows_axes_left(&emitter->element, body);
        pass_add_value(emitter, text, function, i,
                       rows_value(emitter->out->arena, &emitter->element, i, body));
    }
}

// ---- elements ----

static void add_elements(const PassEmitter *emitter, PassText *text)
{
    Step *make = &text->function[PASS_MAKE];
    FOR_BITS (i, text->made) {
        const Expr *body = emitter->fusion->ops[i].body;
        Arena *arena = emitter->out->arena;
        make->axes |= rows_axes_left(&emitter->element, body);
        rows_emit_each(&make->text, IN, arena_printf(arena, "el.v%d", i),
                       rows_value(arena, &emitter->element, i, body));
    }
}

/* All lanes of a warp pack theirs together. */
static void add_bits_store(const PassEmitter *emitter, Step *step, int op)
{
    const FusedOp *fused = &emitter->fusion->ops[op];
    assert(channelwise_packs_bits(emitter->fusion));
    step->axes |= access_axes(&fused->store);
    strbuf_printf(&step->text, IN "store_bits<VECTOR>(t.out%d, %s, el.v%d, within);\n",
                  output_position(emitter->fusion, fused->out),
                  offset_text(step->text.arena, &fused->store, emitter->first.axis), op);
}

static void add_element_stores(const PassEmitter *emitter, PassText *text, uint64_t ops)
{
    FOR_BITS (i, ops)
        if (emitter->fusion->ops[i].out->dtype == DTYPE_B1)
            add_bits_store(emitter, &text->function[PASS_PACK_ELEMENTS], i);
        else
            rows_emit_store(&text->function[PASS_STORE_ELEMENTS], &emitter->first, &emitter->element, i,
                            arena_printf(emitter->out->arena, "el.v%d", i), emitter->axis, emitter->vector);
}

// ---- structs ----

void pass_emit_positions(StrBuf *out, const char *indent, const char *here, const Scope *scope,
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

/* The positions that the statements need; those along the columns from `at`. */
static void emit_functions(const PassEmitter *emitter, StrBuf *out, const PassText *text)
{
    static const char *const signature[] = {
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
        [PASS_STORE_CHANNELS] = "store_channels(const Tensors &t, const Here<Index> &here) const",
    };
    const Fusion *fusion = emitter->fusion;
    for (int i = 0; i < PASS_FUNCTIONS; i++) {
        const Step *step = &text->function[i];
        if (!step->text.length)
            continue;
        strbuf_printf(out, "    __device__ __forceinline__ void %s\n    {\n", signature[i]);
        pass_emit_positions(out, IN, "here.", &emitter->first, step->axes);
        emit_used_positions(out, IN, "at", &emitter->first, fusion->spatial_count, fusion->axis_count,
                            step->axes);
        strbuf_printf(out, "%s    }\n", step->text.text);
    }
}

static void emit_struct(PassEmitter *emitter, const char *name, const char *base, PassText *text)
{
    StrBuf functions = strbuf_new(emitter->out->arena), members = strbuf_new(emitter->out->arena);
    add_elements(emitter, text);
    emitter->made |= text->made;
    emit_functions(emitter, &functions, text);
    bool stores =
        text->function[PASS_STORE_ELEMENTS].text.length || text->function[PASS_PACK_ELEMENTS].text.length;
    if (stores)
        strbuf_puts(&members, "    static constexpr bool STORES = true;\n");
    strbuf_puts(&members, text->members.text);
    bool apart = members.length && functions.length, any = members.length || functions.length;
    strbuf_printf(emitter->out, "struct %s : %s {%s%s%s%s};\n", name, base, any ? "\n" : "", members.text,
                  apart ? "\n" : "", functions.text);
}

void pass_emit_struct(PassEmitter *emitter, PassText *text)
{
    Arena *arena = emitter->out->arena;
    int number = emitter->count++;
    strbuf_puts(emitter->out, "\n");
    emit_struct(emitter, arena_printf(arena, "Pass%d", number),
                number ? arena_printf(arena, "Pass<Pass%d>", number - 1) : "Pass<Start>", text);
}

void pass_emit(PassEmitter *emitter, const RowPass *pass)
{
    PassText text = pass_text(emitter);
    text.made = pass->made;
    FOR_BITS (i, pass->reduced) {
        Arena *arena = emitter->out->arena;
        const char *total = arena_printf(arena, "total%d", i), *each = arena_printf(arena, "total%d[e]", i);
        pass_add_reduction(emitter, &text, i);
        pass_add_groups(emitter, &text.function[PASS_FINISH], i, total);
        pass_add_value(emitter, &text, PASS_FINISH, i, rounded_text(arena, emitter->fusion, i, each));
    }
    pass_add_values(emitter, &text, PASS_FINISH, pass->values);
    add_element_stores(emitter, &text, pass->stored);
    pass_emit_struct(emitter, &text);
}

void pass_emit_all(PassEmitter *emitter, void (*emit)(PassEmitter *emitter))
{
    PassText start = pass_text(emitter);
    StrBuf *out = emitter->out, text = strbuf_new(out->arena);
    emitter->out = &text;
    pass_add_values(emitter, &start, PASS_FINISH, emitter->passes->before.values);
    emit_struct(emitter, "Start", "ChannelStart", &start);
    emit(emitter);
    emitter->out = out;
    rows_emit_elements(out, emitter->fusion, emitter->made);
    strbuf_printf(out,
                  "\n// A thread's channels, pass by pass; a pass inherits the results of earlier ones.\n"
                  "%susing LastPass = Pass%d;\n",
                  text.text, emitter->count - 1);
}
