// What the command line's parser prints: help, and what it refuses, in our words: getopt knows no "did you
// mean".
#pragma once
#include <argp.h>

#include "base/arena.h"

/* For ARGP_KEY_ERROR under ARGP_NO_ERRS. Ends with EXIT_USAGE. */
_Noreturn void option_error(Arena *arena, const struct argp_option *table, const struct argp_state *state);
/* Of all options (ARGP_HELP_STD_HELP), or how they are used (ARGP_HELP_USAGE). */
_Noreturn void option_print_help(const struct argp_state *state, unsigned what);
