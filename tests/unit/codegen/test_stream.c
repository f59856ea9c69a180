// Chains that are streamed: which programs are some, and what the reference allows their kernels.
#include <check.h>
#include <math.h>
#include <string.h>

#include "codegen/family/attention/attention.h"
#include "front/lex.h"
#include "front/lower.h"
#include "front/parse.h"
#include "ir/eval.h"
#include "ir/stream.h"

static Arena *arena;
static void begin(void) { arena = arena_new(); }
static void end(void) { arena_free(arena); }

static Program *program_of(const char *text)
{
    const Source *source = source_from_text(arena, "case.te", text, strlen(text));
    return lower(arena, parse(arena, lex(arena, source)), NULL, 0);
}

#define INPUTS "input q[4, 6, 16] : f16  input k[4, 5, 16] : f16  input v[4, 5, 8] : f16\n"
#define BIAS "input bias[6, 5] : f32\n"
#define SCORES "s[b, i, j] = sum[d](q[b, i, d] * k[b, j, d])\n"
#define ROWS(t) "m[b, i] = max[j](" t ")\ne[b, i, j] = exp(" t " - m[b, i])\nz[b, i] = sum[j](e[b, i, j])\n"
#define SHARES "p[b, i, j] : f16 = e[b, i, j] / z[b, i]\n"
#define RESULT "y[b, i, n] = sum[j](p[b, i, j] * v[b, j, n])\noutput y : f16\n"

static const char *const chains[] = {
    INPUTS SCORES ROWS("s[b, i, j]") SHARES RESULT,
    INPUTS SCORES ROWS("s[b, i, j] * 0.25") SHARES RESULT,   // its scores have no name
    INPUTS "s[b, i, j] = sum[d](q[b, i, d] * 0.25 * k[b, j, d])\n" ROWS("s[b, i, j]") SHARES RESULT,
    INPUTS SCORES "t[b, i, j] = select(j <= i, s[b, i, j], -inf)\n" ROWS("t[b, i, j]") SHARES RESULT,
    INPUTS BIAS SCORES "t[b, i, j] : f16 = s[b, i, j] / 4 + bias[i, j]\n" ROWS("t[b, i, j]") SHARES RESULT,
    INPUTS SCORES ROWS("s[b, i, j]") "r[b, i] = 1 / z[b, i]\np[b, i, j] : f16 = r[b, i] * e[b, i, j]\n" RESULT,
    INPUTS SCORES ROWS("s[b, i, j]") SHARES "y[i, b, n] = sum[j](v[b, j, n] * p[b, i, j])\noutput y : f32\n",
    INPUTS SCORES ROWS("s[b, i, j]") SHARES RESULT "l[b, i] = log(z[b, i]) + m[b, i]\noutput l : f32\noutput m : f32\n",
    // as many sums of a row as may be, each of another type, beside scores and rows of their own
    INPUTS SCORES ROWS("s[b, i, j] + j") "z2[b, i] : f16 = sum[j](e[b, i, j])\nz3[b, i] : bf16 = sum[j](e[b, i, j])\n"
    "z4[b, i] : f64 = sum[j](e[b, i, j])\np[b, i, j] : f16 = e[b, i, j] / (z[b, i] + z2[b, i] + z3[b, i] + cast(z4[b, i], f32))\n" RESULT
    "l[b, i] = log(z[b, i]) + m[b, i]\noutput l : f32\n",
    // of f32: p in parts
    INPUTS SCORES ROWS("s[b, i, j]") "p[b, i, j] = e[b, i, j] / z[b, i]\n" RESULT,
    // e is rounded, and the quotient comes behind the sum
    INPUTS SCORES "m[b, i] = max[j](s[b, i, j])\ne[b, i, j] : f16 = exp(s[b, i, j] - m[b, i])\nz[b, i] = sum[j](e[b, i, j])\n"
    "a[b, i, n] = sum[j](e[b, i, j] * v[b, j, n])\ny[b, i, n] = a[b, i, n] / z[b, i]\noutput y : f16\n",
};

/* Why: it is rounded at its own scale; it is an output; e is read elsewhere; e is rounded twice; the maximum is of
   other scores, of another axis; p has another type than v; a row of scores has several products; p is made of an output that
   the rows have. */
