// Places of the workspace: what lies there together, and how much they take.
#include "codegen/lives.h"

#include <check.h>
#include <limits.h>
#include <stdlib.h>

enum { MOST = 400, UNIT = 256 };

static Arena *arena;

static void setup(void) { arena = arena_new(); }
static void teardown(void) { arena_free(arena); }

/* A program whose launch i writes life i and reads those of `reads`. */
typedef struct Graph {
    int count;
    int64_t bytes[MOST];
    int reads[MOST][4], read_count[MOST];
} Graph;

typedef struct Placed {
    Life lives[MOST];
    BitRows later;
    LivesPlan plan;
} Placed;

static Placed *place(const Graph *graph)
{
    Placed *placed = NEW(arena, Placed);
    placed->later = bit_rows_new(arena, graph->count);
    int (*readers)[MOST] = arena_alloc_array(arena, MOST, sizeof *readers);
    for (int i = 0; i < graph->count; i++)
        placed->lives[i] = (Life){.bytes = graph->bytes[i], .writer = i, .readers = readers[i]};
    for (int i = graph->count - 1; i >= 0; i--)
        for (int r = 0; r < graph->read_count[i]; r++) {
            Life *read = &placed->lives[graph->reads[i][r]];
            readers[graph->reads[i][r]][read->reader_count++] = i;
            bit_set(&placed->later, read->writer, i);
            bit_row_join(&placed->later, read->writer, i);
        }
    placed->plan = lives_place(placed->lives, graph->count, &placed->later);
    return placed;
}

static void write_after(Graph *graph, int64_t bytes, int count, const int *reads)
{
    int i = graph->count++;
    graph->bytes[i] = bytes * UNIT;
    for (int r = 0; r < count; r++)
        graph->reads[i][graph->read_count[i]++] = reads[r];
}
#define WRITE(graph, bytes, ...)                                                                             \
    write_after(graph, bytes, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]){__VA_ARGS__})

// ---- what may share bytes ----

static bool meet(const Life *a, const Life *b)
{
    return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static bool has_ended(const Placed *placed, const Life *life, int launch)
{
    bool ended = bit_get(&placed->later, life->writer, launch) || life->writer + (int64_t)placed->plan.window < launch;
    for (int i = 0; i < life->reader_count; i++)
        ended &= bit_get(&placed->later, life->readers[i], launch) || life->readers[i] + (int64_t)placed->plan.window < launch;
    return ended;
}

static void check_apart(const Graph *graph, const Placed *placed)
{
    for (int a = 0; a < graph->count; a++)
        for (int b = a + 1; b < graph->count; b++)
            ck_assert_msg(has_ended(placed, &placed->lives[a], b) || !meet(&placed->lives[a], &placed->lives[b]),
                          "%d lies where %d is not over", b, a);
}

START_TEST(a_line_takes_two_places_in_turn)
{
    Graph graph = {0};
    write_after(&graph, 4, 0, NULL);
    for (int i = 1; i < 20; i++)
        WRITE(&graph, i % 2 ? 3 : 4, i - 1);
    Placed *placed = place(&graph);
    ck_assert_int_eq(placed->plan.alive, 7 * UNIT);
    ck_assert_int_eq(placed->plan.bytes, 7 * UNIT);
    ck_assert_int_eq(placed->plan.window, INT_MAX);
    check_apart(&graph, placed);
}
END_TEST

/* Launches 1 and 2 read what 0 made, 3 and 4 go on from them, 5 joins them. One after the other, 3 may have 1's place, or 0's; 4
   may have 0's only once 1 has ended, too. */
START_TEST(branches_do_not_share)
{
    Graph graph = {0};
    write_after(&graph, 1, 0, NULL);
    WRITE(&graph, 8, 0), WRITE(&graph, 8, 0);
    WRITE(&graph, 8, 1), WRITE(&graph, 8, 2), WRITE(&graph, 1, 3, 4);
    Placed *placed = place(&graph);
    check_apart(&graph, placed);
    ck_assert(!meet(&placed->lives[1], &placed->lives[4]) || placed->plan.window < 3);
}
END_TEST

/* Launch 0 makes life 0, which launch 1 reads for life 1; launches 2 and 3 make parts of life 2, of which the second reads life 1 and
   the first reads nothing: life 2 may have neither's place. */
START_TEST(all_who_make_parts_come_after_who_lay_there)
{
    static const int other[] = {3}, read_by_1[] = {1}, read_by_3[] = {3};
    Life lives[] = {{.bytes = 4 * UNIT, .writer = 0, .readers = read_by_1, .reader_count = 1},
                    {.bytes = 4 * UNIT, .writer = 1, .readers = read_by_3, .reader_count = 1},
                    {.bytes = 4 * UNIT, .writer = 2, .others = other, .other_count = 1}};
    BitRows later = bit_rows_new(arena, 4);
    bit_set(&later, 1, 3), bit_set(&later, 0, 3), bit_set(&later, 0, 1);
    LivesPlan plan = lives_place(lives, 3, &later);
    ck_assert(plan.window == 0 || !meet(&lives[0], &lives[2]));
    bit_set(&later, 1, 2), bit_set(&later, 0, 2);   // the other one reads it, too: it has life 0's place
    plan = lives_place(lives, 3, &later);
    ck_assert_int_eq(plan.window, INT_MAX);
    ck_assert_int_eq(plan.bytes, 8 * UNIT);
    ck_assert_int_eq(lives[0].offset, lives[2].offset);
}
END_TEST

/* 20 lines of 3 launches that have nothing to do with each other. */
START_TEST(far_too_many_branches_follow_the_stream)
{
    Graph graph = {0};
    for (int line = 0; line < 20; line++) {
        write_after(&graph, 10, 0, NULL);
        WRITE(&graph, 10, graph.count - 1);
        WRITE(&graph, 10, graph.count - 1);
    }
    Placed *placed = place(&graph);
    ck_assert_int_eq(placed->plan.window, 0);
    ck_assert_int_eq(placed->plan.alive, 20 * UNIT);
    ck_assert_int_eq(placed->plan.bytes, 20 * UNIT);
    check_apart(&graph, placed);
}
END_TEST

// ---- random programs ----

static uint64_t state;

static int draw(int below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)(state >> 33) % below;
}

