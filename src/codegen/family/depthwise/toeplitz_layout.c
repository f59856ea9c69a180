// Where a block of the Toeplitz kernel keeps its input, its filter and its sums, and how much it does with
// them.
#include "base/checked.h"
#include "codegen/family/depthwise/toeplitz.h"

enum { A_ROWS = 16, BANK_PIECES = 8, BANKS = 32, SLAB_ROWS = 8, WORD_BYTES = 4, PIECE_WORDS = 4 };

/* The least number of words for which two copies lie in other banks: a warp reads eight words of each. */
static int64_t words_apart(int64_t words)
{
    int64_t rest = words % BANKS;
    return rest < 8 ? words + 8 - rest : rest > 24 ? words + BANKS + 8 - rest : words;
}

/* Fragments, as large as a piece, that a row of inputs and one of the filter are multiplied in. */
static int64_t fragments_of(const ToeplitzWindow *window, const ToeplitzLayout *layout)
{
    int64_t fragments = 0;
    for (int64_t column = 0; column < window->width; column += TOEPLITZ_BLOCK) {
        int64_t nearest = column / window->piece + layout->nearest, first = layout->halved ? -1 : 0;
        int64_t end = nearest + layout->distances - layout->halved;
        fragments += larger(smaller(end, layout->row) - larger(nearest, first), 0);
    }
    return fragments;
}

/* Of eight inputs a lane has two neighbours, half of the lanes those from the fourth on. So fragments may begin in
   the middle of pieces where taps meet inputs from `first` on of the nearest one, up to `last` of the farthest. It
   pays where they are fewer then: of 5 taps and 32 columns 8, not 10; of 31 taps too many of both have taps. */
static bool halves(const ToeplitzWindow *window, const ToeplitzLayout *layout, int64_t first, int64_t last)
{
    enum { LANES_INPUTS = 8 };
    if (window->piece != LANES_INPUTS || layout->distances < 2 || first < LANES_INPUTS / 2 ||
        last >= LANES_INPUTS / 2)
        return false;
    ToeplitzLayout halved = *layout;
    halved.halved = true;
    return fragments_of(window, &halved) < fragments_of(window, layout);
}

/* Pieces of inputs from the first one of a block of outputs on: of 31 taps, 15 of them outside of the first
   output, four before and five behind of four floats; two and two of eight elements of 16 bits. Of whole rows
   none is kept beside the image. */
static void find_distances(const ToeplitzWindow *window, ToeplitzLayout *layout)
{
    int64_t first = window->before[1] - window->left, taps = window->taps[1];
    int64_t nearest = floor_div(-first, window->piece),
            farthest = floor_div(taps - 1 + TOEPLITZ_BLOCK - 1 - first, window->piece);
    int64_t least = (TOEPLITZ_BLOCK - window->width) / window->piece, most = layout->row - 1;
    layout->nearest = nearest < least ? least : nearest;
    layout->distances = (farthest > most ? most : farthest) - layout->nearest + 1;
    layout->halved = nearest >= least && farthest <= most &&
                     halves(window, layout, -first - nearest * window->piece,
                           taps - 1 + TOEPLITZ_BLOCK - 1 - first - farthest * window->piece);
}

/* Of all rows, and one of zeros behind. */
static int64_t tap_bytes(const ToeplitzWindow *window, const ToeplitzLayout *layout)
{
    return (window->taps[0] + 1) * layout->tap_copies * layout->tap_words * WORD_BYTES;
}

