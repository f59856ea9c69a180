// The passes of resident kernels: what each reads of a vector, makes of it and adds up.
#include <assert.h>

#include "codegen/family/rows/resident_parts.h"
#include "rtile/space.h"

#define IN ROWS_INDENT

uint32_t resident_axes(const ResidentEmitter *emitter, uint32_t reads)
{
    uint32_t axes = 0;
    for (int i = 0; i < emitter->reads.count; i++)
        axes |= reads >> i & 1 ? access_axes(emitter->reads.reads[i].access) : 0;
    return axes;
}

static bool reduces_in(const ResidentEmitter *emitter, int op, int pass)
{
    return emitter->fusion->ops[op].reduce != REDUCE_NONE && emitter->passes.of[op] == pass;
}

static void emit_function(const ResidentEmitter *emitter, const char *signature, const Step *step)
{
    const Fusion *fusion = emitter->fusion;
    StrBuf opening = strbuf_new(emitter->out->arena);
    emit_used_positions(&opening, IN, "row", &emitter->first, 0, fusion->spatial_count, step->axes);
    emit_used_positions(&opening, IN, "at", &emitter->first, fusion->spatial_count, fusion->axis_count,
                        step->axes);
    rows_emit_function(emitter->out, signature, opening.text, step);
}

// ---- of a vector ----

static void emit_load(const ResidentEmitter *emitter, uint32_t used)
{
    Step load = rows_step(emitter->out->arena);
    load.axes = resident_axes(emitter, used & ~emitter->kept);
    for (int i = 0; i < emitter->reads.count; i++) {
        const Read *read = &emitter->reads.reads[i];
        const Tensor *tensor = read->access->tensor;
        if (!(used >> i & 1))
            continue;
        strbuf_printf(&load.text, IN "%s<VECTOR>(", tensor->dtype == DTYPE_B1 ? "load_bits" : "load_vector");
        if (emitter->kept >> i & 1) {
            strbuf_printf(&load.text, "(const %s *)(rollerc_shared + KEPT_X%d), own",
                          memory_type(tensor->dtype), i);
        } else {
            strbuf_printf(&load.text, "t.in%d, ", input_position(emitter->fusion, tensor));
            emit_affine(&load.text, &read->offset, emitter->first.axis);
        }
        strbuf_printf(&load.text, ", in.x%d);\n", i);
    }
    emit_function(emitter, "load_inputs(const Tensors &t, Index at, Index own, Inputs &in)", &load);
}

static void emit_make(ResidentEmitter *emitter, uint64_t ops)
{
    Step make = rows_make(emitter->out->arena, &emitter->element, ops);
    emitter->elements |= ops;
    emit_function(emitter, "make(const Tensors &t, Index at, const Inputs &in, Elements &el)", &make);
}

static void emit_add(const ResidentEmitter *emitter, int pass)
{
    Arena *arena = emitter->out->arena;
    Step add = rows_step(arena);
    for (int i = 0; i < emitter->fusion->op_count; i++) {
        const FusedOp *op = &emitter->fusion->ops[i];
        if (!reduces_in(emitter, i, pass))
            continue;
        const char *term = rows_value(arena, &emitter->element, ROWS_NOT_ROUNDED, op->body);
        add.axes |= rows_axes_left(&emitter->element, op->body);
        rows_emit_sum(&add.text, IN, arena_printf(arena, "total%d", i), combiner(op->reduce), term);
    }
    emit_function(emitter, "add(const Tensors &t, Index at, const Inputs &in, const Elements &el)", &add);
}

static void add_bits_store(Step *step, const ResidentEmitter *emitter, int op)
{
    static const char *const words[] = {[8] = "unsigned char", [16] = "unsigned short", [32] = "unsigned"};
    const FusedOp *fused = &emitter->fusion->ops[op];
    Affine offset = access_offset(&fused->store);
    int run = resident_bit_run(emitter->fusion, emitter->vector, fused);
    assert(run);   // else words are shared with other rows
    step->axes |= access_axes(&fused->store);
    strbuf_printf(&step->text, IN "store_bits<VECTOR>((%s *)t.out%d, ", words[run],
                  output_position(emitter->fusion, fused->out));
    emit_affine(&step->text, &offset, emitter->first.axis);
    strbuf_printf(&step->text, ", el.v%d, within);\n", op);
}

