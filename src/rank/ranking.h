// The ranking: every kept candidate with its reasons, as JSON (schema/ranking.schema.json).
//
// It says all that is needed to make the same kernel again. The same inputs give the same bytes: no host
// names, no paths of the machine, and no times but those that --verify took and --profile measured.
#pragma once
#include "front/ast.h"
#include "prove/verify.h"
#include "rank/parts.h"

/* What was asked for that changes the result: options.h says what each of them means. */
typedef struct RankingOptions {
    const char *name;
    EvalMath math;
    int top_k, candidate;
    bool verify, profile, force_device;
    int hang_after;
    bool line_directives, with_test;
    const ParamOverride *params;
    int param_count;
} RankingOptions;

typedef struct Ranking {
    const RankingOptions *options;
    const char *expr;                  // the program as source text, params as they were set
    const Program *program;
    const DeviceSpec *device;
    const ConstructStats *stats;
    const TemplateStore *templates;
    const CandidateList *candidates;   // sorted
    const PartList *parts;             // that were timed by themselves
    const Candidate *emitted;          // one of them, that is written
    const VerifyReport *proof;         // of it; NULL: nobody asked
} Ranking;

/* The whole document, with a final newline. */
char *ranking_json(Arena *arena, const Ranking *ranking);
