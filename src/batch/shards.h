// The parts of a manifest that several machines make. A kernel's part depends on its output's name alone, so
// what is added to a manifest moves nothing from one part to another.
//
// The results of a part begin with a line that says which part it is and how many kernels it has
// (schema/batch.schema.json), so that a merge sees what is missing.
#pragma once
#include <stdbool.h>

#include "base/arena.h"

enum { MAX_SHARDS = 100000 };

typedef struct Shard {
    int index, count;   // the third of eight: 2, 8
    int kernels;        // of the manifest that are in it
} Shard;

/* The index of the shard that an output belongs to. */
int shard_of(Arena *arena, const char *output, int count);

/* That line, without its end, and what it says; false: it is another one. */
const char *shard_line(Arena *arena, const Shard *shard);
bool shard_read(const char *line, Shard *shard);

/* What these outputs lack of the shards and of those that go with them, in words; NULL: nothing. Sorts the
   shards. */
const char *shards_missing(Arena *arena, Shard *shards, int shard_count, const char *const *outputs,
                           int output_count);
