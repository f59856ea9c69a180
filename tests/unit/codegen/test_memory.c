// A kernel whose launch gives it less memory than it lays out is not written.
#include "codegen/memory.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/codegen.h"
#include "front/lower.h"
#include "front/parse.h"

static Arena *arena;

static void setup(void) { arena = arena_new(); }

static void teardown(void) { arena_free(arena); }

// ---- every family that uses shared memory, with 16 bytes less of it than it has ----

/* What makes kernels of the family that use shared memory, on an H200. */
typedef struct Case {
    const char *family, *variant;   // variant NULL: any
    const char *text;
} Case;

static const Case cases_of_families[] = {
    {"reduce", NULL, "input x[7, 9000] : f32\ny[i] = sum[j](x[i, j])\noutput y\n"},
    {"rowwise", "shared",
     "input x[2, 20, 4096] : f32\ninput w[2, 4096] : f32\nm[b, t] = sum[c](x[b, t, c])\n"
     "y[b, t, c] = x[b, t, c] * w[b, c] - m[b, t]\noutput y\n"},
    {"channelwise", NULL,
     "input x[300, 64] : f32\nm[c] = sum[i](x[i, c])\ny[i, c] = x[i, c] - m[c]\noutput y\n"},
    {"resident", NULL,
     "input x[16, 32, 28, 28] : f32\nm[c] = sum[n, h, w](x[n, c, h, w])\n"
     "y[n, c, h, w] = x[n, c, h, w] - m[c]\noutput y\n"},
    {"matmul", NULL,
     "input a[512, 512] : f32\ninput b[512, 512] : f32\nc[i, j] = sum[k](a[i, k] * b[k, j])\noutput c\n"},
    {"gemm", "four stages",
     "input a[500, 504] : f16\ninput b[504, 496] : f16\nc[i, j] = sum[k](a[i, k] * b[k, j])\noutput c\n"},
    {"gemm", NULL, "input a[500, 504] : i8\ninput b[504, 496] : i8\nc[i, j] = sum[k](a[i, k] * b[k, j])\noutput c\n"},
    {"gemm", NULL, "input a[500, 504] : f64\ninput b[504, 496] : f64\nc[i, j] = sum[k](a[i, k] * b[k, j])\noutput c\n"},
    {"window", NULL,
     "input x[8, 16, 56, 56] : f32\ninput w[16, 3, 3] : f32\n"
     "y[n, c, h:56, v:56] = sum[r, s](pad(x[n, c, h + r - 1, v + s - 1], 0) * w[c, r, s])\noutput y\n"},
    {"depthwise", NULL,
     "input x[8, 16, 40, 40] : f32\ninput w[16, 13, 13] : f32\n"
     "y[n, c, h:40, v:40] = sum[r, s](pad(x[n, c, h + r - 6, v + s - 6], 0) * w[c, r, s])\noutput y\n"},
    {"permute", NULL, "input x[512, 512] : f32\ny[j, i] = x[i, j]\noutput y\n"},
};

static PlanList plans_of(const Case *of, Program **program, DeviceSpec **device)
{
    *device = device_read(arena, "h200");
    const Source *source = source_from_text(arena, "case.te", of->text, strlen(of->text));
    *program = lower(arena, parse(arena, lex(arena, source)), NULL, 0);
    FusionPlans fusions = fuse(arena, *program);
    return plan_program(arena, &fusions, *device, 100);
}

static bool is_of(const Case *of, const PlannedLaunch *launch)
{
    return strcmp(launch->family->name, of->family) == 0 && launch->program.shared_bytes > 0 &&
           (!of->variant || strcmp(launch->rules->variant_name, of->variant) == 0);
}

/* Bytes that the launch's kernel lays out. */
static int64_t laid_out(const PlannedLaunch *launch, const DeviceSpec *device)
{
    KernelPlan plan = {
        .fusion = launch->fusion,
        .rules = launch->rules,
        .program = &launch->program,
        .device = device,
        .threads = launch_threads(launch->family, &launch->program, device),
    };
    return launch->family->memory(&plan).shared_bytes;
}

