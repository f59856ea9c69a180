#include "batch/manifest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/path.h"
#include "base/strbuf.h"
#include "batch/manifest_parts.h"
#include "batch/pattern.h"
#include "batch/values.h"
#include "hal/device.h"

enum { MANIFEST_MAX_BYTES = 1 << 20 };

// ---- keys ----

static const char *const root_keys[] = {"kernels", "devices", "output", "emit", "options", NULL};
static const char *const kernel_keys[] = {"expr",   "name", "defines", "devices",
                                          "output", "emit", "options", NULL};

/* What a kernel says, or else the manifest for all of them. */
static const YamlNode *setting(const ManifestReader *reader, const char *key)
{
    const YamlNode *own = yaml_child(reader->kernel, key);
    return own ? own : yaml_child(reader->root, key);
}

// ---- one entry ----

static const char *emit_word(const ManifestReader *reader, const YamlNode *kinds)
{
    StrBuf word = strbuf_new(reader->arena);
    for (const YamlNode *kind = values_of(kinds, "a kind"); kind; kind = next_value(kinds, kind))
        strbuf_printf(&word, "%s%s", word.length ? "," : "--emit=", text_of(kind, "a kind, such as header"));
    return word.text;
}

static void check_emit(ManifestReader *reader, const YamlNode *kinds)
{
    count_values(reader->arena, kinds, "a kind");
    for (const YamlNode *kind = values_of(kinds, "a kind"); kind; kind = next_value(kinds, kind)) {
        const char *text = text_of(kind, "a kind, such as header");
        if (strchr(text, '='))
            diag_fatal(kind->loc, EXIT_INPUT, "a kind alone, without '=': its file stands beside the output");
        check_word(reader, arena_printf(reader->scratch, "--emit=%s", text), kind->loc);
    }
}

static Entry *new_entry(ManifestReader *reader)
{
    Manifest *manifest = reader->manifest;
    if (manifest->count == reader->capacity) {
        Entry *larger = NEW_ARRAY(reader->arena, Entry, 2 * reader->capacity + 64);
        for (int i = 0; i < manifest->count; i++)
            larger[i] = manifest->entries[i];
        manifest->entries = larger;
        reader->capacity = 2 * reader->capacity + 64;
    }
    return &manifest->entries[manifest->count++];
}

/* JSON and build files know the output by its name. */
static void check_ascii(const char *name, Loc loc)
{
    for (const char *c = name; *c; c++)
        if (*c < 0x20 || *c > 0x7e)
            diag_fatal(loc, EXIT_INPUT, "the name of an output has a character beyond ASCII: '%s'", name);
}

/* The name, which the output may hold; then the output. */
static void name_entry(ManifestReader *reader, Entry *entry)
{
    const YamlNode *name = yaml_child(reader->kernel, "name"), *output = setting(reader, "output");
    PatternValues values = {
        .expr = path_stem(reader->arena, reader->expr),
        .device = entry->device_file ? path_stem(reader->arena, entry->device_file) : entry->device,
        .defines = reader->defines,
        .define_count = reader->define_count,
    };
    values.name = name ? pattern_fill(reader->arena, text_of(name, "a name"), name->loc, &values)
                       : kernel_name(reader->arena, values.expr);
    entry->name = values.name;
    entry->output = output ? pattern_fill(reader->arena, text_of(output, "a file name"), output->loc, &values)
                           : arena_printf(reader->arena, "%s/%s.cu", values.device, values.name);
    if (output)
        check_word(reader, arena_printf(reader->scratch, "--output=%s", entry->output), output->loc);
    check_ascii(entry->output, output ? output->loc : reader->kernel->loc);
}

static void copy_files(Arena *arena, Entry *entry, const Options *options)
{
    enum { OF_WEIGHTS = 2 };   // the file itself, and the source that makes it a part of a program
    entry->files = NEW_ARRAY(arena, const char *, options->artefact_count + OF_WEIGHTS + 1);
    int rest = 1;
    for (int i = 0; i < options->artefact_count; i++) {
        const char *path = options->artefacts[i].path;
        entry->files[strcmp(path, entry->output) == 0 ? 0 : rest++] = arena_strdup(arena, path);
    }
    if (is_model(entry->expr))
        entry->files[rest++] = arena_strdup(arena, options->weights);
    if (is_model(entry->expr) && options->embed)
        entry->files[rest++] = arena_printf(arena, "%s.S", options->weights);
    entry->file_count = rest;
}

/* Beside the output. */
static const char *weights_word(Arena *arena, const char *output)
{
    return arena_printf(arena, "--weights=%.*s.weights", (int)(path_suffix(output) - output), output);
}

