#include "codegen/cuda/template.h"

#include <string.h>

#include "base/diag.h"
#include "base/embedded.h"
#include "base/hash.h"
#include "base/source.h"

#define FOLDER "templates/"
#define OPENING "// <rollerc: parameters>\n"
#define CLOSING "// </rollerc>\n"
#define INCLUDE "#include \"prelude.cuh\"\n"

const char *template_place(const TemplateStore *store, const char *path)
{
    return arena_printf(store->arena, "%s/%s", store->folder, path + strlen(FOLDER));
}

const char *template_text(const TemplateStore *store, const char *path)
{
    if (store->folder)
        return source_read(store->arena, template_place(store, path))->text;
    const EmbeddedFile *file = embedded_find(path);
    if (!file)
        fatal(EXIT_BUG, "'%s' is not in the binary", path);
    return file->text;
}

const char *templates_sha256(const TemplateStore *store)
{
    StrBuf list = strbuf_new(store->arena);
    for (const EmbeddedFile *file = embedded_files; file->path; file++) {
        bool is_template = strncmp(file->path, FOLDER, strlen(FOLDER)) == 0;
        if (!is_template)
            continue;
        const char *hash = file->sha256;
        if (store->folder)
            hash = hash_of_file(store->arena, template_place(store, file->path));
        if (hash)   // the user's folder may lack some
            strbuf_printf(&list, "%s  %s\n", hash, file->path);
    }
    return hash_of(store->arena, list.text, list.length);
}

static int count_lines(const char *text, const char *end)
{
    int lines = 0;
    for (; text < end; text++)
        lines += *text == '\n';
    return lines;
}

/* The head without its #include line: the prelude is in the emitted file already. */
static char *without_include(Arena *arena, const char *head, size_t length)
{
    char *copy = arena_strndup(arena, head, length);
    char *line = strstr(copy, INCLUDE);
    if (line)
        memmove(line, line + strlen(INCLUDE), strlen(line + strlen(INCLUDE)) + 1);
    return copy;
}

Template template_read(const TemplateStore *store, const char *path)
{
    const char *text = template_text(store, path);
    const char *opening = strstr(text, OPENING);
    const char *closing = opening ? strstr(opening, CLOSING) : NULL;
    if (!closing)
        fatal(store->folder ? EXIT_INPUT : EXIT_BUG,
              "'%s' lacks the lines '// <rollerc: parameters>' and '// </rollerc>'", path);
    const char *body = closing + strlen(CLOSING);
    const char *head = without_include(store->arena, text, (size_t)(opening - text));
    return (Template){
        .path = path,
        .head = head,
        .head_length = strlen(head),
        .body = body,
        .body_length = strlen(body),
        .body_line = count_lines(text, body) + 1,
    };
}

void template_cite(StrBuf *out, const TemplateStore *store, const char *path, int line)
{
    if (store->line_directives)
        strbuf_printf(out, "#line %d \"%s\"\n", line, path);
    else
        strbuf_printf(out, "// %s:%d\n", path, line);
}
