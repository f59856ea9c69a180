#include "schedule/schedule.h"

#include <check.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "kinds.h"
#include "kernel/schedule/count.h"
#include "kernel/layout.h"

enum { ROW, COLUMN };

/* Rows of 1024 floats, one for each block of 128 threads; x is read and y written. */
static KernelKind row_kind(int64_t rows)
{
    KernelKind kind = {
        .space = space_made((TileSpace){0}), .schedule = schedule_empty(), .name = "block"};
    kind.space->axes[kind.space->axis_count++] = (Axis){.name = "row", .extent = rows};
    kind.space->axes[kind.space->axis_count++] = (Axis){.name = "column", .extent = 1024, .reduction = true};
    for (int i = 0; i < 2; i++)
        kind.space->tiles[kind.space->tile_count++] = (DataTile){
            .name = i ? "y" : "x",
            .rank = 2,
            .dims = {{affine_axis(ROW), rows}, {affine_axis(COLUMN), 1024}},
            .element_bits = 32,
            .scatter = 1,
            .output = i == 1,
        };
    return kind;
}

static const Move LOAD_X = {.tiles = 1};
static const Move STORE_Y = {.tiles = 2};
static const Move COPY_X = {.tiles = 1, .to = PLACE_SHARED, .async = true};

static Exchange of_warps(int op)
{
    return (Exchange){
        .ops = UINT64_C(1) << op,
        .scope = SCOPE_BLOCK,
        .combine = COMBINE_ALL,
        .bytes = 4,
        .value_bytes = 4,
        .parts = 4,
        .width = 32,
    };
}

static Counts counts_of_fusion(Arena *arena, const KernelKind *kind, const Fusion *fusion, bool last)
{
    DeviceSpec device = a100();
    RTile shared = {{1, 1024}}, inner = {{1, 8}};
    CountedBlock block = {.shared = &shared, .inner = &inner, .threads = 128, .last = last};
    return schedule_count(arena, kind, fusion, &device, &block);
}

static Counts counts_of(Arena *arena, const KernelKind *kind, bool last)
{
    Fusion none = {0};
    return counts_of_fusion(arena, kind, &none, last);
}

START_TEST(equal_schedules_have_equal_bytes)
{
    Schedule made[2];   // whatever the memory held: kinds are told apart by all bytes of theirs
    for (int i = 0; i < 2; i++) {
        memset(&made[i], i ? 0xa5 : 0x5a, sizeof made[i]);
        memset(&made[i], 0, offsetof(Schedule, items));
        schedule_load(&made[i], (Move){.tiles = 1});
        schedule_wait(&made[i], 0);
        schedule_reduce(&made[i], 1);
        schedule_barrier(&made[i], SCOPE_BLOCK);
        schedule_end(&made[i]);
    }
    ck_assert_mem_eq(&made[0], &made[1], schedule_bytes(&made[0]));
}
END_TEST

/* Four warps leave 4 bytes each, and 128 threads go through all four: 16 written, 2048 read, after 5 shuffles and before one
   barrier. A row is 4096 bytes, 128 sectors. */
START_TEST(results_of_warps_meet_in_shared_memory)
{
    Arena *arena = arena_new();
    KernelKind kind = row_kind(3);
    schedule_load(kind.schedule, LOAD_X);
    schedule_exchange(kind.schedule, of_warps(0));
    schedule_store(kind.schedule, STORE_Y);
    Counts counts = counts_of(arena, &kind, true);
    ck_assert_int_eq(counts.sectors[0], 128);
    ck_assert_int_eq(counts.sectors[1], 128);
    ck_assert_int_eq(counts.shared_written, 16);
    ck_assert_int_eq(counts.shared_read, 2048);
    ck_assert_int_eq(counts.shuffles, 5);
    ck_assert_int_eq(counts.barriers[SCOPE_BLOCK], 1);
    schedule_set_shared(&kind);
    ck_assert_int_eq(kind.shared.bytes, 16);
    arena_free(arena);
}
END_TEST

