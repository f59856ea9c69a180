// Which depthwise convolutions tensor cores make as Toeplitz products.
#include "base/checked.h"
#include "codegen/family/depthwise/toeplitz.h"

enum { MAX_TAPS = 1 << 14 };   // of a filter's side, and of its padding: numbers of the window

static bool fits_window(const WindowAxis *axis)
{
    int64_t before = axis->pad < 0 ? -axis->pad : axis->pad;
    return axis->taps < MAX_TAPS && before < MAX_TAPS && axis->inputs < INT32_MAX / 2 &&
           axis->outputs < INT32_MAX / 2;
}

bool toeplitz_find(const Depthwise *shape, const Atom *atom, Toeplitz *toeplitz)
{
    if (shape->image_count > 2 || shape->summed.extent > 1 || shape->w->kind != EXPR_ACCESS)
        return false;
    *toeplitz = (Toeplitz){.shape = *shape, .atom = atom};
    toeplitz->column = shape->image[shape->image_count - 1];
    toeplitz->row = shape->image_count == 2 ? shape->image[0] : window_point;
    toeplitz->channels = fitting_mul(shape->channel.extent, shape->multiplier.extent);
    toeplitz->images = shape->batch.extent;
    toeplitz->piece = 8 * VECTOR_BYTES / dtype_info[factor_access(shape->x)->tensor->dtype].bits;
    return atom->k == 2 * toeplitz->piece && window_is_dense(&toeplitz->row) &&
           window_is_dense(&toeplitz->column) && toeplitz->column.x_stride == 1 &&
           fits_window(&toeplitz->row) && fits_window(&toeplitz->column);
}

bool toeplitz_reads_pieces(const Toeplitz *toeplitz)
{
    const Depthwise *shape = &toeplitz->shape;
    const WindowAxis *row = &toeplitz->row, *column = &toeplitz->column;
    int64_t piece = toeplitz->piece;
    bool aligned = shape->x_origin % piece == 0 && row->x_stride % piece == 0 && column->inputs % piece == 0;
    for (int a = 0; a < MAX_AXES; a++)
        if (a != row->output && a != row->tap && a != column->output && a != column->tap)
            aligned &= shape->x_offset.coef[a] % piece == 0;
    return aligned;
}

int toeplitz_vector(const Toeplitz *toeplitz, const Fusion *fusion)
{
    enum { MAX_VECTOR = 8 };
    return depthwise_stores_together(fusion, toeplitz->column.output, MAX_VECTOR);
}
