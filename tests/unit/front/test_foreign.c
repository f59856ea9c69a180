// What messages advise instead of the words of other languages is a program, and gives what was meant.
#include <ctype.h>
#include <math.h>
#include <stdint.h>

#include "front/foreign.h"
#include "front_test.h"
#include "ir/eval.h"

enum { N = 5, POINTS = 14 };

// ---- what was meant, from the table ----

static double total(const double *a) { return a[0] + a[1] + a[2] + a[3] + a[4]; }
static double dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] + a[4] * b[4];
}
static double squares_around(const double *a, double middle)
{
    double sum = 0;
    for (int j = 0; j < N; j++)
        sum += (a[j] - middle) * (a[j] - middle);
    return sum;
}
static double sum_of_exp(const double *a)
{
    return exp(a[0]) + exp(a[1]) + exp(a[2]) + exp(a[3]) + exp(a[4]);
}
static double running_sum(const double *a, int j) { return j < 0 ? 0 : a[j] + running_sum(a, j - 1); }
static int nonzero(const double *a) { return !!a[0] + !!a[1] + !!a[2] + !!a[3] + !!a[4]; }
static int largest(const double *a)
{
    int found = 0;
    for (int j = 1; j < N; j++)
        found = a[j] > a[found] ? j : found;
    return found;
}
static const double *opposite(const double *a)
{
    static double negated[N];
    for (int j = 0; j < N; j++)
        negated[j] = -a[j];
    return negated;
}

/* `a` is the first operand of a FUNCTION or OPERATOR, and the elements of one of a REDUCTION or ALONG. */
#define PASTE(left, right) left##right
#define NAMED(line) PASTE(value_, line)
#define POINTWISE_VALUE(value)                                                                               \
    static double NAMED(__LINE__)(const double *p, const double *q, const double *r, int j)                  \
    {                                                                                                        \
        double a = p[j], b = q[j], c = r[j];                                                                 \
        return (void)a, (void)b, (void)c, value;                                                             \
    }
#define ROW_VALUE(value)                                                                                     \
    static double NAMED(__LINE__)(const double *a, const double *b, const double *c, int j)                  \
    {                                                                                                        \
        return (void)a, (void)b, (void)c, (void)j, value;                                                    \
    }
#define VALUE_OF_FUNCTION POINTWISE_VALUE
#define VALUE_OF_OPERATOR POINTWISE_VALUE
#define VALUE_OF_NAME POINTWISE_VALUE
#define VALUE_OF_REDUCTION ROW_VALUE
#define VALUE_OF_ALONG ROW_VALUE
#define FOREIGN(kind, names, operands, mend, note, value) VALUE_OF_##kind((value))
#include "front/foreign.def"
#undef FOREIGN

typedef enum Kind { FUNCTION, REDUCTION, ALONG, OPERATOR, NAME } Kind;

typedef struct Row {
    Kind kind;
    const char *names, *operands, *mend;
    double (*value)(const double *a, const double *b, const double *c, int j);
} Row;

static const Row rows[] = {
#define FOREIGN(kind, names, operands, mend, note, value) {kind, names, operands, mend, NAMED(__LINE__)},
#include "front/foreign.def"
#undef FOREIGN
};

enum { ROWS = sizeof rows / sizeof *rows };

// ---- the mend as a program ----

static bool is_over_j(const Row *row) { return row->kind == REDUCTION || row->kind == ALONG; }

/* `a * sigmoid(a)` -> `a[j] * sigmoid(a[j])`: operands that stand alone. */
static const char *with_indices(const char *mend)
{
    StrBuf out = strbuf_new(arena);
    for (const char *c = mend; *c; c++) {
        bool alone = c == mend || !(isalnum((unsigned char)c[-1]) || c[-1] == '_');
        bool ends = !(isalnum((unsigned char)c[1]) || c[1] == '_');
        strbuf_putc(&out, *c);
        if (alone && ends && *c >= 'a' && *c <= 'c')
            strbuf_puts(&out, "[j]");
    }
    return out.text;
}

static const char *program_text(const Row *row, int count)
{
    StrBuf text = strbuf_new(arena);
    strbuf_printf(&text, "param N = %d\n", count);
    for (int i = 0; row->operands[i]; i++)
        strbuf_printf(&text, "input %c[N] : %s\n", 'a' + i,
                      row->operands[i] == 'r' ? "f64" : row->operands[i] == 'i' ? "i32" : "b1");
    strbuf_printf(&text, "y[%s] = %s\noutput y", row->kind == REDUCTION ? "" : "j:N",
                  is_over_j(row) ? row->mend : with_indices(row->mend));
    return text.text;
}

typedef struct Elements { const double *operand[3]; } Elements;

static double element_of(void *context, int input, int64_t position)
{
    return ((const Elements *)context)->operand[input][position];
}

