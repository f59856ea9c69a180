// Powers, remainders and bits: operators whose expression depends on the types.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"

// ---- powers ----

/* An exponent that is known, a small whole number, and the same everywhere; else -1. */
static int known_exponent(const GraphValue *exponent)
{
    bool one = exponent->data && shape_count(&exponent->shape) > 0 &&
               (exponent->uniform || shape_count(&exponent->shape) == 1);
    double value = one ? constant_real(exponent, 0) : -1;
    return value == 1 || value == 2 || value == 3 ? (int)value : -1;
}

/* Exact, and wraps. More than `digits` factors of 2 or -2 are beyond the type; -1 alternates. */
static const char *integer_power(const Map *m, int digits)
{
    return fmt(m,
               "select($0 == -1, 1 - 2 * sq($1 %% 2), select($1 < 0, select($0 == 1, 1, 0), "
               "prod[r:%d](select(r < $1, $0, 1))))",
               digits);
}

/* In f64. What is within the error of `pow` from an integer is that integer. */
static void define_truncated_power(Map *m)
{
    DType type = need(m, 0)->type;
    GraphValue *power = part(m, out(m, 0), "pow");
    Dims shape = broadcast_shape(m, 0, 2);
    define(m, power, DTYPE_F64, &shape, letters_of(shape.rank),
           fmt(m, "pow(cast(%s, f64), cast(%s, f64))", at_broadcast(m, need(m, 0), &shape),
               at_broadcast(m, need(m, 1), &shape)));
    const char *text = "cast(select(abs($0 - round($0)) <= abs($0) * 1e-15, round($0), $0), $1)";
    Filling filling = {.operands = {at_broadcast(m, power, &shape), dtype_info[type].name}};
    define(m, out(m, 0), type, &shape, letters_of(shape.rank), expand(m, text, &filling));
}

/* Of the base's type. */
void map_pow(Map *m)
{
    static const char *const small[] = {"", "$0", "sq($0)", "$0 * $0 * $0"};
    DType type = need(m, 0)->type, by = need(m, 1)->type;
    int known = is_real(type) || !is_real(by) ? known_exponent(need(m, 1)) : -1;
    if (type == DTYPE_B1 || by == DTYPE_B1)
        refuse(m, "a power of bools");
    if (known >= 0)
        broadcast(m, type, small[known]);
    else if (is_real(type) && is_real(by))
        broadcast(m, type, "pow($0, $1)");
    else if (is_real(type))
        broadcast(m, type, fmt(m, "pow($0, cast($1, %s))", dtype_info[wide(type)].name));
    else if (is_real(by))
        define_truncated_power(m);
    else
        broadcast(m, type, integer_power(m, type == DTYPE_I64 ? 63 : 31));
}

// ---- remainders ----

/* |a| over |b| has at most 277 binary digits of f32, 261 of bf16, 40 of f16. In f64 a quotient below 2^29 of
   numbers of 24 digits is rounded down right, one below 2^42 of numbers of 11, and what is left is exact: 29
   digits a step. */
static const char *define_remainder(Map *m, const Dims *shape)
{
    DType type = need(m, 0)->type;
    const char *letters = letters_of(shape->rank), *a = at_broadcast(m, need(m, 0), shape),
               *b = at_broadcast(m, need(m, 1), shape);
    GraphValue *divisor = part(m, out(m, 0), "divisor");
    define(m, divisor, DTYPE_F64, shape, letters, fmt(m, "cast(abs(%s), f64)", b));
    const char *left = fmt(m, "cast(abs(%s), f64)", a), *by = at_broadcast(m, divisor, shape);
    for (int step = type == DTYPE_F32 ? 9 : type == DTYPE_BF16 ? 8 : 0; step >= 0; step--) {
        GraphValue *rest = part(m, out(m, 0), "rest");
        const char *unit =
            step ? fmt(m, "(%s * %s)", by, literal_real(m->arena, DTYPE_F64, ldexp(1, 29 * step))) : by;
        define(m, rest, DTYPE_F64, shape, letters,
               fmt(m, "%s - floor(%s / %s) * %s", left, left, unit, unit));
        left = at_broadcast(m, rest, shape);
    }
    GraphValue *size = part(m, out(m, 0), "size");
    define(m, size, DTYPE_F64, shape, letters,
           fmt(m, "select(%s == inf && abs(%s) < inf, cast(abs(%s), f64), %s)", by, a, a, left));
    return fmt(m, "select(%s < 0, -%s, %s)", a, at_broadcast(m, size, shape), at_broadcast(m, size, shape));
}

static void real_remainder(Map *m, bool truncates)
{
    DType type = need(m, 0)->type;
    if (type == DTYPE_F64)
        refuse(m, "a remainder of f64 cannot be told exactly");
    Dims shape = broadcast_shape(m, 0, 2);
    const char *letters = letters_of(shape.rank), *b = at_broadcast(m, need(m, 1), &shape);
    const char *signed_rest = define_remainder(m, &shape);
    if (truncates) {
        define_typed(m, out(m, 0), type, &shape, letters, signed_rest);
        return;
    }
    GraphValue *rest = part(m, out(m, 0), "fmod");
    define(m, rest, DTYPE_F64, &shape, letters, signed_rest);
    const char *left = at_broadcast(m, rest, &shape);
    define_typed(m, out(m, 0), type, &shape, letters,
                 fmt(m, "select(%s != 0 && (%s < 0) != (%s < 0), %s + cast(%s, f64), %s)", left, left, b,
                     left, b, left));
}

