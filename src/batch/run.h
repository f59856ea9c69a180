// Makes entries, each in a process of its own, as many at once as are asked for. A failure of one, even a
// crash, is its result and does not affect the others.
#pragma once
#include "batch/batch_options.h"
#include "batch/manifest.h"
#include "batch/results.h"

/* An entry that is not there as it should be. */
typedef struct Job {
    const Entry *entry;
    const char *content;   // that it is made from: content.h
} Job;

typedef struct RunReport {
    int made, failed;   // the others were not tried, after a failure
    int exit_code;      // the largest one of an entry
} RunReport;

/* Adds what becomes of each to `results`, and at once to the file of results. */
RunReport run(Arena *arena, const BatchOptions *options, const Job *jobs, int count, Results *results);
