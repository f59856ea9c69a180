#include "hal/device.h"

#include <sha256.h>
#include <string.h>

#include "base/diag.h"
#include "base/embedded.h"
#include "hal/device_check.h"
#include "hal/device_fields.h"
#include "hal/yaml.h"

/* ---- "did you mean" ---- */

enum { MAX_WORD = 32 };   // the longest key has 25 characters

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Letters to insert, drop or change to turn `a` into `b` (Levenshtein, one row at a time). */
static int distance(const char *a, const char *b)
{
    int row[MAX_WORD + 1], length = (int)strlen(b);
    if (strlen(a) > MAX_WORD || length > MAX_WORD)
        return MAX_WORD;
    for (int j = 0; j <= length; j++)
        row[j] = j;
    for (int i = 0; a[i]; i++) {
        int diagonal = row[0];
        row[0] = i + 1;
        for (int j = 0; j < length; j++) {
            int changed = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = least(changed, least(row[j], row[j + 1]) + 1);
        }
    }
    return row[length];
}

/* `; did you mean 'compute.sm_count'?`, or nothing if no path of the table is near. */
static const char *suggestion(Arena *arena, const char *path)
{
    const char *best = NULL;
    int best_distance = 4;   // three slips are a typo, four are another word
    for (const DeviceField *field = device_fields; field->path; field++)
        if (distance(path, field->path) < best_distance) {
            best = field->path;
            best_distance = distance(path, best);
        }
    return best ? arena_printf(arena, "; did you mean '%s'?", best) : "";
}

/* ---- values ---- */

typedef struct Binder {
    Arena *arena;
    DeviceSpec *device;
} Binder;

static _Noreturn void wrong_value(const YamlNode *node, const DeviceField *field, const char *wanted)
{
    if (!node->text)
        diag_fatal(node->loc, EXIT_INPUT, "%s wants %s, found a group of keys", field->path, wanted);
    diag_fatal(node->loc, EXIT_INPUT, "%s wants %s, found '%s'", field->path, wanted, node->text);
}

/* [1-9][0-9]*(.[0-9]+)? or 0(.[0-9]+)?, at most 15 digits: then the double is the nearest one, in every locale. */
static bool parse_number(const char *text, double *value, bool *is_whole)
{
    enum { EXACT_DIGITS = 15 };
    int64_t digits = 0, scale = 1;
    const char *c = text, *point = NULL;
    for (; (*c >= '0' && *c <= '9') || (*c == '.' && !point); c++) {
        if (*c == '.') {
            point = c;
            continue;
        }
        if (c - text > EXACT_DIGITS)
            return false;
        digits = 10 * digits + (*c - '0');
        scale *= point ? 10 : 1;
    }
    bool leading_zero = text[0] == '0' && text[1] != '.' && text[1] != '\0';   // YAML 1.1 would read octal
    *value = (double)digits / (double)scale;
    *is_whole = !point;
    return *c == '\0' && c > text && c[-1] != '.' && *text != '.' && !leading_zero;
}

