// Blocks that run together: clusters with each other's shared memory, and cooperative grids.
#include "interp_test.h"

/* 8 blocks of 64 threads; a block's 64 elements of x in `part`. */
#define PART "SHARED_AT(0, float, part, [64]); const int t = threadIdx.x, b = blockIdx.x, i = b * 64 + t;\n"

static const Case CLUSTERS = {
    .in = "float", .out = "float", .in_bytes = 512 * 4, .out_bytes = 512 * 4, .grid = "8", .block = "64",
    .shared = 256, .cluster = "4", .checked = true,
};

static const Case COOPERATIVE = {
    .in = "float", .out = "float", .in_bytes = 512 * 4, .out_bytes = 512 * 4, .grid = "8", .block = "64",
    .shared = 256, .cooperative = true, .checked = true,
};

static const RuntimeSchedule SCHEDULES[] = {RUNTIME_LOWEST_FIRST, RUNTIME_HIGHEST_FIRST, RUNTIME_PRIORITY};
enum { SCHEDULE_COUNT = 3 };

/* All schedules, plain and checked; the first `count` elements of y must be those of `expected`. */
static void run_all_ways(Case c, const float *expected, int count)
{
    const RuntimeModule *module = load_case(c);
    for (int i = 0; i < 2 * SCHEDULE_COUNT; i++) {
        c.schedule = SCHEDULES[i % SCHEDULE_COUNT];
        c.checked = i < SCHEDULE_COUNT;
        RuntimeResult result = run_loaded(module, c);
        ck_assert_msg(result.status == RUNTIME_DONE, "%s", result.reason);
        for (int j = 0; j < count; j++)
            ck_assert_float_eq(((float *)result.buffers[1])[j], expected[j]);
        runtime_interp.release(&result);
    }
}

static float expected[512];

/* y[i] = x[i with the block's place in its cluster turned round] */
START_TEST(blocks_of_a_cluster_read_each_others_shared_memory)
{
    const float *x = float_input();
    Case c = CLUSTERS;
    c.kernel = PART "part[t] = load(x, i); cluster_sync();\n"
                    "store(y, i, cluster_map(part, 3 - cluster_rank())[t]); cluster_leave();";
    for (int i = 0; i < 512; i++)
        expected[i] = x[(i / 64 / 4 * 4 + 3 - i / 64 % 4) * 64 + i % 64];
    run_all_ways(c, expected, 512);
}
END_TEST

/* Block r of a cluster writes its rank into the next one, which adds its own size. */
START_TEST(blocks_of_a_cluster_write_each_others_shared_memory)
{
    Case c = CLUSTERS;
    c.kernel = PART "cluster_sync(); cluster_map(part, (cluster_rank() + 1) % cluster_size())[t] = cluster_rank();\n"
                    "cluster_sync(); store(y, i, part[t] + 10 * cluster_size());";
    for (int i = 0; i < 512; i++)
        expected[i] = (float)((i / 64 + 3) % 4 + 40);
    run_all_ways(c, expected, 512);
}
END_TEST

/* Between the halves of the barrier each block goes on with its own shared memory. */
START_TEST(a_barrier_of_a_cluster_has_two_halves)
{
    const float *x = float_input();
    Case c = CLUSTERS;
    c.kernel = PART "part[t] = load(x, i); cluster_sync();\n"
                    "const float other = *cluster_map(&part[t], cluster_rank() ^ 1); cluster_arrive();\n"
                    "block_sync(); const float own = part[63 - t];\n"
                    "cluster_wait(); store(y, i, other - own);";
    for (int i = 0; i < 512; i++)
        expected[i] = x[i ^ 64] - x[i / 64 * 64 + 63 - i % 64];
    run_all_ways(c, expected, 512);
}
END_TEST

/* A cluster of 2 x 2 x 2 blocks in a grid of 4 x 2 x 2: ranks run along x first. */
START_TEST(ranks_of_a_cluster_run_along_x)
{
    Case c = CLUSTERS;
    c.grid = "4, 2, 2", c.cluster = "2, 2, 2", c.block = "1", c.out_bytes = 16 * 4;
    c.kernel = "store(y, blockIdx.x + 4 * blockIdx.y + 8 * blockIdx.z, cluster_rank());";
    for (int i = 0; i < 16; i++)
        expected[i] = (float)(i % 2 + i / 4 * 2);
    run_all_ways(c, expected, 16);
}
END_TEST

