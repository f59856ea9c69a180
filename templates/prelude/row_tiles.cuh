// ---- rows of a product that are reduced in registers ----

// The first pass reduces elements, the second one what is made of them and of the first one's results.
template <int PASS> struct Pass {};

// Of M x N sums 16 rows from m0 on and COLUMNS columns from n0 on, as tensor cores leave them in a warp: of each 8 columns a lane has
// two, of rows 8 apart. Row has a row's results, and says what they are of.
template <class Row, int COLUMNS, class Tensors, class Value, class Index> struct WarpRows {
    const Tensors &t;
    Value *sums;
    Index batch, m0, n0, M, N;
    Row rows[2];

    __device__ __forceinline__ Index row_of(int half) const { return m0 + half * 8 + (int)threadIdx.x % WARP / 4; }

    // WHOLE: all columns are C's.
    template <bool WHOLE, class Make> __device__ __forceinline__ void each(const Make &make)
    {
        UNROLL for (int v = 0; v < COLUMNS / 2; ++v) {
            const int half = v / 2 % 2;
            const Index n = n0 + v / 4 * 8 + (int)threadIdx.x % 4 * 2 + v % 2;
            if (row_of(half) < M && (WHOLE || n < N))
                make(sums[v], rows[half], row_of(half), n);
        }
    }
    // Of a lane's columns, then of those of the four lanes that have the row.
    template <bool WHOLE, int PASS> __device__ __forceinline__ void reduce()
    {
        each<WHOLE>([&](const Value &sum, Row &row, Index m, Index n) { row.add(Pass<PASS>(), t, batch, m, n, sum); });
        rows[0].meet(Pass<PASS>());
        rows[1].meet(Pass<PASS>());
    }
    template <bool WHOLE> __device__ __forceinline__ void finish()
    {
        each<WHOLE>([&](Value &sum, Row &, Index m, Index n) { sum = Row::point(t, batch, m, n, sum); });
        reduce<WHOLE, 0>();
        if constexpr (Row::PASSES > 1)
            reduce<WHOLE, 1>();
        UNROLL for (int half = 0; half < 2; ++half)
            if ((int)threadIdx.x % 4 == 0 && row_of(half) < M)
                rows[half].leave(t, batch, row_of(half), n0 / COLUMNS);
    }
};

// By a warp, in place of storing them.
template <class Row, int COLUMNS, class Tensors, class Value, class Index>
DEVICE void reduce_rows(const Tensors &t, Value *sums, Index batch, Index m0, Index n0, Index M, Index N)
{
    WarpRows<Row, COLUMNS, Tensors, Value, Index> warp = {t, sums, batch, m0, n0, M, N, {}};
    if (N % COLUMNS == 0 || n0 + COLUMNS <= N) {
        if (n0 < N)
            warp.template finish<true>();
    } else if (n0 < N) {
        warp.template finish<false>();
    }
}
