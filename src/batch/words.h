// Words of a command line as a shell reads them.
#pragma once
#include "base/arena.h"

/* As it is, or in single quotes if a shell would split it. */
const char *words_quote(Arena *arena, const char *word);
