// Which launches begin early, where they wait for those before them, and what the kernel says for it.
#include "codegen/chain.h"

#include <check.h>
#include <stdlib.h>

static const Tensor A = {.name = "a"}, B = {.name = "b"}, C = {.name = "c"};

/* An argument of the program, and a place in the workspace. */
#define READ(tensor_) {.tensor = &(tensor_), .workspace_offset = -1}
#define WRITE(tensor_) {.tensor = &(tensor_), .workspace_offset = -1, .written = true}
#define READ_AT(offset) {.workspace_offset = (offset)}
#define WRITE_AT(offset) {.workspace_offset = (offset), .written = true}

typedef struct Chain {
    LaunchArg args[4][3];   // of each launch; those of no tensor and no place end them
    int arg_count[4], count;
    int cooperative;        // the one that is; 0: none
    const char *waits;      // of each launch: - it begins behind the others, s it waits at its start, e at its end
} Chain;

static const Chain CHAINS[] = {
    /* One launch has nobody to wait for. */
    {.args = {{READ(A), WRITE(B)}}, .arg_count = {2}, .count = 1, .waits = "-"},
    /* Sums in parts, and what adds them. */
    {.args = {{READ(A), WRITE_AT(0)}, {READ_AT(0), WRITE(B)}},
     .arg_count = {2, 2}, .count = 2, .waits = "-s"},
    /* Two packs and their product. */
    {.args = {{READ(A), WRITE_AT(0)}, {READ(B), WRITE_AT(512)}, {READ_AT(0), READ_AT(512), WRITE(C)}},
     .arg_count = {2, 2, 3}, .count = 3, .waits = "-es"},
    /* The third has nothing to do with the second, but the first may still run. */
    {.args = {{READ(A), WRITE_AT(0)}, {READ(A), WRITE(B)}, {READ_AT(0), WRITE(C)}},
     .arg_count = {2, 2, 2}, .count = 3, .waits = "-es"},
    /* Written behind a read, and written twice. */
    {.args = {{READ_AT(0), WRITE(B)}, {READ(A), WRITE_AT(0)}},
     .arg_count = {2, 2}, .count = 2, .waits = "-s"},
    {.args = {{READ(A), WRITE_AT(0)}, {READ(B), WRITE_AT(0)}},
     .arg_count = {2, 2}, .count = 2, .waits = "-s"},
    /* Of what is only read there may be several readers; the last launch, too, may wait at its end. */
    {.args = {{READ(A), WRITE(B)}, {READ(A), WRITE(C)}}, .arg_count = {2, 2}, .count = 2, .waits = "-e"},
    /* Neither a cooperative launch nor the one behind it is early. */
    {.args = {{READ(A), WRITE_AT(0)}, {READ_AT(0), WRITE_AT(512)}, {READ_AT(512), WRITE_AT(1024)},
              {READ_AT(1024), WRITE(B)}},
     .arg_count = {2, 2, 2, 2}, .count = 4, .cooperative = 1, .waits = "---s"},
};

START_TEST(who_begins_early_waits_where_it_must)
{
    const Chain *chain = &CHAINS[_i];
    Launch launches[4] = {0};
    LaunchArg args[4][3];
    for (int k = 0; k < chain->count; k++) {
        for (int i = 0; i < 3; i++)
            args[k][i] = chain->args[k][i];
        launches[k] = (Launch){.args = args[k], .arg_count = chain->arg_count[k]};
    }
    if (chain->cooperative)
        launches[chain->cooperative].cooperative = true;
    chain_launches(launches, chain->count);
    for (int k = 0; k < chain->count; k++) {
        ck_assert_int_eq(launches[k].early, chain->waits[k] != '-');
        ck_assert_int_eq(launches[k].waits_last, chain->waits[k] == 'e');
        ck_assert_int_eq(launches[k].lets_begin, k + 1 < chain->count && chain->waits[k + 1] != '-');
    }
}
END_TEST

#define BEFORE "{\n    const Tensors t = TENSORS;"
#define BEHIND "\n    work(t);\n}\n"

static void check_body(const Launch *launch, bool line_directives, const char *wanted)
{
    Arena *arena = arena_new();
    TemplateStore store = {.arena = arena, .line_directives = line_directives};
    ck_assert_str_eq(chain_body(&store, &(Template){.body = BEFORE BEHIND}, launch), wanted);
    arena_free(arena);
}

START_TEST(a_kernel_begins_with_it)
{
    Launch alone = {0}, first = {.lets_begin = true}, middle = {.lets_begin = true, .early = true};
    Launch free_one = {.early = true, .waits_last = true};
    check_body(&alone, false, BEFORE BEHIND);
    check_body(&first, false, BEFORE "\n    let_next_begin();   // blocks of the next launch come as these end" BEHIND);
    check_body(&first, true, BEFORE " let_next_begin();" BEHIND);   // lines keep their numbers
    check_body(&middle, true, BEFORE " let_next_begin(); wait_for_earlier();" BEHIND);
    check_body(&free_one, true, BEFORE " const WaitsAtItsEnd end;" BEHIND);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("chain");
    tcase_add_loop_test(cases, who_begins_early_waits_where_it_must, 0, sizeof CHAINS / sizeof *CHAINS);
    tcase_add_test(cases, a_kernel_begins_with_it);
    Suite *suite = suite_create("chain");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
