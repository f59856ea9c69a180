// Templates: ordinary CUDA files with default parameters between two marker lines. A kernel is the template with that
// block replaced; nothing is ever pasted into its body.
#pragma once
#include <stdbool.h>

#include "base/strbuf.h"

typedef struct Template {
    const char *path;   // "templates/matmul.cu"
    const char *head;   // up to the first marker line, without the #include of the prelude
    size_t head_length;
    const char *body;   // after the last marker line
    size_t body_length;
    int body_line;   // line of `body` in the file
} Template;

/* Where templates are read from: NULL for the ones inside the binary, else a folder that holds the same names. */
typedef struct TemplateStore {
    Arena *arena;
    const char *folder;
    bool line_directives;   // #line in what is emitted, for whoever edits templates; else comments name the places
} TemplateStore;

/* Says that what follows in an emitted file begins at `line` of a template. */
void template_cite(StrBuf *out, const TemplateStore *store, const char *path, int line);

/* A file without the markers is an error (EXIT_INPUT if it came from the user's folder). */
Template template_read(const TemplateStore *store, const char *path);

/* Where it lies in the user's folder. */
const char *template_place(const TemplateStore *store, const char *path);

/* One hash for all templates that there are: of the list of their hashes that sha256sum would print, sorted by path. */
const char *templates_sha256(const TemplateStore *store);

/* Any file of templates/ as text: those of the prelude. */
const char *template_text(const TemplateStore *store, const char *path);
