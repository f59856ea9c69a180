// Element types as bits: numbers worked by hand.
#include "build.h"

static const DType HALVES[] = {DTYPE_F16, DTYPE_BF16};

START_TEST(every_16_bit_pattern_survives_a_load_and_a_store)
{
    for (int bits = 0; bits < 65536; bits++) {
        uint16_t from = (uint16_t)bits, to = 0;
        double value = dtype_load(HALVES[_i], &from, 0);
        dtype_store(HALVES[_i], &to, 0, value);
        if (isnan(value))   // which NaN is free, but it stays one of the same sign
            ck_assert(isnan(dtype_load(HALVES[_i], &to, 0)) && (from ^ to) < 0x8000);
        else
            ck_assert_uint_eq(from, to);
    }
}
END_TEST

START_TEST(every_finite_pattern_rounds_to_itself_and_its_middle_to_even)
{
    uint16_t last = HALVES[_i] == DTYPE_F16 ? 0x7bff : 0x7f7f;   // the largest finite number
    for (int bits = 0; bits < last; bits++) {
        uint16_t pair[2] = {(uint16_t)bits, (uint16_t)(bits + 1)};
        double low = dtype_load(HALVES[_i], pair, 0), high = dtype_load(HALVES[_i], pair, 1);
        double middle = (low + high) / 2, even = bits % 2 ? high : low;
        ck_assert(low < high && dtype_round(HALVES[_i], low) == low);
        ck_assert(dtype_round(HALVES[_i], middle) == even);
        ck_assert(dtype_round(HALVES[_i], -middle) == -even);
        ck_assert(dtype_round(HALVES[_i], nextafter(middle, 0)) == low);
        ck_assert(dtype_round(HALVES[_i], nextafter(middle, INFINITY)) == high);
    }
}
END_TEST

/* All signs, exponents and upper digits, with lower digits below, at and above each middle. */
START_TEST(many_singles_are_stored_as_each_is)
{
    static const uint32_t lower[] = {0, 1, 0xfff, 0x1000, 0x1001, 0x2fff, 0x3000, 0x3001, 0x7fff, 0x8000, 0x8001, 0xffff};
    enum { COUNT = sizeof lower / sizeof *lower };
    for (uint32_t upper = 0; upper < 65536; upper++) {
        uint32_t singles[COUNT];
        uint16_t many[COUNT], each[COUNT];
        for (int i = 0; i < COUNT; i++) {
            singles[i] = upper << 16 | lower[i];
            dtype_store(HALVES[_i], each, i, dtype_load(DTYPE_F32, singles, i));
        }
        dtype_store_singles(HALVES[_i], many, singles, COUNT);
        ck_assert_mem_eq(many, each, sizeof many);
    }
    float singles[] = {1.5f, -2};
    double wide[2];
    dtype_store_singles(DTYPE_F64, wide, singles, 2);
    ck_assert(wide[0] == 1.5 && wide[1] == -2);
}
END_TEST

START_TEST(known_patterns)
{
    static const struct { DType type; uint16_t bits; double value; } rows[] = {
        {DTYPE_F16, 0x3c00, 1},          {DTYPE_F16, 0xc000, -2},       {DTYPE_F16, 0x3555, 0.333251953125},
        {DTYPE_F16, 0x7bff, 65504},      {DTYPE_F16, 0x0001, 0x1p-24},  {DTYPE_F16, 0x0400, 0x1p-14},
        {DTYPE_F16, 0x7c00, INFINITY},   {DTYPE_F16, 0xfc00, -INFINITY},
        {DTYPE_BF16, 0x3f80, 1},         {DTYPE_BF16, 0x4049, 3.140625}, {DTYPE_BF16, 0x0001, 0x1p-133},
        {DTYPE_BF16, 0x7f7f, 0x1.fep127}, {DTYPE_BF16, 0xff80, -INFINITY},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint16_t bits = 0;
        dtype_store(rows[i].type, &bits, 0, rows[i].value);
        ck_assert_uint_eq(bits, rows[i].bits);
        ck_assert(dtype_load(rows[i].type, &bits, 0) == rows[i].value);
    }
}
END_TEST

