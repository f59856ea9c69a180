// Random programs of the shapes that people write: rows and channels that are normalised, axes in another
// order. Chance alone hardly ever makes them.
#include <inttypes.h>
#include <string.h>

#include "differential/generate_parts.h"

enum { MOST_AXES = 5, MOST_ELEMENTS = 12000, MOST_TURNED = 131072 };

typedef struct Shape {
    Random random;
    int rank;
    int64_t extent[MOST_AXES];
    int order[MOST_AXES];   // of the output's axes
    uint32_t kept;          // axes that are not reduced over
} Shape;

static int64_t below(Shape *s, int64_t count) { return random_below(&s->random, count); }

static const char *const reals[] = {"f32", "f16", "bf16", "f64"};
/* By tensor cores. */
static const char *const multiplied[] = {"f16", "bf16", "f16", "bf16", "i8", "u8", "f64"};

static Shape shape_new(uint64_t state, int64_t most_elements)
{
    static const int64_t sizes[] = {1,  2,  3,  4,  5,  7,  8,  12,  16,  17,
                                    31, 32, 33, 40, 64, 65, 97, 128, 260, 1000};
    static const int64_t large[] = {3, 128, 255, 255, 256, 257, 363, 363, 511, 513, 513, 1023};
    bool is_large = most_elements > MOST_ELEMENTS;
    Shape s = {.random = {state}};
    s.rank = 2 + (int)(is_large ? below(&s, 4) / 3 : below(&s, MOST_AXES - 1));
    int64_t elements = 1;
    for (int a = 0; a < s.rank; a++) {
        int64_t most = most_elements / elements,
                size = is_large ? PICK(&s.random, large) : PICK(&s.random, sizes);
        s.extent[a] = size <= most ? size : is_large ? most : 1 + below(&s, most < 40 ? most : 40);
        elements *= s.extent[a];
        s.order[a] = a;
    }
    return s;
}

/* `[k0, k1, k2]` of the axes in the set, in the output's order; extents instead of names if `sizes`. */
static const char *list(Arena *arena, const Shape *s, uint32_t set, bool sizes)
{
    StrBuf out = strbuf_new(arena);
    for (int i = 0; i < s->rank; i++) {
        int a = s->order[i];
        if (!(set >> a & 1))
            continue;
        strbuf_puts(&out, out.length ? ", " : "[");
        if (sizes)
            strbuf_printf(&out, "%" PRId64, s->extent[a]);
        else
            strbuf_printf(&out, "k%d", a);
    }
    strbuf_puts(&out, out.length ? "]" : "[]");
    return out.text;
}

/* The pattern with the lists of axes for $1, $2, … */
static void put(StrBuf *out, const char *pattern, const char *const *lists)
{
    for (const char *c = pattern; *c; c++)
        if (*c == '$')
            strbuf_puts(out, lists[*++c - '1']);
        else
            strbuf_putc(out, *c);
}

