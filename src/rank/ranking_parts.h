// The parts of the document. Internal to the ranking.
#pragma once
#include "base/json.h"
#include "rank/ranking.h"

/* What it is about: tool, workload, device, options. */
void ranking_add_problem(Arena *arena, Json *root, const Ranking *ranking);
