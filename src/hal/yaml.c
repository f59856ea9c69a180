#include "hal/yaml.h"

#include <string.h>
#include <yaml.h>

#include "base/diag.h"

typedef struct YamlReader {
    Arena *arena;
    const Source *source;
    const YamlForm *form;
    yaml_parser_t parser;
    yaml_event_t event;   // the current one
    int events;           // so far
    size_t characters;    // libyaml counts places in characters;
    size_t bytes;         // the same place in bytes
} YamlReader;

/* libyaml's memory is not ours: it is given back before the error leaves this file. */
static void close_reader(YamlReader *reader)
{
    yaml_event_delete(&reader->event);
    yaml_parser_delete(&reader->parser);
}

static _Noreturn void reject(YamlReader *reader, Loc loc, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *message = arena_vprintf(reader->arena, format, args);
    va_end(args);
    close_reader(reader);
    diag_fatal(loc, EXIT_INPUT, "%s", message);
}

/* ---- places ---- */

/* Marks never go back from one event to the next, so all calls walk the text once. */
static uint32_t offset_of(YamlReader *reader, yaml_mark_t mark)
{
    const char *text = reader->source->text;
    while (reader->characters < mark.index && reader->bytes < reader->source->length) {
        reader->bytes++;
        while ((text[reader->bytes] & 0xC0) == 0x80)   // the rest of a UTF-8 character
            reader->bytes++;
        reader->characters++;
    }
    return (uint32_t)reader->bytes;
}

static Loc here(YamlReader *reader)
{
    uint32_t start = offset_of(reader, reader->event.start_mark);
    uint32_t end = offset_of(reader, reader->event.end_mark);
    return (Loc){reader->source, start, end - start};
}

static Loc byte_at(const Source *source, size_t offset)
{
    return (Loc){source, (uint32_t)offset, 1};
}

/* ---- events ---- */

static _Noreturn void reject_syntax(YamlReader *reader)
{
    yaml_parser_t *parser = &reader->parser;
    if (parser->error == YAML_MEMORY_ERROR)
        fatal(EXIT_MACHINE, "out of memory");
    bool is_encoding = parser->error == YAML_READER_ERROR;
    size_t place = is_encoding ? parser->problem_offset : offset_of(reader, parser->problem_mark);
    reject(reader, byte_at(reader->source, place), "this is not YAML: %s", parser->problem);
}

static void next_event(YamlReader *reader)
{
    yaml_event_delete(&reader->event);
    if (!yaml_parser_parse(&reader->parser, &reader->event))
        reject_syntax(reader);
    if (++reader->events > reader->form->max_events)
        reject(reader, here(reader), "%s has at most %d words", reader->form->name, reader->form->max_events);
}

static void check_plain(YamlReader *reader, const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor)
        reject(reader, here(reader), "anchors (&%s) have no place in %s", anchor, reader->form->name);
    if (tag)
        reject(reader, here(reader), "tags (!...) have no place in %s", reader->form->name);
}

/* ---- nodes ---- */

static YamlNode *read_scalar(YamlReader *reader)
{
    check_plain(reader, reader->event.data.scalar.anchor, reader->event.data.scalar.tag);
    const char *text = (const char *)reader->event.data.scalar.value;
    size_t length = reader->event.data.scalar.length;
    if (memchr(text, '\0', length))
        reject(reader, here(reader), "a NUL character has no place in %s", reader->form->name);
    YamlNode *node = NEW(reader->arena, YamlNode);
    *node = (YamlNode){
        .key = "",
        .text = arena_strndup(reader->arena, text, length),
        .quoted = reader->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE,
        .loc = here(reader),
    };
    return node;
}

/* One word, and no word twice in the same mapping, which has so many before it. */
static const YamlNode *read_key(YamlReader *reader, const YamlNode *mapping, int before)
{
    if (reader->event.type != YAML_SCALAR_EVENT)
        reject(reader, here(reader), "wanted a key: one word before a ':'");
    const YamlNode *key = read_scalar(reader);
    if (before == YAML_MAX_KEYS)
        reject(reader, key->loc, "more than %d keys side by side", YAML_MAX_KEYS);
    if (strcmp(key->text, "<<") == 0)
        reject(reader, key->loc, "merge keys (<<) have no place in %s", reader->form->name);
    if (yaml_child(mapping, key->text))
        reject(reader, key->loc, "duplicate key '%s'", key->text);
    return key;
}

static YamlNode *read_value(YamlReader *reader, int depth);

