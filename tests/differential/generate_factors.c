// Sums with factors, quotients and powers, as people write them who mind the range of a type and as those who don't.
//
//   m[i] = max[j](abs(a[i, j]))        y[i] = m[i] * sqrt(sum[j](sq(a[i, j] / m[i])))
//   y[i] = sum[j](a[i, j] * 0.125 * (b[i, j] / s[i]))
//   e[i, j] = exp(t[i, j] - h[i])      y[i, k] = sum[j](e[i, j] / n[i] * v[j, k])
//
// A factor may stand anywhere in the term, in a definition that the term reads, or behind the sum.
#include <inttypes.h>
#include <string.h>

#include "differential/generate_parts.h"

typedef struct Text {
    Arena *arena;
    Random random;
    StrBuf out;         // inputs and definitions that stand before the sum
    bool is_matrix;     // y[i, k]: b is b[j, k]
    bool mixes_signs;   // sines
    int made;           // definitions
    const char *type[4];
} Text;

enum { A, B, S, D };

static bool chance(Text *t, int percent) { return random_chance(&t->random, percent); }
static int64_t below(Text *t, int64_t count) { return random_below(&t->random, count); }

// ---- inputs ----

/* Whole numbers are made real: / of two of them is cut off. */
static const char *read(Text *t, int input)
{
    const char *const matrix[] = {"a[i, j]", "b[j, k]", "s[i]", "d[]"}, *const row[] = {"a[i, j]", "b[i, j]", "s[i]", "d[]"};
    const char *access = t->is_matrix ? matrix[input] : row[input];
    bool is_whole = t->type[input][0] == 'i' || t->type[input][0] == 'u' || t->type[input][1] == '1';
    return is_whole && t->type[input][1] != '6' ? arena_printf(t->arena, "cast(%s, f32)", access) : access;
}

static void put_inputs(Text *t)
{
    static const char *const types[] = {"f32", "f32", "f32", "f32", "f16", "f16", "f16", "f16",
                                        "bf16", "bf16", "i8", "u8", "b1", "f64"};
    static const int extents[] = {1, 2, 3, 7, 7, 16, 40, 64};
    bool alike = chance(t, 50);
    for (int i = 0; i < 4; i++)
        t->type[i] = alike && i == B ? t->type[A] : PICK(&t->random, types);
    strbuf_printf(&t->out, "param N = %d\n", PICK(&t->random, extents));
    strbuf_printf(&t->out, "input a[3, N] : %s\ninput b[%s] : %s\n", t->type[A], t->is_matrix ? "N, 4" : "3, N",
                  t->type[B]);
    strbuf_printf(&t->out, "input s[3] : %s\ninput d[] : %s\n", t->type[S], t->type[D]);
    strbuf_printf(&t->out, "m[i] = max[j](abs(a[i, j]))\n");
}

// ---- what a term is made of ----

/* Of one element. */
static const char *element(Text *t, int input)
{
    static const char *const functions[] = {"%s", "%s", "%s", "%s", "sq(%s)", "sqrt(abs(%s))", "pow(abs(%s), 1.5)",
                                            "tanh(%s)", "sigmoid(%s)", "relu(%s)", "abs(%s)", "(1 / (1 + abs(%s)))",
                                            "min(abs(%s), 1)", "atan(%s)"};
    const char *x = read(t, input), *pattern = PICK(&t->random, functions);
    if (chance(t, 4)) {
        t->mixes_signs = true;
        return arena_printf(t->arena, "%s(%s)", chance(t, 50) ? "sin" : "cos", x);
    }
    StrBuf out = strbuf_new(t->arena);
    for (const char *c = pattern; *c; c++)
        if (*c == '%')
            strbuf_puts(&out, (c++, x));
        else
            strbuf_putc(&out, *c);
    return out.text;
}

/* What all terms share. */
static const char *shared(Text *t)
{
    static const char *const numbers[] = {"0.125", "3", "7", "1000", "1e-15", "1e15", "1e30", "1e-30", "0.5", "1e9"};
    const char *s = read(t, S), *d = read(t, D);
    switch (below(t, 10)) {
    case 0: return arena_printf(t->arena, "sq(%s)", s);
    case 1: return arena_printf(t->arena, "sqrt(abs(%s))", s);
    case 2: return arena_printf(t->arena, "(1 / %s)", s);
    case 3: return d;
    case 4: return s;
    case 5:
    case 6: return "m[i]";
    default: return PICK(&t->random, numbers);
    }
}

