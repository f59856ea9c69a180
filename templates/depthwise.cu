// Depthwise convolution: every output is the sum of products of its own channel of the image and the filter
// of that channel.
//
//   y[b, c, m, i, j] = sum[k, l](x[b, c, i*DOWN_STEP + k*DOWN_DILATION + DOWN_OFFSET, …] * w[c, m, k, l])
//
// Several such sums, each with its own filter (a Window), may be combined by the epilogue.
//
// A block computes BD x BA outputs of TB x TC images. It copies the part of x under their windows, and the
// filters, to shared memory. A thread computes WIDTH adjacent outputs of a row. It iterates down the filter's
// rows, and along each row of inputs, CHUNK inputs at a time. The taps that an input uses for each output are
// known at compile time:
//
//   outputs         0 1 2 3 4 5 6 7             WIDTH = 8, 5 taps, OFFSET = -2
//   inputs    . .|. . . . . . . .|. .           columns are counted from a chunk's start
//             \_______/                         tap l of output j uses input j + l - 2
//
// Chunks and rows outside of the image are skipped: for 31 x 31 taps on 32 x 32 pixels nearly half of all.
// Blocks with an infinite or NaN tap skip nothing, since its product with zero is NaN. Lanes of a warp lie
// along images first, so that rows are skipped by whole warps. Sums are staged in shared memory, since a
// lane's outputs are adjacent, and stores need the lanes' to be.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const float *in0;   // x[64, 384, 32, 32]
    const float *in1;   // w[384, 31, 31]
    float *out0;        // y[64, 384, 32, 32]
};
#define PARAMETERS const float *__restrict__ in0, const float *__restrict__ in1, float *__restrict__ out0
#define TENSORS {in0, in1, out0}
constexpr Region PICTURES = {0, 33824};   // of shared memory: where it begins, bytes
constexpr Region FILTERS = {33824, 3968};
constexpr Region SUMS = {37792, 0};
constexpr Region SPOILT = {37792, 128};
constexpr int SHARED_BYTES = 37920;   // of a block
using X = float;
using A = float;   // of products and sums
constexpr Index BATCH = 64, CHANNELS = 384, MULTIPLIERS = 1;   // a multiplier: filters of a channel
constexpr int DOWN = 32, ALONG = 32;                           // outputs
constexpr int ROWS = 32, COLUMNS = 32;                         // inputs
constexpr int DOWN_STEP = 1, ALONG_STEP = 1;
constexpr Index ROW_STRIDE = 32, COLUMN_STRIDE = 1;            // of x
constexpr int WINDOWS = 1;   // filters over the same images
constexpr int DOWN_FIRST = -15, ALONG_FIRST = -15;   // of the first one: input of output 0
constexpr int DOWN_REACH = 31;                       // rows from there to the end of the last one
constexpr int TB = 8, TC = 1, BD = 32, BA = 32;   // rTile, block
constexpr int WIDTH = 32;                         // rTile, registers
constexpr int THREADS = 256;
constexpr bool CHANNELS_LAST = false;   // lanes and shared memory along channels
constexpr int PIECE = 4;                // elements of a copy; 1: one by one
constexpr bool PADDED = true;           // some window crosses the image's border
constexpr int STAGED_ROWS = 32, STAGED_COLUMNS = 32;   // of an image, at most
constexpr int COLUMN_PITCH = 1, ROW_PITCH = 32, IMAGE_PITCH = 1028;   // elements
constexpr int SUM_ROW_PITCH = 33, SUM_IMAGE_PITCH = 1057;

template <int> struct Window;
template <> struct Window<0> {   // w
    static constexpr int DOWN_TAPS = 31, ALONG_TAPS = 31;
    static constexpr int DOWN_DILATION = 1, ALONG_DILATION = 1;
    static constexpr int DOWN_OFFSET = -15, ALONG_OFFSET = -15;
    static constexpr int TAP_PITCH = 32;   // of a filter's row
    static constexpr int FILTERS_AT = 33824, SUMS_AT = 0;   // bytes
};
__device__ __forceinline__ const X *image(const Tensors &t, Index batch, Index channel)
{
    return t.in0 + (batch * 393216 + channel * 1024);
}
__device__ __forceinline__ A tap(Window<0>, const Tensors &t, Index channel, Index, Index k,
                                 Index l)
{
    return load(t.in1, channel * 961 + k * 31 + l);
}
__device__ __forceinline__ void finish(const Tensors &t, Index batch, Index channel, Index, Index down,
                                       Index along, const A (&totals)[WINDOWS])
{
    store(t.out0, batch * 393216 + channel * 1024 + down * 32 + along, totals[0]);
}
// </rollerc>

