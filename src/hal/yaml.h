// A device file needs little of YAML: mappings of mappings of words and numbers. This reads just
// that, and says where everything stood, so that an error found later can still point at the text.
//
// Lists, anchors, aliases, tags, merge keys, directives, duplicate keys and second documents are
// errors. Size, depth and the number of events are limited, so no file takes long.
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "base/source.h"

enum {
    YAML_MAX_BYTES = 64 * 1024,   // the longest device file has 6 KB
    YAML_MAX_DEPTH = 16,          // a device file has 2; libyaml's time is quadratic in the depth
    YAML_MAX_EVENTS = 4096,       // a device file has some 120
};

/* One value of a mapping. */
typedef struct YamlNode {
    const char *key;              // "" at the root
    const char *text;             // of a scalar; NULL for a mapping
    bool quoted;                  // or a block scalar: a text, even if it looks like a number
    Loc loc;                      // a scalar's own; a mapping's is its key's
    struct YamlNode *children;    // of a mapping, in the order of the file
    struct YamlNode *next;
} YamlNode;

/* The root mapping. What is wrong with the file is an error with EXIT_INPUT. */
YamlNode *yaml_parse(Arena *arena, const Source *source);

/* The value below `key`, NULL if there is none. */
const YamlNode *yaml_child(const YamlNode *mapping, const char *key);
