// Programs of moves, as models have them: reshapes, rows of tables by index, elements repeated and shuffled, channels that become
// pixels; of all element types, at any sizes, with a little arithmetic between them.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "differential/generate_parts.h"

enum { RANK = 4, MOST_ELEMENTS = 6000, STEPS = 4 };

typedef enum Class { REAL, INTEGER, BIT } Class;

static const char *const types[3][4] = {
    {"f32", "f16", "bf16", "f64"}, {"i32", "i64", "i8", "u8"}, {"b1", "b1", "b1", "b1"}};
static const char *const variables[RANK] = {"i", "j", "k", "l"};

/* A tensor as it is read. */
typedef struct Shape {
    char name[8];
    Class class;
    int rank;
    int64_t size[RANK];
} Shape;

typedef struct Moves {
    Arena *arena;
    Random random;
    StrBuf inputs, body, outputs;   // statements
    Shape current;                  // what the next step reads
    int count;                      // of names
} Moves;

static int64_t below(Moves *m, int64_t count) { return random_below(&m->random, count); }

static bool chance(Moves *m, int percent) { return random_chance(&m->random, percent); }

static int64_t elements(const Shape *shape)
{
    int64_t count = 1;
    for (int d = 0; d < shape->rank; d++)
        count *= shape->size[d];
    return count;
}

static int64_t any_size(Moves *m)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 24, 30, 32, 33};
    return PICK(&m->random, sizes);
}

static void name_anew(Moves *m, Shape *shape, char letter)
{
    snprintf(shape->name, sizeof shape->name, "%c%d", letter, m->count++);
}

static void write_sizes(StrBuf *out, const Shape *shape)
{
    for (int d = 0; d < shape->rank; d++)
        strbuf_printf(out, "%s%" PRId64, d ? ", " : "", shape->size[d]);
}

static void declare(Moves *m, const Shape *shape)
{
    strbuf_printf(&m->inputs, "input %s[", shape->name);
    write_sizes(&m->inputs, shape);
    strbuf_printf(&m->inputs, "] : %s\n", PICK(&m->random, types[shape->class]));
}

static void output_sometimes(Moves *m, const Shape *shape, int percent)
{
    if (chance(m, percent))
        strbuf_printf(&m->outputs, "output %s\n", shape->name);
}

/* `t3[i:4, j:8] : f16 = …`: `made` is what the next step reads. */
static void define(Moves *m, Shape made, const char *value)
{
    name_anew(m, &made, 't');
    strbuf_printf(&m->body, "%s[", made.name);
    for (int d = 0; d < made.rank; d++)
        strbuf_printf(&m->body, "%s%s:%" PRId64, d ? ", " : "", variables[d], made.size[d]);
    strbuf_puts(&m->body, "]");
    if (chance(m, 20))
        strbuf_printf(&m->body, " : %s", PICK(&m->random, types[made.class]));
    strbuf_printf(&m->body, " = %s\n", value);
    output_sometimes(m, &made, 20);
    m->current = made;
}

/* Places of the current tensor, `i, j + 1, …`, of which one or two are not the plain variables. */
typedef struct Places {
    const char *of[RANK];
    bool padded;
} Places;

static Places plain_places(void)
{
    Places places = {.padded = false};
    for (int d = 0; d < RANK; d++)
        places.of[d] = variables[d];
    return places;
}

static const char *read_of(Moves *m, const Places *places)
{
    StrBuf out = strbuf_new(m->arena);
    strbuf_printf(&out, "%s%s[", places->padded ? "pad(" : "", m->current.name);
    for (int d = 0; d < m->current.rank; d++)
        strbuf_printf(&out, "%s%s", d ? ", " : "", places->of[d]);
    strbuf_printf(&out, "]%s", places->padded ? chance(m, 50) ? ", 0)" : ", 1)" : "");
    return out.text;
}

// ---- views ----

static Shape any_factors(Moves *m, const Shape *of)
{
    Shape view = {.class = of->class};
    int64_t left = elements(of);
    while (view.rank < RANK - 1 && left > 1 && chance(m, 75)) {
        int64_t size = 1 + below(m, left < 24 ? left : 24);
        while (left % size)
            size--;
        view.size[view.rank++] = size;
        left /= size;
    }
    view.size[view.rank++] = left;
    return view;
}

