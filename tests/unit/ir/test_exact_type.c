// Which values are elements of a type without rounding.
#include "build.h"
#include "ir/exact_type.h"

static bool is_element_of(Expr *expr, int count, const DType *types)
{
    bool expected[DTYPE_COUNT] = {false};
    for (int i = 0; i < count; i++)
        expected[types[i]] = true;
    for (int t = 0; t <= DTYPE_U8; t++)
        if (expr_is_exact(expr, (DType)t) != expected[t])
            return false;
    return true;
}

/* Of these types among those that memory holds, and of no others. */
#define ELEMENT_OF(expr, ...)                                                                                \
    is_element_of(expr, (int)(sizeof(DType[]){__VA_ARGS__} / sizeof(DType)), (DType[]){__VA_ARGS__})

static Expr *read(Build *build, DType type) { return AT(build, INPUT(build, type, 8), 0); }

static Expr *one(Build *build, Op op, Expr *a) { return build_op(build, op, a, NULL, NULL); }

START_TEST(halves_are_halves_and_what_holds_them)
{
    Build *build = build_new();
    Expr *half = read(build, DTYPE_F16), *zero = build_const(build, DTYPE_F32, 0);
    Expr *mask = read(build, DTYPE_B1), *bit = expr_cast(build->arena, DTYPE_F32, mask);
    Expr *kept[] = {half,
                    one(build, OP_RELU, half),
                    one(build, OP_NEG, half),
                    one(build, OP_FLOOR, half),
                    one(build, OP_ROUND, half),
                    build_op(build, OP_MAX, half, zero, NULL),
                    build_op(build, OP_SELECT, mask, half, zero),
                    build_op(build, OP_MUL, half, bit, NULL),
                    build_op(build, OP_MUL, bit, half, NULL),
                    expr_cast(build->arena, DTYPE_F16, one(build, OP_EXP, half))};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        ck_assert(ELEMENT_OF(kept[i], DTYPE_F16, DTYPE_F32, DTYPE_F64));
    Expr *tenth = build_const(build, DTYPE_F32, (double)0.1f);
    Expr *made[] = {one(build, OP_EXP, half), build_op(build, OP_MUL, half, half, NULL),
                    build_op(build, OP_MIN, half, tenth, NULL),
                    build_op(build, OP_SELECT, mask, half, tenth)};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        ck_assert(!expr_is_exact(made[i], DTYPE_F16) && expr_is_exact(made[i], DTYPE_F32));
    ck_assert(ELEMENT_OF(read(build, DTYPE_BF16), DTYPE_BF16, DTYPE_F32, DTYPE_F64));
    build_free(build);
}
END_TEST

/* The reciprocal of 3136 is 2^-25.5 off, that of 1.4142135 2^-24.8. */
START_TEST(quotients_of_constants_are_corrected_once_or_twice)
{
    const struct {
        double by;
        DType type;
        int corrections;
    } rows[] = {{3136, DTYPE_F32, 1}, {(double)1.4142135f, DTYPE_F32, 2}, {2, DTYPE_F32, 0},
                {0.3, DTYPE_F32, 0},  {0x1p61, DTYPE_F32, 0},            {3136, DTYPE_F64, 0}};
    Build *build = build_new();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Expr *by = build_const(build, rows[i].type, rows[i].by);
        Expr *quotient = build_op(build, OP_DIV, read(build, rows[i].type), by, NULL);
        ck_assert_int_eq(expr_corrections(quotient), rows[i].corrections);
    }
    build_free(build);
}
END_TEST

START_TEST(bytes_are_halves)
{
    Build *build = build_new();
    Expr *byte = read(build, DTYPE_I8), *real = expr_cast(build->arena, DTYPE_F32, byte);
    ck_assert(ELEMENT_OF(real, DTYPE_F64, DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_I32, DTYPE_I8));
    ck_assert(ELEMENT_OF(byte, DTYPE_F64, DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_I32, DTYPE_I8));
    ck_assert(!expr_is_exact(one(build, OP_NEG, byte), DTYPE_I8));   // 128
    ck_assert(expr_is_exact(one(build, OP_NEG, byte), DTYPE_F16));
    ck_assert(!expr_is_exact(build_op(build, OP_ADD, byte, byte, NULL), DTYPE_F16));
    ck_assert(!expr_is_exact(build_const(build, DTYPE_I32, 2049), DTYPE_F16));
    ck_assert(expr_is_exact(build_const(build, DTYPE_I32, 2050), DTYPE_F16));
    build_free(build);
}
END_TEST

/* 2^31 - 1, if it was infinite. */
START_TEST(what_reals_are_cut_off_to_is_no_half)
{
    Build *build = build_new();
    Expr *cut = expr_cast(build->arena, DTYPE_I32, read(build, DTYPE_F16));
    ck_assert(!expr_is_exact(cut, DTYPE_F16) && expr_is_exact(cut, DTYPE_F64));
    ck_assert(expr_is_exact(expr_cast(build->arena, DTYPE_I8, read(build, DTYPE_F16)), DTYPE_F16));
    ck_assert(!expr_is_exact(read(build, DTYPE_I32), DTYPE_F32));   // 2^24 + 1
    build_free(build);
}
END_TEST

/* Temporaries of points alone, and no wider than they are. */
START_TEST(temporaries_are_kept_in_the_type_of_their_values)
{
    Build *build = build_new();
    Expr *half = read(build, DTYPE_F16), *byte = read(build, DTYPE_I8);
    Expr *cast = expr_cast(build->arena, DTYPE_BF16, one(build, OP_EXP, half));
    Tensor *kept[] = {POINTWISE(build, ROLE_TEMPORARY, DTYPE_F32, one(build, OP_RELU, half), 8),
                      POINTWISE(build, ROLE_TEMPORARY, DTYPE_F32, cast, 8),
                      POINTWISE(build, ROLE_TEMPORARY, DTYPE_I32, one(build, OP_RELU, byte), 8)};
    Tensor *left[] = {POINTWISE(build, ROLE_OUTPUT, DTYPE_F32, one(build, OP_RELU, half), 8),
                      POINTWISE(build, ROLE_TEMPORARY, DTYPE_F32, one(build, OP_EXP, half), 8),
                      POINTWISE(build, ROLE_TEMPORARY, DTYPE_I32, build_op(build, OP_ADD, byte, byte, NULL), 8),
                      POINTWISE(build, ROLE_TEMPORARY, DTYPE_F16, half, 8)};
    keep_exact_types(&build->program);
    static const DType types[] = {DTYPE_F16, DTYPE_BF16, DTYPE_I8}, own[] = {DTYPE_F32, DTYPE_F32, DTYPE_I32, DTYPE_F16};
    for (int i = 0; i < 3; i++)
        ck_assert(kept[i]->dtype == types[i] && kept[i]->exact);
    for (int i = 0; i < 4; i++)
        ck_assert(left[i]->dtype == own[i] && !left[i]->exact);
    build_free(build);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, temporaries_are_kept_in_the_type_of_their_values);
    tcase_add_test(tests, halves_are_halves_and_what_holds_them);
    tcase_add_test(tests, bytes_are_halves);
    tcase_add_test(tests, quotients_of_constants_are_corrected_once_or_twice);
    tcase_add_test(tests, what_reals_are_cut_off_to_is_no_half);
}

int main(void) { return build_run("exact_type", add); }
