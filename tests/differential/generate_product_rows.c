// Products of which only reductions of the rows are kept: log-sums of logits, nearest neighbours, their sums and extremes, in any
// layout, and what almost is such a program.
#include <inttypes.h>

#include "differential/generate_parts.h"

typedef struct Rows {
    Arena *arena;
    Random random;
    StrBuf text;
    bool heads;   // a batch of products
    int64_t batch, rows, columns, depth;
} Rows;

static bool chance(Rows *r, int percent) { return random_chance(&r->random, percent); }

static void choose_sizes(Rows *r)
{
    static const int64_t few[] = {1, 2, 3}, many[] = {3, 5, 16, 17, 33, 65},
                         wide[] = {10, 30, 64, 65, 100, 129, 200, 257}, deep[] = {7, 8, 8, 16, 24, 40, 64};
    r->heads = chance(r, 30);
    r->batch = r->heads ? PICK(&r->random, few) : 1;
    r->rows = PICK(&r->random, many);
    r->columns = PICK(&r->random, wide);
    r->depth = PICK(&r->random, deep);
}

/* Either way round. */
static const char *factor(Rows *r, char name, const char *line, int64_t lines, const char *type)
{
    bool along = chance(r, 70);
    strbuf_printf(&r->text, "input %c[", name);
    if (r->heads)
        strbuf_printf(&r->text, "%" PRId64 ", ", r->batch);
    strbuf_printf(&r->text, "%" PRId64 ", %" PRId64 "] : %s\n", along ? lines : r->depth,
                  along ? r->depth : lines, type);
    return arena_printf(r->arena, along ? "%c[%s%s, d]" : "%c[%sd, %s]", name, r->heads ? "b, " : "", line);
}

static void product(Rows *r)
{
    static const char *const types[] = {"f16", "f16", "bf16", "f32"}, *const typed[] = {"", "", "", " : f16"};
    const char *type = PICK(&r->random, types);
    const char *x = factor(r, 'x', "i", r->rows, type), *w = factor(r, 'w', "j", r->columns, type);
    strbuf_printf(&r->text, "l[%si, j]%s = sum[d](%s * %s)\n", r->heads ? "b, " : "", PICK(&r->random, typed),
                  x, w);
}

/* t: scale, bias, norms, mask. */
static const char *element(Rows *r)
{
    const char *t = r->heads ? "l[b, i, j]" : "l[i, j]";
    if (chance(r, 40))
        t = arena_printf(r->arena, "%s * 0.3", t);
    if (chance(r, 30)) {
        strbuf_printf(&r->text, "input n[%" PRId64 "] : f32\n", r->columns);
        t = arena_printf(r->arena, "n[j] - 2 * %s", t);
    }
    if (chance(r, 20))
        t = arena_printf(r->arena, "select(j <= i + 2, %s, -inf)", t);
    return t;
}

static void reductions(Rows *r, const char *at, const char *t)
{
    static const char *const extremes[] = {"max", "max", "min"};
    strbuf_printf(&r->text, "m%s = %s[j](%s)\n", at, PICK(&r->random, extremes), t);
    StrBuf *out = &r->text;
    switch (random_below(&r->random, 5)) {
    case 0:
        strbuf_printf(out, "z%s = sum[j](%s)\ny%s = z%s - m%s\noutput y : f32\n", at, t, at, at, at);
        return;
    case 1:
        strbuf_printf(out, "z%s = sum[j](%s - m%s)\noutput z : f32\n", at, t, at);
        return;   // of another kind
    case 2:
        strbuf_printf(out, "z%s = min[j](select(%s == m%s, j, 1000))\noutput z : i32\noutput m : f32\n", at,
                      t, at);
        return;
    case 3: strbuf_puts(out, "output m : f32\n");   // fall through
    default:
        strbuf_printf(out, "z%s = sum[j](exp(%s - m%s))\ny%s = m%s + log(z%s)\noutput y : f32\n", at, t, at,
                      at, at, at);
    }
}

char *generate_product_rows(Arena *arena, uint64_t state)
{
    Rows r = {.arena = arena, .random = {state}, .text = strbuf_new(arena)};
    choose_sizes(&r);
    product(&r);
    const char *t = element(&r);
    if (chance(&r, 50)) {
        strbuf_printf(&r.text, "t[%si, j] = %s\n", r.heads ? "b, " : "", t);
        t = r.heads ? "t[b, i, j]" : "t[i, j]";
    }
    reductions(&r, r.heads ? "[b, i]" : "[i]", t);
    if (chance(&r, 15))   // its elements are wanted, too
        strbuf_printf(&r.text, "output l\n");
    return r.text.text;
}
