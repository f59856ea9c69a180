#include "base/json.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/strbuf.h"
#include "base/utf8.h"

// `Json` is cJSON's node under a name of our own, so that no header shows a third party's type.
static cJSON *node(Json *json) { return (cJSON *)json; }
static Json *json(cJSON *node) { return (Json *)node; }

static cJSON *made(cJSON *item)
{
    if (!item)
        fatal(EXIT_MACHINE, "out of memory");
    return item;
}

static Json *set(Json *object, const char *key, cJSON *item)
{
    if (!cJSON_AddItemToObjectCS(node(object), key, made(item)))   // without a copy of the key
        fatal(EXIT_MACHINE, "out of memory");
    return json(item);
}

static Json *push(Json *array, cJSON *item)
{
    cJSON_AddItemToArray(node(array), made(item));
    return json(item);
}

static cJSON *string_node(const char *value)
{
    if (!value)
        return cJSON_CreateNull();
    cJSON *item = made(cJSON_CreateString(value));
    size_t length = strlen(value);
    for (size_t i = 0, bytes; i < length; i += bytes ? bytes : 1) {
        bytes = utf8_shown(value + i, length - i, NULL);
        if (!bytes &&
            (unsigned char)value[i] > 0x7e)   // cJSON copies bytes: broken UTF-8 would be broken JSON
            item->valuestring[i] = '?';
    }
    return item;
}

/* cJSON keeps numbers as doubles and prints 15 digits: 2^53+1 would come out as 9.00719925474099e+15. */
static cJSON *int_node(int64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, value);
    return cJSON_CreateRaw(digits);
}

static cJSON *double_node(double value)
{
    assert(isfinite(value));   // JSON has no word for infinity: whoever has one writes a status instead
    char digits[64];           // a double takes at most 24 characters, so the buffer never grows
    StrBuf text = {.text = digits, .capacity = sizeof digits};
    strbuf_double(&text, value);
    return cJSON_CreateRaw(text.text);
}

Json *json_object(void) { return json(made(cJSON_CreateObject())); }
Json *json_array(void) { return json(made(cJSON_CreateArray())); }
void json_free(Json *root) { cJSON_Delete(node(root)); }

void json_set_string(Json *object, const char *key, const char *value)
{
    set(object, key, string_node(value));
}
void json_set_int(Json *object, const char *key, int64_t value) { set(object, key, int_node(value)); }
void json_set_double(Json *object, const char *key, double value) { set(object, key, double_node(value)); }
void json_set_bool(Json *object, const char *key, bool value) { set(object, key, cJSON_CreateBool(value)); }
Json *json_set_object(Json *object, const char *key) { return set(object, key, cJSON_CreateObject()); }
Json *json_set_array(Json *object, const char *key) { return set(object, key, cJSON_CreateArray()); }

void json_push_string(Json *array, const char *value) { push(array, string_node(value)); }
void json_push_int(Json *array, int64_t value) { push(array, int_node(value)); }
Json *json_push_object(Json *array) { return push(array, cJSON_CreateObject()); }

/* cJSON indents with tabs and puts one behind each colon. Inside strings a tab is always written `\t`, so
   every tab in its text is layout: at the start of a line it becomes two blanks, elsewhere one. */
static char *with_blanks(Arena *arena, const char *text)
{
    size_t blanks = 0;
    for (const char *c = text; *c; c++)
        blanks += *c == '\t' ? 2 : 1;
    char *copy = arena_room(arena, blanks + 2), *out = copy;
    bool line_start = true;
    for (; *text; text++) {
        if (*text == '\t' && line_start)
            *out++ = ' ';
        else
            line_start = *text == '\n';
        *out++ = *text == '\t' ? ' ' : *text;
    }
    strcpy(out, "\n");
    return copy;
}

char *json_text(Arena *arena, const Json *root, bool indented)
{
    const cJSON *tree = (const cJSON *)root;
    char *text = indented ? cJSON_Print(tree) : cJSON_PrintUnformatted(tree);
    if (!text)
        fatal(EXIT_MACHINE, "out of memory");
    char *copy = indented ? with_blanks(arena, text) : arena_strdup(arena, text);
    cJSON_free(text);
    return copy;
}

// ---- in ----

const Json *json_first(const Json *array) { return (const Json *)((const cJSON *)array)->child; }
const Json *json_next(const Json *item) { return (const Json *)((const cJSON *)item)->next; }

Json *json_read(const char *text, const char **wrong)
{
    return json(cJSON_ParseWithOpts(text, wrong, true));
}

const Json *json_get(const Json *object, const char *key)
{
    return (const Json *)cJSON_GetObjectItemCaseSensitive((const cJSON *)object, key);
}

const char *json_key(const Json *item) { return ((const cJSON *)item)->string; }
const char *json_string(const Json *item) { return cJSON_GetStringValue((const cJSON *)item); }
bool json_is_true(const Json *item) { return cJSON_IsTrue((const cJSON *)item); }
bool json_is_object(const Json *item) { return cJSON_IsObject((const cJSON *)item); }
bool json_is_array(const Json *item) { return cJSON_IsArray((const cJSON *)item); }

bool json_number(const Json *item, double *value)
{
    const cJSON *number = (const cJSON *)item;
    if (!cJSON_IsNumber(number) || !isfinite(number->valuedouble))
        return false;
    *value = number->valuedouble;
    return true;
}
