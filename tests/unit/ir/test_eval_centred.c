// Sums of squares around a share of the total: what kernels make of them in chunks lies within the bounds.
#include "build.h"

static const double U = 0x1p-24;   // unit round-off of f32

enum { MOST = 64 };

/* How w = sum[r](sq(x[r] - m)), m = total / divisor, is written. */
typedef enum Spelling { SQUARE, PRODUCT, DIFFERENCE_APART, SQUARE_APART, SPELLINGS } Spelling;

static Tensor *read_apart(Build *build, DType dtype, Expr *body, int count)
{
    return POINTWISE(build, ROLE_TEMPORARY, dtype, body, count);
}

static Expr *total_of(Build *build, Tensor *x, int count)
{
    return build_access(
        build, REDUCTION(build, ROLE_TEMPORARY, DTYPE_F32, REDUCE_SUM, 1, AT(build, x, 0), count), NULL);
}

static Expr *share_of(Build *build, Expr *total, double divisor)
{
    Expr *body = build_op(build, OP_DIV, total, build_const(build, DTYPE_F32, divisor), NULL);
    return build_access(build, build_define(build, ROLE_TEMPORARY, DTYPE_F32, REDUCE_NONE, 0, body, 0, NULL),
                        NULL);
}

static Expr *square_of(Build *build, Spelling spelling, Expr *difference, int count)
{
    if (spelling == DIFFERENCE_APART)
        difference = AT(build, read_apart(build, DTYPE_F32, difference, count), 0);
    Expr *square = spelling == SQUARE
                       ? build_op(build, OP_SQ, difference, NULL, NULL)
                       : build_op(build, OP_MUL, difference, expr_copy(build->arena, difference), NULL);
    return spelling == SQUARE_APART ? AT(build, read_apart(build, DTYPE_F32, square, count), 0) : square;
}

static Value squares_around(Build *build, Expr *square, const double *const *inputs, int count, EvalMath math)
{
    Tensor *w = REDUCTION(build, ROLE_OUTPUT, DTYPE_F32, REDUCE_SUM, 1, square, count);
    Evaluator *evaluator =
        evaluator_new(build->arena, &build->program, (InputSource){build_element, (void *)inputs});
    evaluator_allow(evaluator, math);
    Value value;
    evaluate(evaluator, w, &(int64_t){0}, 1, &value);
    evaluator_free(evaluator);
    build_free(build);
    return value;
}

static Value centred(Spelling spelling, const double *row, int count, double divisor, EvalMath math)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, count);
    Expr *centre = share_of(build, total_of(build, x, count), divisor);
    Expr *difference = build_op(build, OP_SUB, AT(build, x, 0), centre, NULL);
    return squares_around(build, square_of(build, spelling, difference, count), &row, count, math);
}

static bool is_about(double bound, double units) { return fabs(bound - units * U) <= 1e-5 * units * U; }

/* Differences 1 2 1 -4, whose squares are 22 together. A difference errs by 8 u (|m| + |x - m|), its square by
   16 u |x - m| (|m| + |x - m|) and one u more, their sum by (4 + 2) u of 22: around 0 by 23 * 22 u, around 1 by
   16 * 8 u more. */
START_TEST(whole_numbers_around_their_mean_may_be_rounded)
{
    const double around_0[] = {1, 2, 1, -4}, around_1[] = {2, 3, 2, -3};
    Value first = centred((Spelling)_i, around_0, 4, 4, EVAL_EXACT);
    Value second = centred((Spelling)_i, around_1, 4, 4, EVAL_EXACT);
    ck_assert(first.real == 22 && is_about(first.bound, 23 * 22));
    ck_assert(second.real == 22 && is_about(second.bound, 23 * 22 + 16 * 8));
    ck_assert(centred((Spelling)_i, around_0, 4, 4, EVAL_FAST).bound >= first.bound);
    float mean = 4.0f / 3, one = 1 - mean, two = 2 - mean;   // of the first three
    float chunked = (one * one + two * two + one * one) + 3 * (mean * mean) + 16;
    ck_assert(fabs(chunked - first.real) <= first.bound);
}
END_TEST

START_TEST(elements_that_are_their_mean_have_no_bound)
{
    const double row[] = {3, 3, 3, 3};
    Value value = centred((Spelling)_i, row, 4, 4, EVAL_EXACT);
    ck_assert(value.real == 0 && value.bound == 0);
}
END_TEST

START_TEST(an_infinite_element_is_still_known)
{
    const double row[] = {1, INFINITY, 2, 3};
    Value value = centred((Spelling)_i, row, 4, 4, EVAL_EXACT);
    ck_assert(isnan(value.real) && value.bound == 0);
}
END_TEST

/* No kernel makes these of chunks: 1 + 4 + 1 + 16 is 22. */
typedef enum Other {
    EACH_ITS_OWN,
    AN_INPUT,
    OF_MORE_POINTS,
    OF_INTEGERS,
    A_ROUNDED_DIFFERENCE,
    A_PRODUCT,
    OTHERS
} Other;

