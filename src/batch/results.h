// What became of each kernel: one JSON object a line (schema/batch.schema.json), in the order of the outputs'
// names.
//
// During a run lines are appended as kernels are made, and of two lines of one output the later counts. So a
// run that was killed loses only the kernels that were being made. In the end the file is written anew, whole
// and in order. The same kernels give the same lines, whatever the order they were made in, and the lines of
// all shards are those of the whole.
#pragma once
#include "batch/manifest.h"
#include "batch/shards.h"

typedef struct Result {
    const char *output;    // of the entry
    const char *content;   // that it was made from: content.h
    const char *line;      // without its end
    bool done;
    const char *place;     // where it was read, for messages
    int number;            // in the order of results_add()
} Result;

typedef struct Results {
    Result *items;   // sorted by output once results_sort() has been called
    int count, capacity;
    int added;       // so far
    Shard *shards;   // that they say they are of
    int shard_count;
} Results;

/* Can a run resume from the file? Stdout, pipes and devices only take the whole in the end. */
bool results_are_kept(const char *path);

/* Adds those of a file. What is no result, such as a line that was cut off, is passed over, and a file that
   is not there has none; where `strict`, both are errors. */
void results_read(Arena *arena, Results *results, const char *path, bool strict);

void results_add(Arena *arena, Results *results, Result result);

/* In order, and of several with one output the one that was added last. */
void results_sort(Results *results);

/* NULL: there is none. They must be sorted. */
const Result *results_find(const Results *results, const char *output);

/* Are the files of its entry there, with the bytes that the result speaks of? */
bool result_holds(Arena *arena, const Result *result, const Entry *entry);

void results_write(Arena *arena, const Results *results, const char *path);

/* All results of several files as one; which of two about the same output counts does not depend on their
   order. Shards, or kernels of theirs, that are missing are an error with EXIT_INPUT unless `partial`. */
void results_merge(Arena *arena, char *const *paths, int count, bool partial, const char *target);
