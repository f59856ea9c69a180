// Compilation in worker processes: what compiles, what does not, what never would, and what brings the
// worker down. Without NVRTC only the parts that need none are tested.
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/embedded.h"
#include "hal/jit.h"
#include "hal/nvrtc.h"
#include "hal/worker.h"

static Arena *arena;

static JitResult compile(const char *text, const char *arch, int seconds)
{
    JitRequest request = {.text = text, .name = "test.cu"};
    JitResult result;
    jit_compile(arena, &request, 1, &(JitOptions){.arch = arch, .seconds = seconds}, &result);
    return result;
}

static const char copy_text[] =
    "extern \"C\" __global__ void copy(const float *x, float *y)\n"
    "{ __shared__ float s[64]; s[threadIdx.x] = x[threadIdx.x]; __syncthreads();\n"
    "  y[threadIdx.x] = s[63 - threadIdx.x]; }\n";

START_TEST(old_compilers_of_one_architecture_are_doubted)
{
    ck_assert(jit_is_doubted("sm_90a", 12, 8) && jit_is_doubted("sm_90a", 13, 0));
    ck_assert(!jit_is_doubted("sm_90a", 13, 1) && !jit_is_doubted("sm_90a", 14, 0));
    ck_assert(!jit_is_doubted("sm_90", 13, 0) && !jit_is_doubted("sm_80", 12, 8));
}
END_TEST

START_TEST(a_kernel_becomes_ptx_and_cubin)
{
    JitResult result = compile(copy_text, "sm_80", 0);
    ck_assert_int_eq(result.status, JIT_DONE);
    ck_assert_ptr_nonnull(strstr(result.ptx, ".target sm_80"));
    ck_assert_mem_eq(result.cubin, "\177ELF", 4);
    ck_assert_int_eq(result.kernel_count, 1);
    ck_assert_int_gt(result.kernels[0].registers, 3);
    ck_assert_int_eq(result.kernels[0].static_shared_bytes, 256);
    ck_assert(!jit_spills(&result));
    ck_assert_int_eq(strncmp(result.compiler, "NVRTC ", 6), 0);
}
END_TEST

START_TEST(an_error_is_a_result_with_the_compilers_words)
{
    JitResult result = compile("extern \"C\" __global__ void k() { undeclared(); }\n", "sm_80", 0);
    ck_assert_int_eq(result.status, JIT_ERROR);
    ck_assert_msg(strstr(result.reason, "undeclared"), "%s", result.reason);
    ck_assert_ptr_null(strchr(result.reason, '\n'));
}
END_TEST

START_TEST(the_profilers_own_kernels_compile)
{
    JitResult result = compile(embedded_find("src/hal/gpu/helpers.cu")->text, "sm_80", 0);
    ck_assert_msg(result.status == JIT_DONE, "%s", result.reason);
    ck_assert_ptr_nonnull(jit_find_kernel(&result, "rollerc_fill_0"));
    ck_assert_ptr_nonnull(jit_find_kernel(&result, "rollerc_gather_8"));
}
END_TEST

/* 2^24 copies of a loop body. */
START_TEST(an_unroll_bomb_is_stopped)
{
    JitResult result = compile("extern \"C\" __global__ void k(volatile float *x)\n{\n"
                               "#pragma unroll 256\n    for (int i = 0; i < 256; i++)\n"
                               "#pragma unroll 256\n    for (int j = 0; j < 256; j++)\n"
                               "#pragma unroll 256\n    for (int k = 0; k < 256; k++)\n"
                               "        x[i * k % 7] += x[j % 5] * k;\n}\n",
                               "sm_80", 2);
    ck_assert(result.status == JIT_TIMEOUT || result.status == JIT_ERROR);
    ck_assert_ptr_nonnull(result.reason);
}
END_TEST

/* Templates a hundred thousand deep overflow the stack of a compiler that does not count them. */
START_TEST(what_eats_memory_ends_as_an_error)
{
    JitResult result =
        compile("template <long N> struct D { static constexpr long v = D<N - 1>::v + D<N - 2>::v; };\n"
                "constexpr long f(long n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n"
                "extern \"C\" __global__ void k(long *x) { *x = D<100000>::v; }\n",
                "sm_80", 10);
    ck_assert(result.status == JIT_TIMEOUT || result.status == JIT_ERROR);
}
END_TEST

START_TEST(an_old_architecture_says_which_toolkit_it_needs)
{
    JitResult volta = compile(copy_text, "sm_70", 0), kepler = compile(copy_text, "sm_37", 0);
    ck_assert_int_eq(kepler.status, JIT_MACHINE);
    ck_assert_msg(strstr(kepler.reason, "CUDA <= 11"), "%s", kepler.reason);
    if (volta.status == JIT_DONE)
        return;   // NVRTC 12
    ck_assert_int_eq(volta.status, JIT_MACHINE);
    ck_assert_msg(strstr(volta.reason, "CUDA <= 12"), "%s", volta.reason);
}
END_TEST

