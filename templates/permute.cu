// Permutation: the output's neighbours along c are far apart in the input, whose own neighbours lie along r.
//
// A block moves TO x TR x TC points through shared memory. It reads along r, in vectors of VR, and writes along c, in
// vectors of VC, so that both sides of memory see whole lines. A thread holds pieces of VC x VR points and turns them in
// its registers, so that shared memory too is accessed in vectors:
//
//            r                        c
//         +------+                +---------+        The VC vectors of a piece are read along r; its VR rows
//       c | 0123 |   turned     r | 048c    |        of VC points go to shared memory, where a row of the
//         | 4567 |  -------->     | 159d    |        tile is contiguous along c. Every VR rows stand PAD
//         | 89ab |                | 26ae    |        points further: a warp that writes along r then meets
//         | cdef |                | 37bf    |        different banks.
//         +------+                +---------+
//
// r and c may each hold several axes of the tensors, those that are contiguous in the input and in the output; what is
// left is `outer`. Where both are short, a block takes several outer positions.
#include "prelude.cuh"

namespace KERNEL {
using namespace rollerc;

// <rollerc: parameters>
using Index = int;
struct Tensors {
    const float *in0;   // x[8, 1000, 1024]
    float *out0;        // y[8, 1024, 1000]
};
#define PARAMETERS const float *__restrict__ in0, float *__restrict__ out0
#define TENSORS {in0, out0}
using Element = float;                               // of the input that is permuted
constexpr Index OUTER = 8, R = 1024, C = 1000;       // problem
constexpr int TO = 1, TR = 64, TC = 64;              // rTile, shared memory
constexpr int VR = 4, VC = 4;                        // points of one read, of one write
constexpr int PAD = 4;                               // bank padding of every VR rows, elements
constexpr int THREADS = 256;

// The input's element of a point.
__device__ __forceinline__ const Element *source(const Tensors &t, Index outer, Index r, Index c)
{
    return t.in0 + (outer * 1024000 + c * 1024 + r);
}

// Makes and stores VC points.
__device__ __forceinline__ void finish(const Tensors &t, Index outer, Index r, Index c, const Element (&x)[VC])
{
    move_vector<VC>(t.out0 + (outer * 1024000 + r * 1000 + c), x);
}
// </rollerc>

constexpr Index TILES_R = (R + TR - 1) / TR, TILES_C = (C + TC - 1) / TC;
constexpr int GROUP = VR * TC + PAD;                 // from VR rows of the shared tile to the next
constexpr int ALONG_R = TR / VR, ALONG_C = TC / VC;  // vectors of a tile
constexpr int PIECES = TO * ALONG_R * ALONG_C;       // read
constexpr int VECTORS = TO * TR * ALONG_C;           // written
constexpr int READS = (PIECES + THREADS - 1) / THREADS, WRITES = (VECTORS + THREADS - 1) / THREADS;

static_assert(TR % VR == 0 && TC % VC == 0 && R % VR == 0 && C % VC == 0, "vectors are inside or outside");
static_assert(PAD % VC == 0, "rows of the shared tile keep vectors aligned");

__device__ __forceinline__ int place(int outer, int r, int c)
{
    return (outer * ALONG_R + r / VR) * GROUP + r % VR * TC + c;
}

extern "C" __global__ void __launch_bounds__(THREADS) ENTRY(PARAMETERS)
{
    const Tensors t = TENSORS;
    SHARED(0, Element, tile, [TO * ALONG_R * GROUP]);                      // (TO,TR,TC)
    Element piece[READS][VC][VR];

    const Index c0 = (Index)blockIdx.x % TILES_C * TC;
    const Index r0 = (Index)blockIdx.x / TILES_C % TILES_R * TR;
    const Index outer0 = (Index)blockIdx.x / (TILES_C * TILES_R) * TO;

    // Load: neighbouring threads along r. All reads are under way before the first is needed.
    UNROLL for (int i = 0; i < READS; ++i) {
        const int p = (int)threadIdx.x + i * THREADS;
        const int r = p % ALONG_R * VR, c = p / ALONG_R % ALONG_C * VC, outer = p / (ALONG_R * ALONG_C);
        if (outer < TO && outer0 + outer < OUTER && r0 + r < R && c0 + c < C)
            UNROLL for (int e = 0; e < VC; ++e)
                move_vector<VR>(piece[i][e], source(t, outer0 + outer, r0 + r, c0 + c + e));
    }

    // Turn, in registers and shared memory.
    UNROLL for (int i = 0; i < READS; ++i) {
        const int p = (int)threadIdx.x + i * THREADS;
        const int r = p % ALONG_R * VR, c = p / ALONG_R % ALONG_C * VC, outer = p / (ALONG_R * ALONG_C);
        if (outer < TO)
            UNROLL for (int j = 0; j < VR; ++j) {
                Element row[VC];
                UNROLL for (int e = 0; e < VC; ++e)
                    row[e] = piece[i][e][j];
                move_vector<VC>(&tile[place(outer, r + j, c)], row);
            }
    }
    block_sync();

    // Store: neighbouring threads along c.
    UNROLL for (int i = 0; i < WRITES; ++i) {
        const int v = (int)threadIdx.x + i * THREADS;
        const int c = v % ALONG_C * VC, r = v / ALONG_C % TR, outer = v / (ALONG_C * TR);
        if (outer < TO && outer0 + outer < OUTER && r0 + r < R && c0 + c < C) {
            Element row[VC];
            move_vector<VC>(row, &tile[place(outer, r, c)]);
            finish(t, outer0 + outer, r0 + r, c0 + c, row);
        }
    }
}
}   // namespace KERNEL