/* The second exchange has a place of its own: 2 * 16 bytes. The row that is kept lies behind both. */
START_TEST(what_is_kept_lies_behind_the_results)
{
    KernelKind kind = row_kind(3);
    kind.schedule->kept = 1024;
    schedule_load(kind.schedule, COPY_X);
    schedule_wait(kind.schedule, 0);
    schedule_exchange(kind.schedule, of_warps(0));
    schedule_exchange(kind.schedule, of_warps(1));
    schedule_set_shared(&kind);
    ck_assert_int_eq(layout_region(&kind.shared, "PARTIAL")->bytes, 32);
    ck_assert_int_eq(layout_region(&kind.shared, "COPIES")->at, 32);
    ck_assert_int_eq(kind.shared.bytes, 32 + 4096);
}
END_TEST

/* Two rows, a group of copies each: the first wait leaves one under way, the second none. */
START_TEST(waits_count_what_is_still_under_way)
{
    Arena *arena = arena_new();
    KernelKind kind = row_kind(2);
    kind.schedule->rows = 2;
    schedule_load(kind.schedule, COPY_X);
    schedule_wait(kind.schedule, 1);
    schedule_wait(kind.schedule, 0);
    Counts counts = counts_of(arena, &kind, false);
    ck_assert_int_eq(counts.waits, 2);
    ck_assert_int_eq(counts.pending, 1);
    ck_assert_int_eq(counts.shared_written, 4096);
    arena_free(arena);
}
END_TEST

/* Of seven rows a block makes four in turn, the last one three. */
START_TEST(the_last_block_may_make_fewer_rows)
{
    Arena *arena = arena_new();
    KernelKind kind = row_kind(7);
    schedule_loop(kind.schedule, (Loop){.axis = ROW, .times = 4});
    schedule_load(kind.schedule, LOAD_X);
    schedule_exchange(kind.schedule, of_warps(0));
    schedule_end(kind.schedule);
    Counts first = counts_of(arena, &kind, false), last = counts_of(arena, &kind, true);
    ck_assert_int_eq(first.sectors[0], 4 * 128);
    ck_assert_int_eq(last.sectors[0], 3 * 128);
    ck_assert_int_eq(first.barriers[SCOPE_BLOCK], 4);
    ck_assert_int_eq(last.barriers[SCOPE_BLOCK], 3);
    arena_free(arena);
}
END_TEST

/* Weights are read late where they come from L2 in a pass, and not where they come before all else. */
START_TEST(questions_are_answered_by_the_items)
{
    Schedule early = {0}, late = {0};
    Move weights = {.tiles = 1, .from = PLACE_L2}, ahead = COPY_X;
    schedule_load(&early, weights);
    ck_assert(!schedule_reads_late(&early) && !schedule_loads_ahead(&early));
    schedule_loop(&late, (Loop){.axis = ROW, .times = 8});
    schedule_loop(&late, (Loop){.axis = COLUMN, .times = 3});
    schedule_load(&late, weights);
    schedule_end(&late);
    ahead.ahead = 1;
    schedule_load(&late, ahead);
    ck_assert(schedule_reads_late(&late) && schedule_loads_ahead(&late));
    ck_assert_int_eq(schedule_rounds(&late, 2), 24);
    ck_assert_int_eq(schedule_rounds(&late, 4), 8);
}
END_TEST

// ---- arithmetic ----

static Tensor ROW_TENSOR = {.name = "x", .rank = 2, .shape = {3, 1024}, .dtype = DTYPE_F32};
static Expr ELEMENT = {.kind = EXPR_ACCESS, .type = DTYPE_F32, .access = {.tensor = &ROW_TENSOR}};
static Expr CONSTANT = {.kind = EXPR_CONST, .type = DTYPE_F32, .constant = {.real = 3}};
static Expr SQUARE = {.kind = EXPR_APPLY, .type = DTYPE_F32, .apply = {OP_SQ, {&ELEMENT}}};
static Expr TOTAL = {.kind = EXPR_VALUE, .type = DTYPE_F32, .value = 0};
static Expr SCALED = {.kind = EXPR_APPLY, .type = DTYPE_F32, .apply = {OP_MUL, {&ELEMENT, &TOTAL}}};
static Expr EXPONENTIAL = {.kind = EXPR_APPLY, .type = DTYPE_F32, .apply = {OP_EXP, {&SCALED}}};
static Expr QUOTIENT = {.kind = EXPR_APPLY, .type = DTYPE_F32, .apply = {OP_DIV, {&EXPONENTIAL, &CONSTANT}}};