static void write_view(Moves *m, Shape view)
{
    name_anew(m, &view, 'v');
    strbuf_printf(&m->body, "view %s[", view.name);
    write_sizes(&m->body, &view);
    strbuf_printf(&m->body, "] = %s\n", m->current.name);
    output_sometimes(m, &view, 15);
    m->current = view;
}

/* Its dimensions in another order. */
static void permute(Moves *m)
{
    Places places = plain_places();
    Shape made = m->current;
    int at[RANK] = {0, 1, 2, 3};
    for (int d = made.rank - 1; d > 0; d--) {
        int other = (int)below(m, d + 1), kept = at[d];
        at[d] = at[other];
        at[other] = kept;
    }
    for (int d = 0; d < made.rank; d++) {
        made.size[at[d]] = m->current.size[d];
        places.of[d] = variables[at[d]];
    }
    define(m, made, read_of(m, &places));
}

/* Moved by a few elements, past one or both ends, and cut off anywhere. */
static void shift(Moves *m)
{
    Places places = plain_places();
    Shape made = m->current;
    places.padded = true;
    for (int d = 0; d < made.rank; d++) {
        int64_t by = chance(m, 60) ? below(m, 5) - 2 : 0;
        made.size[d] += below(m, 3) - (made.size[d] > 1 && chance(m, 30));
        if (by)
            places.of[d] = arena_printf(m->arena, "%s %c %" PRId64, variables[d], by < 0 ? '-' : '+', by < 0 ? -by : by);
    }
    define(m, made, read_of(m, &places));
}

static void reshape(Moves *m)
{
    Shape before = m->current;
    write_view(m, any_factors(m, &before));
    if (chance(m, 50))
        permute(m);
    else if (chance(m, 70))
        shift(m);
    if (chance(m, 50))
        write_view(m, elements(&m->current) == elements(&before) && chance(m, 50) ? before : any_factors(m, &m->current));
}

// ---- elements as indices ----

/* An integer for each of `count` points: an input's, or what is made of one. */
static const char *indices(Moves *m, int64_t count, int64_t size)
{
    Shape index = {.class = INTEGER, .rank = 1, .size = {count}};
    name_anew(m, &index, 'n');
    declare(m, &index);
    if (chance(m, 60))
        return arena_strdup(m->arena, index.name);
    int which = (int)below(m, 4);
    const char *value = which == 0 ? arena_printf(m->arena, "%s[i] %% %" PRId64, index.name, size)
                        : which == 1 ? arena_printf(m->arena, "%s[i] * 3 - 2", index.name)
                        : which == 2 ? arena_printf(m->arena, "%s[i] / 2 + i", index.name)
                                     : arena_printf(m->arena, "select(%s[i] < 0, %s[i] + %" PRId64 ", %s[i])",
                                                    index.name, index.name, size, index.name);
    const char *name = arena_printf(m->arena, "p%d", m->count++);
    strbuf_printf(&m->body, "%s[i]%s = %s\n", name, chance(m, 40) ? " : i64" : "", value);
    return name;
}

/* n3[i], n3[n4[i]] - 1 */
static const char *element_place(Moves *m, int64_t count, int64_t size, const char *variable)
{
    const char *place = arena_printf(m->arena, "%s[%s]", indices(m, count, size), variable);
    for (int depth = 1; depth < 4 && chance(m, 20); depth++) {
        int64_t inner = any_size(m);
        Shape index = {.class = INTEGER, .rank = 1, .size = {inner}};
        name_anew(m, &index, 'n');
        declare(m, &index);
        place = arena_printf(m->arena, "%s[%s%s]", index.name, place, chance(m, 20) ? " + 1" : "");
    }
    if (chance(m, 35))
        place = arena_printf(m->arena, "%s %c %" PRId64, place, chance(m, 50) ? '+' : '-', 1 + below(m, 3));
    return place;
}

