// ---- strips: what a thread has of a row of an image ----

// A Strip is COUNT columns of a row of EXTENT ones, the first of which may lie outside: OFFSET beside a multiple
// of WIDEST, which are one aligned access, at most. Columns lie STRIDE apart in memory and have ELEMENTS
// neighbouring channels each. What the access at column p has: as many as lie there aligned and belong to it.
template <class Strip> DEVICE constexpr int strip_piece(int p)
{
    int columns = Strip::WIDEST;
    while ((Strip::OFFSET + p) % columns != 0 || p + columns > Strip::COUNT)
        columns /= 2;
    return columns;
}

// The columns of a strip from P on, piece by piece: beside 4 outputs under 5 taps 2 + 4 + 2. Outside of the row
// there are zeros. Narrow elements stay in words until they are wanted, so that none is waited for before.
template <class Strip, int P = 0, bool END = (P >= Strip::COUNT)> struct StripRow {
    using Element = typename Strip::Element;
    static constexpr int COLUMNS_HERE = strip_piece<Strip>(P), COUNT = COLUMNS_HERE * Strip::ELEMENTS;
    static constexpr int BYTES = COUNT * static_cast<int>(sizeof(Element)), WORDS = (BYTES + 3) / 4;
    union {
        unsigned words[WORDS];
        Element elements[COUNT];
    };
    StripRow<Strip, P + COLUMNS_HERE> rest;

    // `row` is where column 0 of the strip lies, `column` of the row.
    __device__ __forceinline__ void load(const Element *row, int column, bool exists)
    {
        const Element *from = row + P * Strip::STRIDE;
        UNROLL for (int i = 0; i < WORDS; ++i)
            words[i] = 0;
        if (exists & inside(column + P, Strip::EXTENT)) {   // one condition: a predicate of the load, no branch
            if constexpr (BYTES % 4 == 0)
                move_vector<WORDS>(words, reinterpret_cast<const unsigned *>(from));
            else
                UNROLL for (int e = 0; e < COUNT; ++e)
                    elements[e] = from[e];
        }
        rest.load(row, column, exists);
    }
    template <class Value, int N> __device__ __forceinline__ void widen_to(Value (&row)[N]) const
    {
        UNROLL for (int e = 0; e < COUNT; ++e)
            row[P * Strip::ELEMENTS + e] = widen(elements[e]);
        rest.widen_to(row);
    }
};
template <class Strip, int P> struct StripRow<Strip, P, true> {
    template <class Element> __device__ __forceinline__ void load(const Element *, int, bool) {}
    template <class Value, int N> __device__ __forceinline__ void widen_to(Value (&)[N]) const {}
};