static const char *const others[] = {
    INPUTS SCORES ROWS("s[b, i, j]") "p[b, i, j] = cast(e[b, i, j] / z[b, i], f16)\n" RESULT,
    INPUTS SCORES ROWS("s[b, i, j]") SHARES RESULT "output p\n",
    INPUTS SCORES ROWS("s[b, i, j]") SHARES RESULT "x[b, j] = max[i](e[b, i, j])\noutput x : f32\n",
    INPUTS SCORES "m[b, i] = max[j](s[b, i, j])\ne[b, i, j] : f16 = exp(s[b, i, j] - m[b, i])\nz[b, i] = sum[j](e[b, i, j])\n" SHARES RESULT,
    INPUTS SCORES "m[b, i] = max[j](s[b, i, j] * 2)\ne[b, i, j] = exp(s[b, i, j] - m[b, i])\nz[b, i] = sum[j](e[b, i, j])\n" SHARES RESULT,
    INPUTS SCORES "m[b, j] = max[i](s[b, i, j])\ne[b, i, j] = exp(s[b, i, j] - m[b, j])\nz[b, i] = sum[j](e[b, i, j])\n" SHARES RESULT,
    INPUTS SCORES ROWS("s[b, i, j]") "p[b, i, j] : bf16 = e[b, i, j] / z[b, i]\n" RESULT,
    INPUTS BIAS SCORES ROWS("s[b, i, j]") SHARES "y[b, i, n] = sum[j](p[b, i, j] * v[b, j, n] * bias[i, j])\noutput y : f16\n",
    INPUTS SCORES ROWS("s[b, i, j]") "r[b, i] = 1 / z[b, i]\np[b, i, j] : f16 = r[b, i] * e[b, i, j]\n" RESULT "output r : f32\n",
};

START_TEST(chains_are_found_by_their_structure)
{
    StreamList list = streams_find(arena, program_of(chains[_i]));
    ck_assert_int_eq(list.count, 1);
    ck_assert(list.streams[0].fusion->streams);
}
END_TEST

START_TEST(what_cannot_be_streamed_is_no_chain)
{
    ck_assert_int_eq(streams_find(arena, program_of(others[_i])).count, 0);
}
END_TEST

/* The kernel of a chain, as its family sees it. */
static Attention attention_of(const char *text)
{
    const Target target = {.device = device_read(arena, "h200"), .math = EVAL_EXACT};
    FusionPlans plans = fuse(arena, program_of(text));
    const FusionPlan *last = &plans.plans[plans.count - 1];
    ck_assert_str_eq(last->name, "stream");
    ck_assert_int_eq(last->count, 1);
    const Attention *attention = attention_view(arena, last->fusions[0], &target);
    ck_assert_ptr_nonnull(attention);
    return *attention;
}

START_TEST(the_scale_of_all_scores_is_taken_out_of_them)
{
    ck_assert_double_eq(attention_of(chains[0]).scale, 1);
    ck_assert_double_eq(attention_of(chains[1]).scale, 0.25);
    ck_assert_double_eq(attention_of(chains[2]).scale, 0.25);
    ck_assert_double_eq(attention_of(INPUTS SCORES ROWS("s[b, i, j] / sqrt(16)") SHARES RESULT).scale, 0.25);
    ck_assert_double_eq(attention_of(INPUTS "s[b, i, j] = sum[d](q[b, i, d] * k[b, j, d] * rsqrt(16))\n" ROWS("s[b, i, j]") SHARES RESULT).scale, 0.25);
    ck_assert_double_eq(attention_of(chains[4]).scale, 1);   // a bias is added, and it is rounded
}
END_TEST

/* j <= i + 2 ends before i + 3, i - j < 30 begins at i - 29. */
START_TEST(columns_that_are_left_out_are_seen_in_conditions)
{
    Attention causal = attention_of(chains[3]);
    ck_assert(causal.masks && causal.condition);
    ck_assert_int_eq(causal.end_count, 1);
    ck_assert_int_eq(causal.first_count, 0);
    ck_assert_int_eq(causal.end[0].constant, 1);
    ck_assert(attention_is_longest_last(&causal));
    Attention window = attention_of(INPUTS SCORES "t[b, i, j] = select(j <= i + 2 && i - j < 3, s[b, i, j], -inf)\n" ROWS(
        "t[b, i, j]") SHARES RESULT);
    ck_assert_int_eq(window.end[0].constant, 3);
    ck_assert_int_eq(window.first[0].constant, -2);
    ck_assert(!attention_is_longest_last(&window));
    Attention beside = attention_of(INPUTS BIAS SCORES "t[b, i, j] = select(j <= i && bias[i, j] > 0, s[b, i, j], -inf)\n" ROWS(
        "t[b, i, j]") SHARES RESULT);
    ck_assert(beside.masks && !beside.condition);   // no column is known to count
    Attention none = attention_of(INPUTS SCORES "t[b, i, j] = select(j != i, s[b, i, j], -inf)\n" ROWS("t[b, i, j]") SHARES RESULT);
    ck_assert(!none.masks);
    Attention added = attention_of(INPUTS SCORES "t[b, i, j] = s[b, i, j] + select(j <= i, 0, -inf)\n" ROWS("t[b, i, j]") SHARES RESULT);
    ck_assert(!added.masks);   // what is NaN there stays so
}
END_TEST