constexpr int CHUNK = 4;   // inputs at a time
constexpr int IMAGES = TB * TC, LINES = CHANNELS_LAST ? TB : IMAGES;   // images, and their lines in shared memory
constexpr int SEGMENTS = BA / WIDTH, WARPS = THREADS / WARP;
constexpr Index BATCH_BLOCKS = (BATCH + TB - 1) / TB;
constexpr int DOWN_BLOCKS = (DOWN + BD - 1) / BD, ALONG_BLOCKS = (ALONG + BA - 1) / BA;

constexpr int ALIGN = !CHANNELS_LAST && PIECE > CHUNK ? PIECE : CHUNK;

// Columns of the chunk in which a window begins, before the window.
constexpr __host__ __device__ int lead(int offset) { return (offset % ALIGN + ALIGN) % ALIGN; }
constexpr int FIRST_CHUNK = ALONG_FIRST - lead(ALONG_FIRST);

static_assert(IMAGES * BD * SEGMENTS <= THREADS && BA % WIDTH == 0, "every line has its thread");
static_assert(SEGMENTS == 1 || WIDTH * ALONG_STEP % CHUNK == 0, "lines are cut between chunks,");
static_assert(ALONG_BLOCKS == 1 || BA * ALONG_STEP % ALIGN == 0, "and between pieces");
static_assert(THREADS % WARP == 0, "warps are whole");
static_assert(STAGED_COLUMNS % ALIGN == 0 && (CHANNELS_LAST ? TC : COLUMNS) % PIECE == 0,
              "chunks and pieces are whole");

// The block's outputs, and its part of the images.
struct Place {
    Index batch, channel, multiplier;   // first ones
    int down, along;
    int first_row, end_row, first_column;
};

__device__ __forceinline__ Place block_place()
{
    const Index block = (Index)blockIdx.x, lines = block / ALONG_BLOCKS, images = lines / DOWN_BLOCKS;
    const int down = (int)(lines % DOWN_BLOCKS) * BD, along = (int)(block % ALONG_BLOCKS) * BA;
    const int row = down * DOWN_STEP + DOWN_FIRST, column = along * ALONG_STEP + FIRST_CHUNK;
    const int last = row + (op_min<int>(BD, DOWN - down) - 1) * DOWN_STEP + DOWN_REACH - 1;
    return {images % BATCH_BLOCKS * TB,
            images / BATCH_BLOCKS / MULTIPLIERS * TC,
            images / BATCH_BLOCKS % MULTIPLIERS,
            down,
            along,
            op_max<int>(row, 0),
            op_min<int>(last + 1, ROWS),
            op_max<int>(column, 0)};
}

// The image of a thread among those of a block; adjacent images are adjacent in shared memory.
struct Which {
    int batch, channel;
};
__device__ __forceinline__ Which which_image(int image)
{
    return CHANNELS_LAST ? Which{image / TC, image % TC} : Which{image % TB, image / TB};
}
__device__ __forceinline__ int at_image(Which which)
{
    return CHANNELS_LAST ? which.batch * IMAGE_PITCH + which.channel
                         : (which.channel * TB + which.batch) * IMAGE_PITCH;
}
__device__ __forceinline__ bool exists(const Place &place, Which which)
{
    return (BATCH % TB == 0 || place.batch + which.batch < BATCH) &&
           (CHANNELS % TC == 0 || place.channel + which.channel < CHANNELS);
}