static void complete_entry(ManifestReader *reader, Entry *entry)
{
    Arena *arena = reader->arena;
    const YamlNode *emit = setting(reader, "emit"), *name = yaml_child(reader->kernel, "name");
    Words words = begin_words(arena, reader->expr, entry->device);
    for (int i = 0; i < entry->define_count; i++)
        add_word(&words, define_word(arena, reader->expr, entry->defines[i].name, entry->defines[i].text));
    add_options(reader, &words, entry);
    add_word(&words, arena_printf(arena, "--name=%s", entry->name));
    add_word(&words, arena_printf(arena, "--output=%s", entry->output));
    if (is_model(entry->expr))
        add_word(&words, weights_word(arena, entry->output));
    if (emit)
        add_word(&words, emit_word(reader, emit));
    entry->words = NEW_ARRAY(arena, char *, words.count + 1);
    entry->word_count = words.count;
    memcpy(entry->words, words.list, sizeof *words.list * (size_t)words.count);
    const Options *options = check_words(reader->scratch, &words, name ? name->loc : reader->kernel->loc);
    entry->profiled = options->profile;
    entry->machine_code = options_want_machine_code(options);
    copy_files(arena, entry, options);
    arena_reset(reader->scratch);
}

static void add_entry(ManifestReader *reader, const char *device)
{
    Entry *entry = new_entry(reader);
    *entry = (Entry){
        .expr = reader->expr,
        .device = is_device_file(device) ? beside_manifest(reader, device) : device,
        .defines = NEW_ARRAY(reader->arena, ParamOverride, reader->define_count),
        .define_count = reader->define_count,
        .loc = reader->kernel->loc,
    };
    if (is_device_file(device))
        entry->device_file = entry->device;
    memcpy(entry->defines, reader->defines, sizeof *entry->defines * (size_t)reader->define_count);
    name_entry(reader, entry);
    complete_entry(reader, entry);
}

// ---- kernels ----

static void add_devices(ManifestReader *reader)
{
    const YamlNode *devices = setting(reader, "devices");
    for (const YamlNode *device = values_of(devices, "a device"); device;
         device = next_value(devices, device))
        add_entry(reader, text_of(device, "a device's name or file"));
}

/* Every combination of this define's values with those of the ones after it. */
static void add_combinations(ManifestReader *reader, const YamlNode *define)
{
    if (!define) {
        add_devices(reader);
        return;
    }
    ParamOverride *slot = &reader->defines[reader->define_count++];
    for (const YamlNode *value = values_of(define, "a number"); value; value = next_value(define, value)) {
        *slot = (ParamOverride){.name = define->key, .text = text_of(value, "a number")};
        add_combinations(reader, define->next);
    }
    reader->define_count--;
}

/* Before any of them is made. */
static void check_count(const ManifestReader *reader, int64_t more)
{
    if (more > MAX_ENTRIES - reader->manifest->count)
        diag_fatal(reader->kernel->loc, EXIT_INPUT, "more than %d kernels", MAX_ENTRIES);
}

static int64_t count_devices(const ManifestReader *reader)
{
    return count_values(reader->arena, setting(reader, "devices"), "a device");
}

/* Those of all values, for every device. */
static void check_combinations(const ManifestReader *reader, const YamlNode *mapping)
{
    int64_t combinations = count_devices(reader);
    for (const YamlNode *define = mapping->children; define; define = define->next) {
        combinations *= count_values(reader->arena, define, "a number");
        check_count(reader, combinations);
    }
}

static void check_defines(ManifestReader *reader, const YamlNode *mapping)
{
    if (mapping->text || mapping->list)
        diag_fatal(mapping->loc, EXIT_INPUT,
                   "wanted defines such as {N: 4096}, each a number or a list of numbers");
    check_combinations(reader, mapping);
    int count = 0;
    for (const YamlNode *define = mapping->children; define; define = define->next) {
        if (++count > MAX_PARAMS)
            diag_fatal(define->key_loc, EXIT_INPUT, "more than %d defines", MAX_PARAMS);
        for (const YamlNode *value = values_of(define, "a number"); value; value = next_value(define, value))
            check_word(reader,
                       define_word(reader->scratch, reader->expr, define->key, text_of(value, "a number")),
                       value->loc);
    }
}

static void check_devices(ManifestReader *reader, const YamlNode *devices)
{
    count_values(reader->arena, devices, "a device");
    for (const YamlNode *device = values_of(devices, "a device"); device;
         device = next_value(devices, device)) {
        const char *text = text_of(device, "a device's name or file");
        diag_place(device->loc);
        device_read(reader->scratch, is_device_file(text) ? beside_manifest(reader, text) : text);
        diag_place((Loc){0});
        arena_reset(reader->scratch);
    }
}

