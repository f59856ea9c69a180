// A GPU as a runtime, with a stand-in for its driver (tests/stand_in/cuda.c).
#include "interp_test.h"

/* y = 2 x + 1 by two launches, with what lies between them at byte 512 of the workspace. */
static LaunchArg args[3] = {{.buffer = 0}, {.buffer = 1}, {.buffer = 2, .offset = 512}};
static const Launch launches[2] = {
    {.entry = "t_k0", .grid = {4, 1, 1}, .block = {64, 1, 1}, .cluster = {1, 1, 1}, .args = args, .arg_count = 3},
    {.entry = "t_k1", .grid = {4, 1, 1}, .block = {64, 1, 1}, .cluster = {1, 1, 1}, .args = args, .arg_count = 3},
};

static const float *read_from;

static void fill_floats(void *context, int tensor, int64_t offset, int64_t count, void *bytes)
{
    ck_assert(context == NULL && tensor == 0);
    memcpy(bytes, (const char *)read_from + offset, (size_t)count);
}

static RuntimeResult run_code(const char *cubin, int only_launch)
{
    const RuntimeSource source = {.name = "t", .arg_count = 2, .limits = test_limits(32), .launches = launches, .launch_count = 2,
                                  .cubin = (const unsigned char *)cubin};
    const RuntimeTensor tensors[] = {
        {.name = "x", .buffer = 0, .bytes = 1024},
        {.name = "y", .buffer = 1, .bytes = 1024, .written = true},
        {.name = "workspace", .buffer = 2, .bytes = 1536, .written = true},
    };
    const RuntimeJob job = {.buffer_bytes = (int64_t[]){1024, 1024, 1536}, .tensors = tensors, .tensor_count = 3,
                            .fill = fill_floats, .poison = 0xff, .only_launch = only_launch, .max_blocks = INT64_MAX, .seconds = 1};
    RuntimeModule *module;
    const char *reason = NULL;
    read_from = float_input();
    ck_assert_int_eq(runtime_gpu.load(arena, &source, &module, &reason), RUNTIME_DONE);
    return runtime_gpu.run(arena, module, &job);
}

START_TEST(it_makes_the_launches_of_the_record)
{
    RuntimeResult result = run_code("adds", -1);
    ck_assert_msg(result.status == RUNTIME_DONE, "%s", result.reason);
    const float *x = result.buffers[0], *y = result.buffers[1], *w = (float *)result.buffers[2] + 128;
    for (int i = 0; i < 256; i++)
        ck_assert(x[i] == read_from[i] && w[i] == 2 * x[i] && y[i] == 2 * x[i] + 1);
    ck_assert_float_nan(((float *)result.buffers[2])[0]);   // poison
    ck_assert_int_eq(result.blocks_run, 8);
    runtime_gpu.release(&result);
}
END_TEST

START_TEST(one_launch_runs_alone)
{
    RuntimeResult result = run_code("adds", 0);
    ck_assert_msg(result.status == RUNTIME_DONE, "%s", result.reason);
    ck_assert_float_eq(((float *)result.buffers[2])[128 + 5], 2 * read_from[5]);
    ck_assert_float_nan(((float *)result.buffers[1])[5]);
    ck_assert_int_eq(result.blocks_run, 4);
    runtime_gpu.release(&result);
}
END_TEST

static const struct { const char *cubin; RuntimeStatus status; const char *what; } WRONG[] = {
    {"crashes", RUNTIME_WRONG, "ends the process that runs it (Killed)"},
    {"hangs", RUNTIME_TIMEOUT, "does not end within 1 s"},
    {"writes beside", RUNTIME_WRONG, "behind the end of y"},
    {"writes to x", RUNTIME_WRONG, "writes to x, which is only read"},
    {"of another GPU", RUNTIME_WRONG, "loading it fails: NO_BINARY_FOR_GPU"},
};

START_TEST(what_goes_wrong_is_a_result)
{
    RuntimeResult result = run_code(WRONG[_i].cubin, -1);
    ck_assert_int_eq(result.status, WRONG[_i].status);
    ck_assert_msg(strstr(result.reason, WRONG[_i].what), "'%s' lacks '%s'", result.reason, WRONG[_i].what);
    runtime_gpu.release(&result);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("runtime_gpu");
    tcase_add_test(tests, it_makes_the_launches_of_the_record);
    tcase_add_test(tests, one_launch_runs_alone);
    tcase_add_loop_test(tests, what_goes_wrong_is_a_result, 0, sizeof WRONG / sizeof *WRONG);
    return run_tests(tests);
}
