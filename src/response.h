// Response files: `@FILE` on the command line stands for the arguments in FILE, as GNU tools read it.
#pragma once
#include "base/arena.h"

typedef struct Arguments {
    char **words;   // NULL behind the last one, as argp wants it
    int count;
} Arguments;

/* A file that cannot be read, or too many of them: EXIT_USAGE. */
Arguments response_files_expand(Arena *arena, int argc, char **argv);
