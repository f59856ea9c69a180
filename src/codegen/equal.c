#include "codegen/equal.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/cuda/expr.h"
#include "codegen/cuda/token.h"

/* A launch as it is compared. */
typedef struct Likeness {
    int *order;   // of its inputs: those that the text names first first
    const char *key;
    size_t length;
} Likeness;

// ---- the order of inputs ----

static bool is_in(const int *list, int count, int number)
{
    int i = 0;
    while (i < count && list[i] != number)
        i++;
    return i < count;
}

static int place_of(const int *order, int input)
{
    int place = 0;
    while (order[place] != input)
        place++;
    return place;
}

/* 3 of `in3`; -1: it is no input. */
static int input_of(Slice token)
{
    bool numbered = slice_starts(token, "in") && slice_length(token) > 2;
    for (const char *c = token.start + 2; numbered && c < token.end; c++)
        numbered = isdigit((unsigned char)*c);
    return numbered ? atoi(token.start + 2) : -1;
}

/* Behind those that the text names are those that bulk copies alone read. */
static int *order_of(Arena *arena, const LaunchDraft *draft, const Launch *launch)
{
    int inputs = draft->plan.fusion->input_count, count = 0;
    int *order = NEW_ARRAY(arena, int, inputs + 1);
    Slice rest = slice_of(draft->block), token;
    while (token_read(&rest, &token)) {
        int input = input_of(token);
        if (input >= 0 && !is_in(order, count, input))
            order[count++] = input;
    }
    for (int i = 0; i < launch->map_count; i++)
        if (launch->maps[i].arg < inputs && !is_in(order, count, launch->maps[i].arg))
            order[count++] = launch->maps[i].arg;
    for (int i = 0; i < inputs; i++)
        if (!is_in(order, count, i))
            order[count++] = i;
    return order;
}

// ---- what is compared ----

static void write_shape(StrBuf *out, const Launch *launch)
{
    for (int d = 0; d < 3; d++)
        strbuf_printf(out, "%" PRId64 " %d %d ", launch->grid[d], launch->block[d], launch->cluster[d]);
    strbuf_printf(out, "%" PRId64 " %d %d%d%d%d\n", launch->shared_bytes, launch->turns, launch->cooperative,
                  launch->early, launch->waits_last, launch->lets_begin);
}

static void write_integers(StrBuf *out, const int64_t *values, int count)
{
    for (int i = 0; i < count; i++)
        strbuf_printf(out, " %" PRId64, values[i]);
}

static void write_ints(StrBuf *out, const int *values, int count)
{
    for (int i = 0; i < count; i++)
        strbuf_printf(out, " %d", values[i]);
}

static void write_map(StrBuf *out, const TensorMap *map, int place)
{
    strbuf_printf(out, "map %d %" PRId64 " %d %d %d %d", place, map->start, map->rank, map->element_bytes, map->pixel_axes,
                  map->tf32);
    write_integers(out, map->sizes, map->rank);
    write_integers(out, map->strides, map->rank - 1);
    write_ints(out, map->box, map->rank);
    write_ints(out, map->lower, map->pixel_axes);
    write_ints(out, map->upper, map->pixel_axes);
    write_ints(out, map->steps, map->pixel_axes);
}

/* Of the workspace and of arguments both, the launcher knows no more of these. */
static int64_t alignment_of(const LaunchArg *arg)
{
    int64_t start = launch_arg_start(arg), alignment = start & -start;
    return alignment == 0 || alignment > VECTOR_BYTES ? VECTOR_BYTES : alignment;
}

static void write_arguments(StrBuf *out, const LaunchDraft *draft, const Launch *launch, const int *order)
{
    const Fusion *fusion = draft->plan.fusion;
    strbuf_printf(out, "%d %s\n", draft->plan.wide, emit_signature(out->arena, fusion, launch, order));
    for (int i = 0; i < launch->arg_count; i++)
        strbuf_printf(out, " %" PRId64, alignment_of(&launch->args[i < fusion->input_count ? order[i] : i]));
    for (int i = 0; i < launch->map_count; i++) {
        int arg = launch->maps[i].arg;
        write_map(out, &launch->maps[i], arg < fusion->input_count ? place_of(order, arg) : arg);
    }
}

/* Its words, without comments. */
static void write_block(StrBuf *out, const char *block, const int *order)
{
    Slice rest = slice_of(block), token;
    while (rest.start < rest.end) {
        const char *behind = token_skip(rest.start, rest.end);
        if (behind != rest.start) {
            if (!slice_starts(rest, "//"))
                strbuf_write(out, rest.start, (size_t)(behind - rest.start));
            rest.start = behind;
        } else if (token_read(&rest, &token)) {
            int input = input_of(token);
            if (input >= 0)
                strbuf_printf(out, "in%d", place_of(order, input));
            else
                strbuf_write(out, token.start, slice_length(token));
        }
    }
}

static Likeness likeness_of(Arena *arena, const LaunchDraft *draft, const Launch *launch)
{
    StrBuf key = strbuf_new(arena);
    int *order = order_of(arena, draft, launch);
    strbuf_printf(&key, "%s\n", draft->template_path ? draft->template_path : "");
    write_shape(&key, launch);
    write_arguments(&key, draft, launch, order);
    write_block(&key, draft->block, order);
    return (Likeness){order, key.text, key.length};
}

static bool is_alike(const Likeness *a, const Likeness *b)
{
    return a->length == b->length && memcmp(a->key, b->key, a->length) == 0;
}

// ---- what follows ----

/* The inputs as the first launch of the kernel has them. */
static void take_order(Arena *arena, Launch *launch, const int *own, const int *leader, int inputs)
{
    LaunchArg *args = NEW_ARRAY(arena, LaunchArg, launch->arg_count);
    memcpy(args, launch->args, sizeof *args * (size_t)launch->arg_count);
    for (int i = 0; i < inputs; i++)
        args[leader[i]] = launch->args[own[i]];
    launch->args = args;
    for (int i = 0; i < launch->map_count; i++)
        if (launch->maps[i].arg < inputs)
            launch->maps[i].arg = leader[place_of(own, launch->maps[i].arg)];
}

void equal_kernels(Arena *arena, Kernel *kernel, const LaunchDraft *drafts)
{
    Likeness *leaders = NEW_ARRAY(arena, Likeness, kernel->launch_count);
    kernel->leaders = NEW_ARRAY(arena, int, kernel->launch_count);
    kernel->likenesses = NEW_ARRAY(arena, const char *, kernel->launch_count);
    for (int i = 0; i < kernel->launch_count; i++) {
        Launch *launch = &kernel->launches[i];
        Likeness own = likeness_of(arena, &drafts[i], launch);
        int k = 0;
        while (k < kernel->kernel_count && !is_alike(&leaders[k], &own))
            k++;
        launch->kernel = k;
        if (k < kernel->kernel_count) {
            take_order(arena, launch, own.order, leaders[k].order, drafts[i].plan.fusion->input_count);
            continue;
        }
        leaders[kernel->kernel_count] = own;
        kernel->likenesses[kernel->kernel_count] = own.key;
        kernel->leaders[kernel->kernel_count++] = i;
    }
}
