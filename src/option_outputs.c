// What is to be written, and where: artefacts, explanations, the dependency file.
#include <string.h>

#include "base/path.h"
#include "hal/device.h"
#include "option_parts.h"

static const char *output_place(const char *path) { return strcmp(path, "-") == 0 ? "/dev/stdout" : path; }

static bool same_output(Arena *arena, const char *left, const char *right)
{
    return path_same(arena, output_place(left), output_place(right));
}

void option_add_artefact(CommandLine *line, ArtefactKind kind, const char *path, const char *option)
{
    Options *options = line->options;
    if (!*path)
        usage_error("an output file needs a name");
    for (int i = 0; i < options->artefact_count; i++)
        if (same_output(line->arena, options->artefacts[i].path, path)) {
            if (options->artefacts[i].kind == kind)
                return;
            usage_error("two artefacts would both be written to '%s': %s and %s", path,
                        options->artefacts[i].option, option);
        }
    if (options->artefact_count == MAX_ARTEFACTS)
        usage_error("more than %d artefacts", MAX_ARTEFACTS);
    options->artefacts[options->artefact_count++] = (Artefact){kind, path, option};
}

static const char *const kind_names[] = {
    [ARTEFACT_CU] = "cu",       [ARTEFACT_HEADER] = "header", [ARTEFACT_PTX] = "ptx",
    [ARTEFACT_CUBIN] = "cubin", [ARTEFACT_JSON] = "json",     [ARTEFACT_TEXT] = "text",
    [ARTEFACT_PAGE] = "page",
};

static void add_emit(CommandLine *line, ArtefactKind kind, const char *path)
{
    option_add_artefact(line, kind, path, arena_printf(line->arena, "--emit %s=%s", kind_names[kind], path));
}

void option_add_emits(CommandLine *line, const char *list)
{
    char *words = arena_strdup(line->arena, list), *rest = words;
    for (char *word; (word = strsep(&rest, ","));) {
        char *path = strchr(word, '=');
        if (path)
            *path++ = '\0';
        int kind = option_choose(line->arena, "--emit", word, kind_names, ARTEFACT_KINDS);
        if (path)
            add_emit(line, (ArtefactKind)kind, path);
        else
            line->asked[kind] = true;
    }
}

static ArtefactKind kind_of_output(const char *path)
{
    const char *suffix = path_suffix(path);
    if (strcmp(path, "-") == 0 || strcmp(suffix, ".cu") == 0 || strncmp(path, "/dev/", 5) == 0)
        return ARTEFACT_CU;
    if (strcmp(suffix, ".json") == 0)
        return ARTEFACT_JSON;
    if (strcmp(suffix, ".ptx") == 0)
        return ARTEFACT_PTX;
    if (strcmp(suffix, ".cubin") == 0)
        return ARTEFACT_CUBIN;
    if (strcmp(suffix, ".txt") == 0)
        return ARTEFACT_TEXT;
    if (strcmp(suffix, ".html") == 0)
        return ARTEFACT_PAGE;
    usage_error("the suffix of '%s' says nothing about its form; -o wants .cu, .json, .ptx, .cubin, .txt "
                "or .html", path);
}

static bool wants_dumps(const Options *options)
{
    bool any = false;
    for (int stage = 0; stage < STAGE_COUNT; stage++)
        any |= options->dump[stage];
    return any;
}

void option_complete_artefacts(CommandLine *line)
{
    static const char *const suffix[] = {
        [ARTEFACT_CU] = ".cu",       [ARTEFACT_HEADER] = ".h",   [ARTEFACT_PTX] = ".ptx",
        [ARTEFACT_CUBIN] = ".cubin", [ARTEFACT_JSON] = ".json", [ARTEFACT_TEXT] = ".txt",
        [ARTEFACT_PAGE] = ".html",
    };
    Options *options = line->options;
    const char *stem = option_stem(line->arena, options->input);
    if (line->output) {
        ArtefactKind kind = kind_of_output(line->output);
        option_add_artefact(line, kind, line->output, arena_printf(line->arena, "-o %s", line->output));
        line->asked[kind] = false;
        if (path_suffix(line->output)[0])
            stem = arena_strndup(line->arena, line->output,
                                 (size_t)(path_suffix(line->output) - line->output));
    }
    bool any_emit = false;
    for (int kind = 0; kind < ARTEFACT_KINDS; kind++)
        any_emit |= line->asked[kind];
    for (int i = 0; i < options->artefact_count; i++)
        any_emit |=
            options->artefacts[i].kind != ARTEFACT_JSON && options->artefacts[i].kind != ARTEFACT_PAGE;
    bool any_dump = wants_dumps(options);
    if (!any_emit && !line->output && !any_dump && !line->explain)
        line->asked[ARTEFACT_CU] = true;
    for (int kind = 0; kind < ARTEFACT_KINDS; kind++)
        if (line->asked[kind])
            add_emit(line, (ArtefactKind)kind, arena_printf(line->arena, "%s%s", stem, suffix[kind]));
    for (int i = 0; i < options->artefact_count; i++)
        if (any_dump && same_output(line->arena, options->artefacts[i].path, "-"))
            usage_error("-d already prints to stdout; give the artefact a file");
}

