// Which launches begin early, where they wait for those before them, and what the kernel says for it.
#include "codegen/chain.h"

#include <check.h>
#include <stdlib.h>

enum { A, B, C, WORKSPACE };   // buffers

/* An argument of the program, and 512 bytes of the workspace. */
#define READ(argument) {.buffer = (argument), .bytes = 512}
#define WRITE(argument) {.buffer = (argument), .bytes = 512, .written = true}
#define READ_AT(place) {.buffer = WORKSPACE, .offset = (place), .bytes = 512}
#define WRITE_AT(place) {.buffer = WORKSPACE, .offset = (place), .bytes = 512, .written = true}

#define SMS_OF_228_KB \
    {.sm_count = 132, .shared_per_sm = 228 << 10, .shared_reserved_per_block = 1 << 10, .max_threads_per_sm = 2048, .max_blocks_per_sm = 32}

typedef struct Chain {
    LaunchArg args[4][3];   // of each launch; those of no tensor and no place end them
    int arg_count[4], count;
    int cooperative;        // the one that is; 0: none
    int shared_bytes;       // of a block
    const char *waits;      // of each launch: - it begins behind the others, s it waits at its start, e at its end
    const char *begins;     // whether what comes behind it begins early: b
} Chain;

static const Chain CHAINS[] = {
    /* One launch waits for what its stream did before. What comes behind the program begins early where an SM has
       room for one block: two of 115 KB are more than the 228 KB that there are with the driver's share. */
    {.args = {{READ(A), WRITE(B)}}, .arg_count = {2}, .count = 1, .waits = "s", .begins = "-"},
    {.args = {{READ(A), WRITE(B)}}, .arg_count = {2}, .count = 1, .shared_bytes = 115 << 10, .waits = "s", .begins = "b"},
    {.args = {{READ(A), WRITE(B)}}, .arg_count = {2}, .count = 1, .shared_bytes = 113 << 10, .waits = "s", .begins = "-"},
    /* Sums in parts, and what adds them. */
    {.args = {{READ(A), WRITE_AT(0)}, {READ_AT(0), WRITE(B)}},
     .arg_count = {2, 2}, .count = 2, .waits = "ss", .begins = "b-"},
    /* Two packs and their product. */
    {.args = {{READ(A), WRITE_AT(0)}, {READ(B), WRITE_AT(512)}, {READ_AT(0), READ_AT(512), WRITE(C)}},
     .arg_count = {2, 2, 3}, .count = 3, .waits = "ses", .begins = "bb-"},
    /* The third has nothing to do with the second, but the first may still run. */
    {.args = {{READ(A), WRITE_AT(0)}, {READ(A), WRITE(B)}, {READ_AT(0), WRITE(C)}},
     .arg_count = {2, 2, 2}, .count = 3, .waits = "ses", .begins = "bb-"},
    /* Written behind a read, and written twice. */
    {.args = {{READ_AT(0), WRITE(B)}, {READ(A), WRITE_AT(0)}},
     .arg_count = {2, 2}, .count = 2, .waits = "ss", .begins = "b-"},
    {.args = {{READ(A), WRITE_AT(0)}, {READ(B), WRITE_AT(0)}},
     .arg_count = {2, 2}, .count = 2, .waits = "ss", .begins = "b-"},
    /* Places overlap from either side, or one begins where the other ends. */
    {.args = {{READ_AT(512), WRITE(B)}, {READ(A), WRITE_AT(256)}}, .arg_count = {2, 2}, .count = 2, .waits = "ss", .begins = "b-"},
    {.args = {{READ(A), WRITE_AT(256)}, {READ(A), WRITE_AT(512)}}, .arg_count = {2, 2}, .count = 2, .waits = "ss", .begins = "b-"},
    {.args = {{READ(A), WRITE_AT(512)}, {READ(A), WRITE_AT(0)}}, .arg_count = {2, 2}, .count = 2, .waits = "se", .begins = "b-"},
    /* Of what is only read there may be several readers; the last launch, too, may wait at its end. */
    {.args = {{READ(A), WRITE(B)}, {READ(A), WRITE(C)}}, .arg_count = {2, 2}, .count = 2, .waits = "se", .begins = "b-"},
    /* Neither a cooperative launch nor the one behind it is early. */
    {.args = {{READ(A), WRITE_AT(0)}, {READ_AT(0), WRITE_AT(512)}, {READ_AT(512), WRITE_AT(1024)},
              {READ_AT(1024), WRITE(B)}},
     .arg_count = {2, 2, 2, 2}, .count = 4, .cooperative = 1, .waits = "s--s", .begins = "--b-"},
};

