#include "import.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "base/path.h"
#include "embed.h"
#include "front/lower.h"
#include "front/parse.h"
#include "option_error.h"
#include "option_parts.h"

/* `model.te`, with another suffix. */
static const char *beside(Arena *arena, const char *path, const char *suffix)
{
    return arena_printf(arena, "%.*s%s", (int)(path_suffix(path) - path), path, suffix);
}

// ---- a model in the place of an expression ----

static const char *weights_path_of(Arena *arena, const Options *options)
{
    if (options->weights)
        return options->weights;
    const char *main_path = options->artefact_count ? options->artefacts[0].path : "-";
    if (strcmp(main_path, "-") == 0)
        return beside(arena, option_stem(arena, options->input), ".weights");
    return beside(arena, main_path, ".weights");
}

static Source *source_of(Arena *arena, const char *path, const OnnxProgram *program)
{
    const char *name = arena_printf(arena, "%s, as `rollerc import' writes it", path);
    return source_from_text(arena, name, program->text, program->length);
}

static OnnxProgram imported(Arena *arena, const Options *options)
{
    OnnxOptions model = options->model;
    model.bindings = options->bindings;
    model.binding_count = options->binding_count;
    return onnx_import(arena, options->input, &model);
}

void import_stage_weights(Arena *arena, OutputSet *outputs, const char *path, const OnnxProgram *program,
                          const char *embeds)
{
    const char *slash = strrchr(path, '/');
    output_stage_parts(outputs, path, onnx_weights(arena, program));
    if (!embeds)
        return;
    StrBuf out = strbuf_new(arena);
    embed_write(&out, embeds, slash ? slash + 1 : path);
    output_stage(outputs, arena_printf(arena, "%s.S", path), out.text, out.length);
}

/* They go with what launches them, or where they are asked for: rankings and explanations need none. */
static bool writes_weights(const Options *options)
{
    bool writes = options->weights || options->embed;
    for (int i = 0; i < options->artefact_count; i++) {
        ArtefactKind kind = options->artefacts[i].kind;
        writes |= kind != ARTEFACT_JSON && kind != ARTEFACT_TEXT && kind != ARTEFACT_PAGE;
    }
    return writes && options->artefact_count;
}

ModelInput import_input(Arena *arena, const Options *options)
{
    if (!options_input_is_model(options))
        return (ModelInput){.source = source_read(arena, options->input),
                            .given = options->weights ? mapped_open(options->weights) : (Mapped){0}};
    ModelInput input = {.program = imported(arena, options), .embeds = options->embed};
    input.source = source_of(arena, options->input, &input.program);
    if ((input.program.weight_bytes || options->weights) && writes_weights(options)) {
        input.weights_path = weights_path_of(arena, options);
        option_protect_from_weights(arena, options, input.weights_path);
    }
    return input;
}

const char *import_weights(Arena *arena, const Options *options, const ModelInput *input)
{
    if (!options->weights)
        return NULL;
    return options_input_is_model(options) ? file_parts_join(arena, onnx_weights(arena, &input->program))
                                           : input->given.bytes;
}

// ---- rollerc import ----

enum {
    KEY_WEIGHTS = 256,
    KEY_EMBED,
    KEY_BIND,
    KEY_PRECISION,
    KEY_IO_PRECISION,
    KEY_LAYOUT,
    KEY_COLOUR,
    KEY_USAGE,
};

// clang-format off
static const struct argp_option table[] = {
    {0, 0, 0, 0, "Output:", 1},
    {"output", 'o', "FILE", 0, "The program; - is stdout. Default: MODEL.te in the current folder", 1},
    {"weights", KEY_WEIGHTS, "FILE", 0,
     "The weights, as NAME_prepare takes them. Default: beside the program, with .weights", 1},
    {"embed", KEY_EMBED, 0, 0,
     "Write a source for the assembler beside the weights, with .S, that puts them into a program", 1},

    {0, 0, 0, 0, "The model:", 2},
    {"bind", KEY_BIND, "NAME=VALUE,...", 0,
     "The size of a symbolic dimension, or the values of a small input of the graph", 2},
    {"precision", KEY_PRECISION, "TYPE", 0,
     "The type of weights and activations that are f32: f32 (default), f16, bf16; sums, statistics and "
     "exponentials stay f32", 2},
    {"io-precision", KEY_IO_PRECISION, "TYPE", 0,
     "The type of inputs and outputs that are f32: f32 (default), f16, bf16", 2},
    {"layout", KEY_LAYOUT, "ORDER", 0,
     "How feature maps lie inside: auto (default: nhwc if they are of 16 bits), nchw, nhwc", 2},

    {0, 0, 0, 0, "Messages:", 3},
    {"quiet", 'q', 0, 0, "Say nothing but errors", 3},
    {"color", KEY_COLOUR, "WHEN", 0, "auto (default), always or never", 3},

    {0, 0, 0, 0, "Help:", -1},
    {"help", 'h', 0, 0, "Give this help", -1},
    {"usage", KEY_USAGE, 0, 0, "Give a short usage message", -1},
    {0},
};
// clang-format on

