#include "hal/device.h"

#include <string.h>

#include "base/diag.h"
#include "base/embedded.h"
#include "base/hash.h"
#include "base/nearest.h"
#include "hal/device_check.h"
#include "hal/device_fields.h"
#include "hal/yaml.h"

/* Names the key of the table that is near, if one is. */
static const char *suggestion(Arena *arena, const char *path)
{
    Nearest nearest = nearest_to(path);
    for (const DeviceField *field = device_fields; field->path; field++)
        nearest_try(&nearest, field->path);
    return nearest_suggestion(arena, &nearest);
}

/* ---- values ---- */

static _Noreturn void wrong_value(const YamlNode *node, const DeviceField *field,
                                  const char *wanted)
{
    if (!node->text)
        diag_fatal(node->loc, EXIT_INPUT, "%s wants %s, found a group of keys", field->path,
                   wanted);
    diag_fatal(node->loc, EXIT_INPUT, "%s wants %s, found '%s'", field->path, wanted, node->text);
}

/* The number of digits at `text`. A leading zero counts as none: YAML 1.1 would read octal. */
static size_t whole_digits(const char *text)
{
    size_t count = strspn(text, "0123456789");
    return text[0] == '0' && count > 1 ? 0 : count;
}

/* 108 or, unless it must be whole, 3.25. With 15 digits at most both parts of the division are
   exact, so the result is the nearest double; the locale has no say. */
static bool parse_number(const char *text, bool is_whole, double *value)
{
    enum { EXACT_DIGITS = 15 };
    size_t before = whole_digits(text);
    const char *point = !is_whole && text[before] == '.' ? text + before : NULL;
    size_t after = point ? strspn(point + 1, "0123456789") : 0;
    const char *end = point ? point + 1 + after : text + before;
    if (before == 0 || before + after > EXACT_DIGITS || (point && after == 0) || *end)
        return false;
    double digits = 0, scale = 1;
    for (const char *c = text; c < end; c++)
        digits = c == point ? digits : 10 * digits + (*c - '0');
    for (size_t i = 0; i < after; i++)
        scale *= 10;
    *value = digits / scale;
    return true;
}

static double read_number(Arena *arena, const YamlNode *node, const DeviceField *field)
{
    double value;
    bool is_whole = field->kind != FIELD_REAL;
    if (!node->text || node->quoted || !parse_number(node->text, is_whole, &value))
        wrong_value(node, field, arena_printf(arena, "a %s number (%s)",
                                              is_whole ? "whole" : "plain decimal", field->unit));
    if (value < field->least || value > field->most)
        diag_fatal(node->loc, EXIT_INPUT, "%s = %s is out of range: wanted %s to %s %s",
                   field->path, node->text, device_number_text(arena, field->least),
                   device_number_text(arena, field->most), field->unit);
    return value;
}

static bool read_flag(const YamlNode *node, const DeviceField *field)
{
    bool is_true = node->text && !node->quoted && strcmp(node->text, "true") == 0;
    bool is_false = node->text && !node->quoted && strcmp(node->text, "false") == 0;
    if (!is_true && !is_false)
        wrong_value(node, field, "true or false");
    return is_true;
}

