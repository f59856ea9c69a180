// ---- planes: images in shared memory ----

// ROWS x COLUMNS elements of each image with the row pitch PITCH. Column 0 follows LEFT elements that are
// never written. Source::row(tensors, channel, picture, row) is the address of a row in memory, whose columns
// are COLUMN_STRIDE elements apart. With PIECES rows are whole aligned 16-byte vectors, which are copied
// asynchronously.
template <class Source, int ROWS, int COLUMNS, int PITCH, int LEFT> struct Plane {
    static constexpr int ELEMENTS = ROWS * PITCH;

    // Copies images [first, first + count) of the channel, by all threads of the block.
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

// sum over images, i, j of d[i,j] * x[i*STRIDE_H+down,j*STRIDE_W+along], 0 outside of x. Every term is
// computed, so that infinities and NaN times zero give NaN.
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

// Whether `so` holds for any thread of the block.
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
