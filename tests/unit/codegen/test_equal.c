// Launches are of one kernel where all that it takes as given is the same.
#include "codegen/equal.h"

#include <check.h>
#include <stdlib.h>

static Arena *arena;

static void setup(void) { arena = arena_new(); }

static void teardown(void) { arena_free(arena); }

enum { INPUTS = 3, LAUNCHES = 2 };

/* Two launches that read three tensors and write a fourth one; each test changes the second. */
typedef struct Pair {
    Tensor tensors[INPUTS + 1];
    Tensor *inputs[INPUTS], *outputs[1];
    Fusion fusion;
    LaunchArg args[LAUNCHES][INPUTS + 1];
    Launch launches[LAUNCHES];
    LaunchDraft drafts[LAUNCHES];
    Kernel kernel;
} Pair;

static const char block[] = "store(t.out0, i, op_add(load(t.in0, i), op_mul(load(t.in1, i), 2.0f)) - load(t.in2, i));\n";

static Pair *pair_new(void)
{
    Pair *pair = NEW(arena, Pair);
    for (int i = 0; i <= INPUTS; i++)
        pair->tensors[i] = (Tensor){.name = "x", .dtype = DTYPE_F32};
    for (int i = 0; i < INPUTS; i++)
        pair->inputs[i] = &pair->tensors[i];
    pair->outputs[0] = &pair->tensors[INPUTS];
    pair->fusion = (Fusion){.inputs = pair->inputs, .input_count = INPUTS, .outputs = pair->outputs, .output_count = 1};
    for (int k = 0; k < LAUNCHES; k++) {
        for (int i = 0; i <= INPUTS; i++)
            pair->args[k][i] = (LaunchArg){.offset = 4096 * k + 256 * i, .bytes = 256, .written = i == INPUTS};
        pair->launches[k] = (Launch){.grid = {8, 1, 1}, .block = {128, 1, 1}, .cluster = {1, 1, 1}, .shared_bytes = 1024,
                                     .turns = 1, .args = pair->args[k], .arg_count = INPUTS + 1};
        pair->drafts[k] = (LaunchDraft){.plan = {.fusion = &pair->fusion}, .template_path = "templates/elementwise.cu", .block = block};
    }
    pair->kernel = (Kernel){.launches = pair->launches, .launch_count = LAUNCHES};
    return pair;
}

static int kernels_of(Pair *pair)
{
    equal_kernels(arena, &pair->kernel, pair->drafts);
    ck_assert_int_eq(pair->kernel.leaders[0], 0);
    ck_assert_int_eq(pair->launches[1].kernel, pair->kernel.kernel_count - 1);
    return pair->kernel.kernel_count;
}

START_TEST(equal_launches_have_one_kernel) { ck_assert_int_eq(kernels_of(pair_new()), 1); }
END_TEST

START_TEST(what_comments_say_makes_no_difference)
{
    Pair *pair = pair_new();
    pair->drafts[1].block = "store(t.out0, i, op_add(load(t.in0, i), op_mul(load(t.in1, i), 2.0f)) - load(t.in2, i));// of y\n";
    ck_assert_int_eq(kernels_of(pair), 1);
}
END_TEST

/* (y + x * 2) - z: the first launch's in0 is x, in1 y and in2 z. */
START_TEST(inputs_go_by_their_first_use)
{
    Pair *pair = pair_new();
    pair->drafts[1].block = "store(t.out0, i, op_add(load(t.in2, i), op_mul(load(t.in0, i), 2.0f)) - load(t.in1, i));\n";
    pair->launches[1].map_count = pair->launches[0].map_count = 1;
    pair->launches[0].maps[0].arg = 1;
    pair->launches[1].maps[0].arg = 0;
    ck_assert_int_eq(kernels_of(pair), 1);
    ck_assert_int_eq(pair->launches[1].args[0].offset, 4096 + 2 * 256);
    ck_assert_int_eq(pair->launches[1].args[1].offset, 4096);
    ck_assert_int_eq(pair->launches[1].args[2].offset, 4096 + 256);
    ck_assert_int_eq(pair->launches[1].args[3].offset, 4096 + 3 * 256);
    ck_assert_int_eq(pair->launches[1].maps[0].arg, 1);
}
END_TEST

