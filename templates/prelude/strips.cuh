// ---- strips: the part of an image row that a thread holds ----

// A Strip is COUNT columns of a row of EXTENT columns, and may begin outside of the row: OFFSET after a
// multiple of WIDEST, the columns of the widest aligned access. Columns are STRIDE elements apart in memory
// and have ELEMENTS contiguous channels. Returns the columns of the access at column p: the widest that is
// aligned and inside the strip.
template <class Strip> DEVICE constexpr int strip_piece(int p)
{
    int columns = Strip::WIDEST;
    while ((Strip::OFFSET + p) % columns != 0 || p + columns > Strip::COUNT)
        columns /= 2;
    return columns;
}

// The columns of a strip from P on, one access after the other: for 4 outputs and 5 taps 2 + 4 + 2. Columns
// out of bounds are zeros. Narrow elements stay packed in words until they are used, so that no load is
// waited for early.
template <class Strip, int P = 0, bool END = (P >= Strip::COUNT)> struct StripRow {
    using Element = typename Strip::Element;
    static constexpr int COLUMNS_HERE = strip_piece<Strip>(P), COUNT = COLUMNS_HERE * Strip::ELEMENTS;
    static constexpr int BYTES = COUNT * static_cast<int>(sizeof(Element)), WORDS = (BYTES + 3) / 4;
    static_assert(BYTES % 4 == 0 || BYTES <= 2, "whole words, or one");
    union {
        unsigned words[WORDS];
        Element elements[COUNT];
    };
    StripRow<Strip, P + COLUMNS_HERE> rest;

    // `row` is the address of the strip's column 0, `column` its index in the row.
    __device__ __forceinline__ void load(const Element *row, int column, bool exists)
    {
        const Element *from = row + P * Strip::STRIDE;
        UNROLL for (int i = 0; i < WORDS; ++i)
            words[i] = 0;
        if (exists & inside(column + P, Strip::EXTENT)) {   // one condition: a predicated load, no branch
            if constexpr (BYTES % 4 == 0)
                move_vector<WORDS>(words, reinterpret_cast<const unsigned *>(from));
            else if constexpr (BYTES == 2)   // zero-extended: a part of a register would wait for the load
                words[0] = *reinterpret_cast<const unsigned short *>(from);
            else
                words[0] = *reinterpret_cast<const unsigned char *>(from);
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
