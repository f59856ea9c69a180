// Concatenations, as dense blocks, inceptions and decoders have them: of what products, windows and sums make, and of inputs;
// along any axis; some of whose parts others read, and of whose first parts there is one more.
#include <inttypes.h>

#include "differential/generate_parts.h"

enum { MOST_DIMS = 4, MOST_PARTS = 6, MOST_POINTS = 600 };   // of what lies beside the axis

typedef struct Joined {
    Arena *arena;
    Random random;
    const char *type;
    int rank, axis, parts;
    int64_t extent[MOST_DIMS];    // but for the axis
    int64_t size[MOST_PARTS];     // along it
    StrBuf inputs, definitions, outputs;
} Joined;

static bool chance(Joined *joined, int percent) { return random_chance(&joined->random, percent); }

/* [a, b, c], with another text along one dimension. */
static const char *indices(const Joined *joined, int dim, const char *text)
{
    StrBuf out = strbuf_new(joined->arena);
    for (int d = 0; d < joined->rank; d++) {
        strbuf_puts(&out, d ? ", " : "");
        if (d == dim)
            strbuf_puts(&out, text);
        else
            strbuf_putc(&out, (char)('a' + d));
    }
    return out.text;
}

/* An input of so many elements along the axis, and of one dimension more, if that is not 0. */
static void add_input(Joined *joined, const char *name, int64_t along, int64_t more)
{
    strbuf_printf(&joined->inputs, "input %s[", name);
    for (int d = 0; d < joined->rank; d++)
        strbuf_printf(&joined->inputs, "%s%" PRId64, d ? ", " : "", d == joined->axis ? along : joined->extent[d]);
    if (more)
        strbuf_printf(&joined->inputs, ", %" PRId64, more);
    strbuf_printf(&joined->inputs, "] : %s\n", joined->type);
}

static void begin(Joined *joined, int part)
{
    const char *along = arena_printf(joined->arena, "%c:%" PRId64, 'a' + joined->axis, joined->size[part]);
    strbuf_printf(&joined->definitions, "p%d[%s] : %s = ", part, indices(joined, joined->axis, along), joined->type);
}

static void add_product(Joined *joined, int part)
{
    static const int64_t terms[] = {8, 16, 17, 32};
    int64_t count = PICK(&joined->random, terms);
    add_input(joined, arena_printf(joined->arena, "x%d", part), count, 0);
    strbuf_printf(&joined->inputs, "input w%d[%" PRId64 ", %" PRId64 "] : %s\n", part, joined->size[part], count,
                  joined->type);
    begin(joined, part);
    const char *sum = arena_printf(joined->arena, "sum[r](x%d[%s] * w%d[%c, r])", part, indices(joined, joined->axis, "r"), part,
                                   'a' + joined->axis);
    strbuf_printf(&joined->definitions, chance(joined, 50) ? "max(%s, 0)\n" : "%s\n", sum);
}

static void add_window(Joined *joined, int part)
{
    int dim = (int)random_below(&joined->random, joined->rank);
    add_input(joined, arena_printf(joined->arena, "x%d", part), joined->size[part], 0);
    StrBuf own = strbuf_new(joined->arena);
    for (int d = 0; d < joined->rank; d++)
        strbuf_printf(&own, "%s%c:%" PRId64, d ? ", " : "", 'a' + d,
                      d == joined->axis ? joined->size[part] : joined->extent[d]);
    strbuf_printf(&joined->definitions, "p%d[%s] : %s = max[r:3](pad(x%d[%s], -inf))\n", part, own.text, joined->type, part,
                  indices(joined, dim, arena_printf(joined->arena, "%c + r - 1", 'a' + dim)));
}

static void add_sum(Joined *joined, int part)
{
    add_input(joined, arena_printf(joined->arena, "x%d", part), joined->size[part], 5);
    begin(joined, part);
    strbuf_printf(&joined->definitions, "sum[r](x%d[%s, r])\n", part, indices(joined, -1, ""));
}

static void add_points(Joined *joined, int part)
{
    add_input(joined, arena_printf(joined->arena, "x%d", part), joined->size[part], 0);
    begin(joined, part);
    strbuf_printf(&joined->definitions, chance(joined, 50) ? "x%d[%s] * 2\n" : "x%d[%s]\n", part, indices(joined, -1, ""));
}

static void add_part(Joined *joined, int part)
{
    static const int64_t sizes[] = {8, 8, 16, 16, 24, 32, 40, 4, 3};
    joined->size[part] = PICK(&joined->random, sizes);
    int64_t kind = random_below(&joined->random, 16);
    if (kind < 8)
        add_product(joined, part);
    else if (kind < 12)
        add_window(joined, part);
    else if (kind < 15)
        add_sum(joined, part);
    else
        add_points(joined, part);
}

