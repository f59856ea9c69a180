// Small programs for the CPU interpreter, as the code generator would emit them, and their runs.
#pragma once
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "hal/runtime.h"

enum { N = 1000 };

static Arena *arena;
static unsigned char input[1 << 20];   // what every input holds, from its start

static void fill(void *context, int tensor, int64_t offset, int64_t count, void *bytes)
{
    (void)context, (void)tensor;
    memcpy(bytes, input + offset, (size_t)count);
}

typedef struct Case {
    const char *kernel;             // body of `extern "C" __global__ void t_k0(const In *x, Out *y)`
    const char *in, *out;           // element types
    int64_t in_bytes, out_bytes;
    const char *grid, *block;
    int shared;
    const char *cluster;            // NULL: no clusters
    bool cooperative, large_clusters;
    bool early, first;              // launched twice, the second time early; the early one is the program's first
    int warp_size;                  // 0: 32
    RuntimeSchedule schedule;
    bool lazy, checked, counts, ends_written;
    int64_t max_blocks;             // 0: all
    int seconds;                    // 0: 2
} Case;

/* A small device that has everything. */
static inline RuntimeLimits test_limits(int warp_size)
{
    return (RuntimeLimits){
        .warp_size = warp_size,
        .max_threads_per_block = 1024,
        .static_shared_bytes = 48 << 10,
        .shared_bytes = 128 << 10,
        .max_blocks_per_launch = 1 << 24,
        .max_threads_per_launch = INT64_C(1) << 33,
        .max_cluster_blocks = 16,
        .cooperative = true,
        .sm_count = 4,
        .max_threads_per_sm = 2048,
        .max_blocks_per_sm = 32,
        .shared_per_sm = 228 << 10,
        .shared_reserved_per_block = 1 << 10,
    };
}

/* The prelude, the kernel and its launcher. */
static const char *program_text(const Case *c)
{
    StrBuf out = strbuf_new(arena);
    char *prelude = realpath("templates/prelude.cuh", NULL);
    ck_assert_msg(prelude, "the tests run in the folder of the project");
    strbuf_printf(&out, "#include \"%s\"\n", prelude);
    free(prelude);
    strbuf_printf(&out, "namespace kernel_t {\nusing namespace rollerc;\nextern \"C\" __global__ void\n"
                  "t_k0(const %s *x, %s *y)\n{\n%s\n}\n}\n", c->in, c->out, c->kernel);
    strbuf_printf(&out, "extern \"C\" int t_launch(const void *in0, void *out0, void *, void *stream)\n{\n"
                  "    void *args[] = {&in0, &out0};\n"
                  "    if (%d > 49152)\n"
                  "        cudaFuncSetAttribute(kernel_t::t_k0, cudaFuncAttributeMaxDynamicSharedMemorySize, %d);\n",
                  c->shared, c->shared);
    if (c->large_clusters)
        strbuf_puts(&out, "    cudaFuncSetAttribute(kernel_t::t_k0, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);\n");
    if (c->early && !c->first)
        strbuf_printf(&out, "    cudaLaunchKernel(kernel_t::t_k0, dim3(%s), dim3(%s), args, %d, stream);\n", c->grid, c->block, c->shared);
    if (c->cluster || c->early)
        strbuf_printf(&out, "    return rollerc::launch_with(kernel_t::t_k0, dim3(%s), dim3(%s), args, %d, stream, %d, dim3(%s), %d);\n}\n",
                      c->grid, c->block, c->shared, c->early, c->cluster ? c->cluster : "1", c->cooperative);
    else
        strbuf_printf(&out, "    return cudaLaunch%sKernel(kernel_t::t_k0, dim3(%s), dim3(%s), args, %d,\n"
                      "                            static_cast<cudaStream_t>(stream));\n}\n",
                      c->cooperative ? "Cooperative" : "", c->grid, c->block, c->shared);
    return out.text;
}

static inline RuntimeModule *load_case(Case c)
{
    const char *text = program_text(&c), *reason = NULL;
    RuntimeSource source = {
        .name = "t", .text = text, .length = strlen(text), .arg_count = 2,
        .limits = test_limits(c.warp_size ? c.warp_size : 32),
        .builds = c.counts ? RUNTIME_COUNTED : c.checked ? RUNTIME_CHECKED : RUNTIME_PLAIN,
    };
    RuntimeModule *module;
    if (runtime_interp.load(arena, &source, &module, &reason) != RUNTIME_DONE)
        ck_abort_msg("%s", reason);
    return module;
}

static inline RuntimeResult run_loaded(const RuntimeModule *module, Case c)
{
    RuntimeTensor tensors[] = {
        {.name = "x", .buffer = 0, .bytes = c.in_bytes},
        {.name = "y", .buffer = 1, .bytes = c.out_bytes, .written = true},
    };
    RuntimeJob job = {
        .buffer_bytes = (int64_t[]){c.in_bytes, c.out_bytes, 0}, .tensors = tensors, .tensor_count = 2,
        .fill = fill, .poison = 0xff, .only_launch = -1, .max_blocks = c.max_blocks ? c.max_blocks : INT64_MAX,
        .lazy = c.lazy, .schedule = c.schedule, .checked = c.checked, .counts = c.counts, .ends_written = c.ends_written,
        .seconds = c.seconds ? c.seconds : 2,
    };
    return runtime_interp.run(arena, module, &job);
}

static inline RuntimeResult run_well(Case c)
{
    RuntimeResult result = run_loaded(load_case(c), c);
    ck_assert_msg(result.status == RUNTIME_DONE, "%s", result.reason);
    return result;
}

/* Runs a wrong program; the reason must contain `what`. */
static inline void run_loaded_badly(const RuntimeModule *module, Case c, const char *what)
{
    RuntimeResult result = run_loaded(module, c);
    ck_assert_int_eq(result.status, RUNTIME_WRONG);
    ck_assert_msg(strstr(result.reason, what), "'%s' lacks '%s'", result.reason, what);
    runtime_interp.release(&result);
}

static inline void run_badly(Case c, const char *what) { run_loaded_badly(load_case(c), c, what); }

static inline float *float_input(void)
{
    float *x = (float *)input;
    for (int i = 0; i < 1 << 18; i++)
        x[i] = (float)(i % 4001) - 2000;
    return x;
}

static const Case FLOATS = {
    .in = "float", .out = "float", .in_bytes = N * 4, .out_bytes = N * 4, .grid = "4", .block = "256",
};

#define INDEX "const long long i = blockIdx.x * 256LL + threadIdx.x;\n"

static void setup(void) { arena = arena_new(); }
static void teardown(void) { arena_free(arena); }

static inline int run_tests(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, setup, teardown);
    Suite *suite = suite_create("interp");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
