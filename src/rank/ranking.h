// The ranking: every kept candidate with its reasons, as JSON (schema/ranking.schema.json).
//
// The same inputs give the same bytes: no host names, no paths of the machine, and no times but what --profile measured.
#pragma once
#include "options.h"
#include "rank/candidates.h"

typedef struct Ranking {
    const Options *options;
    const Program *program;
    const DeviceSpec *device;
    const ConstructStats *stats;
    const CandidateList *candidates;   // sorted
} Ranking;

/* The whole document, with a final newline. */
char *ranking_json(Arena *arena, const Ranking *ranking);