// ---- parts of the columns ----

/* A row, heads of groups, so many columns. */
static Fusion *fusion_of_columns(const char *columns)
{
    const char *text = arena_printf(arena,
                                    "input q[2, 3, 16] : f16  input k[2, %s, 16] : f16  input v[2, %s, 8] : f16\n" SCORES ROWS(
                                        "s[b, i, j]") SHARES RESULT "l[b, i] = log(z[b, i]) + m[b, i]\noutput l : f32\n",
                                    columns, columns);
    FusionPlans plans = fuse(arena, program_of(text));
    return plans.plans[plans.count - 1].fusions[0];
}

/* 512 columns are 4 parts of 128; 310 in 4 would be 78 each, and are 128, 128 and the 54 that are left. */
START_TEST(a_chain_is_cut_along_its_columns)
{
    StreamParts *even = stream_split(arena, fusion_of_columns("512"), 4);
    ck_assert(even->partial->streams && !even->results->streams && !even->rows->streams);
    ck_assert_int_eq(even->partial->axes[0].extent, 4);
    ck_assert_int_eq(even->partial->output_count, 3);   // m, z, y
    ck_assert_int_eq(even->results->output_count, 1);
    ck_assert_int_eq(even->rows->output_count, 1);
    const Target target = {.device = device_read(arena, "h200"), .math = EVAL_EXACT};
    const Attention *attention = attention_view(arena, even->partial, &target);
    ck_assert(attention && !attention->bound && !attention->masks);
    StreamParts *ragged = stream_split(arena, fusion_of_columns("310"), 4);
    ck_assert_int_eq(ragged->partial->axes[0].extent, 3);
    attention = attention_view(arena, ragged->partial, &target);
    ck_assert(attention && attention->bound && attention->masks);
    ck_assert_int_eq(attention->end[0].constant, 310);
    ck_assert_int_eq(attention->end[0].coef[0], -128);
    ck_assert_ptr_null(stream_split(arena, fusion_of_columns("100"), 4));
}
END_TEST

/* Positions and heads of a group share k and v; where positions are limited they come first. */
START_TEST(rows_are_packed_where_they_share_columns)
{
    const char *text = "input q[2, 3, 5, 16] : f16  input k[2, 7, 16] : f16  input v[2, 7, 8] : f16\n"
                       "s[b, h, i, j] = sum[d](q[b, h, i, d] * k[b, j, d])\nt[b, h, i, j] = select(j <= i, s[b, h, i, j], -inf)\n"
                       "m[b, h, i] = max[j](t[b, h, i, j])\ne[b, h, i, j] = exp(t[b, h, i, j] - m[b, h, i])\n"
                       "z[b, h, i] = sum[j](e[b, h, i, j])\np[b, h, i, j] : f16 = e[b, h, i, j] / z[b, h, i]\n"
                       "y[b, h, i, n] = sum[j](p[b, h, i, j] * v[b, j, n])\noutput y : f16\n";
    const Target target = {.device = device_read(arena, "h200"), .math = EVAL_EXACT};
    FusionPlans plans = fuse(arena, program_of(text));
    const Fusion *fusion = plans.plans[plans.count - 1].fusions[0];
    const Attention *packed = attention_packed_view(arena, fusion, &target), *apart = attention_view(arena, fusion, &target);
    ck_assert_int_eq(packed->group[ATTENTION_ROW].extent, 15);
    ck_assert_int_eq(fusion->axes[packed->group[ATTENTION_ROW].axes[0]].extent, 5);
    ck_assert_int_eq(packed->group[ATTENTION_BATCH].extent, 2);
    ck_assert_int_eq(apart->group[ATTENTION_ROW].extent, 5);
    ck_assert_int_eq(apart->group[ATTENTION_BATCH].extent, 6);
}
END_TEST

/* Of two samples a, which share biases, and three heads b samples come last: blocks side by side read one bias. Heads that share k and v
   come last, too. */