/* Statistics over some axes, what is made of them, and statistics of that. */
static char *normalised(Arena *arena, Shape *s)
{
    static const char *const terms[] = {"x$1", "x$1 * 0.25", "x$1 - z$1", "select(m$1, x$1, -1)",
                                        "relu(x$1)"};
    static const char *const firsts[] = {"max", "min", "sum"};
    static const char *const steps[] = {"exp(-abs(t$1 - u$2))", "t$1 - u$2", "t$1 * 0.5 + u$2",
                                        "sq(t$1 - u$2 * 0.125)"};
    static const char *const seconds[] = {"v$1", "sq(v$1)", "v$1 * x$1", "-v$1 * h$2 / 3 * x$1",
                                          "sq(v$1) * 0.125"};
    static const char *const lasts[] = {"v$1 / (1 + abs(w$2))", "(v$1 - w$2 * 0.01) * g$3 + b$3", "v$1 * w$2",
                                        "v$1 * rsqrt(1e-5 + abs(w$2)) + h$2"};
    uint32_t all = (1u << s->rank) - 1;
    const char *const lists[] = {list(arena, s, all, false), list(arena, s, s->kept, false),
                                 list(arena, s, all & ~s->kept, false)};
    const char *parts[] = {PICK(&s->random, terms), PICK(&s->random, steps), PICK(&s->random, seconds),
                           PICK(&s->random, lasts)},
               *type = PICK(&s->random, reals);
    StrBuf out = strbuf_new(arena);
    strbuf_printf(&out, "input x%s : %s\n", list(arena, s, all, true), type);
    strbuf_printf(&out, "input z%s : %s\n", list(arena, s, all, true), PICK(&s->random, reals));
    strbuf_printf(&out, "input m%s : b1\n", list(arena, s, all, true));
    strbuf_printf(&out, "input g%s : %s\n", list(arena, s, all & ~s->kept, true), PICK(&s->random, reals));
    strbuf_printf(&out, "input b%s : f32\n", list(arena, s, all & ~s->kept, true));
    strbuf_printf(&out, "input h%s : %s\n", list(arena, s, s->kept, true), type);
    const char *const left[] = {"t", "v", "y"};
    for (int i = 0; i < 3; i++) {
        strbuf_printf(&out, "%s%s = ", left[i], lists[0]);
        put(&out, parts[i == 2 ? 3 : i], lists);
        if (i < 2) {
            strbuf_printf(&out, "\n%s%s = %s%s(", i ? "w" : "u", lists[1],
                          i ? "sum" : PICK(&s->random, firsts), lists[2]);
            put(&out, i ? parts[2] : "t$1", lists);
            strbuf_puts(&out, ")");
        }
        strbuf_puts(&out, "\n");
    }
    strbuf_printf(&out, "output y : %s\n%s%s", below(s, 3) ? type : PICK(&s->random, reals),
                  below(s, 3) ? "" : "output u\n", below(s, 4) ? "" : "output v\n");
    return out.text;
}

/* An input whose axes come in another order. */
static char *turned(Arena *arena, Shape *s)
{
    static const char *const bodies[] = {
        "x$1", "x$1", "x$1", "x$1 * 0.5", "relu(x$1) + b$3", "x$1 * b$3 - z$2"};
    static const char *const types[] = {"f32", "f16", "bf16", "f64", "i8", "u8", "i32"};
    uint32_t all = (1u << s->rank) - 1;
    const char *from = list(arena, s, all, false), *sizes = list(arena, s, all, true),
               *body = PICK(&s->random, bodies);
    bool moves = strcmp(body, "x$1") == 0;
    for (int i = s->rank - 1; i > 0; i--) {
        int j = (int)below(s, i + 1), other = s->order[j];
        s->order[j] = s->order[i];
        s->order[i] = other;
    }
    if (s->order[s->rank - 1] == s->rank - 1) {   // the innermost axis moves
        s->order[s->rank - 1] = s->order[0];
        s->order[0] = s->rank - 1;
    }
    uint32_t last = 1u << s->order[s->rank - 1];
    const char *const lists[] = {from, list(arena, s, all, false), list(arena, s, last, false)};
    StrBuf out = strbuf_new(arena);
    strbuf_printf(&out, "input x%s : %s\n", sizes, moves ? PICK(&s->random, types) : PICK(&s->random, reals));
    strbuf_printf(&out, "input b%s : f32\ninput z%s : %s\n", list(arena, s, last, true),
                  list(arena, s, all, true), PICK(&s->random, reals));
    strbuf_printf(&out, "y%s = ", lists[1]);
    put(&out, body, lists);
    strbuf_printf(&out, "\noutput y%s%s\n", moves ? "" : " : ", moves ? "" : PICK(&s->random, reals));
    return out.text;
}

