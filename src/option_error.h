// What the command line's parser refuses, in our words: getopt knows no "did you mean".
#pragma once
#include <argp.h>

#include "base/arena.h"

/* For ARGP_KEY_ERROR under ARGP_NO_ERRS. Ends with EXIT_USAGE. */
_Noreturn void option_error(Arena *arena, const struct argp_option *table, const struct argp_state *state);
