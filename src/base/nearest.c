#include "base/nearest.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum {
    MAX_WORD = 63,
    FAR = MAX_WORD + 1
};   // characters: names have at most so many, the longest device key 31

static int least(int a, int b) { return a < b ? a : b; }

/* Letters to insert, drop or change to get `b` from `a` (Levenshtein, row by row). */
static int distance(const char *a, const char *b)
{
    int row[MAX_WORD + 1], length = (int)strlen(b);
    if (strlen(a) > MAX_WORD || length > MAX_WORD)
        return FAR;
    if (strcasecmp(a, b) == 0)
        return strcmp(a, b) != 0;
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

Nearest nearest_to(const char *word)
{
    size_t length = strlen(word);
    return (Nearest){.word = word, .slips = length < 3 ? 1 : length < 5 ? 2 : length < 12 ? 3 : 4};
}

void nearest_try(Nearest *nearest, const char *candidate)
{
    int slips = distance(nearest->word, candidate);
    bool longer = nearest->best && slips == nearest->slips && strlen(candidate) > strlen(nearest->best);
    if (slips >= nearest->slips && !longer)
        return;
    nearest->slips = slips;
    nearest->best = candidate;
}

const char *nearest_suggestion(Arena *arena, const Nearest *nearest)
{
    return nearest->best ? arena_printf(arena, "; did you mean '%s'?", nearest->best) : "";
}
