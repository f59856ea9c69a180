// Kernels of a program as texts of their own, which compilers take side by side: each is the kernel that the whole file has.
// Without NVRTC the machine code is not compared.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front/lex.h"
#include "front/lower.h"
#include "front/parse.h"
#include "hal/nvrtc.h"
#include "rank/candidates.h"

enum { KEEP = 4 };

static Arena *arena;
static void begin(void) { arena = arena_new(); }
static void end(void) { arena_free(arena); }

/* A product, its rows' softmax, another product, and a layer that is like the first. */
static const char text[] =
    "input x[256, 128] : f16  input a[128, 128] : f16  input b[128, 4096] : f16\n"
    "p[i, j] : f16 = sum[k](x[i, k] * a[k, j])\n"
    "q[i, j] : f16 = sum[k](p[i, k] * a[k, j])\n"
    "t[i, j] : f32 = sum[k](q[i, k] * b[k, j])\n"
    "m[i] = max[j](t[i, j])\n"
    "s[i] = sum[j](exp(t[i, j] - m[i]))\n"
    "y[i, j] : f32 = exp(t[i, j] - m[i]) / s[i]\n"
    "output y\n";

static CandidateList candidates_of(CodegenForm form)
{
    static TemplateStore templates;
    static Target target;
    templates.arena = arena;
    target = (Target){.device = device_read(arena, "h200"), .math = EVAL_EXACT};
    const Source *source = source_from_text(arena, "case.te", text, strlen(text));
    Program *program = lower(arena, parse(arena, lex(arena, source)), NULL, 0);
    FusionPlans fusions = fuse(arena, program);
    PlanList *plans = NEW(arena, PlanList);
    *plans = plan_program(arena, &fusions, &target, KEEP);
    CandidateList list = candidates_of_plans(arena, plans);
    CodegenRequest base = {
        .name = "t", .program = program, .device = target.device, .templates = &templates, .form = form};
    candidates_write(arena, &list, 0, list.count, &base);
    return list;
}

static int count_of(const char *in, const char *what)
{
    int count = 0;
    for (const char *at = in; (at = strstr(at, what)); at++)
        count++;
    return count;
}

START_TEST(a_piece_is_one_kernel_and_says_nothing_of_the_plan)
{
    CandidateList list = candidates_of(CODEGEN_BOTH);
    const Kernel *kernel = list.items[0].kernel;
    ck_assert_int_gt(kernel->kernel_count, 2);
    for (int k = 0; k < kernel->kernel_count; k++) {
        ck_assert_int_eq(count_of(kernel->pieces[k], " __global__ void"), 1);
        ck_assert_ptr_nonnull(strstr(kernel->pieces[k], "t_k0("));
        ck_assert_ptr_null(strstr(kernel->pieces[k], "candidate"));
        ck_assert_ptr_null(strstr(kernel->pieces[k], "t_launch"));
    }
    ck_assert_int_eq(count_of(kernel->source, " __global__ void"), kernel->kernel_count);
}
END_TEST

START_TEST(without_the_file_pieces_are_the_same)
{
    CandidateList both = candidates_of(CODEGEN_BOTH), pieces = candidates_of(CODEGEN_PIECES);
    for (int i = 0; i < both.count; i++) {
        ck_assert_ptr_null(pieces.items[i].kernel->source);
        for (int k = 0; k < both.items[i].kernel->kernel_count; k++)
            ck_assert_str_eq(both.items[i].kernel->pieces[k], pieces.items[i].kernel->pieces[k]);
    }
}
END_TEST

START_TEST(machine_code_is_that_of_the_whole_file)
{
    Nvrtc nvrtc;
    char reason[500];
    if (!nvrtc_open(&nvrtc, reason, sizeof reason))
        return;
    CandidateList whole = candidates_of(CODEGEN_WHOLE), apart = candidates_of(CODEGEN_PIECES);
    whole.count = 1;
    Compilation *compilation = compilation_new(arena, &(JitOptions){.arch = "sm_90a"}, false);
    candidates_compile(compilation, &(CandidateList *){&whole}, 1, NULL, NULL);
    candidates_compile(compilation, &(CandidateList *){&apart}, 1, NULL, NULL);
    const Candidate *left = &whole.items[0], *right = &apart.items[0];
    ck_assert_msg(left->compiled && right->compiled, "%s %s", left->reason, right->reason);
    for (int k = 0; k < left->kernel->launch_count; k++) {
        CandidateCode a = candidate_code(arena, left, k), b = candidate_code(arena, right, k);
        const JitKernel *of_a = jit_find_kernel(a.compiled, a.entry), *of_b = jit_find_kernel(b.compiled, b.entry);
        ck_assert_ptr_nonnull(of_a);
        ck_assert_ptr_nonnull(of_b);
        ck_assert_int_eq(of_a->registers, of_b->registers);
        ck_assert_int_eq(of_a->spill_store_bytes, of_b->spill_store_bytes);
        ck_assert_int_eq(of_a->static_shared_bytes, of_b->static_shared_bytes);
    }
    ck_assert_int_eq(candidate_spills(left), candidate_spills(right));
}
END_TEST

/* A CompileEvents. */
static void tell(void *context, int list) { ((bool *)context)[list] = true; }

/* Plans that differ in one launch share the code of the others. */
START_TEST(equal_pieces_are_compiled_once)
{
    CandidateList list = candidates_of(CODEGEN_PIECES);
    int kernels = 0, different = 0;
    const JitResult *seen[100];
    Nvrtc nvrtc;
    char reason[500];
    if (!nvrtc_open(&nvrtc, reason, sizeof reason))
        return;
    Compilation *compilation = compilation_new(arena, &(JitOptions){.arch = "sm_90a"}, false);
    CandidateList again = candidates_of(CODEGEN_PIECES), *both[] = {&list, &again};
    bool told[2] = {false};
    candidates_compile(compilation, both, 1, NULL, &(CompileEvents){.list = tell, .context = told});
    ck_assert(told[0] && !told[1]);
    candidates_compile(compilation, both, 2, NULL, &(CompileEvents){.list = tell, .context = told});
    ck_assert(told[1]);
    for (int i = 0; i < list.count; i++)   // what was compiled before is not compiled again
        for (int k = 0; k < list.items[i].kernel->kernel_count; k++)
            ck_assert_ptr_eq(list.items[i].compiled[k], again.items[i].compiled[k]);
    for (int i = 0; i < list.count; i++)
        for (int k = 0; k < list.items[i].kernel->kernel_count; k++, kernels++) {
            int found = 0;
            while (found < different && seen[found] != list.items[i].compiled[k])
                found++;
            for (int other = 0; other < found && found == different; other++)
                ck_assert(seen[other]->cubin != list.items[i].compiled[k]->cubin);
            if (found == different)
                seen[different++] = list.items[i].compiled[k];
        }
    ck_assert_int_lt(different, kernels);
    ck_assert_int_ge(different, list.items[0].kernel->kernel_count);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pieces");
    TCase *tests = tcase_create("pieces");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_piece_is_one_kernel_and_says_nothing_of_the_plan);
    tcase_add_test(tests, without_the_file_pieces_are_the_same);
    tcase_add_test(tests, machine_code_is_that_of_the_whole_file);
    tcase_add_test(tests, equal_pieces_are_compiled_once);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