START_TEST(who_begins_early_waits_where_it_must)
{
    const Chain *chain = &CHAINS[_i];
    Arena *arena = arena_new();
    Launch launches[4] = {0};
    LaunchArg args[4][3];
    for (int k = 0; k < chain->count; k++) {
        for (int i = 0; i < 3; i++)
            args[k][i] = chain->args[k][i];
        launches[k] = (Launch){
            .args = args[k], .arg_count = chain->arg_count[k], .shared_bytes = chain->shared_bytes, .grid = {1000, 1, 1}, .block = {1, 1, 1}};
    }
    if (chain->cooperative)
        launches[chain->cooperative].cooperative = true;
    const DeviceSpec device = SMS_OF_228_KB;
    chain_launches(arena, launches, chain->count, &device);
    arena_free(arena);
    for (int k = 0; k < chain->count; k++) {
        ck_assert_int_eq(launches[k].early, chain->waits[k] != '-');
        ck_assert_int_eq(launches[k].waits_last, chain->waits[k] == 'e');
        ck_assert_int_eq(launches[k].lets_begin, chain->begins[k] == 'b');
    }
}
END_TEST

/* Grids of a program's first launch and of its last one, or of its only one. */
static const struct {
    int64_t blocks[2];
    int kilobytes[2];
    bool brief, lets_begin;
} PLACES[] = {
    {.blocks = {132}, .kilobytes = {100}, .lets_begin = true},                    // an SM has one place beside each block
    {.blocks = {133}, .kilobytes = {100}, .lets_begin = false},                   // some have none, others one or two
    {.blocks = {132}, .kilobytes = {70}, .lets_begin = false},                    // two
    {.blocks = {132}, .kilobytes = {70}, .brief = true, .lets_begin = true},
    {.blocks = {132, 132}, .kilobytes = {100, 10}, .lets_begin = true},           // two, as if nothing were there
    {.blocks = {132, 132}, .kilobytes = {50, 10}, .lets_begin = true},            // four
    {.blocks = {132, 1000}, .kilobytes = {50, 10}, .lets_begin = false},
    {.blocks = {1000, 132}, .kilobytes = {100, 100}, .lets_begin = true},
};

START_TEST(the_next_call_begins_early_where_its_blocks_spread)
{
    Arena *arena = arena_new();
    LaunchArg args[2][2] = {{READ(A), WRITE_AT(0)}, {READ_AT(0), WRITE(B)}};
    Launch launches[2] = {0};
    int count = PLACES[_i].blocks[1] ? 2 : 1;
    for (int k = 0; k < count; k++)
        launches[k] = (Launch){.args = args[k],
                               .arg_count = 2,
                               .brief = PLACES[_i].brief,
                               .shared_bytes = PLACES[_i].kilobytes[k] << 10,
                               .grid = {PLACES[_i].blocks[k], 1, 1},
                               .block = {32, 1, 1}};
    const DeviceSpec device = SMS_OF_228_KB;
    chain_launches(arena, launches, count, &device);
    ck_assert_int_eq(launches[count - 1].lets_begin, PLACES[_i].lets_begin);
    arena_free(arena);
}
END_TEST