static bool is_as_meant(double seen, double meant)
{
    if (isnan(meant) || isinf(meant))
        return isnan(meant) ? isnan(seen) : seen == meant;
    return fabs(seen - meant) <= 2e-7 * fmax(fabs(meant), 1e-3);
}

/* Of `count` elements an operand; of a REDUCTION there is one result. */
static void check_row(const Row *row, const Elements *elements, int count)
{
    const char *text = program_text(row, count);
    Program *program = program_of(text);
    Evaluator *evaluator = evaluator_new(arena, program, (InputSource){element_of, (void *)elements});
    Value values[POINTS];
    int results = row->kind == REDUCTION ? 1 : count;
    evaluate_range(evaluator, program->outputs[0], 0, results, values);
    for (int j = 0; j < results; j++) {
        double meant = row->value(elements->operand[0], elements->operand[1], elements->operand[2], j);
        ck_assert_msg(is_as_meant(values[j].real, meant), "%s\ny[%d] is %.17g, meant is %.17g, of %g %g %g",
                      text, j, values[j].real, meant, elements->operand[0][j], elements->operand[1][j],
                      elements->operand[2][j]);
    }
    evaluator_free(evaluator);
}

// ---- points ----

static const double REALS[3][POINTS] = {
    {-20, -3.5, -2.5, -1.5, -1, -0.5, -1e-3, 0, 0.5, 1e-3, 0.9, 2.5, 20, NAN},
    {3, -2, 0.75, 4, -0.5, 2, 0.1, 1, 1, 2.5, -3, 0.5, 7, 2},
    {1, 2, 3, -4, 0.25, 0.5, 0.75, 1, 2, 3, 4, 5, 6, 7},
};
static const double INTEGERS[3][POINTS] = {
    {-17, -16, -9, -8, -1, 0, 1, 7, 8, 9, 16, 17, 100, 1000},
    {5, 4, 3, 2, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9},
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
};
static const double BITS[3][POINTS] = {
    {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 1},
    {0, 1, 0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 1, 0},
    {1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0},
};
static const double ROW_REALS[2][N] = {{0.5, -1.25, 3, 3, 0}, {2, -1, 0.25, 1, 4}};

/* Where a row promises less than the function that it stands for, as its note says. */
static bool is_promised(const Row *row, double a)
{
    if (strncmp(row->names, "erfc", 4) == 0)
        return !(a > 3);
    return strncmp(row->names, "cdiv", 4) != 0 || a >= 0;
}

static const double *points_of(const Row *row, int operand, double *kept)
{
    char type = row->operands[0] && operand < (int)strlen(row->operands) ? row->operands[operand] : 'r';
    const double *all = type == 'r' ? REALS[operand] : type == 'i' ? INTEGERS[operand] : BITS[operand];
    for (int i = 0; i < POINTS; i++)
        kept[i] = operand == 0 && !is_promised(row, all[i]) ? 1 : all[i];
    return kept;
}

static void check(const Row *row)
{
    static const Elements along = {{ROW_REALS[0], ROW_REALS[1], ROW_REALS[0]}};
    double kept[3][POINTS];
    Elements pointwise = {
        {points_of(row, 0, kept[0]), points_of(row, 1, kept[1]), points_of(row, 2, kept[2])}};
    if (setjmp(on_error))
        ck_abort_msg("%s: %s", row->names, error_message);
    if (is_over_j(row))
        check_row(row, &along, N);
    else
        check_row(row, &pointwise, POINTS);
}

START_TEST(each_mend_gives_what_was_meant)
{
    for (int i = 0; i < ROWS; i++)
        check(&rows[i]);
}
END_TEST

// ---- the message ----

static const char *first_name(const Row *row)
{
    return arena_strndup(arena, row->names, strcspn(row->names, " "));
}

START_TEST(each_message_holds_its_mend)
{
    for (const Row *row = rows; row < rows + ROWS; row++) {
        const char *name = first_name(row);
        const char *said = row->kind == OPERATOR ? foreign_operator(arena, name)
                           : row->kind == NAME   ? foreign_value(arena, name)
                                                 : foreign_function(arena, name);
        ck_assert_msg(said && strstr(said, row->mend), "%s: %s", name, said ? said : "nothing");
    }
}
END_TEST

/* What the language has needs no mend, and would never be asked for. */
START_TEST(no_word_of_the_language_is_foreign)
{
    static const char *const words[] = {"exp", "max", "sum", "select", "relu", "floor", "inf", "pi", "x"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        ck_assert(!foreign_function(arena, words[i]) && !foreign_value(arena, words[i]));
    for (int op = 0; op < OP_COUNT; op++)
        ck_assert(!foreign_function(arena, op_info[op].spelling) &&
                  !foreign_operator(arena, op_info[op].spelling));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        each_mend_gives_what_was_meant,
        each_message_holds_its_mend,
        no_word_of_the_language_is_foreign,
    };
    return RUN_TESTS("foreign", tests);
}