/* s[i] = sum[j](sq(x[i, j])), y[i, j] = exp(x[i, j] * s[i]), or a third of that. */
static Counts counts_of_rows(Arena *arena, bool divides)
{
    FusedOp ops[] = {
        {.out = &ROW_TENSOR, .spatial = 1, .reduced = 2, .reduce = REDUCE_SUM, .body = &SQUARE},
        {.out = &ROW_TENSOR, .spatial = 3, .body = divides ? &QUOTIENT : &EXPONENTIAL},
    };
    Fusion fusion = {.spatial_count = 1, .axis_count = 2, .ops = ops, .op_count = 2};
    KernelKind kind = row_kind(3);
    kind.space->least_reducers = 1;
    schedule_reduce(kind.schedule, 1);
    schedule_map(kind.schedule, 2);
    return counts_of_fusion(arena, &kind, &fusion, false);
}

/* A square and a product for each of 1024 elements, as many sums, and an exponential. */
START_TEST(arithmetic_is_that_of_the_expressions)
{
    Arena *arena = arena_new();
    Counts counts = counts_of_rows(arena, false);
    ck_assert_int_eq(counts.multiplications, 1024 + 1024);
    ck_assert_int_eq(counts.additions, 1024);
    ck_assert_int_eq(counts.functions, 1024);
    ck_assert_int_eq(counts.comparisons, 0);
    arena_free(arena);
}
END_TEST

/* A quotient by 3: a product with a third, what is left of the dividend, and the correction are 3 products and 2 sums more. */
START_TEST(a_quotient_by_a_constant_is_made_by_its_reciprocal)
{
    Arena *arena = arena_new();
    Counts counts = counts_of_rows(arena, true);
    ck_assert_int_eq(counts.multiplications, (1024 + 1024) + 3 * 1024);
    ck_assert_int_eq(counts.additions, 1024 + 2 * 1024);
    ck_assert_int_eq(counts.functions, 1024);
    arena_free(arena);
}
END_TEST

/* Two steps of 64 along k multiply 32 x 16 each: 2 * 64 * 32 * 16, though k has 100. */
START_TEST(a_product_multiplies_whole_tiles)
{
    enum { M, N, K };
    Arena *arena = arena_new();
    KernelKind kind = {.schedule = schedule_empty(),
                       .space = space_made((TileSpace){.axis_count = 3, .axes = {{"m", 40}, {"n", 16}, {"k", 100, .reduction = true}}})};
    kind.space->tiles[kind.space->tile_count++] = (DataTile){.name = "a", .staged = true};
    RTile shared = {{32, 16, 64}}, inner = {{4, 4, 1}};
    CountedBlock block = {.shared = &shared, .inner = &inner, .threads = 32};
    Fusion none = {0};
    DeviceSpec device = a100();
    schedule_loop(kind.schedule, (Loop){.axis = K});
    schedule_product(kind.schedule, 1);
    schedule_end(kind.schedule);
    Counts counts = schedule_count(arena, &kind, &none, &device, &block);
    ck_assert_int_eq(counts.multiplications, 2 * 64 * 32 * 16);
    ck_assert_int_eq(counts.tensor_products, 0);
    kind.space->unit = UNIT_TENSOR_F16;
    counts = schedule_count(arena, &kind, &none, &device, &block);
    ck_assert_int_eq(counts.multiplications, 0);
    ck_assert_int_eq(counts.tensor_products, 2 * 64 * 32 * 16);
    ck_assert_int_eq(counts.multiplying_warps, 1);
    arena_free(arena);
}
END_TEST

