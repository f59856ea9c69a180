#include "front/onnx/wire.h"

#include <string.h>

#include "base/diag.h"
#include "base/utf8.h"

enum {
    MAX_NESTING = 100,        // messages within each other: an `If` within an `If` takes three
    MAX_NAME_BYTES = 4096,    // of a graph's value; exporters join names of modules to some hundreds
    MAX_MESSAGES = 1 << 20,   // of a model; large ones have 100,000, each takes some 200 bytes unpacked
};

// ---- scan: the same walk that unpacking makes, bounded ----

typedef struct Scan {
    const char *name;
    int messages;
} Scan;

/* What newer versions of the format have and what says nothing of a model's meaning. */
static const struct { const char *message; uint32_t field; } harmless[] = {
    {"onnx.NodeProto", 9},        // metadata_props
    {"onnx.NodeProto", 10},       // device_configurations
    {"onnx.ModelProto", 26},      // configuration
    {"onnx.GraphProto", 16},      // metadata_props
    {"onnx.TensorProto", 16},     // metadata_props
    {"onnx.ValueInfoProto", 4},   // metadata_props
    {"onnx.FunctionProto", 12},   // value_info
    {"onnx.FunctionProto", 14},   // metadata_props
};

static bool is_harmless(const char *message, uint32_t field)
{
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (harmless[i].field == field && strcmp(harmless[i].message, message) == 0)
            return true;
    return false;
}

static _Noreturn void broken(const Scan *scan, const char *what)
{
    fatal(EXIT_INPUT, "'%s' is no ONNX model: %s", scan->name, what);
}

static uint64_t read_varint(const Scan *scan, const uint8_t **at, const uint8_t *end)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (*at == end)
            broken(scan, "a number is cut off");
        uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    broken(scan, "a number has more than 64 bits");
}

/* Bytes of a field's contents, behind its length where it has one. */
static size_t read_extent(const Scan *scan, int wire_type, const uint8_t **at, const uint8_t *end)
{
    uint64_t length = 0;
    switch (wire_type) {
    case 0: read_varint(scan, at, end); return 0;
    case 1: length = 8; break;
    case 2: length = read_varint(scan, at, end); break;
    case 5: length = 4; break;
    default: broken(scan, "a field is of a kind that the format does not have");
    }
    if (length > (uint64_t)(end - *at))
        broken(scan, "a field reaches beyond what holds it");
    return (size_t)length;
}

static void check_field(const Scan *scan, const ProtobufCMessageDescriptor *kind, uint32_t field,
                        size_t length, int wire_type)
{
    bool is_empty = wire_type == 2 && length == 0;   // as if it were not there
    if (!is_empty && !is_harmless(kind->name, field))
        fatal(
            EXIT_INPUT,
            "'%s' holds field %u of %s, which this version does not know; export the model for IR version 8",
            scan->name, field, kind->short_name);
}

/* Names come into messages and comments: they are one line, and show what is there. */
static void check_name(const Scan *scan, const ProtobufCMessageDescriptor *kind,
                       const ProtobufCFieldDescriptor *field, const uint8_t *at, size_t length)
{
    bool is_note = kind == &onnx__model_proto__descriptor ||
                   kind == &onnx__string_string_entry_proto__descriptor ||
                   strcmp(field->name, "doc_string") == 0;
    const char *text = (const char *)at;
    for (size_t i = 0, bytes; i < length && !is_note; i += bytes)
        if (!(bytes = utf8_shown(text + i, length - i, NULL)))
            fatal(EXIT_INPUT, "'%s' has a name that cannot be shown: '%s' of %s holds byte %#x", scan->name,
                  field->name, kind->short_name, at[i]);
    if (length > MAX_NAME_BYTES && !is_note)
        fatal(EXIT_INPUT, "'%s' has a name of %zu bytes; at most %d can be taken", scan->name, length,
              MAX_NAME_BYTES);
}

static void scan_message(Scan *scan, const ProtobufCMessageDescriptor *kind, const uint8_t *at,
                         const uint8_t *end, int depth)
{
    if (depth > MAX_NESTING)
        broken(scan, "more than 100 messages stand within each other");
    if (++scan->messages > MAX_MESSAGES)
        broken(scan, "it has more than 1048576 parts");
    while (at < end) {
        uint64_t tag = read_varint(scan, &at, end);
        if (tag >> 3 == 0 || tag >> 32)
            broken(scan, "a field has no number");
        size_t length = read_extent(scan, (int)(tag & 7), &at, end);
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(kind, (unsigned)(tag >> 3));
        if (!field)
            check_field(scan, kind, (uint32_t)(tag >> 3), length, (int)(tag & 7));
        else if (field->type == PROTOBUF_C_TYPE_MESSAGE && (tag & 7) == 2)
            scan_message(scan, field->descriptor, at, at + length, depth + 1);
        else if (field->type == PROTOBUF_C_TYPE_STRING)
            check_name(scan, kind, field, at, length);
        at += length;
    }
}

// ---- unpack, into the arena ----

static void *allocate(void *arena, size_t size) { return arena_room(arena, size); }
static void release(void *arena, void *pointer) { (void)arena, (void)pointer; }

static ProtobufCMessage *unpack(Arena *arena, const char *name, const ProtobufCMessageDescriptor *kind,
                                const void *bytes, size_t length)
{
    Scan scan = {.name = name};
    scan_message(&scan, kind, bytes, (const uint8_t *)bytes + length, 0);
    ProtobufCAllocator allocator = {allocate, release, arena};
    ProtobufCMessage *message = protobuf_c_message_unpack(kind, &allocator, length, bytes);
    if (!message)
        broken(&scan, "a field is not of its kind");
    return message;
}

const Onnx__ModelProto *wire_unpack(Arena *arena, const char *name, const void *bytes, size_t length)
{
    const Onnx__ModelProto *model =
        (const Onnx__ModelProto *)unpack(arena, name, &onnx__model_proto__descriptor, bytes, length);
    if (!model->graph)
        fatal(EXIT_INPUT, "'%s' is no ONNX model: it has no graph", name);
    return model;
}
