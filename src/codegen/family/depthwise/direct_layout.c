// What follows from the tile of a direct kernel: where images, sums and filters lie in shared memory.
#include "base/checked.h"
#include "codegen/family/depthwise/direct.h"

enum {
    ALIGNMENT = 16,           // of what is copied
    TOGETHER = 8,             // lanes whose accesses of 16 bytes meet in the banks
    WARP_WORDS = 1024 / 32,   // of a block, on every device so far
};

const WindowAxis *slide_along(const Depthwise *shape) { return &shape->image[shape->image_count - 1]; }

const WindowAxis *slide_down(const Depthwise *shape)
{
    return shape->image_count > 1 ? &shape->image[0] : &window_point;
}

DirectWay direct_way(const KernelKind *kind) { return *(const DirectWay *)kind->choice.value; }

/* So many units, an odd number: neighbours that far apart lie in different banks. */
static int64_t odd_units(int64_t elements, int64_t unit) { return (ceil_div(elements, unit) | 1) * unit; }

/* The tile's dimension that the axis moves; one of its size where there is none. */
static Dim dim_along(const DataTile *tile, int axis)
{
    for (int d = 0; d < tile->rank; d++)
        if (tile->dims[d].index.coef[axis])
            return tile->dims[d];
    return (Dim){.size = 1};
}

static int64_t reach_of(const KernelKind *kind, const Dim *dim, const RTile *block)
{
    return affine_extent(&dim->index, block->size, kind->space->axis_count);
}

static void place_images(DirectLayout *layout, const DirectWay *way, const RTile *block)
{
    int64_t images = block->size[BATCH] * block->size[CHANNEL], channels = block->size[CHANNEL];
    int64_t unit = larger(way->piece, CHUNK);
    if (way->channels_last) {
        bool crosses_lines = images < 32;
        layout->column_pitch = channels;
        layout->row_pitch =
            crosses_lines ? odd_units(layout->columns * channels, channels) : layout->columns * channels;
        layout->image_pitch = layout->rows * layout->row_pitch;
        return;
    }
    layout->column_pitch = 1;
    layout->row_pitch =
        images < TOGETHER ? odd_units(layout->columns, unit) : round_up(layout->columns, unit);
    layout->image_pitch = odd_units(layout->rows * layout->row_pitch, unit);
    int64_t lines = TOGETHER / images;   // of an image, beside the next one's: 9 units, 2 * 9 of 4 images
    while (lines > 1 && (layout->image_pitch - lines * layout->row_pitch) / unit % TOGETHER)
        layout->image_pitch += unit;
}

static int64_t place_sums(DirectLayout *layout, const DirectWay *way, const RTile *block)
{
    int64_t line = block->size[ALONG] | 1, channels = block->size[CHANNEL];
    layout->sum_row_pitch = way->channels_last ? line * channels : line;
    layout->sum_image_pitch = block->size[DOWN] * layout->sum_row_pitch;
    if (!way->channels_last)
        layout->sum_image_pitch |= 1;
    return block->size[BATCH] * (way->channels_last ? 1 : channels) * layout->sum_image_pitch;
}

int64_t direct_tap_pitch(const Depthwise *shape) { return round_up(slide_along(shape)->taps, CHUNK); }

int64_t direct_filter(const Depthwise *shape)
{
    return size_product(slide_down(shape)->taps, direct_tap_pitch(shape));
}

DirectLayout direct_layout(const KernelKind *kind, const RTile *block)
{
    DirectWay way = direct_way(kind);
    const DataTile *x = &kind->space->tiles[0];
    Dim down = dim_along(x, DOWN), along = dim_along(x, ALONG);
    int64_t align = way.channels_last ? CHUNK : larger(way.piece, CHUNK),
            value_bytes = kind->registers.accumulator_bits / 8;
    int64_t lead = (along.index.constant % align + align) % align;
    DirectLayout layout = {
        .rows = smaller(reach_of(kind, &down, block), down.size),
        .columns =
            smaller(round_up(lead + reach_of(kind, &along, block), align), round_up(along.size, align)),
    };
    place_images(&layout, &way, block);
    int64_t images = block->size[BATCH] * (way.channels_last ? 1 : block->size[CHANNEL]);
    int64_t image_bytes = size_product(images * x->element_bits / 8, layout.image_pitch);
    int64_t sum_bytes = size_product(value_bytes, place_sums(&layout, &way, block));
    int64_t taps = size_product(block->size[CHANNEL], way.filter);
    layout.sum_bytes = round_up(smaller(sum_bytes, TOO_MANY_BITS), ALIGNMENT);
    layout.filters_at = round_up(smaller(larger(image_bytes, sum_bytes), TOO_MANY_BITS), ALIGNMENT);
    layout.sums_at = layout.filters_at + smaller(size_product(taps, value_bytes), TOO_MANY_BITS);
    layout.spoilt_at = layout.sums_at + (way.windows - 1) * layout.sum_bytes;
    layout.bytes = layout.spoilt_at + WARP_WORDS * 4;
    return layout;
}
