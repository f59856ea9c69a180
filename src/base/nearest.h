// "did you mean …?": the known word that a mistyped one is nearest to.
#pragma once
#include "base/arena.h"

typedef struct Nearest {
    const char *word;   // that the user wrote
    const char *best;   // so far; NULL: none is near
    int slips;          // from it to `best`; before one is found, one more than are still a typo
} Nearest;

/* Of three letters one may be wrong, of five two, of twelve three; words of one or two letters resemble
   everything. */
Nearest nearest_to(const char *word);
/* Of equally near ones the longest counts, since letters are left out more often than added; then the first.
   Letters that differ only in case are one mistake, however many they are. */
void nearest_try(Nearest *nearest, const char *candidate);
/* `; did you mean 'softmax'?`, or "". */
const char *nearest_suggestion(Arena *arena, const Nearest *nearest);