/* What stands in both, in the manifest for all kernels and in one. */
static void check_settings(ManifestReader *reader, const YamlNode *mapping)
{
    const YamlNode *devices = yaml_child(mapping, "devices"), *emit = yaml_child(mapping, "emit");
    const YamlNode *options = yaml_child(mapping, "options");
    if (devices)
        check_devices(reader, devices);
    if (emit)
        check_emit(reader, emit);
    if (options)
        check_options(reader, options);
}

static const char *read_expr(const ManifestReader *reader)
{
    const YamlNode *expr = yaml_child(reader->kernel, "expr");
    if (!expr)
        diag_fatal(reader->kernel->loc, EXIT_INPUT, "a kernel needs an expression: `expr: softmax.te'");
    const char *path = beside_manifest(reader, text_of(expr, "the expression's file"));
    if (access(path, R_OK) != 0)
        diag_fatal(expr->loc, EXIT_INPUT, "cannot read '%s': %s", path, strerror(errno));
    return path;
}

/* An attempt: another kernel may be wrong, too. */
static void read_kernel(void *context)
{
    ManifestReader *reader = context;
    const YamlNode *kernel = reader->kernel;
    if (kernel->text || kernel->list)
        diag_fatal(kernel->loc, EXIT_INPUT, "wanted a kernel such as {expr: softmax.te}");
    reader->define_count = 0;
    check_keys(reader->arena, kernel, kernel_keys, "a kernel");
    reader->expr = read_expr(reader);
    check_settings(reader, kernel);
    if (!setting(reader, "devices"))
        diag_fatal(kernel->loc, EXIT_INPUT,
                   "for which device? `devices: [NAME, ...]' says it, here or for all kernels");
    const YamlNode *defines = yaml_child(kernel, "defines");
    if (!defines) {
        check_count(reader, count_devices(reader));
        add_devices(reader);
        return;
    }
    for (const YamlNode *set = values_of(defines, "defines"); set; set = next_value(defines, set)) {
        check_defines(reader, set);
        add_combinations(reader, set->children);
    }
}

// ---- the file ----

/* Files of one name but for the suffix belong to one entry. */
static int by_output(const void *left, const void *right)
{
    const Entry *a = *(const Entry *const *)left, *b = *(const Entry *const *)right;
    size_t a_stem = (size_t)(path_suffix(a->output) - a->output),
           b_stem = (size_t)(path_suffix(b->output) - b->output);
    int order = strncmp(a->output, b->output, a_stem < b_stem ? a_stem : b_stem);
    return order ? order : a_stem < b_stem ? -1 : a_stem > b_stem;
}

static void check_outputs_differ(Arena *arena, const Manifest *manifest)
{
    const Entry **sorted = NEW_ARRAY(arena, const Entry *, manifest->count);
    for (int i = 0; i < manifest->count; i++)
        sorted[i] = &manifest->entries[i];
    qsort(sorted, (size_t)manifest->count, sizeof *sorted, by_output);
    for (int i = 1; i < manifest->count; i++)
        if (by_output(&sorted[i - 1], &sorted[i]) == 0) {
            const Entry *later = sorted[i] > sorted[i - 1] ? sorted[i] : sorted[i - 1];
            diag_fatal(later->loc, EXIT_INPUT,
                       "two kernels would be written to '%s'; what tells them apart belongs into `name' or "
                       "`output', such as {device} or {N}",
                       later->output);
        }
}

static int folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash - path) + 1 : 0;
}

Manifest manifest_read(Arena *arena, const char *path)
{
    static const YamlForm form = {
        .name = "a manifest",
        .wanted = "the keys 'devices:' and 'kernels:'",
        .lists = true,
        .max_bytes = MANIFEST_MAX_BYTES,
        .max_events = 1 << 19,
    };
    Manifest manifest = {0};
    const YamlNode *root = yaml_parse(arena, source_read(arena, path), &form);
    ManifestReader reader = {
        .arena = arena,
        .scratch = arena_new(),
        .manifest = &manifest,
        .folder_length = folder_length(path),
        .path = path,
        .root = root,
        .expr = "kernel.te",
    };
    check_keys(arena, root, root_keys, "a manifest");
    check_settings(&reader, root);
    const YamlNode *kernels = yaml_child(root, "kernels");
    if (!kernels || !kernels->list)
        diag_fatal(kernels ? kernels->loc : root->loc, EXIT_INPUT,
                   "a manifest needs a list of kernels: `kernels: [{expr: softmax.te}]'");
    for (reader.kernel = values_of(kernels, "a kernel"); reader.kernel; reader.kernel = reader.kernel->next)
        diag_attempt(read_kernel, &reader);
    diag_finish();
    arena_free(reader.scratch);
    check_outputs_differ(arena, &manifest);
    return manifest;
}
