#include "batch/values.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/nearest.h"
#include "base/strbuf.h"

void check_keys(Arena *arena, const YamlNode *mapping, const char *const *keys, const char *what)
{
    for (const YamlNode *child = mapping->children; child; child = child->next) {
        StrBuf all = strbuf_new(arena);
        Nearest nearest = nearest_to(child->key);
        bool known = false;
        for (int i = 0; keys[i]; i++) {
            strbuf_printf(&all, "%s%s", i ? ", " : "", keys[i]);
            nearest_try(&nearest, keys[i]);
            known |= strcmp(child->key, keys[i]) == 0;
        }
        if (!known)
            diag_fatal(child->key_loc, EXIT_INPUT, "unknown key '%s' of %s, which has %s%s", child->key, what,
                       all.text, nearest_suggestion(arena, &nearest));
    }
}

const char *text_of(const YamlNode *node, const char *what)
{
    if (!node->text || !*node->text)
        diag_fatal(node->loc, EXIT_INPUT, "wanted %s, found %s", what,
                   node->text   ? "nothing"
                   : node->list ? "a list"
                                : "a mapping");
    return node->text;
}

const YamlNode *values_of(const YamlNode *node, const char *what)
{
    if (node->list && !node->children)
        diag_fatal(node->loc, EXIT_INPUT, "wanted %s, found an empty list", what);
    return node->list ? node->children : node;
}

const YamlNode *next_value(const YamlNode *all, const YamlNode *value)
{
    return all->list ? value->next : NULL;
}

static int by_text(const void *left, const void *right)
{
    const YamlNode *a = *(const YamlNode *const *)left, *b = *(const YamlNode *const *)right;
    int order = strcmp(a->text, b->text);
    return order ? order : a->loc.offset < b->loc.offset ? -1 : a->loc.offset > b->loc.offset;
}

int count_values(Arena *arena, const YamlNode *all, const char *what)
{
    int count = 0, at = 0;
    for (const YamlNode *value = values_of(all, what); value; value = next_value(all, value))
        count++;
    const YamlNode **sorted = NEW_ARRAY(arena, const YamlNode *, count), *again = NULL;
    for (const YamlNode *value = values_of(all, what); value; value = next_value(all, value)) {
        text_of(value, what);
        sorted[at++] = value;
    }
    qsort(sorted, (size_t)count, sizeof *sorted, by_text);
    for (int i = 1; i < count; i++)
        if (strcmp(sorted[i - 1]->text, sorted[i]->text) == 0 &&
            (!again || sorted[i]->loc.offset < again->loc.offset))
            again = sorted[i];
    if (again)
        diag_fatal(again->loc, EXIT_INPUT, "'%s' stands in this list before", again->text);
    return count;
}
