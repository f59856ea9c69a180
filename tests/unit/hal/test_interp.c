// The CPU interpreter: programs that are right, and wrong ones that any run finds out.
#include <math.h>

#include "interp_test.h"

// ---- programs that are right ----

START_TEST(elementwise)
{
    const float *x = float_input();
    Case c = FLOATS;
    c.kernel = INDEX "if (i < 1000) store(y, i, op_add(load(x, i), 1.0f));";
    c.lazy = c.checked = _i;
    RuntimeResult result = run_well(c);
    const float *y = result.buffers[1];
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(y[i], x[i] + 1);
    ck_assert_int_eq(result.blocks_run, 4);
    runtime_interp.release(&result);
}
END_TEST

START_TEST(transpose_through_shared_memory)
{
    const float *x = float_input();
    RuntimeResult result = run_well((Case){
        .in = "float", .out = "float", .in_bytes = 64 * 64 * 4, .out_bytes = 64 * 64 * 4, .grid = "2, 2",
        .block = "32, 8", .shared = 32 * 33 * 4, .schedule = (RuntimeSchedule)_i,
        .kernel = "SHARED_AT(0, float, tile, [32][33]);\n"
                  "const int row = blockIdx.y * 32, column = blockIdx.x * 32, t = threadIdx.x;\n"
                  "for (int r = threadIdx.y; r < 32; r += 8) tile[r][t] = load(x, (row + r) * 64 + column + t);\n"
                  "block_sync();\n"
                  "for (int r = threadIdx.y; r < 32; r += 8) store(y, (column + r) * 64 + row + t, tile[t][r]);",
    });
    const float *y = result.buffers[1];
    for (int i = 0; i < 64; i++)
        for (int j = 0; j < 64; j++)
            ck_assert_float_eq(y[i * 64 + j], x[j * 64 + i]);
    runtime_interp.release(&result);
}
END_TEST

START_TEST(warp_reduction)
{
    const float *x = float_input();
    RuntimeResult result = run_well((Case){
        .in = "float", .out = "float", .in_bytes = 256 * 4, .out_bytes = 256 * 4, .grid = "1", .block = "256",
        .warp_size = _i, .kernel = "store(y, threadIdx.x, warp_reduce<Sum>(load(x, threadIdx.x)));",
    });
    const float *y = result.buffers[1];
    for (int i = 0; i < 256; i++) {
        float sum = 0;
        for (int j = 0; j < _i; j++)
            sum += x[i / _i * _i + j];
        ck_assert_float_eq(y[i], sum);
    }
    runtime_interp.release(&result);
}
END_TEST

/* 75 elements are two words and 11 bits: the tail of the third word is zero. */
START_TEST(bits_are_packed_into_words)
{
    static const int group[] = {1, 2, 4, 8, 16, 32};
    const float *x = float_input();
    int n = group[_i % 6], first = 1990;
    const char *kernel = arena_printf(arena,
        "const int i = threadIdx.x * %d; bool bits[%d];\n"
        "for (int j = 0; j < %d; j++) bits[j] = i + j < 75 && load(x, %d + i + j) > 0;\n"
        "store_bits<%d>(y, i, bits, i < 75);", n, n, n, first, n);
    RuntimeResult result = run_well((Case){
        .in = "float", .out = "unsigned", .in_bytes = 4000 * 4, .out_bytes = 12, .grid = "1", .block = "128",
        .warp_size = _i < 6 ? 32 : 64, .kernel = kernel,
    });
    const uint32_t *y = result.buffers[1];
    for (int i = 0; i < 96; i++)
        ck_assert_int_eq(y[i / 32] >> i % 32 & 1, i < 75 && x[first + i] > 0);
    runtime_interp.release(&result);
}
END_TEST