START_TEST(a_launch_without_clusters_has_clusters_of_one_block)
{
    const float *x = float_input();
    Case c = CLUSTERS;
    c.cluster = NULL;
    c.kernel = PART "part[t] = load(x, i); cluster_sync();\n"
                    "store(y, i, cluster_map(part, 0)[63 - t] + cluster_rank() + cluster_size());";
    expected[0] = x[63] + 1;
    run_all_ways(c, expected, 1);
}
END_TEST

/* Of 100,000 clusters some are run, each of them whole. */
START_TEST(a_large_grid_runs_on_some_clusters)
{
    float_input();
    Case c = CLUSTERS;
    c.grid = "400000", c.lazy = true, c.max_blocks = 16, c.out_bytes = 400000 * 4096LL;
    c.kernel = "SHARED_AT(0, float, part, [64]); part[threadIdx.x] = 1; cluster_sync();\n"
               "store(y, blockIdx.x * 1024LL + threadIdx.x, cluster_map(part, 0)[threadIdx.x]); cluster_sync();";
    RuntimeResult result = run_well(c);
    ck_assert_int_eq(result.blocks_total, 400000);
    ck_assert(result.blocks_run >= 8 && result.blocks_run <= 16 && result.blocks_run % 4 == 0);
    runtime_interp.release(&result);
}
END_TEST

/* y = the sum of x, found by every block from the others' sums in y's first elements. */
START_TEST(blocks_of_a_cooperative_grid_wait_for_each_other)
{
    for (int i = 0; i < 512; i++)
        ((float *)input)[i] = (float)i;
    Case c = COOPERATIVE;
    c.cluster = _i ? "2" : NULL;
    c.kernel = PART "part[t] = load(x, i); block_sync();\n"
                    "float sum = 0; for (int j = 0; j < 64; j++) sum += part[j];\n"
                    "if (t == 0) store(y, b, sum);\n"
                    "grid_sync(); float all = 0; for (int j = 0; j < 8; j++) all += load(y, j);\n"
                    "grid_sync(); store(y, i, all);";
    for (int i = 0; i < 512; i++)
        expected[i] = 511 * 512 / 2;
    run_all_ways(c, expected, 512);
}
END_TEST

/* 16 blocks of 512 threads, all of which wait: more stacks than have guard pages. */
START_TEST(a_cooperative_grid_may_have_thousands_of_threads)
{
    float_input();
    Case c = COOPERATIVE;
    c.grid = "16", c.block = "512", c.in_bytes = c.out_bytes = 16 * 512 * 4, c.shared = 0, c.checked = _i;
    c.kernel = "const int i = blockIdx.x * 512 + threadIdx.x; store(y, i, 1.0f); grid_sync();\n"
               "const float v = load(y, 8191 - i); grid_sync(); store(y, i, v + 1);";
    RuntimeResult result = run_well(c);
    for (int i = 0; i < 16 * 512; i++)
        ck_assert_float_eq(((float *)result.buffers[1])[i], 2);
    runtime_interp.release(&result);
}
END_TEST

// ---- programs that are wrong ----

#define BARRIER PART "unsigned long long *const bar = reinterpret_cast<unsigned long long *>(part);\n" \
                "if (t == 0) mbarrier_init(bar, 1);\n"
#define READ_OTHER "store(y, i, cluster_map(part, cluster_rank() ^ 1)[t]);\n"

/* Three images of five pixels of 32 channels, as a filter of three taps sees them in steps of two: from columns -1, 1 and 3 on. */
#define MAP "TensorMap map; describe_pixels<3>(&map, x, 2, {32, 5, 3}, {128, 640}, {-1}, {-1}, {2}, 8);\n"
#define PIXELS(column, image, tap) "if (t == 0) { " MAP "const int at[] = {0, " #column ", " #image "}, offset[] = {" #tap "};\n" \
                                   "copy_pixels(bar, &map, at, offset, bar); }"

