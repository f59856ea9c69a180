// ---- b1: element e is bit e % 32 of word e / 32 ----

template <class Index> DEVICE bool load_bit(const unsigned *words, Index index)
{
    return words[index / 32] >> (index % 32) & 1u;
}

template <int N, class Index>
DEVICE void load_bits(const unsigned *words, Index index, bool (&out)[N])
{
    static_assert(32 % N == 0, "a group of bits lies in one word");
    const unsigned word = words[index / 32] >> (index % 32);
    UNROLL for (int i = 0; i < N; i++)
        out[i] = word >> i & 1u;
}

// Stores N bits a lane; all lanes of the warp call it. Lane l holds the N bits after those of lane l - 1.
// Lanes combine their bits to a word, or to a narrower unit where several warps share a word:
//
//   N = 8    lane 0: bits 0..7 | lane 1: 8..15 | lane 2: 16..23 | lane 3: 24..31   lane 0 writes
//
// Bits of inactive lanes are zero. A word without an active lane is not written.
template <int N, class Unit, class Index>
DEVICE void store_bits(Unit *words, Index index, const bool (&in)[N], bool active)
{
    constexpr int BITS = 8 * sizeof(Unit), LANES = BITS / N;
    static_assert(BITS % N == 0, "a group of bits lies in one word");
    const int lane = lane_id(), first = lane / LANES * LANES;
    const unsigned active_lanes =
        static_cast<unsigned>(warp_ballot(active) >> first) & (~0u >> (32 - LANES));
    unsigned word = 0;
    UNROLL for (int i = 0; i < N; i++)
        word |= static_cast<unsigned>(active && in[i]) << i;
    word <<= lane % LANES * N;
    UNROLL for (int mask = 1; mask < LANES; mask *= 2)
        word |= warp_shuffle_xor(word, mask);
    if (lane == first && active_lanes)
        words[index / BITS] = static_cast<Unit>(word);
}

// The same where a lane's N bits are a unit: no other lane takes part.
template <int N, class Unit, class Index> DEVICE void store_own_bits(Unit *units, Index index, const bool (&in)[N])
{
    static_assert(8 * sizeof(Unit) == N, "the bits of a lane are a unit");
    unsigned bits = 0;
    UNROLL for (int i = 0; i < N; i++)
        bits |= static_cast<unsigned>(in[i]) << i;
    units[index / N] = static_cast<Unit>(bits);
}

// N neighbouring bits of one word.
template <int N> struct PackedBits {
    static_assert(32 % N == 0, "a group of bits lies in one word");
    unsigned word;

    __device__ __forceinline__ bool operator[](int e) const { return word >> e & 1u; }
};

template <int N, class Index> DEVICE void load_packed(const unsigned *words, Index index, PackedBits<N> &out)
{
    out.word = words[index / 32] >> (index % 32);
}