START_TEST(vectors_and_asynchronous_copies)
{
    const float *x = float_input();
    RuntimeResult result = run_well((Case){
        .in = "float", .out = "float", .in_bytes = 1024 * 4, .out_bytes = 1024 * 4, .grid = "1", .block = "128",
        .shared = 4096,
        .kernel = "SHARED_AT(0, float, As, [1024]); const int i = threadIdx.x * 8;\n"
                  "async_copy16(&As[i], x + i); async_copy16(&As[i + 4], x + i + 4);\n"
                  "async_commit(); async_wait<0>(); block_sync();\n"
                  "float v[8]; load_vector<8>(&As[0], i, v); store_vector<8>(y, i, v);",
    });
    const float *y = result.buffers[1];
    for (int i = 0; i < 1024; i++)
        ck_assert_float_eq(y[i], x[i]);
    runtime_interp.release(&result);
}
END_TEST

/* Row 0 of a is 1 and 15 times 2^-12, column 0 of b is 1 and 15 times 2^-13 or 2^-12. Beside the 1 seven, then eight, products
   of 2^-25 are cut off; of 2^-24 they are kept, but of their sum 1 + 7 * 2^-24 the last bit is, which a float has no room for. */
START_TEST(tensor_cores_cut_off)
{
    static const char *const small[] = {"0x0800u", "0x0c00u"};
    static const float expected[] = {1, 1 + 7 * 0x1p-23f};
    RuntimeResult result = run_well((Case){
        .in = "float", .out = "float", .in_bytes = 4, .out_bytes = 32 * 4, .grid = "1", .block = "32",
        .kernel = arena_printf(arena,
            "const int lane = threadIdx.x; const unsigned s = %s * 0x10001u;\n"
            "unsigned a[4] = {0x0c000c00u, 0, 0x0c000c00u, 0}, b[2] = {s, s}; float c[4] = {};\n"
            "if (lane == 0) a[0] = 0x0c003c00u;\n"
            "if (lane %% 4 == 0) b[0] = (s & 0xffff0000u) | 0x3c00u;\n"
            "multiply_tiles(f16(), a, b[0], b[1], c); store(y, lane, c[0]);", small[_i]),
    });
    const float *y = result.buffers[1];
    ck_assert_float_eq(y[0], expected[_i]);
    runtime_interp.release(&result);
}
END_TEST

/* 200,000 products of 1 and 1 + 2^-10. One chain of them loses more than 2^-13 of the sum, chains of 8192 less than 2^-15. */
START_TEST(chains_of_products_lose_little)
{
    RuntimeResult result = run_well((Case){
        .in = "float", .out = "float", .in_bytes = 4, .out_bytes = 32 * 4, .grid = "1", .block = "32",
        .kernel = arena_printf(arena,
            "const unsigned one = 0x3c003c00u, a[4] = {one, one, one, one}, b = 0x3c013c01u;\n"
            "float c[4] = {}; Chains<%s, 4> chains;\n"
            "for (int i = 0; i < 12500; i++) {\n"
            "    multiply_tiles(f16(), a, b, b, c);\n"
            "    if (i %% 512 == 511) chains.end(c);\n"
            "}\n"
            "chains.add_to(c); store(y, threadIdx.x, c[0]);", _i ? "true" : "false"),
    });
    const float *y = result.buffers[1];
    double exact = 200000 * (1 + 0x1p-10), lost = (exact - (double)y[0]) / exact;
    ck_assert(_i ? lost < 0x1p-15 : lost > 0x1p-13);
    runtime_interp.release(&result);
}
END_TEST

START_TEST(a_large_grid_runs_on_some_blocks)
{
    float_input();
    Case c = FLOATS;
    c.kernel = "if (threadIdx.x == 0) store(y, blockIdx.x * 100000LL, 1.0f);";
    c.grid = "1000000", c.block = "32", c.lazy = c.checked = true, c.max_blocks = 20;
    c.out_bytes = 400000LL * 1000000;   // 400 GB, and 20 TB for the checks, of virtual memory
    RuntimeResult result = run_well(c);
    ck_assert_int_eq(result.blocks_total, 1000000);
    ck_assert(result.blocks_run > 10 && result.blocks_run <= 20);
    ck_assert_int_eq(result.page_count, result.blocks_run);
    for (int64_t i = 0; i < result.page_count; i++)
        ck_assert_int_eq(result.pages[i].buffer, 1);
    runtime_interp.release(&result);
}
END_TEST