/* Rows, or columns, that several blocks share, under weights of a wider type. */
static char *shared_by_blocks(Arena *arena, Shape *s)
{
    static const int64_t lengths[] = {8192, 12288, 12288, 16384}, rows[] = {2, 4, 4, 4},
                         channels[] = {8, 8, 12, 16};
    bool columns = below(s, 4) == 0, narrow = below(s, 3) > 0, centred = below(s, 2);
    int64_t length = narrow && !columns ? 24576 : PICK(&s->random, lengths) / (columns ? 2 : 1),
            others = columns ? PICK(&s->random, channels) : PICK(&s->random, rows);
    if (below(s, 4) == 0)
        length += 1 + below(s, 7);
    const char *type = narrow ? reals[1 + below(s, 2)] : "f32", *x = columns ? "x[j, i]" : "x[i, j]",
               *mean = centred ? " - m[i]" : "";
    StrBuf out = strbuf_new(arena);
    strbuf_printf(&out, "input x[%" PRId64 ", %" PRId64 "] : %s\n", columns ? length : others,
                  columns ? others : length, type);
    for (int i = 0; i < 2; i++)
        strbuf_printf(&out, "input %c[%" PRId64 "] : %s\n", "gb"[i], columns ? others : length,
                      narrow ? "f32" : "f64");
    if (centred)
        strbuf_printf(&out, "m[i] = sum[j](%s) / %" PRId64 "\n", x, length);
    strbuf_printf(&out, "v[i] = sum[j](sq(%s%s)) / %" PRId64 "\n", x, mean, length);
    strbuf_printf(&out, "y%s = (%s%s) * rsqrt(v[i] + 1e-3) * g[%c] + b[%c]\n", x + 1, x, mean, "ji"[columns],
                  "ji"[columns]);
    strbuf_printf(&out, "output y : %s\n", type);
    if (below(s, 2))
        strbuf_puts(&out, "output v\n");
    return out.text;
}

/* Rows of samples and positions, or of heads: scales and masks belong to some of those axes, as in adaptive
   norms and attention, and what is known of the rows may be kept. */
static void choose_rows(Shape *s)
{
    static const int64_t lengths[] = {1024, 2048, 2048, 3000, 3001, 4096, 4096, 6144, 8192, 9001, 12289, 12290},
                         outer[] = {2, 3, 4, 5, 8};
    s->rank = 3 + (below(s, 4) > 0);
    int last = s->rank - 1;
    s->extent[last] = PICK(&s->random, lengths);
    int64_t left = MOST_TURNED / s->extent[last];
    for (int a = 0; a < last; a++) {
        int64_t most = a < last - 1 ? left / 2 : left, size = PICK(&s->random, outer);
        s->extent[a] = size < most ? size : most;
        left /= s->extent[a];
    }
    for (int a = 0; a < s->rank; a++)
        s->order[a] = a;
    s->kept = (1u << last) - 1;
}

static char *of_samples(Arena *arena, Shape *s)
{
    static const char *const bodies[] = {
        "m$2 = sum$5(x$1)\ny$1 = (x$1 - m$2 * 0.0001) * g$3\n",
        "m$2 = sum$5(x$1) * 0.0001\nv$2 = sum$5(sq(x$1 - m$2)) * 0.0001\n"
        "y$1 = (x$1 - m$2) * rsqrt(v$2 + 1e-3) * (1 + g$3) + b$4\n",
        "t$1 = x$1 * 0.125 + g$3\nm$2 = max$5(t$1)\nv$2 = sum$5(exp(t$1 - m$2))\n"
        "y$1 = exp(t$1 - m$2) / v$2 * b$4\n"};
    choose_rows(s);
    uint32_t row = s->kept + 1, shift = row | (uint32_t)below(s, row),
             // under one of them rows don't merge
             scale = row | 1u << (below(s, 2) ? 1 : below(s, s->rank - 1));
    const char *const lists[] = {
        list(arena, s, row | s->kept, false), list(arena, s, s->kept, false), list(arena, s, scale, false),
        list(arena, s, shift, false), list(arena, s, row, false)};
    const char *type = PICK(&s->random, reals);
    int kind = (int)below(s, 4) % 3;
    StrBuf out = strbuf_new(arena);
    strbuf_printf(&out, "input x%s : %s\n", list(arena, s, row | s->kept, true), type);
    strbuf_printf(&out, "input g%s : %s\n", list(arena, s, scale, true), below(s, 2) ? type : "f32");
    strbuf_printf(&out, "input b%s : %s\n", list(arena, s, shift, true), below(s, 2) ? type : "f32");
    put(&out, bodies[kind], lists);
    strbuf_printf(&out, "output y : %s\n%s%s", type, below(s, 4) ? "output m\n" : "",
                  kind > 0 && below(s, 2) ? "output v\n" : "");
    return out.text;
}