static void write_choice(Joined *joined, StrBuf *out, int part, int count, int64_t first)
{
    char axis = (char)('a' + joined->axis);
    const char *place = arena_printf(joined->arena, "%c - %" PRId64, axis, first);
    const char *element = arena_printf(joined->arena, "pad(p%d[%s], 0)", part, indices(joined, joined->axis, place));
    int64_t end = first + joined->size[part];
    if (part + 1 == count) {
        strbuf_puts(out, element);
        return;
    }
    strbuf_printf(out, "select(%c < %" PRId64 ", %s, ", axis, end, element);
    write_choice(joined, out, part + 1, count, end);
    strbuf_puts(out, ")");
}

static void add_output(Joined *joined, const char *name) { strbuf_printf(&joined->outputs, "output %s\n", name); }

static void add_reader(Joined *joined, const char *whole, int64_t size, int number)
{
    const char *name = arena_printf(joined->arena, "%s_y%d", whole, number), *at = indices(joined, -1, "");
    int64_t kind = random_below(&joined->random, 5);
    if (kind == 0) {
        strbuf_printf(&joined->definitions, "%s[%s] : %s = max(%s[%s] * 2, 0)\n", name, at, joined->type, whole, at);
    } else if (kind == 1) {
        strbuf_printf(&joined->inputs, "input %s_w[16, %" PRId64 "] : %s\n", name, size, joined->type);
        strbuf_printf(&joined->definitions, "%s[%s] : %s = sum[r](%s[%s] * %s_w[%c, r])\n", name, at, joined->type, whole,
                      indices(joined, joined->axis, "r"), name, 'a' + joined->axis);
    } else if (kind == 2) {
        strbuf_printf(&joined->inputs, "input %s_s[%" PRId64 "] : f32\n", name, size);
        strbuf_printf(&joined->definitions, "%s[%s] : %s = %s[%s] * %s_s[%c]\n", name, at, joined->type, whole, at, name,
                      'a' + joined->axis);
    } else if (kind == 3) {
        const char *row = arena_printf(joined->arena, "%c:1", 'a' + joined->axis);
        strbuf_printf(&joined->definitions, "%s[%s] = sum[r](%s[%s])\n", name, indices(joined, joined->axis, row), whole,
                      indices(joined, joined->axis, "r"));
    } else {
        strbuf_printf(&joined->definitions, "%s[%s] = %s[%s] > 0.5\n", name, at, whole, at);
    }
    add_output(joined, name);
}

/* Of the first parts. */
static void add_whole(Joined *joined, const char *name, int count)
{
    int64_t size = 0;
    for (int part = 0; part < count; part++)
        size += joined->size[part];
    const char *along = arena_printf(joined->arena, "%c:%" PRId64, 'a' + joined->axis, size);
    strbuf_printf(&joined->definitions, "%s[%s] : %s = ", name, indices(joined, joined->axis, along), joined->type);
    write_choice(joined, &joined->definitions, 0, count, 0);
    strbuf_puts(&joined->definitions, "\n");
    if (chance(joined, 25))
        add_output(joined, name);
    for (int number = 1 + (int)random_below(&joined->random, 2); number > 0; number--)
        add_reader(joined, name, size, number);
}

static void choose_shape(Joined *joined)
{
    static const int64_t extents[] = {1, 2, 3, 5, 7, 8, 14, 16};
    joined->rank = 2 + (int)random_below(&joined->random, MOST_DIMS - 1);
    joined->axis = chance(joined, 60) ? joined->rank - 1 : (int)random_below(&joined->random, joined->rank);
    for (int64_t d = 0, left = MOST_POINTS; d < joined->rank; d++) {
        int64_t extent = PICK(&joined->random, extents);
        joined->extent[d] = extent <= left ? extent : 1;
        left /= d == joined->axis ? 1 : joined->extent[d];
    }
}

char *generate_joined(Arena *arena, uint64_t state)
{
    static const char *const types[] = {"f16", "f16", "f16", "f32", "bf16", "f64"};
    Joined joined = {.arena = arena,
                     .random = {state},
                     .inputs = strbuf_new(arena),
                     .definitions = strbuf_new(arena),
                     .outputs = strbuf_new(arena)};
    joined.type = PICK(&joined.random, types);
    choose_shape(&joined);
    joined.parts = 2 + (int)random_below(&joined.random, MOST_PARTS - 1);
    for (int part = 0; part < joined.parts; part++)
        add_part(&joined, part);
    if (joined.parts > 2 && chance(&joined, 50))
        add_whole(&joined, "some", 2 + (int)random_below(&joined.random, joined.parts - 2));
    add_whole(&joined, "all", joined.parts);
    if (chance(&joined, 25)) {   // one reads a part by itself
        int part = (int)random_below(&joined.random, joined.parts);
        const char *at = indices(&joined, -1, "");
        strbuf_printf(&joined.definitions, "alone[%s] = max(p%d[%s], 0.25)\n", at, part, at);
        add_output(&joined, "alone");
    }
    return arena_printf(arena, "%s%s%s", joined.inputs.text, joined.definitions.text, joined.outputs.text);
}
