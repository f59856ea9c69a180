// Filter gradient of a depthwise convolution: dw[c,k,l] = sum over n, i, j of d[n,c,i,j] *
// x[n,c,i*STRIDE_H+k*DILATION_H+TOP,j*STRIDE_W+l*DILATION_W+LEFT], 0 outside of x; and a pointwise epilogue.
//
// A block computes BK rows of taps of one channel. It iterates over the images in steps of BATCH: x and d of
// a step are in shared memory, and those of the next step are being copied. A thread accumulates TK x TL
// taps. It iterates down the rows of x. The TK rows of d that a row of x uses, one for each row of taps, stay
// in registers:
//
//   row of x   r      | x x x x x x x … |   TC + TL - 1 columns
//   uses d     r      | d d d d |   tap row k0     each pair of rows: TL x TC multiply-adds for 2 TC + TL - 1
//              r - 1  | d d d d |   tap row k0 + 1 elements, of which those of d are in registers already
//
// With a vertical stride or dilation rows of d do not stay in registers.
//
// Rows outside of x are skipped. Where d or a sum is infinite or NaN, the block recomputes its taps one by
// one. Adjacent threads have other columns of taps and of d, then other images and rows of the same taps. At
// the end the sums of threads that share taps are reduced in a fixed order.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const float *in0;   // x[64, 384, 32, 32]
    const float *in1;   // d[64, 384, 32, 32]
    float *out0;        // dw[384, 31, 31]
};
#define PARAMETERS const float *__restrict__ in0, const float *__restrict__ in1, float *__restrict__ out0
#define TENSORS {in0, in1, out0}
constexpr Region PICTURES_X = {0, 65536};   // of shared memory, in bytes
constexpr Region PICTURES_D = {65536, 32768};
constexpr Region SUMS = {0, 4096};
constexpr Region MARKS = {98304, 64};
constexpr int SHARED_BYTES = 98368;   // of a block
using Value = float;                                          // of products and sums
constexpr Index IMAGES = 64;                                  // that are summed over
constexpr int XH = 32, XW = 32, DH = 32, DW = 32;             // of x and d
constexpr int KH = 31, KW = 31;                               // taps
constexpr int TOP = -15, LEFT = -15;                          // row and column of x of the first tap, for element 0 of d
constexpr int STRIDE_H = 1, STRIDE_W = 1;                     // in x, from one element of d to the next,
constexpr int DILATION_H = 1, DILATION_W = 1;                 // from one tap to the next
constexpr int BK = 32;                                        // rows of taps of a block
constexpr int TK = 4, TL = 8;                                 // taps of a thread
constexpr int TC = 8;                                         // columns of d at a time
constexpr int SHARES = 4, ROW_SHARES = 1;                     // threads that share taps: split over images, rows
constexpr int BATCH = 4;                                      // images of a step
constexpr int THREADS = 512;
constexpr Index BLOCKS_K = 1, STEPS = 16;                     // blocks of a channel
constexpr int GROUPS_K = 8, GROUPS_L = 4, GROUPS_C = 4;       // threads down and along taps, along d
constexpr int SKIP = 1, LEAD = 0;                             // taps too many, or columns, before the first
constexpr int WINDOW = 16, MARGIN = 16;                       // columns of x of a thread; zeros before it
constexpr int PITCH_X = 64, PITCH_D = 32;                     // elements from row to row
constexpr int SHARE_ROWS = 32;                                // of d

struct SourceX {
    using Element = float;
    static constexpr bool PIECES = true;   // rows are whole pieces of 16 bytes
    static constexpr Index COLUMN_STRIDE = 1;
    static __device__ __forceinline__ const Element *row(const Tensors &t, Index channel, Index image,
                                                         int row)
    {
        return t.in0 + (channel * 1024 + image * 393216 + row * 32);
    }
};
struct SourceD {
    using Element = float;
    static constexpr bool PIECES = true;
    static constexpr Index COLUMN_STRIDE = 1;
    static __device__ __forceinline__ const Element *row(const Tensors &t, Index channel, Index image,
                                                         int row)
    {
        return t.in1 + (channel * 1024 + image * 393216 + row * 32);
    }
};

__device__ __forceinline__ void finish(const Tensors &t, Index channel, int k, int l, Value total)
{
    store(t.out0, channel * 961 + k * 31 + l, total);
}
// </rollerc>