/* Names and titles reach comments of generated code: only characters that can do nothing there. */
static const char *read_text(const YamlNode *node, const DeviceField *field)
{
    static const char NAME[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    static const char TITLE[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789 .,()+-_/";
    enum { LONGEST = 60 };
    bool is_name = field->kind == FIELD_NAME;
    size_t length = node->text ? strlen(node->text) : 0;
    if (length == 0 || length > LONGEST || strspn(node->text, is_name ? NAME : TITLE) != length)
        wrong_value(node, field, is_name ? "a name of a-z, 0-9, '_' and '-'"
                                         : "letters, digits and any of .,()+-_/");
    return node->text;
}

static Dialect read_dialect(const YamlNode *node, const DeviceField *field)
{
    for (const DialectRow *row = dialects; row->name; row++)
        if (node->text && strcmp(row->name, node->text) == 0)
            return row->dialect;
    wrong_value(node, field, "cuda, hip or none");
}

/* Into the member of the device that the row of the table names. */
static void bind_value(Arena *arena, void *device, const YamlNode *node, const DeviceField *field)
{
    void *member = (char *)device + field->offset;
    switch (field->kind) {
    case FIELD_NAME:
    case FIELD_TITLE: *(const char **)member = read_text(node, field); break;
    case FIELD_DIALECT: *(Dialect *)member = read_dialect(node, field); break;
    case FIELD_BOOL: *(bool *)member = read_flag(node, field); break;
    case FIELD_INT: *(int *)member = (int)read_number(arena, node, field); break;
    case FIELD_INT64: *(int64_t *)member = (int64_t)read_number(arena, node, field); break;
    case FIELD_REAL: *(double *)member = read_number(arena, node, field); break;
    }
}

/* ---- keys ---- */

static const char *group_of(Arena *arena, const DeviceField *field)
{
    return arena_strndup(arena, field->path, strcspn(field->path, "."));
}

/* "device, compute, ..." */
static const char *all_groups(Arena *arena)
{
    StrBuf groups = strbuf_new(arena);
    const char *last = "";
    for (const DeviceField *field = device_fields; field->path; field++) {
        const char *group = group_of(arena, field);
        if (strcmp(group, last) != 0)
            strbuf_printf(&groups, "%s%s", groups.length ? ", " : "", group);
        last = group;
    }
    return groups.text;
}

static void check_group(Arena *arena, const YamlNode *group)
{
    bool is_known = false;
    for (const DeviceField *field = device_fields; field->path; field++)
        is_known |= strcmp(group_of(arena, field), group->key) == 0;
    if (!is_known)
        diag_fatal(group->loc, EXIT_INPUT, "unknown key '%s'; a device file has the groups %s",
                   group->key, all_groups(arena));
    if (group->text)
        diag_fatal(group->loc, EXIT_INPUT, "'%s' wants indented keys below it, found '%s'",
                   group->key, group->text);
}

static void bind_group(Arena *arena, DeviceSpec *device, const YamlNode *group)
{
    check_group(arena, group);
    for (const YamlNode *node = group->children; node; node = node->next) {
        const char *path = arena_printf(arena, "%s.%s", group->key, node->key);
        const DeviceField *field = device_field(path);
        if (!field)
            diag_fatal(node->loc, EXIT_INPUT, "unknown key '%s'%s", path, suggestion(arena, path));
        bind_value(arena, device, node, field);
    }
}

static double standard_value(const DeviceSpec *device, const DeviceField *field)
{
    switch (field->of) {
    case STANDARD_CLOCKS_US: return field->standard / device->clock_mhz;
    case STANDARD_LATENCIES_US: return field->standard * device->dram_latency_ns / 1e3;
    case STANDARD_LATENCIES_NS: return field->standard * device->dram_latency_ns;
    case STANDARD_ITSELF: break;
    }
    return field->standard;
}

static bool is_given(Arena *arena, const YamlNode *root, const DeviceField *field)
{
    const YamlNode *group = yaml_child(root, group_of(arena, field));
    return group && yaml_child(group, strchr(field->path, '.') + 1);
}

static void check_complete(Arena *arena, const DeviceSpec *device, const YamlNode *root)
{
    for (const DeviceField *field = device_fields; field->path; field++) {
        const YamlNode *group = yaml_child(root, group_of(arena, field));
        bool needed = !field->optional && !(field->cached && device_is_bulk_synchronous(device));
        if (needed && !is_given(arena, root, field))
            diag_fatal(group ? group->loc : root->loc, EXIT_INPUT, "missing key '%s'%s%s",
                       field->path, field->unit ? ", in " : "", field->unit ? field->unit : "");
    }
}

/* Standards take the place of what is absent, those last that count in the latency. */
static void complete_standards(Arena *arena, DeviceSpec *device, const YamlNode *root)
{
    for (int relative = 0; relative <= 1; relative++)
        for (const DeviceField *field = device_fields; field->path; field++)
            if (field->standard != 0 && (field->of != STANDARD_ITSELF) == relative &&
                !is_given(arena, root, field))
                *(double *)((char *)device + field->offset) = standard_value(device, field);
}

/* Without a cache what would hit it comes from memory. */
static void complete_cache(DeviceSpec *device, const YamlNode *root)
{
    if (yaml_child(root, "l2"))
        return;
    device->l2 = device->dram;
    device->l2_latency_ns = device->dram_latency_ns;
}

/* ---- files ---- */

static const EmbeddedFile *built_in(const char *name);
static const char *built_in_names(Arena *arena, Nearest *nearest);

/* The nodes of the first mapping, then those that only the second one has. */
static const YamlNode *joined(Arena *arena, const YamlNode *own, const YamlNode *base)
{
    YamlNode *all = arena_copy(arena, own, sizeof *own), **end = &all->children;
    for (const YamlNode *node = own->children; node; node = node->next, end = &(*end)->next) {
        const YamlNode *beside = yaml_child(base, node->key);
        *end = arena_copy(arena, node, sizeof *node);
        if (beside && node->children && beside->children)
            (*end)->children = joined(arena, node, beside)->children;
    }
    for (const YamlNode *node = base->children; node; node = node->next)
        if (!yaml_child(own, node->key)) {
            *end = arena_copy(arena, node, sizeof *node);
            end = &(*end)->next;
        }
    *end = NULL;
    return all;
}

static const YamlNode *parse_nodes(Arena *arena, const Source *source, int depth);

/* `like: NAME`: what the file does not say is as there. */
static const YamlNode *with_base(Arena *arena, const YamlNode *root, const YamlNode *like, int depth)
{
    enum { DEEPEST = 4 };
    if (!like->text)
        diag_fatal(like->loc, EXIT_INPUT, "like wants the name of a built-in device, found a group of keys");
    const EmbeddedFile *base = built_in(like->text);
    Nearest nearest = nearest_to(like->text);
    const char *names = built_in_names(arena, &nearest);
    if (!base)
        diag_fatal(like->loc, EXIT_INPUT,
                   "like wants the name of a built-in device, found '%s'%s (built in are %s)", like->text,
                   nearest_suggestion(arena, &nearest), names);
    const YamlNode *group = yaml_child(root, "device");
    if (!group || !yaml_child(group, "name"))
        diag_fatal(like->loc, EXIT_INPUT, "a file that is like another device needs a name of its own: "
                                          "missing key 'device.name'");
    if (depth == DEEPEST)
        diag_fatal(like->loc, EXIT_INPUT, "more than %d files that are like others", DEEPEST);
    const Source *text = source_from_text(arena, base->path, base->text, base->length);
    return joined(arena, root, parse_nodes(arena, text, depth + 1));
}

static const YamlNode *parse_nodes(Arena *arena, const Source *source, int depth)
{
    static const YamlForm form = {
        .name = "a device file",
        .wanted = "groups of keys such as 'compute:'",
        .max_bytes = 64 * 1024,   // the longest has 6 KB
        .max_events = 4096,       // one has some 120
    };
    const YamlNode *root = yaml_parse(arena, source, &form), *like = yaml_child(root, "like");
    return like ? with_base(arena, root, like, depth) : root;
}

static DeviceSpec *parse_file(Arena *arena, const Source *source, const char *sha256)
{
    const YamlNode *root = parse_nodes(arena, source, 0);
    DeviceSpec *device = NEW(arena, DeviceSpec);
    for (const YamlNode *group = root->children; group; group = group->next)
        if (strcmp(group->key, "like") != 0)
            bind_group(arena, device, group);
    check_complete(arena, device, root);
    complete_standards(arena, device, root);
    complete_cache(device, root);
    device_check(arena, device, root);
    device->sha256 = sha256;
    device->file = source->name;
    return device;
}

DeviceSpec *device_parse(Arena *arena, const Source *source)
{
    return parse_file(arena, source, hash_of(arena, source->text, source->length));
}

static bool ends_in(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

static bool is_device_file(const EmbeddedFile *file)
{
    bool is_below = strncmp(file->path, "devices/", strlen("devices/")) == 0;
    return is_below && ends_in(file->path, ".yaml");
}

static DeviceSpec *parse_embedded(Arena *arena, const EmbeddedFile *file)
{
    return parse_file(arena, source_from_text(arena, file->path, file->text, file->length), file->sha256);
}

/* "devices/" "name" ".yaml" */
static const EmbeddedFile *built_in(const char *name)
{
    for (const EmbeddedFile *file = embedded_files; file->path; file++) {
        const char *stem = file->path + strlen("devices/");
        size_t length = strcspn(stem, ".");
        if (is_device_file(file) && strlen(name) == length && strncmp(stem, name, length) == 0)
            return file;
    }
    return NULL;
}

static const char *built_in_names(Arena *arena, Nearest *nearest)
{
    StrBuf names = strbuf_new(arena);
    for (const EmbeddedFile *file = embedded_files; file->path; file++)
        if (is_device_file(file)) {
            const char *stem = file->path + strlen("devices/");
            const char *name = arena_strndup(arena, stem, strcspn(stem, "."));
            strbuf_printf(&names, "%s%s", names.length ? ", " : "", name);
            nearest_try(nearest, name);
        }
    return names.text;
}

static _Noreturn void unknown_device(Arena *arena, const char *name)
{
    Nearest nearest = nearest_to(name);
    const char *names = built_in_names(arena, &nearest);
    fatal(EXIT_INPUT, "unknown device '%s'%s (built in are %s; a file needs a '/' or .yaml)", name,
          nearest_suggestion(arena, &nearest), names);
}

DeviceSpec *device_read(Arena *arena, const char *device)
{
    if (strchr(device, '/') || ends_in(device, ".yaml"))
        return device_parse(arena, source_read(arena, device));
    const EmbeddedFile *file = built_in(device);
    if (!file)
        unknown_device(arena, device);
    return parse_embedded(arena, file);
}

const char *device_text(const char *name)
{
    const EmbeddedFile *file = built_in(name);
    return file ? file->text : NULL;
}

void device_list(StrBuf *out)
{
    for (const EmbeddedFile *file = embedded_files; file->path; file++)
        if (is_device_file(file)) {
            const DeviceSpec *device = parse_embedded(out->arena, file);
            strbuf_printf(out, "%-10s %s\n", device->name, device->title);
        }
}

int device_most_cluster_blocks(const DeviceSpec *device)
{
    return device->has.clusters ? device->max_blocks_per_cluster : 1;
}

int device_portable_cluster_blocks(const DeviceSpec *device)
{
    int most = device_most_cluster_blocks(device);
    return most < PORTABLE_CLUSTER_BLOCKS ? most : PORTABLE_CLUSTER_BLOCKS;
}

int device_sms_of_clusters(const DeviceSpec *device, int blocks)
{
    return blocks > 2 && device->cluster_sms ? device->cluster_sms : device->sm_count;
}

int64_t device_most_blocks(const DeviceSpec *device, int64_t threads)
{
    int64_t most = device->max_blocks_per_launch ? device->max_blocks_per_launch : MOST_BLOCKS;
    int64_t filled = device->max_threads_per_launch / threads;
    return device->max_threads_per_launch && filled < most ? filled : most;
}
