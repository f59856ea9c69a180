// Networks: axes, inputs and definitions as text, and the programs that layers make.
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "differential/generate_net.h"

// ---- axes ----

char net_axis(int axis) { return (char)('a' + axis); }

Set net_set(const Held *held)
{
    Set set = 0;
    for (int d = 0; d < held->rank; d++)
        set |= 1u << held->axes[d];
    return set;
}

int64_t net_points(const Net *net, Set set)
{
    int64_t points = 1;
    for (int a = 0; a < net->axis_count; a++)
        points *= set >> a & 1 ? net->extent[a] : 1;
    return points;
}

int net_one(Net *net, Set set)
{
    int axes[NET_AXES], count = 0;
    for (int a = 0; a < net->axis_count; a++)
        if (set >> a & 1)
            axes[count++] = a;
    return count ? axes[random_below(&net->random, count)] : -1;
}

Set net_any(Net *net, Set set)
{
    Set chosen = 0;
    if (net->row >= 0 && set >> net->row & 1 && random_chance(&net->random, net->plain ? 80 : 50))
        return 1u << net->row;
    for (int a = 0; a < net->axis_count; a++)
        chosen |= random_chance(&net->random, 50) ? set & 1u << a : 0;
    return chosen;
}

/* One axis, the inner ones or the outer ones (as they were made), which people mostly want; or all, or any. */
Set net_some(Net *net, Set set)
{
    bool in_row = net->row >= 0 && set >> net->row & 1 && (net->plain || random_chance(&net->random, 60));
    int one = in_row ? net->row : net_one(net, set);
    Set below = one < 0 ? 0 : (1u << one) - 1, any = net_any(net, set);
    switch (in_row ? 0 : random_below(&net->random, 6)) {
    case 0:
    case 1: return set & 1u << one;
    case 2: return set & ~below;
    case 3: return set & (below | 1u << one);
    case 4: return any ? any : set;
    default: return random_chance(&net->random, 30) ? set : any ? any : set & 1u << one;
    }
}

int net_new_axis(Net *net, int64_t extent)
{
    if (net->axis_count == NET_AXES)
        return -1;
    net->extent[net->axis_count] = extent;
    return net->axis_count++;
}

const char *net_list(Net *net, Set set)
{
    StrBuf out = strbuf_new(net->arena);
    for (int a = 0; a < net->axis_count; a++)
        if (set >> a & 1)
            strbuf_printf(&out, "%s%c:%" PRId64, out.length ? ", " : "[", net_axis(a), net->extent[a]);
    strbuf_puts(&out, "]");
    return out.text;
}

// ---- tensors, as text ----

const char *net_text(Net *net, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(net->arena, format, args);
    va_end(args);
    return text;
}

const char *net_read_with(Net *net, const Held *held, const char *const *indices)
{
    StrBuf out = strbuf_new(net->arena);
    strbuf_printf(&out, "%c%d[", held->letter, held->number);
    for (int d = 0; d < held->rank; d++) {
        strbuf_puts(&out, d ? ", " : "");
        if (indices[held->axes[d]])
            strbuf_puts(&out, indices[held->axes[d]]);
        else
            strbuf_putc(&out, net_axis(held->axes[d]));
    }
    strbuf_puts(&out, "]");
    return out.text;
}

const char *net_read_at(Net *net, const Held *held, int axis, const char *index)
{
    const char *indices[NET_AXES] = {NULL};
    if (axis >= 0)
        indices[axis] = index;
    return net_read_with(net, held, indices);
}

const char *net_read(Net *net, const Held *held) { return net_read_at(net, held, -1, ""); }

static const char *type_of(Net *net, NetType type)
{
    static const char *const reals[] = {"f32", "f16", "bf16", "f64"}, *const bytes[] = {"i8", "u8"};
    const char *mostly = type == NET_WEIGHT ? net->weight_type : net->type;
    if (type == NET_REAL || type == NET_WEIGHT)
        return random_chance(&net->random, 75) ? mostly : PICK(&net->random, reals);
    return type == NET_BIT ? "b1" : type == NET_INDEX ? "i32" : PICK(&net->random, bytes);
}

/* The axes of the set as dimensions: in the order in which they were made, unless they are shuffled. */
static Held held_new(Net *net, Set set, bool shuffled)
{
    Held held = {0};
    for (int a = 0; a < net->axis_count && held.rank < NET_RANK; a++)
        if (set >> a & 1)
            held.axes[held.rank++] = a;
    for (int i = held.rank - 1; i > 0 && shuffled && !net->plain; i--) {
        int j = (int)random_below(&net->random, i + 1), kept = held.axes[i];
        held.axes[i] = held.axes[j];
        held.axes[j] = kept;
    }
    return held;
}

Held net_new_input(Net *net, Set set, NetType type)
{
    Held held = held_new(net, set, random_chance(&net->random, 15));
    held.letter = 'x';
    held.number = net->input_count++;
    strbuf_printf(&net->inputs, "input x%d[", held.number);
    for (int d = 0; d < held.rank; d++)
        strbuf_printf(&net->inputs, "%s%" PRId64, d ? ", " : "", net->extent[held.axes[d]]);
    strbuf_printf(&net->inputs, "] : %s\n", type_of(net, type));
    return held;
}