/* Writes the first single launch of the family, with `less` bytes than its kernel lays out. */
static void write_with(const Case *of, int64_t less)
{
    Program *program;
    DeviceSpec *device;
    PlanList list = plans_of(of, &program, &device);
    for (int i = 0; i < list.count; i++) {
        PlannedLaunch *launch = &list.plans[i].launches[0];
        if (list.plans[i].count > 1 || !is_of(of, launch) || !laid_out(launch, device))
            continue;
        TemplateStore templates = {.arena = arena};
        launch->program.shared_bytes = laid_out(launch, device) - less;
        codegen_kernel(arena, &(CodegenRequest){.name = "k", .program = program, .plan = &list.plans[i],
                                                .device = device, .templates = &templates});
        return;
    }
    ck_abort_msg("no kernel of %s uses shared memory", of->family);
}

START_TEST(all_that_it_lays_out_is_enough) { write_with(&cases_of_families[_i], 0); }
END_TEST

START_TEST(shared_memory_that_is_too_small_is_a_bug) { write_with(&cases_of_families[_i], 16); }
END_TEST

// ---- memory of a launch's own, and the workspace ----

static Tensor first = {.name = "first", .rank = 1, .shape = {100}, .dtype = DTYPE_F32};
static Tensor second = {.name = "second", .rank = 1, .shape = {10}, .dtype = DTYPE_F32};

/* 400 bytes, 40 bytes and 300 of the second launch's own, at multiples of 256. */
static void check_places(int64_t of_second, int64_t of_scratch, int64_t workspace_bytes)
{
    LaunchArg one[] = {{.tensor = &first, .written = true, .workspace_offset = 0}};
    LaunchArg two[] = {{.tensor = &first, .workspace_offset = 0},
                       {.tensor = &second, .written = true, .workspace_offset = of_second},
                       {.written = true, .workspace_offset = of_scratch, .scratch_bytes = 300}};
    Launch launches[] = {{.args = one, .arg_count = 1}, {.args = two, .arg_count = 3}};
    memory_check_workspace(
        &(Kernel){.launches = launches, .launch_count = 2, .workspace_bytes = workspace_bytes});
}

START_TEST(places_apart_are_enough) { check_places(512, 768, 1280); }
END_TEST

START_TEST(a_workspace_that_ends_too_early_is_a_bug) { check_places(512, 768, 1024); }
END_TEST

START_TEST(places_that_overlap_are_a_bug) { check_places(256, 768, 1280); }
END_TEST

START_TEST(places_that_are_not_aligned_are_a_bug) { check_places(416, 768, 1280); }
END_TEST

static void check_scratch(int64_t used)
{
    LaunchArg own = {.written = true, .scratch_bytes = 300};
    memory_check_launch(&(Launch){.args = &own, .arg_count = 1}, (KernelMemory){.scratch_bytes = used});
}

START_TEST(all_of_its_own_memory_may_be_used) { check_scratch(300); }
END_TEST

START_TEST(more_than_its_own_memory_is_a_bug) { check_scratch(301); }
END_TEST

int main(void)
{
    TCase *cases = tcase_create("memory");
    int count = sizeof cases_of_families / sizeof *cases_of_families;
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, all_that_it_lays_out_is_enough, 0, count);
    tcase_add_loop_test_raise_signal(cases, shared_memory_that_is_too_small_is_a_bug, SIGABRT, 0, count);
    tcase_add_test(cases, places_apart_are_enough);
    tcase_add_test_raise_signal(cases, a_workspace_that_ends_too_early_is_a_bug, SIGABRT);
    tcase_add_test_raise_signal(cases, places_that_overlap_are_a_bug, SIGABRT);
    tcase_add_test_raise_signal(cases, places_that_are_not_aligned_are_a_bug, SIGABRT);
    tcase_add_test(cases, all_of_its_own_memory_may_be_used);
    tcase_add_test_raise_signal(cases, more_than_its_own_memory_is_a_bug, SIGABRT);
    Suite *suite = suite_create("memory");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
