// A kernel whose launch gives it less memory than it lays out is not written.
#include "codegen/memory.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/embedded.h"
#include "codegen/codegen.h"
#include "front/lower.h"
#include "front/parse.h"

static Arena *arena;

static void setup(void) { arena = arena_new(); }

static void teardown(void) { arena_free(arena); }

// ---- every family that uses shared memory, with 16 bytes less of it than it has ----

/* What makes kernels of the family, on an H200: some that use shared memory, if any of its do. */
typedef struct Case {
    const char *family, *variant;   // variant NULL: any
    const char *text;
} Case;

#define DEPTHWISE(type, taps, pad)                                                                           \
    "input x[8, 16, 40, 40] : " type "\ninput w[16, " taps ", " taps "] : " type "\n"                        \
    "y[n, c, h:40, v:40] = sum[r, s](pad(x[n, c, h + r - " pad ", v + s - " pad "], 0) * w[c, r, s])\n"      \
    "output y : " type "\n"
#define FILTER_GRADIENT(taps, pad)                                                                           \
    "input x[8, 3, 32, 32] : f32\ninput d[8, 3, 32, 32] : f32\ndw[c, r:" taps ", s:" taps "] = "             \
    "sum[n, h, v](d[n, c, h, v] * pad(x[n, c, h + r - " pad ", v + s - " pad "], 0))\noutput dw\n"

#define ATTENTION(depth)                                                                                      \
    "input q[8, 256, " depth "] : f16\ninput k[8, 256, " depth "] : f16\ninput v[8, 256, " depth "] : f16\n" \
    "s[b, i, j] = sum[d](q[b, i, d] * k[b, j, d])\nm[b, i] = max[j](s[b, i, j])\n"                           \
    "e[b, i, j] = exp(s[b, i, j] - m[b, i])\nz[b, i] = sum[j](e[b, i, j])\n"                                \
    "p[b, i, j] : f16 = e[b, i, j] / z[b, i]\ny[b, i, n] = sum[j](p[b, i, j] * v[b, j, n])\noutput y : f16\n"

