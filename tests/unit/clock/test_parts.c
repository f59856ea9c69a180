// Parts of a program of many kernels: each is a program of its own, right by the reference of what it reads, and the plan that is
// made of their first candidates is one of the whole. The clock is a stand-in.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "clock/profile_parts.h"
#include "clock/profile_reference.h"
#include "front/lex.h"
#include "front/lower.h"
#include "front/parse.h"
#include "ir/compose.h"
#include "prove/verify.h"

enum { KEEP = 3 };

static Arena *arena;
static void begin(void) { arena = arena_new(); }
static void end(void) { arena_free(arena); }

/* Two equal layers, whose weights are sums of two and so made once; rows between; a residual; a fetch. */
static const char layers[] =
    "input x[40, 64] : f16  input word[40] : i32\n"
    "weight table[50, 64] : f16  weight a[64, 64] : f16  weight b[64, 64] : f16  weight c[64, 64] : f16  weight d[64, 24] : f32\n"
    "t[i, j] : f16 = x[i, j] + table[word[i], j]\n"
    "w[k, j] : f16 = a[k, j] + b[k, j]\n"
    "v[k, j] : f16 = a[k, j] + c[k, j]\n"
    "p[i, j] : f16 = relu(sum[k](t[i, k] * w[k, j])) + t[i, j]\n"
    "q[i, j] : f16 = relu(sum[k](p[i, k] * v[k, j])) + p[i, j]\n"
    "m[i] = max[j](q[i, j])\n"
    "s[i] = sum[j](exp(q[i, j] - m[i]))\n"
    "u[i, j] : f32 = exp(q[i, j] - m[i]) / s[i]\n"
    "y[i, j] : f32 = sum[k](u[i, k] * d[k, j])\n"
    "output q  output y\n";

/* A dense block: two parts of one tensor, each stored by a kernel of its own, of which one is read by itself before the other is
   there. */
static const char dense[] =
    "input x[40, 64] : f16  input s[96] : f32  input a[64, 64] : f16  input b[32, 64] : f16  input c[64, 96] : f16\n"
    "p[i, j] : f16 = sum[k](x[i, k] * a[j, k])\n"
    "h[i, j] : f16 = relu(sum[k](p[i, k] * a[j, k]))\n"
    "q[i, j] : f16 = relu(sum[k](h[i, k] * b[j, k]))\n"
    "all[i, l:96] = select(l < 64, pad(p[i, l], 0), pad(q[i, l - 64], 0))\n"
    "n[i, l] : f16 = relu(all[i, l] * s[l])\n"
    "y[i, j] : f16 = sum[k](n[i, k] * c[j, k])\n"
    "output y\n";

static TemplateStore templates;
static Target target;

static CodegenRequest base_of(const char *text, const char *device, PlanList *plans)
{
    templates.arena = arena;
    target = (Target){.device = device_read(arena, device), .math = EVAL_EXACT};
    const Source *source = source_from_text(arena, "case.te", text, strlen(text));
    Program *program = compose(arena, lower(arena, parse(arena, lex(arena, source)), NULL, 0));
    FusionPlans fusions = fuse(arena, program);
    *plans = plan_program(arena, &fusions, &target, KEEP);
    return (CodegenRequest){.name = "t", .program = program, .device = target.device, .templates = &templates};
}

static PartList parts_of(const CodegenRequest *base, const PlanList *plans)
{
    return parts_of_plan(arena, &plans->plans[0], base, &target, KEEP);
}

static void prove(const Program *program, const Kernel *kernel, const char *what, int rank)
{
    VerifyReport report = verify(arena, program, kernel, target.device, &(VerifyOptions){.math = EVAL_EXACT});
    ck_assert_msg(report.status == VERIFY_RIGHT, "%s, candidate %d: %s", what, rank, report.message);
    ck_assert_int_gt(report.elements, report.unjudged);
}

START_TEST(each_candidate_of_a_part_is_right_by_itself)
{
    PlanList plans;
    CodegenRequest base = base_of(_i ? dense : layers, "a100", &plans);
    PartList parts = parts_of(&base, &plans);
    ck_assert_int_ge(parts.count, _i ? 3 : 4);
    for (int p = 0; p < parts.count; p++) {
        ProgramPart *part = &parts.parts[p];
        CodegenRequest request = base;
        request.program = part->program;
        candidates_write(arena, &part->list, 0, part->list.count, &request);
        for (int i = 0; i < part->list.count; i++)
            prove(part->program, part->list.items[i].kernel, part->makes, i + 1);
    }
}
END_TEST

/* The later candidates are faster; the second of each crashes. */
static void time_part(PartList *parts, int p)
{
    CandidateList *list = &parts->parts[p].list;
    ck_assert_int_gt(parts->parts[p].program->input_count, 0);
    for (int i = 0; i < list->count; i++) {
        Candidate *candidate = &list->items[i];
        candidate->status = candidate->model_rank == 2 ? CANDIDATE_FAULT : CANDIDATE_OK;
        candidate->reason = candidate->model_rank == 2 ? "crashes" : NULL;
        candidate->measured = NEW(arena, Measurement);
        candidate->measured->median_us = 10 - candidate->model_rank;
    }
    part_is_timed(parts, p);
}

