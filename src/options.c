#include "options.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/embedded.h"
#include "base/path.h"
#include "base/strbuf.h"
#include "hal/device.h"
#include "option_error.h"
#include "option_parts.h"
#include "response.h"

// ---- what the command line can say ----

enum { CACHE_MIB = 1024 };   // some ten thousand kernels

enum {
    KEY_EMIT = 256, KEY_JSON, KEY_PAGE, KEY_NAME, KEY_TOP_K, KEY_EFFORT, KEY_WITHOUT, KEY_CANDIDATE,
    KEY_VERIFY, KEY_PROFILE, KEY_FORCE, KEY_HANG_AFTER, KEY_MATH, KEY_BIND, KEY_WEIGHTS, KEY_EMBED,
    KEY_PRECISION, KEY_IO_PRECISION, KEY_LAYOUT, KEY_TEMPLATES, KEY_LINES, KEY_TEST, KEY_CACHE, KEY_COLOUR, KEY_DEVICE,
    KEY_LIST_DEVICES, KEY_PRINT_ARCH, KEY_PRINT_DEVICE, KEY_PRINT_SCHEMA, KEY_USAGE,
};

// clang-format off
static const struct argp_option table[] = {
    {0, 0, 0, 0, "Input and output:", 1},
    {"device", KEY_DEVICE, "NAME|FILE", 0,
     "The device to compile for: a built-in name, or a file (it has a '/' or ends in .yaml)", 1},
    {"output", 'o', "FILE", 0,
     "The main artefact; its suffix picks the form (.cu, .ptx, .cubin, .json, .txt, .html); - is "
     "stdout (.cu). Default: EXPR.cu in the current folder", 1},
    {"emit", KEY_EMIT, "KIND,...", 0,
     "Several artefacts at once: cu, header, ptx, cubin, json, text, page, each alone or as KIND=FILE", 1},
    {"json", KEY_JSON, "FILE", 0, "Write the ranking of the kept candidates", 1},
    {"html", KEY_PAGE, "FILE", 0,
     "Write a page that explains the ranking: why the first is first, term by term", 1},
    {"name", KEY_NAME, "NAME", 0, "The C name of the kernel (default: the input file's stem)", 1},
    {0, 'D', "NAME=NUMBER", 0, "Set a param", 1},
    {"bind", KEY_BIND, "NAME=VALUE,...", 0,
     "Of a model MODEL.onnx: the size of a symbolic dimension, or the values of a small input of the "
     "graph", 1},
    {"precision", KEY_PRECISION, "TYPE", 0,
     "Of a model: the type of weights and activations that are f32: f32 (default), f16, bf16; sums, "
     "statistics and exponentials stay f32", 1},
    {"io-precision", KEY_IO_PRECISION, "TYPE", 0,
     "Of a model: the type of inputs and outputs that are f32: f32 (default), f16, bf16", 1},
    {"layout", KEY_LAYOUT, "ORDER", 0,
     "Of a model: how feature maps lie inside: auto (default: nhwc if they are of 16 bits), nchw, nhwc", 1},
    {"weights", KEY_WEIGHTS, "FILE", 0,
     "Where the weights of a model go (default: beside the first artefact, with .weights); of an "
     "expression, where they are. --verify takes them instead of random ones", 1},
    {"embed", KEY_EMBED, 0, 0,
     "Of a model: write a source for the assembler beside the weights, with .S, that puts them into a "
     "program", 1},
    {"-MD", 0, 0, OPTION_DOC | OPTION_NO_USAGE, "Write a dependency file", 1},
    {"-MF FILE", 0, 0, OPTION_DOC | OPTION_NO_USAGE, "Its name (default: the first artefact's, with .d)", 1},
    {"-MT TARGET", 0, 0, OPTION_DOC | OPTION_NO_USAGE,
     "What it says to be rebuilt (default: the artefacts)", 1},
    {0, 'M', "D|F|T", OPTION_HIDDEN, 0, 1},

    {0, 0, 0, 0, "Compilation:", 2},
    {"top-k", KEY_TOP_K, "K", 0, "How many candidates are kept, 1 to 100 (default 10)", 2},
    {"effort", KEY_EFFORT, "HOW", 0,
     "none: the model chooses (default); quick: the same as --profile; full: the same with --top-k "
     "100, so that the GPU chooses among a hundred", 2},
    {"without", KEY_WITHOUT, "PART,...", OPTION_HIDDEN, 0, 2},   // of bench/ablation.py
    {"candidate", KEY_CANDIDATE, "RANK", 0,
     "Take this one of the kept candidates, counted in the model's order, instead of the best", 2},
    {"verify", KEY_VERIFY, 0, 0, "Prove the kernel on the CPU before it is written", 2},
    {"profile", KEY_PROFILE, 0, 0,
     "Compile the kept candidates with NVRTC, check and time them on the GPU, and take the fastest "
     "correct one", 2},
    {"force-device", KEY_FORCE, 0, 0, "Profile on a GPU that does not match the device file", 2},
    {"hang-after", KEY_HANG_AFTER, "SECONDS", 0,
     "How long a kernel may run before it is taken to hang, 1 to 3600 (default: 60 on the CPU, 10 on "
     "the GPU)", 2},
    {"math", KEY_MATH, "MODE", 0,
     "exact (default); tf32: f32 products may use TF32; fast: also approximate exp, log and division", 2},
    {"templates", KEY_TEMPLATES, "DIR", 0, "Read kernel templates from DIR instead of the built-in ones", 2},
    {"line-directives", KEY_LINES, 0, 0,
     "Write #line into the templates, for whoever edits them; without it an emitted file names no "
     "other file to a compiler", 2},
    {"with-test", KEY_TEST, 0, 0,
     "Add a main() to the .cu file, for nvcc -DROLLERC_MAIN: it compares the kernel with plain loops and "
     "times it (not for HIP)", 2},

    {"cache", KEY_CACHE, "DIR", 0,
     "Keep machine code in DIR and take it from there when text, options and NVRTC are the same "
     "(default: $ROLLERC_CACHE, else nowhere; $ROLLERC_CACHE_MIB, 1024, is how much is kept)", 2},

    {0, 0, 0, 0, "Looking inside:", 3},
    {0, 'd', "STAGE,...", 0, "Print what a stage made; writes no artefact unless one is asked for. Stages:"
#define STAGE(id, what) " " #id
#include "stages.def"
#undef STAGE
     , 3},
    {"list-devices", KEY_LIST_DEVICES, 0, 0, "Print the built-in devices", 3},
    {"print-arch", KEY_PRINT_ARCH, "NAME|FILE", 0,
     "Print the architecture that kernels for a device are to be compiled for, such as sm_90a", 3},
    {"print-device", KEY_PRINT_DEVICE, "NAME", 0, "Print a built-in device file, to copy and edit", 3},
    {"print-schema", KEY_PRINT_SCHEMA, 0, 0, "Print the JSON schema of the ranking", 3},

    {0, 0, 0, 0, "Messages:", 4},
    {"verbose", 'v', 0, 0, "Say what each stage did, and how long that took", 4},
    {"quiet", 'q', 0, 0, "Say nothing but errors", 4},
    {"color", KEY_COLOUR, "WHEN", 0, "auto (default), always or never", 4},

    {0, 0, 0, 0, "Help:", -1},
    {"help", 'h', 0, 0, "Give this help", -1},
    {"usage", KEY_USAGE, 0, 0, "Give a short usage message", -1},
    {"version", 'V', 0, 0, "Print the version", -1},
    {0},
};
// clang-format on

