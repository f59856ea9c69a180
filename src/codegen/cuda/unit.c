#include "codegen/cuda/unit.h"

#include <string.h>

#include "base/diag.h"

void units_init(Arena *arena, UnitList *units)
{
    *units = (UnitList){.names = {.arena = arena}};
    units->last = &units->first;
}

// ---- what a unit declares ----

typedef struct TokenReader {
    Arena *arena;
    UnitList *units;
    const UnitSource *source;
    LineReader lines;
    int number;             // of the last line
    Paragraph *paragraph;   // NULL: the next unit begins one
    StrBuf comment;         // above what comes next
    StrBuf text;            // of the unit that is being read
    TextUnit *unit;         // NULL: none is
    int depth;              // of braces
    char last;              // character of code
} TokenReader;

static void declare(TokenReader *reader, Slice name, Slice arguments)
{
    if (!name.start)
        return;
    Declaration *declaration = NEW(reader->arena, Declaration);
    *declaration = (Declaration){
        .name = name, .arguments = arguments, .unit = reader->unit, .next = reader->unit->declarations};
    reader->unit->declarations = declaration;
    reader->units->declaration_count++;
}

/* Behind `name =`: up to the ; and on the way the other names of `constexpr int A = 1, B = 2;` */
static void read_initializers(TokenReader *reader, Slice *rest)
{
    Slice token, name = {0};
    bool behind_comma = false;
    while (token_read(rest, &token) && *token.start != ';') {
        if (strchr("({[", *token.start))
            token_read_group(rest, *token.start);
        else if (*token.start == '=' && name.start && *rest->start != '=')
            declare(reader, name, (Slice){0});
        name = behind_comma && is_name(token) ? token : (Slice){0};
        behind_comma = *token.start == ',';
    }
}

static bool takes_brackets(Slice word)
{
    return slice_equals(word, "alignas") || slice_equals(word, "__align__") ||
           slice_equals(word, "__launch_bounds__");
}

/* `struct B : A {`, not `A::B`. */
static bool is_colon(Slice token)
{
    return *token.start == ':' && token.end[0] != ':' && token.start[-1] != ':';
}

/* Declared is the last name before a ( { [ = ; or : outside of < >. */
static void read_declaration(TokenReader *reader, Slice rest)
{
    Slice name = {0}, arguments = {0}, token;
    while (token_read(&rest, &token)) {
        if (takes_brackets(token)) {
            if (token_read(&rest, &token))
                token_read_group(&rest, '(');
        } else if (is_name(token)) {
            name = token;
            arguments = (Slice){0};
        } else if (*token.start == '<') {
            arguments = token_read_group(&rest, '<');
        } else if (strchr("({[=;", *token.start) || is_colon(token)) {
            const char *start = arguments.start ? arguments.start : rest.start;   // <float>(float a)
            if (*token.start == '(')
                arguments = (Slice){start, token_read_group(&rest, '(').end};
            declare(reader, name, arguments);
            if (*token.start == '=')
                read_initializers(reader, &rest);
            return;
        }
    }
}

/* `constexpr int A = 1;   // why` or several definitions on lines of one unit, which end where braces do. */
static void read_declarations(TokenReader *reader)
{
    Slice rest = slice_of(reader->unit->text), first = rest, token;
    token_read(&first, &token);
    if (*token.start == '#') {
        token_read(&first, &token);
        if (slice_equals(token, "include"))
            reader->unit->kind = UNIT_ROOT;
        else if (slice_equals(token, "define") && token_read(&first, &token))
            declare(reader, token, (Slice){0});
    } else if (slice_equals(token, "static_assert")) {
        reader->unit->kind = UNIT_CHECK;
    } else {
        read_declaration(reader, rest);
        if (strstr(reader->unit->text, "__global__ void"))
            reader->unit->kind = UNIT_ROOT;
    }
}

// ---- lines to units ----

/* What was gathered; the buffer is used again. */
static const char *take_text(const TokenReader *reader, StrBuf *buffer)
{
    const char *text = buffer->length ? arena_strndup(reader->arena, buffer->text, buffer->length) : "";
    buffer->length = 0;
    return text;
}

