// Templates: ordinary CUDA files with default parameters between two marker lines. A kernel is the template with
// that block replaced; the body is never edited.
#pragma once
#include <stdbool.h>

#include "base/strbuf.h"

typedef struct Template {
    const char *path;    // "templates/matmul.cu"
    const char *about;   // the comment at its top
    const char *head;    // in its namespace before the block
    const char *body;    // and after it
    int head_line, body_line;   // of the file: where they begin
} Template;

/* The source of templates: NULL for those in the binary, else a folder with the same names. */
typedef struct TemplateStore {
    Arena *arena;
    const char *folder;
    bool line_directives;   // emit #line, for editors of templates
} TemplateStore;

/* Marks where the emitted file itself continues, until its lines are counted; nothing else looks like it. */
#define TEMPLATE_OWN_LINE "#line 0\n"

/* A file without the markers is an error (EXIT_INPUT if it came from the user's folder). */
Template template_read(const TemplateStore *store, const char *path);

/* Its path in the user's folder. */
const char *template_place(const TemplateStore *store, const char *path);

/* One hash for all templates that there are: of the list of their hashes that sha256sum would print, sorted
   by path. */
const char *templates_sha256(const TemplateStore *store);

/* Any file of templates/ as text: those of the prelude. */
const char *template_text(const TemplateStore *store, const char *path);
