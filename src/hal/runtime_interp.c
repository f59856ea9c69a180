// The CPU interpreter as a runtime: the program runs in a child (interp_child.h), so that a crash or a hang
// is a result.
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hal/interp_child.h"
#include "hal/interp_compile.h"
#include "hal/launch_order.h"

struct RuntimeModule {
    InterpObjects *objects;   // compiled again where something fails
    RuntimeSource source;
};

/* Two launches that may run concurrently and share bytes; NULL: there are none. The order in which launches
   are run is one of many. */
static const char *unordered(Arena *arena, const RuntimeSource *source)
{
    if (!source->launches || !source->graph)
        return NULL;
    int later;
    const Launch *launches = source->launches + source->prepare_count;   // of a call
    int count = source->launch_count - source->prepare_count;
    LaunchOrder order = launches_stated_order(arena, launches, count);
    int first = launches_unordered(launches, count, &order, &later);
    return first < 0 ? NULL
                     : arena_printf(arena, "launches %d and %d touch the same memory, one of them writes it, and nothing orders them",
                                    first, later);
}

static RuntimeStatus load(Arena *arena, const RuntimeSource *source, RuntimeModule **module,
                          const char **reason)
{
    *module = NEW(arena, RuntimeModule);
    (*module)->objects = NEW(arena, InterpObjects);
    (*module)->source = *source;
    *reason = unordered(arena, source);
    if (*reason)
        return RUNTIME_WRONG;
    return interp_compile(arena, source, (*module)->objects, reason);
}

/* Waits for the child; its report stands unless it was killed before it could write one. */
static void wait_for(pid_t pid, InterpReport *report)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFSIGNALED(status))
        return;
    report->status = RUNTIME_WRONG;
    snprintf(report->what, INTERP_WHAT_BYTES, "is ended by signal %d (%s)", WTERMSIG(status),
             strsignal(WTERMSIG(status)));
}

static void **buffers_of(Arena *arena, const InterpMemory *memory, int count)
{
    void **buffers = NEW_ARRAY(arena, void *, count);
    for (int i = 0; i < count; i++)
        buffers[i] = interp_memory_buffer(memory, i);
    return buffers;
}

static const char *line_of(Arena *arena, const RuntimeModule *module, unsigned pc)
{
    return pc ? interp_source_line(arena, &module->source, module->objects, pc) : NULL;
}

static const char *reason_of(Arena *arena, const RuntimeModule *module, const InterpReport *report)
{
    const char *line = line_of(arena, module, report->pc);
    const char *other = line_of(arena, module, report->other_pc);
    return arena_printf(arena, "%s%s%s%s%s%s", report->where, line ? line : "", line ? ": " : "",
                        report->what, other ? ", at " : "", other ? other : "");
}

static RuntimeTraffic *traffic_of(Arena *arena, const InterpReport *report)
{
    RuntimeTraffic *traffic = NEW_ARRAY(arena, RuntimeTraffic, report->launch_count + 1);
    memcpy(traffic, report->traffic, sizeof *traffic * (size_t)report->launch_count);
    return traffic;
}

static RuntimeResult machine_failure(const char *reason)
{
    return (RuntimeResult){.status = RUNTIME_MACHINE, .reason = reason};
}

static const char *object_for(const RuntimeModule *module, const RuntimeJob *job)
{
    bool checked = job->checked || !(module->source.builds & RUNTIME_PLAIN);
    return checked ? module->objects->checked : module->objects->plain;
}

static RuntimeResult run_once(Arena *arena, const RuntimeModule *module, const RuntimeJob *job, bool *trapped)
{
    int count = runtime_buffer_count(&module->source);
    InterpMemory *memory = interp_memory_map(arena, job, module->source.arg_count, count);
    InterpReport *report =
        mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    InterpCounts *counts = job->counts ? interp_counts_map(job->tensor_count) : NULL;
    if (!memory || report == MAP_FAILED || (job->counts && !counts))
        return machine_failure("not enough memory for the buffers of the program");
    RuntimeResult result = {.buffer_count = count, .mappings = memory};
    result.buffers = buffers_of(arena, memory, count);
    report->status = RUNTIME_WRONG;
    strcpy(report->what, "ends before it is done");
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        interp_child_run(&(InterpTask){
            .job = job,
            .source = &module->source,
            .object = object_for(module, job),
            .buffers = result.buffers,
            .memory = memory,
            .counts = counts,
            .report = report,
        });
    if (pid < 0)
        return machine_failure("no further process can be started");
    wait_for(pid, report);
    interp_memory_show(memory);
    result.status = report->status;
    result.reason = reason_of(arena, module, report);
    result.blocks_run = report->blocks_run;
    result.blocks_total = report->blocks_total;
    result.traffic = traffic_of(arena, report);
    result.launch_count = report->launch_count;
    if (job->counts)
        result.counts = interp_counts_take(arena, counts, job->tensor_count);
    result.pages = interp_memory_pages(memory, &result.page_count);
    *trapped = report->trapped;
    munmap(report, sizeof *report);
    return result;
}

static void release(RuntimeResult *result)
{
    if (result->mappings)
        interp_memory_unmap(result->mappings);
    result->mappings = NULL;
}

/* Where a check has failed, once more: the same happens, and the check says what it is. */
static RuntimeResult run(Arena *arena, const RuntimeModule *module, const RuntimeJob *job)
{
    assert(!job->lazy || job->checked);
    assert(!job->checked || module->source.builds & (RUNTIME_CHECKED | RUNTIME_COUNTED));
    assert(!job->counts || (job->checked && module->source.builds & RUNTIME_COUNTED));
    bool trapped = false;
    RuntimeResult result = run_once(arena, module, job, &trapped);
    if (trapped && interp_compile_speaking(arena, &module->source, module->objects)) {
        release(&result);
        result = run_once(arena, module, job, &trapped);
    }
    return result;
}

const Runtime runtime_interp = {
    .name = "interp", .checks = true, .load = load, .run = run, .release = release};
