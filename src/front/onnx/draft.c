#include "front/onnx/draft.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "front/onnx/extents.h"
#include "front/onnx/names.h"

typedef struct Statement Statement;
struct Statement {
    const char *comment;   // the node; NULL: none
    const char *text;
    Statement **reads;   // what it reads
    int read_count;
    bool live;
    const GraphValue *weight;   // whose elements it declares; NULL: it is no weight
};

/* A tensor of the program. Its shape comes first: extents.h asks the table for shapes. */
typedef struct DraftTensor {
    Dims shape;
    DType type;
    Statement *statement;
    const char *condition;   // of bools that are bytes: the tensor that holds them as conditions; else NULL
} DraftTensor;

typedef struct StatementList {
    Statement **items;
    int count, capacity;
} StatementList;

struct Draft {
    Arena *arena;
    NameTable *taken;    // names that are in use
    NameTable tensors;   // DraftTensor
    bool folding;
    StatementList inputs, weights, body, outputs;
};

Draft *draft_new(Arena *arena, NameTable *taken, bool folding)
{
    Draft *draft = NEW(arena, Draft);
    *draft = (Draft){.arena = arena, .taken = taken, .tensors = name_table_new(arena), .folding = folding};
    return draft;
}

// ---- statements ----

static void append(Arena *arena, StatementList *list, Statement *statement)
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

static Statement *add(Draft *draft, StatementList *list, const char *comment, const char *text)
{
    Statement *statement = NEW(draft->arena, Statement);
    *statement = (Statement){.comment = comment, .text = text};
    append(draft->arena, list, statement);
    return statement;
}

static void declare(Draft *draft, const char *name, const Dims *shape, DType type, Statement *statement)
{
    DraftTensor *tensor = NEW(draft->arena, DraftTensor);
    *tensor = (DraftTensor){*shape, type, statement, NULL};
    name_table_set(&draft->tensors, name, tensor);
}

typedef struct DraftReading {
    Draft *draft;
    StatementList found;
} DraftReading;

static void note_read(void *context, const char *name)
{
    DraftReading *reading = context;
    const DraftTensor *tensor = name_table_find(&reading->draft->tensors, name);
    append(reading->draft->arena, &reading->found, tensor->statement);
}

static void set_reads(Draft *draft, Statement *statement, const char *expr)
{
    DraftReading reading = {.draft = draft};
    extents_reads(&draft->tensors, expr, note_read, &reading);
    statement->reads = reading.found.items;
    statement->read_count = reading.found.count;
}

static void print_shape(StrBuf *out, const Dims *shape)
{
    strbuf_putc(out, '[');
    for (int d = 0; d < shape->rank; d++)
        strbuf_printf(out, "%s%" PRId64, d ? ", " : "", shape->size[d]);
    strbuf_putc(out, ']');
}

/* Letters of the dimensions of what has no better ones. */
static const char plain_axes[] = "ijklmnop";

static const char *plain_access(Arena *arena, const char *tensor, int rank)
{
    StrBuf out = strbuf_new(arena);
    strbuf_printf(&out, "%s[", tensor);
    for (int d = 0; d < rank; d++)
        strbuf_printf(&out, "%s%c", d ? ", " : "", plain_axes[d]);
    strbuf_putc(&out, ']');
    return out.text;
}

// ---- inputs and weights ----

static Statement *declare_input(Draft *draft, StatementList *list, const char *word, const char *name,
                                const Dims *shape, DType type)
{
    StrBuf out = strbuf_new(draft->arena);
    DType stored = type == DTYPE_B1 ? DTYPE_U8 : type;
    strbuf_printf(&out, "%s %s", word, name);
    print_shape(&out, shape);
    strbuf_printf(&out, " : %s", dtype_info[stored].name);
    Statement *statement = add(draft, list, NULL, out.text);
    declare(draft, name, shape, stored, statement);
    return statement;
}

/* A condition of the bytes that hold bools; returns its name. */
static const char *define_condition(Draft *draft, const char *bytes, const Dims *shape)
{
    DraftTensor *tensor = name_table_find(&draft->tensors, bytes);
    const char *name = names_take(draft->taken, arena_printf(draft->arena, "%s_b1", bytes), NULL);
    const char *expr = arena_printf(draft->arena, "%s != 0", plain_access(draft->arena, bytes, shape->rank));
    draft_define(draft, NULL, name, shape, plain_axes, DTYPE_NATURAL, expr);
    tensor->condition = name;
    return name;
}

void draft_input(Draft *draft, GraphValue *value)
{
    declare_input(draft, &draft->inputs, "input", value->own, &value->shape, value->type)->live = true;
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
    draft_define(draft, NULL, value->own, &value->shape, plain_axes,
                 value->type == DTYPE_B1 ? DTYPE_NATURAL : value->type, expr);
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
        declare_input(draft, &draft->weights, "input", part->own, &part->shape, part->type)->weight = part;
        access[half] = plain_access(draft->arena, part->own, value->shape.rank);
    }
    draft_define(draft, NULL, value->own, &value->shape, plain_axes, DTYPE_NATURAL,
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
    Statement *statement = declare_input(draft, &draft->weights, draft->folding ? "input" : "weight",
                                         value->own, &value->shape, value->type);
    statement->weight = value;
    return value->type == DTYPE_B1 ? define_condition(draft, value->own, &value->shape) : value->own;
}

// ---- definitions, views, outputs ----

static bool follows(Draft *draft, const char *expr, char axis, int64_t extent)
{
    char index[] = {axis, '\0'};
    return extents_follow(draft->arena, &draft->tensors, expr, expr + strlen(expr), index, extent);
}

