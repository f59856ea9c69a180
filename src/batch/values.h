// What may stand below a key of a manifest: whatever else does is an error with EXIT_INPUT where it stands.
#pragma once
#include "hal/yaml.h"

/* Only these keys, ended by NULL; `what` has them: "a kernel". */
void check_keys(Arena *arena, const YamlNode *mapping, const char *const *keys, const char *what);

/* A word, which is not empty; `what`: "a device's name". */
const char *text_of(const YamlNode *node, const char *what);

/* A value that stands alone, or the first item of a list, which is not empty. */
const YamlNode *values_of(const YamlNode *node, const char *what);

/* The one after it; NULL: there is none. */
const YamlNode *next_value(const YamlNode *all, const YamlNode *value);

/* How many words they are. None may stand there twice: all that is made of it would be made twice. */
int count_values(Arena *arena, const YamlNode *all, const char *what);
