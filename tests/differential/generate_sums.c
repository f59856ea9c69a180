// Sums of products that no kernel was made for: any axes in any dimensions of the factors, alone or up to three
// in one, with steps, turned, beside the tensor; the same tensor twice; masks, index values, two products in one
// sum.
//
// Kernels of products, filters and windows recognise a sum by its structure. What almost is that structure is
// theirs or is not, and either way it must be right.
#include <inttypes.h>
#include <string.h>

#include "differential/generate_parts.h"

enum { MOST_TERMS = 3, MOST_DIMENSIONS = 5, MOST_FACTORS = 4, MOST_SUM_AXES = 6, MOST_POINTS = 100000, MOST_OUTPUTS = 2600 };

/* `constant + step * k + other_step * l`, in a dimension of the extent. */
typedef struct Dimension {
    int axis[MOST_TERMS], count;
    int64_t step[MOST_TERMS], constant, extent;
} Dimension;

typedef struct Factor {
    Dimension dims[MOST_DIMENSIONS];
    int rank, tensor;
    bool padded;
} Factor;

typedef struct Sum {
    Arena *arena;
    Random random;
    int made, axis_count;   // axes of the result come first
    int64_t extent[MOST_SUM_AXES];
    Factor factors[MOST_FACTORS];
    int factor_count, tensor_count;
    const char *type[MOST_FACTORS];   // of tensors
    bool real, plain;                 // of a real type; indices as people write them
} Sum;

static bool chance(Sum *s, int percent) { return random_chance(&s->random, percent); }
static int64_t below(Sum *s, int64_t count) { return random_below(&s->random, count); }

// ---- axes ----

static void choose_axes(Sum *s)
{
    static const int64_t any[] = {1, 1, 2, 3, 4, 5, 8, 16, 16, 17, 32, 33, 64, 64, 130, 300},
                         usual[] = {1, 2, 3, 8, 16, 16, 16, 17, 24, 32, 40, 64, 64, 72, 100, 130};
    s->made = s->plain ? 2 + (int)below(s, 6) / 2 : 1 + (int)below(s, 4);
    s->axis_count = s->made + 1 + (int)below(s, s->made < 4 ? 3 : 2);
    int64_t points = 1;
    for (int i = 0; i < s->axis_count; i++) {
        int64_t most = (i < s->made ? MOST_OUTPUTS : MOST_POINTS) / points;
        int64_t size = s->plain ? PICK(&s->random, usual) : PICK(&s->random, any);
        s->extent[i] = size < most ? size : most;
        points *= s->extent[i];
    }
}

static const char *term(Sum *s, int axis, int64_t step)
{
    return step == 1 ? arena_printf(s->arena, "k%d", axis)
                     : arena_printf(s->arena, "%" PRId64 "*k%d", step, axis);
}

/* `k0:3, k1:8` */
static const char *axis_list(Sum *s, int first, int end)
{
    StrBuf out = strbuf_new(s->arena);
    for (int a = first; a < end; a++)
        strbuf_printf(&out, "%sk%d:%" PRId64, a > first ? ", " : "", a, s->extent[a]);
    return out.text;
}

// ---- factors ----

/* How far the dimension's index reaches, and where it begins; a padded tensor is any part of it. */
static void place(Sum *s, Dimension *dim, bool padded)
{
    int64_t low = 0, reach = 1;
    for (int i = 0; i < dim->count; i++) {
        int64_t last = dim->step[i] * (s->extent[dim->axis[i]] - 1);
        low += last < 0 ? last : 0;
        reach += last < 0 ? -last : last;
    }
    int64_t slack = s->plain || chance(s, 75) ? 0 : 1 + below(s, 3);
    dim->constant = -low + (padded ? -below(s, (reach + 3) / 2) : below(s, slack + 1));
    dim->extent = padded && chance(s, 60) ? 1 + below(s, reach + 1) : reach + slack;
}

