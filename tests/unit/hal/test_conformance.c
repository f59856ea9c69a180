// Every intrinsic of the prelude under the interpreter is what tests/conformance says; gpu_conformance.cu asks a GPU.
#include "interp_test.h"

#include "../../conformance/expected.h"

static void fill_table(void *context, int tensor, int64_t offset, int64_t count, void *bytes)
{
    (void)context, (void)tensor;
    for (int64_t i = 0; i < count; i++)
        ((unsigned char *)bytes)[i] = byte_of((int)(offset + i));
}

static const int WARPS[] = {32, 64};

START_TEST(conformance)
{
    warp = WARPS[_i];
    char *path = realpath("tests/conformance/kernel.cu", NULL);
    ck_assert_msg(path, "the tests run in the folder of the project");
    const char *text = arena_printf(arena, "#include \"%s\"\n", path);
    free(path);
    const char *reason = NULL;
    RuntimeSource source = {
        .name = "conformance", .text = text, .length = strlen(text), .arg_count = 2,
        .limits = {warp, 1024, 48 << 10, 64 << 10},
    };
    RuntimeModule *module;
    ck_assert_msg(runtime_interp.load(arena, &source, &module, &reason) == RUNTIME_DONE, "%s", reason);
    const int64_t out_bytes = output_count() * 8;
    RuntimeTensor tensors[] = {
        {.name = "table", .buffer = 0, .bytes = TABLE_BYTES},
        {.name = "out", .buffer = 1, .bytes = out_bytes, .written = true},
    };
    RuntimeJob job = {
        .buffer_bytes = (int64_t[]){TABLE_BYTES, out_bytes, 0}, .tensors = tensors, .tensor_count = 2,
        .fill = fill_table, .poison = 0xff, .only_launch = -1, .max_blocks = INT64_MAX, .seconds = 20,
    };
    RuntimeResult result = runtime_interp.run(arena, module, &job);
    ck_assert_msg(result.status == RUNTIME_DONE, "%s", result.reason);
    ck_assert_int_eq(failed_checks(result.buffers[1]), 0);
    runtime_interp.release(&result);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("conformance");
    tcase_add_loop_test(tests, conformance, 0, 2);
    return run_tests(tests);
}
