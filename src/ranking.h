// The ranking: every kept candidate with its reasons, as JSON (schema/ranking.schema.json).
//
// The same inputs give the same bytes: no times, no host names, no paths of the machine.
#pragma once
#include "codegen/plan.h"
#include "options.h"

/* The whole document, with a final newline. */
char *ranking_json(Arena *arena, const Options *options, const Program *program, const DeviceSpec *device,
                   const PlanList *plans);
