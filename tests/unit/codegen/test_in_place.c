// Parts of a concatenation that are stored where they belong: which programs have some, and what their kernels store and read.
#include <check.h>
#include <string.h>

#include "front/lex.h"
#include "front/lower.h"
#include "front/parse.h"
#include "ir/compose.h"
#include "ir/concatenation.h"

static Arena *arena;
static void begin(void) { arena = arena_new(); }
static void end(void) { arena_free(arena); }

static FusionPlan plan_of(const char *text)
{
    const Source *source = source_from_text(arena, "case.te", text, strlen(text));
    return fuse(arena, compose(arena, lower(arena, parse(arena, lex(arena, source)), NULL, 0))).plans[0];
}

/* Kernels that store a part of another tensor. */
static int parts_of(const FusionPlan *plan)
{
    int parts = 0;
    for (int f = 0; f < plan->count; f++)
        for (int i = 0; i < plan->fusions[f]->output_count; i++)
            parts += plan->fusions[f]->outputs[i]->part_of != NULL;
    return parts;
}

#define INPUTS "input x[40, 32] : f16  input w[64, 32] : f16  input v[32, 32] : f16\n"
#define PARTS "p[i, j] : f16 = sum[d](x[i, d] * w[j, d])\nq[i, j] : f16 = max(sum[d](x[i, d] * v[j, d]), 0)\n"
#define WHOLE "c[i, l:96] = select(l < 64, pad(p[i, l], 0), pad(q[i, l - 64], 0))\n"
#define READER "input n[96] : f16\ny[i] = sum[l](c[i, l] * n[l])\noutput y\n"

START_TEST(products_store_their_parts)
{
    FusionPlan plan = plan_of(INPUTS PARTS WHOLE READER);
    ck_assert_int_eq(plan.count, 3);
    const Tensor *p = plan.fusions[0]->outputs[0], *q = plan.fusions[1]->outputs[0];
    ck_assert_str_eq(p->part_of->name, "c");
    ck_assert(q->part_of == p->part_of && p->id == q->id && p->part_first == 0 && q->part_first == 64);
    /* q[i, j] is c[i, j + 64]: a row of 96, and what the kernel is given begins at 64. */
    Affine offset = access_offset(&plan.fusions[1]->ops[plan.fusions[1]->op_count - 1].store);
    ck_assert(offset.coef[0] == 96 && offset.coef[1] == 1 && offset.constant == 0);
    RowPart part = fusion_part(plan.fusions[1], q, true), read = fusion_part(plan.fusions[2], p->part_of, false);
    ck_assert(part.first == 64 && part.end == 96 && read.first == 0 && read.end == 96);
    ck_assert_int_eq(plan.fusions[2]->input_count, 2);
}
END_TEST

/* cat[i, l:64] lies in the larger one, whose first part is p's: nobody copies, and its reader reads 64 of 96. */
START_TEST(smaller_ones_lie_in_the_largest)
{
    FusionPlan plan = plan_of("input x[40, 32] : f16  input w[32, 32] : f16  input v[32, 32] : f16  input u[32, 32] : f16\n"
                              "p[i, j] : f16 = sum[d](x[i, d] * w[j, d])\nq[i, j] : f16 = sum[d](x[i, d] * v[j, d])\n"
                              "r[i, j] : f16 = sum[d](x[i, d] * u[j, d])\n"
                              "b[i, l:64] = select(l < 32, pad(p[i, l], 0), pad(q[i, l - 32], 0))\n"
                              "c[i, l:96] = select(l < 64, pad(b[i, l], 0), pad(r[i, l - 64], 0))\n"
                              "y[i] = max[l](b[i, l])\nz[i] = max[l](c[i, l])\noutput y output z");
    ck_assert_int_eq(parts_of(&plan), 3);
    ck_assert_int_eq(plan.count, 5);
    for (int f = 3; f < 5; f++) {
        const Fusion *reader = plan.fusions[f];
        ck_assert_int_eq(reader->input_count, 1);
        ck_assert_str_eq(reader->inputs[0]->name, "c");
        bool is_y = !strcmp(reader->outputs[0]->name, "y");
        ck_assert_int_eq(fusion_part(reader, reader->inputs[0], false).end, is_y ? 64 : 96);
    }
}
END_TEST

