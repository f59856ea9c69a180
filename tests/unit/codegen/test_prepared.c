// What is made of weights alone: NAME_prepare's launches read nothing that a call makes, in no plan.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/plan/plan.h"
#include "front/lex.h"
#include "front/lower.h"
#include "front/parse.h"

static Arena *arena;
static void begin(void) { arena = arena_new(); }
static void end(void) { arena_free(arena); }

/* `t` is an output, which each call makes; its mean depends on weights alone, and is a call's where it is made of `t`, yet a plan that
   cuts rows into chunks makes both of the chunks' means, which are prepared. */
static const char text[] =
    "weight w[2048] : f32  weight v[2048] : f64  weight u[1] : f64  input x[2048] : f64\n"
    "centre[e] = w[e] / 1\n"
    "spread[e] = sq(w[e] - centre[e]) / 1\n"
    "root[e] = rsqrt(spread[e] + 1e-3)\n"
    "t[a:1, e] : f32 = (w[e] - centre[e]) * root[e] * (1 + v[e]) + u[a]\n"
    "mean[a] = sum[e](t[a, e]) / 2048\n"
    "var[a] = sum[e](sq(t[a, e] - mean[a])) / 2048\n"
    "y[a, e] : f32 = (t[a, e] - mean[a]) * rsqrt(var[a] + 1e-3) * x[e]\n"
    "output t  output var  output y\n";

static bool is_made(const Plan *plan, int before, const Tensor *tensor)
{
    for (int k = 0; k < before; k++)
        for (int i = 0; i < plan->launches[k].fusion->output_count; i++)
            if (plan->launches[k].fusion->outputs[i] == tensor)
                return true;
    return false;
}

START_TEST(launches_read_what_is_made_before_them)
{
    enum { KEEP = 30 };
    const Source *source = source_from_text(arena, "case.te", text, strlen(text));
    FusionPlans fusions = fuse(arena, lower(arena, parse(arena, lex(arena, source)), NULL, 0));
    const Target target = {.device = device_read(arena, "a100"), .math = EVAL_EXACT};
    PlanList plans = plan_program(arena, &fusions, &target, KEEP);
    int prepared = 0, alone = 0;
    for (int p = 0; p < plans.count; p++) {
        const Plan *plan = &plans.plans[p];
        prepared += plan->prepare_count;
        for (int k = 0; k < plan->count; k++)
            for (int i = 0; i < plan->launches[k].fusion->input_count; i++) {
                const Tensor *read = plan->launches[k].fusion->inputs[i];
                alone += read->role == ROLE_OUTPUT;
                ck_assert_msg(read->role == ROLE_INPUT || is_made(plan, k, read),
                              "plan %d (%s), launch %d reads '%s'", p, plan->fusion_plan, k, read->name);
            }
    }
    ck_assert_int_gt(prepared, 0);
    ck_assert_int_gt(alone, 0);   // some plan keeps `t` in memory for its mean
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prepared");
    TCase *tests = tcase_create("plans");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, launches_read_what_is_made_before_them);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
