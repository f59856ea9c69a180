// The record of a launch: as the first line of an emitted file says it, and beside what the launcher does.
#include "hal/launch.h"

#include "interp_test.h"

/* Everything that a launch can have: 4 blocks in clusters of 2; the table as 24 x 5 x 4 x 2 floats, of which boxes of
   32 x 2 x 2 x 2 come, and as four images of 2 x 5 pixels of 24 channels, of which 16 pixels come in im2col mode. */
static const char PROGRAM[] =
    "namespace kernel_t {\nusing namespace rollerc;\nextern \"C\" __global__ void\n"
    "t_k0(const float *, float *, void *, const __grid_constant__ TensorMap, const __grid_constant__ TensorMap) { wait_for_earlier(); }\n}\n"
    "extern \"C\" int t_launch(const void *in0, void *out0, void *workspace, void *stream)\n{\n"
    "    using namespace rollerc;\n"
    "    void *w2 = (char *)workspace + 256;\n"
    "    TensorMap m0, m1;\n"
    "    void *args[] = {&in0, &out0, &w2, &m0, &m1};\n"
    "    if (describe_tensor(&m0, in0, 11, {24, 5, 4, 2}, {96, 480, 1920}, {32, 2, 2, 2}) != cudaSuccess)\n"
    "        return 1;\n"
    "    if (describe_pixels<4>(&m1, in0, 2, {24, 5, 2, 4}, {96, 480, 960}, {-1, 0}, {-2, 0}, {2, 1}, 16) != cudaSuccess)\n"
    "        return 1;\n"
    "    return launch_with(kernel_t::t_k0, 4, 64, args, 1024, stream, true, 2);\n}\n";

static LaunchArg args[3];
static Launch launch;

static void setup_launch(void)
{
    args[0] = (LaunchArg){.buffer = 0, .bytes = 4096};
    args[1] = (LaunchArg){.buffer = 1, .bytes = 4096, .written = true};
    args[2] = (LaunchArg){.buffer = 2, .offset = 256, .bytes = 256, .written = true};
    launch = (Launch){
        .entry = "t_k0", .grid = {4, 1, 1}, .block = {64, 1, 1}, .cluster = {2, 1, 1}, .shared_bytes = 1024, .early = true,
        .args = args, .arg_count = 3, .map_count = 2,
        .maps = {{.arg = 0, .rank = 4, .element_bytes = 4, .sizes = {24, 5, 4, 2}, .strides = {96, 480, 1920},
                  .box = {32, 2, 2, 2}, .tf32 = true},
                 {.arg = 0, .rank = 4, .element_bytes = 4, .pixel_axes = 2, .sizes = {24, 5, 2, 4}, .strides = {96, 480, 960},
                  .box = {32, 16}, .lower = {-1, 0}, .upper = {-2, 0}, .steps = {2, 1}}},
    };
}

START_TEST(the_first_line_says_it)
{
    Json *list = json_array();
    launches_write(list, &launch, 1, 2);
    ck_assert_str_eq(json_text(arena, list, false),
                     "[{\"kernel\":\"t_k0\",\"grid\":[4,1,1],\"block\":[64,1,1],\"cluster\":[2,1,1],\"shared\":1024,"
                     "\"cooperative\":false,\"early\":true,\"after\":[],\"args\":[{\"arg\":0},{\"arg\":1},{\"workspace\":256},"
                     "{\"map\":0,\"bits\":32,\"tf32\":true,\"sizes\":[24,5,4,2],\"strides\":[96,480,1920],"
                     "\"box\":[32,2,2,2],\"swizzle\":128},"
                     "{\"map\":0,\"bits\":32,\"sizes\":[24,5,2,4],\"strides\":[96,480,960],\"channels\":32,\"pixels\":16,"
                     "\"lower\":[-1,0],\"upper\":[-2,0],\"steps\":[2,1],\"swizzle\":128}]}]");
    json_free(list);
}
END_TEST

START_TEST(it_says_nothing_of_what_a_launch_does_not_have)
{
    Json *list = json_array();
    launch.cluster[0] = 1, launch.early = false, launch.cooperative = true, launch.maps[0].tf32 = false;
    launch.maps[0].rank = launch.map_count = 1;
    launches_write(list, &launch, 1, 2);
    ck_assert_str_eq(json_text(arena, list, false),
                     "[{\"kernel\":\"t_k0\",\"grid\":[4,1,1],\"block\":[64,1,1],\"shared\":1024,\"cooperative\":true,"
                     "\"after\":[],\"args\":[{\"arg\":0},{\"arg\":1},{\"workspace\":256},"
                     "{\"map\":0,\"bits\":32,\"sizes\":[24],\"strides\":[],\"box\":[32],\"swizzle\":128}]}]");
    json_free(list);
}
END_TEST