/* With the sign of the divisor, or with `fmod` that of the dividend. */
void map_mod(Map *m)
{
    DType type = need(m, 0)->type;
    bool truncates = attribute_int(m, "fmod", 0) != 0;
    if (is_real(type))
        real_remainder(m, truncates);
    else
        broadcast(m, type,
                  truncates ? "$0 % $1"
                            : "select($0 % $1 != 0 && ($0 % $1 < 0) != ($1 < 0), $0 % $1 + $1, $0 % $1)");
}

// ---- bits ----

static int bits_of(const Map *m, DType type)
{
    if (is_real(type) || type == DTYPE_B1)
        refuse(m, "bits of type %s", dtype_info[type].name);
    return 8 * constant_bytes(type);
}

/* A power of 2, of no more than `most` bits; shifts by negative numbers are as far as can be. */
static const char *shift_factor(const Map *m, int bits, int most)
{
    return fmt(m, "prod[r:%d](select(r < $1 || $1 < 0, %s, 1))", most, bits < 32 ? "2" : "cast(2, i64)");
}

/* The quotient rounded down. Of i64 2^62 is the largest power: what goes further leaves the sign. */
static const char *shifted_right(const Map *m, DType type, int bits)
{
    const char *by = shift_factor(m, bits, bits == 64 ? 62 : bits);
    if (type == DTYPE_U8)
        return fmt(m, "$0 / %s", by);
    const char *quotient = fmt(m, "select($0 < 0, ($0 + 1) / %s - 1, $0 / %s)", by, by);
    return bits == 64 ? fmt(m, "select($1 > 62 || $1 < 0, select($0 < 0, -1, 0), %s)", quotient) : quotient;
}

/* By as many bits as the type has, or by a negative number, nothing is left, or the sign. */
void map_bit_shift(Map *m)
{
    DType type = need(m, 0)->type;
    int bits = bits_of(m, type);
    const char *direction = attribute_text(m, "direction", "");
    bool left = strcmp(direction, "LEFT") == 0;
    if (!left && strcmp(direction, "RIGHT") != 0)
        refuse(m, "'direction' is '%s'", direction);
    const char *text = left ? fmt(m, "$0 * %s", shift_factor(m, bits, bits)) : shifted_right(m, type, bits);
    Dims shape = broadcast_shape(m, 0, 2);
    Filling filling = {
        .operands = {at_broadcast(m, need(m, 0), &shape), at_broadcast(m, need(m, 1), &shape)}};
    define_typed(m, out(m, 0), type, &shape, letters_of(shape.rank), expand(m, text, &filling));
}

/* The digit of 2^r of an element, of which the sign is taken away: 0 or 1. */
static const char *digit_of(const Map *m, const char *x, const char *lowest, const char *power)
{
    return fmt(m, "((select(%s < 0, %s - %s, %s) / %s) %% 2)", x, x, lowest, x, power);
}

/* Bits below the sign one by one, of a number that is made positive; then the sign. */
void map_bitwise(Map *m)
{
    DType type = need(m, 0)->type;
    int digits = bits_of(m, type) - (type != DTYPE_U8);   // below the sign
    const char *lowest = type == DTYPE_U8 ? "0" : literal_int(m->arena, (int64_t)(-1ULL << digits));
    Dims shape = broadcast_shape(m, 0, 2);
    GraphValue *bit = part(m, out(m, 0), "bit");
    Dims bits = {1, {digits}};
    define(m, bit, type == DTYPE_I64 ? DTYPE_I64 : DTYPE_I32, &bits, "i",
           fmt(m, "prod[r:%d](select(r < i, %s, 1))", digits - 1, type == DTYPE_I64 ? "cast(2, i64)" : "2"));
    const char *of[2], *sign[2];
    for (int i = 0; i < 2; i++) {
        const char *x = at_broadcast(m, need(m, i), &shape);
        of[i] = digit_of(m, x, lowest, at(m, bit, "r"));
        sign[i] = fmt(m, "select(%s < 0, 1, 0)", x);
    }
    const char *sum = fmt(m, "sum[r:%d](%s * (%s))", digits, at(m, bit, "r"),
                          expand(m, m->row->text, &(Filling){.operands = {of[0], of[1]}}));
    if (type != DTYPE_U8)
        sum = fmt(m, "%s + %s * (%s)", sum, lowest,
                  expand(m, m->row->text, &(Filling){.operands = {sign[0], sign[1]}}));
    define_typed(m, out(m, 0), type, &shape, letters_of(shape.rank), sum);
}

void map_bitwise_not(Map *m)
{
    DType type = need(m, 0)->type;
    bits_of(m, type);   // or refuses
    broadcast(m, type, type == DTYPE_U8 ? "255 - $0" : "-1 - $0");
}