// Windows begin at multiples of VECTOR columns, if need be before the first tap's: then SKIP more taps are
// computed than exist, or LEAD unused columns are loaded.
constexpr int VECTOR = 4;
constexpr bool ROWS_STAY = STRIDE_H * DILATION_H == 1;
constexpr int UNITS = GROUPS_L * GROUPS_C;
constexpr int PARTS = SHARES * ROW_SHARES * GROUPS_C;   // of each tap's sum
using X = typename SourceX::Element;
using D = typename SourceD::Element;
using PlaneX = Plane<SourceX, XH, XW, PITCH_X, MARGIN>;
using PlaneD = Plane<SourceD, DH, DW, PITCH_D, 0>;
constexpr int STEP_X = BATCH * PlaneX::ELEMENTS, STEP_D = BATCH * PlaneD::ELEMENTS;   // elements

static_assert(BK == GROUPS_K * TK && TL % VECTOR == 0 && TC % VECTOR == 0, "whole tiles of taps, whole vectors");
static_assert((LEFT - SKIP - LEAD) % VECTOR == 0 && (SKIP == 0 || DILATION_W == 1), "whole vectors of x");
static_assert(GROUPS_K * PARTS * GROUPS_L <= THREADS, "every part has its thread");

struct Taps {
    Value sum[TK][TL];
    Value held[TK][TC];   // rows of d: x in slot s uses for tap row t the one in slot (s - t) mod TK
    Value window[WINDOW / VECTOR][VECTOR];

    __device__ __forceinline__ void load_window(const X *x, int row)
    {
        UNROLL for (int v = 0; v < WINDOW / VECTOR; ++v)
            load_vector<VECTOR>(x, row * PITCH_X + v * VECTOR, window[v]);
    }

    // Accumulates the products of a row of d into tap row t.
    __device__ __forceinline__ void multiply(const Value (&d)[TC], int t)
    {
        UNROLL for (int l = 0; l < TL; ++l)
            UNROLL for (int j = 0; j < TC; ++j) {
                const int met = LEAD + j * STRIDE_W + l * DILATION_W;
                sum[t][l] = op_add(op_mul(d[j], window[met / VECTOR][met % VECTOR]), sum[t][l]);
            }
    }

    // One image, rows [begin, end) of d. `first` is the first row of taps; x and d point at this thread's
    // columns of row 0.
    __device__ __forceinline__ void add(const X *x, const D *d, int first, int begin, int end)
    {
        const int shift = first + TOP;   // row i of d uses row i + shift of x for tap row 0
        int r = op_max(begin + shift, 0);
        const int last = op_min(end + TK - 1 + shift, XH);
        UNROLL for (int t = 1; t < TK; ++t) {
            const int i = r - shift - t;
            if (i >= begin && i < end)
                load_vector<TC>(d, i * PITCH_D, held[TK - t]);
        }
#pragma unroll 1
        for (; r < last; r += TK)
            UNROLL for (int slot = 0; slot < TK; ++slot) {
                if (r + slot >= last)
                    break;
                const int i = r + slot - shift;
                load_window(x, r + slot);
                if (i < end)
                    load_vector<TC>(d, i * PITCH_D, held[slot]);
                UNROLL for (int t = 0; t < TK; ++t)
                    if (i - t >= begin && i - t < end)
                        multiply(held[(slot - t + TK) % TK], t);
            }
    }

    // As add(), with a stride or a dilation.
    __device__ __forceinline__ void add_apart(const X *x, const D *d, int first, int begin, int end)
    {
        const int shift = first * DILATION_H + TOP;   // row i of d uses row i * STRIDE_H + shift of x
        const int last = op_min(end * STRIDE_H + (TK - 1) * DILATION_H + shift, XH);
#pragma unroll 1
        for (int r = op_max(begin * STRIDE_H + shift, 0); r < last; ++r) {
            load_window(x, r);
            UNROLL for (int t = 0; t < TK; ++t) {
                const int past = r - shift - t * DILATION_H, i = past / STRIDE_H;
                if (past >= begin * STRIDE_H && past % STRIDE_H == 0 && i < end) {
                    load_vector<TC>(d, i * PITCH_D, held[t]);
                    multiply(held[t], t);
                }
            }
        }
    }
};

__device__ __forceinline__ int images_of(Index step)
{
    return (int)op_min<Index>(IMAGES - step * BATCH, BATCH);
}

__device__ __forceinline__ void copy_step(const Tensors &t, Index channel, Index step, X *x, D *d)
{
    PlaneX::copy<THREADS>(t, channel, step * BATCH, images_of(step), x);
    PlaneD::copy<THREADS>(t, channel, step * BATCH, images_of(step), d);
}

