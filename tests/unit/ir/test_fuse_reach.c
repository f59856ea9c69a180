// How far indices get when definitions are folded into one another.
#include "build.h"
#include "ir/fuse_reach.h"

/* a[i] = x[step * i] and y[i] = a[step * i] for 64 i's; whether a may be folded into y. */
static bool fits(int64_t step)
{
    Build *build = build_new();
    Tensor *x = INPUT(build, DTYPE_F32, 64);
    Affine far = {.coef = {step}};
    Tensor *a = POINTWISE(build, ROLE_TEMPORARY, DTYPE_F32, build_access(build, x, &far), 64);
    Expr *read = build_access(build, a, &far);
    POINTWISE(build, ROLE_OUTPUT, DTYPE_F32, read, 64);
    const TensorOp *definition[3] = {NULL, build->ops[0], build->ops[1]};
    bool inlined[3] = {false, true, false};
    bool answer = reach_fits(build->ops[1], &read->access, definition, inlined);
    build_free(build);
    return answer;
}

START_TEST(steps_multiply_through_what_is_folded_in)
{
    ck_assert(fits(1));
    ck_assert(fits(200000000));   // (2 * 10^8)^2 * 64 = 2.6 * 10^18, 2^62 = 4.6 * 10^18
    ck_assert(!fits(300000000));
    ck_assert(!fits(-300000000));
}
END_TEST

static void add(TCase *tests) { tcase_add_test(tests, steps_multiply_through_what_is_folded_in); }

int main(void) { return build_run("fuse_reach", add); }