/* One more factor before, behind or below what is there. */
static const char *with_factor(Text *t, const char *term, const char *factor, bool may_divide)
{
    switch (below(t, may_divide ? 4 : 2)) {
    case 0: return arena_printf(t->arena, "%s * %s", term, factor);
    case 1: return arena_printf(t->arena, "%s * (%s)", factor, term);
    default: return arena_printf(t->arena, "%s / %s", term, factor);
    }
}

/* A product that other factors may join at either end. */
static const char *product(Text *t, const char *term)
{
    for (int left = (int)below(t, 3); left > 0; left--)
        term = with_factor(t, term, shared(t), true);
    return term;
}

/* Of some the value is a definition's. */
static const char *defined(Text *t, const char *value, bool of_a)
{
    if (chance(t, 65) || (t->is_matrix && !of_a))
        return arena_printf(t->arena, "(%s)", value);
    strbuf_printf(&t->out, "p%d[i, j] = %s\n", t->made, value);
    return arena_printf(t->arena, "p%d[i, j]", t->made++);
}

static const char *term(Text *t)
{
    const char *first = product(t, element(t, A));
    if (t->is_matrix)
        return product(t, arena_printf(t->arena, "%s * %s", defined(t, first, true), element(t, B)));
    switch (below(t, 4)) {
    case 0: return chance(t, 50) ? arena_printf(t->arena, "sq(%s)", first)
                                 : arena_printf(t->arena, "(%s) * (%s)", first, first);
    case 1: return product(t, defined(t, first, true));
    case 2: return arena_printf(t->arena, "pow(abs(%s), 2)", first);
    default: return product(t, with_factor(t, defined(t, first, true), defined(t, product(t, element(t, B)), false),
                                           false));
    }
}

// ---- programs ----

/* What becomes of a sum. */
static const char *behind(Text *t, const char *sum)
{
    const char *value = chance(t, 15) ? arena_printf(t->arena, "-%s", sum) : sum;
    switch (below(t, 10)) {
    case 0: return arena_printf(t->arena, "m[i] * sqrt(abs(%s))", value);
    case 1: return with_factor(t, value, shared(t), true);
    case 2: return arena_printf(t->arena, "sqrt(abs(%s))", value);
    case 3: return arena_printf(t->arena, "%s > 2", value);
    default: return value;
    }
}

static const char *place(const Text *t) { return t->is_matrix ? "i, k" : "i"; }

static void put_sum(Text *t)
{
    static const char *const reductions[] = {"sum", "sum", "sum", "sum", "sum", "sum", "sum", "sum", "max", "min"};
    const char *body = term(t), *reduction = PICK(&t->random, reductions);
    const char *value = behind(t, arena_printf(t->arena, "%s[j](%s)", reduction, body));
    strbuf_printf(&t->out, "y[%s] = %s\noutput y%s\n", place(t), value,
                  chance(t, 10) && !strstr(value, ">") && !strstr(t->out.text, "f64") ? " : f16" : "");
}

/* A mean of v, divided before or after it is summed up, with weights between 0 and 1, or with others. */
static void put_mean(Text *t)
{
    static const char *const weights[] = {"exp(t[i, j] - h[i])", "exp(t[i, j] - h[i])", "exp(t[i, j] - max(h[i], 3))",
                                          "sigmoid(t[i, j])", "exp(t[i, j])", "exp(t[i, j] - h[1])"};
    static const char *const types[] = {"f32", "f32", "bf16", "f16"};
    static const char *const means[] = {"sum[j](e[i, j] / n[i] * v[j, k])", "sum[j](e[i, j] * v[j, k] / n[i])",
                                        "sum[j](e[i, j] * v[j, k]) / n[i]", "sum[j](v[j, k] * (e[i, j] / n[i]))"};
    strbuf_printf(&t->out, "param N = %d\ninput t[3, N] : %s\n", 2 + (int)below(t, 60), PICK(&t->random, types));
    strbuf_printf(&t->out, "input v[N, 4] : %s\n", PICK(&t->random, types));
    strbuf_puts(&t->out, "h[i] = max[j](t[i, j])\n");
    strbuf_printf(&t->out, "e[i, j] = %s\nn[i] = sum[j](e[i, j])\n", PICK(&t->random, weights));
    strbuf_printf(&t->out, "y[i, k] = %s\noutput y\n", PICK(&t->random, means));
}

char *generate_factors(Arena *arena, uint64_t seed, uint64_t number)
{
    Text text = {.arena = arena, .random = {generate_hash(seed ^ generate_hash(number))}, .out = strbuf_new(arena)};
    Text *t = &text;
    if (chance(t, 10)) {
        put_mean(t);
    } else {
        t->is_matrix = chance(t, 40);
        put_inputs(t);
        put_sum(t);
    }
    return t->out.text;
}
