#include "hal/device.h"

#include <check.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/diag.h"
#include "base/embedded.h"

static Arena *arena;

static void open_arena(void) { arena = arena_new(); }
static void close_arena(void) { arena_free(arena); }

/* ---- catching errors ---- */

static jmp_buf error_exit;
static char error_text[4096];
static int error_code;

static void catch_error(int exit_code, const char *message, void *context)
{
    (void)context;
    error_code = exit_code;
    snprintf(error_text, sizeof error_text, "%s", message);
    longjmp(error_exit, 1);
}

/* What device_parse says about the bytes; NULL if they are a device. */
static const char *error_of(const char *text, size_t length)
{
    const char *volatile error = error_text;
    diag_configure((DiagOptions){.on_fatal = catch_error});
    if (!setjmp(error_exit)) {
        device_parse(arena, source_from_text(arena, "test.yaml", text, length));
        error = NULL;
    }
    diag_configure((DiagOptions){.quiet = false});
    return error;
}

static void expect_error(const char *text, size_t length, const char *wanted)
{
    const char *error = error_of(text, length);
    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error_code, EXIT_INPUT);
    ck_assert_msg(strstr(error, wanted) != NULL, "wanted '%s', got: %s", wanted, error);
}

/* The a100 with one piece of its text exchanged. */
static const char *a100_with(const char *old, const char *new)
{
    const char *text = device_text("a100"), *place = strstr(text, old);
    ck_assert_ptr_nonnull(place);
    return arena_printf(arena, "%.*s%s%s", (int)(place - text), text, new, place + strlen(old));
}

/* Of this process: others on the machine do not count. */
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- the built-in devices ---- */

static const char *const NAMES[] = {"a100", "h100",      "h200",    "ipu_mk1", "ipu_mk2", "k80",
                                    "mi50", "rtx2080ti", "rtx3090", "rtx4090", "v100"};

START_TEST(every_built_in_device_loads)
{
    const DeviceSpec *device = device_read(arena, NAMES[_i]);
    ck_assert_str_eq(device->name, NAMES[_i]);
    ck_assert_str_eq(device->file, arena_printf(arena, "devices/%s.yaml", NAMES[_i]));
    ck_assert_uint_eq(strlen(device->sha256), 64);
}
END_TEST

START_TEST(the_numbers_of_the_a100)
{
    const DeviceSpec *device = device_read(arena, "a100");
    ck_assert_str_eq(device->title, "NVIDIA A100 SXM4 40 GB");
    ck_assert_str_eq(device->arch, "sm_80");
    ck_assert_int_eq(device->dialect, DIALECT_CUDA);
    ck_assert_int_eq(device->sm_count * device->lanes_per_sm, 6912);
    ck_assert_int_eq(device->shared_per_sm, 164 * 1024);
    ck_assert_int_eq(device->shared_per_block_optin, 163 * 1024);
    ck_assert_int_eq(device->dram_bytes, 42949672960);
    ck_assert(device->peak[UNIT_FP32] == 19492);   // 108 x 64 x 2 x 1.410 GHz
    ck_assert(device->launch_us == 1.2);
    ck_assert(device->has.async_copy && device->has.mma && !device->has.wgmma);
}
END_TEST

START_TEST(old_and_foreign_devices_differ_where_they_should)
{
    const DeviceSpec *k80 = device_read(arena, "k80"), *mi50 = device_read(arena, "mi50");
    ck_assert_int_eq(k80->sm_count, 13);   // one of the two GPUs of the board
    ck_assert_int_eq(k80->shared_bank_bytes, 8);
    ck_assert(k80->peak[UNIT_TENSOR_F16] == 0);
    ck_assert_int_eq(mi50->dialect, DIALECT_HIP);
    ck_assert_int_eq(mi50->warp_size, 64);
    ck_assert_int_eq(mi50->registers_per_thread, 256);
}
END_TEST

