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

// V adjacent columns of eight planes of 16-bit elements, loaded as aligned vectors, or zeros. Stored column by column, the eight
// elements side by side.
template <class T, int V> struct EightPlanes {
    static constexpr int WORDS = (V + 1) / 2;
    unsigned words[8][WORDS];

    template <class Index> __device__ __forceinline__ void load(bool exists, const T *first, Index plane)
    {
        UNROLL for (int i = 0; i < 8; ++i) {
            UNROLL for (int w = 0; w < WORDS; ++w)
                words[i][w] = 0;
            if (exists && V == 1)
                words[i][0] = first[i * plane].bits;
            else if (exists)
                move_vector<WORDS>(words[i], reinterpret_cast<const unsigned *>(first + i * plane));
        }
    }
    __device__ __forceinline__ void store(bool exists, int column, T *to) const
    {
        unsigned pairs[4];
        UNROLL for (int i = 0; i < 4; ++i)
            pairs[i] = byte_permute(words[2 * i][column / 2], words[2 * i + 1][column / 2], column % 2 ? 0x7632u : 0x5410u);
        if (exists)
            move_vector<4>(reinterpret_cast<unsigned *>(to), pairs);
    }
};

// Copies lines of COLUMNS columns of CHANNELS planes, which are `plane` elements apart, to shared memory, where channels are
// innermost. Lines begin LEADING columns behind aligned vectors of V. from(line, channel, column): {does it exist, where}; to(line,
// channel, base, column): where column base + column lies. Adjacent lanes have as many eights of channels as leave them in
// different banks, then adjacent vectors.
template <int THREADS, int V, int CHANNELS, int LEADING, int COLUMNS, class T, class Index, class From, class To>
DEVICE void copy_planes(int lines, Index plane, const From &from, const To &to)
{
    constexpr int EIGHTS = CHANNELS / 8, ABREAST = (EIGHTS | V) & -(EIGHTS | V), SPANS = (LEADING + COLUMNS + V - 1) / V;
    constexpr int AHEAD = V < 2 ? 4 : 8 / V;   // of a thread, in flight
    struct Place {
        int line, channel, base;
        bool exists;
    };
    const auto place = [=](int number) {
        return Place{number / (SPANS * EIGHTS), (number % ABREAST + number / (ABREAST * SPANS) % (EIGHTS / ABREAST) * ABREAST) * 8,
                     (number / ABREAST % SPANS - 1) * V, number < lines * (SPANS * EIGHTS)};
    };
#pragma unroll 1
    for (int first = static_cast<int>(threadIdx.x); first < lines * (SPANS * EIGHTS); first += AHEAD * THREADS) {
        EightPlanes<T, V> held[AHEAD];
        UNROLL for (int a = 0; a < AHEAD; ++a) {
            const Place own = place(first + a * THREADS);
            const auto found = from(own.line, own.channel, own.base + V - LEADING);
            held[a].load(own.exists && found.exists, found.at, plane);
        }
        UNROLL for (int a = 0; a < AHEAD; ++a) {
            const Place own = place(first + a * THREADS);
            UNROLL for (int i = 0; i < V; ++i)
                held[a].store(own.exists && inside(own.base + V - LEADING + i, COLUMNS), i,
                              to(own.line, own.channel, own.base, V - LEADING + i));
        }
    }
}

// Of a plane's line an element, which may lie outside.
template <class T> struct PlaneElement {
    bool exists;
    const T *at;
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