/* Found by the checked build whatever the schedule. */
static const struct { const char *kernel, *what; } WRONG_CLUSTERS[] = {
    {PART "cluster_sync(); part[t] = load(x, i); block_sync();\n" READ_OTHER "cluster_sync();",   // no barrier between
     "reads "},
    {PART "cluster_sync(); cluster_map(part, 0)[t] = 1; cluster_sync();",
     "writes what another block of this launch writes"},
    {PART "part[t] = 1; cluster_sync();\n" READ_OTHER "block_sync(); part[t] = 2; cluster_sync();",
     "another block of this launch"},
    {PART "part[t] = load(x, i);\n" READ_OTHER "cluster_sync();",                       // it may not have started
     "before the first barrier of the cluster"},
    {PART "part[t] = load(x, i); cluster_sync();\n" READ_OTHER, "the shared memory of a block that "},
    {PART "part[t] = 1; cluster_sync();\n" READ_OTHER "cluster_arrive(); part[t] = 2; cluster_wait();",
     "another block of this launch"},
    {PART "part[t] = 1; cluster_sync(); cluster_arrive();\n" READ_OTHER "cluster_wait(); part[t] = 2; cluster_sync();",
     "another block of this launch"},
    {PART "part[t] = 1; cluster_sync(); cluster_arrive(); part[t] = 2; cluster_wait();\n" READ_OTHER "cluster_sync();",
     "reads what another block of this launch writes"},
    {PART "if (t < 32) part[t] = 1; cluster_sync();\n" READ_OTHER "cluster_sync();",
     "shared memory that nobody has written"},
    {PART "part[t] = 1; cluster_sync(); store(y, i, cluster_map(part, 0)[t + 64]); cluster_sync();", "reads"},
    {PART "part[t] = 1; cluster_sync(); cluster_map(part, 4)[t] = 1;", "that the cluster does not have"},
    {PART "cluster_sync(); cluster_map(y, 0)[t] = 1;", "not in the block's shared memory"},
    {PART "cluster_arrive(); cluster_arrive();", "twice without waiting"},
    {PART "cluster_wait();", "where it has not arrived"},
    {PART "cluster_arrive();", "without waiting there"},
    {PART "if (b % 4) cluster_sync();", "cluster"},
    {PART "if (t < 32) cluster_sync(); else block_sync();", "deadlock"},
    {PART "if (b % 4 == 1) { cluster_sync(); }\nelse\ncluster_sync();", "different barriers"},
    {PART "grid_sync();", "not cooperative"},
    {BARRIER "mbarrier_wait(bar, 1);", "reads "},   // by those who do not know that it is there
    {BARRIER "if (t > 1) part[t] = 0; block_sync(); mbarrier_wait(bar + 1, 1);", "no barrier was made there"},
    {BARRIER "block_sync(); mbarrier_wait(bar, 0);", "deadlock"},
    {BARRIER "block_sync(); mbarrier_wait(bar, 2);", "the parity of a barrier's phase is 0 or 1"},
    {BARRIER "block_sync(); if (t == 0) mbarrier_expect(bar, 64); mbarrier_wait(bar, 0);", "deadlock"},
    {BARRIER "block_sync(); if (t == 0) mbarrier_expect(bar, 64); if (t == 1) mbarrier_arrive(bar);",
     "more threads arrive at a barrier than it expects"},
    {BARRIER "block_sync(); if (t == 0) mbarrier_arrive_at(bar, cluster_rank() ^ 1); cluster_sync();",
     "before the first barrier of the cluster"},
    {BARRIER "cluster_sync(); if (t == 0) mbarrier_arrive_at(bar, cluster_rank() ^ 1);", "the shared memory of a block that "},
    {BARRIER "block_sync(); if (t == 0) { TensorMap none = {}; copy_box(bar, &none, 0, 0, 0, bar); }", "without a tensor map"},
    {BARRIER "if (t == 0) { TensorMap none = {}; copy_box_to(17, bar, &none, 0, 0, 0, bar); }", "blocks that the cluster does not have"},
    {BARRIER "block_sync(); if (t == 0) { TensorMap line; const unsigned long long size[] = {32}, none[] = {0}; const unsigned box[] = {32};\n"
             "describe_tensor(&line, x, 2, size, none, box); copy_box(bar, &line, 0, 0, 0, bar); }", "along other dimensions than its tensor map has"},
    {BARRIER PIXELS(5, 0, 0), "from beside the bounding box on"},     // columns -1 to 3
    {BARRIER PIXELS(0, 0, 0), "from beside the bounding box on"},     // in steps of two
    {BARRIER PIXELS(1, 0, 65536), "from farther away than the instruction can say"},
    {BARRIER PIXELS(1, 3, 0), "from beside all images on"},
    {BARRIER "if (t == 0) { " MAP "copy_box(bar, &map, 0, 0, 0, bar); }", "in another mode than its tensor map has"},
    {BARRIER "if (t == 0) mbarrier_init(bar, 2);", "a barrier is made where there is one"},
    {PART "if (t == 0) store(y, b / 4, 1.0f);", "writes what another block of this launch writes"},
    {PART "if (t == 0) store(y, b / 4, 1.0f + cluster_rank()); cluster_sync(); if (t == 0) store(y, b / 8, 1.0f);",
     "writes what another block of this launch writes"},
};