/* The same tensors in other roles: x + x * 2 is not x + y * 2. */
START_TEST(an_input_that_is_read_twice_is_no_other_one)
{
    Pair *pair = pair_new();
    pair->drafts[1].block = "store(t.out0, i, op_add(load(t.in0, i), op_mul(load(t.in0, i), 2.0f)) - load(t.in2, i));\n";
    ck_assert_int_eq(kernels_of(pair), 2);
}
END_TEST

START_TEST(a_constant_makes_another_kernel)
{
    Pair *pair = pair_new();
    pair->drafts[1].block = "store(t.out0, i, op_add(load(t.in0, i), op_mul(load(t.in1, i), 3.0f)) - load(t.in2, i));\n";
    ck_assert_int_eq(kernels_of(pair), 2);
}
END_TEST

START_TEST(another_template_makes_another_kernel)
{
    Pair *pair = pair_new();
    pair->drafts[1].template_path = "templates/loopnest.cu";
    ck_assert_int_eq(kernels_of(pair), 2);
}
END_TEST

START_TEST(another_type_makes_another_kernel)
{
    Pair *pair = pair_new();
    Fusion other = pair->fusion;
    Tensor half = {.name = "x", .dtype = DTYPE_F16}, *inputs[INPUTS] = {&half, pair->inputs[1], pair->inputs[2]};
    other.inputs = inputs;
    pair->drafts[1].plan.fusion = &other;
    ck_assert_int_eq(kernels_of(pair), 2);
}
END_TEST

/* 4 bytes behind a multiple of 16, where the first one's vectors are aligned. */
START_TEST(a_smaller_alignment_makes_another_kernel)
{
    Pair *pair = pair_new();
    pair->args[1][2].offset += 4;
    ck_assert_int_eq(kernels_of(pair), 2);
}
END_TEST

START_TEST(how_it_is_launched_makes_another_kernel)
{
    Launch *launch = NULL;
    for (int change = 0; change < 10; change++) {
        Pair *pair = pair_new();
        launch = &pair->launches[1];
        switch (change) {
        case 0: launch->grid[0]++; break;
        case 1: launch->grid[2]++; break;
        case 2: launch->block[0]++; break;
        case 3: launch->cluster[0]++; break;
        case 4: launch->shared_bytes++; break;
        case 5: launch->turns++; break;
        case 6: launch->cooperative = true; break;
        case 7: launch->early = true; break;
        case 8: launch->waits_last = true; break;
        default: launch->lets_begin = true; break;
        }
        ck_assert_msg(kernels_of(pair) == 2, "change %d", change);
    }
}
END_TEST

START_TEST(how_bulk_copies_see_tensors_makes_another_kernel)
{
    for (int change = 0; change < 4; change++) {
        Pair *pair = pair_new();
        for (int k = 0; k < LAUNCHES; k++) {
            pair->launches[k].map_count = 1;
            pair->launches[k].maps[0] = (TensorMap){
                .arg = 1, .rank = 2, .element_bytes = 4, .sizes = {64, 64}, .strides = {256}, .box = {32, 64}};
        }
        TensorMap *map = &pair->launches[1].maps[0];
        switch (change) {
        case 0: map->sizes[1]++; break;
        case 1: map->strides[0] += 16; break;
        case 2: map->box[1]++; break;
        default: map->tf32 = true; break;
        }
        ck_assert_msg(kernels_of(pair) == 2, "change %d", change);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("equal");
    TCase *tests = tcase_create("equal");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, equal_launches_have_one_kernel);
    tcase_add_test(tests, what_comments_say_makes_no_difference);
    tcase_add_test(tests, inputs_go_by_their_first_use);
    tcase_add_test(tests, an_input_that_is_read_twice_is_no_other_one);
    tcase_add_test(tests, a_constant_makes_another_kernel);
    tcase_add_test(tests, another_template_makes_another_kernel);
    tcase_add_test(tests, another_type_makes_another_kernel);
    tcase_add_test(tests, a_smaller_alignment_makes_another_kernel);
    tcase_add_test(tests, how_it_is_launched_makes_another_kernel);
    tcase_add_test(tests, how_bulk_copies_see_tensors_makes_another_kernel);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