/* Some axes: one alone, or a window, or one axis cut in parts. */
static Dimension dimension(Sum *s, const int *axes, int count, bool padded)
{
    static const int64_t steps[] = {1, 1, 1, 1, 1, 1, 1, 2, 2, 3, -1, -1};
    bool simple = s->plain && (count == 1 || chance(s, 60));
    Dimension dim = {.count = count};
    int64_t whole = 1;   // extents of the axes before
    for (int i = 0; i < count; i++) {
        dim.axis[i] = axes[i];
        dim.step[i] = simple ? 1 : i > 0 && chance(s, 25) ? whole : PICK(&s->random, steps);
        whole *= s->extent[axes[i]];
    }
    place(s, &dim, padded && (count > 1 || !s->plain));
    return dim;
}

/* The axes in any order; -1 stands for none. */
static Factor make_factor(Sum *s, uint32_t axes)
{
    int order[MOST_SUM_AXES] = {0}, count = 0;
    Factor factor = {.padded = chance(s, 35), .tensor = s->tensor_count};
    for (int a = 0; a < s->axis_count; a++)
        if (axes >> a & 1) {
            int at = (int)below(s, count + 1);
            order[count++] = order[at];
            order[at] = a;
        }
    bool pairs = chance(s, s->plain ? 35 : 50);
    for (int i = 0; i < count; i++) {
        bool two = i + 1 < count && (count - i > MOST_DIMENSIONS - factor.rank || (pairs && chance(s, 50)));
        int terms = two && i + 2 < count && chance(s, 15) ? MOST_TERMS : 1 + two;
        factor.dims[factor.rank++] = dimension(s, &order[i], terms, factor.padded);
        i += terms - 1;
    }
    bool fixed = factor.rank == 0 || (factor.rank < MOST_DIMENSIONS && !s->plain && chance(s, 10));
    if (fixed)   // always the same element
        factor.dims[factor.rank++] = (Dimension){.constant = below(s, 2), .extent = 2};
    return factor;
}

/* Axes of the result belong to one factor or several, those of the sum mostly to all. */
static uint32_t choose_set(Sum *s, uint32_t taken)
{
    uint32_t set = 0;
    for (int a = 0; a < s->axis_count; a++) {
        int free = s->plain && taken ? 100 : 50, of_sum = s->plain ? 100 : 85;
        int percent = a >= s->made ? of_sum : taken >> a & 1 ? 15 : free;
        set |= chance(s, percent) ? 1u << a : 0;
    }
    return set;
}

/* Another access of a tensor makes it as large as both need. */
static bool join(Sum *s, Factor *factor, const Factor *first)
{
    if (factor->rank != first->rank)
        return false;
    factor->tensor = first->tensor;
    for (int d = 0; d < first->rank; d++) {
        Dimension *mine = &factor->dims[d];
        for (int f = 0; f < s->factor_count; f++) {
            Dimension *other = &s->factors[f].dims[d];
            if (s->factors[f].tensor != first->tensor)
                continue;
            int64_t extent = mine->extent > other->extent ? mine->extent : other->extent;
            mine->extent = other->extent = extent;
        }
    }
    return true;
}

static int add_factor(Sum *s, uint32_t axes)
{
    Factor factor = make_factor(s, axes);
    bool again = s->factor_count > 0 && chance(s, 30);
    const Factor *first = again ? &s->factors[below(s, s->factor_count)] : NULL;
    if (again && chance(s, 25))
        factor = *first;   // x * x
    else if (!again || !join(s, &factor, first))
        s->tensor_count++;
    s->factors[s->factor_count] = factor;
    return s->factor_count++;
}