/* A weight of both launches, what the first one makes, and what the second one makes of them. */
START_TEST(what_no_launch_writes_may_be_read_before_waiting)
{
    Arena *arena = arena_new();
    LaunchArg first[] = {READ(A), WRITE_AT(0)}, second[] = {READ(A), READ_AT(0), READ_AT(512), WRITE(B)};
    Launch launches[] = {{.args = first, .arg_count = 2, .block = {1, 1, 1}}, {.args = second, .arg_count = 4, .block = {1, 1, 1}}};
    const DeviceSpec device = SMS_OF_228_KB;
    chain_launches(arena, launches, 2, &device);
    ck_assert(!first[0].early && !first[1].early);   // before the program anybody may write it
    ck_assert(second[0].early && !second[1].early && !second[3].early);
    ck_assert(!second[2].early);   // other bytes of the buffer: places are used again
    launches[0].cooperative = true;
    chain_launches(arena, launches, 2, &device);
    ck_assert(!second[0].early);   // begins when the first one has ended
    arena_free(arena);
}
END_TEST

typedef struct Grid {
    int blocks, threads, shared_bytes;
} Grid;

typedef struct Room {
    Grid before, launch;
    bool finds;
} Room;

static const Room ROOMS[] = {
    /* One block an SM, of 10: six SMs are free, and four. */
    {{4, 256, 120 << 10}, {12, 256, 120 << 10}, true},
    {{6, 256, 120 << 10}, {12, 256, 120 << 10}, false},
    /* The last of 26 blocks are six. */
    {{26, 256, 120 << 10}, {8, 256, 120 << 10}, true},
    {{26, 256, 120 << 10}, {9, 256, 120 << 10}, false},
    /* Beside each block there is room for another one, for two of half its threads, and for none. */
    {{10, 1024, 0}, {20, 1024, 0}, true},
    {{10, 1024, 0}, {21, 1024, 0}, false},
    {{10, 1024, 0}, {40, 512, 0}, true},
    {{20, 1024, 0}, {1, 512, 0}, false},
    /* An SM has eight blocks at most. */
    {{70, 32, 0}, {20, 32, 0}, true},
    {{70, 32, 0}, {21, 32, 0}, false},
    {{80, 32, 0}, {1, 32, 0}, false},
};

START_TEST(most_blocks_find_room_or_do_not)
{
    const Room *room = &ROOMS[_i];
    const Grid *grids[] = {&room->before, &room->launch};
    const DeviceSpec device = {.sm_count = 10, .shared_per_sm = 228 << 10, .shared_reserved_per_block = 1 << 10,
                               .max_threads_per_sm = 2048, .max_blocks_per_sm = 8};
    Launch launches[2] = {0};
    for (int k = 0; k < 2; k++)
        launches[k] = (Launch){.grid = {grids[k]->blocks, 1, 1}, .block = {grids[k]->threads, 1, 1},
                               .shared_bytes = grids[k]->shared_bytes};
    Arena *arena = arena_new();
    chain_launches(arena, launches, 2, &device);
    arena_free(arena);
    ck_assert(!launches[0].finds_room);
    ck_assert_int_eq(launches[1].finds_room, room->finds);
}
END_TEST

static void check_opening(const Launch *launch, bool joined, const char *wanted)
{
    Arena *arena = arena_new();
    ck_assert_str_eq(chain_opening(arena, launch, joined), wanted);
    arena_free(arena);
}

START_TEST(a_kernel_begins_with_it)
{
    Launch behind = {0}, alone = {.early = true}, first = {.lets_begin = true, .early = true};
    Launch free_one = {.early = true, .lets_begin = true, .waits_last = true};
    check_opening(&behind, false, "");
    check_opening(&alone, false, "\n    wait_for_earlier();   // programmatic dependent launch: earlier launches have completed");
    check_opening(&first, true, " wait_for_earlier(); let_next_begin();");   // lines keep their numbers
    check_opening(&free_one, true, " const WaitsAtItsEnd waits_at_its_end; let_next_begin();");
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("chain");
    tcase_add_loop_test(cases, the_next_call_begins_early_where_its_blocks_spread, 0, sizeof PLACES / sizeof *PLACES);
    tcase_add_loop_test(cases, who_begins_early_waits_where_it_must, 0, sizeof CHAINS / sizeof *CHAINS);
    tcase_add_test(cases, what_no_launch_writes_may_be_read_before_waiting);
    tcase_add_loop_test(cases, most_blocks_find_room_or_do_not, 0, sizeof ROOMS / sizeof *ROOMS);
    tcase_add_test(cases, a_kernel_begins_with_it);
    Suite *suite = suite_create("chain");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
