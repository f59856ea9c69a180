#include <string.h>

#include "codegen/cuda/trim_parts.h"

typedef struct Writer {
    StrBuf *out;
    const Trim *trim;
    bool members;             // of a struct
    const TextUnit *before;   // was written last; NULL: nothing was
    bool is_else;             // behind an #else
} Writer;

static int line_count(const char *text)
{
    int lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static bool same(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

/* Under --line-directives, each place where lines do not simply go on. */
static void cite(const Writer *writer, const TextUnit *unit, int line)
{
    const TextUnit *before = writer->before;
    bool goes_on = before && same(before->file, unit->file) && before->line + line_count(before->text) == line;
    if (unit->file && !goes_on && writer->trim->store->line_directives)
        strbuf_printf(writer->out, "#line %d \"%s\"\n", line, unit->file);
}

/* Single lines stand together, whatever lies between them where they come from. */
static bool is_line(const TextUnit *unit)
{
    return !*unit->comment && !*unit->paragraph->comment && line_count(unit->text) == 1;
}

/* Of several constants in a line some may not be used. */
static bool declares_unused(const TextUnit *unit)
{
    bool is_constant = strncmp(unit->text, "constexpr", strlen("constexpr")) == 0;
    const Declaration *declared = is_constant ? unit->declarations : NULL;
    while (declared && declared->first->used)
        declared = declared->next;
    return declared != NULL;
}

static bool lies_in(const TextUnit *unit, const char *folder)
{
    return unit && unit->file && strncmp(unit->file, folder, strlen(folder)) == 0;
}
static bool is_prelude(const TextUnit *unit) { return lies_in(unit, PRELUDE); }
static bool is_intrinsic(const TextUnit *unit) { return lies_in(unit, INTRINSICS); }

/* What was written last ends before `next`, NULL: with all. */
static void end_unit(Writer *writer, const TextUnit *next, bool goes_on)
{
    if (writer->before && writer->before->condition && !goes_on)
        strbuf_puts(writer->out, "#endif\n");
    if (is_intrinsic(writer->before) && !is_intrinsic(next))
        strbuf_puts(writer->out, INTRINSICS_END);
}

/* `unit` holds where the one before does not, which its #else says. */
static bool is_otherwise(const Writer *writer, const TextUnit *unit)
{
    const char *one = writer->before ? writer->before->condition : NULL, *other = unit->condition;
    if (!one || !other || writer->is_else || strpbrk(one, "&|"))
        return false;
    return (*other == '!' && same(other + 1, one)) || (*one == '!' && same(one + 1, other));
}

static void write_unit(Writer *writer, const TextUnit *unit)
{
    const TextUnit *before = writer->before;
    bool begins = !before || before->paragraph != unit->paragraph;
    bool stays = is_intrinsic(before) == is_intrinsic(unit);
    bool otherwise = stays && is_otherwise(writer, unit);
    bool goes_on = before && stays && (same(before->condition, unit->condition) || otherwise);
    const char *comment = begins ? unit->paragraph->comment : "";
    end_unit(writer, unit, goes_on);
    writer->is_else = goes_on && (otherwise || writer->is_else);
    bool separate = before && !otherwise && (begins || !goes_on) && !is_prelude(unit);   // what a file has of the prelude is dense
    if (separate && !(goes_on && is_line(before) && is_line(unit)))
        strbuf_putc(writer->out, '\n');
    if (!stays && is_intrinsic(unit))
        strbuf_puts(writer->out, INTRINSICS_BEGIN);
    if (otherwise)
        strbuf_puts(writer->out, "#else\n");
    if (unit->condition && !goes_on)
        strbuf_printf(writer->out, "%s\n", condition_opening(writer->trim->arena, unit->condition));
    cite(writer, unit, unit->line - line_count(comment) - line_count(unit->comment));
    strbuf_puts(writer->out, comment);
    strbuf_puts(writer->out, unit->comment);
    if (writer->members) {
        trim_write_member(writer->out, unit->text);
    } else {
        strbuf_puts(writer->out, declares_unused(unit) ? "[[maybe_unused]] " : "");
        strbuf_puts(writer->out, unit->text);
    }
    writer->before = unit;
}

bool trim_write_units(StrBuf *out, const Trim *trim, const UnitList *units, UnitChoice choice)
{
    Writer writer = {.out = out, .trim = trim, .members = choice.members};
    for (const TextUnit *unit = units->first; unit; unit = unit->next)
        if (unit->taken && unit->place == choice.place && unit->leads == choice.leading)
            write_unit(&writer, unit);
    end_unit(&writer, NULL, false);
    return writer.before != NULL;
}

static bool write_place(StrBuf *out, const Trim *trim, const UnitList *units, UnitPlace place)
{
    return trim_write_units(out, trim, units, (UnitChoice){.place = place});
}

/* `#define NAME(arguments) …` or `#define NAME …` */
static void write_ends(StrBuf *out, const UnitList *units)
{
    for (const TextUnit *unit = units->first; unit; unit = unit->next)
        if (unit->taken && strncmp(unit->text, "#define", strlen("#define")) == 0 &&
            unit->declarations->first == unit->declarations) {
            Slice name = unit->declarations->name;
            strbuf_printf(out, "#undef %.*s\n", (int)slice_length(name), name.start);
        }
}

void trim_write_prelude(StrBuf *out, const Trim *trim)
{
    const UnitList *units = &trim->prelude.units;
    write_place(out, trim, units, PLACE_BEFORE);
    strbuf_printf(out, "namespace %s" PRELUDE_SUFFIX " {   // what the kernels use of " PRELUDE "\n", trim->name);
    write_place(out, trim, units, PLACE_WITHIN);
    strbuf_printf(out, "}   // namespace %s" PRELUDE_SUFFIX "\n\n", trim->name);
}

void trim_write_main(StrBuf *out, const Trim *trim)
{
    write_place(out, trim, &trim->prelude.units, PLACE_BEFORE);
    strbuf_puts(out, "\n" BEGIN_MAIN "\n");
    write_place(out, trim, &trim->prelude.units, PLACE_WITHIN);
    strbuf_puts(out, "\n" END_MAIN "\n");
}

/* The kernel's parameters, those that lead or the others; as a struct where it shares its body. */
static void write_parameters(StrBuf *out, const Trim *trim, const TrimScope *scope, bool leading)
{
    UnitChoice choice = {.place = PLACE_WITHIN, .leading = leading, .members = scope->leader};
    if (!scope->leader) {
        trim_write_units(out, trim, &scope->units, choice);
        return;
    }
    StrBuf members = strbuf_new(trim->arena);
    trim_write_units(&members, trim, &scope->units, choice);
    strbuf_puts(out, leading ? "struct Constants {\n" : "struct Parameters : Constants {\n");
    trim_indent(out, members.text);
    strbuf_puts(out, "};\n");
}

void trim_write_constants(StrBuf *out, const Trim *trim, int kernel)
{
    const TrimScope *scope = &trim->kernels[kernel];
    strbuf_printf(out, "namespace %s_scope {\n%s", scope->text->entry, scope->text->provenance);
    write_parameters(out, trim, scope, true);
    strbuf_printf(out, "}   // namespace %s_scope\n\n", scope->text->entry);
}

static void write_body(StrBuf *out, const Trim *trim, const TrimScope *scope)
{
    if (!scope->leader) {
        trim_write_units(out, trim, &scope->units, (UnitChoice){.place = PLACE_BEHIND});
        return;
    }
    if (scope->leader == scope) {
        strbuf_puts(out, "// The body of this kernel and of kernels below with other parameters.\n");
        strbuf_printf(out, "%s\nusing Body = SharedBody<Parameters>;\n", scope->body);
    } else {
        strbuf_printf(out, "using Body = %s_scope::SharedBody<Parameters>;\n", scope->leader->text->entry);
    }
    strbuf_puts(out, scope->entry);
}

/* What a template does stands above the first kernel that has it. */
static const char *about(const Trim *trim, const TrimScope *scope)
{
    const TrimScope *first = trim->kernels;
    while (!same(first->text->template.path, scope->text->template.path))
        first++;
    return first == scope ? scope->text->template.about : "";
}

void trim_write_kernel(StrBuf *out, const Trim *trim, int kernel)
{
    const TrimScope *scope = &trim->kernels[kernel];
    strbuf_printf(out, "%snamespace %s_scope {\nusing namespace %s" PRELUDE_SUFFIX ";\n",
                  about(trim, scope), scope->text->entry, trim->name);
    if (write_place(out, trim, &scope->units, PLACE_BEFORE))
        strbuf_putc(out, '\n');
    strbuf_puts(out, trim->store->line_directives ? TEMPLATE_OWN_LINE : "");
    write_parameters(out, trim, scope, false);
    strbuf_puts(out, FUNCTIONS_END);
    write_body(out, trim, scope);
    write_ends(out, &scope->units);
    strbuf_printf(out, "}   // namespace %s_scope\n\n", scope->text->entry);
}