void draft_define(Draft *draft, const char *comment, const char *name, const Dims *shape, const char *axes,
                  DType type, const char *expr)
{
    StrBuf out = strbuf_new(draft->arena);
    strbuf_printf(&out, "%s[", name);
    for (int d = 0; d < shape->rank; d++) {
        strbuf_printf(&out, "%s%c", d ? ", " : "", axes[d]);
        if (!follows(draft, expr, axes[d], shape->size[d]))
            strbuf_printf(&out, ":%" PRId64, shape->size[d]);
    }
    strbuf_puts(&out, "]");
    if (type != DTYPE_NATURAL)
        strbuf_printf(&out, " : %s", dtype_info[type].name);
    strbuf_puts(&out, " = ");
    extents_print(&out, &draft->tensors, expr);
    Statement *statement = add(draft, &draft->body, comment, out.text);
    set_reads(draft, statement, expr);
    declare(draft, name, shape, type, statement);
}

void draft_view(Draft *draft, const char *comment, const char *name, const Dims *shape, const char *of)
{
    StrBuf out = strbuf_new(draft->arena);
    strbuf_printf(&out, "view %s", name);
    print_shape(&out, shape);
    strbuf_printf(&out, " = %s", of);
    Statement *statement = add(draft, &draft->body, comment, out.text);
    const DraftTensor *viewed = name_table_find(&draft->tensors, of);
    set_reads(draft, statement, arena_printf(draft->arena, "%s[", of));
    declare(draft, name, shape, viewed->type, statement);
}

/* The value is in a tensor of another name, or in bits: a definition of its own name. */
static void copy_to_output(Draft *draft, const GraphValue *value, const char *name, const char *held)
{
    const char *access = plain_access(draft->arena, held, value->shape.rank);
    bool is_b1 = value->type == DTYPE_B1;
    const char *expr = is_b1 ? arena_printf(draft->arena, "select(%s, 1, 0)", access) : access;
    draft_define(draft, NULL, name, &value->shape, plain_axes, is_b1 ? DTYPE_U8 : DTYPE_NATURAL, expr);
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
    const DraftTensor *tensor = name_table_find(&draft->tensors, held);
    bool is_body = tensor->statement->text[0] != '\0' && !value->is_input && !tensor->statement->weight;
    bool outside = value->type == DTYPE_B1 && !draft->folding;
    if (outside || !is_body || (strcmp(held, name) != 0 && !draft->folding)) {
        if (name_table_find(&draft->tensors, name))
            name = names_take(draft->taken, arena_printf(draft->arena, "%s_out", name), NULL);
        copy_to_output(draft, value, name, held);
    } else {
        name = held;
    }
    Statement *output = add(draft, &draft->outputs, NULL, arena_printf(draft->arena, "output %s", name));
    set_reads(draft, output, arena_printf(draft->arena, "%s[", name));
}

// ---- the text ----

static void mark_live(Statement *statement)
{
    statement->live = true;
    for (int i = 0; i < statement->read_count; i++)
        statement->reads[i]->live = true;
}

static int by_place(const void *a, const void *b)
{
    const GraphValue *left = (*(Statement *const *)a)->weight, *right = (*(Statement *const *)b)->weight;
    return (left->place > right->place) - (left->place < right->place);
}

static void print_list(StrBuf *out, const StatementList *list)
{
    const char *said = NULL;
    for (int i = 0; i < list->count; i++) {
        const Statement *statement = list->items[i];
        if (!statement->live)
            continue;
        if (statement->comment && (!said || strcmp(said, statement->comment) != 0))
            strbuf_printf(out, "\n# %s\n", statement->comment);
        said = statement->comment ? statement->comment : said;
        strbuf_printf(out, "%s\n", statement->text);
    }
}

/* What outputs need: each statement reads only what stands before it. */
static void find_live(Draft *draft)
{
    for (int i = 0; i < draft->outputs.count; i++)
        mark_live(draft->outputs.items[i]);
    for (int i = draft->body.count; i-- > 0;)
        if (draft->body.items[i]->live)
            mark_live(draft->body.items[i]);
}

DraftText draft_finish(Draft *draft)
{
    find_live(draft);
    if (!draft->folding && draft->weights.count)
        qsort(draft->weights.items, (size_t)draft->weights.count, sizeof(Statement *), by_place);
    StrBuf out = strbuf_new(draft->arena);
    print_list(&out, &draft->inputs);
    print_list(&out, &draft->weights);
    print_list(&out, &draft->body);
    strbuf_puts(&out, "\n");
    print_list(&out, &draft->outputs);
    DraftText text = {.text = out.text, .length = out.length};
    text.weights = NEW_ARRAY(draft->arena, const GraphValue *, draft->weights.count);
    for (int i = 0; i < draft->weights.count; i++)
        if (draft->weights.items[i]->live)
            text.weights[text.weight_count++] = draft->weights.items[i]->weight;
    return text;
}

// ---- literals ----

const char *literal_int(Arena *arena, int64_t value)
{
    if (value == INT64_MIN)
        return "(-9223372036854775807 - 1)";
    return arena_printf(arena, value < 0 ? "(%" PRId64 ")" : "%" PRId64, value);
}

const char *literal_real(Arena *arena, DType type, double value)
{
    if (isnan(value))
        return "sqrt(-1)";
    if (isinf(value))
        return value < 0 ? "(-inf)" : "inf";
    StrBuf out = strbuf_new(arena);
    if (type == DTYPE_F64)
        strbuf_double(&out, value);
    else
        strbuf_float(&out, (float)value);
    if (!strpbrk(out.text, ".e"))
        strbuf_puts(&out, ".0");
    return *out.text == '-' ? arena_printf(arena, "(%s)", out.text) : out.text;
}