START_TEST(blocks_side_by_side_read_the_same_bias)
{
    static const char *const texts[] = {
        "input q[2, 3, 6, 16] : f16  input k[2, 3, 5, 16] : f16  input v[2, 3, 5, 8] : f16  input bias[3, 6, 5] : f32\n"
        "s[a, b, i, j] = sum[d](q[a, b, i, d] * k[a, b, j, d])\nt[a, b, i, j] = s[a, b, i, j] + bias[b, i, j]\n",
        "input q[3, 2, 6, 16] : f16  input k[2, 5, 16] : f16  input v[2, 5, 8] : f16\n"
        "s[b, a, i, j] = sum[d](q[b, a, i, d] * k[a, j, d])\nt[a, b, i, j] = s[b, a, i, j] * 0.5\n",
    };
    static const char *const shares[] = {"v[a, b, j, n]", "v[a, j, n]"};
    static const int64_t last[] = {2, 3};
    const Target target = {.device = device_read(arena, "h200"), .math = EVAL_EXACT};
    for (int i = 0; i < 2; i++) {
        const char *text = arena_printf(arena,
                                        "%sm[a, b, i] = max[j](t[a, b, i, j])\ne[a, b, i, j] = exp(t[a, b, i, j] - m[a, b, i])\n"
                                        "z[a, b, i] = sum[j](e[a, b, i, j])\np[a, b, i, j] : f16 = e[a, b, i, j] / z[a, b, i]\n"
                                        "y[a, b, i, n] = sum[j](p[a, b, i, j] * %s)\noutput y : f16\n",
                                        texts[i], shares[i]);
        FusionPlans plans = fuse(arena, program_of(text));
        const Fusion *fusion = plans.plans[plans.count - 1].fusions[0];
        const Attention *attention = attention_view(arena, fusion, &target);
        ck_assert_int_eq(attention->group[ATTENTION_BATCH].count, 2);
        ck_assert_int_eq(fusion->axes[axis_group_innermost(&attention->group[ATTENTION_BATCH])].extent, last[i]);
    }
}
END_TEST

// ---- the reference ----

/* Scores of three columns that are all 0; of v one element has a value of its own. */
#define SMALL(t, p)                                                                                            \
    "input q[1, 16] : f16  input k[3, 16] : f16  input v[3, 8] : f16\ns[i, j] = sum[d](q[i, d] * k[j, d])\n"  \
    "t[i, j] = " t "\nm[i] = max[j](t[i, j])\ne[i, j] = exp(t[i, j] - m[i])\nz[i] = sum[j](e[i, j])\n"        \
    "p[i, j] : f16 = " p "\ny[i, n] = sum[j](p[i, j] * v[j, n])\noutput y : f32\n"

typedef struct Element {
    int64_t at;     // of v
    double value;
} Element;

static double element_of(void *context, int input, int64_t element)
{
    const Element *own = context;
    return input == 2 && element == own->at ? own->value : 0;
}

static Value value_of(const char *text, Element own)
{
    Program *program = program_of(text);
    Evaluator *evaluator = evaluator_new(arena, program, (InputSource){element_of, &own});
    Value value;
    evaluate_range(evaluator, program->outputs[0], 0, 1, &value);
    evaluator_free(evaluator);
    return value;
}

/* 1/3 of f16 is 1365 * 2^-12, its unit in the last place 2^-12: 1/3 itself, both neighbours, and no more. */
START_TEST(shares_may_be_rounded_at_another_scale)
{
    Value value = value_of(SMALL("s[i, j]", "e[i, j] / z[i]"), (Element){0, 1});
    ck_assert(value_allows(DTYPE_F32, 1365 * 0x1p-12, value));
    ck_assert(value_allows(DTYPE_F32, 1 / 3.0, value));
    ck_assert(value_allows(DTYPE_F32, 1366 * 0x1p-12, value));
    ck_assert(!value_allows(DTYPE_F32, 1363 * 0x1p-12, value));
    ck_assert(!value_allows(DTYPE_F32, 1367 * 0x1p-12, value));
}
END_TEST

/* 0 * NaN, or nothing; of a column that counts it is NaN. */
START_TEST(columns_that_are_masked_may_be_left_out)
{
    const char *text = SMALL("select(j < 2, s[i, j], -inf)", "e[i, j] / z[i]");
    ck_assert(isinf(value_of(text, (Element){16, NAN}).bound));
    ck_assert(isnan(value_of(text, (Element){8, NAN}).real));
    ck_assert(value_of(text, (Element){8, NAN}).bound == 0);
    ck_assert(isfinite(value_of(text, (Element){16, 5}).bound));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stream");
    TCase *tests = tcase_create("stream");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, chains_are_found_by_their_structure, 0, sizeof chains / sizeof *chains);
    tcase_add_loop_test(tests, what_cannot_be_streamed_is_no_chain, 0, sizeof others / sizeof *others);
    tcase_add_test(tests, the_scale_of_all_scores_is_taken_out_of_them);
    tcase_add_test(tests, columns_that_are_left_out_are_seen_in_conditions);
    tcase_add_test(tests, a_chain_is_cut_along_its_columns);
    tcase_add_test(tests, rows_are_packed_where_they_share_columns);
    tcase_add_test(tests, blocks_side_by_side_read_the_same_bias);
    tcase_add_test(tests, shares_may_be_rounded_at_another_scale);
    tcase_add_test(tests, columns_that_are_masked_may_be_left_out);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