static double read_number(const Binder *binder, const YamlNode *node, const DeviceField *field)
{
    double value;
    bool is_whole, wants_whole = field->kind != FIELD_REAL;
    const char *wanted = arena_printf(binder->arena, "%s number (%s)", wants_whole ? "a whole" : "a plain decimal",
                                      field->unit);
    if (!node->text || node->quoted || !parse_number(node->text, &value, &is_whole) || (wants_whole && !is_whole))
        wrong_value(node, field, wanted);
    if (value < field->least || value > field->most)
        diag_fatal(node->loc, EXIT_INPUT, "%s = %s is out of range: wanted %s to %s %s", field->path, node->text,
                   device_number_text(binder->arena, field->least), device_number_text(binder->arena, field->most),
                   field->unit);
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
    static const char TITLE[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,()+-_/";
    enum { LONGEST = 60 };
    bool is_name = field->kind == FIELD_NAME;
    size_t length = node->text ? strlen(node->text) : 0;
    if (length == 0 || length > LONGEST || strspn(node->text, is_name ? NAME : TITLE) != length)
        wrong_value(node, field, is_name ? "a name of a-z, 0-9, '_' and '-'" : "letters, digits and any of .,()+-_/");
    return node->text;
}

static Dialect read_dialect(const YamlNode *node, const DeviceField *field)
{
    for (const DialectRow *row = dialects; row->name; row++)
        if (node->text && strcmp(row->name, node->text) == 0)
            return row->dialect;
    wrong_value(node, field, "cuda or hip");
}

static void bind_value(const Binder *binder, const YamlNode *node, const DeviceField *field)
{
    void *member = (char *)binder->device + field->offset;
    switch (field->kind) {
    case FIELD_NAME:
    case FIELD_TITLE:
        *(const char **)member = read_text(node, field);
        break;
    case FIELD_DIALECT:
        *(Dialect *)member = read_dialect(node, field);
        break;
    case FIELD_BOOL:
        *(bool *)member = read_flag(node, field);
        break;
    case FIELD_INT:
        *(int *)member = (int)read_number(binder, node, field);
        break;
    case FIELD_INT64:
        *(int64_t *)member = (int64_t)read_number(binder, node, field);
        break;
    case FIELD_REAL:
        *(double *)member = read_number(binder, node, field);
        break;
    }
}

/* ---- keys ---- */

static bool is_group(const char *name)
{
    for (const DeviceField *field = device_fields; field->path; field++)
        if (strncmp(field->path, name, strlen(name)) == 0 && field->path[strlen(name)] == '.')
            return true;
    return false;
}

static void bind_group(const Binder *binder, const YamlNode *group)
{
    if (!is_group(group->key))
        diag_fatal(group->loc, EXIT_INPUT, "unknown key '%s'; a device file has the groups device, compute, "
                   "peak_gflop_s, threads, registers, shared, l2, dram and capabilities", group->key);
    if (group->text)
        diag_fatal(group->loc, EXIT_INPUT, "'%s' wants indented keys below it, found '%s'", group->key, group->text);
    for (const YamlNode *node = group->children; node; node = node->next) {
        const char *path = arena_printf(binder->arena, "%s.%s", group->key, node->key);
        const DeviceField *field = device_field(path);
        if (!field)
            diag_fatal(node->loc, EXIT_INPUT, "unknown key '%s'%s", path, suggestion(binder->arena, path));
        bind_value(binder, node, field);
    }
}

static void check_nothing_is_missing(const Binder *binder, const YamlNode *root)
{
    for (const DeviceField *field = device_fields; field->path; field++) {
        const char *key = strchr(field->path, '.') + 1;
        const YamlNode *group = yaml_child(root, arena_strndup(binder->arena, field->path, (size_t)(key - field->path) - 1));
        if (!field->optional && !(group && yaml_child(group, key)))
            diag_fatal(group ? group->loc : root->loc, EXIT_INPUT, "missing key '%s'%s%s", field->path,
                       field->unit ? ", in " : "", field->unit ? field->unit : "");
    }
}

/* ---- files ---- */

static const char *digest(Arena *arena, const Source *source)
{
    char hex[SHA256_DIGEST_STRING_LENGTH];
    SHA256Data((const uint8_t *)source->text, source->length, hex);
    return arena_strdup(arena, hex);
}

DeviceSpec *device_parse(Arena *arena, const Source *source)
{
    const YamlNode *root = yaml_parse(arena, source);
    DeviceSpec *device = NEW(arena, DeviceSpec);
    const Binder binder = {arena, device};
    for (const YamlNode *group = root->children; group; group = group->next)
        bind_group(&binder, group);
    check_nothing_is_missing(&binder, root);
    device_check(arena, device, root);
    device->sha256 = digest(arena, source);
    device->file = source->name;
    return device;
}

static bool ends_in(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

static bool is_device_file(const EmbeddedFile *file)
{
    return strncmp(file->path, "devices/", strlen("devices/")) == 0 && ends_in(file->path, ".yaml");
}

static DeviceSpec *parse_embedded(Arena *arena, const EmbeddedFile *file)
{
    return device_parse(arena, source_from_text(arena, file->path, file->text, file->length));
}

static const EmbeddedFile *built_in(const char *name)
{
    for (const EmbeddedFile *file = embedded_files; file->path; file++) {
        const char *stem = file->path + strlen("devices/");
        if (is_device_file(file) && strlen(stem) == strlen(name) + strlen(".yaml") &&
            strncmp(stem, name, strlen(name)) == 0)
            return file;
    }
    return NULL;
}

static _Noreturn void unknown_device(Arena *arena, const char *name)
{
    StrBuf known = strbuf_new(arena);
    for (const EmbeddedFile *file = embedded_files; file->path; file++)
        if (is_device_file(file)) {
            const char *stem = file->path + strlen("devices/");
            strbuf_printf(&known, "%s%.*s", known.length ? ", " : "", (int)(strlen(stem) - strlen(".yaml")), stem);
        }
    fatal(EXIT_INPUT, "unknown device '%s'; built in are %s; a file needs a '/' or .yaml", name, known.text);
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
