// Programs with weights on the CPU interpreter: NAME_prepare once, then calls, of which each finds only what that left.
#include "interp_test.h"

enum { COUNT = 64, BYTES = 4 * COUNT };

/* What stands in place of the right bodies; NULL: those. */
typedef struct Program {
    const char *prepare, *call;
    bool checked;
} Program;

#define LAUNCH(kernel) "return cudaLaunchKernel(kernel_t::" kernel ", dim3(1), dim3(64), args, 0, (cudaStream_t)stream);"
#define PREPARE "void *args[] = {&weights, &prepared};\n    " LAUNCH("t_k0")
#define CALL "void *args[] = {&x, &prepared, &y};\n    " LAUNCH("t_k1")

/* prepared = 2 weights, y = x + prepared. */
static const char *text_of(const Program *program)
{
    StrBuf out = strbuf_new(arena);
    char *prelude = realpath("templates/prelude.cuh", NULL);
    ck_assert_msg(prelude, "the tests run in the folder of the project");
    strbuf_printf(&out, "#include \"%s\"\nnamespace kernel_t {\nusing namespace rollerc;\n", prelude);
    free(prelude);
    strbuf_puts(&out, "extern \"C\" __global__ void t_k0(const float *w, float *p) { p[threadIdx.x] = 2 * w[threadIdx.x]; }\n"
                      "extern \"C\" __global__ void t_k1(const float *x, const float *p, float *y)\n"
                      "{ y[threadIdx.x] = x[threadIdx.x] + p[threadIdx.x]; }\n}\n"
                      "static const void *kept;\nstatic int calls;\n");
    strbuf_printf(&out, "extern \"C\" int t_prepare(const void *weights, void *prepared, void *workspace, void *stream)\n{\n    %s\n}\n",
                  program->prepare ? program->prepare : PREPARE);
    strbuf_printf(&out,
                  "extern \"C\" int t_launch(const void *x, const void *prepared, void *y, void *workspace, void *stream)\n"
                  "{\n    %s\n}\n",
                  program->call ? program->call : CALL);
    return out.text;
}

static void fill_before(void *context, int tensor, int64_t offset, int64_t count, void *bytes)
{
    ck_assert(context == NULL && tensor == 0 && offset == 0);
    memset(bytes, 0, (size_t)count);
}

/* Buffers: x, the weight's, y; workspace, prepared, weights. */
static RuntimeResult run_program(Program program)
{
    enum { ARGUMENTS = 3 };
    static LaunchArg made[] = {{.buffer = ARGUMENTS + BUFFER_WEIGHTS}, {.buffer = ARGUMENTS + BUFFER_PREPARED, .written = true}},
                     called[] = {{.buffer = 0}, {.buffer = ARGUMENTS + BUFFER_PREPARED}, {.buffer = 2, .written = true}};
    static const Launch launches[] = {
        {.entry = "t_k0", .grid = {1, 1, 1}, .block = {64, 1, 1}, .cluster = {1, 1, 1}, .args = made, .arg_count = 2},
        {.entry = "t_k1", .grid = {1, 1, 1}, .block = {64, 1, 1}, .cluster = {1, 1, 1}, .args = called, .arg_count = 3},
    };
    const char *text = text_of(&program), *reason = NULL;
    RuntimeSource source = {
        .name = "t", .text = text, .length = strlen(text), .arg_count = ARGUMENTS, .weight_first = 1, .weight_count = 1,
        .launches = launches, .launch_count = 2, .prepare_count = 1, .limits = test_limits(32),
        .builds = program.checked ? RUNTIME_CHECKED : RUNTIME_PLAIN,
    };
    RuntimeTensor tensors[] = {
        {.name = "x", .buffer = 0, .bytes = BYTES},
        {.name = "y", .buffer = 2, .bytes = BYTES, .written = true},
        {.name = "w", .buffer = ARGUMENTS + BUFFER_WEIGHTS, .bytes = BYTES},
        {.name = "prepared", .buffer = ARGUMENTS + BUFFER_PREPARED, .bytes = BYTES, .written = true},
        {.name = "workspace", .buffer = ARGUMENTS + BUFFER_WORKSPACE, .bytes = BYTES, .written = true},
    };
    RuntimeJob job = {
        .buffer_bytes = (int64_t[]){BYTES, 0, BYTES, BYTES, BYTES, BYTES}, .tensors = tensors, .tensor_count = 5,
        .fill = fill, .fill_before = fill_before, .poison = 0xff, .only_launch = -1, .max_blocks = INT64_MAX,
        .checked = program.checked, .seconds = 2,
    };
    RuntimeModule *module;
    float_input();
    if (runtime_interp.load(arena, &source, &module, &reason) != RUNTIME_DONE)
        ck_abort_msg("%s", reason);
    return runtime_interp.run(arena, module, &job);
}

