// The process that checks and times candidates: one after another, until it is done or one of them brings
// it down.
#pragma once
#include "clock/profile_reference.h"
#include "rank/candidates.h"

enum { PROFILE_REASON = 500, PROFILE_TOP = 3 };   // the best are timed again, in turn

/* What the worker says of one candidate. */
typedef struct ProfileSlot {
    bool finished;
    CandidateStatus status;
    Measurement measurement;
    char reason[PROFILE_REASON];
} ProfileSlot;

/* Shared with the parent. */
typedef struct ProfileBoard {
    bool opened;   // the GPU could be used, and holds the buffers
    int current;   // position of the candidate at work; the count of them: timing the best again
    bool done;
    char reason[PROFILE_REASON];   // of the worker itself
    ProfileSlot slots[];           // one for each candidate
} ProfileBoard;

/* What it needs; all of it was made before the fork. */
typedef struct ProfileTask {
    const CandidateList *list;
    const ProfileReference *reference;
    const unsigned char *helpers;   // machine code of src/hal/gpu/helpers.cu
    int64_t l2_bytes;
    int gpu;
    int first;   // candidate to begin with
    bool quiet;
    ProfileBoard *board;
} ProfileTask;

void profile_work(void *task);
