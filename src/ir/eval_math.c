// What --math allows beyond correctly rounded f32 arithmetic, as additions to the bounds of eval_bound.c.
#include <float.h>
#include <math.h>
#include <string.h>

#include "ir/eval_parts.h"

const char *const eval_math_name[] = {[EVAL_EXACT] = "exact", [EVAL_TF32] = "tf32", [EVAL_FAST] = "fast"};

static const double ULP = 0x1p-23;                 // of f32, relative
static const double HUGE_DIVISOR = 0x1p126;        // from which __fdividef gives 0

/* CUDA programming guide, "Intrinsic Functions": __expf errs by 2 + 1.173 |x| ulp; doubled, as all bounds. */
static double exp_error(double x)
{
    return 2 * (2 + 1.173 * fabs(x)) * ULP;
}

/* __logf: 2^-21.41 in [0.5, 2], else 3 ulp. */
static double log_error(double value)
{
    return 2 * (0x1p-21 + 3 * ULP * fabs(value));
}

/* __fdividef: 2 ulp, and 0 for huge divisors. */
static double quotient_error(Real divisor, double value)
{
    return fabs(divisor.value) + divisor.bound >= HUGE_DIVISOR ? INFINITY : 2 * 2 * ULP * fabs(value);
}

/* __fdividef(1, 1 + __expf(-x)): where the divisor is huge, 0 stands for less than 2^-126. */
static double sigmoid_error(double x, double value)
{
    return value * (exp_error(x) + 2 * 3 * ULP) + 0x1p-125;
}

static double fast_error(Op op, Real a, Real b, Real result)
{
    double reach = fabs(result.value) + result.bound;
    switch (op) {
    case OP_EXP: return reach * exp_error(fabs(a.value) + a.bound) + FLT_MIN;
    case OP_LOG: return log_error(reach);
    case OP_DIV: return quotient_error(b, reach);
    case OP_SIGMOID: return sigmoid_error(fabs(a.value) + a.bound, reach);
    default: return 0;
    }
}

/* TF32 keeps 11 significant bits. */
static bool is_tf32(Real x)
{
    float single = (float)x.value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return x.bound == 0 && (double)single == x.value && (bits & 0x1fff) == 0;
}

/* Each operand is rounded, or cut off by hardware that reads it as it lies: by 2^-10 of itself at most, a
   denormal one by 13 bits, 2^-136. 1.0009 * 3 is 3 or 3.0029 there, never 3.0027, and 2^-147 * 3 may be 0. */
static double tf32_error(Real a, Real b, Real result)
{
    double rounded_a = is_tf32(a) ? 0 : 0x1.01p0, rounded_b = is_tf32(b) ? 0 : 0x1.01p0;
    double normal = (fabs(result.value) + result.bound) * (rounded_a + rounded_b) * 0x1p-10;
    double denormal = rounded_a * (fabs(b.value) + b.bound) + rounded_b * (fabs(a.value) + a.bound);
    return normal + denormal * 0x1p-136;
}

Real math_allow(EvalMath math, bool summed, Op op, Real a, Real b, Real result)
{
    double error = math == EVAL_FAST ? fast_error(op, a, b, result) : 0;
    if (!isfinite(result.value) || (result.value == 0 && result.bound == 0))
        return result;   // exp(-inf), log(0), 0 / b
    if (summed && op == OP_MUL)
        error += tf32_error(a, b, result);
    if (summed && op == OP_SQ)
        error += tf32_error(a, a, result);
    result.bound += error;
    if (!(fabs(result.value) + result.bound <= FLT_MAX))
        result.bound = INFINITY;
    return result;
}