__device__ __forceinline__ Value exact_total(const Tensors &t, Index channel, int k, int l)
{
    return exact_correlation<Value, SourceX, SourceD, XH, XW, DH, DW, STRIDE_H, STRIDE_W>(
        t, channel, IMAGES, k * DILATION_H + TOP, l * DILATION_W + LEFT);
}

extern "C" __global__ void __launch_bounds__(BOUNDS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    SHARED(PICTURES_X, X, xs, [2 * STEP_X]);
    SHARED(PICTURES_D, D, ds, [2 * STEP_D]);
    SHARED(SUMS, Value, total, [BK][GROUPS_L * TL]);      // over x and d
    SHARED(MARKS, int, marks, [THREADS / WARP]);
    const Index channel = (Index)blockIdx.x / BLOCKS_K;
    const int k0 = (int)((Index)blockIdx.x % BLOCKS_K) * BK, thread = (int)threadIdx.x;
    const int unit = thread % UNITS, group_l = unit % GROUPS_L, group_c = unit / GROUPS_L;
    const int share = thread / UNITS % SHARES, row_share = thread / (UNITS * SHARES) % ROW_SHARES;
    const int group_k = thread / (UNITS * SHARES * ROW_SHARES);
    const bool active = group_k < GROUPS_K;
    const int begin = row_share * SHARE_ROWS, end = op_min(begin + SHARE_ROWS, DH);

    // ---- load: what no image covers stays zero ----
    for (int i = thread; i < 2 * STEP_X; i += THREADS)
        xs[i] = X();
    for (int i = thread; i < 2 * STEP_D; i += THREADS)
        ds[i] = D();
    block_sync();
    copy_step(t, channel, 0, xs, ds);
    async_commit();

    // ---- compute ----
    Taps taps = {};
    Value none = 0;   // NaN where some element of d is infinite or NaN
#pragma unroll 1
    for (Index step = 0; step < STEPS; ++step) {
        const int now = (int)(step % 2);
        async_wait<0>();
        block_sync();
        if (step + 1 < STEPS)
            copy_step(t, channel, step + 1, xs + (1 - now) * STEP_X, ds + (1 - now) * STEP_D);
        async_commit();
        const int count = images_of(step);
        for (int i = thread * VECTOR; i < count * PlaneD::ELEMENTS; i += THREADS * VECTOR) {
            Value d[VECTOR];
            load_vector<VECTOR>(ds + now * STEP_D, i, d);
            UNROLL for (int e = 0; e < VECTOR; ++e)
                none = op_add(op_mul(d[e], (Value)0), none);
        }
        if (active)
#pragma unroll 1
            for (int image = share; image < count; image += SHARES) {
                const int first = k0 + group_k * TK;
                const X *x = xs + now * STEP_X + image * PlaneX::ELEMENTS + MARGIN + group_c * TC * STRIDE_W +
                             group_l * TL * DILATION_W + LEFT - SKIP - LEAD;
                const D *d = ds + now * STEP_D + image * PlaneD::ELEMENTS + group_c * TC;
                if (ROWS_STAY)
                    taps.add(x, d, first, begin, end);
                else
                    taps.add_apart(x, d, first, begin, end);
            }
    }

    // ---- reduce: one part after the other ----
    const int part = (row_share * SHARES + share) * GROUPS_C + group_c;
#pragma unroll 1
    for (int p = 0; p < PARTS; ++p) {
        block_sync();
        if (active && part == p)
            UNROLL for (int k = 0; k < TK; ++k)
                UNROLL for (int l = 0; l < TL; ++l) {
                    Value &place = total[group_k * TK + k][group_l * TL + l];
                    place = p == 0 ? taps.sum[k][l] : op_add(place, taps.sum[k][l]);
                }
    }
    block_sync();

    // ---- store ----
    bool doubt = none != 0;
    for (int i = thread; i < BK * KW; i += THREADS)
        if (k0 + i / KW < KH) {
            const Value sum = total[i / KW][i % KW + SKIP];
            doubt |= op_sub(sum, sum) != 0;
        }
    doubt = any_of_block<THREADS / WARP>(doubt, marks);
    for (int i = thread; i < BK * KW; i += THREADS) {
        const int k = k0 + i / KW, l = i % KW;
        if (k < KH)
            finish(t, channel, k, l, doubt ? exact_total(t, channel, k, l) : total[i / KW][l + SKIP]);
    }
}
}   // namespace KERNEL
