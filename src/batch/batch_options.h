// The command line of `rollerc batch` as plain data.
#pragma once
#include <stdbool.h>

#include "base/arena.h"

enum {
    MAX_BATCH_JOBS = 64,   // processes at once
};

typedef struct BatchOptions {
    const char *manifest;      // NULL under --merge
    int shard, shards;         // 0 of 1: everything
    int jobs;
    bool keep_going;
    bool list;
    const char *results;       // the file of results, JSON lines
    const char *ninja;         // the file to write instead of kernels, or NULL
    const char *cache;         // of machine code; NULL: what the environment says
    char **merged;             // the files to merge, or NULL
    int merged_count;
    bool partial;              // although some are missing
    bool quiet, verbose, colour;
} BatchOptions;

/* Wrong usage ends with EXIT_USAGE; --help ends the program itself. */
BatchOptions *batch_options_parse(Arena *arena, int argc, char **argv);