/* Of one type mostly, as kernels want them. */
static void choose_types(Sum *s)
{
    static const char *const types[] = {"f32", "f64",  "i8",  "u8",   "i8",  "b1",  "i32",
                                        "f16", "bf16", "f16", "bf16", "f16", "bf16"};
    static const char *const reals[] = {"f16", "bf16", "f32", "f64"};
    bool one = chance(s, s->plain ? 90 : 70);
    for (int t = 0; t < s->tensor_count; t++) {
        s->type[t] = one && t > 0 ? s->type[0] : PICK(&s->random, types);
        for (size_t r = 0; r < sizeof reals / sizeof *reals; r++)
            s->real |= strcmp(s->type[t], reals[r]) == 0;
    }
}

static const char *access_of(Sum *s, const Factor *factor)
{
    StrBuf out = strbuf_new(s->arena);
    strbuf_printf(&out, "%sx%d[", factor->padded ? "pad(" : "", factor->tensor);
    for (int d = 0; d < factor->rank; d++) {
        const Dimension *dim = &factor->dims[d];
        strbuf_puts(&out, d ? ", " : "");
        for (int i = 0; i < dim->count; i++)
            strbuf_printf(&out, "%s%s", i ? " + " : "", term(s, dim->axis[i], dim->step[i]));
        if (dim->constant || !dim->count)
            strbuf_printf(&out, "%s%" PRId64, dim->count ? " + " : "", dim->constant);
    }
    strbuf_printf(&out, "]%s", factor->padded ? ", 0)" : "");
    return out.text;
}

// ---- the sum ----

/* What a factor is before it is multiplied. */
static const char *prologue(Sum *s, const char *access)
{
    int64_t kind = below(s, s->plain ? 50 : 20);
    int axis = (int)below(s, s->axis_count);
    switch (kind) {
    case 0: return arena_printf(s->arena, "relu(%s)", access);
    case 1: return arena_printf(s->arena, "(%s - k%d)", access, axis);
    case 2: return arena_printf(s->arena, "(2 * %s)", access);
    case 3: return arena_printf(s->arena, "-%s", access);
    case 4: return arena_printf(s->arena, "select(k%d >= 1, %s, 1)", axis, access);
    default: return access;
    }
}

static const char *product(Sum *s)
{
    uint32_t first = choose_set(s, 0);
    const char *a = access_of(s, &s->factors[add_factor(s, first)]);
    const char *b = access_of(s, &s->factors[add_factor(s, choose_set(s, first))]);
    const char *second = prologue(s, b);   // choices are made in one order by every compiler
    return arena_printf(s->arena, "%s * %s", prologue(s, a), second);
}

static const char *summand(Sum *s)
{
    const char *text = product(s), *more;
    int one = (int)below(s, s->axis_count), other = (int)below(s, s->axis_count);
    switch (below(s, s->plain ? 30 : 17)) {
    case 0: more = product(s); return arena_printf(s->arena, "%s %c %s", text, "+-"[below(s, 2)], more);
    case 1: return arena_printf(s->arena, "select(k%d <= k%d, %s, 0)", one, other, text);
    case 2: return arena_printf(s->arena, "select(k%d + k%d >= 3, %s, %s)", one, other, text, product(s));
    case 3: return arena_printf(s->arena, "%s * (k%d - k%d)", text, one, other);
    case 4: return arena_printf(s->arena, "%s * %s", text, product(s));
    case 5: return access_of(s, &s->factors[0]);
    case 6: return arena_printf(s->arena, "%s * -3 * (k%d - 2)", text, (int)below(s, s->made));
    case 7: more = access_of(s, &s->factors[add_factor(s, choose_set(s, 0) & ((1u << s->made) - 1))]);
            return arena_printf(s->arena, "-(%s) * (%s)", text, more);
    case 8: more = access_of(s, &s->factors[add_factor(s, choose_set(s, 0))]);
            return arena_printf(s->arena, "%s * %s", text, more);
    default: return text;
    }
}

// ---- what is made of it ----

