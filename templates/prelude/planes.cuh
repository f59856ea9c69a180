// ---- planes: images in shared memory ----

// ROWS x COLUMNS elements of each image with the row pitch PITCH. Column 0 follows LEFT elements that are
// never written. Source::row(tensors, channel, picture, row) is the address of a row in memory, whose columns
// are COLUMN_STRIDE elements apart. With PIECES rows are whole aligned 16-byte vectors, which are copied
// asynchronously; other rows are copied element by element, each row by eight adjacent lanes.
template <class Source, int ROWS, int COLUMNS, int PITCH, int LEFT> struct Plane {
    static constexpr int ELEMENTS = ROWS * PITCH;

    // Copies images [first, first + count) of the channel, by all threads of the block.
    template <int THREADS, class Tensors, class Index, class T>
    static __device__ __forceinline__ void copy(const Tensors &t, Index channel, Index first, int count,
                                                T *planes)
    {
        if constexpr (!Source::PIECES) {
            copy_elements<THREADS>(t, channel, first, count, planes);
        } else {
            constexpr int PIECE = 16 / static_cast<int>(sizeof(T)), LINE = COLUMNS / PIECE;
            UNROLL_4 for (int i = static_cast<int>(threadIdx.x); i < count * (ROWS * LINE); i += THREADS) {
                const int picture = i / (ROWS * LINE), row = i / LINE % ROWS, column = i % LINE * PIECE;
                async_copy16(planes + picture * ELEMENTS + row * PITCH + LEFT + column,
                             Source::row(t, channel, first + picture, row) + column);
            }
        }
    }

private:
    // Copies of less than 4 bytes pass registers: so many loads of a thread are in flight at once.
    static constexpr int AHEAD = 8;

    template <int THREADS, class Tensors, class Index, class T>
    static __device__ __forceinline__ void copy_elements(const Tensors &t, Index channel, Index first, int count,
                                                         T *planes)
    {
        constexpr int LANES = 8, GROUPS = THREADS / LANES, MOST = (COLUMNS + LANES - 1) / LANES;
        constexpr int EACH = MOST < AHEAD ? MOST : AHEAD, TOGETHER = AHEAD / EACH;   // columns, rows
        const int lane = static_cast<int>(threadIdx.x) % LANES, rows = count * ROWS;
#pragma unroll 1
        for (int top = static_cast<int>(threadIdx.x) / LANES; top < rows; top += GROUPS * TOGETHER)
            UNROLL for (int begin = 0; begin < COLUMNS; begin += LANES * EACH) {
                T held[TOGETHER][EACH] = {}, *to[TOGETHER];
                UNROLL for (int r = 0; r < TOGETHER; ++r) {
                    const int at = top + r * GROUPS, picture = at / ROWS, row = at % ROWS;
                    const T *from = Source::row(t, channel, first + picture, row);
                    to[r] = planes + picture * ELEMENTS + row * PITCH + LEFT;
                    UNROLL for (int e = 0; e < EACH; ++e) {
                        const int column = begin + e * LANES + lane;
                        if (at >= rows || column >= COLUMNS)
                            continue;
                        if constexpr (sizeof(T) >= 4)
                            async_copy_element_or_zero(true, to[r] + column, from + column * Source::COLUMN_STRIDE);
                        else
                            held[r][e] = from[column * Source::COLUMN_STRIDE];
                    }
                }
                UNROLL for (int r = 0; r < TOGETHER && sizeof(T) < 4; ++r)
                    UNROLL for (int e = 0; e < EACH; ++e)
                        if (top + r * GROUPS < rows && begin + e * LANES + lane < COLUMNS)
                            to[r][begin + e * LANES + lane] = held[r][e];
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