/* Six tiles of 32 x 16 on four blocks: the last block makes tile 3 in row 1 and tile 5 in row 2, both of column 1; the first one
   tile 0 alone. Of rows of 32 bytes (a) a tile has 32 sectors, of 64 (c) 64; b is 8 rows of 64 bytes, the same for both tiles. */
START_TEST(persistent_blocks_make_several_tiles)
{
    enum { M, N, K };
    Arena *arena = arena_new();
    KernelKind kind = {.schedule = schedule_empty(),
                       .space = space_made((TileSpace){.axis_count = 3, .axes = {{"m", 96}, {"n", 32}, {"k", 8, .reduction = true}}})};
    Dim m = {affine_axis(M), 96}, n = {affine_axis(N), 32}, k = {affine_axis(K), 8};
    kind.schedule->order = ORDER_PANELS;
    kind.space->tile_count = 3;
    kind.space->tiles[0] = (DataTile){"a", 2, {m, k}, .element_bits = 32, .scatter = 1};
    kind.space->tiles[1] = (DataTile){"b", 2, {k, n}, .element_bits = 32, .scatter = 1};
    kind.space->tiles[2] = (DataTile){"c", 2, {m, n}, .element_bits = 32, .scatter = 1, .output = true};
    schedule_barrier(kind.schedule, SCOPE_BLOCK);
    schedule_loop(kind.schedule, (Loop){.tiles = true});
    schedule_load(kind.schedule, (Move){.tiles = 3});
    schedule_barrier(kind.schedule, SCOPE_BLOCK);
    schedule_store(kind.schedule, (Move){.tiles = 4});
    schedule_end(kind.schedule);
    RTile shared = {{32, 16, 8}}, inner = {{4, 4, 1}};
    Fusion none = {0};
    DeviceSpec device = a100();
    for (int last = 0; last < 2; last++) {
        CountedBlock block = {&shared, &inner, .threads = 32, .turns = 2, .grid = 4, .last = last};
        Counts counts = schedule_count(arena, &kind, &none, &device, &block);
        ck_assert_int_eq(counts.sectors[0], last ? 64 : 32);
        ck_assert_int_eq(counts.sectors[1], 16);
        ck_assert_int_eq(counts.sectors[2], last ? 128 : 64);
        ck_assert_int_eq(counts.barriers[SCOPE_BLOCK], last ? 3 : 2);
    }
    arena_free(arena);
}
END_TEST

START_TEST(more_items_than_there_is_room_for_are_told)
{
    Schedule schedule = {0};
    for (int i = 0; i < MAX_ITEMS; i++)
        schedule_barrier(&schedule, SCOPE_BLOCK);
    ck_assert(!schedule.overflows);
    schedule_barrier(&schedule, SCOPE_BLOCK);
    ck_assert(schedule.overflows);
    ck_assert_int_eq(schedule.count, MAX_ITEMS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule");
    TCase *tcase = tcase_create("schedule");
    tcase_add_test(tcase, equal_schedules_have_equal_bytes);
    tcase_add_test(tcase, results_of_warps_meet_in_shared_memory);
    tcase_add_test(tcase, what_is_kept_lies_behind_the_results);
    tcase_add_test(tcase, waits_count_what_is_still_under_way);
    tcase_add_test(tcase, the_last_block_may_make_fewer_rows);
    tcase_add_test(tcase, questions_are_answered_by_the_items);
    tcase_add_test(tcase, arithmetic_is_that_of_the_expressions);
    tcase_add_test(tcase, a_quotient_by_a_constant_is_made_by_its_reciprocal);
    tcase_add_test(tcase, a_product_multiplies_whole_tiles);
    tcase_add_test(tcase, persistent_blocks_make_several_tiles);
    tcase_add_test(tcase, more_items_than_there_is_room_for_are_told);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