// Copies PIECE adjacent elements of a row, or of the channels. Past the end of a row there are zeros.
__device__ __forceinline__ void copy_piece(const Tensors &t, const Place &place, X *images, Which which,
                                           int row, int column)
{
    const int p = place.first_row + row, q = place.first_column + column;
    if (p >= place.end_row || !exists(place, which))
        return;
    X *to = &images[at_image(which) + row * ROW_PITCH + column * COLUMN_PITCH];
    const X *from = image(t, place.batch + which.batch, place.channel + which.channel) + p * ROW_STRIDE +
                    q * COLUMN_STRIDE;
    if ((COLUMNS % ALIGN != 0 || ALONG_BLOCKS > 1 || FIRST_CHUNK > 0) && q >= COLUMNS)
        UNROLL for (int e = 0; e < PIECE; ++e)
            to[e] = X();
    else if (PIECE > 1)
        copy_async<PIECE>(to, from, 0);
    else
        *to = *from;
}

__device__ __forceinline__ void stage_images(const Tensors &t, const Place &place, X *images)
{
    constexpr int COPIES = STAGED_COLUMNS / (CHANNELS_LAST ? 1 : PIECE),
                  CHANNEL_COPIES = CHANNELS_LAST ? TC / PIECE : 1;
    for (int i = (int)threadIdx.x; i < LINES * STAGED_ROWS * COPIES * CHANNEL_COPIES; i += THREADS) {
        const int channel = i % CHANNEL_COPIES * PIECE,
                  column = i / CHANNEL_COPIES % COPIES * (CHANNELS_LAST ? 1 : PIECE);
        const int row = i / (CHANNEL_COPIES * COPIES) % STAGED_ROWS,
                  line = i / (CHANNEL_COPIES * COPIES * STAGED_ROWS);
        copy_piece(t, place, images, CHANNELS_LAST ? Which{line, channel} : which_image(line), row, column);
    }
    async_commit();
}

// Copies the filters in the order of the images: row by row, or with contiguous channels. Returns whether one
// of the thread's taps is infinite or NaN.
template <int W = 0>
__device__ __forceinline__ bool stage_filters(const Tensors &t, const Place &place)
{
    constexpr int TAPS = Window<W>::ALONG_TAPS, PITCH = Window<W>::TAP_PITCH;
    constexpr int SIZE = Window<W>::DOWN_TAPS * PITCH;   // of a filter
    static_assert(PITCH >= TAPS && PITCH % CHUNK == 0, "a filter's rows begin with a whole vector");
    SHARED_AT(Window<W>::FILTERS_AT, A, filters, [TC * SIZE]);
    static_assert(Window<W>::FILTERS_AT + (int)sizeof(filters) <= FILTERS.at + FILTERS.bytes, "filters have room");
    bool spoilt = false;
    for (int i = (int)threadIdx.x; i < TC * SIZE; i += THREADS) {
        const int channel = CHANNELS_LAST ? i % TC : i / SIZE;
        const int place_in_filter = CHANNELS_LAST ? i / TC : i % SIZE;
        const int k = place_in_filter / PITCH, l = place_in_filter % PITCH;
        const bool is_tap = l < TAPS && (CHANNELS % TC == 0 || place.channel + channel < CHANNELS);
        const A value = is_tap ? tap(Window<W>(), t, place.channel + channel, place.multiplier, k, l) : A();
        spoilt |= !(value - value == A());
        filters[i] = value;
    }
    if constexpr (W + 1 < WINDOWS)
        spoilt |= stage_filters<W + 1>(t, place);
    return spoilt;
}

// CHUNK adjacent elements of a row of the image or of a filter.
template <class T> __device__ __forceinline__ void read_chunk(const T *from, int pitch, A (&to)[CHUNK])
{
    if (CHANNELS_LAST)
        UNROLL for (int e = 0; e < CHUNK; ++e)
            to[e] = load(from, e * pitch);
    else
        load_vector<CHUNK>(from, 0, to);
}

