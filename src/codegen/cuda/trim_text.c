#include <string.h>

#include "codegen/cuda/trim_parts.h"

typedef struct Writer {
    StrBuf *out;
    const Trim *trim;
    const TextUnit *before;   // was written last; NULL: nothing was
} Writer;

static int line_count(const char *text)
{
    int lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static bool same(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

/* A template once, the prelude as a whole; under --line-directives, each place where lines do not simply go
   on. */
static void cite(const Writer *writer, const TextUnit *unit, int line)
{
    const TextUnit *before = writer->before;
    bool goes_on = before && same(before->file, unit->file) &&
                   (!writer->trim->store->line_directives || before->line + line_count(before->text) == line);
    bool is_prelude = unit->file && !strncmp(unit->file, PRELUDE, strlen(PRELUDE));
    if (unit->file && !goes_on && !(is_prelude && !writer->trim->store->line_directives))
        template_cite(writer->out, writer->trim->store, unit->file, line);
}

/* Single lines stand together, whatever lies between them where they come from. */
static bool is_line(const TextUnit *unit)
{
    return !*unit->comment && !*unit->paragraph->comment && line_count(unit->text) == 1;
}

static void write_unit(Writer *writer, const TextUnit *unit)
{
    const TextUnit *before = writer->before;
    bool begins = !before || before->paragraph != unit->paragraph;
    bool goes_on = before && same(before->condition, unit->condition);
    const char *comment = begins ? unit->paragraph->comment : "";
    if (before && before->condition && !goes_on)
        strbuf_puts(writer->out, "#endif\n");
    if (before && (begins || !goes_on) && !(goes_on && is_line(before) && is_line(unit)))
        strbuf_putc(writer->out, '\n');
    if (unit->condition && !goes_on)
        strbuf_printf(writer->out, "%s\n", condition_opening(writer->trim->arena, unit->condition));
    cite(writer, unit, unit->line - line_count(comment) - line_count(unit->comment));
    strbuf_puts(writer->out, comment);
    strbuf_puts(writer->out, unit->comment);
    strbuf_puts(writer->out, unit->text);
    writer->before = unit;
}

static void end_writing(Writer *writer)
{
    if (writer->before && writer->before->condition)
        strbuf_puts(writer->out, "#endif\n");
}

/* Those of a place, or those that lead. */
static bool write_place(StrBuf *out, const Trim *trim, const UnitList *units, UnitPlace place, bool leading)
{
    Writer writer = {.out = out, .trim = trim};
    for (const TextUnit *unit = units->first; unit; unit = unit->next)
        if (unit->taken && unit->place == place && unit->leads == leading)
            write_unit(&writer, unit);
    end_writing(&writer);
    return writer.before != NULL;
}

void trim_write_prelude(StrBuf *out, const Trim *trim)
{
    const UnitList *units = &trim->prelude.units;
    strbuf_puts(out, "// What it uses of " PRELUDE ":\n");
    write_place(out, trim, units, PLACE_BEFORE, false);
    strbuf_puts(out, "\nnamespace rollerc {\n");
    write_place(out, trim, units, PLACE_WITHIN, false);
    strbuf_puts(out, "}   // namespace rollerc\n\n");
    if (write_place(out, trim, units, PLACE_BEHIND, false))
        strbuf_putc(out, '\n');
}

void trim_write_main(StrBuf *out, const Trim *trim)
{
    write_place(out, trim, &trim->prelude.units, PLACE_BEFORE, false);
    strbuf_puts(out, "\n" BEGIN_MAIN "\n");
    write_place(out, trim, &trim->prelude.units, PLACE_WITHIN, false);
    strbuf_puts(out, "\n" END_MAIN "\n");
}

void trim_write_constants(StrBuf *out, const Trim *trim, int kernel)
{
    const TrimScope *scope = &trim->kernels[kernel];
    strbuf_printf(out, "namespace %s_scope {\n%s", scope->text->entry, scope->text->provenance);
    write_place(out, trim, &scope->units, PLACE_WITHIN, true);
    strbuf_printf(out, "// </rollerc>\n}   // namespace %s_scope\n\n", scope->text->entry);
}

void trim_write_kernel(StrBuf *out, const Trim *trim, int kernel)
{
    const TrimScope *scope = &trim->kernels[kernel];
    strbuf_printf(out, "%s\nnamespace %s_scope {\nusing namespace rollerc;\n", scope->text->template.about,
                  scope->text->entry);
    if (write_place(out, trim, &scope->units, PLACE_BEFORE, false))
        strbuf_putc(out, '\n');
    strbuf_printf(out, "%s// <rollerc: functions>\n", trim->store->line_directives ? TEMPLATE_OWN_LINE : "");
    write_place(out, trim, &scope->units, PLACE_WITHIN, false);
    strbuf_puts(out, "// </rollerc>\n");
    write_place(out, trim, &scope->units, PLACE_BEHIND, false);
    strbuf_printf(out, "}   // namespace %s_scope\n\n", scope->text->entry);
}