START_TEST(the_plan_of_the_fastest_is_right)
{
    PlanList plans;
    CodegenRequest base = base_of(layers, "a100", &plans);
    PartList parts = parts_of(&base, &plans);
    int alike = 0;
    ck_assert(parts_are_many(&plans.plans[0], KEEP));
    for (int p = 0; p < parts.count; p++)
        time_part(&parts, p);
    ck_assert(!parts_agree(&parts));
    for (int p = 0; p < parts.count; p++) {
        const CandidateList *list = &parts.parts[p].list;
        alike += parts.parts[p].step_count > 1;
        ck_assert_int_ne(list->items[0].model_rank, 2);
        ck_assert_int_eq(list->items[0].model_rank, list->count == 2 ? 1 : list->count);
    }
    ck_assert_int_eq(alike, 1);   // both layers
    Plan plan = parts_plan(arena, &parts, &base);
    ck_assert_int_eq(plan.step_count, plans.plans[0].step_count);
    ck_assert_int_gt(plan.prepare_count, 0);
    CodegenRequest request = base;
    request.plan = &plan;
    prove(base.program, codegen_kernel(arena, &request), "the whole", 0);
}
END_TEST

START_TEST(the_models_own_choices_are_its_plan)
{
    PlanList plans;
    CodegenRequest base = base_of(layers, "h200", &plans);
    PartList parts = parts_of(&base, &plans);
    ck_assert(parts_agree(&parts));
    Plan plan = parts_plan(arena, &parts, &base);
    const Plan *first = &plans.plans[0];
    ck_assert_int_eq(plan.count, first->count);
    ck_assert_double_eq(plan.time_us, first->time_us);
    ck_assert_int_eq(plan.workspace_bytes, first->workspace_bytes);
    ck_assert(plan.fits == first->fits && plan.prepare_count == first->prepare_count);
    for (int k = 0; k < plan.count; k++) {
        const PlannedLaunch *a = &plan.launches[k], *b = &first->launches[k];
        ck_assert(a->family == b->family && a->fusion->outputs[0]->id == b->fusion->outputs[0]->id);
        ck_assert_mem_eq(a->program->tile, b->program->tile, sizeof a->program->tile);
    }
}
END_TEST

START_TEST(a_part_without_a_right_candidate_is_an_error)
{
    PlanList plans;
    CodegenRequest base = base_of(layers, "a100", &plans);
    PartList parts = parts_of(&base, &plans);
    CandidateList *list = &parts.parts[0].list;
    for (int i = 0; i < list->count; i++)
        list->items[i].status = CANDIDATE_FAULT, list->items[i].reason = "crashes";
    part_is_timed(&parts, 0);
}
END_TEST

/* Of both classes, of the output that is `position`. */
static void evaluated(const CodegenRequest *base, double most_work, int position, int64_t *counts)
{
    SharedMemory shared = {worker_share(1 << 24), 1 << 24, 0};
    ProfileReference *reference = reference_new(arena, base->program, &shared);
    ck_assert(!reference_is_ready(reference));
    for (int class = 0; class < INPUT_CLASSES; class++)
        reference_evaluate(reference, class, EVAL_EXACT, most_work);
    ck_assert(reference_is_ready(reference));
    for (int class = 0; class < INPUT_CLASSES; class++)
        counts[class] = reference->samples[position].evaluated[class];
    worker_unshare(shared.start, shared.bytes);
}

START_TEST(outputs_that_cost_too_much_are_not_compared)
{
    PlanList plans;
    CodegenRequest base = base_of(layers, "a100", &plans);
    int64_t first[INPUT_CLASSES], all[INPUT_CLASSES], cheap[INPUT_CLASSES], ample[INPUT_CLASSES];
    evaluated(&base, 0, 0, first);
    evaluated(&base, 0, 1, all);
    evaluated(&base, 2e4, 1, cheap);   // behind two products, a softmax and a third
    evaluated(&base, 1e9, 1, ample);
    for (int class = 0; class < INPUT_CLASSES; class++) {
        ck_assert_int_gt(first[class], 100);
        ck_assert_int_gt(all[class], 100);
        ck_assert_int_eq(cheap[class], 0);
        ck_assert_int_gt(ample[class], 100);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("parts");
    TCase *tests = tcase_create("parts");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, each_candidate_of_a_part_is_right_by_itself, 0, 2);
    tcase_add_test(tests, the_plan_of_the_fastest_is_right);
    tcase_add_test(tests, the_models_own_choices_are_its_plan);
    tcase_add_exit_test(tests, a_part_without_a_right_candidate_is_an_error, EXIT_WRONG);
    tcase_add_test(tests, outputs_that_cost_too_much_are_not_compared);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
