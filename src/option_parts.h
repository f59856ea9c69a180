// What the parts of the command line's reader share.
#pragma once
#include "base/diag.h"
#include "options.h"

#define usage_error(...) fatal(EXIT_USAGE, __VA_ARGS__)

/* The command line as written; `Options` is completed from it when all of it has been seen. */
typedef struct CommandLine {
    Arena *arena;
    Options *options;
    const char *output;     // -o
    const char *name;       // --name
    bool asked[ARTEFACT_KINDS];   // --emit KIND without a file
    bool depfile;           // -MD
    bool explain;           // `rollerc explain`
    const char *effort;     // --effort
    bool top_k;             // --top-k is given
    const char *colour;
} CommandLine;

// ---- option_words.c ----

/* The word's place among the choices. */
int option_choose(Arena *arena, const char *option, const char *word, const char *const *choices, int count);
/* --color auto, always or never */
const char *option_colour(Arena *arena, const char *word);
/* Of the kernel and of the outputs, where nothing else is said. */
char *option_stem(Arena *arena, const char *path);

/* --bind NAME=VALUE */
void option_add_binding(CommandLine *line, const char *text);
/* --precision, --io-precision: f32, f16 or bf16 */
DType option_precision(CommandLine *line, const char *option, const char *word);
/* --layout auto, nchw or nhwc */
OnnxLayout option_layout(CommandLine *line, const char *word);

// ---- option_outputs.c ----

void option_add_artefact(CommandLine *line, ArtefactKind kind, const char *path, const char *option);
/* KIND[=FILE],KIND[=FILE],… */
void option_add_emits(CommandLine *line, const char *list);
/* -o first, then what --emit named without a file: beside the main artefact, under its name. */
void option_complete_artefacts(CommandLine *line);
/* `rollerc explain`: in words on stdout, if nothing else is said. A ranking is not compiled: little goes with
   it. */
void option_complete_explanation(CommandLine *line);
/* What can be made of a ranking alone. */
void option_check_explanation(const Options *options);
/* What is written later would take the place of what was written, or read, before. */
void option_protect_files(Arena *arena, const Options *options);
/* The same of one that is read, */
void option_protect_input(Arena *arena, const Options *options, const char *input);
/* and of the file that a model's weights go to. */
void option_protect_from_weights(Arena *arena, const Options *options, const char *weights);
void option_complete_depfile(CommandLine *line);
