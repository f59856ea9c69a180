#include "codegen/family/rows/structs.h"

#include <stdio.h>
#include <string.h>

#include "ir/tensor_op.h"

#define IN ROWS_INDENT

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
    const char *const *around = emitter->structs->invariant;
    int index = expr->kind == EXPR_ACCESS ? invariants_position(&emitter->invariants, &expr->access) : -1;
    if (index < 0)
        return reads_loaded(&emitter->reads, expr);
    snprintf(emitter->text, sizeof emitter->text, "%s%d%s", around[0], index, around[1]);
    return emitter->text;
}

void pass_begin(PassEmitter *emitter, StrBuf *out, const KernelPlan *plan, const PassStructs *structs,
                const PassPlan *passes, const Reads *reads, int axis)
{
    const Fusion *fusion = plan->fusion;
    *emitter = (PassEmitter){
        .out = out,
        .plan = plan,
        .structs = structs,
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
    emitter->element.other_suffix = structs->neighbours ? "[e]" : NULL;
}

int pass_reduction(const PassEmitter *emitter, int op)
{
    return __builtin_popcountll(schedule_ops(emitter->fusion, true) & (OP_BIT(op) - 1));
}

PassText pass_text(const PassEmitter *emitter)
{
    PassText text = {.members = strbuf_new(emitter->out->arena)};
    for (int i = 0; i < PASS_FUNCTIONS; i++)
        text.function[i] = rows_step(emitter->out->arena);
    return text;
}

// ---- totals ----

void pass_declare(const PassEmitter *emitter, PassText *text, DType type, const char *name, int op)
{
    strbuf_printf(&text->members, "    %s %s%d%s;\n", value_type(type), name, op,
                  emitter->structs->neighbours ? "[VECTOR]" : "");
}

void pass_add_total(const PassEmitter *emitter, PassText *text, int op)
{
    const FusedOp *fused = &emitter->fusion->ops[op];
    Arena *arena = emitter->out->arena;
    const char *type = value_type(fused->body->type);
    const char *identity = arena_printf(arena, "%s::identity<%s>()", combiner(fused->reduce), type);
    if (!emitter->structs->neighbours) {
        strbuf_printf(&text->members, "    %s total%d = %s;\n", type, op, identity);
        return;
    }
    pass_declare(emitter, text, fused->body->type, "total", op);
    rows_emit_each(&text->function[PASS_START].text, IN, arena_printf(arena, "total%d", op), identity);
}

void pass_add_term(const PassEmitter *emitter, PassText *text, int op, const char *total, const char *term,
                   const Expr *expr)
{
    const char *reduction = combiner(emitter->fusion->ops[op].reduce);
    Step *add = &text->function[PASS_ADD];
    text->made |= passes_elements(emitter->fusion, expr);
    add->axes |= rows_axes_left(&emitter->element, expr);
    rows_emit_sum(&add->text, total, emitter->structs->neighbours ? "[e]" : "", reduction, term);
}

void pass_add_reduction(const PassEmitter *emitter, PassText *text, int op)
{
    Arena *arena = emitter->out->arena;
    const Expr *body = emitter->fusion->ops[op].body;
    pass_add_total(emitter, text, op);
    pass_add_term(emitter, text, op, arena_printf(arena, "total%d", op),
                  rows_value(arena, &emitter->element, ROWS_NOT_ROUNDED, body), body);
}

// ---- values of the row ----

void pass_add_value(const PassEmitter *emitter, PassText *text, PassFunction function, int op,
                    const char *value)
{
    const FusedOp *fused = &emitter->fusion->ops[op];
    const char *name = arena_printf(emitter->out->arena, "v%d", op);
    StrBuf *out = &text->function[function].text;
    Step *store = &text->function[PASS_STORE_ROW];
    pass_declare(emitter, text, fused->out->dtype, "v", op);
    if (!emitter->structs->neighbours)
        strbuf_printf(out, IN "%s = %s;\n", name, value);
    else
        rows_emit_each(out, IN, name, value);
    if (fused->stored && !emitter->structs->neighbours)
        rows_emit_value_store(store, &emitter->first, op);
    else if (fused->stored)
        rows_emit_store(store, &emitter->first, &emitter->element, op, name, emitter->axis, emitter->vector);
}

void pass_add_values(const PassEmitter *emitter, PassText *text, PassFunction function, uint64_t ops)
{
    const Scope *scope = emitter->structs->neighbours ? &emitter->element : &emitter->first;
    FOR_BITS (i, ops) {
        const Expr *body = emitter->fusion->ops[i].body;
        text->function[function].axes |= rows_axes_left(scope, body);
        pass_add_value(emitter, text, function, i, rows_value(emitter->out->arena, scope, i, body));
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

static void add_bits_store(const PassEmitter *emitter, Step *step, int op)
{
    const FusedOp *fused = &emitter->fusion->ops[op];
    step->axes |= access_axes(&fused->store);
    strbuf_printf(&step->text, IN "store_bits<VECTOR>(%st.out%d, %s, el.v%d, within);\n",
                  emitter->structs->bit_words(emitter, op), output_position(emitter->fusion, fused->out),
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

/* The positions that the statements need; those along the row from `at`. */
static void emit_functions(const PassEmitter *emitter, StrBuf *out, const PassText *text)
{
    const Fusion *fusion = emitter->fusion;
    for (int i = 0; i < PASS_FUNCTIONS; i++) {
        const Step *step = &text->function[i];
        if (!step->text.length)
            continue;
        strbuf_printf(out, "    __device__ __forceinline__ void %s\n    {\n", emitter->structs->signature[i]);
        emitter->structs->positions(out, emitter, step->axes);
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
    if (emitter->structs->says_what && stores)
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
    if (emitter->structs->load)
        emitter->structs->load(emitter, &text.function[PASS_LOAD], pass->reads);
    FOR_BITS (i, pass->reduced) {
        pass_add_reduction(emitter, &text, i);
        emitter->structs->result(emitter, &text, i);
    }
    pass_add_values(emitter, &text, PASS_FINISH, pass->values);
    add_element_stores(emitter, &text, pass->stored);
    pass_emit_struct(emitter, &text);
}

void pass_emit_all(PassEmitter *emitter, PassText *start, void (*emit)(PassEmitter *emitter))
{
    StrBuf *out = emitter->out, text = strbuf_new(out->arena);
    emitter->out = &text;
    pass_add_values(emitter, start, PASS_FINISH, emitter->passes->before.values);
    emit_struct(emitter, "Start", emitter->structs->start, start);
    emit(emitter);
    emitter->out = out;
    rows_emit_elements(out, emitter->fusion, emitter->made);
    strbuf_printf(out,
                  "\n// %s, pass by pass; a pass inherits the results of earlier ones.\n"
                  "%susing LastPass = Pass%d;\n",
                  emitter->structs->whose, text.text, emitter->count - 1);
}
