#include "codegen/cuda/prelude.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"

#define ROOT "templates/prelude.cuh"
#define OPENING "// <rollerc: prelude>\n"
#define CLOSING "// </rollerc>\n"
#define INCLUDE "#include \"prelude/"

typedef struct Slice {
    const char *start, *end;
} Slice;

typedef struct Declaration {
    Slice name;
    Slice arguments;             // the ( ) or < > behind the name
    struct Declaration *first;   // of that name; the others are overloads and specialisations
    bool used;                   // of the first one: the name occurs
    struct Declaration *next;    // of its part
} Declaration;

typedef struct File {
    const char *path;
    bool taken;   // a part of it
    struct File *next;
} File;

typedef struct Part {
    File *file;
    int line;
    Slice text;   // whole lines
    Declaration *declarations;
    bool taken;
    struct Part *next;
} Part;

typedef struct Prelude {
    const TemplateStore *store;
    File *files, **last_file;
    Part *parts, **last_part;
    int declaration_count, name_count;
    Declaration **names;   // the first declaration of each name, sorted
} Prelude;

// ---- tokens ----

static bool starts(Slice slice, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(slice.end - slice.start) >= length && memcmp(slice.start, word, length) == 0;
}

static bool equals(Slice slice, const char *word)
{
    return starts(slice, word) && (size_t)(slice.end - slice.start) == strlen(word);
}

static bool is_name_start(char c) { return isalpha((unsigned char)c) || c == '_'; }
static bool is_name_char(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Behind what is no token: white space, a comment, a string or a number; `at` where there is none of them. */
static const char *skip_one(const char *at, const char *end)
{
    Slice rest = {at, end};
    if (isspace((unsigned char)*at))
        return at + 1;
    if (starts(rest, "//")) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        return line_end ? line_end : end;
    }
    if (*at == '"' || *at == '\'') {
        for (const char *p = at + 1; p < end; p++)
            if (*p == '\\')
                p++;
            else if (*p == *at)
                return p + 1;
        return end;
    }
    if (isdigit((unsigned char)*at))
        while (at < end &&
               (is_name_char(*at) || *at == '.'))   // a sign behind an exponent is a token: that hurts nobody
            at++;
    return at;
}

/* The next name, or one character that is none; false at the end. */
static bool read_token(Slice *rest, Slice *token)
{
    const char *at = rest->start, *end = rest->end, *before;
    do {
        before = at;
        at = at < end ? skip_one(at, end) : at;
    } while (at != before);
    *token = (Slice){at, at};
    if (at < end)
        token->end++;
    if (at < end && is_name_start(*at))
        while (token->end < end && is_name_char(*token->end))
            token->end++;
    rest->start = token->end;
    return at < end;
}

/* The rest of ( ) or < >, whose first character has been read. */
static Slice read_group(Slice *rest, char open)
{
    Slice group = *rest, token;
    while (read_token(rest, &token) && *token.start != (open == '(' ? ')' : '>'))
        if (*token.start == '(' || *token.start == open)
            read_group(rest, *token.start);
    group.end = rest->start;
    return group;
}

static Slice next_line(Slice *rest)
{
    const char *newline = memchr(rest->start, '\n', (size_t)(rest->end - rest->start));
    Slice line = {rest->start, newline ? newline + 1 : rest->end};
    rest->start = line.end;
    return line;
}

static bool is_blank(Slice line)
{
    while (line.start < line.end && isspace((unsigned char)*line.start))
        line.start++;
    return line.start == line.end;
}

// ---- what a part declares ----

static void declare(Prelude *prelude, Part *part, Slice name, Slice arguments)
{
    if (!name.start)
        return;
    Declaration *declaration = NEW(prelude->store->arena, Declaration);
    *declaration = (Declaration){.name = name, .arguments = arguments, .next = part->declarations};
    part->declarations = declaration;
    prelude->declaration_count++;
}

/* `#` has been read. */
static void read_directive(Prelude *prelude, Part *part, Slice *rest)
{
    Slice token, line;
    if (read_token(rest, &token) && equals(token, "define") && read_token(rest, &token))
        declare(prelude, part, token, (Slice){0});
    do {
        line = next_line(rest);
    } while (line.end - line.start >= 2 && line.end[-2] == '\\');
}