static void gather(Moves *m)
{
    Places places = plain_places();
    Shape made = m->current;
    int d = (int)below(m, made.rank), dims = made.rank > 1 && chance(m, 20) ? 2 : 1;
    places.padded = chance(m, 35);
    for (int i = 0; i < dims; i++, d = (d + 1) % made.rank) {
        int64_t count = any_size(m), size = made.size[d];
        if (elements(&made) / size * count > MOST_ELEMENTS)
            count = 1;
        made.size[d] = count;
        places.of[d] = element_place(m, count, size, variables[d]);
    }
    define(m, made, read_of(m, &places));
}

// ---- quotients and remainders ----

/* A remainder before the dimension's beginning, or past its end: often by one, where a guard that lacks is not seen else. */
static const char *passing(Moves *m, int64_t size, const char *v, int64_t *made, bool *padded)
{
    int64_t by = 1 + below(m, 2), divisor = 1 + below(m, size + 2);
    if (chance(m, 60) && size >= by)
        divisor = size + 1 - by;
    *made = size + 2 + below(m, 5);
    *padded = true;
    return arena_printf(m->arena, "(%s + %" PRId64 ")%%%" PRId64 " %c %" PRId64, v, below(m, 4), divisor,
                        chance(m, 30) ? '-' : '+', by);
}

/* Of one dimension of the size: what stands there, and the size of what is made. */
static const char *divided(Moves *m, int64_t size, const char *v, int64_t *made, bool *padded)
{
    Arena *arena = m->arena;
    int64_t by = 2 + below(m, 4), add = below(m, 4);
    switch (below(m, 6)) {
    case 0: *made = size * by - below(m, by); return arena_printf(arena, "%s/%" PRId64, v, by);
    case 1: *made = size + below(m, 9); return arena_printf(arena, "%s%%%" PRId64, v, size);
    case 2:   // a transposition, if it comes out even
        while (size % by)
            by--;
        *made = size;
        return arena_printf(arena, "(%s%%%" PRId64 ")*%" PRId64 " + %s/%" PRId64, v, by, size / by, v, by);
    case 3:   // past its end
        *made = 1 + below(m, size * by);
        *padded = true;
        return arena_printf(arena, "(%s + %" PRId64 ")/%" PRId64 " + %" PRId64, v, add, by, below(m, 3));
    case 4: return passing(m, size, v, made, padded);
    default:
        *made = 1 + below(m, size * by);
        return arena_printf(arena, "(%s/%" PRId64 ")%%%" PRId64, v, 1 + below(m, 3), 1 + below(m, size));
    }
}

static void divide(Moves *m)
{
    Places places = plain_places();
    Shape made = m->current;
    int d = (int)below(m, made.rank);
    for (int i = 0; i < (chance(m, 30) ? made.rank : 1); i++, d = (d + 1) % made.rank) {
        int64_t size;
        bool padded = places.padded;
        const char *place = divided(m, m->current.size[d], variables[d], &size, &padded);
        if (elements(&made) / made.size[d] * size > MOST_ELEMENTS)
            continue;
        made.size[d] = size;
        places.of[d] = place;
        places.padded = padded;
    }
    define(m, made, read_of(m, &places));
}

/* Channels become pixels, or pixels channels: two dimensions side by side. */
static void shuffle(Moves *m)
{
    Places places = plain_places();
    Shape made = m->current;
    int64_t by = 2 + below(m, 3);
    if (made.rank < 2)
        return;
    int d = (int)below(m, made.rank - 1), from = chance(m, 50) ? d : d + 1, to = 2 * d + 1 - from;
    while (made.size[from] % by)
        by--;
    made.size[from] /= by;
    made.size[to] *= by;
    places.of[from] = arena_printf(m->arena, "%s*%" PRId64 " + %s%%%" PRId64, variables[from], by, variables[to], by);
    places.of[to] = arena_printf(m->arena, "%s/%" PRId64, variables[to], by);
    define(m, made, read_of(m, &places));
}

// ---- arithmetic ----

