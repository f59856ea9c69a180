// ---- scalar functions (src/ir/ops.def): float and double; some are defined for integers, too ----

template <class T> DEVICE T op_abs(T a) { return a < 0 ? op_neg(a) : a; }
DEVICE float op_abs(float a) { return fabsf(a); }
DEVICE double op_abs(double a) { return fabs(a); }

template <class T> DEVICE T op_floor(T a) { return a; }
DEVICE float op_floor(float a) { return floorf(a); }
DEVICE double op_floor(double a) { return floor(a); }

template <class T> DEVICE T op_ceil(T a) { return a; }
DEVICE float op_ceil(float a) { return ceilf(a); }
DEVICE double op_ceil(double a) { return ceil(a); }

template <class T> DEVICE T op_round(T a) { return a; }
DEVICE float op_round(float a) { return rintf(a); }
DEVICE double op_round(double a) { return rint(a); }

#if defined(ROLLERC_FAST_MATH)
DEVICE float op_exp(float a) { return __expf(a); }
#else
DEVICE float op_exp(float a) { return expf(a); }
#endif
DEVICE double op_exp(double a) { return exp(a); }

#if defined(ROLLERC_FAST_MATH)
DEVICE float op_log(float a) { return __logf(a); }
#else
DEVICE float op_log(float a) { return logf(a); }
#endif
DEVICE double op_log(double a) { return log(a); }

DEVICE float op_sqrt(float a) { return sqrtf(a); }
DEVICE double op_sqrt(double a) { return sqrt(a); }

DEVICE float op_rsqrt(float a) { return rsqrtf(a); }
DEVICE double op_rsqrt(double a) { return rsqrt(a); }

DEVICE float op_tanh(float a) { return tanhf(a); }
DEVICE double op_tanh(double a) { return tanh(a); }

DEVICE float op_erf(float a) { return erff(a); }
DEVICE double op_erf(double a) { return erf(a); }

// Uses exp(-|a|), which is at most 1: exp(89) is infinite in float, though sigmoid(-89) is 2^-128.
DEVICE double op_sigmoid(double a)
{
    const double e = op_exp(-op_abs(a));
    return op_div(a < 0 ? e : 1.0, 1.0 + e);
}
// The divisor lies between 1 and 2, so the approximate reciprocal (2 ulp) has no special cases and is
// corrected once.
DEVICE float op_sigmoid(float a)
{
    const float e = op_exp(-op_abs(a)), by = 1.0f + e, reciprocal = __fdividef(1.0f, by);
    const float part = a < 0 ? e : 1.0f, quotient = part * reciprocal;
    return fmaf(fmaf(-quotient, by, part), reciprocal, quotient);
}

DEVICE float op_sin(float a) { return sinf(a); }
DEVICE double op_sin(double a) { return sin(a); }

DEVICE float op_cos(float a) { return cosf(a); }
DEVICE double op_cos(double a) { return cos(a); }

DEVICE float op_atan(float a) { return atanf(a); }
DEVICE double op_atan(double a) { return atan(a); }

DEVICE float op_asin(float a) { return asinf(a); }
DEVICE double op_asin(double a) { return asin(a); }

DEVICE float op_acos(float a) { return acosf(a); }
DEVICE double op_acos(double a) { return acos(a); }

DEVICE float op_pow(float a, float b) { return powf(a, b); }
DEVICE double op_pow(double a, double b) { return pow(a, b); }
