// Every intrinsic of the prelude under the interpreter is what tests/conformance says; gpu_conformance.cu asks a GPU.
#include "interp_test.h"

#include "../../conformance/expected.h"
#include "../../conformance/teams.h"

static void fill_table(void *context, int tensor, int64_t offset, int64_t count, void *bytes)
{
    (void)context, (void)tensor;
    for (int64_t i = 0; i < count; i++)
        ((unsigned char *)bytes)[i] = byte_of((int)(offset + i));
}

static void fill_team_values(void *context, int tensor, int64_t offset, int64_t count, void *bytes)
{
    (void)context, (void)tensor;
    int values[TEAM_SIZE];
    for (int i = 0; i < TEAM_SIZE; i++)
        values[i] = team_value(i);
    memcpy(bytes, (char *)values + offset, (size_t)count);
}

/* A file of tests/conformance and its launcher NAME_launch(table, out, …). */
typedef struct Conformance {
    const char *name, *file;
    int warp;
    int64_t table_bytes, out_bytes;
    RuntimeFill *fill;
    unsigned builds;
} Conformance;

static RuntimeModule *load_file(const Conformance *c)
{
    char *path = realpath(c->file, NULL);
    ck_assert_msg(path, "the tests run in the folder of the project");
    const char *text = arena_printf(arena, "#include \"%s\"\n", path);
    free(path);
    const char *reason = NULL;
    RuntimeSource source = {
        .name = c->name, .text = text, .length = strlen(text), .arg_count = 2, .limits = test_limits(c->warp),
        .builds = c->builds,
    };
    RuntimeModule *module;
    ck_assert_msg(runtime_interp.load(arena, &source, &module, &reason) == RUNTIME_DONE, "%s", reason);
    return module;
}

static RuntimeResult run_file(const Conformance *c, const RuntimeModule *module, RuntimeSchedule schedule, bool checked)
{
    RuntimeTensor tensors[] = {
        {.name = "table", .buffer = 0, .bytes = c->table_bytes},
        {.name = "out", .buffer = 1, .bytes = c->out_bytes, .written = true},
    };
    RuntimeJob job = {
        .buffer_bytes = (int64_t[]){c->table_bytes, c->out_bytes, 0}, .tensors = tensors, .tensor_count = 2,
        .fill = c->fill, .poison = 0xff, .only_launch = -1, .max_blocks = INT64_MAX, .schedule = schedule,
        .checked = checked, .seconds = 20,
    };
    RuntimeResult result = runtime_interp.run(arena, module, &job);
    ck_assert_msg(result.status == RUNTIME_DONE, "%s", result.reason);
    return result;
}

static const int WARPS[] = {32, 64};

START_TEST(conformance)
{
    warp = WARPS[_i];
    const Conformance c = {
        "conformance", "tests/conformance/kernel.cu", warp, TABLE_BYTES, output_count() * 8, fill_table, RUNTIME_PLAIN};
    RuntimeResult result = run_file(&c, load_file(&c), RUNTIME_LOWEST_FIRST, false);
    ck_assert_int_eq(failed_checks(result.buffers[1]), 0);
    runtime_interp.release(&result);
}
END_TEST

START_TEST(teams)
{
    const Conformance c = {
        "teams", "tests/conformance/teams.cu", 32, TEAM_SIZE * 4, TEAM_OUTPUTS * 4, fill_team_values,
        RUNTIME_PLAIN | RUNTIME_CHECKED};
    const RuntimeModule *module = load_file(&c);
    for (int i = 0; i < 6; i++) {
        RuntimeResult result = run_file(&c, module, (RuntimeSchedule)(i / 2), i % 2);
        for (int n = 0; n < TEAM_OUTPUTS; n++)
            ck_assert_int_eq(((int *)result.buffers[1])[n], team_output(n));
        runtime_interp.release(&result);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("conformance");
    tcase_add_loop_test(tests, conformance, 0, 2);
    tcase_add_test(tests, teams);
    return run_tests(tests);
}