static void compute(Moves *m)
{
    static const char *const reals[] = {"%s * 0.5 + 1", "relu(%s)", "exp(-abs(%s))", "cast(%s, f16) + 0.25"};
    static const char *const integers[] = {"%s %% 7 + %s / 3", "%s %% -4", "%s * 3000000000 %% 1000",
                                           "cast(%s, i64) * 5 - i", "select(%s %% 2 == 0, %s, -%s)", "max(%s, 3) %% 5"};
    static const char *const bits[] = {"!%s", "%s && i %% 2 == 0", "%s || i %% 3 == 1"};
    Places places = plain_places();
    const char *read = read_of(m, &places);
    Class class = m->current.class;
    const char *form = class == REAL ? PICK(&m->random, reals) : class == INTEGER ? PICK(&m->random, integers) : PICK(&m->random, bits);
    StrBuf value = strbuf_new(m->arena);
    for (const char *c = form; *c; c++)
        if (c[0] == '%' && c[1] == 's')
            strbuf_puts(&value, read), c++;
        else if (c[0] == '%' && c[1] == '%')
            strbuf_putc(&value, '%'), c++;
        else
            strbuf_putc(&value, *c);
    define(m, m->current, value.text);
}

/* Along the last dimension: a sum or a maximum, of bits their number; or what each element has beside it. */
static void reduce(Moves *m)
{
    Places places = plain_places();
    Shape made = m->current;
    if (made.rank < 2)
        return;
    int last = --made.rank;
    if (chance(m, 40)) {   // rows of a table are added up
        int64_t count = any_size(m);
        places.padded = chance(m, 30);
        places.of[last] = element_place(m, count, made.size[last], variables[last]);
        made.size[last] = count;
    }
    const char *read = read_of(m, &places);
    const char *value = arena_printf(m->arena, "%s[%s:%" PRId64 "](%s)", made.class != BIT && chance(m, 40) ? "max" : "sum",
                                     variables[last], made.size[last], read);
    if (made.class == BIT)
        made.class = INTEGER;
    define(m, made, value);
}

/* Rows times a matrix: the factor may be gathered, too. */
static void multiply(Moves *m)
{
    if (m->current.rank != 2 || m->current.class == BIT)
        return compute(m);
    Shape factor = {.class = m->current.class, .rank = 2, .size = {m->current.size[1], any_size(m)}};
    Shape made = {.class = m->current.class, .rank = 2, .size = {m->current.size[0], factor.size[1]}};
    name_anew(m, &factor, 'w');
    declare(m, &factor);
    define(m, made, arena_printf(m->arena, "sum[k:%" PRId64 "](%s[i, k] * %s[k, j])", m->current.size[1], m->current.name, factor.name));
}

// ---- the program ----

static void begin(Moves *m)
{
    static const Class classes[] = {REAL, REAL, REAL, INTEGER, INTEGER, BIT};
    Shape first = {.class = PICK(&m->random, classes), .rank = 1 + (int)below(m, 3)};
    for (int d = 0; d < first.rank; d++)
        first.size[d] = any_size(m);
    name_anew(m, &first, 'x');
    declare(m, &first);
    m->current = first;
}

char *generate_places(Arena *arena, uint64_t state)
{
    static void (*const steps[])(Moves *) = {reshape, reshape, gather, gather, divide, divide, shuffle, compute, reduce, multiply};
    Moves moves = {.arena = arena, .random = {generate_hash(state + 6)}, .inputs = strbuf_new(arena), .body = strbuf_new(arena),
                   .outputs = strbuf_new(arena)};
    begin(&moves);
    int count = 1 + (int)below(&moves, STEPS);
    for (int i = 0; i < count && elements(&moves.current) <= MOST_ELEMENTS; i++)
        PICK(&moves.random, steps)(&moves);
    compute(&moves);
    StrBuf text = strbuf_new(arena);
    strbuf_printf(&text, "%s%s", moves.inputs.text, moves.body.text);
    Shape last = moves.current;
    StrBuf own = strbuf_new(arena);
    strbuf_printf(&own, "output %s\n", last.name);
    strbuf_puts(&text, moves.outputs.text);
    if (!strstr(moves.outputs.text, own.text))
        strbuf_puts(&text, own.text);
    return text.text;
}
