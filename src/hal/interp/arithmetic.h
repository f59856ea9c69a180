// Real numbers that count what is done with them: what a counted program has in place of float and double.
//
// An operation is counted where the program says it, whatever the compiler makes of it. A maximum is one comparison, a
// fused multiply-add both of what its name says. Conversions, signs and the comparisons of a condition count as
// nothing; of integers, of which indices are made, too, only what the prelude's op_add() and op_mul() do counts.
#ifndef ROLLERC_INTERP_ARITHMETIC
#define ROLLERC_INTERP_ARITHMETIC

namespace rollerc_interp {

// In constants the compiler does it.
static constexpr __forceinline__ void note(Arithmetic kind)
{
    if (!__builtin_is_constant_evaluated())
        count_arithmetic(kind);
}

template <class Real> struct Counted {
    Real value;

    Counted() = default;
    constexpr Counted(float x) : value(static_cast<Real>(x)) {}
    constexpr Counted(double x) : value(static_cast<Real>(x)) {}
    constexpr Counted(int x) : value(static_cast<Real>(x)) {}
    constexpr Counted(unsigned x) : value(static_cast<Real>(x)) {}
    constexpr Counted(long x) : value(static_cast<Real>(x)) {}
    constexpr Counted(unsigned long x) : value(static_cast<Real>(x)) {}
    constexpr Counted(long long x) : value(static_cast<Real>(x)) {}
    constexpr Counted(unsigned long long x) : value(static_cast<Real>(x)) {}
    template <class Other, class = char[sizeof(Other) < sizeof(Real) ? 1 : -1]>   // a double becomes a float only where it is asked to
    constexpr Counted(Counted<Other> x) : value(static_cast<Real>(x.value))
    {
    }
    template <class To> explicit constexpr operator To() const { return static_cast<To>(value); }

    constexpr Counted operator-() const { return -value; }
    constexpr Counted operator+() const { return value; }
    constexpr Counted &operator+=(Counted b) { return *this = *this + b; }
    constexpr Counted &operator-=(Counted b) { return *this = *this - b; }
    constexpr Counted &operator*=(Counted b) { return *this = *this * b; }
    constexpr Counted &operator/=(Counted b) { return *this = *this / b; }

    friend constexpr Counted operator+(Counted a, Counted b) { return note(ARITHMETIC_ADD), a.value + b.value; }
    friend constexpr Counted operator-(Counted a, Counted b) { return note(ARITHMETIC_ADD), a.value - b.value; }
    friend constexpr Counted operator*(Counted a, Counted b) { return note(ARITHMETIC_MULTIPLY), a.value * b.value; }
    friend constexpr Counted operator/(Counted a, Counted b) { return note(ARITHMETIC_DIVIDE), a.value / b.value; }
    friend constexpr bool operator==(Counted a, Counted b) { return a.value == b.value; }
    friend constexpr bool operator!=(Counted a, Counted b) { return a.value != b.value; }
    friend constexpr bool operator<(Counted a, Counted b) { return a.value < b.value; }
    friend constexpr bool operator>(Counted a, Counted b) { return a.value > b.value; }
    friend constexpr bool operator<=(Counted a, Counted b) { return a.value <= b.value; }
    friend constexpr bool operator>=(Counted a, Counted b) { return a.value >= b.value; }
};

using Float = Counted<float>;
using Double = Counted<double>;

#define ROLLERC_FUNCTION(name)                                                                       \
    static __forceinline__ Float name##f(Float x) { return note(ARITHMETIC_FUNCTION), ::name##f(x.value); } \
    static __forceinline__ Double name(Double x) { return note(ARITHMETIC_FUNCTION), ::name(x.value); }
ROLLERC_FUNCTION(exp)
ROLLERC_FUNCTION(exp2)
ROLLERC_FUNCTION(log)
ROLLERC_FUNCTION(sqrt)
ROLLERC_FUNCTION(rsqrt)
ROLLERC_FUNCTION(tanh)
ROLLERC_FUNCTION(erf)
ROLLERC_FUNCTION(sin)
ROLLERC_FUNCTION(cos)
ROLLERC_FUNCTION(atan)
ROLLERC_FUNCTION(asin)
ROLLERC_FUNCTION(acos)
#undef ROLLERC_FUNCTION
static __forceinline__ Float powf(Float x, Float y) { return note(ARITHMETIC_FUNCTION), ::powf(x.value, y.value); }
static __forceinline__ Double pow(Double x, Double y) { return note(ARITHMETIC_FUNCTION), ::pow(x.value, y.value); }

static __forceinline__ Float fabsf(Float x) { return ::fabsf(x.value); }
static __forceinline__ Double fabs(Double x) { return ::fabs(x.value); }
static __forceinline__ Float floorf(Float x) { return ::floorf(x.value); }
static __forceinline__ Double floor(Double x) { return ::floor(x.value); }
static __forceinline__ Float ceilf(Float x) { return ::ceilf(x.value); }
static __forceinline__ Double ceil(Double x) { return ::ceil(x.value); }
static __forceinline__ Float rintf(Float x) { return ::rintf(x.value); }
static __forceinline__ Double rint(Double x) { return ::rint(x.value); }
static __forceinline__ Float fmaf(Float a, Float b, Float c)
{
    note(ARITHMETIC_MULTIPLY);
    note(ARITHMETIC_ADD);
    return ::fmaf(a.value, b.value, c.value);
}
static __forceinline__ unsigned __float_as_uint(Float x) { return ::__float_as_uint(x.value); }
static __forceinline__ long long __double_as_longlong(Double x) { return ::__double_as_longlong(x.value); }

}   // namespace rollerc_interp

// What the prelude has as templates: these are preferred, where they come before it.
namespace rollerc {

#define ROLLERC_REAL(Real)                                                                           \
    static __forceinline__ Real op_add(Real a, Real b) { return a + b; }                             \
    static __forceinline__ Real op_sub(Real a, Real b) { return a - b; }                             \
    static __forceinline__ Real op_mul(Real a, Real b) { return a * b; }                             \
    static __forceinline__ Real op_max(Real a, Real b)                                               \
    {                                                                                                \
        rollerc_interp::note(rollerc_interp::ARITHMETIC_COMPARE);                                    \
        return a > b || a != a ? a : b;                                                              \
    }                                                                                                \
    static __forceinline__ Real op_min(Real a, Real b)                                               \
    {                                                                                                \
        rollerc_interp::note(rollerc_interp::ARITHMETIC_COMPARE);                                    \
        return a < b || a != a ? a : b;                                                              \
    }
ROLLERC_REAL(rollerc_interp::Float)
ROLLERC_REAL(rollerc_interp::Double)
#undef ROLLERC_REAL

#define ROLLERC_INTEGER(Integer, Wrapping)                                                           \
    static __forceinline__ Integer op_add(Integer a, Integer b)                                      \
    {                                                                                                \
        rollerc_interp::note(rollerc_interp::ARITHMETIC_ADD);                                        \
        return static_cast<Integer>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b));            \
    }                                                                                                \
    static __forceinline__ Integer op_mul(Integer a, Integer b)                                      \
    {                                                                                                \
        rollerc_interp::note(rollerc_interp::ARITHMETIC_MULTIPLY);                                   \
        return static_cast<Integer>(static_cast<Wrapping>(a) * static_cast<Wrapping>(b));            \
    }
ROLLERC_INTEGER(int, unsigned)
ROLLERC_INTEGER(long long, unsigned long long)
#undef ROLLERC_INTEGER

}   // namespace rollerc

#define float rollerc_interp::Float
#define double rollerc_interp::Double

#endif
