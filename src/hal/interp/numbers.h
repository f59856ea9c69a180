// Numbers of the prelude whose conversions are instructions of GPUs, in integer arithmetic.
namespace rollerc {

struct f16 { unsigned short bits; };   // 1 sign, 5 exponent, 10 fraction

static __forceinline__ float widen(f16 x)
{
    const unsigned sign = (x.bits & 0x8000u) << 16;
    const unsigned rest = (x.bits & 0x7fffu) << 13;
    if (rest >= 0x0f800000u)   // infinity, NaN
        return __uint_as_float(sign | 0x70000000u | rest);
    const float two_to_112 = __uint_as_float(0x77800000u);   // biases: 127 - 15
    const float magnitude = __uint_as_float(rest) * two_to_112;
    return sign ? -magnitude : magnitude;
}

// To the nearest, ties to even.
static __forceinline__ f16 f16_of(float x)
{
    const unsigned bits = __float_as_uint(x);
    const unsigned sign = bits >> 16 & 0x8000u;
    const unsigned magnitude = bits & 0x7fffffffu;
    unsigned rounded;
    if (magnitude > 0x7f800000u)         // NaN
        rounded = 0x7fffu;
    else if (magnitude >= 0x47800000u)   // 2^16 and up
        rounded = 0x7c00u;
    else if (magnitude < 0x38800000u)    // below 2^-14: the last bit of 0.5f weighs 2^-24, its upper half is cut off
        rounded = __float_as_uint(__uint_as_float(magnitude) + 0.5f);
    else                                 // a carry may reach the exponent, up to infinity
        rounded = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    return f16{static_cast<unsigned short>(sign | rounded)};
}

}   // namespace rollerc

// Bytes of b and a, numbered 7…4 3…0; hexadecimal digit i of the selector says which becomes byte i.
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector)
{
    const unsigned long long bytes = static_cast<unsigned long long>(b) << 32 | a;
    unsigned result = 0;
    for (int i = 0; i < 4; i++)
        result |= static_cast<unsigned>(bytes >> (selector >> 4 * i & 7u) * 8 & 0xffu) << 8 * i;
    return result;
}
