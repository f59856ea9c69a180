#include "rprogram/memo.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../kernel/kinds.h"

enum { KEEP = 10 };

static Arena *arena;
static DeviceSpec device;
static const Target target = {.device = &device};
static ConstructMemo *memo;

static void set_up(void)
{
    arena = arena_new();
    device = a100();
    memo = construct_memo_new(arena, &target, KEEP);
}

static void tear_down(void)
{
    arena_free(arena);
}

typedef struct Answer {
    RProgram kept[KEEP];
    int count;
    ConstructStats stats;
} Answer;

static Answer ask(const KernelKind *kind)
{
    Answer answer = {.count = 0};
    Arena *scratch = arena_new();
    const RProgram *kept = construct_memo_ask(memo, scratch, scratch, kind, NULL, 0, &answer.count, &answer.stats);
    memcpy(answer.kept, kept, (size_t)answer.count * sizeof *kept);
    arena_free(scratch);
    return answer;
}

static Answer construct(const KernelKind *kind)
{
    Answer answer = {.count = 0};
    Arena *scratch = arena_new();
    answer.count = rprogram_construct(scratch, kind, &target, 0, KEEP, answer.kept, &answer.stats);
    arena_free(scratch);
    return answer;
}

static bool same(const Answer *left, const Answer *right)
{
    return left->count == right->count &&
           memcmp(left->kept, right->kept, sizeof left->kept[0] * (size_t)left->count) == 0;
}

START_TEST(what_is_asked_for_is_what_a_construction_gives)
{
    KernelKind kind[] = {matmul_kind(256, 256, 64), reduce_kind(256, 1024), matmul_kind(256, 256, 128)};
    for (int again = 0; again < 3; again++)
        for (int i = 0; i < 3; i++) {
            Answer answer = ask(&kind[i]), right = construct(&kind[i]);
            ck_assert_int_gt(answer.count, 0);
            ck_assert(same(&answer, &right));
        }
}
END_TEST

/* What comes a second time is remembered: a change of the device makes no difference to it any more. */
START_TEST(kinds_that_come_again_are_remembered)
{
    KernelKind kind = reduce_kind(256, 1024), renamed = reduce_kind(256, 1024),
              longer = reduce_kind(256, 2048), written = reduce_kind(256, 1024);
    renamed.space->axes[0].name = "row";
    written.space->tiles[1].element_bits = 16;
    Answer first = ask(&kind);
    ask(&renamed);
    device.dram.bandwidth_gb_s /= 2;
    Answer again = ask(&kind), other_names = ask(&renamed), changed = construct(&kind);
    ck_assert(same(&first, &again) && same(&first, &other_names) && !same(&first, &changed));
    Answer other = ask(&longer), other_right = construct(&longer);
    ck_assert(same(&other, &other_right));
    Answer smaller = ask(&written), smaller_right = construct(&written);
    ck_assert(same(&smaller, &smaller_right) && !same(&smaller, &first));
}
END_TEST

START_TEST(that_there_is_none_is_known_too)
{
    KernelKind kind = matmul_kind(256, 256, 64);
    kind.threads.most = 1;
    for (int again = 0; again < 3; again++) {
        Answer none = ask(&kind);
        ck_assert_int_eq(none.count, 0);
        ck_assert_int_eq(none.stats.generated > 0, !again);   // what is remembered is not constructed
        ck_assert_int_eq(none.stats.generated, none.stats.pruned[PRUNE_THREADS] + none.stats.pruned[PRUNE_DUPLICATE]);
    }
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("memo");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, what_is_asked_for_is_what_a_construction_gives);
    tcase_add_test(cases, kinds_that_come_again_are_remembered);
    tcase_add_test(cases, that_there_is_none_is_known_too);
    Suite *suite = suite_create("memo");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
