// Products of which only reductions of the rows are kept: which programs are some, and how they are cut.
#include <check.h>
#include <string.h>

#include "codegen/family/family.h"
#include "codegen/family/gemm/product_rows.h"
#include "front/lex.h"
#include "front/lower.h"
#include "front/parse.h"
#include "ir/row_tiles.h"

static Arena *arena;
static void begin(void) { arena = arena_new(); }
static void end(void) { arena_free(arena); }

static FusionPlans plans_of(const char *text)
{
    const Source *source = source_from_text(arena, "case.te", text, strlen(text));
    return fuse(arena, lower(arena, parse(arena, lex(arena, source)), NULL, 0));
}

/* The kernel of a product and its rows; NULL: no plan has one. */
static const Fusion *whole_of(const char *text)
{
    FusionPlans plans = plans_of(text);
    const FusionPlan *last = &plans.plans[plans.count - 1];
    for (int i = 0; i < last->count && !strcmp(last->name, "tiles"); i++)
        if (last->fusions[i]->streams)
            return last->fusions[i];
    return NULL;
}

#define INPUTS "input x[40, 32] : f16  input w[300, 32] : f16  input n[300] : f32\n"
#define PRODUCT "l[i, j] = sum[d](x[i, d] * w[j, d])\n"
#define MAXIMUM "m[i] = max[j](l[i, j])\n"
#define SUM "z[i] = sum[j](exp(l[i, j] - m[i]))\n"

static const char *const chains[] = {
    INPUTS PRODUCT MAXIMUM SUM "y[i] = m[i] + log(z[i])\noutput y",
    INPUTS PRODUCT MAXIMUM SUM "output m  output z",
    INPUTS PRODUCT "t[i, j] = n[j] - 2 * l[i, j]\nm[i] = min[j](t[i, j])\na[i] = min[j](select(t[i, j] == "
                   "m[i], j, 300))\noutput a",
    INPUTS PRODUCT "y[i] = sum[j](sq(l[i, j]))\noutput y",
    INPUTS "l[i, j] : f16 = sum[d](x[i, d] * w[j, d])\n" MAXIMUM "e[i, j] = exp(l[i, j] - m[i])\n"
           "y[i] = sum[j](e[i, j] * l[i, j])\noutput y",
    INPUTS "l[i, j] = sum[d](x[i, d] * w[j, d]) / 8\n" MAXIMUM SUM "output z",
};

/* Why: its elements are an output; others read them; the sum takes the maximum's distance itself; what lies at the maximum
   differs along the row elsewhere; terms are of another maximum; factors are f32. */
static const char *const others[] = {
    INPUTS PRODUCT MAXIMUM SUM "output z  output l",
    INPUTS PRODUCT MAXIMUM SUM "y[i, j] = exp(l[i, j] - m[i]) / z[i]\noutput y",
    INPUTS PRODUCT MAXIMUM "y[i] = sum[j](l[i, j] - m[i])\noutput y",
    INPUTS PRODUCT MAXIMUM "y[i] = min[j](select(l[i, j] == m[i], j, 300 + j))\noutput y",
    INPUTS PRODUCT "m[i] = max[j](l[i, j] * 2)\n" SUM "output z",
    "input x[40, 32] : f32  input w[300, 32] : f32\n" PRODUCT MAXIMUM SUM "output z",
};

START_TEST(rows_of_products_are_found_by_their_structure)
{
    const Fusion *whole = whole_of(chains[_i]);
    ck_assert_ptr_nonnull(whole);
    const RowTiles *tiles = row_tiles_cut(arena, whole, 128);
    ck_assert_ptr_nonnull(tiles);
    ck_assert_int_eq(tiles->partial->outputs[0]->shape[0], 3);   // of 300 columns: 128, 128, 44
    ck_assert_int_eq(tiles->partial->outputs[0]->shape[1], 40);
    ck_assert_int_eq(tiles->definition_count, tiles->partial->output_count);
    ck_assert_ptr_nonnull(product_rows_find(arena, tiles->partial));
    ck_assert_ptr_null(row_tiles_cut(arena, whole, 300));   // one tile is the row
}
END_TEST

START_TEST(elements_that_are_wanted_stay_in_memory) { ck_assert_ptr_null(whole_of(others[_i])); }
END_TEST

/* Its tiles are a product's, whose sums a thread has 128 columns of. */
START_TEST(families_of_products_take_the_tiles)
{
    const Target target = {.device = device_read(arena, "h200"), .math = EVAL_EXACT};
    const RowTiles *tiles = row_tiles_cut(arena, whole_of(chains[0]), 128);
    const Products *products = product_view(arena, tiles->partial, &target);
    ck_assert_ptr_nonnull(products->boxed);
    ck_assert_int_eq(products->rows->columns, 128);
    ck_assert_int_eq(products->boxed->group[GROUP_N].extent, 300);
    ck_assert_uint_eq(products->rows->extremes, 1u << 1);
    ck_assert_uint_eq(products->rows->others, 1u << 2);
    ck_assert(!tiles->combine->streams);
}
END_TEST

/* Two sums of products with a softmax between them are streamed, and have no tiles of this kind: wherever the division is. */
static const char *const shares_of[] = {
    "p[i, j] : f16 = exp(l[i, j] - m[i]) / z[i]\ny[i, n] = sum[j](p[i, j] * v[j, n])\noutput y",
    "e[i, j] = exp(l[i, j] - m[i])\ny[i, n] = sum[j](e[i, j] * v[j, n]) / z[i]\noutput y",
};

START_TEST(other_kernels_are_not_cut)
{
    FusionPlans plans =
        plans_of(arena_printf(arena,
                              "input q[40, 32] : f16  input k[300, 32] : f16  input v[300, 16] : f16\n"
                              "l[i, j] = sum[d](q[i, d] * k[j, d])\n" MAXIMUM SUM "%s",
                              shares_of[_i]));
    int streams = 0;
    for (int p = 0; p < plans.count; p++)
        for (int f = 0; f < plans.plans[p].count; f++) {
            streams += plans.plans[p].fusions[f]->streams;
            ck_assert_ptr_null(row_tiles_cut(arena, plans.plans[p].fusions[f], 64));
        }
    ck_assert_int_gt(streams, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("row_tiles");
    TCase *tests = tcase_create("row_tiles");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, rows_of_products_are_found_by_their_structure, 0,
                        sizeof chains / sizeof *chains);
    tcase_add_loop_test(tests, elements_that_are_wanted_stay_in_memory, 0, sizeof others / sizeof *others);
    tcase_add_test(tests, families_of_products_take_the_tiles);
    tcase_add_loop_test(tests, other_kernels_are_not_cut, 0, sizeof shares_of / sizeof *shares_of);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
