// Families that take a point's position for an address stop the compiler where an output lies in another order.
#include <signal.h>

#include "../ir/build.h"
#include "codegen/family/family.h"
#include "rtile/space.h"

enum { MOST_PROGRAMS = 4 };

static Expr *is_above(Build *build, Expr *left, Expr *right) { return build_op(build, OP_GT, left, right, NULL); }

/* y[i, j] = x[j, i] > 0 */
static void bits(Build *build)
{
    Tensor *x = INPUT(build, DTYPE_F32, 32, 6);
    Expr *zero = build_const(build, DTYPE_F32, 0);
    POINTWISE(build, ROLE_OUTPUT, DTYPE_B1, is_above(build, AT(build, x, 1, 0), zero), 6, 32);
}

/* y[i, j] = relu(x[j, i]) */
static void turned(Build *build)
{
    Tensor *x = INPUT(build, DTYPE_F32, 300, 200);
    POINTWISE(build, ROLE_OUTPUT, DTYPE_F32, build_op(build, OP_RELU, AT(build, x, 1, 0), NULL, NULL), 200, 300);
}

/* s[c] = sum[n](x[n, c]); y[n, c] = x[n, c] > s[c] */
static void bits_of_channels(Build *build)
{
    Tensor *x = INPUT(build, DTYPE_F32, 64, 32);
    Tensor *s = REDUCTION(build, ROLE_TEMPORARY, DTYPE_F32, REDUCE_SUM, 1, AT(build, x, 1, 0), 32, 64);
    POINTWISE(build, ROLE_OUTPUT, DTYPE_B1, is_above(build, AT(build, x, 0, 1), AT(build, s, 1)), 64, 32);
}

/* s[c] = sum[n, h](x[n, c, h]); y[n, c, h] = x[n, c, h] > s[c] */
static void bits_of_maps(Build *build)
{
    Tensor *x = INPUT(build, DTYPE_F32, 8, 6, 64);
    Tensor *s = REDUCTION(build, ROLE_TEMPORARY, DTYPE_F32, REDUCE_SUM, 2, AT(build, x, 1, 0, 2), 6, 8, 64);
    POINTWISE(build, ROLE_OUTPUT, DTYPE_B1, is_above(build, AT(build, x, 0, 1, 2), AT(build, s, 1)), 8, 6, 64);
}

/* As a stage that mixes up dimensions would leave it: the first and the last one of every store change places. */
static void break_stores(Arena *arena, Fusion *fusion)
{
    for (int i = 0; i < fusion->op_count; i++) {
        Access *store = &fusion->ops[i].store;
        Dim *dims = NEW_ARRAY(arena, Dim, store->rank);
        for (int d = 0; d < store->rank; d++)
            dims[d] = store->dims[d == 0 ? store->rank - 1 : d == store->rank - 1 ? 0 : d];
        store->dims = dims;
    }
}

/* Emits the fusion in every way that the family has for it before its stores are broken. */
static int emit(Arena *arena, const Family *family, Fusion *fusion, bool broken)
{
    const DeviceSpec *device = device_read(arena, "h200");
    const Target target = {.device = device, .math = EVAL_EXACT};
    Viewed viewed = {.arena = arena, .fusion = fusion, .target = &target};
    KernelKind *variants = NEW_ARRAY(arena, KernelKind, MAX_VARIANTS);
    int variant_count = family_kinds(arena, family, &viewed, variants), count = 0;
    if (broken)
        break_stores(arena, fusion);
    for (int v = 0; v < variant_count; v++) {
        RProgram programs[MOST_PROGRAMS];
        ConstructStats stats = {0};
        int made = rprogram_construct(arena, &variants[v], &(Target){.device = device}, 0, MOST_PROGRAMS, programs, &stats);
        for (int i = 0; i < made; i++) {
            StrBuf out = strbuf_new(arena);
            KernelPlan plan = {.fusion = fusion, .kind = &variants[v], .program = &programs[i], .device = device};
            plan.view = family_view(family, &viewed);
            plan.threads = launch_threads(family, &programs[i], device);
            family->emit(&out, &plan);
            count += out.length > 0;
        }
    }
    return count;
}

/* Of every kernel that the family takes. */
static int emit_all(void (*define)(Build *), const Family *family, bool broken)
{
    Build *build = build_new();
    define(build);
    FusionPlans plans = fuse(build->arena, &build->program);
    int count = 0;
    for (int p = 0; p < plans.count; p++)
        for (int f = 0; f < plans.plans[p].count; f++)
            count += emit(build->arena, family, plans.plans[p].fusions[f], broken);
    build_free(build);
    return count;
}

START_TEST(stores_in_order_are_emitted)
{
    ck_assert_int_gt(emit_all(bits, &elementwise_family, false), 0);
    ck_assert_int_gt(emit_all(bits, &loopnest_family, false), 0);
    ck_assert_int_gt(emit_all(turned, &permute_family, false), 0);
    ck_assert_int_gt(emit_all(bits_of_channels, &channelwise_family, false), 0);
    ck_assert_int_gt(emit_all(bits_of_maps, &rowwise_family, false), 0);
}
END_TEST

START_TEST(points_packed_out_of_order_are_a_bug) { emit_all(bits, &elementwise_family, true); }
END_TEST

START_TEST(words_of_points_out_of_order_are_a_bug) { emit_all(bits, &loopnest_family, true); }
END_TEST

START_TEST(tiles_stored_out_of_order_are_a_bug) { emit_all(turned, &permute_family, true); }
END_TEST

START_TEST(channels_packed_out_of_order_are_a_bug) { emit_all(bits_of_channels, &channelwise_family, true); }
END_TEST

START_TEST(maps_packed_out_of_order_are_a_bug) { emit_all(bits_of_maps, &rowwise_family, true); }
END_TEST

START_TEST(bits_of_another_order_match_no_family_of_points)
{
    Build *build = build_new();
    bits(build);
    const Target target = {.device = device_read(build->arena, "h200"), .math = EVAL_EXACT};
    Fusion *fusion = fuse(build->arena, &build->program).plans[0].fusions[0];
    ck_assert(access_is_flat(&fusion->ops[0].store, fusion) && bits_are_flat(fusion));
    break_stores(build->arena, fusion);
    ck_assert(!access_is_flat(&fusion->ops[0].store, fusion) && !bits_are_flat(fusion));
    ck_assert(!elementwise_family.view(build->arena, fusion, &target));
    ck_assert(!loopnest_family.view(build->arena, fusion, &target));
    build_free(build);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, stores_in_order_are_emitted);
    tcase_add_test(tests, bits_of_another_order_match_no_family_of_points);
    tcase_add_test_raise_signal(tests, points_packed_out_of_order_are_a_bug, SIGABRT);
    tcase_add_test_raise_signal(tests, words_of_points_out_of_order_are_a_bug, SIGABRT);
    tcase_add_test_raise_signal(tests, tiles_stored_out_of_order_are_a_bug, SIGABRT);
    tcase_add_test_raise_signal(tests, channels_packed_out_of_order_are_a_bug, SIGABRT);
    tcase_add_test_raise_signal(tests, maps_packed_out_of_order_are_a_bug, SIGABRT);
}

int main(void) { return build_run("store order", add); }