ToeplitzLayout toeplitz_layout(const ToeplitzWindow *window, const RTile *block, const RTile *warp)
{
    ToeplitzLayout layout = {.groups = A_ROWS / warp->size[TOEPLITZ_IMAGE]};
    layout.each = warp->size[TOEPLITZ_ROW] / layout.groups;
    int64_t reach = window->width + window->taps[1] - 1 - window->before[1];
    if (window->whole_rows && reach > window->inputs[1])
        reach = window->inputs[1];
    int64_t rows = block->size[TOEPLITZ_ROW] + window->taps[0] - 1;
    layout.row = ceil_div(window->left + reach, window->piece);
    layout.rows = rows < window->inputs[0] ? rows : window->inputs[0];
    int64_t group = layout.each * layout.row;
    layout.group_pitch = layout.groups == 1 ? group : round_up_to_rest(group, BANK_PIECES, 1);
    layout.image_pitch =
        round_up_to_rest(ceil_div(layout.rows, layout.each) * layout.group_pitch, BANK_PIECES, layout.groups);
    find_distances(window, &layout);
    layout.tap_copies = window->piece / PIECE_WORDS;
    int64_t words = PIECE_WORDS * layout.distances + TOEPLITZ_BLOCK / layout.tap_copies;
    layout.tap_words = layout.tap_copies > 1 ? words_apart(words) : words;

    int64_t images = block->size[TOEPLITZ_IMAGE], width = window->width;
    int64_t tiles =
        images / warp->size[TOEPLITZ_IMAGE] * (block->size[TOEPLITZ_ROW] / warp->size[TOEPLITZ_ROW]);
    layout.warps = ceil_div(tiles, TOEPLITZ_TURNS);
    layout.input_bytes = (images * layout.image_pitch + layout.row) * VECTOR_BYTES;   // a row of zeros behind
    layout.slab_bytes = layout.warps * SLAB_ROWS * (width + TOEPLITZ_BLOCK) * 4;
    return layout;
}

// ---- how much is multiplied ----

/* A warp whose first output row this is walks down the input from the first step that meets the image to the
   last. */
typedef struct Steps {
    int64_t first, last;
} Steps;

static Steps steps_of(const ToeplitzWindow *window, const ToeplitzLayout *layout, int64_t row)
{
    int64_t above = row - window->before[0];
    return (Steps){.first = larger(0, -(above + (layout->groups - 1) * layout->each)),
                   .last = smaller(layout->each + window->taps[0] - 2, window->inputs[0] - 1 - above)};
}

bool toeplitz_is_short(const ToeplitzWindow *window, const ToeplitzLayout *layout)
{
    return layout->each + window->taps[0] - 1 <= 16;
}

/* Rows of the filter that the warp multiplies rows of the input by, in all its steps. */
static int64_t products_of(const ToeplitzWindow *window, const ToeplitzLayout *layout, int64_t row)
{
    Steps steps = steps_of(window, layout, row);
    int64_t products = 0;
    for (int64_t j = 0; j < layout->each; j++) {
        int64_t first = larger(steps.first, j), last = smaller(steps.last, j + window->taps[0] - 1);
        products += toeplitz_is_short(window, layout) ? larger(last - first + 1, 0)
                                             : larger(steps.last - steps.first + 1, 0);
    }
    return products;
}

/* Products of one output that the instructions make of a row of the filter. */
static double products_along(const ToeplitzWindow *window, const ToeplitzLayout *layout)
{
    int64_t blocks = window->width / TOEPLITZ_BLOCK;
    return (double)(window->piece * fragments_of(window, layout)) / (double)blocks;
}

/* Operations for each tap of an output: of all rows of the filter those that meet the image. */
double toeplitz_flops(const ToeplitzWindow *window, const RTile *block, const RTile *warp)
{
    ToeplitzLayout layout = toeplitz_layout(window, block, warp);
    int64_t products = 0, rows = block->size[TOEPLITZ_ROW], step = warp->size[TOEPLITZ_ROW];
    for (int64_t row = 0; row < rows; row += step)
        products += products_of(window, &layout, row);
    double inside = (double)products * (double)layout.groups / (double)(rows * window->taps[0]);
    return 2 * inside * products_along(window, &layout) / window->taps[1];
}

// ---- what shared memory has and sees ----

void toeplitz_lay_out(SharedLayout *layout, const KernelKind *kind, const RTile *block, const RTile *warp,
                      const DeviceSpec *device)
{
    (void)device;
    const ToeplitzWindow *window = kind->choice.value;
    ToeplitzLayout places = toeplitz_layout(window, block, warp);
    layout_add(layout, "INPUTS", places.input_bytes);
    layout_add(layout, "FILTER", tap_bytes(window, &places));
    layout_add(layout, "SLABS", places.slab_bytes);
    layout_add(layout, "MARKS", places.warps * WORD_BYTES);
}

/* What the warps of a block do for their tiles, those that have outputs. */
typedef struct TileWalk {
    int64_t steps, taps;   // rows of the input that are loaded, and of the filter
    int64_t products;      // of both
    int64_t warps;         // that make any
} TileWalk;