/* 40,000 places far apart: more than a process may have mappings, as the columns of a large matrix are. */
START_TEST(a_lazy_run_may_touch_many_places)
{
    float_input();
    Case c = FLOATS;
    c.kernel = INDEX "if (i < 40000) store(y, i * 2048, float(i));";
    c.grid = "157", c.lazy = c.checked = true, c.out_bytes = 40000LL * 8192;
    c.seconds = 30;   // each place is a fault, which may cost 100 us
    RuntimeResult result = run_well(c);
    ck_assert_int_eq(result.page_count, 40000);
    ck_assert_float_eq(((float *)result.buffers[1])[39999 * 2048], 39999);
    runtime_interp.release(&result);
}
END_TEST

// ---- conversions: the twin's against the compiler's ----

START_TEST(every_f16_pattern_widens)
{
    for (int i = 0; i < 65536; i++)
        ((uint16_t *)input)[i] = (uint16_t)i;
    RuntimeResult result = run_well((Case){
        .in = _i ? "bf16" : "f16", .out = "float", .in_bytes = 65536 * 2, .out_bytes = 65536 * 4, .grid = "256",
        .block = "256", .kernel = INDEX "store(y, i, load(x, i));",
    });
    const float *y = result.buffers[1];
    for (int i = 0; i < 65536; i++) {
        _Float16 half;
        memcpy(&half, &(uint16_t){(uint16_t)i}, 2);
        float wide = (float)half;
        if (_i)
            memcpy(&wide, &(uint32_t){(uint32_t)i << 16}, 4);
        ck_assert_msg(isnan(wide) ? isnan(y[i]) : memcmp(&wide, &y[i], 4) == 0, "pattern %04x", (unsigned)i);
    }
    runtime_interp.release(&result);
}
END_TEST

/* Every f16 value, the middle between it and the next, and the doubles just below and above that middle. */
START_TEST(doubles_narrow_to_the_nearest_f16)
{
    double *x = (double *)input;
    int count = 0;
    for (int i = 0; i < 0x7c00; i++) {
        _Float16 low, high;
        memcpy(&low, &(uint16_t){(uint16_t)i}, 2);
        memcpy(&high, &(uint16_t){(uint16_t)(i + 1)}, 2);
        double middle = i == 0x7bff ? 65520 : ((double)low + (double)high) / 2;
        x[count++] = (double)low;
        x[count++] = middle;
        x[count++] = nextafter(middle, 0);
        x[count++] = -nextafter(middle, INFINITY);
    }
    RuntimeResult result = run_well((Case){
        .in = "double", .out = "f16", .in_bytes = count * 8, .out_bytes = count * 2, .grid = "496", .block = "256",
        .kernel = INDEX "store(y, i, round_to<f16>(load(x, i)));",
    });
    for (int i = 0; i < count; i++) {
        _Float16 half = (_Float16)x[i];
        ck_assert_msg(memcmp(&half, (uint16_t *)result.buffers[1] + i, 2) == 0, "%a", x[i]);
    }
    runtime_interp.release(&result);
}
END_TEST

START_TEST(floats_narrow_to_the_nearest_f16)
{
    float *x = (float *)input;
    for (int i = 0; i < 1 << 18; i++)   // all exponents, and fractions near the middle between two f16
        memcpy(&x[i], &(uint32_t){(uint32_t)i << 14 | ((uint32_t)i * 2654435761u >> 19 & 3)}, 4);
    RuntimeResult result = run_well((Case){
        .in = "float", .out = "f16", .in_bytes = 1 << 20, .out_bytes = 1 << 19, .grid = "1024", .block = "256",
        .kernel = INDEX "store(y, i, load(x, i));",
    });
    for (int i = 0; i < 1 << 18; i++) {
        _Float16 half = (_Float16)x[i], seen;
        memcpy(&seen, (uint16_t *)result.buffers[1] + i, 2);
        ck_assert_msg(isnan(x[i]) ? seen != seen : memcmp(&half, &seen, 2) == 0, "%a", (double)x[i]);
    }
    runtime_interp.release(&result);
}
END_TEST