static Expr *other_square(Build *build, Other other, Tensor *x, Tensor *y)
{
    Expr *centre = other == EACH_ITS_OWN ? AT(build, y, 0) : build_access(build, y, &(Affine){.constant = 0});
    if (other == OF_MORE_POINTS)
        centre = total_of(build, y, 5);
    if (other == OF_INTEGERS) {
        Expr *whole = expr_cast(build->arena, DTYPE_I32, AT(build, y, 0));
        Tensor *total = REDUCTION(build, ROLE_TEMPORARY, DTYPE_I32, REDUCE_SUM, 1, whole, 4);
        centre = expr_cast(build->arena, DTYPE_F32, build_access(build, total, NULL));
    }
    if (other == A_ROUNDED_DIFFERENCE || other == A_PRODUCT)
        centre = share_of(build, total_of(build, x, 4), 4);
    Expr *difference = build_op(build, OP_SUB, AT(build, x, 0), centre, NULL);
    if (other == A_ROUNDED_DIFFERENCE)
        difference = AT(build, read_apart(build, DTYPE_F16, difference, 4), 0);
    Expr *factor =
        other == A_PRODUCT ? build_op(build, OP_SUB, AT(build, x, 0), AT(build, y, 0), NULL) : difference;
    return build_op(build, OP_MUL, difference, factor, NULL);
}

START_TEST(other_sums_of_squares_stay_exact)
{
    const double row[] = {1, 2, 1, -4, 0}, zeros[5] = {0}, *inputs[] = {row, zeros};
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 5), *y = INPUT(build, DTYPE_F32, 5);
    Value value = squares_around(build, other_square(build, (Other)_i, x, y), inputs, 4, EVAL_EXACT);
    ck_assert_msg(value.real == 22 && value.bound == 0, "%d: %g within %g", _i, value.real, value.bound);
}
END_TEST

/* ---- chunks in float ---- */

typedef struct Part {
    int count;
    float sum, distances;   // from sum / count
} Part;

static float mean_of(Part part) { return part.sum / (float)part.count; }

static Part chunk(const double *x, int count)
{
    Part part = {.count = count};
    for (int i = 0; i < count; i++)
        part.sum += (float)x[i];
    float mean = mean_of(part);
    for (int i = 0; i < count; i++)
        part.distances += ((float)x[i] - mean) * ((float)x[i] - mean);
    return part;
}

static float around(Part part, float centre)
{
    return part.distances + (float)part.count * ((mean_of(part) - centre) * (mean_of(part) - centre));
}

/* As a thread adds what it reads next. */
static Part joined(Part all, Part more)
{
    if (all.count == 0)
        return more;
    float one = (float)all.count, other = (float)more.count, away = all.sum - one * mean_of(more);
    return (Part){all.count + more.count, all.sum + more.sum,
                  all.distances + (more.distances + away * (other / (one * (one + other))) * away)};
}

typedef struct Chunked {
    float apart, grown;
} Chunked;

static Chunked in_chunks(const double *row, int count, int size, float centre)
{
    Chunked result = {0};
    Part all = {0};
    for (int first = 0; first < count; first += size) {
        Part part = chunk(row + first, count - first < size ? count - first : size);
        result.apart += around(part, centre);
        all = joined(all, part);
    }
    result.grown = around(all, centre);
    return result;
}

static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % below;
}

/* Whole numbers from `low` to low + 8, and a last one that makes the total a multiple of their count. */
static double draw_row(uint64_t *state, double *row, int count, int low)
{
    double total = row[count - 1] = low;
    for (int i = 0; i < count - 1; i++)
        total += row[i] = low + (double)draw(state, 9);
    double missing = ceil(total / count) * count - total;
    row[count - 1] += missing;
    return total + missing;
}

START_TEST(chunks_of_whole_rows_stay_within_their_bounds)
{
    uint64_t state = 1;
    int rounded = 0;
    for (int i = 0; i < 300; i++) {
        double row[MOST];
        int count = 2 + (int)draw(&state, MOST - 1);
        double total = draw_row(&state, row, count, _i);
        double divisor = draw(&state, 2) ? count : 1;
        double centre = total / divisor;
        Value value = centred((Spelling)draw(&state, SPELLINGS), row, count, divisor, EVAL_EXACT);
        for (int size = 1; size <= count; size++) {
            Chunked got = in_chunks(row, count, size, (float)centre);
            ck_assert_msg(fabs(got.apart - value.real) <= value.bound &&
                              fabs(got.grown - value.real) <= value.bound,
                          "%d by %d: %.9g and %.9g, expected %.9g within %g", count, size, got.apart,
                          got.grown, value.real, value.bound);
            rounded += got.apart != (float)value.real;
        }
        ck_assert(value.bound <= 4 * (count + 40) * U * (value.real + count * centre * centre));
    }
    ck_assert_int_gt(rounded, 1000);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, whole_numbers_around_their_mean_may_be_rounded, 0, SPELLINGS);
    tcase_add_loop_test(tests, elements_that_are_their_mean_have_no_bound, 0, SPELLINGS);
    tcase_add_loop_test(tests, an_infinite_element_is_still_known, 0, SPELLINGS);
    tcase_add_loop_test(tests, other_sums_of_squares_stay_exact, 0, OTHERS);
    static const int lows[] = {-4, 0, 1000};
    for (size_t i = 0; i < sizeof lows / sizeof *lows; i++)
        tcase_add_loop_test(tests, chunks_of_whole_rows_stay_within_their_bounds, lows[i], lows[i] + 1);
}

int main(void) { return build_run("eval_centred", add); }
