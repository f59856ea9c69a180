// Which convolutions tensor cores make of pairs of channels, and in which blocks.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/family/depthwise/pairs.h"
#include "codegen/family/family.h"
#include "front/lower.h"
#include "front/parse.h"

static Arena *arena;

static void setup(void) { arena = arena_new(); }

static void teardown(void) { arena_free(arena); }

static const Fusion *fusion_of(const char *text)
{
    const Source *source = source_from_text(arena, "case.te", text, strlen(text));
    return fuse(arena, lower(arena, parse(arena, lex(arena, source)), NULL, 0)).plans[0].fusions[0];
}

static int kind_of(const char *text, const char *device, KernelKind *variants)
{
    const Target target = {.device = device_read(arena, device), .math = EVAL_EXACT};
    Viewed viewed = {.arena = arena, .fusion = fusion_of(text), .target = &target};
    return family_kinds(arena, &pairs_family, &viewed, variants);
}

static bool matches(const char *text, const char *device)
{
    return kind_of(text, device, NEW_ARRAY(arena, KernelKind, MAX_VARIANTS)) > 0;
}

#define FORWARD "input x[4, 20, 24, 40] : f16  input w[5, 5, 40] : f16  "
#define TAPS "sum[r, s](pad(x[n, h + r - 2, v + s - 2, c], 0) * w[r, s, c])  "

START_TEST(channels_side_by_side_in_multiples_of_eight)
{
    const char *forward = FORWARD "y[n, h:20, v:24, c] = " TAPS "output y : f16";
    ck_assert(matches(forward, "h200") && matches(forward, "a100"));
    ck_assert(!matches(forward, "v100"));   // has no such instructions
    ck_assert(matches("input d[4, 20, 24, 40] : bf16  input w[40, 7, 3] : bf16  y[n, h:20, v:24, c] = "
                      "sum[r, s](pad(d[n, h - r + 3, v - s + 1, c], 0) * w[c, r, s])  output y",
                      "h200"));
    ck_assert(matches("input x[4, 24, 2, 16] : f16  input w[9, 2, 16] : f16  y[n, v:16, g, c] = "
                      "sum[s](x[n, v + s, g, c] * w[s, g, c])  output y : f16",
                      "h200"));
}
END_TEST

START_TEST(others_are_left_alone)
{
    static const char *const others[] = {
        "input x[4, 20, 24, 36] : f16  input w[5, 5, 36] : f16  y[n, h:20, v:24, c] = " TAPS "output y : f16",
        "input x[4, 20, 24, 40] : f32  input w[5, 5, 40] : f32  y[n, h:20, v:24, c] = " TAPS "output y",
        "input x[4, 20, 24, 40] : f16  input w[5, 5, 40] : f32  y[n, h:20, v:24, c] = " TAPS "output y",
        "input x[4, 40, 20, 24] : f16  input w[40, 5, 5] : f16  y[n, c, h:20, v:24] = "
        "sum[r, s](pad(x[n, c, h + r - 2, v + s - 2], 0) * w[c, r, s])  output y : f16",
        FORWARD "y[n, h:10, v:24, c] = sum[r, s](pad(x[n, 2*h + r - 2, v + s - 2, c], 0) * w[r, s, c])  output y",
        FORWARD "y[n, h:20, v:24, c] = sum[r, s](pad(x[n, h + r - 2, v + 2*s - 4, c], 0) * w[r, s, c])  output y",
        "input x[4, 20, 24, 40] : f16  input w[5, 5, 40, 2] : f16  y[n, h:20, v:24, c, m] = "
        "sum[r, s](pad(x[n, h + r - 2, v + s - 2, c], 0) * w[r, s, c, m])  output y",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!matches(others[i], "h200"), "%s", others[i]);
}
END_TEST

/* The kinds that the device is offered, of so many columns, images and rows each. */
static int kinds_of(const char *text, PairsWay *ways)
{
    KernelKind *variants = NEW_ARRAY(arena, KernelKind, MAX_VARIANTS);
    int count = kind_of(text, "h200", variants);
    for (int i = 0; i < count; i++)
        ways[i] = *(const PairsWay *)variants[i].choice.value;
    return count;
}

START_TEST(sixteen_groups_of_columns)
{
    PairsWay ways[MAX_VARIANTS];
    ck_assert_int_gt(kinds_of(FORWARD "y[n, h:20, v:24, c] = " TAPS "output y : f16", ways), 0);
    ck_assert(ways[0].columns == 32 && ways[0].images == 2 && ways[0].reach == 36 && ways[0].height == 20);
    ck_assert_int_eq(ways[0].staged_bits, 16);   // as they are stored
    kinds_of("input x[1, 20, 70, 40] : f16  input w[7, 7, 40] : f16  t[n, h:20, v:70, c] = sum[r, s](pad(x[n, h + r - 3, "
             "v + s - 3, c], 0) * w[r, s, c])  y[n, h, v, c] = relu(t[n, h, v, c])  output y : f16",
             ways);
    ck_assert(ways[0].columns * ways[0].images == PAIRS_PIXELS && ways[0].staged_bits == 32);
}
END_TEST

START_TEST(filters_need_registers)
{
    static const char *const text =
        "input x[4, 40, 40, 32] : f16  input w[%d, %d, 32] : f16  y[n, h:40, v:40, c] = "
        "sum[r, s](pad(x[n, h + r - %d, v + s - %d, c], 0) * w[r, s, c])  output y : f16";
    PairsWay ways[MAX_VARIANTS];
    int counts[3];
    for (int i = 0; i < 3; i++) {
        int taps = 7 + 4 * i;   // 7, 11, 15
        counts[i] = kinds_of(arena_printf(arena, text, taps, taps, taps / 2, taps / 2), ways);
    }
    ck_assert(counts[0] > counts[1] && counts[1] > counts[2]);
    ck_assert_int_eq(counts[2], 0);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("pairs");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, channels_side_by_side_in_multiples_of_eight);
    tcase_add_test(tests, others_are_left_alone);
    tcase_add_test(tests, sixteen_groups_of_columns);
    tcase_add_test(tests, filters_need_registers);
    Suite *suite = suite_create("pairs");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
