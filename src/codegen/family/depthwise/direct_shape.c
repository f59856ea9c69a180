// Which depthwise convolutions direct kernels take, and what they read and write, as data tiles.
#include "codegen/family/depthwise/direct.h"

#include <stdlib.h>

#include "base/checked.h"
#include "rtile/space.h"

/* Dimensions of a data tile on their way, each with its stride in memory. */
typedef struct TileDims {
    int64_t stride[MAX_RANK];
    Dim dim[MAX_RANK];
    int count;
    bool apart;   // of several axes one does not follow the other
} TileDims;

/* Outer dimensions first. */
static void add_dim(TileDims *dims, int64_t stride, Affine form, int64_t size)
{
    int at = dims->count++;
    for (; at > 0 && dims->stride[at - 1] < llabs(stride); at--) {
        dims->stride[at] = dims->stride[at - 1];
        dims->dim[at] = dims->dim[at - 1];
    }
    dims->stride[at] = llabs(stride);
    dims->dim[at] = (Dim){form, size};
}

static void add_group(TileDims *dims, const Fusion *fusion, const AxisGroup *group, int space_axis,
                      const Affine *offset)
{
    int64_t stride = 0;
    for (int i = group->count - 1; i >= 0 && !stride; i--)
        stride = offset->coef[group->axes[i]];
    dims->apart |= !axis_group_has_stride(group, fusion, offset, axis_group_stride(group, offset));
    if (stride)
        add_dim(dims, stride, affine_axis(space_axis), group->extent);
}

static void add_image_dim(TileDims *dims, const WindowAxis *axis, Positions of, int space_axis, int tap_axis,
                          const Affine *offset)
{
    if (of == OF_INPUTS)
        add_dim(dims, axis->x_stride, window_index(axis, space_axis, tap_axis), axis->inputs);
    else if (of == OF_TAPS && axis->tap >= 0)
        add_dim(dims, axis->w_stride, affine_axis(tap_axis), axis->taps);
    else if (of == OF_OUTPUTS && offset->coef[axis->output])
        add_dim(dims, offset->coef[axis->output], affine_axis(space_axis), axis->outputs);
}

/* The tile's elements are all of the tensor, in the order of its dimensions. */
static bool is_picture(const TileDims *dims, const Tensor *tensor, int64_t origin)
{
    int64_t stride = 1;
    for (int d = dims->count - 1; d >= 0; d--) {
        if (dims->stride[d] != stride)
            return false;
        stride = fitting_mul(stride, dims->dim[d].size);
    }
    return !dims->apart && origin == 0 && stride == tensor_elements(tensor);
}

DataTile direct_tile(const Fusion *fusion, const Depthwise *shape, const Access *access, Positions of)
{
    DataTile tile = data_tile_of(access->tensor);
    Affine offset = access_offset(access);
    int64_t origin = of == OF_INPUTS ? shape->x_origin : of == OF_TAPS ? shape->w_origin : offset.constant;
    TileDims dims = {.count = 0};
    add_group(&dims, fusion, &shape->channel, CHANNEL, &offset);
    add_group(&dims, fusion, &shape->multiplier, MULTIPLIER, &offset);
    add_group(&dims, fusion, &shape->batch, BATCH, &offset);
    add_group(&dims, fusion, &shape->summed, SUMMED, &offset);
    if (shape->image_count > 1)
        add_image_dim(&dims, &shape->image[0], of, DOWN, DOWN_TAP, &offset);
    add_image_dim(&dims, &shape->image[shape->image_count - 1], of, ALONG, ALONG_TAP, &offset);
    for (tile.rank = 0; tile.rank < dims.count; tile.rank++)
        tile.dims[tile.rank] = dims.dim[tile.rank];
    tile.apart = !is_picture(&dims, access->tensor, origin);
    return tile;
}

/* Windows meet every input of the axis, from the first to the last. */
static bool meets_all(const WindowAxis *slide)
{
    int64_t last = (slide->outputs - 1) * slide->stride + (slide->taps - 1) * slide->dilation - slide->pad;
    bool no_gaps = (slide->dilation == 1 && slide->stride <= slide->taps) ||
                   (slide->stride == 1 && slide->dilation <= slide->outputs);
    return slide->pad >= 0 && last >= slide->inputs - 1 && no_gaps;
}

bool direct_reads_all(const Depthwise *shape)
{
    const WindowAxis *along = slide_along(shape), *down = slide_down(shape);
    return meets_all(along) && meets_all(down);
}

void direct_add_axes(TileSpace *space, const Depthwise *shape)
{
    const WindowAxis *along = slide_along(shape), *down = slide_down(shape);
    space_add_axis(space, "channel", shape->channel.extent, false);
    space_add_axis(space, "multiplier", shape->multiplier.extent, false);
    space_add_axis(space, "batch", shape->batch.extent, false);
    space_add_axis(space, "down", down->outputs, false);
    space_add_axis(space, "along", along->outputs, false);
    space_add_axis(space, "tap down", down->taps, true);
    space_add_axis(space, "tap along", along->taps, true);
}

void direct_add_factor_tiles(TileSpace *space, const Fusion *fusion, const Depthwise *shape)
{
    const Expr *factors[] = {shape->x, shape->w};
    for (int i = 0; i < 2; i++) {
        DataTile *tile = &space->tiles[space->tile_count++];
        *tile = direct_tile(fusion, shape, factor_access(factors[i]), i ? OF_TAPS : OF_INPUTS);
        tile->apart |= !direct_reads_all(shape);
    }
}

void direct_add_outer_tiles(TileSpace *space, const Fusion *fusion, const Depthwise *shape)
{
    FusedAccess found[MAX_ACCESSES];
    int count = fusion_accesses(fusion, found, MAX_ACCESSES);
    for (int i = 0; i < count && space->tile_count < MAX_DATA_TILES - fusion->output_count; i++)
        if (fusion->ops[found[i].op].reduce == REDUCE_NONE)
            space->tiles[space->tile_count++] = direct_tile(fusion, shape, found[i].access, OF_OUTPUTS);
    for (int i = 0; i < fusion->op_count && space->tile_count < MAX_DATA_TILES; i++)
        if (fusion->ops[i].stored) {
            DataTile *tile = &space->tiles[space->tile_count++];
            *tile = direct_tile(fusion, shape, &fusion->ops[i].store, OF_OUTPUTS);
            tile->output = true;
        }
}

/* Do all places from which pieces are copied lie at multiples of `piece`, with their neighbours along `inner`
   behind them? */
bool direct_reads_pieces(const Fusion *fusion, const Depthwise *shape, int inner, int64_t piece)
{
    Affine form = depthwise_form(&shape->x_offset, shape->x_origin, &shape->batch, &shape->channel);
    int64_t all = depthwise_alignment(&form, inner);
    for (int i = 0; i < shape->image_count; i++)
        all |= shape->image[i].output == inner ? 0 : shape->image[i].x_stride;
    int64_t extent = inner == shape->image[shape->image_count - 1].output
                         ? shape->image[shape->image_count - 1].inputs
                         : fusion->axes[inner].extent;
    return all % piece == 0 && extent % piece == 0;
}
