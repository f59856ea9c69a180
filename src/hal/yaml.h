// Our files need little of YAML: mappings of words and numbers, some also lists. This reads just that, and
// says where everything stood, so that an error found later can still point at the text.
//
// Anchors, aliases, tags, merge keys, directives, duplicate keys and second documents are errors. Size, depth
// and the number of events are limited, so no file takes long.
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "base/source.h"

enum {
    YAML_MAX_DEPTH = 16,   // a device file has 2, a manifest 5; libyaml's time is quadratic in the depth
    YAML_MAX_KEYS =
        512,   // of one mapping, each compared with those before it: a set of defines has 256 at most
};

/* What a kind of file may hold. */
typedef struct YamlForm {
    const char *name;     // "a device file"
    const char *wanted;   // of its root, for who writes something else there
    bool lists;
    size_t max_bytes;
    int max_events;       // some two for each word
} YamlForm;

/* One value of a mapping or a list. */
typedef struct YamlNode {
    const char *key;              // "" at the root and in a list
    const char *text;             // of a scalar; NULL for a mapping or a list
    bool quoted;                  // or a block scalar: a text, even if it looks like a number
    bool list;
    Loc loc;                      // a scalar's own; a mapping's or list's is its key's, where it has one
    Loc key_loc;                  // nowhere without a key
    struct YamlNode *children;    // of a mapping or a list, in the order of the file
    struct YamlNode *next;
} YamlNode;

/* The root mapping. What is wrong with the file is an error with EXIT_INPUT. */
YamlNode *yaml_parse(Arena *arena, const Source *source, const YamlForm *form);

/* The value below `key`, NULL if there is none. */
const YamlNode *yaml_child(const YamlNode *mapping, const char *key);
