// What launches come after, found from the bytes that they read and write.
#include "hal/launch_order.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

enum { A, B, C, WORKSPACE };   // buffers

#define READ(argument) {.buffer = (argument), .bytes = 512}
#define WRITE(argument) {.buffer = (argument), .bytes = 512, .written = true}
#define READ_AT(place) {.buffer = WORKSPACE, .offset = (place), .bytes = 512}
#define WRITE_AT(place) {.buffer = WORKSPACE, .offset = (place), .bytes = 512, .written = true}

/* Of rows of 64 bytes those from `from` to `to`. */
#define PART(from, to) .buffer = WORKSPACE, .bytes = 512, .row = 64, .row_first = (from), .row_end = (to)
#define READ_PART(from, to) {PART(from, to)}
#define WRITE_PART(from, to) {PART(from, to), .written = true}

typedef struct Case {
    LaunchArg args[5][4];   // of each launch; those of no bytes end them
    const char *after;      // what each comes after, behind a bar
} Case;

static const Case CASES[] = {
    {{{READ(A), WRITE(B)}}, "|"},
    /* A line; the last one reads what the first made, too, which has ended when the second has. */
    {{{READ(A), WRITE_AT(0)}, {READ_AT(0), WRITE_AT(512)}, {READ_AT(0), READ_AT(512), WRITE(B)}}, "||0|1"},
    /* Two branches that join. */
    {{{READ(A), WRITE_AT(0)}, {READ_AT(0), WRITE_AT(512)}, {READ_AT(0), WRITE_AT(1024)}, {READ_AT(512), READ_AT(1024), WRITE(B)}},
     "||0|0|1 2"},
    /* What only reads the same has nothing to wait for. */
    {{{READ(A), WRITE(B)}, {READ(A), WRITE(C)}}, "||"},
    /* A place that is used again waits for all that read it, */
    {{{READ(A), WRITE_AT(0)}, {READ_AT(0), WRITE_AT(512)}, {READ_AT(0), WRITE_AT(1024)}, {READ(A), WRITE_AT(0)}}, "||0|0|1 2"},
    /* … for whom nobody read, */
    {{{READ(A), WRITE_AT(0)}, {READ(B), WRITE_AT(0)}}, "||0"},
    /* … and a part of it is enough. */
    {{{READ(A), WRITE_AT(0)}, {READ(B), WRITE_AT(511)}, {READ(B), WRITE_AT(1022)}, {READ(B), WRITE_AT(2048)}}, "||0|1|"},
    /* Who reads it behind that has to do with the second alone. */
    {{{READ(A), WRITE_AT(0)}, {READ_AT(0), WRITE(B)}, {READ(A), WRITE_AT(256)}, {READ_AT(256), WRITE(C)}}, "||0|1|2"},
    /* A tensor that lies over two that were there before. */
    {{{READ(A), WRITE_AT(0)},
      {READ(A), WRITE_AT(512)},
      {READ(A), {.buffer = WORKSPACE, .bytes = 1024, .written = true}},
      {READ_AT(512), WRITE(B)}},
     "|||0 1|2"},
    /* Two make the parts of a concatenation, side by side; who reads all of it comes after both, */
    {{{READ(A), WRITE_PART(0, 16)}, {READ(A), WRITE_PART(16, 64)}, {READ_PART(0, 64), WRITE(B)}}, "|||0 1"},
    /* … who reads one of them after its writer, */
    {{{READ(A), WRITE_PART(0, 16)}, {READ(A), WRITE_PART(16, 64)}, {READ_PART(0, 16), WRITE(B)}, {READ_PART(8, 24), WRITE(C)}},
     "|||0|0 1"},
    /* … and who writes another tensor there after all that read it. */
    {{{READ(A), WRITE_PART(0, 16)}, {READ(A), WRITE_PART(16, 64)}, {READ_PART(0, 16), WRITE(B)}, {READ(A), WRITE_AT(256)}},
     "|||0|1 2"},
    /* Parts of other rows are as any bytes. */
    {{{READ(A), WRITE_PART(0, 16)},
      {READ(A), {.buffer = WORKSPACE, .bytes = 512, .row = 32, .row_first = 16, .row_end = 32, .written = true}}},
     "||0"},
};

static int launches_of(const Case *of, LaunchArg (*args)[4], Launch *launches)
{
    int count = 0;
    memcpy(args, of->args, sizeof of->args);
    for (; count < 5 && args[count][0].bytes; count++) {
        launches[count] = (Launch){.args = args[count]};
        while (launches[count].arg_count < 4 && args[count][launches[count].arg_count].bytes)
            launches[count].arg_count++;
    }
    return count;
}

START_TEST(they_come_after_whose_bytes_they_meet)
{
    Arena *arena = arena_new();
    LaunchArg args[5][4];
    Launch launches[5];
    int count = launches_of(&CASES[_i], args, launches), later;
    launches_order(arena, launches, count);
    StrBuf out = strbuf_new(arena);
    for (int k = 0; k < count; k++) {
        strbuf_putc(&out, '|');
        for (int i = 0; i < launches[k].after_count; i++)
            strbuf_printf(&out, "%s%d", i ? " " : "", launches[k].after[i]);
    }
    ck_assert_str_eq(out.text, CASES[_i].after);
    LaunchOrder order = launches_stated_order(arena, launches, count);
    ck_assert_int_eq(launches_unordered(launches, count, &order, &later), -1);
    arena_free(arena);
}
END_TEST

/* Without one of them two launches are found whose bytes meet. */
START_TEST(a_missing_edge_is_found)
{
    Arena *arena = arena_new();
    LaunchArg args[5][4];
    Launch launches[5];
    int count = launches_of(&CASES[_i], args, launches);
    launches_order(arena, launches, count);
    for (int k = 0; k < count; k++) {
        const Launch whole = launches[k];
        for (int i = 0; i < whole.after_count; i++) {
            int *fewer = NEW_ARRAY(arena, int, whole.after_count), kept = 0, later;
            for (int j = 0; j < whole.after_count; j++)
                if (j != i)
                    fewer[kept++] = whole.after[j];
            launches[k].after = fewer, launches[k].after_count = kept;
            LaunchOrder order = launches_stated_order(arena, launches, count);
            ck_assert_int_ge(launches_unordered(launches, count, &order, &later), 0);
            launches[k] = whole;
        }
    }
    arena_free(arena);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("launch_order");
    tcase_add_loop_test(cases, they_come_after_whose_bytes_they_meet, 0, sizeof CASES / sizeof *CASES);
    tcase_add_loop_test(cases, a_missing_edge_is_found, 0, sizeof CASES / sizeof *CASES);
    Suite *suite = suite_create("launch_order");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