void option_complete_explanation(CommandLine *line)
{
    Options *options = line->options;
    const char *input = options->input;
    bool has_text =
        line->asked[ARTEFACT_TEXT] || (line->output && kind_of_output(line->output) == ARTEFACT_TEXT);
    for (int i = 0; i < options->artefact_count; i++)
        has_text |= options->artefacts[i].kind == ARTEFACT_TEXT;
    if (!has_text)
        option_add_artefact(line, ARTEFACT_TEXT, "-", "explain");
    options->explains_file =
        strcmp(path_suffix(input), ".json") == 0 || (strcmp(input, "-") == 0 && !options->device);
    bool compiles =
        options->device || options->param_count || options->verify || options->profile || line->depfile;
    if (options->explains_file && (compiles || wants_dumps(options)))
        usage_error("'%s' is a ranking, made for one device with its options: only -o, --emit and --html go "
                    "with it", input);
}

void option_check_explanation(const Options *options)
{
    for (int i = 0; i < options->artefact_count && options->explains_file; i++) {
        ArtefactKind kind = options->artefacts[i].kind;
        if (kind != ARTEFACT_TEXT && kind != ARTEFACT_PAGE)
            usage_error("%s wants an expression; of the ranking '%s' only text and a page can be made",
                        options->artefacts[i].option, options->input);
    }
}

void option_protect_input(Arena *arena, const Options *options, const char *input)
{
    for (int i = 0; i < options->artefact_count; i++)
        if (same_output(arena, options->artefacts[i].path, input))
            usage_error("'%s' is an input and would be overwritten by %s", input,
                        options->artefacts[i].option);
    if (options->depfile && same_output(arena, options->depfile, input))
        usage_error("'%s' is an input and would be overwritten by -MF %s", input, options->depfile);
}

void option_protect_files(Arena *arena, const Options *options)
{
    option_protect_input(arena, options, strcmp(options->input, "-") == 0 ? "/dev/stdin" : options->input);
    if (options->device && !device_text(options->device))
        option_protect_input(arena, options, options->device);
    for (int i = 0; i < options->artefact_count && options->depfile; i++)
        if (same_output(arena, options->depfile, options->artefacts[i].path))
            usage_error("two artefacts would both be written to '%s': %s and -MF %s", options->depfile,
                        options->artefacts[i].option, options->depfile);
}

void option_protect_from_weights(Arena *arena, const Options *options, const char *weights)
{
    if (same_output(arena, weights, options->input))
        usage_error("'%s' is the model and would be overwritten by its weights", options->input);
    for (int i = 0; i < options->artefact_count; i++)
        if (same_output(arena, weights, options->artefacts[i].path))
            usage_error("%s and the weights would both be written to '%s'", options->artefacts[i].option,
                        weights);
    if (options->depfile && same_output(arena, weights, options->depfile))
        usage_error("-MF %s and the weights would both be written to '%s'", options->depfile, weights);
}

void option_complete_depfile(CommandLine *line)
{
    Options *options = line->options;
    if (!line->depfile) {
        if (options->depfile || options->dep_target)
            usage_error("%s without -MD", options->depfile ? "-MF" : "-MT");
        return;
    }
    if (options->depfile)
        return;
    const char *main_path = options->artefact_count ? options->artefacts[0].path : "-";
    if (strcmp(main_path, "-") == 0)
        usage_error("-MD wants -MF FILE when no artefact is a file");
    int length = (int)(path_suffix(main_path) - main_path);
    options->depfile = arena_printf(line->arena, "%.*s.d", length, main_path);
}