static const Case cases_of_families[] = {
    {"attention", NULL, ATTENTION("40")},
    {"attention_bulk", NULL, ATTENTION("40")},
    {"attention_bulk", NULL, ATTENTION("128")},
    {"reduce", NULL, "input x[7, 9000] : f32\ny[i] = sum[j](x[i, j])\noutput y\n"},
    {"rowwise", "shared",
     "input x[2, 20, 4096] : f32\ninput w[2, 4096] : f32\nm[b, t] = sum[c](x[b, t, c])\n"
     "y[b, t, c] = x[b, t, c] * w[b, c] - m[b, t]\noutput y\n"},
    {"rowwise", NULL,
     "input x[16, 32, 28, 28] : f32\nm[c] = sum[n, h, w](x[n, c, h, w])\n"
     "y[n, c, h, w] = x[n, c, h, w] - m[c]\noutput y\n"},
    {"channelwise", NULL,
     "input x[300, 64] : f32\nm[c] = sum[i](x[i, c])\ny[i, c] = x[i, c] - m[c]\noutput y\n"},
    {"matmul", NULL,
     "input a[512, 512] : f32\ninput b[512, 512] : f32\nc[i, j] = sum[k](a[i, k] * b[k, j])\noutput c\n"},
    {"gemm", "four stages",
     "input a[500, 504] : f16\ninput b[504, 496] : f16\nc[i, j] = sum[k](a[i, k] * b[k, j])\noutput c\n"},
    {"gemm", NULL,
     "input a[500, 504] : i8\ninput b[504, 496] : i8\nc[i, j] = sum[k](a[i, k] * b[k, j])\noutput c\n"},
    {"gemm", NULL,
     "input a[500, 504] : f64\ninput b[504, 496] : f64\nc[i, j] = sum[k](a[i, k] * b[k, j])\noutput c\n"},
    {"window", NULL,
     "input x[8, 16, 56, 56] : f32\ninput w[16, 3, 3] : f32\n"
     "y[n, c, h:56, v:56] = sum[r, s](pad(x[n, c, h + r - 1, v + s - 1], 0) * w[c, r, s])\noutput y\n"},
    {"depthwise", NULL, DEPTHWISE("f32", "13", "6")},
    {"toeplitz", NULL, DEPTHWISE("f16", "13", "6")},
    {"pairs", NULL,
     "input x[8, 40, 40, 32] : f16\ninput w[5, 5, 32] : f16\n"
     "y[n, h:40, v:40, c] = sum[r, s](pad(x[n, h + r - 2, v + s - 2, c], 0) * w[r, s, c])\noutput y : f16\n"},
    {"narrow", NULL,
     "input x[8, 40, 40, 3] : f16\ninput w[64, 7, 7, 3] : f16\n"
     "y[n, h:20, v:20, f] = sum[r, s, c](pad(x[n, 2*h + r - 3, 2*v + s - 3, c], 0) * w[f, r, s, c])\noutput y : f16\n"},
    {"filter_direct", NULL, FILTER_GRADIENT("5", "2")},
    {"filter_gemm", NULL, FILTER_GRADIENT("5", "2")},
    {"filter_strip", NULL, FILTER_GRADIENT("3", "1")},
    {"filter_groups", NULL,
     "input x[8, 40, 40, 4, 8] : f16\ninput d[8, 40, 40, 4, 8] : f16\n"
     "dw[g, f, r:3, s:3, c] = sum[n, h, v](d[n, h, v, g, f] * pad(x[n, h + r - 1, v + s - 1, g, c], 0))\noutput dw : f16\n"},
    {"filter_wide", NULL,
     "input x[4, 40, 40, 4, 64] : f16\ninput d[4, 40, 40, 4, 64] : f16\n"
     "dw[g, f, r:3, s:3, c] = sum[n, h, v](d[n, h, v, g, f] * pad(x[n, h + r - 1, v + s - 1, g, c], 0))\noutput dw : f16\n"},
    {"bulk", NULL,
     "input a[256, 512] : f16\ninput b[512, 512] : f16\nc[i, j] = sum[k](a[i, k] * b[k, j])\noutput c\n"},
    {"skinny", NULL,
     "input a[4, 1024] : f32\ninput b[1024, 512] : f32\nc[i, j] = sum[k](a[i, k] * b[k, j])\noutput c\n"},
    {"permute", NULL, "input x[512, 512] : f32\ny[j, i] = x[i, j]\noutput y\n"},
};

/* Of the families that say that they use none. */
static const Case cases_without[] = {
    {"elementwise", NULL, "input x[4096] : f32\ny[i] = x[i] + 1\noutput y\n"},
    {"strip", NULL, DEPTHWISE("f32", "5", "2")},
    {"loopnest", NULL, "input x[64, 64] : f32\ny[i] = sum[j](x[i, j])\noutput y\n"},
};
enum {
    CASES = sizeof cases_of_families / sizeof *cases_of_families,
    CASES_WITHOUT = sizeof cases_without / sizeof *cases_without
};

/* Bytes that the launch's kernel lays out. */
static int64_t laid_out(const PlannedLaunch *launch, const DeviceSpec *device)
{
    const RTile *tile = launch->program->tile;
    return kind_layout(launch->kind, &tile[LEVEL_SHARED], &tile[LEVEL_REGISTER], device).bytes;
}

/* Calls visit() for a plan of the family's best kernel of each kind, if the fusion is one that it can serve. */
typedef void Visit(void *context, const Plan *plan, const Program *program, const DeviceSpec *device);

static void visit_kinds(const Family *family, const Fusion *fusion, const Program *program,
                        const DeviceSpec *device, Visit *visit, void *context)
{
    KernelKind *variants = NEW_ARRAY(arena, KernelKind, MAX_VARIANTS);
    const Target target = {.device = device, .math = EVAL_TF32};
    Viewed viewed = {.arena = arena, .fusion = fusion, .target = &target};
    int count = family_kinds(arena, family, &viewed, variants);
    for (int v = 0; v < count; v++) {
        ConstructStats stats = {0};
        RProgram made;
        PlannedLaunch launch = {family, fusion, family_view(family, &viewed), &variants[v], &made};
        Plan plan = {.fusion_plan = "one", .launches = &launch, .count = 1};
        if (rprogram_construct(arena, launch.kind, &(Target){.device = device}, 0, 1, &made, &stats))
            visit(context, &plan, program, device);
    }
}

