// The GPU as a worker has it for one job: copies of the program's buffers, and a candidate that is loaded.
#pragma once
#include "clock/profile_board.h"

enum {
    MAX_SETS = 24,     // copies of the buffers
    MAX_SAMPLES = 20   // series of a candidate that are timed
};

typedef struct Bench {
    Arena *arena;   // of the job
    Gpu gpu;
    const CandidateList *list;
    ProfileSlot *slots;
    const ProfileReference *reference;
    int64_t l2_bytes;
    GpuBuffer
        *sets[MAX_SETS];   // each: inputs, outputs, what lies beside them; the file of weights is one for all
    int set_count;
    GpuBuffer weights;
    GpuBuffer *tables[INPUT_CLASSES];   // one for each input
    double warm_until;                  // the GPU's clocks are up until then
    char reason[PROFILE_REASON];
} Bench;

/* A candidate on the GPU, ready to be called. */
typedef struct Loaded {
    const Candidate *candidate;
    ProfileSlot *slot;
    GpuProgram prepare, program;   // what is launched once, and in each call
    GpuSeries series;
    double samples[MAX_SAMPLES];   // microseconds a call
    int sample_count;
} Loaded;

static inline const Program *bench_program(const Bench *bench) { return bench->reference->program; }
static inline int bench_beside(const Bench *bench, BufferBeside which)
{
    return buffer_beside(bench_program(bench), which);
}

/* Buffers of all sets, with inputs. All that can fail returns false, and `reason` says what did. */
bool bench_make_buffers(Bench *bench);
void bench_free_buffers(Bench *bench);
bool bench_fill_inputs(Bench *bench, const GpuBuffer *set, int class);
/* What lies beside the arguments belongs to a candidate: it differs in size. */
bool bench_make_workspaces(Bench *bench, int64_t workspace, int64_t prepared);

bool bench_load(Bench *bench, int position, Loaded *loaded);
void bench_unload(Bench *bench, Loaded *loaded);
/* What NAME_prepare does, for a set of buffers. */
bool bench_prepare(Bench *bench, const Loaded *loaded, const GpuBuffer *set);

/* `us`: what the last run took. */
CandidateStatus bench_prove(Bench *bench, Loaded *loaded, double *us);

/* Times one, which took `us` in the proof. */
bool bench_time(Bench *bench, Loaded *loaded, double us);
/* The fastest in turn, a series of each: what the clocks do to one of them they do to all. */
bool bench_time_again(Bench *bench);