/* Worked by hand: what integers do at their ends, and NaN in max. */
START_TEST(scalar_operations_at_the_edges)
{
    RuntimeResult result = run_well((Case){
        .in = "int", .out = "int", .in_bytes = 4, .out_bytes = 56, .grid = "1", .block = "1",
        .kernel = "const int low = -2147483647 - 1; const float nan = nan_value<float>();\n"
                  "y[0] = op_div(low, -1); y[1] = op_div(7, 0); y[2] = op_add(2147483647, 1);\n"
                  "y[3] = cast_int<int>(3e9f); y[4] = cast_int<int>(nan); y[5] = cast_int<unsigned char>(-1.5);\n"
                  "y[6] = cast_int<signed char>(-200.0f); y[7] = op_max(1.0f, nan) != op_max(nan, 1.0f);\n"
                  "y[8] = op_relu(nan) != 0; y[9] = op_min(nan, -infinity<float>()) != nan;\n"
                  "y[10] = round_to<signed char>(200); y[11] = op_abs(low);\n"
                  "y[12] = op_mod(low, -1); y[13] = op_mod(-7, 3);",
    });
    static const int expected[] = {INT32_MIN, 0, INT32_MIN, INT32_MAX, 0, 0, -128, 1, 1, 1, -56, INT32_MIN, 0, -1};
    for (int i = 0; i < 14; i++)
        ck_assert_int_eq(((int *)result.buffers[1])[i], expected[i]);
    runtime_interp.release(&result);
}
END_TEST

// ---- programs that are wrong ----

static const struct { const char *kernel, *what; } WRONG[] = {
    {INDEX "store(y, i, load(x, i < 1000 ? i : 0));", "y, which has 4000"},              // writes the ragged edge
    {INDEX "if (i < 1000) store(y, i - 1, load(x, i));", "4 bytes before the start of y"},
    {INDEX "if (i < 1000) store(y, i, load(x, i * 8));", "reads at byte"},
    {INDEX "if (i < 1000) store(const_cast<float *>(x), i, 1.0f);", "of x, where it may not"},
    {"store(y, 1000, 1.0f);", "writes at byte 4000 of y"},                               // within the alignment
    {"if (threadIdx.x < 100) block_sync(); else warp_sync();", "ended while others wait at the barrier"},
    {"if (threadIdx.x < 128) block_sync();\nelse\nblock_sync();", "different barriers"},
    {"if (threadIdx.x % 2) warp_sync(); else block_sync();", "deadlock"},
    {"if (threadIdx.x < 128) block_sync(); else roles_sync<256>();", "deadlock"},
    {"if (threadIdx.x < 128) roles_sync<256>();", "ended while others wait at the barrier of all roles"},
    {"roles_sync<128>();", "another number of threads than the block has"},
    {"if (threadIdx.x < 16) warp_sync();", "a lane ended"},
    {"float v[4]; load_vector<4>(x, 1, v); store(y, 0, v[0]);", "misaligned"},
    {"SHARED_AT(0, float, As, [4]); As[threadIdx.x] = 0;", "of the shared memory"},
    {"store(y, 0, float(1 / (blockIdx.x * 0)));", "division traps"},
};

START_TEST(a_wrong_program_is_found_out)
{
    float_input();
    Case c = FLOATS;
    c.kernel = WRONG[_i].kernel;
    c.shared = 16;
    run_badly(c, WRONG[_i].what);
}
END_TEST

START_TEST(a_program_that_does_not_end_is_no_wrong_one)
{
    float_input();
    Case c = FLOATS;
    c.kernel = "for (volatile int i = 0; i < 1;) ;";
    RuntimeResult result = run_loaded(load_case(c), c);
    ck_assert_int_eq(result.status, RUNTIME_TIMEOUT);
    ck_assert_msg(strstr(result.reason, "does not end within 2 s"), "%s", result.reason);
    runtime_interp.release(&result);
}
END_TEST