/* Behind the end of a declaration whose name has been read: `;` or a pair of braces. */
static void skip_definition(Slice *rest, int depth)
{
    Slice token;
    while (read_token(rest, &token)) {
        depth += (*token.start == '{') - (*token.start == '}');
        if (depth == 0 && (*token.start == ';' || *token.start == '}'))
            return;
    }
}

/* Declared is the last name before a ( { [ = or ; outside of < >. */
static void read_declarations(Prelude *prelude, Part *part)
{
    Slice rest = part->text, name = {0}, arguments = {0}, token;
    while (read_token(&rest, &token)) {
        if (*token.start == '#') {
            read_directive(prelude, part, &rest);
        } else if (equals(token, "alignas") || equals(token, "__align__") || equals(token, "static_assert")) {
            if (read_token(&rest, &token))
                read_group(&rest, '(');
        } else if (is_name_start(*token.start)) {
            name = token;
            arguments = (Slice){0};
        } else if (*token.start == '<') {
            arguments = read_group(&rest, '<');
        } else if (strchr("({[=;", *token.start)) {
            if (*token.start == '(')
                arguments = read_group(&rest, '(');
            declare(prelude, part, name, arguments);
            if (*token.start != ';')
                skip_definition(&rest, *token.start == '{');
            name = arguments = (Slice){0};
        }
    }
}

static int compare_slices(Slice a, Slice b)
{
    size_t length_a = (size_t)(a.end - a.start), length_b = (size_t)(b.end - b.start);
    int order = memcmp(a.start, b.start, length_a < length_b ? length_a : length_b);
    return order ? order : (length_a > length_b) - (length_a < length_b);
}

