// Whether candidates compile. The host's compiler reads them with the interpreter's prelude: many in one translation unit
// take it 6 ms each, alone 22 ms. Some go to NVRTC as they are emitted: it knows what the interpreter has other words for,
// and sees the part of the prelude that a kernel was given.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "differential/random_programs.h"
#include "hal/jit.h"
#include "hal/runtime.h"

enum { TOGETHER = 50 };   // in one translation unit

typedef struct Compilation {
    Run *run;
    Arena *arena;
    Candidate *const *candidates;
    int count;
    const DeviceSpec *device;
} Compilation;

static void report_ranked(const Compilation *of, const Candidate *candidate, bool by_nvrtc, const char *why)
{
    const char *which = arena_printf(of->arena, " --structures 0 --compile %d%s", candidate->rank + 1,
                                     by_nvrtc ? " --nvrtc 1" : "");
    report(of->run, candidate->subject, which, of->device,
           by_nvrtc ? "does not compile by NVRTC" : "does not compile", why);
}

// ---- by the host's compiler ----

/* False, and why. */
static bool host_takes(const Compilation *of, RuntimeSource source, const char **why)
{
    RuntimeModule *module;
    source.limits = runtime_limits(of->device);
    source.builds = RUNTIME_SYNTAX;
    return runtime_interp.load(of->arena, &source, &module, why) == RUNTIME_DONE;
}

static bool takes_all(const Compilation *of)
{
    StrBuf text = strbuf_new(of->arena);
    BatchKernel *kernels = NEW_ARRAY(of->arena, BatchKernel, of->count);
    for (int c = 0; c < of->count; c++)
        kernels[c].kernel = of->candidates[c]->kernel;
    batch_write_kernels(&text, kernels, of->count, of->device);
    strbuf_puts(&text, "\nextern \"C\" int batch_launch(void *, void *) { return 0; }\n");
    const char *why;
    return host_takes(of, (RuntimeSource){.name = "batch", .text = text.text, .length = text.length}, &why);
}

/* As it is emitted. */
static bool takes_first(const Compilation *of)
{
    const Candidate *candidate = of->candidates[0];
    const Kernel *kernel = candidate->kernel;
    RuntimeSource source = {.name = kernel->name, .text = kernel->source, .length = kernel->source_length};
    source.arg_count = kernel->program->input_count + kernel->program->output_count;
    const char *why;
    bool taken = host_takes(of, source, &why);
    if (!taken)
        report_ranked(of, candidate, false, why);
    return taken;
}

/* In a child, with which the compiler's folder goes. */
static bool apart(bool (*takes)(const Compilation *), const Compilation *of)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        exit(takes(of) ? 0 : 1);
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static void compile_together(const Compilation *of)
{
    of->run->compiled += of->count;
    if (apart(takes_all, of))
        return;
    bool all = true;
    for (int c = 0; c < of->count; c++) {
        Compilation one = *of;
        one.candidates += c, one.count = 1;
        all &= apart(takes_first, &one);
    }
    if (all)
        report_ranked(of, of->candidates[0], false, "or one of those behind it; each does alone");
}

// ---- by NVRTC ----

/* Not at all where there is none, or none for the device. */
static void compile_by_nvrtc(const Compilation *of, const Candidate *candidate)
{
    JitRequest request = {.text = candidate->kernel->source,
                          .name = arena_printf(of->arena, "%s.cu", candidate->kernel->name),
                          .kernels = candidate->kernel->kernel_count};
    JitResult result;
    jit_compile(of->arena, &request, 1, &(JitOptions){.arch = of->device->arch, .jobs = 1}, &result);
    if (result.status == JIT_MACHINE)
        return;
    of->run->compiled_by_nvrtc++;
    if (result.status != JIT_DONE)
        report_ranked(of, candidate, true, result.reason);
}

void compile(Run *run, Arena *arena, Candidate *const *candidates, int count, const DeviceSpec *device)
{
    for (int first = 0; first < count; first += TOGETHER) {
        int together = count - first < TOGETHER ? count - first : TOGETHER;
        compile_together(&(Compilation){run, arena, candidates + first, together, device});
    }
    const Compilation all = {run, arena, candidates, count, device};
    for (int c = 0; c < count; c++)
        if (run->nvrtc && candidates[c]->subject->number % (uint64_t)run->nvrtc == 0)
            compile_by_nvrtc(&all, candidates[c]);
}
