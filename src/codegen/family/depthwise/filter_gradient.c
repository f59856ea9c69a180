#include "codegen/family/depthwise/filter_gradient.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "codegen/cuda/expr.h"
#include "rtile/space.h"

enum {
    MAX_SIDE = 4096   // rows and columns of pictures: limit of the search; the lines of a block lie in shared memory
};

// ---- structure ----

static bool is_plain(const WindowAxis *axis)
{
    return !axis->input_turned && !axis->taps_turned && axis->inputs <= MAX_SIDE && axis->taps <= MAX_SIDE &&
           axis->outputs <= MAX_SIDE;
}

Affine pictures_form(const Pictures *pictures, const Depthwise *shape)
{
    return depthwise_form(pictures->offset, pictures->origin, &shape->channel, &shape->summed);
}

int64_t pictures_bytes(const Pictures *pictures) { return dtype_info[pictures->access->tensor->dtype].bits / 8; }

static void set_pieces(Pictures *pictures, const Depthwise *shape)
{
    Affine form = pictures_form(pictures, shape);
    int64_t all = depthwise_alignment(&form, -1) | pictures->columns | pictures->row_stride;
    pictures->pieces = pictures->column_stride == 1 && all * pictures_bytes(pictures) % VECTOR_BYTES == 0;
}

static void set_pictures(FilterGradient *gradient, const WindowAxis *down, const WindowAxis *along)
{
    const Depthwise *shape = &gradient->shape;
    gradient->x = (Pictures){
        .access = factor_access(shape->x),
        .offset = &shape->x_offset,
        .origin = shape->x_origin,
        .row_stride = down->x_stride,
        .column_stride = along->x_stride,
        .rows = down->inputs,
        .columns = along->inputs,
    };
    gradient->d = (Pictures){
        .access = factor_access(shape->w),
        .offset = &shape->w_offset,
        .origin = shape->w_origin,
        .row_stride = down->w_stride,
        .column_stride = along->w_stride,
        .rows = down->taps,
        .columns = along->taps,
    };
    set_pieces(&gradient->x, shape);
    set_pieces(&gradient->d, shape);
    gradient->down = window_exchanged(down), gradient->along = window_exchanged(along);
}

/* Where windows slide along lines only, the innermost axis of several that are summed over tells the lines of
   a picture, which all belong to the one row of taps. */
static WindowAxis take_lines(const Fusion *fusion, Depthwise *shape)
{
    AxisGroup summed = {.extent = 1};
    int axis = shape->summed.count > 1 ? axis_group_innermost(&shape->summed) : -1;
    WindowAxis lines = window_point;
    if (axis < 0 || fusion->axes[axis].extent > MAX_SIDE)
        return lines;
    lines.taps = lines.inputs = fusion->axes[axis].extent;
    lines.x_stride = shape->x_offset.coef[axis], lines.w_stride = shape->w_offset.coef[axis];
    for (int i = 0; i < shape->summed.count - 1; i++)
        axis_group_add(&summed, fusion, shape->summed.axes[i]);
    shape->summed = summed;
    return lines;
}

bool filter_gradient_find(const Fusion *fusion, const Depthwise *sum, const Atom *atom,
                          FilterGradient *gradient)
{
    Depthwise *shape = &gradient->shape;
    *shape = *sum;
    gradient->atom = atom;
    if (shape->image_count > 2 || shape->w->kind == EXPR_GUARD || !shape->batch.count != !shape->multiplier.count)
        return false;
    WindowAxis down = shape->image_count == 2 ? shape->image[0] : take_lines(fusion, shape);
    const WindowAxis *along = &shape->image[shape->image_count - 1];
    if (!is_plain(&down) || !is_plain(along))
        return false;
    set_pictures(gradient, &down, along);
    int64_t pixels = size_product(gradient->d.rows * gradient->d.columns, shape->summed.extent);
    return pixels >= gradient->down.taps * gradient->along.taps;
}

bool filter_gradient_is_dense(const FilterGradient *gradient)
{
    return window_is_dense(&gradient->down) && window_is_dense(&gradient->along);
}

// ---- the space ----

/* Pictures lie one behind the other, by channels, or their channels side by side. */
static bool is_in_order(const Depthwise *shape, const Pictures *pictures)
{
    bool last = pictures->column_stride != 1;
    int64_t channels = shape->channel.extent, picture = pictures->rows * pictures->columns;
    int64_t row = last ? pictures->columns * channels : pictures->columns;
    bool in_order = shape->channel.count <= 1 && shape->summed.count <= 1 && pictures->row_stride == row &&
                    (!last || pictures->column_stride == channels);
    for (int i = 0; i < shape->channel.count; i++)
        in_order &= pictures->offset->coef[shape->channel.axes[i]] == (last ? 1 : picture);
    for (int i = 0; i < shape->summed.count; i++)
        in_order &= pictures->offset->coef[shape->summed.axes[i]] == picture * channels;
    return in_order;
}