// Accumulates row k of the filter and a row of the image whose chunks begin at `column`.
template <class Own>
__device__ __forceinline__ void add_row(const X *line, const A *filter, int column, A (&acc)[WIDTH])
{
    constexpr int LEAD = lead(Own::ALONG_OFFSET);
    constexpr int REACH = (WIDTH - 1) * ALONG_STEP + (Own::ALONG_TAPS - 1) * Own::ALONG_DILATION + 1;
    constexpr int CHUNKS = (LEAD + REACH + CHUNK - 1) / CHUNK;   // of inputs under a thread's windows
    A taps[Own::TAP_PITCH / CHUNK][CHUNK];
    UNROLL for (int l = 0; l < Own::TAP_PITCH / CHUNK; ++l)
        read_chunk(filter + l * CHUNK * (CHANNELS_LAST ? TC : 1), TC, taps[l]);
    UNROLL for (int c = 0; c < CHUNKS; ++c) {
        if (column + c * CHUNK < 0 || column + c * CHUNK >= COLUMNS)
            continue;
        A x[CHUNK];
        read_chunk(line + c * CHUNK * COLUMN_PITCH, COLUMN_PITCH, x);
        UNROLL for (int e = 0; e < CHUNK; ++e)
            UNROLL for (int j = 0; j < WIDTH; ++j) {
                const int past = c * CHUNK + e - LEAD - j * ALONG_STEP, l = past / Own::ALONG_DILATION;
                if (past >= 0 && past % Own::ALONG_DILATION == 0 && l < Own::ALONG_TAPS)
                    acc[j] += x[e] * taps[l / CHUNK][l % CHUNK];
            }
    }
}

// Computes the sums of a thread's outputs: `row` is the input row of the first tap.
template <class Own>
__device__ __forceinline__ void add_window(const Place &place, const X *image, const A *filter, int row,
                                           int column, A (&acc)[WIDTH])
{
    const X *line =
        image + (row - place.first_row) * ROW_PITCH + (column - place.first_column) * COLUMN_PITCH;
#pragma unroll 1
    for (int k = 0; k < Own::DOWN_TAPS; ++k) {
        if (inside(row + k * Own::DOWN_DILATION, ROWS))
            add_row<Own>(line, filter, column, acc);
        line += Own::DOWN_DILATION * ROW_PITCH;
        filter += Own::TAP_PITCH * (CHANNELS_LAST ? TC : 1);
    }
}

// As above, with the zeros outside of the image.
template <class Own>
__device__ __forceinline__ void add_everything(const Place &place, const X *image, const A *filter, int row,
                                               int column, A (&acc)[WIDTH])
{
#pragma unroll 1
    for (int i = 0; i < Own::DOWN_TAPS * Own::ALONG_TAPS; ++i) {
        const int k = i / Own::ALONG_TAPS, l = i % Own::ALONG_TAPS, p = row + k * Own::DOWN_DILATION;
        const A value = filter[(k * Own::TAP_PITCH + l) * (CHANNELS_LAST ? TC : 1)];
        UNROLL for (int j = 0; j < WIDTH; ++j) {
            const int q = column + lead(Own::ALONG_OFFSET) + j * ALONG_STEP + l * Own::ALONG_DILATION;
            const int at = (p - place.first_row) * ROW_PITCH + (q - place.first_column) * COLUMN_PITCH;
            acc[j] += (inside(p, ROWS) && inside(q, COLUMNS) ? load(image, at) : A()) * value;
        }
    }
}

// The position of a sum in shared memory.
__device__ __forceinline__ int at_sum(Which which, int down, int along)
{
    const int channel = CHANNELS_LAST ? which.channel : which.channel * TB * SUM_IMAGE_PITCH;
    return channel + which.batch * SUM_IMAGE_PITCH + down * SUM_ROW_PITCH + along * (CHANNELS_LAST ? TC : 1);
}

// A thread's sums.
struct Line {
    Which which;
    int down, along;   // in the block
    bool exists, has_outputs;
    bool spoilt;       // nothing is skipped
};

