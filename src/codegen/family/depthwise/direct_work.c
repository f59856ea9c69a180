// What a block of the direct kernel does for the items of its schedule, in numbers.
#include "base/checked.h"
#include "codegen/family/depthwise/direct.h"

enum { WORD_BYTES = 4 };

typedef struct DirectWork {
    const CountedItem *at;
    const Windows *windows;
    DirectWay way;
    DirectLayout layout;
    int64_t x_bytes, value_bytes;   // of an element of the image; of a tap, a sum
    bool real;
} DirectWork;

static DirectWork direct_work_of(const Windows *windows, const CountedItem *at)
{
    return (DirectWork){
        .at = at,
        .windows = windows,
        .way = direct_way(at->kind),
        .layout = direct_layout(at->kind, at->shared),
        .x_bytes = at->kind->space->tiles[0].element_bits / 8,
        .value_bytes = dtype_info[windows->all.type].bits / 8,
        .real = dtype_info[windows->all.type].is_real,
    };
}

/* Columns of the chunk in which a window begins, before it: lead() of the template. */
static int64_t lead_of(const DirectWork *direct, int64_t offset)
{
    int64_t align = direct->way.channels_last ? CHUNK : larger(direct->way.piece, CHUNK);
    return (offset % align + align) % align;
}

// ---- load ----

/* Rows of the images under all windows that exist, and all columns of these. */
static void stage_images(const DirectWork *direct, ItemWork *work)
{
    const WindowAxis *down = slide_down(&direct->windows->all);
    const int64_t *first = direct->at->first, *count = direct->at->count;
    int64_t row = first[DOWN] * down->stride - down->pad;
    int64_t end = row + (count[DOWN] - 1) * down->stride + (down->taps - 1) * down->dilation + 1;
    int64_t rows = smaller(end, down->inputs) - larger(row, 0);
    work->shared_written +=
        count[BATCH] * count[CHANNEL] * larger(rows, 0) * direct->layout.columns * direct->x_bytes;
}

/* Whole rows of chunks; each tap is compared with itself: is it a number? */
static void stage_filter(const DirectWork *direct, int w, ItemWork *work)
{
    int64_t taps = direct->at->shared->size[CHANNEL] * direct_filter(&direct->windows->shape[w]);
    work->shared_written += taps * direct->value_bytes;
    work->additions += direct->real ? taps : 0;
}

/* Every warp leaves a mark, and all threads read them. */
static void exchange_marks(const DirectWork *direct, ItemWork *work)
{
    int64_t warps = direct->at->threads / 32;
    work->shared_written = warps * WORD_BYTES;
    work->shared_read = direct->at->threads * warps * WORD_BYTES;
}

// ---- compute ----

/* What a row of the filter makes of a thread's line. */
typedef struct LineWork {
    int64_t products, chunks;   // chunks of inputs inside the image
} LineWork;

static LineWork line_work(const DirectWork *direct, const WindowAxis *along, int64_t output)
{
    int64_t width = direct->at->inner->size[ALONG], lead = lead_of(direct, -along->pad);
    int64_t column = -along->pad - lead + output * along->stride;
    int64_t reach = lead + (width - 1) * along->stride + (along->taps - 1) * along->dilation + 1;
    LineWork work = {0};
    for (int64_t c = 0; c < round_up(reach, CHUNK); c += CHUNK) {
        if (column + c < 0 || column + c >= along->inputs)
            continue;
        work.chunks++;
        for (int64_t e = c; e < c + CHUNK; e++)
            for (int64_t j = 0; j < width; j++) {
                int64_t past = e - lead - j * along->stride;
                work.products +=
                    past >= 0 && past % along->dilation == 0 && past / along->dilation < along->taps;
            }
    }
    return work;
}

/* Rows of the filter that meet the image, of all lines of outputs. */
static int64_t rows_inside(const DirectWork *direct, const WindowAxis *down)
{
    int64_t inside = 0;
    for (int64_t i = 0; i < direct->at->count[DOWN]; i++)
        for (int64_t k = 0; k < down->taps; k++) {
            int64_t row = (direct->at->first[DOWN] + i) * down->stride - down->pad + k * down->dilation;
            inside += row >= 0 && row < down->inputs;
        }
    return inside;
}

/* A thread goes through its line for each of them. `reads`: of shared memory; else its sums. */
static void add_window(const DirectWork *direct, int w, bool reads, ItemWork *work)
{
    const Depthwise *shape = &direct->windows->shape[w];
    const WindowAxis *along = slide_along(shape), *down = slide_down(shape);
    const CountedItem *at = direct->at;
    int64_t lines = at->count[BATCH] * at->count[CHANNEL] * rows_inside(direct, down), products = 0,
            bytes = 0;
    for (int64_t part = 0; part < at->shared->size[ALONG]; part += at->inner->size[ALONG]) {
        LineWork line = line_work(direct, along, at->first[ALONG] + part);
        products += line.products;
        bytes += line.chunks * CHUNK * direct->x_bytes + direct_tap_pitch(shape) * direct->value_bytes;
    }
    if (reads)
        work->shared_read += lines * bytes * at->times / down->taps;
    else if (direct->real)
        work->additions = work->multiplications = lines * products * at->times / down->taps;
}

// ---- items ----

static bool load(const DirectWork *direct, const Move *move, ItemWork *work)
{
    bool stages = move->to == PLACE_SHARED;
    if (!stages && move->from != PLACE_SHARED)
        return false;
    if (stages && move->tiles & 1)
        stage_images(direct, work);
    for (int w = 0; w < direct->windows->count; w++)
        if (move->tiles >> (w + 1) & 1 && stages)
            stage_filter(direct, w, work);
        else if (move->tiles >> (w + 1) & 1)
            add_window(direct, w, true, work);
    return true;
}

bool direct_work(const void *view, const CountedItem *at, ItemWork *work)
{
    const Windows *windows = ((const DepthwiseView *)view)->windows;
    DirectWork direct = direct_work_of(windows, at);
    switch ((ItemKind)at->item->kind) {
    case ITEM_LOAD: return load(&direct, &at->item->move, work);
    case ITEM_REDUCE:
        for (int w = 0; w < windows->count; w++)
            if (at->item->arithmetic.ops >> windows->op[w] & 1)
                add_window(&direct, w, false, work);
        return true;
    case ITEM_EXCHANGE:
        if (at->item->exchange.combine == COMBINE_LANES)
            exchange_marks(&direct, work);
        return at->item->exchange.combine == COMBINE_LANES;
    default: return false;
    }
}