/* Each launch reads what was made shortly before, and now and then something older: residuals, branches, joins. */
static Graph random_graph(int seed)
{
    Graph graph = {0};
    state = (uint64_t)seed;
    int count = 20 + draw(MOST - 20), reach = 1 + draw(6), sizes = 1 + draw(40);
    while (graph.count < count) {
        int reads[3], read_count = graph.count ? 1 + draw(3) : 0;
        for (int r = 0; r < read_count; r++) {
            int back = 1 + draw(draw(8) ? reach : 4 * reach);
            reads[r] = back > graph.count ? graph.count - 1 : graph.count - back;
        }
        write_after(&graph, 1 + draw(sizes) * (draw(3) ? 1 : 16), read_count, reads);
    }
    return graph;
}

START_TEST(random_programs_stay_within_the_bound)
{
    Graph graph = random_graph(_i + 1);
    Placed *placed = place(&graph);
    double most = placed->plan.window == 16 ? 1.5 : 1.15;
    ck_assert_int_ge(placed->plan.bytes, placed->plan.alive);
    ck_assert_msg((double)placed->plan.bytes <= most * (double)placed->plan.alive, "%d launches: %lld bytes for %lld, window %d",
                  graph.count, (long long)placed->plan.bytes, (long long)placed->plan.alive, placed->plan.window);
    check_apart(&graph, placed);
}
END_TEST

START_TEST(places_are_the_same_each_time)
{
    Graph graph = random_graph(_i + 1);
    const Placed *one = place(&graph), *two = place(&graph);
    for (int i = 0; i < graph.count; i++)
        ck_assert_int_eq(one->lives[i].offset, two->lives[i].offset);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("lives");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, a_line_takes_two_places_in_turn);
    tcase_add_test(cases, branches_do_not_share);
    tcase_add_test(cases, all_who_make_parts_come_after_who_lay_there);
    tcase_add_test(cases, far_too_many_branches_follow_the_stream);
    tcase_add_loop_test(cases, random_programs_stay_within_the_bound, 0, 60);
    tcase_add_loop_test(cases, places_are_the_same_each_time, 0, 10);
    Suite *suite = suite_create("lives");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
