// Two sums of products with a softmax between them, as people write them: heads in groups, masks, biases, in any layout, and what
// almost is such a chain.
#include <inttypes.h>
#include <string.h>

#include "differential/generate_parts.h"

typedef struct Chain {
    Arena *arena;
    Random random;
    StrBuf text;
    const char *type;      // of q, k, v and shares
    int64_t batch, groups, heads, rows, columns, depth, width;
    bool heads_inside;     // [b, i, g, h, d] in place of [b, g, h, i, d]
    bool quotients;        // q[b, h, i, d] and k[b, h/4, j, d] in place of q[b, g, h, i, d] and k[b, g, j, d]
} Chain;

static bool chance(Chain *c, int percent) { return random_chance(&c->random, percent); }
static int64_t below(Chain *c, int64_t count) { return random_below(&c->random, count); }

/* Mostly whole pieces of 16 bytes. */
static int64_t line(Chain *c)
{
    static const int64_t usual[] = {8, 16, 16, 24, 32, 40, 64, 64, 72, 128};
    return chance(c, 92) ? PICK(&c->random, usual) : 1 + below(c, 40);
}

/* A few rows, all heads of a group together, and many columns, in whole parts or not. */
static void choose_few_rows(Chain *c)
{
    static const int64_t rows[] = {1, 1, 1, 2, 3, 5}, columns[] = {128, 130, 192, 256, 257, 300, 512, 700};
    c->rows = PICK(&c->random, rows);
    c->columns = PICK(&c->random, columns);
    c->heads = 1 + below(c, 6);
}

static void choose_sizes(Chain *c)
{
    static const int64_t few[] = {1, 1, 2, 3}, many[] = {1, 5, 16, 17, 33, 64, 65, 100, 130};
    static const char *const types[] = {"f16", "bf16"};
    c->type = PICK(&c->random, types);
    c->batch = PICK(&c->random, few);
    c->groups = 1 + below(c, 2);
    c->heads = PICK(&c->random, few);
    c->rows = PICK(&c->random, many);
    c->columns = chance(c, 50) ? c->rows : PICK(&c->random, many);
    c->depth = line(c);
    c->width = chance(c, 60) ? c->depth : line(c);
    c->heads_inside = chance(c, 40);
    c->quotients = chance(c, 35);
    if (chance(c, 30))
        choose_few_rows(c);
    if (c->rows * c->columns > 8000)
        c->batch = c->groups = c->heads = 1;
}

/* Heads inside of positions, or positions inside of heads. */
static void input(Chain *c, char name, int64_t positions, int64_t groups, int64_t heads, int64_t elements)
{
    strbuf_printf(&c->text, "input %c[%" PRId64, name, c->batch);
    if (c->heads_inside)
        strbuf_printf(&c->text, ", %" PRId64, positions);
    strbuf_printf(&c->text, ", %" PRId64, heads && c->quotients ? groups * heads : groups);
    if (heads && !c->quotients)
        strbuf_printf(&c->text, ", %" PRId64, heads);
    if (!c->heads_inside)
        strbuf_printf(&c->text, ", %" PRId64, positions);
    strbuf_printf(&c->text, ", %" PRId64 "] : %s\n", elements, c->type);
}

static void inputs(Chain *c)
{
    input(c, 'q', c->rows, c->groups, c->heads, c->depth);
    input(c, 'k', c->columns, c->groups, 0, c->depth);
    input(c, 'v', c->columns, c->groups, 0, c->width);
}

/* s, with a number in its terms, behind it or not at all. */
static void scores(Chain *c)
{
    static const char *const terms[] = {"%s * %s", "%s * %s", "%s * 0.25 * %s", "%s * %s / 4"};
    static const char *const typed[] = {"", "", "", " : f16"};
    const char *q = c->heads_inside ? "q[b, i, g, h, d]" : "q[b, g, h, i, d]",
               *k = c->heads_inside ? "k[b, j, g, d]" : "k[b, g, j, d]";
    const char *term = arena_printf(c->arena, PICK(&c->random, terms), q, k);
    strbuf_printf(&c->text, "s[b, g, h, i, j]%s = sum[d](%s)\n", PICK(&c->random, typed), term);
}

/* A tensor over some of the axes. */
static const char *bias(Chain *c, const char *name, const char *type)
{
    static const char *const dims[] = {"j", "i, j", "g, h, i, j", "b, j", "b, i, j", "h, i", "b, g, h, i, j"};
    const char *chosen = PICK(&c->random, dims), *comma = "";
    strbuf_printf(&c->text, "input %s[", name);
    for (const char *at = chosen; *at; at++) {
        int64_t heads = c->quotients ? c->groups * c->heads : c->heads;
        int64_t size = *at == 'b' ? c->batch : *at == 'g' ? c->groups : *at == 'h' ? heads : *at == 'i' ? c->rows : c->columns;
        if (*at < 'a' || (*at == 'g' && c->quotients))
            continue;
        strbuf_printf(&c->text, "%s%" PRId64, comma, size);
        comma = ", ";
    }
    strbuf_printf(&c->text, "] : %s\n", type);
    return arena_printf(c->arena, "%s[%s]", name, chosen);
}