static void begin_unit(TokenReader *reader, const Line *line)
{
    TextUnit *unit = NEW(reader->arena, TextUnit);
    unit->file = reader->source->file;
    unit->place = reader->source->place;
    unit->line = line->number;
    unit->condition = line_condition(&reader->lines);
    unit->comment = "";
    if (!reader->paragraph) {
        reader->paragraph = NEW(reader->arena, Paragraph);
        reader->paragraph->comment = take_text(reader, &reader->comment);
    } else {
        unit->comment = take_text(reader, &reader->comment);
    }
    unit->paragraph = reader->paragraph;
    reader->depth = 0;
    reader->unit = unit;
    *reader->units->last = unit;
    reader->units->last = &unit->next;
}

static void end_unit(TokenReader *reader)
{
    reader->unit->text = take_text(reader, &reader->text);
    read_declarations(reader);
    reader->unit = NULL;
}

/* A comment that a blank line follows belongs to no definition. */
static void end_paragraph(TokenReader *reader, const Line *line)
{
    reader->paragraph = NULL;
    if (!reader->comment.length)
        return;
    begin_unit(reader, line);
    reader->unit->kind = UNIT_COMMENT;
    reader->unit->text = "";
    reader->unit = NULL;
    reader->paragraph = NULL;
}

static bool is_complete(const TokenReader *reader, Slice line)
{
    if (reader->text.text[0] == '#')
        return slice_length(line) < 2 || line.end[-2] != '\\';
    return reader->depth == 0 && (reader->last == ';' || reader->last == '}');
}

static void add_line(TokenReader *reader, const Line *line)
{
    if (!reader->unit) {
        begin_unit(reader, line);
        reader->number = line->number - 1;
    }
    if (line->arch > reader->unit->arch)
        reader->unit->arch = line->arch;
    for (; reader->lines.target->keeps_lines && reader->number + 1 < line->number; reader->number++)
        strbuf_putc(&reader->text, '\n');
    strbuf_write(&reader->text, line->text.start, slice_length(line->text));
    reader->number = line->number;
    if (!line->is_directive) {
        /* Lines are read one by one: what a string that goes on in the next line holds would be taken for code. */
        if (!token_count_braces(line->text, &reader->depth, &reader->last))
            fatal(EXIT_INPUT, "%s:%d: a string does not end in its line", reader->source->file, line->number);
        if (is_complete(reader, line->text))
            end_unit(reader);
    }
}

void units_read(Arena *arena, UnitList *units, const TextTarget *target, UnitSource source)
{
    TokenReader reader = {.arena = arena, .units = units, .source = &source};
    reader.lines = lines_of(arena, target, slice_of(source.text));
    reader.lines.number = source.before;
    reader.comment = strbuf_new(arena);
    reader.text = strbuf_new(arena);
    Line line;
    while (line_next(&reader.lines, &line)) {
        if (reader.unit)
            add_line(&reader, &line);
        else if (line.is_directive)
            continue;   // line_condition() knows
        else if (line_is_blank(line.text))
            end_paragraph(&reader, &line);
        else if (slice_starts(line.text, "//"))
            strbuf_write(&reader.comment, line.text.start, slice_length(line.text));
        else
            add_line(&reader, &line);
    }
    if (reader.unit)
        fatal(EXIT_INPUT, "%s:%d: this definition does not end", source.file, reader.unit->line);
    end_paragraph(&reader, &line);
}

// ---- names ----

void units_name(UnitList *units)
{
    for (TextUnit *unit = units->first; unit; unit = unit->next)
        for (Declaration *declaration = unit->declarations; declaration; declaration = declaration->next) {
            void **known = word_place(&units->names, declaration->name);
            Declaration *first = *known ? *known : declaration;
            first->alone = !*known;
            declaration->first = *known = first;
        }
}

Declaration *units_find(const UnitList *units, Slice name) { return word_find(&units->names, name); }
