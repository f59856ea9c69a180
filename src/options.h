// The command line as plain data. Everything is checked and completed here; nobody after this looks at argv.
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "front/lower.h"
#include "front/onnx/onnx.h"
#include "ir/eval.h"

/* What may be printed with `-d`. */
typedef enum DumpStage {
#define STAGE(id, what) STAGE_##id,
#include "stages.def"
#undef STAGE
    STAGE_COUNT
} DumpStage;

typedef enum ArtefactKind {
    ARTEFACT_CU, ARTEFACT_HEADER, ARTEFACT_PTX, ARTEFACT_CUBIN, ARTEFACT_JSON, ARTEFACT_TEXT, ARTEFACT_PAGE,
    ARTEFACT_KINDS
} ArtefactKind;

/* A file to write; "-" is stdout. */
typedef struct Artefact {
    ArtefactKind kind;
    const char *path;
    const char *option;   // that asks for it, as it would be written: "--emit header=k.h"
} Artefact;

enum {
    MAX_ARTEFACTS = 16,   // there are seven kinds; sixteen files leave room for every sensible build rule
    MAX_PARAMS = 256,     // -D
    MAX_BINDINGS = 256,   // --bind
    MAX_TOP_K = 100,
    MAX_HANG_AFTER = 3600,   // seconds
    MAX_CACHE_MIB = 1 << 20,
};

typedef struct Options {
    const char *input;        // the .te file, or a model; "-" is stdin
    bool explains_file;   // the input is a ranking, of which text and page are made, and nothing is compiled
    const char *device;       // name or file
    const char *name;         // of the kernel, a C identifier
    Artefact artefacts[MAX_ARTEFACTS];
    int artefact_count;       // 0 if only dumps are wanted
    int top_k;
    unsigned without;         // parts of the construction (ConstructPart) that -d leaves out
    int candidate;            // place in the model's order of the one to take, from 1; 0: the best
    bool verify;
    const char *profile;     // the option that asks for it, as written; NULL: none
    int hang_after;           // seconds that a kernel may run in --verify or --profile; 0: their own limits
    bool force_device;        // profile on a GPU that is not the device
    EvalMath math;
    ParamOverride params[MAX_PARAMS];   // the last -D of a name; checked to be NAME=NUMBER or NAME
    int param_count;
    OnnxBinding bindings[MAX_BINDINGS];   // of a model
    int binding_count;
    OnnxOptions model;        // how a model is taken; its bindings stand above
    bool arranges_model;      // one of its options is given
    const char
        *weights;   // where a model's weights go (NULL: beside the first artefact), or an expression's are
    bool embed;               // a source for the assembler beside a model's
    bool dump[STAGE_COUNT];
    const char *depfile;      // NULL: none
    const char *dep_target;   // -MT; NULL: the artefacts
    const char *templates;    // a folder instead of the built-in ones, or NULL
    bool line_directives;     // #line into the templates
    bool with_test;           // a main() that checks and times the kernel
    const char *cache;        // a folder that keeps machine code, or NULL
    int64_t cache_bytes;      // that it may hold
    int jobs;                 // compilers of machine code at once; 0: as many as there are cores
    bool quiet, verbose, colour;
} Options;

/* Wrong usage ends with EXIT_USAGE; --help, --version and the --list/--print options end the program
   themselves. */
Options *options_parse(Arena *arena, int argc, char **argv);

/* Is the input a model in the ONNX format? */
bool options_input_is_model(const Options *options);

/* Is NVRTC needed? */
bool options_want_machine_code(const Options *options);

/* Do the streams and the environment want colours, where the option says `when` ("auto", "always", "never";
   NULL: auto)? */
bool options_want_colour(const char *when);

/* `stem` as a C identifier: other characters become '_', a leading digit gets "k_" before it, a keyword '_'
   behind. */
char *kernel_name(Arena *arena, const char *stem);