/* Two tensors that tensor cores multiply, each with its axes in either order. */
char *generate_product(Arena *arena, uint64_t state)
{
    static const int64_t rows[] = {2, 7, 16, 17, 33, 40, 64, 100, 130}, depths[] = {3, 16, 33, 64, 72, 200},
                         // rows of aligned pieces, as some kernels want them
                         whole[] = {48, 64, 80, 128, 144, 192, 256};
    static const char *const bodies[] = {"c$1", "c$1", "relu(c$1)", "c$1 * 0.5 + b$2", "max(c$1 + z$1, 0)"};
    Shape shape = shape_new(state, MOST_ELEMENTS), *s = &shape;
    int batch = (int)below(s, 4) / 3, m = batch, n = batch + 1, k = batch + 2;
    s->extent[0] = 3;
    bool is_whole = below(s, 3) > 0;
    s->extent[m] = is_whole ? PICK(&s->random, whole) : PICK(&s->random, rows);
    s->extent[n] = is_whole ? PICK(&s->random, whole) : PICK(&s->random, rows);
    s->extent[k] = is_whole ? PICK(&s->random, whole) : PICK(&s->random, depths);
    s->rank = k + 1;
    const char *type = PICK(&s->random, multiplied), *sizes[2], *names[2];
    bool along_k = strchr(type, '8') && below(s, 2);   // as some kernels want bytes
    for (int factor = 0; factor < 2; factor++) {
        int row = factor ? n : m, first = along_k || below(s, 2);
        uint32_t set = (1u << row | 1u << k) | (batch ? 1u : 0);
        s->order[0] = 0;   // of a batch, the outermost
        s->order[batch] = first ? row : k;
        s->order[batch + 1] = first ? k : row;
        s->order[k] = factor ? m : n;
        sizes[factor] = list(arena, s, set, true);
        names[factor] = list(arena, s, set, false);
    }
    bool turns = below(s, 2);
    s->order[batch] = turns ? n : m;
    s->order[batch + 1] = turns ? m : n;
    s->order[k] = k;
    uint32_t kept = (1u << k) - 1, column = 1u << n;
    const char *const lists[] = {list(arena, s, kept, false), list(arena, s, column, false)};
    StrBuf out = strbuf_new(arena);
    strbuf_printf(&out, "input A%s : %s\ninput B%s : %s\n", sizes[0], type, sizes[1], type);
    strbuf_printf(&out, "input b%s : f32\ninput z%s : %s\n", list(arena, s, column, true),
                  list(arena, s, kept, true), type);
    bool whole_bytes = strchr(type, '8');
    const char *a = arena_printf(arena, "A%s", names[0]), *b = arena_printf(arena, "B%s", names[1]),
               *other = arena_printf(arena, is_whole ? "b%s" : "z%s", lists[is_whole]);
    const char *functions = generate_functions(arena, state, a, b);
    strbuf_printf(&out, "c%s : f32 = sum[k%d](%s)\ny%s = ", lists[0], k,
                  functions     ? functions
                  : whole_bytes ? generate_whole_term(arena, state, a, b)
                                : generate_term(arena, state, a, b, other),
                  lists[0]);
    put(&out, PICK(&s->random, bodies), lists);
    strbuf_printf(&out, "\noutput y : %s\n", below(s, 3) && !whole_bytes ? type : "f32");
    return out.text;
}

