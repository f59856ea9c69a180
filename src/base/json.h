// JSON out and in: the only user of cJSON. Integers are printed exactly, doubles as the shortest decimal.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* An object or array under construction. Everything hangs from the root and goes with json_free(root). */
typedef struct Json Json;

Json *json_object(void);
Json *json_array(void);
void json_free(Json *root);

// Add to an object. Keys keep the order in which they were added, and live as long as it.
void json_set_string(Json *object, const char *key,
                     const char *value);   // NULL: null. Bytes that are no UTF-8 become '?'
void json_set_int(Json *object, const char *key, int64_t value);
void json_set_double(Json *object, const char *key, double value);        // must be finite
void json_set_bool(Json *object, const char *key, bool value);
Json *json_set_object(Json *object, const char *key);                     // returns the new, empty child
Json *json_set_array(Json *object, const char *key);

// Add to an array.
void json_push_string(Json *array, const char *value);
void json_push_int(Json *array, int64_t value);
Json *json_push_object(Json *array);

/* One line, or indented by two blanks with a final newline. */
char *json_text(Arena *arena, const Json *root, bool indented);

/* What a text says, to be given back by json_free(); NULL: it is no JSON, and `*wrong` is where. */
Json *json_read(const char *text, const char **wrong);

/* The first item of an array or object, and the one after another; NULL: there is none. */
const Json *json_first(const Json *array);
const Json *json_next(const Json *item);

// What an item is; NULL, false: it is nothing, or something else.
const Json *json_get(const Json *object, const char *key);
const char *json_key(const Json *item);   // in its object
const char *json_string(const Json *item);
bool json_number(const Json *item, double *value);
bool json_is_true(const Json *item);
bool json_is_object(const Json *item);
bool json_is_array(const Json *item);
