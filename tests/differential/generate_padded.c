// Padded definitions that are no outputs, with several readers: reductions along any axes, elements in any order, sums of
// products, windows. Such a definition is made again wherever it is read, and guards stand above all that it reads.
#include <inttypes.h>

#include "differential/generate_net.h"

enum { MOST_POINTS = 8000, MOST_OF_COLUMNS = 65536, MOST_READERS = 4 };

static bool chance(Net *net, int percent) { return random_chance(&net->random, percent); }

/* Of the axis or of several; what lies outside is a constant that sums, largest and smallest all see. */
static const char *padded_access(Net *net, const Held *x, Set moved)
{
    static const char *const constants[] = {"0", "0", "0", "1.5", "-1"};
    const char *indices[NET_AXES] = {NULL};
    for (int a = 0; a < net->axis_count; a++) {
        int64_t shift = random_below(&net->random, 4), extent = net->extent[a];
        if (!(moved >> a & 1))
            continue;
        indices[a] = chance(net, 75)   ? net_text(net, "%c - %" PRId64, net_axis(a), shift)
                     : chance(net, 50) ? net_text(net, "2*%c - %" PRId64, net_axis(a), shift)
                                       : net_text(net, "%" PRId64 " - %c", extent - shift, net_axis(a));
    }
    const char *constant = PICK(&net->random, constants);
    return net_text(net, "pad(%s, %s)", net_read_with(net, x, indices), constant);
}

/* The input is smaller or larger than what is made of it; it keeps the order of its axes. */
static Held padded_definition(Net *net, Set axes)
{
    Set moved = 1u << net_one(net, axes);
    if (chance(net, 30))
        moved |= net_any(net, axes);
    int64_t whole[NET_AXES];
    for (int a = 0; a < net->axis_count; a++) {
        whole[a] = net->extent[a];
        int64_t change = random_below(&net->random, 7) - 4;
        net->extent[a] += moved >> a & 1 && whole[a] + change > 0 ? change : 0;
    }
    Held x = net_new_input(net, axes, NET_REAL);
    for (int a = 0; a < net->axis_count; a++)
        net->extent[a] = whole[a];
    const char *element = padded_access(net, &x, moved);
    switch (random_below(&net->random, 6)) {
    case 0: element = net_text(net, "%s + 0.5 * %s", element, padded_access(net, &x, moved)); break;
    case 1:
        element = net_text(net, "%s * %s", element, net_input(net, net_any(net, axes), NET_WEIGHT));
        break;
    default: break;
    }
    return net_define(net, axes, NET_ROUNDED | NET_HIDDEN, "%s", element);
}

// ---- readers ----

static void reduction(Net *net, const Held *v, Set over)
{
    static const char *const combiners[] = {"sum", "sum", "max", "min"};
    const char *combiner = PICK(&net->random, combiners), *x = net_read(net, v);
    switch (random_below(&net->random, 4)) {
    case 0: x = net_text(net, "sq(%s)", x); break;
    case 1: x = net_text(net, "%s * %s", x, net_input(net, over, NET_REAL)); break;
    default: break;
    }
    net_define(net, net_set(v) & ~over, NET_ROUNDED | NET_OUTPUT, "%s%s(%s)", combiner, net_list(net, over),
               x);
}

static Held deviation(Net *net, const Held *v, Set over)
{
    const char *x = net_read(net, v);
    Held mean = net_define(net, net_set(v) & ~over, NET_EXACT, "sum%s(%s) / %" PRId64, net_list(net, over), x,
                           net_points(net, over));
    return net_define(net, net_set(v), NET_ROUNDED | NET_OUTPUT, "%s - %s", x, net_read(net, &mean));
}

static Held window(Net *net, const Held *v)
{
    int along = net_one(net, net_set(v)), tap = net_new_axis(net, 3);
    if (tap < 0)
        return *v;
    const char *index = net_text(net, "%c + %c - 1", net_axis(along), net_axis(tap));
    return net_define(net, net_set(v), NET_ROUNDED | NET_OUTPUT, "sum%s(pad(%s, 0))",
                      net_list(net, 1u << tap), net_read_at(net, v, along, index));
}

/* One more of v's. What has as many axes may be read by the next one instead. */
static void add_reader(Net *net, Held *v, Set over)
{
    Held made = *v;
    switch (random_below(&net->random, 8)) {
    case 0: made = net_define(net, net_set(v), NET_ROUNDED | NET_OUTPUT, "%s * 2", net_read(net, v)); break;
    case 1: net_define(net, net_set(v), NET_OUTPUT, "%s > 0.25", net_read(net, v)); break;
    case 2: made = deviation(net, v, over); break;
    case 3: made = window(net, v); break;
    default: reduction(net, v, chance(net, 85) ? over : net_some(net, net_set(v)));
    }
    if (chance(net, 40))
        *v = made;
}

/* Some columns are long, so that blocks share them. */
static Set choose_axes(Net *net)
{
    static const int64_t extents[] = {1, 2, 3, 4, 5, 8, 9, 12, 16, 16, 17, 32, 33, 64, 97, 200},
                         columns[] = {1024, 3001, 4096, 8192};
    bool is_long = chance(net, 35);
    int rank = 1 + (int)random_below(&net->random, 4);
    for (int64_t a = 0, left = is_long ? MOST_OF_COLUMNS : MOST_POINTS; a < rank; left /= net->extent[a++]) {
        int64_t extent = is_long && a == 0 ? PICK(&net->random, columns) : PICK(&net->random, extents);
        net_new_axis(net, extent <= left ? extent : left);
    }
    return (1u << rank) - 1;
}

char *generate_padded(Arena *arena, uint64_t state)
{
    static const char *const types[] = {"f32", "f32", "f16", "bf16", "f64"};
    Net net = {.arena = arena,
               .random = {state},
               .row = -1,
               .inputs = strbuf_new(arena),
               .definitions = strbuf_new(arena),
               .outputs = strbuf_new(arena)};
    net.type = PICK(&net.random, types);
    net.weight_type = PICK(&net.random, types);
    Set axes = choose_axes(&net), over;
    Held v = padded_definition(&net, axes);
    over = chance(&net, 60) ? 1u : net_some(&net, axes);   // columns mostly
    reduction(&net, &v, over);
    for (int more = 1 + (int)random_below(&net.random, MOST_READERS - 1); more > 0; more--)
        add_reader(&net, &v, over);
    return arena_printf(arena, "%s%s%s", net.inputs.text, net.definitions.text, net.outputs.text);
}