/* The program beside so many launches of the record. */
static RuntimeResult run_beside(int count)
{
    char *prelude = realpath("templates/prelude.cuh", NULL);
    const char *text = arena_printf(arena, "#include \"%s\"\n%s", prelude, PROGRAM), *reason = NULL;
    free(prelude);
    const Launch launches[] = {launch, launch};
    const RuntimeSource source = {
        .name = "t", .text = text, .length = strlen(text), .arg_count = 2, .limits = test_limits(32),
        .launches = launches, .launch_count = count, .builds = RUNTIME_PLAIN,
    };
    RuntimeModule *module;
    if (runtime_interp.load(arena, &source, &module, &reason) != RUNTIME_DONE)
        ck_abort_msg("%s", reason);
    const RuntimeTensor tensors[] = {
        {.name = "x", .buffer = 0, .bytes = 4096},
        {.name = "y", .buffer = 1, .bytes = 4096, .written = true},
        {.name = "workspace", .buffer = 2, .bytes = 512, .written = true},
    };
    const RuntimeJob job = {
        .buffer_bytes = (int64_t[]){4096, 4096, 512}, .tensors = tensors, .tensor_count = 3, .fill = fill,
        .only_launch = -1, .max_blocks = INT64_MAX, .seconds = 2,
    };
    return runtime_interp.run(arena, module, &job);
}

static void check_beside(int count, const char *what)
{
    RuntimeResult result = run_beside(count);
    ck_assert_int_eq(result.status, what ? RUNTIME_WRONG : RUNTIME_DONE);
    if (what)
        ck_assert_msg(strstr(result.reason, what), "'%s' lacks '%s'", result.reason, what);
    runtime_interp.release(&result);
}

START_TEST(the_launcher_does_what_it_says) { check_beside(1, NULL); }
END_TEST

START_TEST(a_launch_more_or_less_is_found)
{
    check_beside(0, "the launcher makes more than the 0 launches of the file's first line");
    check_beside(2, "the launcher makes 1 of the 2 launches of the file's first line");
}
END_TEST

/* What one of them has otherwise; all are of 4 bytes. */
static const struct { int *place; const char *word; } OTHERS[] = {
    {(int *)&launch.grid[0], "grid"}, {(int *)&launch.grid[2], "grid"}, {&launch.block[1], "block"}, {&launch.cluster[0], "cluster"},
    {(int *)&launch.shared_bytes, "shared"}, {(int *)&args[2].offset, "args"}, {&args[1].buffer, "args"}, {&launch.maps[0].arg, "args"}, {(int *)&launch.maps[0].start, "args"},
    {&launch.maps[0].rank, "args"}, {&launch.maps[0].element_bytes, "args"}, {(int *)&launch.maps[0].sizes[3], "args"},
    {(int *)&launch.maps[0].strides[2], "args"}, {&launch.maps[0].box[1], "args"},
    {&launch.maps[0].pixel_axes, "args"}, {&launch.maps[1].box[1], "args"}, {&launch.maps[1].lower[0], "args"}, {&launch.maps[1].upper[1], "args"},
    {&launch.maps[1].steps[1], "args"},
};

START_TEST(what_the_launcher_does_otherwise_is_found)
{
    ++*OTHERS[_i].place;
    check_beside(1, OTHERS[_i].word);
}
END_TEST

START_TEST(so_is_a_word_of_two_values)
{
    launch.early = false;
    check_beside(1, "early");
    launch.early = launch.cooperative = true;
    check_beside(1, "cooperative");
    launch.cooperative = launch.maps[0].tf32 = false;
    check_beside(1, "args");
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("launch");
    tcase_add_checked_fixture(tests, setup_launch, NULL);
    tcase_add_test(tests, the_first_line_says_it);
    tcase_add_test(tests, it_says_nothing_of_what_a_launch_does_not_have);
    tcase_add_test(tests, the_launcher_does_what_it_says);
    tcase_add_test(tests, a_launch_more_or_less_is_found);
    tcase_add_loop_test(tests, what_the_launcher_does_otherwise_is_found, 0, sizeof OTHERS / sizeof *OTHERS);
    tcase_add_test(tests, so_is_a_word_of_two_values);
    return run_tests(tests);
}