/* "{" (key value)* "}" */
static YamlNode *read_mapping(YamlReader *reader, int depth)
{
    check_plain(reader, reader->event.data.mapping_start.anchor,
                reader->event.data.mapping_start.tag);
    YamlNode *mapping = NEW(reader->arena, YamlNode);
    *mapping = (YamlNode){.key = "", .loc = here(reader)};
    YamlNode **end = &mapping->children;
    int count = 0;
    for (next_event(reader); reader->event.type != YAML_MAPPING_END_EVENT; next_event(reader)) {
        const YamlNode *key = read_key(reader, mapping, count++);
        next_event(reader);
        YamlNode *child = read_value(reader, depth + 1);
        child->key = key->text;
        child->key_loc = key->loc;
        if (!child->text)
            child->loc = key->loc;
        *end = child;
        end = &child->next;
    }
    return mapping;
}

/* "[" value* "]" */
static YamlNode *read_list(YamlReader *reader, int depth)
{
    if (!reader->form->lists)
        reject(reader, here(reader), "lists have no place in %s", reader->form->name);
    check_plain(reader, reader->event.data.sequence_start.anchor, reader->event.data.sequence_start.tag);
    YamlNode *list = NEW(reader->arena, YamlNode);
    *list = (YamlNode){.key = "", .list = true, .loc = here(reader)};
    YamlNode **end = &list->children;
    for (next_event(reader); reader->event.type != YAML_SEQUENCE_END_EVENT; next_event(reader)) {
        *end = read_value(reader, depth + 1);
        end = &(*end)->next;
    }
    return list;
}

static YamlNode *read_value(YamlReader *reader, int depth)
{
    if (depth > YAML_MAX_DEPTH)
        reject(reader, here(reader), "nested deeper than %d levels", YAML_MAX_DEPTH);
    switch (reader->event.type) {
    case YAML_SCALAR_EVENT: return read_scalar(reader);
    case YAML_MAPPING_START_EVENT: return read_mapping(reader, depth);
    case YAML_SEQUENCE_START_EVENT: return read_list(reader, depth);
    default:   // an alias: no other event begins a value
        reject(reader, here(reader), "aliases (*%s) have no place in %s", reader->event.data.alias.anchor,
               reader->form->name);
    }
}

/* ---- the file ---- */

/* What must be known before libyaml sees a byte. */
static void check_bytes(const Source *source, const YamlForm *form)
{
    const char *text = source->text;
    if (source->length > form->max_bytes)
        diag_fatal(byte_at(source, 0), EXIT_INPUT, "%s has at most %zu bytes, this one has %zu", form->name,
                   form->max_bytes, source->length);
    static const char *const marks[] = {"\xEF\xBB\xBF", "\xFF\xFE", "\xFE\xFF"};   // UTF-8, UTF-16
    for (int i = 0; i < 3; i++)
        if (strncmp(text, marks[i], strlen(marks[i])) == 0)
            diag_fatal(byte_at(source, 0), EXIT_INPUT,
                       "a byte order mark: save the file as plain UTF-8 without one");
    const char *nul = memchr(text, '\0', source->length);
    if (nul)
        diag_fatal(byte_at(source, (size_t)(nul - text)), EXIT_INPUT,
                   "a NUL byte: the file must be plain UTF-8");
}

static void open_reader(YamlReader *reader, Arena *arena, const Source *source, const YamlForm *form)
{
    *reader = (YamlReader){.arena = arena, .source = source, .form = form};
    if (!yaml_parser_initialize(&reader->parser))
        fatal(EXIT_MACHINE, "out of memory");
    yaml_parser_set_encoding(&reader->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader->parser, (const unsigned char *)source->text,
                                 source->length);
    next_event(reader);   // the start of the stream
}

static void open_document(YamlReader *reader)
{
    next_event(reader);
    if (reader->event.type == YAML_STREAM_END_EVENT)
        reject(reader, here(reader), "the file holds nothing");
    bool has_version = reader->event.data.document_start.version_directive != NULL;
    bool has_tags = reader->event.data.document_start.tag_directives.start !=
                    reader->event.data.document_start.tag_directives.end;
    if (has_version || has_tags)
        reject(reader, here(reader), "directives (%%...) have no place in %s", reader->form->name);
    next_event(reader);
}

static void close_document(YamlReader *reader)
{
    next_event(reader);   // the end of the document
    next_event(reader);
    if (reader->event.type != YAML_STREAM_END_EVENT)
        reject(reader, here(reader), "a second document; %s has one", reader->form->name);
}

YamlNode *yaml_parse(Arena *arena, const Source *source, const YamlForm *form)
{
    check_bytes(source, form);
    YamlReader reader;
    open_reader(&reader, arena, source, form);
    open_document(&reader);
    YamlNode *root = read_value(&reader, 1);
    if (root->text)
        reject(&reader, root->loc, "wanted %s, found the text '%s'", form->wanted, root->text);
    if (root->list)
        reject(&reader, root->loc, "wanted %s, found a list", form->wanted);
    close_document(&reader);
    close_reader(&reader);
    return root;
}

const YamlNode *yaml_child(const YamlNode *mapping, const char *key)
{
    for (const YamlNode *child = mapping->children; child; child = child->next)
        if (strcmp(child->key, key) == 0)
            return child;
    return NULL;
}