START_TEST(the_h200_has_what_was_measured)
{
    const DeviceSpec *device = device_read(arena, "h200");
    ck_assert(device->dram.bandwidth_gb_s == 4510);
    ck_assert(device->shared.bandwidth_gb_s == 32800);
    ck_assert(device->peak[UNIT_TENSOR_F16] == 646100);
    ck_assert(device->has.wgmma && device->has.bulk_tensor_copy && device->has.clusters && device->has.cooperative);
    ck_assert(device->has.early_launches && !device_read(arena, "a100")->has.early_launches);
    ck_assert_int_eq(device->max_blocks_per_cluster, 16);
    ck_assert(device->timing.block_start_cycles == 1.21 && device->timing.block_wait_us == 1);
    ck_assert(device->timing.grid_barrier_us == 1.6);
}
END_TEST

/* Nothing lies between its units and the memories of the others. */
START_TEST(a_device_that_exchanges_needs_no_cache)
{
    const DeviceSpec *device = device_read(arena, "ipu_mk1");
    ck_assert(device_is_ranked_only(device) && device_is_bulk_synchronous(device));
    ck_assert_int_eq(device->sm_count * device->max_threads_per_sm, 7296);
    ck_assert_int_eq(device->dram_bytes, 1216 * 262144);
    ck_assert_int_eq(device->l2_bytes, 0);
    ck_assert(device->l2.bandwidth_gb_s == 7680 && device->l2_latency_ns == 133);
    ck_assert_int_eq(device_read(arena, "ipu_mk2")->shared_per_sm, 624 * 1024);
    ck_assert(!device_is_ranked_only(device_read(arena, "mi50")) && !device_is_bulk_synchronous(device_read(arena, "h200")));
}
END_TEST

static const DeviceSpec *parsed(const char *text)
{
    return device_parse(arena, source_from_text(arena, "test.yaml", text, strlen(text)));
}

START_TEST(timings_that_a_file_leaves_out_have_standards)
{
    const DeviceSpec *device = parsed(a100_with("capabilities:", "timing:\n  barrier_cycles: 45\ncapabilities:"));
    ck_assert(device->timing.barrier_cycles == 45);
    ck_assert(device->timing.operand_cycles == 30 && device->timing.block_start_cycles == 1.21);
    ck_assert(device->l2_port_share == 2);
}
END_TEST

/* What was measured at 1980 MHz and with 400 ns to DRAM. */
START_TEST(standards_follow_from_clock_and_latency)
{
    const Timing *h200 = &device_read(arena, "h200")->timing, *h100 = &device_read(arena, "h100")->timing;
    ck_assert_int_eq(memcmp(h200, h100, sizeof *h200), 0);
    const Timing *k80 = &device_read(arena, "k80")->timing;   // 875 MHz
    ck_assert(k80->block_wait_us == 1980 / 875.0);
    ck_assert(k80->grid_barrier_us == 1.6 && k80->copy_wait_us == 0.4);
    ck_assert(k80->barrier_cycles == 29);   // 33 ns, the h200's 15
}
END_TEST

/* 400 ns to DRAM, unless the file says otherwise. */
START_TEST(l2_answers_in_a_share_of_the_time_of_dram)
{
    ck_assert(device_read(arena, "a100")->l2_latency_ns == 146);
    ck_assert(parsed(a100_with("  transaction_bytes: 32                  # CUDA best practices guide: one sector; also Roller",
                               "  transaction_bytes: 32\n  latency_ns: 200"))->l2_latency_ns == 73);
    ck_assert(parsed(a100_with("l2:", "l2:\n  latency_ns: 193"))->l2_latency_ns == 193);
    const char *text = a100_with("l2:", "l2:\n  latency_ns: 401");
    expect_error(text, strlen(text), "l2.latency_ns = 401 is more than dram.latency_ns = 400");
}
END_TEST

START_TEST(a_timing_out_of_range_is_refused)
{
    const char *text = a100_with("capabilities:", "timing: {block_wait_us: 1980}\ncapabilities:");   // cycles
    expect_error(text, strlen(text), "timing.block_wait_us = 1980 is out of range: wanted 0.01 to 1000 us");
}
END_TEST

