#include "rtile/rtile.h"

int64_t pixels_of(const PixelWalk *walk, int64_t outputs)
{
    int64_t pixels = 1;
    for (int i = 0; i < walk->count; i++) {
        outputs /= walk->axis[i].outputs;
        pixels = size_product(pixels, walk->axis[i].inputs);
    }
    return size_product(pixels, outputs);
}

int64_t pixel_at(const PixelWalk *walk, int64_t output, int64_t tap)
{
    int64_t pixel = 0, before = 1;   // stride of the axis, in pixels
    for (int i = walk->count - 1; i >= 0; i--) {
        const WindowAxis *axis = &walk->axis[i];
        int64_t at = output % axis->outputs * axis->stride - axis->pad +
                     tap / walk->tap_step[i] % axis->taps * axis->dilation;
        if (at < 0 || at >= axis->inputs)
            return -1;
        pixel += at * before;
        before *= axis->inputs;
        output /= axis->outputs;
    }
    return pixel + output * before;   // what is left is the image
}

/* Those under the taps of all outputs, of an axis: every one between the first and the last, unless strides
   pass over some. */
static int64_t inputs_seen(const WindowAxis *axis)
{
    int64_t reach = (axis->taps - 1) * axis->dilation, low = (reach < 0 ? reach : 0) - axis->pad;
    int64_t high = (reach > 0 ? reach : 0) - axis->pad + (axis->outputs - 1) * axis->stride;
    int64_t between = (high < axis->inputs ? high : axis->inputs - 1) - (low > 0 ? low : 0) + 1;
    int64_t most = size_product(axis->outputs, axis->taps);
    return most < between ? most : between;
}

double pixels_per_output(const PixelWalk *walk)
{
    double pixels = 1;
    for (int i = 0; i < walk->count; i++)
        pixels *= (double)inputs_seen(&walk->axis[i]) / (double)walk->axis[i].outputs;
    return pixels;
}

uint64_t phases_used(const TapPhases *phases, int64_t first, int64_t columns)
{
    uint64_t used = 0;
    for (int64_t p = first / phases->columns; p < phases->count && p * phases->columns < first + columns; p++)
        used |= phases->used[p];
    return used;
}

int tap_count(uint64_t taps)
{
    int count = 0;
    for (; taps; taps &= taps - 1)
        count++;
    return count;
}

int64_t phases_extent(const TapPhases *phases, int64_t granule, int64_t columns)
{
    int64_t taps = 0, tiles = ceil_div(phases->count * phases->columns, columns);
    for (int64_t tile = 0, alike; tile < tiles; tile += alike) {
        int64_t first = tile * columns, inside = phases->columns - first % phases->columns;   // the phase in which it begins
        alike = inside > columns ? inside / columns : 1;
        taps += alike * tap_count(phases_used(phases, first, columns));
    }
    int64_t extent = taps * round_up(phases->step, granule) / tiles;
    return extent ? extent : 1;
}
