// ---- planes: pictures in shared memory ----

// ROWS x COLUMNS elements for each picture, PITCH from row to row; column 0 stands behind `LEFT` elements
// that are never written. Source::row(tensors, channel, picture, row) is where a row begins in memory, its
// columns COLUMN_STRIDE apart; with PIECES they are whole aligned pieces of 16 bytes, which are copied
// asynchronously.
template <class Source, int ROWS, int COLUMNS, int PITCH, int LEFT> struct Plane {
    static constexpr int ELEMENTS = ROWS * PITCH;

    // Pictures [first, first + count) of the channel, by all threads of the block.
    template <int THREADS, class Tensors, class Index, class T>
    static __device__ __forceinline__ void copy(const Tensors &t, Index channel, Index first, int count,
                                                T *planes)
    {
        constexpr int PIECE = Source::PIECES ? 16 / static_cast<int>(sizeof(T)) : 1, LINE = COLUMNS / PIECE;
        UNROLL_4 for (int i = static_cast<int>(threadIdx.x); i < count * (ROWS * LINE); i += THREADS) {
            const int picture = i / (ROWS * LINE), row = i / LINE % ROWS, column = i % LINE * PIECE;
            const T *from = Source::row(t, channel, first + picture, row) + column * Source::COLUMN_STRIDE;
            T *to = planes + picture * ELEMENTS + row * PITCH + LEFT + column;
            if constexpr (Source::PIECES)
                async_copy16(to, from);
            else
                *to = *from;
        }
    }
};

// sum over images, i, j of d[i,j] * x[i*STRIDE_H+down,j*STRIDE_W+along], 0 outside of x: term by term as it
// stands there, so that what is infinite or no number is multiplied by zeros, too.
template <class Value, class SourceX, class SourceD, int XH, int XW, int DH, int DW, int STRIDE_H = 1,
          int STRIDE_W = 1, class Tensors, class Index>
DEVICE Value exact_correlation(const Tensors &t, Index channel, Index images, int down, int along)
{
    Value total = 0;
#pragma unroll 1
    for (Index image = 0; image < images; image++)
#pragma unroll 1
        for (int i = 0; i < DH; i++) {
            const int row = i * STRIDE_H + down;
            const bool meets = inside(row, XH);
            const auto *x = SourceX::row(t, channel, image, meets ? row : 0);
            const auto *d = SourceD::row(t, channel, image, i);
#pragma unroll 1
            for (int j = 0; j < DW; j++) {
                const int column = j * STRIDE_W + along;
                const bool reads = meets && inside(column, XW);
                const Value value = reads ? Value(widen(x[column * SourceX::COLUMN_STRIDE])) : Value(0);
                total = op_add(op_mul(Value(widen(d[j * SourceD::COLUMN_STRIDE])), value), total);
            }
        }
    return total;
}

// Is it so for some thread of the block? Every warp leaves a mark.
template <int WARPS> DEVICE bool any_of_block(bool so, int *marks)
{
    const bool found = warp_ballot(so) != 0;
    if (lane_id() == 0)
        marks[threadIdx.x / WARP] = found;
    block_sync();
    bool any = false;
    for (int i = 0; i < WARPS; i++)
        any |= marks[i] != 0;
    return any;
}