START_TEST(many_texts_keep_their_places)
{
    enum { COUNT = 5 };
    JitRequest requests[COUNT] = {0};
    JitResult results[COUNT];
    for (int i = 0; i < COUNT; i++)
        requests[i].text = i == 2 ? "no" : arena_printf(arena, "extern \"C\" __global__ void k%d() {}\n", i),
        requests[i].name = "test.cu";
    jit_compile(arena, requests, COUNT, &(JitOptions){.arch = "sm_80", .jobs = 2}, results);
    for (int i = 0; i < COUNT; i++)
        if (i == 2)
            ck_assert_int_eq(results[i].status, JIT_ERROR);
        else
            ck_assert_ptr_nonnull(jit_find_kernel(&results[i], arena_printf(arena, "k%d", i)));
}
END_TEST

START_TEST(the_log_is_read)
{
    JitKernel *kernels;
    int count =
        jit_read_log(arena,
                     "ptxas info    : 173 bytes gmem\n"
                     "ptxas info    : Compiling entry function 'a_k0' for 'sm_90a'\n"
                     "ptxas info    : Function properties for a_k0\n"
                     "ptxas         .     8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n"
                     "ptxas info    : Used 255 registers, used 1 barriers, 37888 bytes smem\n"
                     "ptxas info    : Compiling entry function 'a_k1' for 'sm_90a'\n"
                     "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                     "ptxas info    : Used 16 registers\n",
                     &kernels);
    ck_assert_int_eq(count, 2);
    ck_assert_str_eq(kernels[0].name, "a_k0");
    ck_assert_int_eq(kernels[0].registers, 255);
    ck_assert_int_eq(kernels[0].stack_bytes, 8);
    ck_assert_int_eq(kernels[0].spill_store_bytes, 4);
    ck_assert_int_eq(kernels[0].spill_load_bytes, 12);
    ck_assert_int_eq(kernels[0].static_shared_bytes, 37888);
    ck_assert_int_eq(kernels[1].registers, 16);
    ck_assert_int_eq(kernels[1].static_shared_bytes, 0);
}
END_TEST

// ---- workers ----

static void crash(void *context)
{
    (void)context;
    signal(SIGSEGV, SIG_DFL);   // a sanitizer would make an exit of it
    raise(SIGSEGV);
}

static void hang(void *context)
{
    (void)context;
    for (;;)
        pause();
}

static void signs_of_life(void *context)
{
    for (int i = 0; i < 6; i++) {
        usleep(300000);
        worker_alive();
    }
    *(int *)context = 7;
}

static Worker run(void (*work)(void *), void *context)
{
    Worker worker;
    worker_start(&worker, &(WorkerLimits){.seconds = 1}, work, context);
    while (worker.state == WORKER_RUNNING)
        worker_wait(&worker, 1);
    return worker;
}

START_TEST(a_crash_is_a_state)
{
    Worker worker = run(crash, NULL);
    ck_assert_int_eq(worker.state, WORKER_CRASHED);
    ck_assert_int_eq(worker.signal, SIGSEGV);
}
END_TEST

START_TEST(a_hang_is_ended)
{
    Worker worker = run(hang, NULL);
    ck_assert_int_eq(worker.state, WORKER_TIMEOUT);
    ck_assert_int_eq(kill(worker.pid, 0), -1);   // gone, not a zombie
}
END_TEST

START_TEST(signs_of_life_start_the_clock_again)
{
    int *answer = worker_share(sizeof *answer);
    ck_assert_int_eq(run(signs_of_life, answer).state, WORKER_DONE);   // 1.8 s, limit 1 s
    ck_assert_int_eq(*answer, 7);
}
END_TEST

static void make_arena(void) { arena = arena_new(); }

static void free_arena(void) { arena_free(arena); }

static void look_for_nvrtc(void *context)
{
    char reason[500];
    Nvrtc nvrtc;
    *(bool *)context = nvrtc_open(&nvrtc, reason, sizeof reason);
}

int main(void)
{
    bool *has_nvrtc = worker_share(sizeof *has_nvrtc);
    run(look_for_nvrtc, has_nvrtc);
    Suite *suite = suite_create("jit");
    TCase *tests = tcase_create("jit");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, make_arena, free_arena);
    if (*has_nvrtc) {
        tcase_add_test(tests, a_kernel_becomes_ptx_and_cubin);
        tcase_add_test(tests, an_error_is_a_result_with_the_compilers_words);
        tcase_add_test(tests, the_profilers_own_kernels_compile);
        tcase_add_test(tests, an_unroll_bomb_is_stopped);
        tcase_add_test(tests, what_eats_memory_ends_as_an_error);
        tcase_add_test(tests, an_old_architecture_says_which_toolkit_it_needs);
        tcase_add_test(tests, many_texts_keep_their_places);
    } else {
        puts("jit: no NVRTC here: compilation is NOT tested");
    }
    tcase_add_test(tests, old_compilers_of_one_architecture_are_doubted);
    tcase_add_test(tests, the_log_is_read);
    tcase_add_test(tests, a_crash_is_a_state);
    tcase_add_test(tests, a_hang_is_ended);
    tcase_add_test(tests, signs_of_life_start_the_clock_again);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