/* From the second column of the first image on, under the last tap: columns 3 and 5, then 1, 3 and 5 of each image. */
START_TEST(pixels_follow_from_image_to_image)
{
    static const int columns[] = {3, 5, 1, 3, 5, 1, 3, 5}, images[] = {0, 0, 1, 1, 1, 2, 2, 2};
    const float *x = float_input();
    Case c = CLUSTERS;
    c.cluster = NULL, c.grid = "1", c.shared = 2 * 1024 + 64, c.out_bytes = 256 * 4;
    c.kernel = "SHARED_AT(0, unsigned char, memory, [2 * 1024 + 64]); const int t = threadIdx.x;\n"
               "unsigned char *const tile = memory + (0u - shared_address(memory)) % 1024;\n"
               "unsigned long long *const full = reinterpret_cast<unsigned long long *>(tile + 1024);\n"
               "if (t == 0) mbarrier_init(full, 1); block_sync();\n"
               "if (t == 0) { mbarrier_expect(full, 1024);\n" MAP
               "const int at[] = {0, 1, 0}, offset[] = {2}; copy_pixels(tile, &map, at, offset, full); }\n"
               "mbarrier_wait(full, 0);\n"
               "for (int e = t * 4; e < t * 4 + 4; e++)\n"
               "store(y, e, reinterpret_cast<const float *>(tile)[e ^ e / 32 % 8 * 4]);";
    for (int e = 0; e < 256; e++)
        expected[e] = columns[e / 32] < 5 ? x[(images[e / 32] * 5 + columns[e / 32]) * 32 + e % 32] : 0;
    run_all_ways(c, expected, 256);
}
END_TEST

/* What the driver refuses: corners and steps beyond its limits, more than 1024 pixels, a box of no pixels. */
START_TEST(maps_of_pixels_have_limits)
{
    static const char *const maps[] = {
        "<3>(&map, x, 2, {32, 5, 3}, {128, 640}, {-1}, {-1}, {9}, 8)",
        "<3>(&map, x, 2, {32, 5, 3}, {128, 640}, {-1}, {-1}, {2}, 1025)",
        "<3>(&map, x, 2, {32, 5, 3}, {128, 640}, {0}, {-5}, {1}, 8)",
        "<3>(&map, x, 2, {32, 5, 3}, {128, 648}, {-1}, {-1}, {2}, 8)",
        "<4>(&map, x, 2, {32, 5, 3, 1}, {128, 640, 1920}, {-129, 0}, {-1, 0}, {1, 1}, 8)",
        "<4>(&map, x, 2, {32, 5, 3, 1}, {128, 640, 1920}, {0, 0}, {0, 128}, {1, 1}, 8)",
        "<5>(&map, x, 2, {32, 5, 3, 1, 1}, {128, 640, 1920, 1920}, {0, -17, 0}, {0, 0, 0}, {1, 1, 1}, 8)",
    };
    float_input();
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        Case c = CLUSTERS;
        c.cluster = NULL, c.grid = "1", c.block = "1", c.out_bytes = 4;
        expected[0] = 1;
        c.kernel = arena_printf(arena, "TensorMap map; store(y, 0, describe_pixels%s == cudaSuccess ? 0.0f : 1.0f);", maps[i]);
        run_all_ways(c, expected, 1);
    }
}
END_TEST

START_TEST(a_wrong_use_of_clusters_is_found)
{
    float_input();
    Case c = CLUSTERS;
    c.kernel = WRONG_CLUSTERS[_i].kernel;
    const RuntimeModule *module = load_case(c);
    for (int s = 0; s < SCHEDULE_COUNT; s++) {
        c.schedule = SCHEDULES[s];
        run_loaded_badly(module, c, WRONG_CLUSTERS[_i].what);
    }
}
END_TEST

static const struct { const char *kernel, *what; } WRONG_GRIDS[] = {
    {"if (threadIdx.x == 0) store(y, blockIdx.x, 1.0f); store(y, 100 + blockIdx.x, load(y, 7 - blockIdx.x));",
     "where nobody has written it"},
    {"if (threadIdx.x == 0) store(y, blockIdx.x, 1.0f);\ngrid_sync();\n"
     "if (threadIdx.x == 0) store(y, 7 - blockIdx.x, load(y, blockIdx.x));", "another block of this launch"},
    {"if (blockIdx.x < 7) grid_sync();", "the grid"},
    {"if (blockIdx.x < 7) grid_sync(); else cluster_sync();", "ended while others wait at the grid's barrier"},
    {"if (threadIdx.x < 7) grid_sync(); else block_sync();", "deadlock"},
    {"cluster_arrive(); grid_sync(); cluster_wait();", "between the two halves"},
};

