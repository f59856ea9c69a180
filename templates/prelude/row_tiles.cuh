// ---- row reductions of a product in registers ----

// The first pass reduces elements. The second one reduces functions of the elements and of the first results.
template <int PASS> struct Pass {};

// A warp's accumulators of 16 rows from m0 on and COLUMNS columns from n0 on, in the layout of the tensor
// cores: of each 8 columns a lane has two, in two rows 8 apart. Row holds a row's results and defines what is
// reduced.
template <class Row, int COLUMNS, class Tensors, class Value, class Index> struct WarpRows {
    const Tensors &t;
    Value *sums;
    Index batch, m0, n0, M, N;
    Row rows[2];

    __device__ __forceinline__ Index row_of(int half) const { return m0 + half * 8 + (int)threadIdx.x % WARP / 4; }

    // WHOLE: no column is out of bounds.
    template <bool WHOLE, class Make> __device__ __forceinline__ void each(const Make &make)
    {
        UNROLL for (int v = 0; v < COLUMNS / 2; ++v) {
            const int half = v / 2 % 2;
            const Index n = n0 + v / 4 * 8 + (int)threadIdx.x % 4 * 2 + v % 2;
            if (row_of(half) < M && (WHOLE || n < N))
                make(sums[v], rows[half], row_of(half), n);
        }
    }
    // Reduces a lane's columns, then across the four lanes that share a row.
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

// Reduces rows by a warp, in place of storing the product.
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