// ---- small readers ----

static int read_count(const char *option, const char *text, int most)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno || value < 1 || value > most)
        usage_error("%s wants a whole number from 1 to %d, not '%s'", option, most, text);
    return (int)value;
}

/* [+-] digits [. digits] [e [+-] digits], as in the language: strtod would also take "0x10", "nan" and
   blanks. */
static bool is_number(const char *text)
{
    text += *text == '-' || *text == '+';
    size_t whole = strspn(text, "0123456789");
    text += whole;
    size_t fraction = 0;
    if (*text == '.') {
        fraction = strspn(++text, "0123456789");
        text += fraction;
    }
    if (whole + fraction == 0)
        return false;
    if (*text == 'e' || *text == 'E') {
        text++;
        text += *text == '+' || *text == '-';
        size_t exponent = strspn(text, "0123456789");
        if (exponent == 0)
            return false;
        text += exponent;
    }
    return *text == '\0';
}

static bool is_identifier(const char *name)
{
    if (!isalpha((unsigned char)*name) && *name != '_')
        return false;
    while (isalnum((unsigned char)*name) || *name == '_')
        name++;
    return *name == '\0';
}

static ParamOverride read_param(Arena *arena, const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals && is_identifier(text))
        return (ParamOverride){.name = text};   // who knows the params says what it wants
    if (!equals)
        usage_error("-D wants NAME=NUMBER, not '%s'", text);
    ParamOverride param = {.name = arena_strndup(arena, text, (size_t)(equals - text)), .text = equals + 1};
    if (!is_identifier(param.name))
        usage_error("-D wants NAME=NUMBER; '%s' is no name", param.name);
    if (!is_number(param.text))
        usage_error("-D %s wants a number, not '%s'", param.name, param.text);
    return param;
}