static const Family *family_named(const char *name)
{
    int f = 0;
    while (families[f] && strcmp(families[f]->name, name) != 0)
        f++;
    ck_assert_msg(families[f], "there is no family %s", name);
    return families[f];
}

static void visit_case(const Case *of, Visit *visit, void *context)
{
    const DeviceSpec *device = device_read(arena, "h200");
    const Source *source = source_from_text(arena, "case.te", of->text, strlen(of->text));
    Program *program = lower(arena, parse(arena, lex(arena, source)), NULL, 0);
    FusionPlans fusions = fuse(arena, program);
    for (int p = 0; p < fusions.count; p++)
        if (fusions.plans[p].count == 1)
            visit_kinds(family_named(of->family), fusions.plans[p].fusions[0], program, device, visit,
                        context);
}

typedef struct Writing {
    const Case *of;
    int64_t less;   // bytes than its kernel lays out
    int written;
} Writing;

static void write_with(void *context, const Plan *plan, const Program *program, const DeviceSpec *device)
{
    Writing *writing = context;
    PlannedLaunch *launch = &plan->launches[0];
    const char *variant = writing->of->variant;
    if (!laid_out(launch, device) || (variant && strcmp(launch->kind->name, variant) != 0))
        return;
    TemplateStore templates = {.arena = arena};
    RProgram less = *launch->program;
    less.shared_bytes = laid_out(launch, device) - writing->less;
    launch->program = &less;
    codegen_kernel(
        arena, &(CodegenRequest){
                   .name = "k", .program = program, .plan = plan, .device = device, .templates = &templates});
    writing->written++;
}

static void write_all(const Case *of, int64_t less)
{
    Writing writing = {.of = of, .less = less};
    visit_case(of, write_with, &writing);
    ck_assert_msg(writing.written > 0, "no kernel of %s uses shared memory", of->family);
}

static void count_unused(void *context, const Plan *plan, const Program *program, const DeviceSpec *device)
{
    (void)program, (void)device;
    ck_assert_int_eq(plan->launches[0].program->shared_bytes, 0);
    ++*(int *)context;
}

START_TEST(all_that_it_lays_out_is_enough) { write_all(&cases_of_families[_i], 0); }
END_TEST

START_TEST(shared_memory_that_is_too_small_is_a_bug) { write_all(&cases_of_families[_i], 16); }
END_TEST

START_TEST(a_family_that_lays_out_nothing_is_given_nothing)
{
    int kinds = 0;
    visit_case(&cases_without[_i], count_unused, &kinds);
    ck_assert_int_gt(kinds, 0);
}
END_TEST

static bool has_case(const Case *cases, int count, const char *family)
{
    for (int i = 0; i < count; i++)
        if (strcmp(cases[i].family, family) == 0)
            return true;
    return false;
}

/* What a template lays out in shared memory is a Region; of a family without one the interpreter stops any access to it. */
START_TEST(every_family_with_regions_has_its_case)
{
    for (int f = 0; families[f]; f++) {
        bool lays_out = strstr(embedded_find(families[f]->template_path)->text, "constexpr Region ");
        ck_assert_msg(!lays_out || has_case(cases_of_families, CASES, families[f]->name),
                      "no case makes a kernel of %s, whose template has regions", families[f]->name);
        ck_assert_msg(lays_out || !has_case(cases_of_families, CASES, families[f]->name),
                      "%s has a case, and its template no region", families[f]->name);
    }
}
END_TEST

// ---- the workspace ----

static Tensor first = {.name = "first"}, second = {.name = "second"}, third = {.name = "third"};

enum { INPUT, OUTPUT, WORKSPACE };   // buffers

#define ARG(tensor_, place, bytes_) {.tensor = (tensor_), .buffer = WORKSPACE, .offset = (place), .bytes = (bytes_)}
#define WRITTEN(tensor_, place, bytes_)                                                                      \
    {.tensor = (tensor_), .buffer = WORKSPACE, .offset = (place), .bytes = (bytes_), .written = true}

