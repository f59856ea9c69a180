// Kernels of one template whose bodies are the same text share it: a struct over their parameters, which are
// structs, too.
#include <string.h>

#include "codegen/cuda/trim_parts.h"

enum { MAX_COLUMNS = 110 };

// ---- the kernel itself ----

/* `extern "C" __global__ void __launch_bounds__(BOUNDS) model_k2(SIGNATURE)` and `{`, in parts. */
typedef struct EntryParts {
    Slice bounds, signature, statements;
} EntryParts;

static Slice group_behind(Slice rest, const char *word)
{
    Slice token;
    while (token_read(&rest, &token))
        if (slice_equals(token, word) && token_read(&rest, &token))
            return token_read_group(&rest, '(');
    return (Slice){0};
}

static EntryParts entry_parts(const TextUnit *unit, const char *entry)
{
    EntryParts parts = {.bounds = group_behind(slice_of(unit->text), "__launch_bounds__"),
                        .signature = group_behind(slice_of(unit->text), entry)};
    parts.statements.start = strstr(parts.signature.end, "{\n");
    parts.statements.end = parts.statements.start + strlen(parts.statements.start);
    return parts;
}

/* `, const TensorMap &map_a` of each map in the kernel's signature, or `, map_a`. */
static void write_maps(StrBuf *out, const EntryParts *parts, bool declared)
{
    Slice rest = parts->signature, token;
    while (token_read(&rest, &token))
        if (slice_equals(token, "TensorMap") && token_read(&rest, &token))
            strbuf_printf(out, "%s%.*s", declared ? ", const TensorMap &" : ", ", (int)slice_length(token),
                          token.start);
}

/* As a function, which is given what `Tensors t` holds. */
static const char *run_text(Arena *arena, const KernelText *text, const EntryParts *parts)
{
    StrBuf out = strbuf_new(arena);
    const char *tensors = arena_printf(arena, "    const Tensors t = %s;", text->tensors);
    const char *begin = parts->statements.start, *found = strstr(begin, tensors);
    if (!found)
        return NULL;
    strbuf_puts(&out, "__device__ __forceinline__ void run(const Tensors &t");
    write_maps(&out, parts, true);
    strbuf_puts(&out, ")\n");
    strbuf_write(&out, begin, (size_t)(found - begin));
    found += strlen(tensors);
    strbuf_puts(&out, found + (*found == '\n'));
    return out.text;
}

/* With `Body::` in front of what the parameters or the body define. */
static void write_bounds(StrBuf *out, const TrimScope *scope, Slice bounds)
{
    Slice rest = bounds, token;
    const char *written = bounds.start;
    while (token_read(&rest, &token))
        if (is_name(token) && units_find(&scope->units, token)) {
            strbuf_write(out, written, (size_t)(token.start - written));
            strbuf_puts(out, "Body::");
            written = token.start;
        }
    strbuf_write(out, written, (size_t)(bounds.end - written));
}

static const char *entry_text(Arena *arena, const TrimScope *scope, const EntryParts *parts)
{
    StrBuf out = strbuf_new(arena);
    strbuf_puts(&out, "extern \"C\" __global__ void __launch_bounds__(");
    write_bounds(&out, scope, parts->bounds);
    strbuf_printf(&out, ") %s(%.*s)\n{\n    Body::run(%s", scope->text->entry,
                  (int)slice_length(parts->signature), parts->signature.start, scope->text->tensors);
    write_maps(&out, parts, false);
    strbuf_puts(&out, ");\n}\n");
    return out.text;
}

// ---- the body ----

static WordTable words_behind(Arena *arena, const TrimScope *scope)
{
    enum { CAPACITY = 1024 };   // a template of 700 lines has 500
    WordTable words = word_table_new(arena, CAPACITY);
    for (TextUnit *unit = scope->units.first; unit; unit = unit->next) {
        Slice rest = slice_of(unit->text), token;
        while (unit->taken && unit->place == PLACE_BEHIND && token_read(&rest, &token))
            if (is_name(token))
                *word_place(&words, token) = unit;
    }
    return words;
}

