// What is made of the kept plans before one of them is chosen: their texts, machine code, times on a GPU.
#pragma once
#include "base/stopwatch.h"
#include "options.h"
#include "rank/parts.h"

/* A ranking, or a page that is made of one, is among what is to be written. */
bool trial_wants_ranking(const Options *opt);

/* Nothing is made that was not asked for: the text of one candidate; or of all, machine code, and times.
   Candidates are in order then. A program of many kernels is timed in parts, and has the plan that follows as
   one candidate more; the parts are returned: none of another. */
PartList try_candidates(Arena *arena, const Options *opt, const CodegenRequest *base, const Target *target,
                        CandidateList *list, Stopwatch *watch);
