// Programs proven on the GPU that is here, whole and with every kind of inputs, as the interpreter proves them elsewhere.
//
//   gpu_programs DEVICE PROGRAM.te…          the first candidate of each; tests/gpu.py runs it
#include <inttypes.h>
#include <stdio.h>

#include "front/lex.h"
#include "front/lower.h"
#include "front/parse.h"
#include "ir/compose.h"
#include "prove/verify.h"
#include "rank/candidates.h"

enum { SECONDS = 10 };   // that a run may take

/* False: it is wrong. What is too large is passed over, and said. */
static bool prove_program(Arena *arena, DeviceSpec *device, const char *path)
{
    TemplateStore templates = {.arena = arena};
    Program *program = lower(arena, parse(arena, lex(arena, source_read(arena, path))), NULL, 0);
    Program *composed = compose(arena, program);
    FusionPlans fusions = fuse(arena, composed);
    const Target target = {.device = device, .math = EVAL_EXACT};
    PlanList plans = plan_program(arena, &fusions, &target, 1);
    CandidateList list = candidates_of_plans(arena, &plans);
    CodegenRequest base = {.name = "k", .program = composed, .device = device, .templates = &templates, .kept = plans.count};
    if (list.count == 0)
        return true;
    candidates_write(arena, &list, 0, 1, &base);
    Compilation *compilation = compilation_new(arena, &(JitOptions){.arch = device->arch}, false);
    candidates_compile(compilation, &(CandidateList *){&list}, 1, NULL, NULL);
    const Candidate *first = list.items;
    if (!first->compiled) {
        printf("%s: %s\n", path, first->reason);
        return false;
    }
    VerifyReport report =
        verify(arena, program, first->kernel, device,
               &(VerifyOptions){.runtime = &runtime_gpu, .cubin = first->compiled[0]->cubin, .seconds = SECONDS});
    printf("%s: %" PRId64 " elements, %" PRId64 " unjudged%s%s\n", path, report.elements, report.unjudged,
           report.message ? ": " : "", report.message ? report.message : "");
    return report.status == VERIFY_RIGHT || report.sampled;
}

int main(int argc, char **argv)
{
    int wrong = 0;
    Arena *common = arena_new(), *arena = arena_new();
    DeviceSpec *device = argc > 1 ? device_read(common, argv[1]) : NULL;
    for (int i = 2; i < argc; i++, arena_reset(arena))
        wrong += !prove_program(arena, device, argv[i]);
    printf("%d programs, %d wrong\n", argc - 2, wrong);
    return argc < 3 || wrong > 0;
}