const char *net_input(Net *net, Set set, NetType type)
{
    Held held = net_new_input(net, set, type);
    return net_read(net, &held);
}

/* Whatever stands on the right, all extents are stated on the left. */
Held net_define(Net *net, Set set, unsigned how, const char *format, ...)
{
    static const char *const types[] = {"f32", "f16", "bf16", "f16", "bf16", "f64"};
    bool output = how & NET_OUTPUT || (!(how & NET_HIDDEN) && random_chance(&net->random, 20));
    bool typed = how & NET_ROUNDED && random_chance(&net->random, output ? 70 : 20);
    Held held = held_new(net, set, random_chance(&net->random, output ? 25 : 10));
    held.letter = 't';
    held.output = output;
    held.number = net->definition_count++;
    strbuf_printf(&net->definitions, "t%d[", held.number);
    for (int d = 0; d < held.rank; d++)
        strbuf_printf(&net->definitions, "%s%c:%" PRId64, d ? ", " : "", net_axis(held.axes[d]),
                      net->extent[held.axes[d]]);
    strbuf_puts(&net->definitions, "]");
    if (typed)
        strbuf_printf(&net->definitions, " : %s",
                      random_chance(&net->random, 70) ? net->type : PICK(&net->random, types));
    va_list args;
    va_start(args, format);
    strbuf_printf(&net->definitions, " = %s\n", arena_vprintf(net->arena, format, args));
    va_end(args);
    if (output)
        strbuf_printf(&net->outputs, "output t%d\n", held.number);
    return held;
}

// ---- programs ----

enum { MOST_POINTS = 1 << 17 };

/* One axis is long, mostly the innermost; in half of these programs that is all there is to them. */
static void choose_long_axes(Net *net)
{
    static const int64_t rows[] = {2048,  3000,  4096,  5003,  8192,  8200,  9001, 12288, 12288,
                                   12290, 16384, 16384, 16387, 24576, 24576, 24577};
    static const int64_t others[] = {1, 2, 2, 3, 4, 8, 16, 32};
    net->plain = random_chance(&net->random, 60);
    int rank = 2 + (int)random_below(&net->random, net->plain ? 2 : 4);
    net->row = random_chance(&net->random, 70) ? rank - 1 : (int)random_below(&net->random, rank);
    int64_t row = PICK(&net->random, rows), most = MOST_POINTS / row;
    int64_t left = 1 + random_below(&net->random, net->row < rank - 1 ? most : most < 8 ? most : 8);
    net->most = row * left;
    for (int a = 0; a < rank; a++) {
        int64_t other = PICK(&net->random, others), extent = a == net->row  ? row
                                                             : other < left ? other
                                                                            : left;
        left /= a == net->row ? 1 : extent;
        net_new_axis(net, extent);
    }
}

/* Extents as they come. Small ones are many: each costs less to prove. */
static void choose_axes(Net *net)
{
    static const int64_t extents[] = {1,  1,  2,  3,  4,  5,  7,  8,   12,  16,  17,
                                      31, 32, 33, 40, 64, 65, 97, 128, 260, 1000};
    static const int64_t most[] = {200,  500,  1000, 1000, 2000,  2000,  2000,       4000,
                                   4000, 4000, 8000, 8000, 12000, 16000, MOST_POINTS};
    int rank = 1 + (int)random_below(&net->random, 5);
    net->row = -1;
    net->most = PICK(&net->random, most);
    for (int64_t a = 0, points = 1; a < rank; points *= net->extent[a++]) {
        int64_t extent = PICK(&net->random, extents), left = net->most / points;
        net_new_axis(net, extent <= left ? extent : 1 + random_below(&net->random, left < 40 ? left : 40));
    }
}

static const char *wider_type(const char *type) { return strcmp(type, "f32") == 0 ? "f64" : "f32"; }

char *generate_network(Arena *arena, uint64_t state)
{
    static const char *const types[] = {"f32", "f32", "f16", "f16", "bf16", "bf16", "f64"};
    static const int depths[] = {1, 1, 1, 1, 2, 2, 3};
    Net net = {.arena = arena,
               .random = {state},
               .inputs = strbuf_new(arena),
               .definitions = strbuf_new(arena),
               .outputs = strbuf_new(arena)};
    net.type = PICK(&net.random, types);
    net.weight_type = random_chance(&net.random, 40) ? wider_type(net.type) : PICK(&net.random, types);
    (random_chance(&net.random, 20) ? choose_long_axes : choose_axes)(&net);
    net_begin(&net);
    for (int layers = PICK(&net.random, depths); layers > 0 && net.now.rank > 0; layers--)
        net_add_layer(&net);
    if (!net.now.output && net.now.letter == 't' && random_chance(&net.random, 60))
        strbuf_printf(&net.outputs, "output t%d\n", net.now.number);
    else if (!net.now.output)
        net_define(&net, net_set(&net.now), NET_ROUNDED | NET_OUTPUT, "%s", net_read(&net, &net.now));
    return arena_printf(arena, "%s%s%s", net.inputs.text, net.definitions.text, net.outputs.text);
}
