#include "front/onnx/draft.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "front/onnx/draft_parts.h"
#include "front/onnx/extents.h"
#include "front/onnx/names.h"

Draft *draft_new(Arena *arena, NameTable *taken, bool folding)
{
    Draft *draft = NEW(arena, Draft);
    *draft = (Draft){.arena = arena, .taken = taken, .tensors = name_table_new(arena), .folding = folding};
    return draft;
}

// ---- statements ----

void statement_append(Arena *arena, StatementList *list, Statement *statement)
{
    if (list->count == list->capacity) {
        int capacity = list->capacity ? list->capacity * 2 : 8;
        Statement **items = NEW_ARRAY(arena, Statement *, capacity);
        if (list->count)
            memcpy(items, list->items, (size_t)list->count * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = statement;
}

void draft_declare(Draft *draft, Statement *statement)
{
    DraftTensor *tensor = NEW(draft->arena, DraftTensor);
    *tensor = (DraftTensor){statement->shape, statement, NULL};
    name_table_set(&draft->tensors, statement->name, tensor);
}

Statement *draft_statement(const Draft *draft, const char *name)
{
    const DraftTensor *tensor = name_table_find(&draft->tensors, name);
    return tensor ? tensor->statement : NULL;
}

static Statement *add(Draft *draft, StatementList *list, Statement given)
{
    Statement *statement = NEW(draft->arena, Statement);
    *statement = given;
    statement_append(draft->arena, list, statement);
    draft_set_reads(draft, statement);
    if (given.kind != STATEMENT_OUTPUT)
        draft_declare(draft, statement);
    return statement;
}

typedef struct DraftReading {
    Draft *draft;
    StatementList found;
} DraftReading;

static void note_read(void *context, const char *name)
{
    DraftReading *reading = context;
    statement_append(reading->draft->arena, &reading->found, draft_statement(reading->draft, name));
}

void draft_set_reads(Draft *draft, Statement *statement)
{
    DraftReading reading = {.draft = draft};
    if (statement->kind == STATEMENT_DEFINE)
        extents_reads(&draft->tensors, statement->expr, note_read, &reading);
    else if (statement->kind == STATEMENT_VIEW)
        note_read(&reading, statement->of);
    else if (statement->kind == STATEMENT_OUTPUT)
        note_read(&reading, statement->name);
    statement->reads = reading.found.items;
    statement->read_count = reading.found.count;
}

void draft_slide(Draft *draft) { draft->slides = true; }
void draft_begin_node(Draft *draft) { draft->slides = false; }

const char plain_axes[] = "ijklmnop";

const char *plain_access(Arena *arena, const char *tensor, int rank)
{
    StrBuf out = strbuf_new(arena);
    strbuf_printf(&out, "%s[", tensor);
    for (int d = 0; d < rank; d++)
        strbuf_printf(&out, "%s%c", d ? ", " : "", plain_axes[d]);
    strbuf_putc(&out, ']');
    return out.text;
}

// ---- inputs and weights ----

static Statement *declare_input(Draft *draft, DraftKind kind, const GraphValue *value)
{
    DType stored = value->type == DTYPE_B1 ? DTYPE_U8 : value->type;
    bool is_input = kind == STATEMENT_INPUT;
    return add(draft, is_input ? &draft->inputs : &draft->weights,
               (Statement){.kind = kind,
                           .name = value->own,
                           .shape = value->shape,
                           .type = stored,
                           .weight = is_input ? NULL : value});
}

/* A condition of the bytes that hold bools; returns its name. */
static const char *define_condition(Draft *draft, const char *bytes, const Dims *shape)
{
    DraftTensor *tensor = name_table_find(&draft->tensors, bytes);
    const char *name = names_take(draft->taken, arena_printf(draft->arena, "%s_b1", bytes), NULL);
    const char *expr = arena_printf(draft->arena, "%s != 0", plain_access(draft->arena, bytes, shape->rank));
    draft_define(draft, NULL, name, shape, plain_axes, DTYPE_B1, false, expr);
    tensor->condition = name;
    return name;
}

void draft_input(Draft *draft, GraphValue *value)
{
    declare_input(draft, STATEMENT_INPUT, value)->live = true;
    value->tensor = value->own;
    if (value->type == DTYPE_B1)
        value->tensor = define_condition(draft, value->own, &value->shape);
}

/* A weight of the same elements in another shape; NULL: there is none. */
static const Statement *declared_alike(const Draft *draft, const GraphValue *value)
{
    for (int i = 0; i < draft->weights.count; i++) {
        const GraphValue *weight = draft->weights.items[i]->weight;
        if (weight->data == value->data && weight->type == value->type && weight->uniform == value->uniform &&
            shape_count(&weight->shape) == shape_count(&value->shape) && value->type != DTYPE_B1)
            return draft->weights.items[i];
    }
    return NULL;
}

static const char *uniform_tensor(Draft *draft, const GraphValue *value)
{
    const char *expr = value->type == DTYPE_B1 || !dtype_info[value->type].is_real
                           ? literal_int(draft->arena, constant_int(value, 0))
                           : literal_real(draft->arena, value->type, constant_real(value, 0));
    if (value->type == DTYPE_B1)
        expr = constant_int(value, 0) ? "1 == 1" : "1 == 0";
    draft_define(draft, NULL, value->own, &value->shape, plain_axes, value->type, value->type != DTYPE_B1,
                 expr);
    return value->own;
}

/* Integers that a double cannot hold, as the evaluator's inputs are: their upper and lower halves. */
static bool is_large(const GraphValue *value)
{
    int64_t most = (int64_t)1 << 53;
    bool large = false;
    for (int64_t i = 0; value->type == DTYPE_I64 && i < shape_count(&value->shape) && !large; i++)
        large = constant_int(value, i) > most || constant_int(value, i) < -most;
    return large;
}

static const char *declare_halves(Draft *draft, const GraphValue *value)
{
    int64_t count = shape_count(&value->shape), *halves[2];
    const char *access[2];
    for (int half = 0; half < 2; half++) {
        halves[half] = NEW_ARRAY(draft->arena, int64_t, count);
        for (int64_t i = 0; i < count; i++)
            halves[half][i] = half ? constant_int(value, i) & 0xffffffff : constant_int(value, i) >> 32;
        GraphValue *part = NEW(draft->arena, GraphValue);
        *part = *value;
        part->data = halves[half];
        part->own = names_take(draft->taken,
                               arena_printf(draft->arena, "%s_%s", value->own, half ? "low" : "high"), NULL);
        declare_input(draft, STATEMENT_WEIGHT, part);
        access[half] = plain_access(draft->arena, part->own, value->shape.rank);
    }
    draft_define(draft, NULL, value->own, &value->shape, plain_axes, DTYPE_I64, false,
                 arena_printf(draft->arena, "%s * 4294967296 + %s", access[0], access[1]));
    return value->own;
}

const char *draft_tensor(Draft *draft, const GraphValue *value)
{
    if (!value->data)
        return value->tensor;
    const DraftTensor *declared = name_table_find(&draft->tensors, value->own);
    if (declared)
        return declared->condition ? declared->condition : value->own;
    if (value->uniform)
        return uniform_tensor(draft, value);
    if (draft->folding && is_large(value))
        return declare_halves(draft, value);
    const Statement *alike = value->shape.rank ? declared_alike(draft, value) : NULL;
    if (alike) {
        draft_view(draft, NULL, value->own, &value->shape, alike->weight->own);
        return value->own;
    }
    declare_input(draft, STATEMENT_WEIGHT, value);
    return value->type == DTYPE_B1 ? define_condition(draft, value->own, &value->shape) : value->own;
}

// ---- definitions, views, outputs ----

void draft_define(Draft *draft, const char *comment, const char *name, const Dims *shape, const char *axes,
                  DType type, bool stated, const char *expr)
{
    add(draft, &draft->body,
        (Statement){.kind = STATEMENT_DEFINE,
                    .comment = comment,
                    .name = name,
                    .shape = *shape,
                    .type = type,
                    .stated = stated,
                    .axes = arena_strndup(draft->arena, axes, (size_t)shape->rank),
                    .expr = expr,
                    .slides = draft->slides});
}

void draft_view(Draft *draft, const char *comment, const char *name, const Dims *shape, const char *of)
{
    add(draft, &draft->body,
        (Statement){.kind = STATEMENT_VIEW,
                    .comment = comment,
                    .name = name,
                    .shape = *shape,
                    .type = draft_statement(draft, of)->type,
                    .of = of});
}

/* The value is in a tensor of another name, or in bits: a definition of its own name. */
static void copy_to_output(Draft *draft, const GraphValue *value, const char *name, const char *held)
{
    const char *access = plain_access(draft->arena, held, value->shape.rank);
    bool is_b1 = value->type == DTYPE_B1;
    const char *expr = is_b1 ? arena_printf(draft->arena, "select(%s, 1, 0)", access) : access;
    draft_define(draft, NULL, name, &value->shape, plain_axes, is_b1 ? DTYPE_U8 : value->type, is_b1, expr);
    draft_statement(draft, name)->is_border = true;
}

void draft_output(Draft *draft, GraphValue *value)
{
    const char *name = value->own;
    GraphValue constant = *value;
    if (value->data && !value->uniform && !name_table_find(&draft->tensors, name))
        constant.own = names_take(draft->taken, arena_printf(draft->arena, "%s_weight", name), NULL);
    GraphValue *kept = NEW(draft->arena, GraphValue);
    *kept = constant;
    const char *held = draft_tensor(draft, kept);
    bool is_body = !value->is_input && !draft_statement(draft, held)->weight;
    bool outside = value->type == DTYPE_B1 && !draft->folding;
    if (outside || !is_body || (strcmp(held, name) != 0 && !draft->folding)) {
        if (name_table_find(&draft->tensors, name))
            name = names_take(draft->taken, arena_printf(draft->arena, "%s_out", name), NULL);
        copy_to_output(draft, value, name, held);
    } else {
        name = held;
    }
    add(draft, &draft->outputs, (Statement){.kind = STATEMENT_OUTPUT, .name = name});
}
