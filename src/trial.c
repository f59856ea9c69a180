#include "trial.h"

#include <inttypes.h>
#include <string.h>

#include "base/diag.h"
#include "clock/profile.h"
#include "clock/profile_parts.h"
#include "hal/jit_cache.h"

/* Of the reference for an element of a program that was timed in parts: about ten seconds. Its kernels have
   been proven. */
static const double MOST_WORK_OF_WHOLE = 1e9;

typedef struct Trial {
    Arena *arena;
    const Options *opt;
    CodegenRequest base;
    const Target *target;
    CandidateList *list;
    Compilation *compilation;
    const JitResult *helpers;   // the profiler's own kernels; NULL: not compiled yet
    Profiler *profiler;         // of the lists that are being compiled; NULL: they are not timed
    CandidateList *const *lists;
    Stopwatch *watch;
} Trial;

bool trial_wants_ranking(const Options *opt)
{
    bool found = false;
    for (int i = 0; i < opt->artefact_count; i++) {
        ArtefactKind kind = opt->artefacts[i].kind;
        found |= kind == ARTEFACT_JSON || kind == ARTEFACT_TEXT || kind == ARTEFACT_PAGE;
    }
    return found;
}

/* Machine code is to be written, of all kernels in one file. */
static bool wants_one_code(const Options *opt)
{
    bool found = false;
    for (int i = 0; i < opt->artefact_count; i++)
        found |= opt->artefacts[i].kind == ARTEFACT_PTX || opt->artefacts[i].kind == ARTEFACT_CUBIN;
    return found;
}

// ---- machine code ----

/* A CompileEvents. */
static void take_helpers(void *context, const JitResult *result)
{
    Trial *trial = context;
    trial->helpers = result;
    profile_take_helpers(trial->profiler, result);
}

/* A CompileEvents. */
static void take_list(void *context, int list)
{
    Trial *trial = context;
    candidates_judge(trial->arena, trial->lists[list], trial->base.device);
    if (trial->profiler)
        profile_take_job(trial->profiler);
}

/* Those of the lists that have a text; the profiler goes on with each that is compiled. */
static void compile_lists(Trial *trial, CandidateList *const *lists, int count)
{
    JitRequest helpers = profile_helpers();
    bool wanted = trial->profiler && !trial->helpers;
    if (trial->profiler && trial->helpers)
        profile_take_helpers(trial->profiler, trial->helpers);
    trial->lists = lists;
    candidates_compile(trial->compilation, lists, count, wanted ? &helpers : NULL,
                       &(CompileEvents){take_helpers, take_list, trial});
}

/* Of one candidate alone also of those that it may have to give way to, if it fails or spills: so the kernel
   is the same as where a ranking tells of all. */
static void compile_candidates(Trial *trial, bool all)
{
    CandidateList *list = trial->list;
    compile_lists(trial, &list, 1);
    if (!all && !trial->opt->candidate) {
        candidates_write(trial->arena, list, 1, candidates_contenders(list), &trial->base);
        compile_lists(trial, &list, 1);
    }
}

/* A proof is of the text, and a profile compares what the machine code made. */
static void warn_of_compiler(Arena *arena, const DeviceSpec *device)
{
    const char *doubted = jit_doubt(arena, device->arch);
    if (doubted)
        diag_warning((Loc){0},
                     "%s made this machine code: versions before 13.1 are reported to miscompile kernels for %s; --profile "
                     "compares its results",
                     doubted, device->arch);
}

// ---- candidates of the whole ----

static void begin_profile(Trial *trial, const ProfileJob *jobs, int count, const ProfileOptions *how)
{
    ProfileOptions options = *how;
    options.math = trial->opt->math;
    options.hang_seconds = trial->opt->hang_after;
    options.jobs = trial->opt->jobs;
    trial->profiler = profile_begin(trial->arena, jobs, count, trial->base.device, &options);
}

static void end_profile(Trial *trial)
{
    profile_end(trial->profiler);
    trial->profiler = NULL;
}

static void try_whole(Trial *trial)
{
    const Options *opt = trial->opt;
    CandidateList *list = trial->list;
    bool compiled = options_want_machine_code(opt);
    bool all = compiled && !opt->candidate && (opt->profile || trial_wants_ranking(opt));
    int first = opt->candidate ? opt->candidate - 1 : 0;
    candidates_write(trial->arena, list, first, all ? list->count : 1, &trial->base);
    const Kernel *kernel = list->items[first].kernel;
    stopwatch_lap(trial->watch, "codegen",
                  "%d of %d plans; the first: %d launches, %zu bytes, workspace %" PRId64 ", alive %" PRId64,
                  all ? list->count : 1, list->count, kernel->launch_count, kernel->source_length,
                  kernel->workspace_bytes, kernel->alive_bytes);
    if (opt->profile)
        begin_profile(trial, &(ProfileJob){trial->base.program, list}, 1, &(ProfileOptions){0});
    if (compiled) {
        compile_candidates(trial, all);
        stopwatch_lap(trial->watch, "compile", "%s",
                      all ? "all candidates" : "the candidate that comes first");
        warn_of_compiler(trial->arena, trial->base.device);
    }
    if (opt->profile) {
        end_profile(trial);
        stopwatch_lap(trial->watch, "profile", "%d candidates on a %s", list->count, list->gpu);
    }
}