START_TEST(a_path_reads_the_same_as_the_name)
{
    const DeviceSpec *by_name = device_read(arena, "v100");
    const DeviceSpec *by_path = device_read(arena, "devices/v100.yaml");
    ck_assert_str_eq(by_name->sha256, by_path->sha256);   // so embedding changed no byte
}
END_TEST

START_TEST(the_digest_is_that_of_sha256sum)
{
    char digest[65];
    FILE *sum = popen("sha256sum devices/k80.yaml", "r");
    ck_assert_int_eq(fscanf(sum, "%64s", digest), 1);
    pclose(sum);
    ck_assert_str_eq(device_read(arena, "k80")->sha256, digest);
}
END_TEST

START_TEST(the_list_is_sorted)
{
    StrBuf out = strbuf_new(arena);
    device_list(&out);
    ck_assert_ptr_nonnull(strstr(out.text, "a100       NVIDIA A100 SXM4 40 GB\nh100       NVIDIA"));
    const char *line = out.text;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        ck_assert_int_eq(strncmp(line, NAMES[i], strlen(NAMES[i])), 0);
        line = strchr(line, '\n') + 1;
    }
    ck_assert_str_eq(line, "");
}
END_TEST

START_TEST(the_text_of_a_device_can_be_had)
{
    ck_assert_int_eq(strncmp(device_text("a100"), "# yaml-language-server:", 23), 0);
    ck_assert_ptr_null(device_text("a10"));
    ck_assert_ptr_null(device_text("a100.yaml"));
    ck_assert_ptr_null(device_text(""));
}
END_TEST

START_TEST(derived_facts_are_printed)
{
    StrBuf out = strbuf_new(arena);
    device_print(&out, device_read(arena, "a100"));
    ck_assert_ptr_nonnull(strstr(out.text, "108 SMs x 64 lanes at 1410 MHz"));
    ck_assert_ptr_nonnull(strstr(out.text, "12.5"));   // 19492 Gflop/s over 1555 GB/s
    ck_assert_ptr_nonnull(strstr(out.text, "barrier_cycles           29\n"));
}
END_TEST

START_TEST(an_unknown_name_ends_with_the_names_there_are)
{
    diag_configure((DiagOptions){.on_fatal = catch_error});
    if (!setjmp(error_exit)) {
        device_read(arena, "a1000");
        ck_abort_msg("a1000 is no device");
    }
    ck_assert_int_eq(error_code, EXIT_INPUT);
    ck_assert_ptr_nonnull(strstr(error_text, "unknown device 'a1000'"));
    ck_assert_ptr_nonnull(strstr(error_text, "a100, h100, h200, ipu_mk1, ipu_mk2, k80, mi50, rtx2080ti"));
}
END_TEST

START_TEST(loading_takes_less_than_a_millisecond)
{
    double start = seconds();
    for (int i = 0; i < 100; i++)
        device_read(arena, "h200");
    ck_assert_double_lt((seconds() - start) / 100, 1e-3);
}
END_TEST

/* ---- contradictions ---- */

/* 108 x 64 x 2 x 1.410 = 19491.84: 5 % is 974.6. */
START_TEST(the_peak_may_be_five_percent_off)
{
    static const struct {
        const char *peak;
        bool is_fine;
    } cases[] = {{"fp32: 20446", true},    // + 4.9 %
                 {"fp32: 20486", false},   // + 5.1 %
                 {"fp32: 18537", true},    // - 4.9 %
                 {"fp32: 18498", false}};  // - 5.1 %
    const char *text = a100_with("fp32: 19492", cases[_i].peak);
    const char *error = error_of(text, strlen(text));
    ck_assert_msg(!error == cases[_i].is_fine, "%s: %s", cases[_i].peak, error);
}
END_TEST

START_TEST(a_contradiction_shows_both_numbers)
{
    const char *text = a100_with("fp32: 19492", "fp32: 78000");
    expect_error(text, strlen(text), "108 x 64 x 1410 x 2 / 1000 = 19492");
    ck_assert_ptr_nonnull(strstr(error_text, "fp32 = 78000"));
    ck_assert_ptr_nonnull(strstr(error_text, "^~~~~"));   // below 78000
}
END_TEST

