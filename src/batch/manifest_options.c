// What a manifest says of a kernel as words of a command line, each checked where it stands.
#include <assert.h>
#include <string.h>

#include "base/diag.h"
#include "base/path.h"
#include "base/strbuf.h"
#include "batch/manifest_parts.h"
#include "batch/values.h"

// ---- paths ----

const char *beside_manifest(const ManifestReader *reader, const char *path)
{
    if (*path != '/')
        path = arena_printf(reader->arena, "%.*s%s", reader->folder_length, reader->path, path);
    return *path == '-' || *path == '@' ? arena_printf(reader->arena, "./%s", path) : path;
}

bool is_device_file(const char *device)
{
    return strchr(device, '/') || strcmp(path_suffix(device), ".yaml") == 0;
}

bool is_model(const char *expr) { return strcmp(path_suffix(expr), ".onnx") == 0; }

// ---- the command line ----

void add_word(Words *words, const char *word)
{
    assert(words->count < MAX_WORDS);
    words->list[words->count++] = arena_strdup(words->arena, word);
}

Words begin_words(Arena *arena, const char *expr, const char *device)
{
    Words words = {.arena = arena};
    add_word(&words, "rollerc");
    add_word(&words, expr);
    add_word(&words, arena_printf(arena, "--device=%s", device));
    return words;
}

const Options *check_words(Arena *arena, Words *words, Loc loc)
{
    diag_place(loc);
    const Options *options = options_parse(arena, words->count, words->list);
    diag_place((Loc){0});
    return options;
}

static void check_word_of(ManifestReader *reader, const char *expr, const char *word, Loc loc)
{
    Words words = begin_words(reader->scratch, expr, "a.yaml");
    add_word(&words, word);
    check_words(reader->scratch, &words, loc);
    arena_reset(reader->scratch);
}

void check_word(ManifestReader *reader, const char *word, Loc loc)
{
    check_word_of(reader, reader->expr, word, loc);
}

const char *define_word(Arena *arena, const char *expr, const char *name, const char *text)
{
    return arena_printf(arena, is_model(expr) ? "--bind=%s=%s" : "-D%s=%s", name, text);
}

// ---- options ----

typedef enum OptionKind { OPTION_VALUE, OPTION_FLAG, OPTION_PATH } OptionKind;

/* Those of rollerc that change what is made, but not where. */
static const struct {
    const char *name;
    OptionKind kind;
    bool of_models;   // those that stand in the manifest are for its models alone
} known_options[] = {
    {"math", OPTION_VALUE, false},        {"effort", OPTION_VALUE, false},
    {"top-k", OPTION_VALUE, false},       {"candidate", OPTION_VALUE, false},
    {"verify", OPTION_FLAG, false},       {"profile", OPTION_FLAG, false},
    {"force-device", OPTION_FLAG, false}, {"hang-after", OPTION_VALUE, false},
    {"templates", OPTION_PATH, false},    {"line-directives", OPTION_FLAG, false},
    {"with-test", OPTION_FLAG, false},    {"bind", OPTION_VALUE, true},
    {"precision", OPTION_VALUE, true},    {"io-precision", OPTION_VALUE, true},
    {"layout", OPTION_VALUE, true},       {"embed", OPTION_FLAG, true},
};

enum { KNOWN_OPTIONS = sizeof known_options / sizeof *known_options };

static bool read_flag(const YamlNode *node)
{
    const char *text = text_of(node, "true or false");
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        diag_fatal(node->loc, EXIT_INPUT, "wanted true or false, found '%s'", text);
    return *text == 't';
}

/* The word that says it; NULL: a flag that is false. */
static const char *option_word(const ManifestReader *reader, int which, const YamlNode *value)
{
    const char *name = known_options[which].name;
    if (known_options[which].kind == OPTION_FLAG)
        return read_flag(value) ? arena_printf(reader->arena, "--%s", name) : NULL;
    const char *text = text_of(value, "a value");
    if (known_options[which].kind == OPTION_PATH)
        text = beside_manifest(reader, text);
    return arena_printf(reader->arena, "--%s=%s", name, text);
}

void check_options(ManifestReader *reader, const YamlNode *mapping)
{
    const char *names[KNOWN_OPTIONS + 1] = {NULL};
    for (int i = 0; i < KNOWN_OPTIONS; i++)
        names[i] = known_options[i].name;
    if (mapping->text || mapping->list)
        diag_fatal(mapping->loc, EXIT_INPUT, "wanted options such as {math: fast, verify: true}");
    check_keys(reader->arena, mapping, names, "the options");
    for (int i = 0; i < KNOWN_OPTIONS; i++) {
        const YamlNode *value = yaml_child(mapping, names[i]);
        const char *word = value ? option_word(reader, i, value) : NULL;
        if (word && known_options[i].of_models && !reader->kernel)
            check_word_of(reader, "a.onnx", word, value->loc);
        else if (word)
            check_word(reader, word, value->loc);
    }
}

void add_options(ManifestReader *reader, Words *words, Entry *entry)
{
    const YamlNode *own = yaml_child(reader->kernel, "options"),
                   *common = yaml_child(reader->root, "options");
    for (int i = 0; i < KNOWN_OPTIONS; i++) {
        const YamlNode *value = own ? yaml_child(own, known_options[i].name) : NULL;
        if (!value && common && (!known_options[i].of_models || is_model(reader->expr)))
            value = yaml_child(common, known_options[i].name);
        const char *word = value ? option_word(reader, i, value) : NULL;
        if (word)
            add_word(words, word);
        if (word && known_options[i].kind == OPTION_PATH)
            entry->templates = strchr(word, '=') + 1;
    }
}
