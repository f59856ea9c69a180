// The parts of a program of many kernels: each fusion of a plan as a program of its own, with candidates of
// its own, and those that are alike once. Ten plans of the whole differ in the tiles of a few kernels; of its
// parts each is decided by itself.
#pragma once
#include "codegen/plan/steps.h"
#include "rank/candidates.h"

typedef struct ProgramPart {
    const Program
        *program;   // what the fusion reads are its inputs, or weights where it is the same in every call
    const char *makes;        // the first tensor that the first of them makes
    CandidateList list;       // model_rank: position among the ways of its steps, from 1
    int step_count;           // of the plan, that are alike
    const char *key;
} ProgramPart;

typedef struct PartList {
    ProgramPart *parts;
    int count;
    const Plan *plan;
    int *part_of;      // of each step; -1: NAME_prepare makes it, as the plan says
    PlanStep **ways;   // of each step, in the order of its part's candidates before they were sorted
} PartList;

/* A plan of more steps than `keep` plans can tell apart: of n steps with two ways each there are 2^n. */
bool parts_are_many(const Plan *plan, int keep);

/* Those of a plan, each with at most `keep` candidates, of which nothing is written yet. */
PartList parts_of_plan(Arena *arena, const Plan *plan, const CodegenRequest *base, const Target *target,
                       int keep);

/* Texts of all candidates, in pieces. */
void parts_write(Arena *arena, PartList *list, const CodegenRequest *base);

/* The clock agrees with the model on all of them. */
bool parts_agree(const PartList *list);

/* The plan of each part's first candidate, once they are sorted. */
Plan parts_plan(Arena *arena, const PartList *list, const CodegenRequest *base);