static void add_param(CommandLine *line, const char *text)
{
    Options *options = line->options;
    ParamOverride param = read_param(line->arena, text);
    for (int i = 0; i < options->param_count; i++)
        if (strcmp(options->params[i].name, param.name) == 0) {
            options->params[i] = param;   // the last one counts, as in every C compiler
            return;
        }
    if (options->param_count == MAX_PARAMS)
        usage_error("more than %d params set with -D", MAX_PARAMS);
    options->params[options->param_count++] = param;
}

static void add_dumps(CommandLine *line, const char *list)
{
    static const char *const names[] = {
#define STAGE(id, what) #id,
#include "stages.def"
#undef STAGE
    };
    char *words = arena_strdup(line->arena, list), *rest = words;
    for (char *word; (word = strsep(&rest, ","));)
        line->options->dump[option_choose(line->arena, "-d", word, names, STAGE_COUNT)] = true;
}

static void add_parts(CommandLine *line, const char *list)
{
    static const char *const names[] = {"score", "beam", "shrink", "bank-padding", "tensor-padding", "model"};
    char *words = arena_strdup(line->arena, list), *rest = words;
    for (char *word; (word = strsep(&rest, ","));)
        line->options->without |=
            1u << option_choose(line->arena, "--without", word, names, (int)(sizeof names / sizeof *names));
}

/* How many candidates are tried on the GPU, in one word. */
static void complete_effort(CommandLine *line)
{
    static const char *const names[] = {"none", "quick", "full"};
    enum { NONE, QUICK, FULL };
    Options *options = line->options;
    if (!line->effort)
        return;
    int effort = option_choose(line->arena, "--effort", line->effort, names, FULL + 1);
    if (options->profile || (line->top_k && effort != NONE))
        usage_error("--effort=%s says what %s says: one of the two, please", line->effort,
                    options->profile ? "--profile" : "--top-k");
    options->profile = effort == NONE ? NULL : arena_printf(line->arena, "--effort=%s", line->effort);
    if (effort == FULL)
        options->top_k = MAX_TOP_K;
}

/* An empty name is none: `--cache ""` waives $ROLLERC_CACHE. */
static void complete_cache(Options *options)
{
    const char *mebibytes = getenv("ROLLERC_CACHE_MIB");
    if (!options->cache)
        options->cache = getenv("ROLLERC_CACHE");
    if (options->cache && !*options->cache)
        options->cache = NULL;
    options->cache_bytes = (int64_t)CACHE_MIB << 20;
    if (options->cache && mebibytes && *mebibytes)
        options->cache_bytes = (int64_t)read_count("$ROLLERC_CACHE_MIB", mebibytes, MAX_CACHE_MIB) << 20;
}