/* Behind others in its line, which ends where it is full. C++14 has no list of them: `using P::M, P::N;`. */
static void write_used(StrBuf *out, size_t *line, const char *prefix, Slice name)
{
    const char *text = arena_printf(out->arena, "using %s%.*s;", prefix, (int)slice_length(name), name.start);
    bool first = *line == 0, full = *line + strlen(" ") + strlen(text) > MAX_COLUMNS;
    strbuf_printf(out, "%s%s", first ? "    " : full ? "\n    " : " ", text);
    *line = (first || full ? strlen("    ") : *line + strlen(" ")) + strlen(text);
}

/* `using P::M; using P::N;`: what lies in a base that depends on P is not found without. False: a template is used,
   which this cannot say. */
static bool write_using(StrBuf *out, const TrimScope *scope, const WordTable *words, bool types)
{
    size_t line = 0;
    for (const TextUnit *unit = scope->units.first; unit; unit = unit->next)
        for (const Declaration *d = unit->declarations; d; d = d->next) {
            bool is_template, used = d == d->first && word_find(words, d->name);
            if (!unit->taken || unit->place != PLACE_WITHIN || !used ||
                trim_is_type(trim_leading_token(unit->text, &is_template)) != types)
                continue;
            if (is_template)
                return false;
            write_used(out, &line, types ? "typename P::" : "P::", d->name);
        }
    strbuf_puts(out, line ? "\n" : "");
    return true;
}

static TextUnit *entry_unit(const TrimScope *scope)
{
    TextUnit *entry = NULL;
    for (TextUnit *unit = scope->units.first; unit; unit = unit->next) {
        if (!unit->taken)
            continue;
        if (unit->place == PLACE_BEFORE || !trim_can_be_member(unit) || (unit->kind == UNIT_ROOT && entry))
            return NULL;
        entry = unit->kind == UNIT_ROOT ? unit : entry;
    }
    return entry;
}

/* NULL: it stays in its namespace. */
static const char *body_text(const Trim *trim, const TrimScope *scope)
{
    StrBuf out = strbuf_new(trim->arena), inner = strbuf_new(trim->arena);
    WordTable words = words_behind(trim->arena, scope);
    strbuf_puts(&out, "template <class P> struct SharedBody : P {\n");
    if (!write_using(&out, scope, &words, true) || !write_using(&out, scope, &words, false))
        return NULL;
    strbuf_putc(&out, '\n');
    trim_write_units(&inner, trim, &scope->units, (UnitChoice){.place = PLACE_BEHIND, .members = true});
    trim_indent(&out, inner.text);
    strbuf_puts(&out, "};\n");
    return out.text;
}

static bool has_same_template(const TrimScope *a, const TrimScope *b)
{
    return strcmp(a->text->template.path, b->text->template.path) == 0;
}

/* The text of its body, from which its kernel is written apart; of a template that another kernel has, too. */
static void find_body(const Trim *trim, TrimScope *scope)
{
    int same = 0;
    for (int k = 0; k < trim->kernel_count; k++)
        same += has_same_template(&trim->kernels[k], scope);
    TextUnit *unit = scope->text->shares_body && same > 1 ? entry_unit(scope) : NULL;
    if (!unit)
        return;
    EntryParts parts = entry_parts(unit, scope->text->entry);
    const char *own = unit->text, *run = run_text(trim->arena, scope->text, &parts);
    if (!run)
        return;
    unit->text = run;
    scope->body = body_text(trim, scope);
    scope->entry = entry_text(trim->arena, scope, &parts);
    unit->text = own;
}

static bool is_same_body(const TrimScope *a, const TrimScope *b)
{
    return a->body && b->body && has_same_template(a, b) && strcmp(a->body, b->body) == 0;
}

void trim_share_bodies(Trim *trim)
{
    for (int k = 0; k < trim->kernel_count; k++) {
        TrimScope *own = &trim->kernels[k];
        find_body(trim, own);
        TrimScope *first = trim->kernels;
        while (first < own && !is_same_body(first, own))
            first++;
        if (first < own)
            own->leader = first->leader = first;
    }
}