START_TEST(what_is_too_large_is_infinite)
{
    ck_assert(dtype_round(DTYPE_F16, 65519.999) == 65504);      // half a step of 32 above 65504 is 65520
    ck_assert(dtype_round(DTYPE_F16, 65520) == INFINITY);
    ck_assert(dtype_round(DTYPE_F16, -1e300) == -INFINITY);
    ck_assert(dtype_round(DTYPE_BF16, 3.4e38) == INFINITY);     // the middle behind 3.3895e38 is 3.3961e38
    ck_assert(dtype_round(DTYPE_F32, 3.5e38) == INFINITY);
    ck_assert(dtype_round(DTYPE_F64, 3.5e38) == 3.5e38);
    ck_assert(isnan(dtype_round(DTYPE_F16, NAN)) && isnan(dtype_round(DTYPE_BF16, NAN)));
}
END_TEST

START_TEST(tiny_values_become_denormal_or_a_signed_zero)
{
    ck_assert(dtype_round(DTYPE_F16, 0x1.8p-24) == 0x1p-23);    // 1.5 steps: the even one of 1 and 2
    ck_assert(dtype_round(DTYPE_F16, 0x1p-25) == 0);            // half a step: to even
    ck_assert(dtype_round(DTYPE_F16, 0x1.1p-25) == 0x1p-24);
    ck_assert(signbit(dtype_round(DTYPE_F16, -1e-30)));
    ck_assert(dtype_round(DTYPE_F16, 4e-320) == 0);             // denormal even in double
}
END_TEST

START_TEST(integers_wrap_to_their_width)
{
    ck_assert(dtype_round(DTYPE_I32, 2147483648.0) == -2147483648.0);
    ck_assert(dtype_round(DTYPE_I8, 200) == -56);
    ck_assert(dtype_round(DTYPE_U8, -1) == 255);
    ck_assert(dtype_round(DTYPE_U8, 256) == 0);
    ck_assert(dtype_round(DTYPE_I32, -7.9) == -7);
    ck_assert(dtype_round(DTYPE_I32, NAN) == 0);
    ck_assert(dtype_round(DTYPE_B1, -3) == 1);
    ck_assert(dtype_round(DTYPE_I64, 0x1p62) == 0x1p62);
}
END_TEST

START_TEST(memory_holds_each_type_in_its_width)
{
    static const DType types[] = {DTYPE_F64, DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_I32, DTYPE_I8, DTYPE_I64};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        unsigned char memory[4 * 8 + 1];
        memset(memory, 0xa5, sizeof memory);
        for (int i = 0; i < 4; i++)
            dtype_store(types[t], memory, i, 3 * i - 5);
        for (int i = 0; i < 4; i++)
            ck_assert(dtype_load(types[t], memory, i) == 3 * i - 5);
        ck_assert_uint_eq(memory[dtype_bytes(types[t], 4)], 0xa5);
    }
}
END_TEST

START_TEST(b1_is_a_bit_of_a_little_endian_word)
{
    unsigned char memory[8] = {0};
    dtype_store(DTYPE_B1, memory, 0, 1);
    dtype_store(DTYPE_B1, memory, 9, 1);    // bit 9 of word 0: bit 1 of byte 1
    dtype_store(DTYPE_B1, memory, 63, 1);
    ck_assert_uint_eq(memory[0], 1);
    ck_assert_uint_eq(memory[1], 2);
    ck_assert_uint_eq(memory[7], 0x80);
    dtype_store(DTYPE_B1, memory, 9, 0);
    ck_assert_uint_eq(memory[1], 0);
    ck_assert(dtype_load(DTYPE_B1, memory, 63) == 1 && dtype_load(DTYPE_B1, memory, 62) == 0);
}
END_TEST

START_TEST(random_inputs_suit_their_type)
{
    static const DType types[] = {DTYPE_F64, DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_I32, DTYPE_I8, DTYPE_U8, DTYPE_B1};
    Build *build = build_new();
    for (int t = 0; t < 8; t++)
        INPUT(build, types[t], 1000);
    for (int i = 0; i < 16000; i++) {
        DType type = types[i % 8];
        RandomInputs random = {&build->program, 7, i >= 8000 ? INPUT_WHOLE : INPUT_REAL};
        double value = random_input_element(&random, i % 8, i / 8);
        double low = dtype_info[type].is_real ? (random.kind == INPUT_WHOLE ? -4 : -1) : type >= DTYPE_U8 ? 0 : -8;
        double high = dtype_info[type].is_real ? (random.kind == INPUT_WHOLE ? 4 : 1) : type == DTYPE_B1 ? 1 : low + 15;
        ck_assert(value >= low && value <= high);
        ck_assert(dtype_round(type, value) == value);
        ck_assert(value == random_input_element(&random, i % 8, i / 8));
    }
    build_free(build);
}
END_TEST