START_TEST(an_error_after_letters_beyond_ascii_still_points_at_its_byte)
{
    const char *text = "# \xC3\xA4\xE2\x82\xAC\ncompute: # \xC3\xBC\n  sm_count: many\n";
    expect_error(text, strlen(text), "test.yaml:3:13: error: compute.sm_count");
}
END_TEST

/* ---- bytes that cannot stand in tests/errors ---- */

#define EXPECT(bytes, wanted) expect_error(bytes, sizeof(bytes) - 1, wanted)

START_TEST(odd_encodings_are_refused)
{
    EXPECT("\xEF\xBB\xBF" "device: {}\n", "byte order mark");
    EXPECT("\xFF\xFE" "d\0e\0v\0", "byte order mark");
    EXPECT("\xFE\xFF" "\0d\0e\0v", "byte order mark");
    EXPECT("d\0e\0v\0:\0", "1:2: error: a NUL byte");
    EXPECT("device:\n  name: a\0b\n", "2:10: error: a NUL byte");
    EXPECT("device:\n  name: \"a\\0b\"\n", "NUL character");
    EXPECT("device:\n  name: \xC3\x28\n", "2:10: error: this is not YAML");
    EXPECT("device:\n  name: \x1B[31m\n", "2:9: error: this is not YAML");
}
END_TEST

START_TEST(a_file_without_content_is_refused)
{
    EXPECT("", "the file holds nothing");
    EXPECT("\n\n# only words\n", "the file holds nothing");
    EXPECT("---\n", "wanted groups of keys");
    EXPECT("{}\n", "missing key 'device.name'");
}
END_TEST

START_TEST(unfinished_files_are_refused)
{
    EXPECT("device: {name: a100", "this is not YAML");
    EXPECT("device: \"a100", "this is not YAML");
    EXPECT("device: [", "lists have no place");
    EXPECT("? ", "unknown key ''");
}
END_TEST

/* ((a b) x 9)^9 nodes if somebody followed the aliases. */
START_TEST(an_alias_bomb_does_nothing)
{
    StrBuf bomb = strbuf_new(arena);
    strbuf_puts(&bomb, "a0: &a0 {x: boom}\n");
    for (int level = 1; level < 10; level++) {
        strbuf_printf(&bomb, "a%d: &a%d {", level, level);
        for (int i = 0; i < 9; i++)
            strbuf_printf(&bomb, "k%d: *a%d, ", i, level - 1);
        strbuf_puts(&bomb, "}\n");
    }
    expect_error(bomb.text, bomb.length, "1:5: error: anchors (&a0) have no place");
}
END_TEST

/* Time is checked for the opening brackets of every kind; libyaml alone takes 15 s for 100 KB of '['. */
START_TEST(deep_nesting_takes_no_time)
{
    static const char *const OPENINGS[] = {"[", "{", "{a: ", "[{a: ", "- ", "? ", "? {", "a:\n"};
    static const size_t SIZES[] = {60 * 1024, 4 << 20};
    for (int i = 0; i < 2; i++) {
        StrBuf text = strbuf_new(arena);
        while (text.length < SIZES[i])
            strbuf_puts(&text, OPENINGS[_i]);
        double start = seconds();
        ck_assert_ptr_nonnull(error_of(text.text, text.length));
        ck_assert_double_lt(seconds() - start, 0.05);
    }
}
END_TEST

START_TEST(keys_side_by_side_are_limited)
{
    StrBuf text = strbuf_new(arena);
    for (int i = 0; i < 513; i++)
        strbuf_printf(&text, "k%d: 1\n", i);
    expect_error(text.text, text.length, "more than 512 keys side by side");
}
END_TEST

START_TEST(size_and_number_of_words_are_limited)
{
    StrBuf text = strbuf_new(arena);
    for (int i = 0; i < 512; i++)
        strbuf_printf(&text, "k%d:\n  a: 1\n  b: 1\n  c: 1\n", i);
    expect_error(text.text, text.length, "at most 4096 words");
    while (text.length <= 64 * 1024)
        strbuf_puts(&text, "# and more\n");
    expect_error(text.text, text.length, "at most 65536 bytes, this one has");
}
END_TEST

