// What a thread of a strip holds.
#include "base/checked.h"
#include "codegen/family/depthwise/strip.h"

enum {
    MOST_AHEAD = 6,          // rows
    MOST_AHEAD_WORDS = 36,   // of a thread
};

int64_t strip_piece(const StripWay *way, int64_t width, int64_t step)
{
    int64_t both = width * step | way->piece;
    return way->channels_last ? 1 : both & -both;   // the largest power of two that divides both
}

int64_t strip_row_words(const Depthwise *shape, int64_t lanes, int64_t width)
{
    int64_t reach = lanes * window_reach(&shape->image[shape->image_count - 1], width);
    return ceil_div(reach * dtype_info[factor_access(shape->x)->tensor->dtype].bits, 32);
}

int strip_ahead(const Depthwise *shape, int64_t lanes, int64_t width)
{
    const WindowAxis *down = slide_down(shape);
    bool leaves_room = window_open(down) <= STRIP_AHEAD &&
                       MOST_AHEAD * strip_row_words(shape, lanes, width) <= MOST_AHEAD_WORDS;
    return leaves_room ? MOST_AHEAD : STRIP_AHEAD;
}