/* One dimension for each group, in the order of a usual tensor: channels last where they are neighbours. */
static DataTile pictures_tile(const Depthwise *shape, const Pictures *pictures)
{
    DataTile tile = {
        .name = pictures->access->tensor->name,
        .rank = 4,
        .dims[0] = {affine_axis(IMAGE), shape->summed.extent},
        .dims[1] = {affine_axis(CHANNEL), shape->channel.extent},
        .dims[2] = {affine_axis(ROW), pictures->rows},
        .dims[3] = {affine_axis(COLUMN), pictures->columns},
        .element_bits = dtype_info[pictures->access->tensor->dtype].bits,
        .scatter = 1,
        .staged = true,
        .staged_inner = 3,
        .windows = true,
    };
    tile.apart = !is_in_order(shape, pictures);
    if (pictures->column_stride != 1) {
        Dim channels = tile.dims[1];
        memmove(&tile.dims[1], &tile.dims[2], 2 * sizeof tile.dims[0]);
        tile.dims[3] = channels;
    }
    return tile;
}

static DataTile output_tile(const Fusion *fusion, const FilterGradient *gradient, int op)
{
    const Tensor *out = fusion->ops[op].out;
    const AxisGroup *channel = &gradient->shape.channel;
    bool channels_first = !channel->count || axis_group_innermost(channel) < gradient->along.tap;
    return (DataTile){
        .name = out->name,
        .rank = 3,
        .dims[0] = {affine_axis(CHANNEL), channel->extent},
        .dims[1] = {affine_axis(TAP_DOWN), gradient->down.taps},
        .dims[2] = {affine_axis(TAP_ALONG), gradient->along.taps},
        .element_bits = dtype_info[out->dtype].bits,
        .scatter = 1,
        .output = true,
        .apart = channel->count > 1 || !channels_first || gradient->down.tap > gradient->along.tap,
    };
}

TileSpace *filter_gradient_space(Arena *arena, const Fusion *fusion, const FilterGradient *gradient,
                                 int64_t taps)
{
    const Depthwise *shape = &gradient->shape;
    TileSpace *space = space_new(arena, fusion);
    space->least_reducers = 1;
    space_add_axis(space, "channel", shape->channel.extent, false);
    space_add_axis(space, "tap down", gradient->down.taps, false);
    space_add_axis(space, "tap along", gradient->along.taps, false);
    space_add_axis(space, "image", shape->summed.extent, true);
    space_add_axis(space, "row", gradient->d.rows, true);
    space_add_axis(space, "column", gradient->d.columns, true);
    DataTile x = pictures_tile(shape, &gradient->x);
    Dim *rows = &x.dims[gradient->x.column_stride == 1 ? 2 : 1], *columns = rows + 1;
    rows->index = window_index(&gradient->down, ROW, TAP_DOWN);
    columns->index = window_index(&gradient->along, COLUMN, TAP_ALONG);
    /* Whole pictures are copied, even if some of their rows are not used. */
    x.apart |= taps < gradient->down.taps || !filter_gradient_is_dense(gradient);
    space->tiles[space->tile_count++] = x;
    space->tiles[space->tile_count++] = pictures_tile(shape, &gradient->d);
    for (int i = 0; i < fusion->op_count && space->tile_count < MAX_DATA_TILES; i++)
        if (fusion->ops[i].stored)
            space->tiles[space->tile_count++] = output_tile(fusion, gradient, i);
    return space;
}

void filter_gradient_copies(TileSpace *space, const FilterGradient *gradient)
{
    enum { OF_ELEMENT = 15 };   // instructions: where it comes from, where it goes. Counted in SASS
    const Pictures *pictures[] = {&gradient->x, &gradient->d};
    for (int i = 0; i < 2; i++)
        if (!pictures[i]->pieces)
            space->tiles[i].vector = 1, space->tiles[i].instructions = OF_ELEMENT;
}

double filter_gradient_rows_inside(const FilterGradient *gradient)
{
    if (gradient->down.tap < 0)
        return 1;
    return (double)window_pairs_inside(&gradient->shape.image[0]) /
           (double)(gradient->down.taps * gradient->d.rows);
}

int64_t filter_gradient_warps(const DeviceSpec *device, int64_t threads, int64_t registers,
                              int64_t shared_bytes)
{
    Limiter limiter;
    int blocks = perf_blocks_per_sm(device, (int)threads, (int)registers, shared_bytes, &limiter);
    return blocks * ceil_div(threads, device->warp_size);
}

int64_t filter_gradient_mark_bytes(int64_t warps) { return round_up(4 * warps, VECTOR_BYTES); }

// ---- the schedule ----

/* Asynchronous copies are of 4 bytes at least; other elements pass registers, so many at a time (templates/prelude/planes.cuh). */
enum { LEAST_COPY = 4, AT_ONCE = 8 };
static bool is_async(const Pictures *pictures) { return pictures->pieces || pictures_bytes(pictures) >= LEAST_COPY; }