static void check_launches(Launch *launches, int count, int64_t workspace_bytes)
{
    const Program program = {.input_count = 1, .output_count = 1};
    memory_check_launches(&(Kernel){
        .program = &program, .launches = launches, .launch_count = count, .workspace_bytes = workspace_bytes});
}

/* 400 bytes, and 40 and 300 of the second launch, at multiples of 256. */
static void check_places(int64_t of_second, int64_t of_third, int64_t workspace_bytes)
{
    LaunchArg one[] = {{.buffer = INPUT, .bytes = 400}, WRITTEN(&first, 0, 400)};
    LaunchArg two[] = {ARG(&first, 0, 400), WRITTEN(&second, of_second, 40), WRITTEN(&third, of_third, 300)};
    check_launches((Launch[]){{.args = one, .arg_count = 2}, {.args = two, .arg_count = 3}}, 2, workspace_bytes);
}

START_TEST(places_apart_are_enough) { check_places(512, 768, 1280); }
END_TEST

START_TEST(a_workspace_that_ends_too_early_is_a_bug) { check_places(512, 768, 1024); }
END_TEST

START_TEST(places_that_overlap_are_a_bug) { check_places(256, 768, 1280); }
END_TEST

START_TEST(places_that_are_not_aligned_are_a_bug) { check_places(416, 768, 1280); }
END_TEST

/* The third launch writes 400 bytes somewhere; the last one reads them and one of the tensors before. */
static void check_reuse(int64_t of_third, const Tensor *read, int64_t of_read, int64_t bytes)
{
    LaunchArg one[] = {WRITTEN(&first, 0, 400)}, two[] = {ARG(&first, 0, 400), WRITTEN(&second, 512, 40)};
    LaunchArg three[] = {ARG(&second, 512, 40), WRITTEN(&third, of_third, 400)};
    LaunchArg four[] = {ARG(&third, of_third, 400), ARG(read, of_read, bytes), {.buffer = OUTPUT, .bytes = 4, .written = true}};
    Launch launches[] = {{.args = one, .arg_count = 1}, {.args = two, .arg_count = 2},
                         {.args = three, .arg_count = 2}, {.args = four, .arg_count = 3}};
    check_launches(launches, 4, 1280);
}

START_TEST(a_place_may_be_used_again) { check_reuse(0, &second, 512, 40); }
END_TEST

START_TEST(a_place_that_is_still_read_is_not_used_again) { check_reuse(0, &first, 0, 400); }
END_TEST

START_TEST(a_part_of_what_is_still_read_is_not_used_again) { check_reuse(256, &first, 0, 400); }
END_TEST

START_TEST(what_a_launch_reads_it_does_not_write) { check_reuse(256, &second, 512, 40); }
END_TEST

START_TEST(what_nobody_has_written_is_not_read) { check_reuse(0, &second, 768, 40); }
END_TEST

int main(void)
{
    TCase *cases = tcase_create("memory");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, all_that_it_lays_out_is_enough, 0, CASES);
    tcase_add_loop_test_raise_signal(cases, shared_memory_that_is_too_small_is_a_bug, SIGABRT, 0, CASES);
    tcase_add_loop_test(cases, a_family_that_lays_out_nothing_is_given_nothing, 0, CASES_WITHOUT);
    tcase_add_test(cases, every_family_with_regions_has_its_case);
    tcase_add_test(cases, places_apart_are_enough);
    tcase_add_test_raise_signal(cases, a_workspace_that_ends_too_early_is_a_bug, SIGABRT);
    tcase_add_test_raise_signal(cases, places_that_overlap_are_a_bug, SIGABRT);
    tcase_add_test_raise_signal(cases, places_that_are_not_aligned_are_a_bug, SIGABRT);
    tcase_add_test(cases, a_place_may_be_used_again);
    tcase_add_test_raise_signal(cases, a_place_that_is_still_read_is_not_used_again, SIGABRT);
    tcase_add_test_raise_signal(cases, a_part_of_what_is_still_read_is_not_used_again, SIGABRT);
    tcase_add_test_raise_signal(cases, what_a_launch_reads_it_does_not_write, SIGABRT);
    tcase_add_test_raise_signal(cases, what_nobody_has_written_is_not_read, SIGABRT);
    Suite *suite = suite_create("memory");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