bool options_input_is_model(const Options *options)
{
    return strcmp(path_suffix(options->input), ".onnx") == 0;
}

bool options_want_machine_code(const Options *options)
{
    bool wanted = options->profile;
    for (int i = 0; i < options->artefact_count; i++)
        wanted |= options->artefacts[i].kind == ARTEFACT_PTX || options->artefacts[i].kind == ARTEFACT_CUBIN;
    return wanted;
}

// ---- names ----

static bool is_keyword(const char *name)
{
    // C17, C++20 and CUDA, and `NULL` and `main`, which no linker or compiler would take either.
    static const char *const keywords[] = {
        "NULL", "_Alignas", "_Alignof", "_Atomic", "_Bool", "_Complex", "_Generic", "_Imaginary", "_Noreturn",
        "_Static_assert", "_Thread_local", "__constant__", "__device__", "__global__", "__host__",
        "__managed__", "__restrict__", "__shared__", "alignas", "alignof", "and", "and_eq", "asm", "auto",
        "bitand", "bitor", "bool", "break", "case", "catch", "char", "char16_t", "char32_t", "char8_t",
        "class", "co_await", "co_return", "co_yield", "compl", "concept", "const", "const_cast", "consteval",
        "constexpr", "constinit", "continue", "decltype", "default", "delete", "do", "double", "dynamic_cast",
        "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if",
        "inline", "int", "long", "main", "mutable", "namespace", "new", "noexcept", "not", "not_eq",
        "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register",
        "reinterpret_cast", "requires", "restrict", "return", "short", "signed", "sizeof", "static",
        "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local", "throw",
        "true", "try", "typedef", "typeid", "typename", "typeof", "union", "unsigned", "using", "virtual",
        "void", "volatile", "wchar_t", "while", "xor", "xor_eq",
    };
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strcmp(name, keywords[i]) == 0)
            return true;
    return false;
}

char *kernel_name(Arena *arena, const char *stem)
{
    bool leading_digit = isdigit((unsigned char)*stem);
    char *name = arena_printf(arena, "%s%s", leading_digit ? "k_" : "", *stem ? stem : "kernel");
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '_';
    return is_keyword(name) ? arena_printf(arena, "%s_", name) : name;
}

static const char *chosen_name(const CommandLine *line)
{
    if (!line->name)
        return kernel_name(line->arena, option_stem(line->arena, line->options->input));
    const char *name = kernel_name(line->arena, line->name);
    if (strcmp(name, line->name) != 0)
        usage_error("--name wants a C identifier, not '%s'; '%s' would do", line->name, name);
    return name;
}

// ---- colour ----

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value && strcmp(value, "0") != 0;
}

/* https://no-color.org and https://bixense.com/clicolors */
bool options_want_colour(const char *when)
{
    if (when && strcmp(when, "auto") != 0)
        return strcmp(when, "always") == 0;
    const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
    if (no_colour && *no_colour)
        return false;
    return is_set("CLICOLOR_FORCE") || (isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0);
}

// ---- options that end the program ----

static _Noreturn void print_and_exit(const char *text)
{
    fputs(text, stdout);
    exit(EXIT_DONE);
}

static _Noreturn void list_devices(Arena *arena)
{
    StrBuf list = strbuf_new(arena);
    device_list(&list);
    print_and_exit(list.text);
}

static _Noreturn void print_arch(Arena *arena, const char *device)
{
    print_and_exit(arena_printf(arena, "%s\n", device_read(arena, device)->arch));
}

static _Noreturn void print_device(const char *name)
{
    const char *text = device_text(name);
    if (!text)
        usage_error("there is no built-in device '%s'; --list-devices shows them", name);
    print_and_exit(text);
}

/* argp_state_help() is silent where the parser's own errors are. */
// ---- argp ----