void filter_gradient_walk(Schedule *schedule, const Fusion *fusion, const FilterGradient *gradient,
                          const TileSpace *space, int64_t zeros)
{
    uint32_t x = 1, d = 2, inputs = space_inputs(space);
    uint32_t copied = (is_async(&gradient->x) ? x : 0) | (is_async(&gradient->d) ? d : 0);
    schedule_store(schedule, (Move){.to = PLACE_SHARED, .bytes = (int32_t)zeros});
    schedule_barrier(schedule, SCOPE_BLOCK);
    schedule_loop(schedule, (Loop){.axis = IMAGE});
    schedule_wait(schedule, 0);
    schedule_barrier(schedule, SCOPE_BLOCK);
    schedule_load(schedule, (Move){.tiles = copied, .to = PLACE_SHARED, .async = true, .ahead = 1});
    schedule_load(schedule, (Move){.tiles = inputs & ~copied, .to = PLACE_SHARED, .ahead = 1, .each = AT_ONCE});
    schedule_load(schedule, (Move){.tiles = inputs, .from = PLACE_SHARED});
    schedule_reduce(schedule, schedule_ops(fusion, true));
    schedule_end(schedule);
}

// ---- text ----

void filter_gradient_emit_sizes(StrBuf *out, const FilterGradient *gradient)
{
    CONSTEXPR(out, "Index IMAGES", "that are summed over", gradient->shape.summed.extent);
    CONSTEXPR(out, "int XH, XW, DH, DW", "of x and d", gradient->x.rows, gradient->x.columns, gradient->d.rows,
              gradient->d.columns);
    CONSTEXPR(out, "int KH, KW", "taps", gradient->down.taps, gradient->along.taps);
    CONSTEXPR(out, "int TOP, LEFT", "row and column of x of the first tap, for element 0 of d",
              -gradient->down.pad, -gradient->along.pad);
}

void filter_gradient_emit_steps(StrBuf *out, const FilterGradient *gradient)
{
    CONSTEXPR(out, "int STRIDE_H, STRIDE_W", "in x, from one element of d to the next,", gradient->down.stride,
              gradient->along.stride);
    CONSTEXPR(out, "int DILATION_H, DILATION_W", "from one tap to the next", gradient->down.dilation,
              gradient->along.dilation);
}

void filter_gradient_emit_blocks(StrBuf *out, const FilterGradient *gradient, int64_t taps, int64_t images)
{
    CONSTEXPR(out, "Index BLOCKS_K, STEPS", "blocks of a channel", ceil_div(gradient->down.taps, taps),
              ceil_div(gradient->shape.summed.extent, images));
}

static void emit_source(StrBuf *out, const Scope *scope, const Depthwise *shape, const Pictures *pictures,
                        char name)
{
    Affine offset = pictures_form(pictures, shape);
    strbuf_printf(out,
                  "\nstruct Source%c {\n"
                  "    using Element = %s;\n"
                  "    static constexpr bool PIECES = %s;   // rows are aligned to 16-byte vectors\n"
                  "    static constexpr Index COLUMN_STRIDE = %" PRId64 ";\n"
                  "    static __device__ __forceinline__ const Element *row(const Tensors &t, Index channel, "
                  "Index image, "
                  "int row)\n    {\n",
                  name, memory_type(pictures->access->tensor->dtype), pictures->pieces ? "true" : "false",
                  pictures->column_stride);
    uint32_t used = affine_axes(&offset);
    emit_group_positions(out, "        ", "channel", scope, &shape->channel, used);
    emit_group_positions(out, "        ", "image", scope, &shape->summed, used);
    strbuf_printf(out, "        return t.in%d + (%s + row * %" PRId64 ");\n    }\n};\n",
                  input_position(scope->fusion, pictures->access->tensor),
                  affine_text(out->arena, &offset, scope->axis), pictures->row_stride);
}

static void emit_finish(StrBuf *out, const Scope *scope, const FilterGradient *gradient)
{
    const Depthwise *shape = &gradient->shape;
    uint32_t used = epilogue_axes(scope->fusion) | store_axes(scope->fusion);
    begin_function(out, NULL,
                   arena_printf(out->arena, "void finish(const Tensors &t, Index channel, int k, int l, Value total%s)",
                                shape->batch.count ? ", Index batch, Index multiplier" : ""));
    emit_group_positions(out, "    ", "channel", scope, &shape->channel, used);
    emit_group_positions(out, "    ", "batch", scope, &shape->batch, used);
    emit_group_positions(out, "    ", "multiplier", scope, &shape->multiplier, used);
    if (gradient->down.tap >= 0)
        strbuf_printf(out, "    const Index %s = k;\n", scope->axis[gradient->down.tap]);
    strbuf_printf(out, "    const Index %s = l;\n", scope->axis[gradient->along.tap]);
    emit_epilogue(out, "    ", scope, "total");
    emit_stores(out, "    ", scope);
    strbuf_puts(out, "}\n");
}

void filter_gradient_emit_functions(StrBuf *out, const KernelPlan *plan, const FilterGradient *gradient)
{
    Scope scope = scope_of(plan);
    emit_source(out, &scope, &gradient->shape, &gradient->x, 'X');
    emit_source(out, &scope, &gradient->shape, &gradient->d, 'D');
    emit_finish(out, &scope, gradient);
}
