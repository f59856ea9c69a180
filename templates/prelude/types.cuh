// ---- element types in memory, and the compute types they are widened to ----

template <class T> DEVICE T widen(T x) { return x; }
DEVICE int widen(signed char x) { return x; }
DEVICE int widen(unsigned char x) { return x; }
DEVICE int widen(unsigned short x) { return x; }

template <class T> using compute_type = decltype(widen(T()));

template <class T> struct Narrow { template <class V> DEVICE T from(V value) { return static_cast<T>(value); } };   // wraps
template <> struct Narrow<f16> { DEVICE f16 from(float value) { return f16_of(value); } };
template <> struct Narrow<bf16> { DEVICE bf16 from(float value) { return bf16_of(value); } };
template <class T, class V> DEVICE T narrow(V value) { return Narrow<T>::from(value); }   // from the compute type of T

// The value that a reader of a stored T sees, from any compute type.
template <class T> struct Rounded : Narrow<T> {};
template <> struct Rounded<f16> { template <class V> DEVICE f16 from(V value) { return f16_once(value); } };
template <> struct Rounded<bf16> { template <class V> DEVICE bf16 from(V value) { return bf16_once(value); } };
template <class T, class V> DEVICE compute_type<T> round_to(V value) { return widen(Rounded<T>::from(value)); }

// Converts between compute types; only cast_int converts real values to integers.
template <class T, class V> DEVICE T convert(V value) { return static_cast<T>(value); }

template <class T> struct Integer;   // the range of an integer type
template <> struct Integer<signed char> { static constexpr int LOW = -128, HIGH = 127; };
template <> struct Integer<unsigned char> { static constexpr int LOW = 0, HIGH = 255; };
template <> struct Integer<long long> { static constexpr long long HIGH = 9223372036854775807ll, LOW = -HIGH - 1; };
template <> struct Integer<int> { static constexpr int LOW = -2147483647 - 1, HIGH = 2147483647; };

// Truncates; saturates to the range of T; NaN gives 0.
template <class T, class Real> DEVICE compute_type<T> cast_int(Real value)
{
    using Wide = compute_type<T>;
    if (value != value)
        return 0;
    if (value <= static_cast<Real>(Integer<T>::LOW))
        return static_cast<Wide>(Integer<T>::LOW);
    if (value >= static_cast<Real>(Integer<T>::HIGH))
        return static_cast<Wide>(Integer<T>::HIGH);
    return static_cast<Wide>(value);
}

template <class T> DEVICE T infinity() { return (T)__uint_as_float(0x7f800000u); }   // NVRTC knows no INFINITY
template <class T> DEVICE T nan_value() { return (T)__uint_as_float(0x7fffffffu); }

struct alignas(16) bits128 { unsigned words[4]; };   // elements that are moved unconverted
