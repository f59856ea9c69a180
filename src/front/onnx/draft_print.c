// A draft as text.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "front/onnx/draft_parts.h"
#include "front/onnx/extents.h"

// ---- statements ----

static void print_shape(StrBuf *out, const Dims *shape)
{
    strbuf_putc(out, '[');
    for (int d = 0; d < shape->rank; d++)
        strbuf_printf(out, "%s%" PRId64, d ? ", " : "", shape->size[d]);
    strbuf_putc(out, ']');
}

static bool follows(const Draft *draft, const char *expr, char axis, int64_t extent)
{
    char index[] = {axis, '\0'};
    return extents_follow(draft->arena, &draft->tensors, expr, expr + strlen(expr), index, extent);
}

static void print_define(StrBuf *out, const Draft *draft, const Statement *s)
{
    strbuf_printf(out, "%s[", s->name);
    for (int d = 0; d < s->shape.rank; d++) {
        strbuf_printf(out, "%s%c", d ? ", " : "", s->axes[d]);
        if (!follows(draft, s->expr, s->axes[d], s->shape.size[d]))
            strbuf_printf(out, ":%" PRId64, s->shape.size[d]);
    }
    strbuf_puts(out, "]");
    if (s->stated)
        strbuf_printf(out, " : %s", dtype_info[s->type].name);
    strbuf_puts(out, " = ");
    extents_print(out, &draft->tensors, s->expr);
}

static void print_statement(StrBuf *out, const Draft *draft, const Statement *s)
{
    bool is_weight = s->kind == STATEMENT_WEIGHT && !draft->folding;
    switch (s->kind) {
    case STATEMENT_INPUT:
    case STATEMENT_WEIGHT:
        strbuf_printf(out, "%s %s", is_weight ? "weight" : "input", s->name);
        print_shape(out, &s->shape);
        strbuf_printf(out, " : %s", dtype_info[s->type].name);
        break;
    case STATEMENT_DEFINE: print_define(out, draft, s); break;
    case STATEMENT_VIEW:
        strbuf_printf(out, "view %s", s->name);
        print_shape(out, &s->shape);
        strbuf_printf(out, " = %s", s->of);
        break;
    case STATEMENT_OUTPUT: strbuf_printf(out, "output %s", s->name); break;
    }
    strbuf_putc(out, '\n');
}

static void print_list(StrBuf *out, const Draft *draft, const StatementList *list)
{
    const char *said = NULL;
    for (int i = 0; i < list->count; i++) {
        const Statement *statement = list->items[i];
        if (!statement->live)
            continue;
        if (statement->comment && (!said || strcmp(said, statement->comment) != 0))
            strbuf_printf(out, "\n# %s\n", statement->comment);
        said = statement->comment ? statement->comment : said;
        print_statement(out, draft, statement);
    }
}

// ---- what is needed ----

static void mark_live(Statement *statement)
{
    statement->live = true;
    for (int i = 0; i < statement->read_count; i++)
        statement->reads[i]->live = true;
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

static int by_place(const void *a, const void *b)
{
    const GraphValue *left = (*(Statement *const *)a)->weight, *right = (*(Statement *const *)b)->weight;
    return (left->place > right->place) - (left->place < right->place);
}

static void keep_live(StatementList *list)
{
    int kept = 0;
    for (int i = 0; i < list->count; i++)
        if (list->items[i]->live)
            list->items[kept++] = list->items[i];
    list->count = kept;
}

void draft_prune(Draft *draft)
{
    find_live(draft);
    keep_live(&draft->weights);
    keep_live(&draft->body);
    if (!draft->folding && draft->weights.count)
        qsort(draft->weights.items, (size_t)draft->weights.count, sizeof(Statement *), by_place);
}

DraftText draft_finish(Draft *draft)
{
    draft_prune(draft);
    StrBuf out = strbuf_new(draft->arena);
    print_list(&out, draft, &draft->inputs);
    print_list(&out, draft, &draft->weights);
    print_list(&out, draft, &draft->body);
    strbuf_puts(&out, "\n");
    for (int i = 0; i < draft->outputs.count; i++)
        print_statement(&out, draft, draft->outputs.items[i]);
    DraftText text = {.text = out.text, .length = out.length, .weight_count = draft->weights.count};
    text.weights = NEW_ARRAY(draft->arena, DraftWeight, text.weight_count);
    for (int i = 0; i < text.weight_count; i++) {
        const Statement *s = draft->weights.items[i];
        text.weights[i] = (DraftWeight){s->weight, s->type, s->order};
    }
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
