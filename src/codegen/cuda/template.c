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
#define BEGIN "namespace KERNEL {\nusing namespace rollerc;\n"
#define END "}   // namespace KERNEL\n"

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

/* Behind the first `word` from `at` on; a template without it is wrong. */
static const char *find_behind(const TemplateStore *store, const char *path, const char *at, const char *word)
{
    const char *found = strstr(at, word);
    if (!found)
        fatal(store->folder ? EXIT_INPUT : EXIT_BUG, "'%s' lacks '%.*s' in its place", path,
              (int)strcspn(word, "\n"), word);
    return found + strlen(word);
}

Template template_read(const TemplateStore *store, const char *path)
{
    const char *text = template_text(store, path);
    const char *include = find_behind(store, path, text, INCLUDE);
    const char *head = find_behind(store, path, include, BEGIN);
    const char *block = find_behind(store, path, head, OPENING);
    const char *body = find_behind(store, path, block, CLOSING);
    const char *end = find_behind(store, path, body, END);
    return (Template){
        .path = path,
        .about = arena_strndup(store->arena, text, (size_t)(include - text) - strlen(INCLUDE)),
        .head = arena_strndup(store->arena, head, (size_t)(block - head) - strlen(OPENING)),
        .body = arena_strndup(store->arena, body, (size_t)(end - body) - strlen(END)),
        .head_line = count_lines(text, head) + 1,
        .body_line = count_lines(text, body) + 1,
    };
}