/* Columns that count. */
static const char *condition(Chain *c)
{
    int64_t kind = below(c, 6), shift = below(c, 9) - 2;
    if (c->columns > 2 * c->rows && chance(c, 70))   // the last rows of many
        shift += c->columns - c->rows;
    switch (kind) {
    case 0: return "j <= i";
    case 1: return arena_printf(c->arena, "j < i + %" PRId64, shift);
    case 2: return arena_printf(c->arena, "i >= j - %" PRId64 " && i - j < %" PRId64, shift, 1 + below(c, 40));
    case 3: return arena_printf(c->arena, "j > i - %" PRId64, 1 + below(c, 30));
    case 4: return arena_printf(c->arena, "%s > 0", bias(c, "mask", "f32"));
    default: return arena_printf(c->arena, "j <= i && %s > 0", bias(c, "mask", "i32"));
    }
}

/* t: scale, soft cap, bias, positions, mask. */
static const char *made_of_scores(Chain *c)
{
    const char *t = "s[b, g, h, i, j]";
    if (chance(c, 60))
        t = arena_printf(c->arena, "%s * 0.3", t);
    if (chance(c, 12))
        t = arena_printf(c->arena, "tanh(%s / 2) * 2", t);
    if (chance(c, 30))
        t = arena_printf(c->arena, "%s + %s", t, bias(c, "bias", chance(c, 50) ? "f16" : "f32"));
    if (chance(c, 12))
        t = arena_printf(c->arena, "%s - 0.125 * abs(i - j)", t);
    if (chance(c, 10)) {
        strbuf_puts(&c->text, "input table[16] : f32\n");
        t = arena_printf(c->arena, "%s + table[%s]", t, bias(c, "bucket", "i32"));
    }
    if (chance(c, 50))
        t = chance(c, 75) ? arena_printf(c->arena, "select(%s, %s, -inf)", condition(c), t)
                          : arena_printf(c->arena, "%s + select(%s, 0, -inf)", t, condition(c));
    return t;
}

/* What a weighted mean may look like; some are no chain, since shares have no type or are rounded at their own scale. */
static void shares(Chain *c)
{
    const char *v = c->heads_inside ? "v[b, j, g, n]" : "v[b, g, j, n]", *at = "[b, g, h, i, j]", *type = c->type;
    const char *y = chance(c, 50) ? "y[b, g, h, i, n]" : "y[b, i, g, h, n]";
    int64_t kind = below(c, 10);
    StrBuf *out = &c->text;
    strbuf_printf(out, "e%s%s%s = exp(t%s - m[b, g, h, i])\nz[b, g, h, i] = sum[j](e%s)\n", at, kind == 0 ? " : " : "",
                  kind == 0 ? type : "", at, at);
    if (kind == 0) {
        strbuf_printf(out, "a[b, g, h, i, n] = sum[j](e%s * %s)\ny[b, g, h, i, n] = a[b, g, h, i, n] / z[b, g, h, i]\n", at, v);
    } else if (kind == 1) {
        strbuf_printf(out, "p%s = cast(e%s / z[b, g, h, i], %s)\n%s = sum[j](p%s * %s)\n", at, at, type, y, at, v);
    } else if (kind == 2) {
        strbuf_printf(out, "%s = sum[j](e%s / z[b, g, h, i] * %s)\n", y, at, v);
    } else {
        const char *share = arena_printf(c->arena, "e%s / z[b, g, h, i]", at);
        if (chance(c, 15))   // of rows of which no column counts
            share = arena_printf(c->arena, "select(m[b, g, h, i] == -inf, 0, %s)", share);
        if (chance(c, 25))   // of f32
            strbuf_printf(out, "p%s = %s\n", at, share);
        else
            strbuf_printf(out, "p%s : %s = %s\n", at, type, share);
        if (kind < 8)
            strbuf_printf(out, "%s = sum[j](p%s * %s)\n", y, at, v);
        else
            strbuf_printf(out, "%s = sum[j](%s * p%s)\n", y, v, at);
    }
}

static void outputs(Chain *c)
{
    if (chance(c, 25))
        strbuf_puts(&c->text, "l[b, g, h, i] = m[b, g, h, i] + log(z[b, g, h, i])\noutput l : f32\n");
    if (chance(c, 8))
        strbuf_puts(&c->text, "output m : f32\n");
    strbuf_printf(&c->text, "output y : %s\n", chance(c, 80) ? c->type : "f32");
}

/* g, h is one h then; what a group shares is read at h/4. */
static char *with_quotients(const Chain *c)
{
    StrBuf out = strbuf_new(c->arena);
    for (const char *at = c->text.text; *at; at++) {
        bool alone = strncmp(at, "g, ", 3) == 0 && strchr(" [", at[-1]);
        if (alone && at[3] == 'h')
            at += 2;
        else if (alone)
            strbuf_printf(&out, "h/%" PRId64, c->heads);
        else
            strbuf_printf(&out, "%c", *at);
    }
    return out.text;
}

char *generate_attention(Arena *arena, uint64_t state)
{
    Chain c = {.arena = arena, .random = {state}, .text = strbuf_new(arena)};
    choose_sizes(&c);
    inputs(&c);
    scores(&c);
    const char *t = made_of_scores(&c);
    strbuf_printf(&c.text, "t[b, g, h, i, j] = %s\nm[b, g, h, i] = max[j](t[b, g, h, i, j])\n", t);
    shares(&c);
    outputs(&c);
    return c.quotients ? with_quotients(&c) : c.text.text;
}