START_TEST(an_element_that_nobody_writes_stays_poisoned)
{
    float_input();
    Case c = FLOATS;
    c.kernel = INDEX "if (i < 999) store(y, i, 1.0f);";
    RuntimeResult result = run_well(c);
    ck_assert_float_eq(((float *)result.buffers[1])[998], 1);
    ck_assert_float_nan(((float *)result.buffers[1])[999]);
    runtime_interp.release(&result);
}
END_TEST

static const struct { const char *grid, *block; int shared; const char *what; } LAUNCHES[] = {
    {"1", "32, 32, 2", 0, "a block of 32 x 32 x 2 threads"},
    {"1", "1, 1, 128", 0, "a block of 1 x 1 x 128 threads"},
    {"1, 65536", "32", 0, "a grid of 1 x 65536 x 1 blocks"},
    {"16777217", "1", 0, "a grid of 16777217 x 1 x 1 blocks"},
    {"8388609", "1024", 0, "a launch of 8388609 blocks of 1024 threads where 8589934592 threads are allowed"},
    {"2, 65535, 65", "1024", 0, "a launch of 8519550 blocks of 1024 threads where 8589934592 threads are allowed"},
    {"0", "32", 0, "a grid of 0 x 1 x 1 blocks"},
    {"1", "32", 140000, "140000 bytes of dynamic shared memory where 49152 are allowed"},
};

START_TEST(a_launch_beyond_the_limits_is_refused)
{
    Case c = FLOATS;
    c.kernel = "";
    c.grid = LAUNCHES[_i].grid, c.block = LAUNCHES[_i].block, c.shared = LAUNCHES[_i].shared;
    run_badly(c, LAUNCHES[_i].what);
}
END_TEST

START_TEST(text_that_does_not_compile_is_wrong)
{
    const char *text = "int t_launch(;", *reason;
    RuntimeSource source = {
        .name = "t", .text = text, .length = strlen(text), .limits = {32, 1024, 1, 1}, .builds = RUNTIME_PLAIN};
    RuntimeModule *module;
    ck_assert_int_eq(runtime_interp.load(arena, &source, &module, &reason), RUNTIME_WRONG);
    ck_assert_ptr_nonnull(strstr(reason, "error"));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("interp");
    tcase_add_loop_test(tests, elementwise, 0, 2);
    tcase_add_loop_test(tests, transpose_through_shared_memory, 0, 3);
    tcase_add_loop_test(tests, warp_reduction, 32, 33);
    tcase_add_loop_test(tests, warp_reduction, 64, 65);
    tcase_add_loop_test(tests, bits_are_packed_into_words, 0, 12);
    tcase_add_test(tests, vectors_and_asynchronous_copies);
    tcase_add_loop_test(tests, tensor_cores_cut_off, 0, 2);
    tcase_add_loop_test(tests, chains_of_products_lose_little, 0, 2);
    tcase_add_test(tests, a_large_grid_runs_on_some_blocks);
    tcase_add_test(tests, a_lazy_run_may_touch_many_places);
    tcase_add_loop_test(tests, every_f16_pattern_widens, 0, 2);
    tcase_add_test(tests, doubles_narrow_to_the_nearest_f16);
    tcase_add_test(tests, floats_narrow_to_the_nearest_f16);
    tcase_add_test(tests, scalar_operations_at_the_edges);
    tcase_add_loop_test(tests, a_wrong_program_is_found_out, 0, sizeof WRONG / sizeof *WRONG);
    tcase_add_test(tests, a_program_that_does_not_end_is_no_wrong_one);
    tcase_add_test(tests, an_element_that_nobody_writes_stays_poisoned);
    tcase_add_loop_test(tests, a_launch_beyond_the_limits_is_refused, 0, sizeof LAUNCHES / sizeof *LAUNCHES);
    tcase_add_test(tests, text_that_does_not_compile_is_wrong);
    return run_tests(tests);
}