static void emit_element_stores(const ResidentEmitter *emitter)
{
    Arena *arena = emitter->out->arena;
    Step store = rows_step(arena), pack = rows_step(arena);
    for (int i = 0; i < emitter->fusion->op_count; i++) {
        const FusedOp *op = &emitter->fusion->ops[i];
        Affine offset = access_offset(&op->store);
        if (!op->stored || !fusion_op_is_of_elements(emitter->fusion, i))
            continue;
        if (op->out->dtype == DTYPE_B1)
            add_bits_store(&pack, emitter, i);
        else
            rows_emit_store(&store, &emitter->first, &emitter->element, i, arena_printf(arena, "el.v%d", i),
                            resident_is_run(emitter->fusion, &offset, emitter->vector));
    }
    emit_function(emitter, "store_elements(const Tensors &t, Index at, const Elements &el) const", &store);
    emit_function(emitter, "pack_elements(const Tensors &t, Index at, const Elements &el, bool within) const",
                  &pack);
}

// ---- of the row ----

static int slot_of(const ResidentEmitter *emitter, int op)
{
    int slot = 0;
    for (int i = 0; i < op; i++)
        slot += emitter->fusion->ops[i].reduce != REDUCE_NONE;
    return slot;
}

/* `v3` of the row, made of `value`. */
static void add_row_value(const ResidentEmitter *emitter, StrBuf *members, Step *finish, Step *store, int op,
                          const char *value)
{
    const FusedOp *fused = &emitter->fusion->ops[op];
    strbuf_printf(members, "    %s v%d;\n", value_type(fused->out->dtype), op);
    strbuf_printf(&finish->text, IN "v%d = %s;\n", op, value);
    if (!fused->stored)
        return;
    Affine offset = access_offset(&fused->store);
    store->axes |= access_axes(&fused->store);
    strbuf_printf(&store->text, IN "store(t.out%d, ", output_position(emitter->fusion, fused->out));
    emit_affine(&store->text, &offset, emitter->first.axis);
    strbuf_printf(&store->text, ", v%d);\n", op);
}

static void add_total(const ResidentEmitter *emitter, StrBuf *members, Step *reduce, int op)
{
    const FusedOp *fused = &emitter->fusion->ops[op];
    const char *type = value_type(fused->body->type), *reduction = combiner(fused->reduce);
    strbuf_printf(members, "    %s total%d = %s::identity<%s>();\n", type, op, reduction, type);
    strbuf_printf(&reduce->text, IN "reduce_block<%s>(total%d, %d);\n", reduction, op, slot_of(emitter, op));
}

static const char *row_total(const ResidentEmitter *emitter, int op)
{
    const FusedOp *fused = &emitter->fusion->ops[op];
    Arena *arena = emitter->out->arena;
    StrBuf rounded = strbuf_new(arena);
    emit_rounded(&rounded, emitter->fusion, op,
                 arena_printf(arena, "row_total<%s, %s>(%d)", combiner(fused->reduce),
                              value_type(fused->body->type), slot_of(emitter, op)));
    return rounded.text;
}

/* Reads that are the same for all of the row. */
static void add_invariants(const ResidentEmitter *emitter, StrBuf *members, Step *finish)
{
    const Invariants *invariants = &emitter->invariants;
    finish->axes |= invariants_axes(invariants);
    for (int i = 0; i < invariants->count; i++) {
        const Tensor *tensor = invariants->access[i]->tensor;
        strbuf_printf(members, "    %s inv%d;\n", value_type(tensor->dtype), i);
        strbuf_printf(&finish->text, IN "inv%d = %s(t.in%d, ", i,
                      tensor->dtype == DTYPE_B1 ? "load_bit" : "load",
                      input_position(emitter->fusion, tensor));
        emit_affine(&finish->text, &invariants->offset[i], emitter->first.axis);
        strbuf_puts(&finish->text, ");\n");
    }
}