/* -MD, -MF FILE, -MT TARGET: one letter with a letter behind it, as compilers spell it. */
static void read_dep_option(CommandLine *line, struct argp_state *state, const char *which)
{
    if (strcmp(which, "D") == 0) {
        line->depfile = true;
        return;
    }
    if (*which != 'F' && *which != 'T')
        usage_error("unknown option '-M%s'", which);
    const char *value = which[1] ? which + 1 : state->next < state->argc ? state->argv[state->next++] : "";
    if (!*value)
        usage_error("-M%c wants a %s", *which, *which == 'F' ? "FILE" : "TARGET");
    if (*which == 'F')
        line->options->depfile = value;
    else
        line->options->dep_target = value;
}

static void set_input(Options *options, const char *path)
{
    if (options->input)
        usage_error("one input file, please: '%s' and '%s' are given", options->input, path);
    if (!*path)
        usage_error("the input file needs a name");
    options->input = path;
}

static void set_device(Options *options, const char *device)
{
    if (options->device)
        usage_error("one device, please: '%s' and '%s' are given", options->device, device);
    options->device = device;
}

static error_t read_option(int key, char *value, struct argp_state *state)
{
    CommandLine *line = state->input;
    Options *options = line->options;
    switch (key) {
    case ARGP_KEY_ARG: set_input(options, value); break;
    case KEY_DEVICE: set_device(options, value); break;
    case 'o': line->output = value; break;
    case KEY_EMIT: option_add_emits(line, value); break;
    case KEY_JSON:
        option_add_artefact(line, ARTEFACT_JSON, value, arena_printf(line->arena, "--json %s", value));
        break;
    case KEY_PAGE:
        option_add_artefact(line, ARTEFACT_PAGE, value, arena_printf(line->arena, "--html %s", value));
        break;
    case KEY_NAME: line->name = value; break;
    case 'D': add_param(line, value); break;
    case 'M': read_dep_option(line, state, value); break;
    case KEY_WITHOUT: add_parts(line, value); break;
    case KEY_EFFORT: line->effort = value; break;
    case KEY_TOP_K:
        options->top_k = read_count("--top-k", value, MAX_TOP_K);
        line->top_k = true;
        break;
    case KEY_CANDIDATE: options->candidate = read_count("--candidate", value, MAX_TOP_K); break;
    case KEY_VERIFY: options->verify = true; break;
    case KEY_PROFILE: options->profile = "--profile"; break;
    case KEY_FORCE: options->force_device = true; break;
    case KEY_HANG_AFTER: options->hang_after = read_count("--hang-after", value, MAX_HANG_AFTER); break;
    case KEY_MATH:
        options->math = (EvalMath)option_choose(line->arena, "--math", value, eval_math_name, EVAL_FAST + 1);
        break;
    case KEY_BIND: option_add_binding(line, value); break;
    case KEY_PRECISION: options->model.precision = option_precision(line, "--precision", value); break;
    case KEY_IO_PRECISION:
        options->model.io_precision = option_precision(line, "--io-precision", value);
        break;
    case KEY_LAYOUT: options->model.layout = option_layout(line, value); break;
    case KEY_WEIGHTS: options->weights = value; break;
    case KEY_EMBED: options->embed = true; break;
    case KEY_TEMPLATES: options->templates = value; break;
    case KEY_LINES: options->line_directives = true; break;
    case KEY_TEST: options->with_test = true; break;
    case KEY_CACHE: options->cache = value; break;
    case 'd': add_dumps(line, value); break;
    case 'v': options->verbose = true, options->quiet = false; break;
    case 'q': options->quiet = true, options->verbose = false; break;
    case KEY_COLOUR: line->colour = option_colour(line->arena, value); break;
    case KEY_LIST_DEVICES: list_devices(line->arena);
    case KEY_PRINT_ARCH: print_arch(line->arena, value);
    case KEY_PRINT_DEVICE: print_device(value);
    case KEY_PRINT_SCHEMA: print_and_exit(embedded_find("schema/ranking.schema.json")->text);
    case 'h': option_print_help(state, ARGP_HELP_STD_HELP);
    case KEY_USAGE: option_print_help(state, ARGP_HELP_USAGE);
    case 'V': print_and_exit("rollerc " ROLLERC_VERSION "\n");
    case ARGP_KEY_ERROR: option_error(line->arena, table, state);
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

#define EXIT_CODES                                                                                           \
    "Exit codes: 0 done, 1 the input is wrong, 2 wrong usage, 3 the device can hold no program for this "    \
    "expression, "                                                                                           \
    "4 the machine lacks something, 5 every candidate failed or the kernel is wrong, 70 a bug in rollerc, "  \
    "130 and 143 interrupted."

static const char
    compile_usage[] = "EXPR.te --device NAME|FILE",
    compile_manual[] =
        "Compile a tensor expression into a CUDA kernel whose tiles fit the device's memory levels.\v"
        "EXPR.te may be - for stdin, or a model MODEL.onnx. @FILE stands for the arguments in FILE.\n\n"
        "Other commands: `rollerc explain --help' says why the first candidate of a ranking is first, "
        "`rollerc batch "
        "--help' compiles many kernels at once, `rollerc import --help' prints an ONNX model as an expression, "
        "`rollerc calibrate --help' measures the GPU here and writes a device file.\n\n" EXIT_CODES;

static const char explain_usage[] = "RANKING.json\nEXPR.te --device NAME|FILE",
                  explain_manual[] = "Say why the first candidate is first, of a ranking that --json wrote "
                                     "or of an expression that is compiled now: in "
                                     "words on stdout, with --html FILE as a page, too.\v"
                                     "Of a ranking only -o, --emit, --html and the options of messages and "
                                     "help are taken: it was made for one device "
                                     "with its options. Of an expression all are.\n\n" EXIT_CODES;

Options *options_parse(Arena *arena, int argc, char **argv)
{
    Options *options = NEW(arena, Options);
    options->top_k = 10;
    CommandLine line = {.arena = arena, .options = options};
    diag_configure(
        (DiagOptions){.colour = options_want_colour(NULL)});   // for errors in the command line itself
    line.explain = argc > 1 && strcmp(argv[1], "explain") == 0;
    if (line.explain)
        argv[1] = "rollerc explain";   // what it is called in help and messages
    Arguments arguments = response_files_expand(arena, argc - line.explain, argv + line.explain);

    const struct argp argp = {.options = table,
                              .parser = read_option,
                              .args_doc = line.explain ? explain_usage : compile_usage,
                              .doc = line.explain ? explain_manual : compile_manual};
    error_t error =
        argp_parse(&argp, arguments.count, arguments.words, ARGP_NO_HELP | ARGP_NO_ERRS, NULL, &line);
    if (error)
        fatal(error == ENOMEM ? EXIT_MACHINE : EXIT_USAGE, "%s", strerror(error));

    if (!options->input)
        usage_error("no input file; `rollerc%s --help' shows the options", line.explain ? " explain" : "");
    complete_effort(&line);
    if (line.explain)
        option_complete_explanation(&line);
    if (!options->device && !options->explains_file)
        usage_error("no --device; `rollerc --list-devices' shows the built-in ones");
    if ((options->binding_count || options->embed) && !options_input_is_model(options))
        usage_error("%s without a model: '%s' is no .onnx", options->embed ? "--embed" : "--bind",
                    options->input);
    if (options->weights && !options_input_is_model(options) && !options->verify)
        usage_error("--weights of an expression is what --verify proves it with, which is not asked for");
    if (options->arranges_model && !options_input_is_model(options))
        usage_error("--precision, --io-precision and --layout are of models: '%s' is no .onnx",
                    options->input);
    option_complete_artefacts(&line);
    if (options->without && (options->artefact_count || options->verify || options->profile))
        usage_error("--without leaves out parts of the construction for -d alone: nothing is made of it");
    option_check_explanation(options);
    option_complete_depfile(&line);
    complete_cache(options);
    option_protect_files(arena, options);
    if (options->weights && !options_input_is_model(options))
        option_protect_input(arena, options, options->weights);
    options->name = chosen_name(&line);
    options->colour = options_want_colour(line.colour);
    return options;
}