/* In each turn warps take tiles the other way round. */
static uint64_t warp_of(const ToeplitzLayout *layout, int64_t tile)
{
    int64_t turn = tile / layout->warps, place = tile % layout->warps;
    return UINT64_C(1) << (turn % 2 ? layout->warps - 1 - place : place);
}

static TileWalk walk_tiles(const KernelKind *kind, const ToeplitzWindow *window, const RTile *block,
                           const RTile *warp, const int64_t *first)
{
    ToeplitzLayout layout = toeplitz_layout(window, block, warp);
    TileWalk walk = {0};
    uint64_t busy = 0;
    int64_t tile = 0;
    for (int64_t image = 0; image < block->size[TOEPLITZ_IMAGE]; image += warp->size[TOEPLITZ_IMAGE])
        for (int64_t row = 0; row < block->size[TOEPLITZ_ROW]; row += warp->size[TOEPLITZ_ROW], tile++) {
            int64_t at = first[TOEPLITZ_ROW] + row;
            if (at >= kind->space->axes[TOEPLITZ_ROW].extent ||
                first[TOEPLITZ_IMAGE] + image >= kind->space->axes[TOEPLITZ_IMAGE].extent)
                continue;
            Steps steps = steps_of(window, &layout, at);
            int64_t taken = round_up(steps.last - steps.first + 1, layout.each);
            bool is_short = toeplitz_is_short(window, &layout), any = steps.first <= steps.last;
            walk.steps += is_short ? layout.each + window->taps[0] - 1 : any ? taken + 1 : 0;
            walk.taps += is_short ? window->taps[0] : any ? taken + layout.each - 1 : 0;
            walk.products += products_of(window, &layout, at);
            busy |= products_of(window, &layout, at) ? warp_of(&layout, tile) : 0;
        }
    walk.warps = __builtin_popcountll(busy);
    return walk;
}

/* All is written, zeros where there is nothing; a fragment of the input is read in each step and one ahead,
   and each row of the filter as it comes into the window; each thread reads the marks of all warps. */
int64_t toeplitz_shared_moved(const KernelKind *kind, int tile, bool written, const RTile *block,
                              const RTile *warp, const int64_t *first)
{
    enum { FRAGMENT_BYTES = 512, LANES_BYTES = WORD_BYTES * 32 };
    const ToeplitzWindow *window = kind->choice.value;
    ToeplitzLayout layout = toeplitz_layout(window, block, warp);
    int64_t images = block->size[TOEPLITZ_IMAGE];
    if (written)
        return tile ? tap_bytes(window, &layout) + layout.warps * WORD_BYTES
                    : (images * layout.rows + 1) * layout.row * VECTOR_BYTES;
    TileWalk walk = walk_tiles(kind, window, block, warp, first);
    int64_t marks = layout.warps * layout.warps * LANES_BYTES;
    return tile ? walk.taps * (layout.distances - layout.halved) * LANES_BYTES + marks
                : walk.steps * ceil_div(layout.row, 2) * FRAGMENT_BYTES;
}

// ---- what a block computes ----

/* Of each vector one sum times 0 tells whether it is a number. */
static int64_t checked_sums(const CountedItem *at, const Toeplitz *toeplitz)
{
    int64_t outputs = 1;
    for (int a = TOEPLITZ_CHANNEL; a <= TOEPLITZ_COLUMN; a++)
        outputs *= at->count[a];
    return outputs / toeplitz_vector(toeplitz, at->fusion);
}

bool toeplitz_work(const void *view, const CountedItem *at, ItemWork *work)
{
    const Toeplitz *toeplitz = ((const DepthwiseView *)view)->toeplitz;
    const ToeplitzWindow *window = at->kind->choice.value;
    ToeplitzLayout layout = toeplitz_layout(window, at->shared, at->inner);
    TileWalk walk = walk_tiles(at->kind, window, at->shared, at->inner, at->first);
    switch ((ItemKind)at->item->kind) {
    case ITEM_EXCHANGE:
        return at->item->exchange.combine == COMBINE_LANES;   // a ballot: no sums are added up
    case ITEM_STORE: work->multiplications = checked_sums(at, toeplitz); return true;
    case ITEM_PRODUCT:
        work->tensor_products =
            walk.products * fragments_of(window, &layout) * A_ROWS * TOEPLITZ_BLOCK * window->piece;
        work->multiplying_warps = walk.warps;
        return true;
    default: return false;
    }
}