/* Few rows of one factor, many of another, each with its axes in either order: a batch 0, rows 1, columns 2
   and terms 3. */
char *generate_skinny(Arena *arena, uint64_t state)
{
    static const int64_t rows[] = {1, 2, 3, 4, 5, 8, 16, 16}, columns[] = {17, 33, 40, 64, 130},
                         depths[] = {31, 64, 72, 136, 200, 513};
    static const char *const bodies[] = {"c$1", "relu(c$1)", "c$1 * 0.5 + b$2", "c$1 + z$1"};
    static const int orders[][4] = {{0, 1, 3}, {0, 3, 1}, {0, 2, 3}, {0, 3, 2}, {0, 1, 2}, {0, 2, 1}};
    Shape shape = {.random = {state}, .rank = 3}, *s = &shape;
    bool batch = below(s, 4) == 0, vector = below(s, 4) == 0;
    s->extent[0] = 3;
    s->extent[1] = PICK(&s->random, rows);
    s->extent[2] = PICK(&s->random, columns);
    s->extent[3] = PICK(&s->random, depths);
    uint32_t absent = (batch ? 0u : 1u) | (vector ? 2u : 0u), kept = 7u & ~absent;
    const char *type = PICK(&s->random, reals), *sizes[2], *names[2];
    for (int factor = 0; factor < 2; factor++) {
        memcpy(s->order, orders[2 * factor + below(s, 2)], sizeof *orders);
        uint32_t set = (factor ? 13u : 11u) & ~absent;
        sizes[factor] = list(arena, s, set, true);
        names[factor] = list(arena, s, set, false);
    }
    memcpy(s->order, orders[4 + below(s, 2)], sizeof *orders);
    const char *const lists[] = {list(arena, s, kept, false), list(arena, s, 4, false)};
    StrBuf out = strbuf_new(arena);
    strbuf_printf(&out, "input A%s : %s\ninput B%s : %s\n", sizes[0], type, sizes[1], type);
    strbuf_printf(&out, "input b%s : f32\ninput z%s : %s\n", list(arena, s, 4, true),
                  list(arena, s, kept, true), type);
    const char *a = arena_printf(arena, "A%s", names[0]), *b = arena_printf(arena, "B%s", names[1]),
               *other = arena_printf(arena, vector ? "b%s" : "z%s", lists[vector]);
    strbuf_printf(&out, "c%s = sum[k3](%s)\ny%s = ", lists[0], generate_term(arena, state, a, b, other),
                  lists[0]);
    put(&out, PICK(&s->random, bodies), lists);
    strbuf_printf(&out, "\noutput y : %s\n", below(s, 3) ? type : "f32");
    return out.text;
}

/* Of the same images: sums under another filter, of any size, perhaps with gaps. */
static const char *sums_beside(StrBuf *out, Shape *s, int64_t multiplier, const int64_t *outputs,
                               const char *type)
{
    int64_t down = 1 + below(s, 6), along = 1 + below(s, 6), above = below(s, down + 1);
    int64_t beside = below(s, along + 2), gaps = 1 + below(s, 2);
    strbuf_printf(out, "input f[2, %" PRId64 ", %" PRId64 ", %" PRId64 "] : %s\n", multiplier, down, along,
                  below(s, 2) ? type : "f32");
    strbuf_printf(out,
                  "u[n, c, m, h:%" PRId64 ", v:%" PRId64 "] = sum[p, q](pad(x[n, c, h + p - %" PRId64
                  ", v + %" PRId64 "*q - %" PRId64 "], 0) * f[c, m, p, q])\n",
                  outputs[0], outputs[1], above, gaps, beside);
    return "u[n, c, m, h, v] - ";
}

/* Images n, channels c and their multipliers m. The window may begin beside the image or in it, and end
   likewise; filters may be larger than images. */
