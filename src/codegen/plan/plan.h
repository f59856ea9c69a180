// Candidates: each is a plan for the whole program, of one or several launches, possibly of different families.
//
// Plans with different numbers of kernels compete by the sum of their launches' estimated times.
#pragma once
#include "codegen/family/family.h"
#include "ir/prepared.h"
#include "kernel/schedule/count.h"

enum { WORKSPACE_ALIGNMENT = 256 };   // as CUDA aligns memory; language.md: so is the workspace aligned, and each tensor in it

typedef struct PlannedLaunch {
    const Family *family;
    const Fusion *fusion;
    const void *view;   // of the fusion, the family's
    const KernelKind *kind;
    const RProgram *program;
} PlannedLaunch;

/* Time in a call. NAME_prepare's launches take none; a millionth of their time breaks ties. */
static inline double planned_us(const PlannedLaunch *launch)
{
    return launch->program->perf.time_us * (fusion_is_prepared(launch->fusion) ? 1e-6 : 1);
}

/* A fusion of a plan, and its choice (choices.h). */
typedef struct PlanStep {
    const Fusion *fusion;
    struct Choice *choice;
    int64_t kept_bytes;   // of temporaries made by earlier steps and read by this or a later one
    const struct ChoiceList *families;   // the fastest choice of each (others.h), or NULL
} PlanStep;

typedef struct Plan {
    const char *fusion_plan;   // name of the FusionPlan it came from
    PlannedLaunch *launches;        // NAME_prepare's first, then a call's
    int count;
    int prepare_count;              // of them: NAME_prepare's
    double time_us;                 // estimated, of a call
    int64_t workspace_bytes;        // most bytes alive at once; the layout takes a little more
    bool fits;                      // beside the program's tensors into the device's memory
    const TensorOp **partial_ops;   // definitions of tensors that only split reductions have
    int partial_count;
    const PlanStep *steps;          // that its launches are made of
    int step_count;
} Plan;

typedef struct PlanList {
    Plan *plans;   // those that fit into the device's memory, then the others; each ascending in time
    int count;
    ConstructStats stats;
} PlanList;

/* At most `keep` plans; none: the device can hold no program for this expression. */
PlanList plan_program(Arena *arena, const FusionPlans *fusions, const Target *target, int keep);

/* The families' kinds for every fused kernel (`-d rtile`), and the plans (`-d rprogram`). */
void plan_kinds_print(StrBuf *out, const FusionPlans *fusions, const Target *target);
void plan_list_print(StrBuf *out, const PlanList *list);
/* The schedule of a block of each kernel, and the counts of the first and the last one (`-d schedule`). */
void plan_schedules_print(StrBuf *out, const Plan *plan, const DeviceSpec *device);
/* The counts of the first or the last block of the launch. */
Counts planned_counts(Arena *arena, const PlannedLaunch *launch, const DeviceSpec *device, bool last);
/* The schedule in one line. */
const char *plan_schedule_text(Arena *arena, const PlannedLaunch *launch);
/* One line a kernel: the families that match and the one of the best plan (end of `-d fusion`). */
void plan_families_print(StrBuf *out, const FusionPlans *fusions, const Target *target, const PlanList *list);
