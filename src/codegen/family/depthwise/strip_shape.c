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

// ---- what a block computes ----

/* How a thread goes down its strip: KNOWN_ENDS, WHOLE and WHOLE_END of the template. */
typedef struct StripWalk {
    int64_t steps, whole, whole_end;
    bool known_ends;
} StripWalk;

static StripWalk walk_of(const Depthwise *shape, const StripWay *way, const RTile *each)
{
    const WindowAxis *down = slide_down(shape);
    int64_t last = (down->taps - 1) * down->dilation, height = each->size[DOWN];
    int64_t taps = down->taps * slide_along(shape)->taps, cycle = (last / down->stride + 1) * down->stride;
    int64_t round = round_up(strip_ahead(shape, each->size[CHANNEL], each->size[ALONG]), cycle);
    StripWalk walk = {.steps = (height - 1) * down->stride + last + 1};
    walk.known_ends =
        taps >= STRIP_MANY_TAPS &&
        (way->channels_last || strip_piece(way, each->size[ALONG], slide_along(shape)->stride) > 1);
    int64_t within = walk.known_ends ? (height - 1) * down->stride + 1 : walk.steps;
    walk.whole = walk.known_ends ? last : 0;
    walk.whole_end = within > walk.whole ? walk.whole + (within - walk.whole) / round * round : walk.whole;
    return walk;
}

/* Rows of the filter that lead from a step's row of the input to a row of outputs. */
static int64_t rows_met(const WindowAxis *down, const StripWalk *walk, int64_t height, int64_t step)
{
    int64_t met = 0;
    for (int64_t k = 0; k < down->taps; k++) {
        int64_t row = step - k * down->dilation;
        bool outside = walk->known_ends && (row < 0 || row / down->stride >= height);
        met += row % down->stride == 0 && !outside;
    }
    return met;
}

/* Of a thread: known to be rows of zeros, steps before and behind add the same to all outputs. */
static void add_strip(const Depthwise *shape, const StripWay *way, const RTile *each, ItemWork *work)
{
    const WindowAxis *down = slide_down(shape), *along = slide_along(shape);
    StripWalk walk = walk_of(shape, way, each);
    int64_t height = each->size[DOWN], lanes = each->size[CHANNEL], outputs = each->size[ALONG] * lanes;
    for (int64_t step = 0; step < walk.steps; step++) {
        int64_t met = rows_met(down, &walk, height, step), row = step - down->pad;
        bool at_end = step < walk.whole || step >= walk.whole_end, inside = row >= 0 && row < down->inputs;
        bool zeros = at_end && walk.known_ends && height >= down->outputs && !inside;
        work->multiplications += met * along->taps * (zeros ? lanes : outputs);
        work->additions += met * (zeros ? along->taps * lanes + outputs : along->taps * outputs);
    }
}

bool strip_work(const void *view, const CountedItem *at, ItemWork *work)
{
    const Depthwise *shape = ((const DepthwiseView *)view)->sum;
    const StripWay *way = at->kind->choice.value;
    if (at->item->kind != ITEM_REDUCE)
        return false;
    int64_t strips = at->times * at->count[BATCH];
    for (int a = CHANNEL; a <= ALONG; a++)
        strips *= a == BATCH || a == MULTIPLIER ? 1 : ceil_div(at->count[a], at->inner->size[a]);
    if (dtype_info[shape->type].is_real)
        add_strip(shape, way, at->inner, work);
    work->multiplications *= strips;
    work->additions *= strips;
    return true;
}