START_TEST(a_file_of_the_largest_size_is_read)
{
    StrBuf text = strbuf_new(arena);
    strbuf_puts(&text, device_text("a100"));
    while (text.length < 64 * 1024)
        strbuf_putc(&text, '#');
    ck_assert_ptr_null(error_of(text.text, text.length));
    strbuf_putc(&text, '#');
    expect_error(text.text, text.length, "at most 65536 bytes");
}
END_TEST

START_TEST(sixteen_levels_are_read)
{
    StrBuf text = strbuf_new(arena);
    for (int level = 0; level < 15; level++)
        strbuf_puts(&text, "{a: ");
    strbuf_puts(&text, "1}}}}}}}}}}}}}}}");
    expect_error(text.text, text.length, "unknown key 'a'");
}
END_TEST

START_TEST(windows_line_ends_are_read)
{
    StrBuf text = strbuf_new(arena);
    for (const char *c = device_text("a100"); *c; c++) {
        if (*c == '\n')
            strbuf_putc(&text, '\r');
        strbuf_putc(&text, *c);
    }
    ck_assert_ptr_null(error_of(text.text, text.length));
}
END_TEST

static TCase *built_in_cases(void)
{
    TCase *cases = tcase_create("built in");
    tcase_add_checked_fixture(cases, open_arena, close_arena);
    tcase_add_loop_test(cases, every_built_in_device_loads, 0, sizeof NAMES / sizeof *NAMES);
    tcase_add_test(cases, the_numbers_of_the_a100);
    tcase_add_test(cases, old_and_foreign_devices_differ_where_they_should);
    tcase_add_test(cases, the_h200_has_what_was_measured);
    tcase_add_test(cases, a_device_that_exchanges_needs_no_cache);
    tcase_add_test(cases, timings_that_a_file_leaves_out_have_standards);
    tcase_add_test(cases, standards_follow_from_clock_and_latency);
    tcase_add_test(cases, l2_answers_in_a_share_of_the_time_of_dram);
    tcase_add_test(cases, a_path_reads_the_same_as_the_name);
    tcase_add_test(cases, the_digest_is_that_of_sha256sum);
    tcase_add_test(cases, the_list_is_sorted);
    tcase_add_test(cases, the_text_of_a_device_can_be_had);
    tcase_add_test(cases, derived_facts_are_printed);
    tcase_add_test(cases, an_unknown_name_ends_with_the_names_there_are);
    tcase_add_test(cases, loading_takes_less_than_a_millisecond);
    return cases;
}

static TCase *wrong_cases(void)
{
    TCase *cases = tcase_create("wrong");
    tcase_add_checked_fixture(cases, open_arena, close_arena);
    tcase_add_loop_test(cases, the_peak_may_be_five_percent_off, 0, 4);
    tcase_add_test(cases, a_contradiction_shows_both_numbers);
    tcase_add_test(cases, a_timing_out_of_range_is_refused);
    tcase_add_test(cases, an_error_after_letters_beyond_ascii_still_points_at_its_byte);
    tcase_add_test(cases, odd_encodings_are_refused);
    tcase_add_test(cases, a_file_without_content_is_refused);
    tcase_add_test(cases, unfinished_files_are_refused);
    tcase_add_test(cases, an_alias_bomb_does_nothing);
    tcase_add_loop_test(cases, deep_nesting_takes_no_time, 0, 8);
    tcase_add_test(cases, keys_side_by_side_are_limited);
    tcase_add_test(cases, size_and_number_of_words_are_limited);
    tcase_add_test(cases, a_file_of_the_largest_size_is_read);
    tcase_add_test(cases, sixteen_levels_are_read);
    tcase_add_test(cases, windows_line_ends_are_read);
    return cases;
}

int main(void)
{
    Suite *suite = suite_create("device");
    suite_add_tcase(suite, built_in_cases());
    suite_add_tcase(suite, wrong_cases());
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