char *generate_depthwise(Arena *arena, uint64_t state)
{
    static const char *const types[] = {"f16", "bf16", "f16", "bf16", "f16", "bf16", "f32", "f64"};
    static const char *const bodies[] = {"t[n, c, m, h, v]", "relu(t[n, c, m, h, v] + b[c])",
                                         "t[n, c, m, h, v] * 0.5 + h - v"};
    static const int64_t images[] = {1, 2, 3, 5, 9, 17}, sides[] = {5, 8, 13, 16, 20},
                         widths[] = {5, 8, 16, 24, 33, 72}, taps[] = {1, 3, 5, 7, 9, 12, 15};
    Shape shape = {.random = {state}}, *s = &shape;
    int64_t batch = PICK(&s->random, images), multiplier = 1 + below(s, 4) / 3, turned = below(s, 2);
    int64_t height = PICK(&s->random, sides), width = PICK(&s->random, widths);
    int64_t down = PICK(&s->random, taps), along = PICK(&s->random, taps), above = below(s, down + 1),
            beside = below(s, along + 1);
    int64_t outputs[2] = {1 + below(s, height + 3), width - below(s, 2) * below(s, width)};
    const char *type = PICK(&s->random, types), sign = turned ? '-' : '+', back = turned ? '+' : '-';
    StrBuf out = strbuf_new(arena);
    strbuf_printf(&out, "input x[%" PRId64 ", 2, %" PRId64 ", %" PRId64 "] : %s\n", batch, height, width,
                  type);
    strbuf_printf(&out, "input w[2, %" PRId64 ", %" PRId64 ", %" PRId64 "] : %s\ninput b[2] : f32\n",
                  multiplier, down, along, type);
    const char *pixel = arena_printf(
        arena, "pad(x[n, c, h %c r %c %" PRId64 ", v %c s %c %" PRId64 "], 0)", sign, back, above, sign, back,
        beside);
    strbuf_printf(&out, "t[n, c, m, h:%" PRId64 ", v:%" PRId64 "] = sum[r, s](%s)\n", outputs[0], outputs[1],
                  generate_term(arena, state, pixel, "w[c, m, r, s]", "b[c]"));
    const char *others = below(s, 4) ? "" : sums_beside(&out, s, multiplier, outputs, type);
    const char *body = PICK(&s->random, bodies);
    strbuf_printf(&out, "y[n, c, m, h, v] = %s%s\noutput y : %s\n", others, body, below(s, 3) ? type : "f32");
    return out.text;
}

/* The same where channels lie side by side, most of them in whole pieces. Filters of many rows leave few
   registers. */
char *generate_depthwise_last(Arena *arena, uint64_t state)
{
    static const char *const types[] = {"f16", "bf16", "f16", "bf16", "f32"};
    static const char *const bodies[] = {"t[n, h, v, c]", "relu(t[n, h, v, c] + b[c])",
                                         "t[n, h, v, c] * 0.5 + h - v"};
    static const int64_t images[] = {2, 3, 5}, sides[] = {8, 13, 26}, widths[] = {8, 16, 24, 33, 72},
                         channels[] = {8, 16, 40, 64, 6}, taps[] = {3, 5, 7, 9, 11, 11, 11};
    Shape shape = {.random = {state}}, *s = &shape;
    int64_t batch = PICK(&s->random, images), height = PICK(&s->random, sides),
            width = PICK(&s->random, widths), count = PICK(&s->random, channels), turned = below(s, 2);
    int64_t down = PICK(&s->random, taps), along = PICK(&s->random, taps), above = below(s, down + 1),
            beside = below(s, along + 1), rows = 1 + below(s, height + 3);
    const char *type = PICK(&s->random, types), sign = turned ? '-' : '+', back = turned ? '+' : '-';
    StrBuf out = strbuf_new(arena);
    strbuf_printf(&out, "input x[%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "] : %s\n", batch, height,
                  width, count, type);
    strbuf_printf(&out, "input w[%" PRId64 ", %" PRId64 ", %" PRId64 "] : %s\ninput b[%" PRId64 "] : f32\n",
                  down, along, count, type, count);
    const char *pixel = arena_printf(arena, "pad(x[n, h %c r %c %" PRId64 ", v %c s %c %" PRId64 ", c], 0)",
                                     sign, back, above, sign, back, beside);
    strbuf_printf(&out, "t[n, h:%" PRId64 ", v:%" PRId64 ", c] = sum[r, s](%s)\n", rows, width,
                  generate_term(arena, state, pixel, "w[r, s, c]", "b[c]"));
    strbuf_printf(&out, "y[n, h, v, c] = %s\noutput y : %s\n", PICK(&s->random, bodies),
                  below(s, 3) ? type : "f32");
    return out.text;
}