/* What a struct knows of the row once `passes` passes have ended: totals of the last of them, and values that
   are made of them. The functions are left for the caller to print. */
typedef struct RowEnd {
    StrBuf members;
    Step reduce, finish, store;
} RowEnd;

static RowEnd row_end(const ResidentEmitter *emitter, int passes)
{
    Arena *arena = emitter->out->arena;
    RowEnd end = {strbuf_new(arena), rows_step(arena), rows_step(arena), rows_step(arena)};
    if (passes == 0)
        add_invariants(emitter, &end.members, &end.finish);
    for (int i = 0; i < emitter->fusion->op_count; i++)
        if (reduces_in(emitter, i, passes - 1)) {
            add_total(emitter, &end.members, &end.reduce, i);
            add_row_value(emitter, &end.members, &end.finish, &end.store, i, row_total(emitter, i));
        }
    for (int i = 0; i < emitter->fusion->op_count; i++) {
        const FusedOp *op = &emitter->fusion->ops[i];
        if (op->reduce != REDUCE_NONE || fusion_op_is_of_elements(emitter->fusion, i) ||
            emitter->passes.of[i] != passes)
            continue;
        end.finish.axes |= rows_axes_left(&emitter->first, op->body);
        add_row_value(emitter, &end.members, &end.finish, &end.store, i,
                      rows_value(arena, &emitter->first, i, op->body));
    }
    return end;
}

static void emit_row_functions(const ResidentEmitter *emitter, const RowEnd *end)
{
    emit_function(emitter, "reduce()", &end->reduce);
    emit_function(emitter, "finish(const Tensors &t)", &end->finish);
    emit_function(emitter, "store_row(const Tensors &t) const", &end->store);
}

// ---- structs ----

static void emit_struct(const ResidentEmitter *emitter, const char *name, const char *base,
                        const char *members, const char *functions)
{
    bool apart = *members && *functions, any = *members || *functions;
    strbuf_printf(emitter->out, "\nstruct %s : %s {%s%s%s%s};\n", name, base, any ? "\n" : "", members,
                  apart ? "\n" : "", functions);
}

static void emit_pass(ResidentEmitter *emitter, int pass)
{
    StrBuf *out = emitter->out, functions = strbuf_new(out->arena);
    Needs needs = passes_needs(emitter->fusion, &emitter->reads, &emitter->passes, pass);
    RowEnd end = row_end(emitter, pass + 1);
    emitter->out = &functions;
    emit_load(emitter, needs.reads_used);
    emit_make(emitter, needs.ops);
    emit_add(emitter, pass);
    if (pass == emitter->passes.count - 1)
        emit_element_stores(emitter);
    emit_row_functions(emitter, &end);
    emitter->out = out;
    emit_struct(emitter, arena_printf(out->arena, "Pass%d", pass),
                pass ? arena_printf(out->arena, "Pass<Pass%d>", pass - 1) : "Pass<Start>", end.members.text,
                functions.text);
}

void resident_emit_passes(ResidentEmitter *emitter)
{
    StrBuf *out = emitter->out, text = strbuf_new(out->arena), functions = strbuf_new(out->arena);
    RowEnd start = row_end(emitter, 0);
    emitter->out = &functions;
    emit_row_functions(emitter, &start);
    emitter->out = &text;
    emit_struct(emitter, "Start", "RowStart<Index>", start.members.text, functions.text);
    for (int pass = 0; pass < emitter->passes.count; pass++)
        emit_pass(emitter, pass);
    emitter->out = out;
    rows_emit_elements(out, emitter->fusion, emitter->elements);
    strbuf_printf(
        out,
        "\n// A row, pass by pass: each knows what those before have found out.%susing LastPass = Pass%d;\n",
        text.text, emitter->passes.count - 1);
}