static void expect_wrong(Program program, const char *what)
{
    RuntimeResult result = run_program(program);
    ck_assert_int_eq(result.status, RUNTIME_WRONG);
    ck_assert_msg(strstr(result.reason, what), "'%s' lacks '%s'", result.reason, what);
    runtime_interp.release(&result);
}

START_TEST(the_second_call_is_looked_at)
{
    RuntimeResult result = run_program((Program){.checked = _i});
    ck_assert_msg(result.status == RUNTIME_DONE, "%s", result.reason);
    const float *x = (const float *)input, *y = result.buffers[2];
    for (int i = 0; i < COUNT; i++)
        ck_assert_float_eq(y[i], 3 * x[i]);   // weights hold what x does
    ck_assert_int_eq(result.blocks_total, 1);
    runtime_interp.release(&result);
}
END_TEST

START_TEST(what_was_not_prepared_is_not_there)
{
    expect_wrong((Program){.prepare = "return 0;", .checked = true}, "makes 0 of the 1 launches");
    expect_wrong((Program){.prepare = "prepared = workspace; " PREPARE, .checked = true}, "another 'args'");
    expect_wrong((Program){.prepare = "void *args[] = {&weights, &prepared};\n    return cudaLaunchKernel(kernel_t::t_k0, dim3(1), "
                                      "dim3(32), args, 0, (cudaStream_t)stream);", .checked = true}, "another 'block'");
}
END_TEST

START_TEST(a_launch_that_reads_raw_weights_is_found)
{
    expect_wrong((Program){.prepare = "kept = weights; " PREPARE, .checked = _i,
                           .call = "void *args[] = {&x, &prepared, &y}; const float *w = (const float *)kept; "
                                   "((float *)y)[0] = w[0]; " LAUNCH("t_k1")},
                 "of the weights, where it may not");
}
END_TEST

START_TEST(a_launch_that_writes_to_what_was_prepared_is_found)
{
    expect_wrong((Program){.call = "*(float *)prepared = 1; " CALL, .checked = _i}, "what was prepared, where it may not");
}
END_TEST

START_TEST(the_workspace_is_not_passed_on)
{
    RuntimeResult result = run_program((Program){.prepare = "*(float *)workspace = 7; " PREPARE,
                                                 .call = "calls++; *(float *)y = *(float *)workspace; " CALL});
    ck_assert_msg(result.status == RUNTIME_DONE, "%s", result.reason);
    runtime_interp.release(&result);
    expect_wrong((Program){.prepare = "*(float *)workspace = 7; " PREPARE,
                           .call = "if (*(float *)workspace != 7) return 1; " CALL}, "returns error 1");
}
END_TEST

START_TEST(a_program_that_can_be_called_once_is_found)
{
    expect_wrong((Program){.call = "if (calls++) return 0; " CALL, .checked = _i}, "makes 1 of the 2 launches");
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("prepared");
    tcase_add_loop_test(tests, the_second_call_is_looked_at, 0, 2);
    tcase_add_test(tests, what_was_not_prepared_is_not_there);
    tcase_add_loop_test(tests, a_launch_that_reads_raw_weights_is_found, 0, 2);
    tcase_add_loop_test(tests, a_launch_that_writes_to_what_was_prepared_is_found, 0, 2);
    tcase_add_test(tests, the_workspace_is_not_passed_on);
    tcase_add_loop_test(tests, a_program_that_can_be_called_once_is_found, 0, 2);
    return run_tests(tests);
}