static Declaration *find_name(const Prelude *prelude, Slice name)
{
    int low = 0, high = prelude->name_count;
    while (low < high) {
        int middle = (low + high) / 2;
        int order = compare_slices(prelude->names[middle]->name, name);
        if (order == 0)
            return prelude->names[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Parts in their order, so that the first declaration of a name is found first. */
static void collect_names(Prelude *prelude)
{
    prelude->names = NEW_ARRAY(prelude->store->arena, Declaration *, prelude->declaration_count);
    for (Part *part = prelude->parts; part; part = part->next)
        for (Declaration *declaration = part->declarations; declaration; declaration = declaration->next) {
            Declaration *known = find_name(prelude, declaration->name);
            declaration->first = known ? known : declaration;
            if (known)
                continue;
            int at = prelude->name_count++;
            for (; at > 0 && compare_slices(prelude->names[at - 1]->name, declaration->name) > 0; at--)
                prelude->names[at] = prelude->names[at - 1];
            prelude->names[at] = declaration;
        }
}

// ---- files and parts ----

static File *add_file(Prelude *prelude, const char *path)
{
    File *file = NEW(prelude->store->arena, File);
    file->path = path;
    *prelude->last_file = file;
    prelude->last_file = &file->next;
    return file;
}

static Part *add_part(Prelude *prelude, File *file, int line, const char *start)
{
    Part *part = NEW(prelude->store->arena, Part);
    *part = (Part){.file = file, .line = line, .text = {start, start}};
    *prelude->last_part = part;
    prelude->last_part = &part->next;
    return part;
}

static Slice whole_text(const char *text) { return (Slice){text, text + strlen(text)}; }

/* How many braces and #if are open after the line, if `open` were before it. */
static int open_after(int open, Slice line)
{
    if (*line.start == '#')
        return open + starts(line, "#if") - starts(line, "#endif");
    Slice token;
    while (read_token(&line, &token))
        open += (*token.start == '{') - (*token.start == '}');
    return open;
}

static void read_parts(Prelude *prelude, const char *path)
{
    File *file = add_file(prelude, path);
    Slice rest = whole_text(template_text(prelude->store, path));
    Part *part = NULL;
    int open = 0;
    for (int number = 1; rest.start < rest.end; number++) {
        Slice line = next_line(&rest);
        if (open == 0 && is_blank(line)) {
            part = NULL;
            continue;
        }
        if (!part)
            part = add_part(prelude, file, number, line.start);
        part->text.end = line.end;
        open = open_after(open, line);
    }
}

/* Its own lines are always taken, for each of its #includes the parts of that file that are used. */
static void read_root(Prelude *prelude)
{
    const char *text = template_text(prelude->store, ROOT);
    const char *opening = strstr(text, OPENING), *closing = opening ? strstr(opening, CLOSING) : NULL;
    if (!closing)
        fatal(prelude->store->folder ? EXIT_INPUT : EXIT_BUG,
              "'" ROOT "' lacks the lines '// <rollerc: prelude>' and '// </rollerc>'");
    File *file = add_file(prelude, ROOT);
    Slice rest = {text, closing};
    Part *part = NULL;
    for (int number = 1; rest.start < rest.end; number++) {
        Slice line = next_line(&rest);
        bool include = starts(line, INCLUDE);
        if (line.start <= opening || include || is_blank(line))
            part = NULL;
        else if (!part)
            part = add_part(prelude, file, number, line.start);
        if (part) {
            part->taken = true;
            part->text.end = line.end;
        } else if (include && line.start > opening) {
            const char *name = line.start + strlen(INCLUDE);
            read_parts(prelude, arena_printf(prelude->store->arena, "templates/prelude/%.*s",
                                             (int)strcspn(name, "\"\n"), name));
        }
    }
}

static Prelude *read_prelude(const TemplateStore *store)
{
    Prelude *prelude = NEW(store->arena, Prelude);
    prelude->store = store;
    prelude->last_file = &prelude->files;
    prelude->last_part = &prelude->parts;
    read_root(prelude);
    return prelude;
}

// ---- what is taken ----

static void use_names(const Prelude *prelude, Slice text)
{
    Slice token;
    while (read_token(&text, &token)) {
        Declaration *declaration = is_name_start(*token.start) ? find_name(prelude, token) : NULL;
        if (declaration)
            declaration->used = true;
    }
}

/* Nothing can call an overload for a type that does not occur. */
static bool is_wanted(const Prelude *prelude, const Declaration *declaration)
{
    if (declaration->first == declaration || !declaration->first->used)
        return declaration->first->used;
    Slice rest = declaration->arguments, token;
    while (read_token(&rest, &token)) {
        const Declaration *type = find_name(prelude, token);
        if (type && !type->used)
            return false;
    }
    return true;
}

/* A part that declares nothing, a heading, comes with the others of its file. */
static bool is_part_wanted(const Prelude *prelude, const Part *part)
{
    for (const Declaration *declaration = part->declarations; declaration; declaration = declaration->next)
        if (is_wanted(prelude, declaration))
            return true;
    return !part->declarations && part->file->taken;
}

static void take_parts(Prelude *prelude)
{
    bool more = true;
    while (more) {
        more = false;
        for (Part *part = prelude->parts; part; part = part->next) {
            if (part->taken || !is_part_wanted(prelude, part))
                continue;
            part->taken = part->file->taken = more = true;
            use_names(prelude, part->text);
        }
    }
}

static int line_count(Slice text)
{
    int lines = 0;
    for (; text.start < text.end; text.start++)
        lines += *text.start == '\n';
    return lines;
}

/* Whether the lines of `part` do not simply go on from those of the part written before it. */
static bool begins_elsewhere(const Part *before, const Part *part)
{
    return !before || before->file != part->file || before->line + line_count(before->text) + 1 != part->line;
}

static void write_parts(StrBuf *out, const Prelude *prelude)
{
    const Part *before = NULL;
    for (const Part *part = prelude->parts; part; part = part->next) {
        if (!part->taken)
            continue;
        if (before)
            strbuf_putc(out, '\n');
        if (begins_elsewhere(before, part))
            template_cite(out, prelude->store, part->file->path, part->line);
        strbuf_write(out, part->text.start, (size_t)(part->text.end - part->text.start));
        before = part;
    }
}

void prelude_write(StrBuf *out, const TemplateStore *store, const char *text)
{
    Prelude *prelude = read_prelude(store);
    for (Part *part = prelude->parts; part; part = part->next)
        if (!part->taken)
            read_declarations(prelude, part);
    collect_names(prelude);
    use_names(prelude, whole_text(text));
    take_parts(prelude);
    write_parts(out, prelude);
}

const char *const *prelude_files(const TemplateStore *store)
{
    const Prelude *prelude = read_prelude(store);
    int count = 0;
    for (const File *file = prelude->files; file; file = file->next)
        count++;
    const char **paths = NEW_ARRAY(store->arena, const char *, count + 1);
    count = 0;
    for (const File *file = prelude->files; file; file = file->next)
        paths[count++] = file->path;
    return paths;
}