// The sums of one window after the other; those of the last one overwrite the images.
template <int W = 0>
__device__ __forceinline__ void make_sums(const Place &place, const Line &own)
{
    using Own = Window<W>;
    SHARED(PICTURES, X, images, [LINES * IMAGE_PITCH]);
    SHARED_AT(Own::FILTERS_AT, A, filters, [TC * Own::DOWN_TAPS * Own::TAP_PITCH]);
    SHARED_AT(Own::SUMS_AT, A, sums, [LINES * SUM_IMAGE_PITCH]);
    static_assert(Own::SUMS_AT + (int)sizeof(sums) <= (W + 1 < WINDOWS ? SUMS.at + SUMS.bytes : PICTURES.bytes), "sums have room");
    const int row = (place.down + own.down) * DOWN_STEP + Own::DOWN_OFFSET;
    const int column = Own::ALONG_OFFSET - lead(Own::ALONG_OFFSET) + (place.along + own.along) * ALONG_STEP;
    A acc[WIDTH] = {};
    if (own.has_outputs) {
        const X *image = images + at_image(own.which);
        const A *filter = filters + own.which.channel * (CHANNELS_LAST ? 1 : Own::DOWN_TAPS * Own::TAP_PITCH);
        if (own.spoilt)
            add_everything<Own>(place, image, filter, row, column, acc);
        else
            add_window<Own>(place, image, filter, row, column, acc);
    }
    if (W + 1 == WINDOWS)
        block_sync();   // all have read the images
    if (own.exists)
        UNROLL for (int j = 0; j < WIDTH; ++j)
            sums[at_sum(own.which, own.down, own.along + j)] = acc[j];
    if constexpr (W + 1 < WINDOWS)
        make_sums<W + 1>(place, own);
}

template <int W = 0> __device__ __forceinline__ void read_totals(int at, A (&totals)[WINDOWS])
{
    SHARED_AT(Window<W>::SUMS_AT, A, sums, [LINES * SUM_IMAGE_PITCH]);
    totals[W] = sums[at];
    if constexpr (W + 1 < WINDOWS)
        read_totals<W + 1>(at, totals);
}

// Writes outputs in the order of memory.
__device__ __forceinline__ void write_outputs(const Tensors &t, const Place &place)
{
    constexpr int CHANNEL_FIRST = CHANNELS_LAST ? TC : 1;
    for (int i = (int)threadIdx.x; i < LINES * BD * BA * CHANNEL_FIRST; i += THREADS) {
        const int along = i / CHANNEL_FIRST % BA, down = i / (CHANNEL_FIRST * BA) % BD,
                  line = i / (CHANNEL_FIRST * BA * BD);
        const Which which = CHANNELS_LAST ? Which{line, i % CHANNEL_FIRST} : which_image(line);
        const int i_down = place.down + down, i_along = place.along + along;
        if (!exists(place, which) || (DOWN % BD != 0 && i_down >= DOWN) ||
            (ALONG % BA != 0 && i_along >= ALONG))
            continue;
        A totals[WINDOWS];
        read_totals(at_sum(which, down, along), totals);
        finish(t, place.batch + which.batch, place.channel + which.channel, place.multiplier, i_down, i_along,
               totals);
    }
}

extern "C" __global__ void __launch_bounds__(BOUNDS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    SHARED(PICTURES, X, images, [LINES * IMAGE_PITCH]);
    SHARED(SPOILT, int, warp_is_spoilt, [WARPS]);
    const Place place = block_place();
    const int thread = (int)threadIdx.x;

    // ---- load ----
    stage_images(t, place, images);
    const bool thread_is_spoilt = stage_filters(t, place);
    if (PADDED) {
        const bool any = warp_ballot(thread_is_spoilt) != 0;
        if (lane_id() == 0)
            warp_is_spoilt[thread / WARP] = any;
    }
    async_wait<0>();
    block_sync();

    // ---- compute ----
    const Which which = which_image(thread % IMAGES);
    const int down = thread / IMAGES % BD, along = SEGMENTS == 1 ? 0 : thread / (IMAGES * BD) * WIDTH;
    const bool has_line = THREADS == IMAGES * BD * SEGMENTS || thread < IMAGES * BD * SEGMENTS;
    const bool has_outputs = has_line && exists(place, which) && (DOWN % BD == 0 || place.down + down < DOWN);
    bool spoilt = false;
    UNROLL for (int w = 0; w < (PADDED ? WARPS : 0); ++w)
        spoilt |= warp_is_spoilt[w] != 0;
    make_sums(place, Line{which, down, along, has_line, has_outputs, spoilt});

    // ---- store ----
    block_sync();
    write_outputs(t, place);
}
}   // namespace KERNEL