/* 6 rows of 4: an element is special every 5, so that of 5 rows 4 have one, each in another column. */
START_TEST(one_element_of_each_row_is_special)
{
    static const DType types[] = {DTYPE_F64, DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_I32, DTYPE_I8, DTYPE_U8, DTYPE_B1};
    Build *build = build_new();
    for (int t = 0; t < 8; t++)
        INPUT(build, types[t], 6, 4);
    for (int t = 0; t < 8; t++) {
        RandomInputs high = {&build->program, 7, INPUT_HIGH}, low = {&build->program, 7, INPUT_LOW},
                     nan = {&build->program, 7, INPUT_NAN};
        int columns[4] = {0}, found = 0;
        for (int e = 0; e < 24; e++) {
            bool special = random_input_element(&high, t, e) != 0;
            ck_assert(special == (random_input_element(&high, t, e) == (types[t] == DTYPE_B1 ? 1 : 3)));
            ck_assert(special == (random_input_element(&low, t, e) == (types[t] >= DTYPE_U8 ? 0 : -3)));
            ck_assert((special && dtype_info[types[t]].is_real) == isnan(random_input_element(&nan, t, e)));
            columns[e % 4] += special;
            found += special;
        }
        ck_assert(found == 5 && columns[0] && columns[1] && columns[2] && columns[3]);
    }
    build_free(build);
}
END_TEST

START_TEST(special_inputs_suit_their_type)
{
    static const DType types[] = {DTYPE_F64, DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_I32, DTYPE_I8, DTYPE_U8, DTYPE_B1};
    Build *build = build_new();
    for (int t = 0; t < 8; t++)
        INPUT(build, types[t], 8, 9);
    for (int i = 0; i < INPUT_KINDS * 8 * 72; i++) {
        int t = i / 72 % 8, e = i % 72;
        InputKind kind = (InputKind)(i / (8 * 72));
        RandomInputs random = {&build->program, 3, kind};
        double value = random_input_element(&random, t, e), next = random_input_element(&random, t, e / 9 * 9);
        ck_assert(isnan(value) ? kind == INPUT_NAN : dtype_round(types[t], value) == value);
        ck_assert(types[t] < DTYPE_U8 || value >= 0);
        ck_assert(kind != INPUT_NEGATIVE || types[t] >= DTYPE_U8 || value < 0);
        ck_assert(kind != INPUT_DENORMAL || !dtype_info[types[t]].is_real || fabs(value) < 1e-6);
        ck_assert(kind != INPUT_ROWS || value == next);
        ck_assert(kind != INPUT_ENDS || (value != 0) == (e == 0 || e == 71));
        ck_assert(kind != INPUT_INFINITE || !dtype_info[types[t]].is_real || e / 9 % 4 != 3 || value == (double)-INFINITY);
    }
    ck_assert(input_kind_applies(&build->program, INPUT_NAN));
    build_free(build);
}
END_TEST

START_TEST(random_inputs_differ_by_seed_input_and_element)
{
    Build *build = build_new();
    INPUT(build, DTYPE_F32, 10);
    INPUT(build, DTYPE_F32, 10);
    RandomInputs one = {&build->program, 1, INPUT_REAL}, two = {&build->program, 2, INPUT_REAL};
    double value = random_input_element(&one, 0, 0);
    ck_assert(value != random_input_element(&one, 0, 1));
    ck_assert(value != random_input_element(&one, 1, 0));
    ck_assert(value != random_input_element(&two, 0, 0));
    build_free(build);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, every_16_bit_pattern_survives_a_load_and_a_store, 0, 2);
    tcase_add_loop_test(tests, every_finite_pattern_rounds_to_itself_and_its_middle_to_even, 0, 2);
    tcase_add_loop_test(tests, many_singles_are_stored_as_each_is, 0, 2);
    tcase_add_test(tests, known_patterns);
    tcase_add_test(tests, what_is_too_large_is_infinite);
    tcase_add_test(tests, tiny_values_become_denormal_or_a_signed_zero);
    tcase_add_test(tests, integers_wrap_to_their_width);
    tcase_add_test(tests, memory_holds_each_type_in_its_width);
    tcase_add_test(tests, b1_is_a_bit_of_a_little_endian_word);
    tcase_add_test(tests, random_inputs_suit_their_type);
    tcase_add_test(tests, one_element_of_each_row_is_special);
    tcase_add_test(tests, special_inputs_suit_their_type);
    tcase_add_test(tests, random_inputs_differ_by_seed_input_and_element);
}

int main(void)
{
    return build_run("dtype", add);
}