/* The first factor once more, at elements that the result's axes choose. */
static const char *read_again(Sum *s)
{
    const Factor *factor = &s->factors[below(s, s->factor_count)];
    StrBuf out = strbuf_new(s->arena);
    strbuf_printf(&out, "pad(x%d[", factor->tensor);
    for (int d = 0; d < factor->rank; d++)
        strbuf_printf(&out, "%s%s", d ? ", " : "", chance(s, 70) ? term(s, (int)below(s, s->made), 1) : "0");
    strbuf_puts(&out, "], 0)");
    return out.text;
}

static const char *epilogue(Sum *s, const char *t)
{
    int axis = (int)below(s, s->made);
    switch (below(s, 8)) {
    case 0: return arena_printf(s->arena, "relu(%s)", t);
    case 1: return arena_printf(s->arena, "%s + %s", t, read_again(s));
    case 2: return arena_printf(s->arena, "%s * %s", t, read_again(s));
    case 3: return arena_printf(s->arena, "%s - k%d", t, axis);
    case 4: return arena_printf(s->arena, "max(%s, %s)", t, read_again(s));
    case 5: return arena_printf(s->arena, "select(k%d < %d, %s, 1)", axis, 1 + (int)below(s, 9), t);
    default: return t;
    }
}

/* `[k2, k0, k1]`: the result's axes in any order. */
static const char *any_order(Sum *s)
{
    int order[MOST_SUM_AXES] = {0};
    for (int a = 0; a < s->made; a++) {
        int at = (int)below(s, a + 1);
        order[a] = order[at];
        order[at] = a;
    }
    StrBuf out = strbuf_new(s->arena);
    for (int a = 0; a < s->made; a++)
        strbuf_printf(&out, "%sk%d:%" PRId64, a ? ", " : "", order[a], s->extent[order[a]]);
    return out.text;
}

static const char *in_order(Sum *s)
{
    StrBuf out = strbuf_new(s->arena);
    for (int a = 0; a < s->made; a++)
        strbuf_printf(&out, "%sk%d", a ? ", " : "", a);
    return out.text;
}

static const char *result_type(Sum *s)
{
    static const char *const reals[] = {"f32", "f16", "bf16", "f64"};
    static const char *const whole[] = {"i32", "i8", "u8", "f32"};
    return s->real ? PICK(&s->random, reals) : PICK(&s->random, whole);
}

static void put_output(StrBuf *out, Sum *s, char name, const char *sum)
{
    const char *type = result_type(s), *made = epilogue(s, sum);
    strbuf_printf(out, "%c[%s] = %s\noutput %c : %s\n", name, any_order(s), made, name, type);
}

char *generate_sum(Arena *arena, uint64_t state)
{
    static const char *const combiners[] = {"sum", "sum", "sum", "sum", "sum", "sum", "max", "min"};
    Sum sum = {.arena = arena, .random = {state}}, *s = &sum;
    s->plain = chance(s, 65);
    choose_axes(s);
    const char *names = axis_list(s, 0, s->made), *body = summand(s), *combiner = PICK(&s->random, combiners);
    choose_types(s);
    StrBuf out = strbuf_new(arena);
    for (int t = 0; t < s->tensor_count; t++) {
        const Factor *factor = s->factors;
        while (factor->tensor != t)
            factor++;
        strbuf_printf(&out, "input x%d[", t);
        for (int d = 0; d < factor->rank; d++)
            strbuf_printf(&out, "%s%" PRId64, d ? ", " : "", factor->dims[d].extent);
        strbuf_printf(&out, "] : %s\n", s->type[t]);
    }
    strbuf_printf(&out, "t[%s] = %s[%s](%s)\n", names, combiner, axis_list(s, s->made, s->axis_count), body);
    const char *t = arena_printf(arena, "t[%s]", in_order(s));
    put_output(&out, s, 'y', t);
    if (chance(s, 20))
        put_output(&out, s, 'z', t);
    if (chance(s, 20))
        strbuf_puts(&out, "output t\n");
    return out.text;
}