/* The window may begin beside the picture or in it, and end likewise; there may be one row of taps, and
   pictures of d of any size. */
char *generate_filter_gradient(Arena *arena, uint64_t state)
{
    static const char *const types[] = {"f16", "bf16", "f16", "bf16", "f32", "f64"};
    static const char *const bodies[] = {"t[c, r, s]", "w[c, r, s] - 0.125 * t[c, r, s]",
                                         "t[c, r, s] * 0.5 + r - s"};
    static const int64_t images[] = {1, 9, 16, 32, 32}, sides[] = {6, 16, 16, 32}, widths[] = {8, 16, 24, 33},
                         taps[] = {1, 2, 3, 5, 7, 9};
    Shape shape = {.random = {state}}, *s = &shape;
    int64_t batch = PICK(&s->random, images), height = PICK(&s->random, sides),
            width = PICK(&s->random, widths);
    int64_t down = PICK(&s->random, taps), along = PICK(&s->random, taps), above = below(s, down + 1),
            beside = below(s, along + 1);
    int64_t rows = below(s, 3) ? height : 1 + below(s, height + 3),
            columns = below(s, 3) ? width : 1 + below(s, width + 3);
    const char *type = PICK(&s->random, types);
    bool last = below(s, 3) == 0;   // images are between channels and pixels
    StrBuf out = strbuf_new(arena);
    strbuf_printf(&out, "input x[%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "] : %s\n",
                  last ? 3 : batch, last ? batch : 3, height, width, type);
    strbuf_printf(&out, "input d[%" PRId64 ", 3, %" PRId64 ", %" PRId64 "] : %s\n", batch, rows, columns,
                  type);
    strbuf_printf(&out, "input w[3, %" PRId64 ", %" PRId64 "] : f32\n", down, along);
    const char *pixel = arena_printf(arena, "pad(x[%s, h + r - %" PRId64 ", v + s - %" PRId64 "], 0)",
                                     last ? "c, n" : "n, c", above, beside);
    strbuf_printf(&out, "t[c, r:%" PRId64 ", s:%" PRId64 "] = sum[n, h, v](%s)\n", down, along,
                  generate_term(arena, state, pixel, "d[n, c, h, v]", "w[c, r, s]"));
    strbuf_printf(&out, "y[c, r, s] = %s\noutput y : %s\n", PICK(&s->random, bodies),
                  below(s, 2) ? type : "f32");
    return out.text;
}

char *generate_known(Arena *arena, uint64_t state)
{
    uint64_t kind = generate_hash(state + 2) % 25;
    Shape s = shape_new(state, kind < 6 || kind == 24 ? MOST_TURNED : MOST_ELEMENTS);
    if (kind < 7)
        return turned(arena, &s);
    if (kind < 14)
        return shared_by_blocks(arena, &s);
    if (kind < 20)
        return of_samples(arena, &s);
    if (kind < 21)   // rows: the inner axes are reduced over
        s.kept = (1u << (1 + below(&s, s.rank - 1))) - 1;
    else   // channels: all but one; those of several blocks are large
        s.kept = 1u << below(&s, s.rank);
    return normalised(arena, &s);
}