// ---- a program of many kernels ----

/* What ProfileOptions has to be told of a part. */
static void take_part(void *context, int part) { part_is_timed(context, part); }

static ProfileJob *jobs_of_parts(const Trial *trial, PartList *parts)
{
    ProfileJob *jobs = NEW_ARRAY(trial->arena, ProfileJob, parts->count);
    for (int p = 0; p < parts->count; p++) {
        CandidateList *list = &parts->parts[p].list;
        list->gpu_ordinal = trial->list->gpu_ordinal;
        list->gpu = trial->list->gpu;
        list->driver = trial->list->driver;
        jobs[p] = (ProfileJob){parts->parts[p].program, list};
    }
    return jobs;
}

/* One part is timed while the next ones are compiled. */
static void time_parts(Trial *trial, PartList *parts)
{
    CandidateList **lists = NEW_ARRAY(trial->arena, CandidateList *, parts->count);
    int candidates = 0;
    parts_write(trial->arena, parts, &trial->base);
    for (int p = 0; p < parts->count; p++) {
        lists[p] = &parts->parts[p].list;
        candidates += lists[p]->count;
    }
    stopwatch_lap(trial->watch, "codegen", "%d different kernels of %d, %d candidates", parts->count,
                  parts->plan->step_count, candidates);
    begin_profile(trial, jobs_of_parts(trial, parts), parts->count,
                  &(ProfileOptions){.quiet = true, .done = take_part, .context = parts});
    compile_lists(trial, lists, parts->count);
    stopwatch_lap(trial->watch, "compile", "their candidates");
    end_profile(trial);
    stopwatch_lap(trial->watch, "profile", "%d kernels on a %s", parts->count, trial->list->gpu);
}

/* The plan that the parts make, and the model's first. */
static void time_both(Trial *trial, const PartList *parts)
{
    CandidateList *list = trial->list;
    candidates_write(trial->arena, list, 0, 1, &trial->base);
    if (!parts_agree(parts)) {
        Plan *plan = NEW(trial->arena, Plan);
        *plan = parts_plan(trial->arena, parts, &trial->base);
        if (plan->fits) {
            candidates_add(trial->arena, list, plan);
            candidates_write(trial->arena, list, list->count - 1, 1, &trial->base);
        } else {
            diag_warning((Loc){0},
                         "the plan of the fastest kernels needs a workspace of %" PRId64
                         " bytes, for which %s has no room: only the model's plan is timed",
                         plan->workspace_bytes, trial->base.device->name);
        }
    }
    begin_profile(trial, &(ProfileJob){trial->base.program, list}, 1,
                  &(ProfileOptions){.most_work = MOST_WORK_OF_WHOLE});
    compile_lists(trial, &list, 1);
    stopwatch_lap(trial->watch, "compile", "the plan that is made of the fastest, and the model's first");
    end_profile(trial);
    stopwatch_lap(trial->watch, "profile", "both on a %s", list->gpu);
}

static PartList try_parts(Trial *trial)
{
    PartList parts = parts_of_plan(trial->arena, trial->list->items[0].plan, &trial->base, trial->target,
                                   trial->opt->top_k);
    warn_of_compiler(trial->arena, trial->base.device);
    time_parts(trial, &parts);
    time_both(trial, &parts);
    return parts;
}

PartList try_candidates(Arena *arena, const Options *opt, const CodegenRequest *base, const Target *target,
                        CandidateList *list, Stopwatch *watch)
{
    Trial trial = {.arena = arena, .opt = opt, .base = *base, .target = target, .list = list, .watch = watch};
    PartList parts = {0};
    trial.base.form = opt->profile && !wants_one_code(opt) ? CODEGEN_BOTH : CODEGEN_WHOLE;
    JitOptions how = {.arch = base->device->arch, .jobs = opt->jobs};
    if (device_is_ranked_only(base->device))
        return parts;   // in the model's order, which they have
    if (opt->cache)
        how.cache = jit_cache_open(arena, opt->cache, opt->cache_bytes);
    trial.compilation = compilation_new(arena, &how, opt->profile);
    if (opt->profile)
        profile_find_gpu(arena, opt->profile, base->device, opt->force_device, list);
    if (opt->profile && !opt->candidate && parts_are_many(list->items[0].plan, opt->top_k))
        parts = try_parts(&trial);
    else
        try_whole(&trial);
    candidates_sort(list);
    return parts;
}