START_TEST(a_wrong_use_of_cooperative_grids_is_found)
{
    float_input();
    Case c = COOPERATIVE;
    c.kernel = WRONG_GRIDS[_i].kernel;
    c.schedule = RUNTIME_PRIORITY;
    run_badly(c, WRONG_GRIDS[_i].what);
}
END_TEST

/* In a plain run, too: the shared memory of a block that has ended holds NaNs. */
START_TEST(values_show_a_block_that_ends_too_early)
{
    float_input();
    Case c = CLUSTERS;
    c.checked = false;
    c.kernel = PART "part[t] = load(x, i); cluster_sync();\n" READ_OTHER;
    RuntimeResult result = run_well(c);
    ck_assert_float_nan(((float *)result.buffers[1])[64]);
    runtime_interp.release(&result);
}
END_TEST

static const struct { const char *grid, *block, *cluster; bool cooperative, large; int shared; const char *what; }
LAUNCHES[] = {
    {"8", "64", "3", false, false, 0, "a grid of 8 x 1 x 1 blocks in clusters of 3 x 1 x 1"},
    {"16", "64", "16", false, false, 0, "a cluster of 16 blocks without"},
    {"32", "64", "32", false, true, 0, "a cluster of 32 x 1 x 1 blocks where 16 are allowed"},
    {"9", "1024", NULL, true, false, 0, "a cooperative launch of 9 blocks where 8 can be resident"},
    {"129", "32", NULL, true, false, 0, "a cooperative launch of 129 blocks where 128 can be resident"},
    {"17", "32", NULL, true, false, 48 << 10, "a cooperative launch of 17 blocks where 16 can be resident"},
};

START_TEST(a_team_beyond_the_limits_is_refused)
{
    Case c = CLUSTERS;
    c.kernel = "";
    c.grid = LAUNCHES[_i].grid, c.block = LAUNCHES[_i].block, c.cluster = LAUNCHES[_i].cluster;
    c.cooperative = LAUNCHES[_i].cooperative, c.large_clusters = LAUNCHES[_i].large, c.shared = LAUNCHES[_i].shared;
    run_badly(c, LAUNCHES[_i].what);
}
END_TEST

START_TEST(a_kernel_may_be_allowed_larger_clusters)
{
    Case c = CLUSTERS;
    c.grid = c.cluster = "16", c.large_clusters = true, c.out_bytes = 64;
    c.kernel = "if (threadIdx.x == 0) store(y, blockIdx.x, cluster_rank());";
    RuntimeResult result = run_well(c);
    ck_assert_float_eq(((float *)result.buffers[1])[15], 15);
    runtime_interp.release(&result);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("teams");
    tcase_add_test(tests, blocks_of_a_cluster_read_each_others_shared_memory);
    tcase_add_test(tests, blocks_of_a_cluster_write_each_others_shared_memory);
    tcase_add_test(tests, a_barrier_of_a_cluster_has_two_halves);
    tcase_add_test(tests, ranks_of_a_cluster_run_along_x);
    tcase_add_test(tests, a_launch_without_clusters_has_clusters_of_one_block);
    tcase_add_test(tests, a_large_grid_runs_on_some_clusters);
    tcase_add_test(tests, pixels_follow_from_image_to_image);
    tcase_add_test(tests, maps_of_pixels_have_limits);
    tcase_add_loop_test(tests, blocks_of_a_cooperative_grid_wait_for_each_other, 0, 2);
    tcase_add_loop_test(tests, a_cooperative_grid_may_have_thousands_of_threads, 0, 2);
    tcase_add_loop_test(tests, a_wrong_use_of_clusters_is_found, 0, sizeof WRONG_CLUSTERS / sizeof *WRONG_CLUSTERS);
    tcase_add_loop_test(tests, a_wrong_use_of_cooperative_grids_is_found, 0, sizeof WRONG_GRIDS / sizeof *WRONG_GRIDS);
    tcase_add_test(tests, values_show_a_block_that_ends_too_early);
    tcase_add_loop_test(tests, a_team_beyond_the_limits_is_refused, 0, sizeof LAUNCHES / sizeof *LAUNCHES);
    tcase_add_test(tests, a_kernel_may_be_allowed_larger_clusters);
    return run_tests(tests);
}