static const char manual[] =
    "Print an ONNX model as a tensor program, and its weights as one file.\v"
    "Exit codes: 0 done, 1 the model cannot be taken (every node is named with what it lacks, and nothing is "
    "written), 2 wrong usage, 4 the machine lacks something.";

static error_t read_option(int key, char *value, struct argp_state *state)
{
    CommandLine *line = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        if (line->options->input)
            usage_error("one model, please: '%s' and '%s' are given", line->options->input, value);
        line->options->input = value;
        break;
    case 'o': line->output = value; break;
    case KEY_WEIGHTS: line->options->weights = value; break;
    case KEY_EMBED: line->options->embed = true; break;
    case KEY_BIND: option_add_binding(line, value); break;
    case KEY_PRECISION: line->options->model.precision = option_precision(line, "--precision", value); break;
    case KEY_IO_PRECISION:
        line->options->model.io_precision = option_precision(line, "--io-precision", value);
        break;
    case KEY_LAYOUT: line->options->model.layout = option_layout(line, value); break;
    case 'q': line->options->quiet = true; break;
    case KEY_COLOUR: line->colour = option_colour(line->arena, value); break;
    case 'h': option_print_help(state, ARGP_HELP_STD_HELP);
    case KEY_USAGE: option_print_help(state, ARGP_HELP_USAGE);
    case ARGP_KEY_ERROR: option_error(line->arena, table, state);
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static void check_places(Arena *arena, const CommandLine *line)
{
    const char *input = line->options->input, *weights = line->options->weights;
    if (path_same(arena, line->output, input) || path_same(arena, weights, input))
        usage_error("'%s' is the model and would be overwritten", input);
    if (path_same(arena, line->output, weights))
        usage_error("program and weights would both be written to '%s'", weights);
}

static void complete(Arena *arena, CommandLine *line)
{
    Options *options = line->options;
    if (!options->input)
        usage_error("no model; `rollerc import --help' shows the options");
    const char *stem = path_stem(arena, options->input);
    if (!line->output)
        line->output = arena_printf(arena, "%s.te", stem);
    if (!options->weights)
        options->weights = strcmp(line->output, "-") == 0 ? arena_printf(arena, "%s.weights", stem)
                                                          : beside(arena, line->output, ".weights");
    check_places(arena, line);
}

static void parse_line(CommandLine *line, int argc, char **argv)
{
    diag_configure((DiagOptions){.colour = options_want_colour(NULL)});
    argv[0] = "rollerc import";
    const struct argp argp = {
        .options = table, .parser = read_option, .args_doc = "MODEL.onnx", .doc = manual};
    error_t error = argp_parse(&argp, argc, argv, ARGP_NO_HELP | ARGP_NO_ERRS, NULL, line);
    if (error)
        fatal(error == ENOMEM ? EXIT_MACHINE : EXIT_USAGE, "%s", strerror(error));
    complete(line->arena, line);
    diag_configure((DiagOptions){.quiet = line->options->quiet, .colour = options_want_colour(line->colour)});
}

int import_main(int argc, char **argv)
{
    Arena *arena = arena_new();
    CommandLine line = {.arena = arena, .options = NEW(arena, Options)};
    parse_line(&line, argc, argv);
    const Options *options = line.options;
    OnnxProgram program = imported(arena, options);
    // What only the language sees, as a sum of two types, is told of what would be written; then nothing is.
    lower(arena, parse(arena, lex(arena, source_of(arena, options->input, &program))), NULL, 0);
    OutputSet *outputs = output_set_new(arena);
    output_stage(outputs, line.output, program.text, program.length);
    const char *name = kernel_name(arena, strcmp(line.output, "-") == 0 ? path_stem(arena, options->input)
                                                                       : path_stem(arena, line.output));
    if (program.weight_bytes)
        import_stage_weights(arena, outputs, options->weights, &program, options->embed ? name : NULL);
    output_commit(outputs);
    arena_free(arena);
    return EXIT_DONE;
}