START_TEST(who_reads_a_part_alone_reads_it_there)
{
    FusionPlan plan = plan_of(INPUTS PARTS WHOLE READER "z[i] = max[j](q[i, j])\noutput z");
    ck_assert_int_eq(parts_of(&plan), 2);
    for (int f = 0; f < plan.count; f++)
        if (!strcmp(plan.fusions[f]->outputs[0]->name, "z")) {
            ck_assert_str_eq(plan.fusions[f]->inputs[0]->name, "c");
            RowPart part = fusion_part(plan.fusions[f], plan.fusions[f]->inputs[0], false);
            ck_assert(part.first == 64 && part.end == 96);
        }
}
END_TEST

/* Of columns from 70 on nothing lies in the first part: what would read it is never chosen. */
START_TEST(a_slice_reads_where_it_lies)
{
    FusionPlan plan = plan_of(INPUTS PARTS WHOLE READER "z[i] = max[l:20](c[i, l + 70])\noutput z");
    ck_assert_int_eq(parts_of(&plan), 2);
    for (int f = 0; f < plan.count; f++)
        if (!strcmp(plan.fusions[f]->outputs[0]->name, "z")) {
            RowPart part = fusion_part(plan.fusions[f], plan.fusions[f]->inputs[0], false);
            ck_assert(part.first == 70 && part.end == 90);
            ck_assert_int_eq(plan.fusions[f]->ops[0].body->kind, EXPR_ACCESS);
        }
}
END_TEST

/* An output that is concatenated is written by parts. */
START_TEST(outputs_are_made_of_parts)
{
    FusionPlan plan = plan_of(INPUTS PARTS WHOLE "output c");
    ck_assert(plan.count == 2 && parts_of(&plan) == 2);
}
END_TEST

/* Why: an input is a part; one is an output itself; a row of 97 and a part at 65 are no whole vectors; a part is read through a view,
   and at computed places; parts are of another type; only a pointwise definition, which has no kernel, makes one; one is read by the
   kernel that makes another. */
static const char *const others[] = {
    INPUTS PARTS "input k[40, 8] : f16\nc[i, l:72] = select(l < 64, pad(p[i, l], 0), pad(k[i, l - 64], 0))\noutput c",
    INPUTS PARTS WHOLE "output c output p",
    "input x[40, 32] : f16  input w[65, 32] : f16  input v[32, 32] : f16\n" PARTS
    "c[i, l:97] = select(l < 65, pad(p[i, l], 0), pad(q[i, l - 65], 0))\noutput c",
    INPUTS PARTS WHOLE "view s[2560] = p\ny[] = max[i](s[i])\noutput y output c",
    INPUTS PARTS WHOLE "input t[8] : i32\ny[i, j] = p[t[i], j]\noutput y output c",
    INPUTS "p[i, j] : f32 = sum[d](x[i, d] * w[j, d])\nq[i, j] : f16 = sum[d](x[i, d] * v[j, d])\n"
           "c[i, l:96] = select(l < 64, pad(p[i, l], 0), pad(q[i, l - 64], 0))\noutput c",
    INPUTS "p[i, j] : f16 = sum[d](x[i, d] * w[j, d])\nq[i, j] : f16 = x[i, j] * 2\n" WHOLE "output c",
    INPUTS "p[i, j] : f16 = sum[d](x[i, d] * w[j, d])\nq[i, j:32] : f16 = max[d](p[i, d]) - v[0, j]\n" WHOLE "output c",
};

START_TEST(others_are_copied)
{
    FusionPlan plan = plan_of(others[_i]);
    ck_assert_int_eq(parts_of(&plan), 0);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("in_place");
    tcase_add_checked_fixture(cases, begin, end);
    tcase_add_test(cases, products_store_their_parts);
    tcase_add_test(cases, smaller_ones_lie_in_the_largest);
    tcase_add_test(cases, who_reads_a_part_alone_reads_it_there);
    tcase_add_test(cases, a_slice_reads_where_it_lies);
    tcase_add_test(cases, outputs_are_made_of_parts);
    tcase_add_loop_test(cases, others_are_copied, 0, sizeof others / sizeof *others);
    Suite *suite = suite_create("in_place");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
