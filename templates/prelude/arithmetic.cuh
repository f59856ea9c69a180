// ---- scalar operations (src/ir/ops.def): integers wrap, and nothing traps ----

template <class T> DEVICE T wrapping(T x) { return x; }
DEVICE unsigned wrapping(int x) { return static_cast<unsigned>(x); }
DEVICE unsigned long long wrapping(long long x) { return static_cast<unsigned long long>(x); }

template <class T> DEVICE T op_neg(T a) { return static_cast<T>(-wrapping(a)); }
template <class T> DEVICE T op_add(T a, T b) { return static_cast<T>(wrapping(a) + wrapping(b)); }
template <class T> DEVICE T op_sub(T a, T b) { return static_cast<T>(wrapping(a) - wrapping(b)); }
template <class T> DEVICE T op_mul(T a, T b) { return static_cast<T>(wrapping(a) * wrapping(b)); }
template <class T> DEVICE T op_sq(T a) { return op_mul(a, a); }

template <class T> DEVICE T op_div(T a, T b) { return b == 0 ? 0 : b == -1 ? op_neg(a) : a / b; }
template <class T> DEVICE T op_mod(T a, T b) { return b == 0 || b == -1 ? 0 : a % b; }
DEVICE double op_div(double a, double b) { return a / b; }
#if defined(ROLLERC_FAST_MATH)
DEVICE float op_div(float a, float b) { return __fdividef(a, b); }
#else
DEVICE float op_div(float a, float b) { return a / b; }
#endif

// a / b for a constant b whose float reciprocal has a relative error of at most 2^-25. It is exact but for
// the last place of quotients below 2^-100 (Markstein, "IA-64 and elementary functions", theorem 8.5). It has
// no branches, unlike a division, so the compiler can overlap it with other work. The divisor is made
// positive: the excess of an exact quotient is then +0, and -0 stays -0.
DEVICE float divide_by(float a, float b)
{
    const float part = b < 0 ? -a : a, by = b < 0 ? -b : b, reciprocal = 1 / by, quotient = part * reciprocal;
    const float excess = fmaf(quotient, by, -part);   // NaN where a is infinite
    return excess == excess ? fmaf(-excess, reciprocal, quotient) : quotient;
}
// a / b for other constants: the product with the reciprocal may be off by 2 ulp, and is corrected twice.
DEVICE float divide_by_any(float a, float b)
{
    const float part = b < 0 ? -a : a, by = b < 0 ? -b : b, reciprocal = 1 / by, estimate = part * reciprocal;
    const float quotient = fmaf(-fmaf(estimate, by, -part), reciprocal, estimate), excess = fmaf(quotient, by, -part);
    return excess == excess ? fmaf(-excess, reciprocal, quotient) : estimate;
}

// Copies the first of N values to the others.
template <int N, class T> DEVICE void spread(T (&a)[N])
{
    UNROLL for (int i = 1; i < N; i++)
        a[i] = a[0];
}

// Divides N values by one divisor. Correctly rounded like op_div, with a third of its instructions: for r =
// 1/b and q = a r the remainder a - q b is exact, and q + r (a - q b) is the quotient rounded once
// (Markstein, IBM J. R&D 34(1), 1990). Out of the normal range it gives infinity or NaN; such vectors are
// divided one by one.
struct Divisor { float value, reciprocal; };
DEVICE Divisor divisor_of(float b) { return {b, op_div(1.0f, b)}; }

template <int N> DEVICE void divide_all(float (&a)[N], Divisor by)
{
#if defined(ROLLERC_FAST_MATH)
    UNROLL for (int i = 0; i < N; i++)
        a[i] *= by.reciprocal;
#else
    float quotient[N], none = 0;   // NaN if any quotient is infinite or NaN
    UNROLL for (int i = 0; i < N; i++) {
        const float estimate = a[i] * by.reciprocal;
        quotient[i] = fmaf(fmaf(-estimate, by.value, a[i]), by.reciprocal, estimate);
        none = fmaf(quotient[i], 0.0f, none);
    }
    if (none == none)
        UNROLL for (int i = 0; i < N; i++)
            a[i] = quotient[i];
    else
        for (int i = 0; i < N; i++)
            a[i] = op_div(a[i], by.value);
#endif
}

template <class T> DEVICE T op_max(T a, T b) { return a > b || a != a ? a : b; }   // NaN if either is
template <class T> DEVICE T op_min(T a, T b) { return a < b || a != a ? a : b; }
template <class T> DEVICE T op_relu(T a) { return op_max(a, static_cast<T>(0)); }
