// Tensor cores: tiles that are distributed over the lanes of a warp are gathered and multiplied.
//
// The sums are those of the hardware where it is at its worst: of every eight products, four of tf32, and what was
// summed before them the bits below the largest one's last bit but one are cut off, and so is the result (Fasi, Higham,
// Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021; later ones keep more bits). Integers wrap;
// products of doubles are added one by one, each to the nearest.
namespace rollerc_interp {

namespace {

enum { SUMMED_AT_ONCE = 8, TF32_SUMMED_AT_ONCE = 4, KEPT_BITS = 25 };   // a float's 24 and one more

// ---- loads ----

struct Lines {
    const MatrixLine *line;
    unsigned *tile;
    bool turned;
};

// Element `column` of line `row` of matrix i.
unsigned element_at(void *const *lanes, int i, int row, int column)
{
    const Lines *owner = static_cast<const Lines *>(lanes[i * 8 + row]);
    return owner->line->words[column / 2] >> column % 2 * 16 & 0xffffu;
}

void deal_matrices(void *const *lanes)
{
    for (int lane = 0; lane < 32; lane++) {
        const Lines *mine = static_cast<const Lines *>(lanes[lane]);
        const int row = lane / 4, column = lane % 4 * 2;
        for (int i = 0; i < 4; i++)
            mine->tile[i] = mine->turned
                ? element_at(lanes, i, column, row) | element_at(lanes, i, column + 1, row) << 16
                : element_at(lanes, i, row, column) | element_at(lanes, i, row, column + 1) << 16;
    }
}

// ---- products ----

struct Shape {
    int m, n, k;
};
constexpr Shape SHAPES[] = {   // in the order of TileElement
#define ATOM(element, m, n, k, unit) {m, n, k},
#define SHARED_ATOM(element, m, n, k, unit)
#define SHARED_ATOM_ALONG_K(element, m, n, k, unit)
#include "../atoms.def"
#undef SHARED_ATOM_ALONG_K
#undef SHARED_ATOM
#undef ATOM
};
enum { MOST_ROWS = 16, MOST_K = 32 };

struct Tiles {
    TileElement element;
    bool half;   // of k: the rest are zeros
    const void *a, *b;
    void *c;
};

template <class To, class From> To same_bits(From from)
{
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}

double value_of_f16(unsigned bits)
{
    const unsigned rest = bits & 0x7fffu;
    if (rest >= 0x7c00u)
        return same_bits<float>((bits & 0x8000u) << 16 | 0x7f800000u | (rest & 0x3ffu) << 13);
    const double two_to_112 = 5192296858534827628530496329220096.0;   // biases: 127 - 15
    const double magnitude = same_bits<float>(rest << 13) * two_to_112;
    return bits & 0x8000u ? -magnitude : magnitude;
}

double value_of(TileElement element, unsigned bits)
{
    return element == TILE_F16 ? value_of_f16(bits) : same_bits<float>(bits << 16);
}

// The i-th of a lane's elements of a matrix, whose words they are.
double value_at(TileElement element, const void *words, int i)
{
    switch (element) {
    case TILE_F64: return static_cast<const double *>(words)[i];
    case TILE_I8: return static_cast<const signed char *>(words)[i];
    case TILE_U8: return static_cast<const unsigned char *>(words)[i];
    case TILE_TF32: return same_bits<float>(static_cast<const unsigned *>(words)[i] & ~0x1fffu);
    default: return value_of(element, static_cast<const unsigned short *>(words)[i]);
    }
}

double magnitude_of(double x) { return x < 0 ? -x : x; }

double two_to(int exponent) { return same_bits<double>(static_cast<long long>(exponent + 1023) << 52); }

float cut_off(double x)
{
    const float nearest = static_cast<float>(x);
    const bool beyond = magnitude_of(nearest) > magnitude_of(x) && magnitude_of(x) < two_to(128);
    return beyond ? same_bits<float>(same_bits<unsigned>(nearest) - 1u) : nearest;
}

// Of two columns side by side, which a lane has.
typedef double Reals __attribute__((vector_size(16)));
typedef unsigned long long Words __attribute__((vector_size(16)));
typedef float Floats __attribute__((vector_size(8)));
typedef int Ints __attribute__((vector_size(8)));
typedef unsigned Wrapped __attribute__((vector_size(8)));   // of what is no number nothing is known but that it wraps

Reals magnitudes_of(Reals x) { return reinterpret_cast<Reals>(reinterpret_cast<Words>(x) & ~0ull >> 1); }
Wrapped whole_parts_of(Reals x) { return reinterpret_cast<Wrapped>(__builtin_convertvector(x, Ints)); }

// sums + the products, aligned with the largest of them: here many kernels spend most of their time.
template <int COUNT> inline Reals add_aligned(Reals sums, const double *a, const Reals *b)
{
    const unsigned long long infinite = 0x7ffull << 52, beyond_a_float = (1ull << (52 - 23)) - 1;
    Reals products[COUNT], plain = sums, largest = magnitudes_of(sums);
#pragma GCC unroll 8
    for (int i = 0; i < COUNT; i++) {
        products[i] = a[i] * b[i];
        plain += products[i];
        const Reals size = magnitudes_of(products[i]);
        largest = size > largest ? size : largest;
    }
    largest = largest < two_to(-400) ? Reals{} + two_to(-400) : largest;   // of zeros
    const Words exponent = reinterpret_cast<Words>(largest) & infinite;    // all are below twice what it stands for
    const Reals last = reinterpret_cast<Reals>(exponent - ((KEPT_BITS - 1ull) << 52));
    const Reals per_last = reinterpret_cast<Reals>(((2 * 1023 + KEPT_BITS - 1ull) << 52) - exponent);
    Wrapped kept = whole_parts_of(sums * per_last);
#pragma GCC unroll 8
    for (int i = 0; i < COUNT; i++)
        kept += whole_parts_of(products[i] * per_last);
    const Reals sum = __builtin_convertvector(reinterpret_cast<Ints>(kept), Reals) * last;
    const auto simple = (plain - plain == 0) & ((magnitudes_of(sum) >= two_to(-126)) | (sum == 0));   // finite, and no denormal
    if (__builtin_expect((simple[0] & simple[1]) == 0, false)) {
        const auto careful = [&](int n) { return plain[n] - plain[n] == 0 ? cut_off(sum[n]) : static_cast<float>(plain[n]); };
        return Reals{careful(0), careful(1)};
    }
    const Reals cut = reinterpret_cast<Reals>(reinterpret_cast<Words>(sum) & ~beyond_a_float);
    return __builtin_convertvector(__builtin_convertvector(cut, Floats), Reals);
}

struct Gathered {
    double a[MOST_ROWS][MOST_K];
    Reals b[4][MOST_K];
};

// Row l / 4 of each matrix is lane l's, and `each` adjacent elements along k from l % 4 * each on: half of k is four
// times as many.
void gather(void *const *lanes, int each, Gathered *tiles)
{
    for (int lane = 0; lane < 32; lane++) {
        const Tiles *mine = static_cast<const Tiles *>(lanes[lane]);
        for (int e = 0; e < each; e++) {
            const int line = lane / 4, k = lane % 4 * each + e;
            for (int i = 0; i < 4; i++)
                tiles->a[i % 2 * 8 + line][i / 2 * 4 * each + k] = value_at(mine->element, mine->a, i * each + e);
            for (int i = 0; i < 2; i++)
                tiles->b[line / 2][i * 4 * each + k][line % 2] = value_at(mine->element, mine->b, i * each + e);
        }
    }
}

template <int COUNT> void add_in_turns(float *sums, const double *a, const Reals *b, int count)
{
    Reals sum = {sums[0], sums[1]};
    for (int k = 0; k < count; k += COUNT)
        sum = add_aligned<COUNT>(sum, a + k, b + k);
    sums[0] = static_cast<float>(sum[0]);
    sums[1] = static_cast<float>(sum[1]);
}

// Row a times two columns.
void add_products(float *sums, const double *a, const Reals *b, TileElement element)
{
    const int count = SHAPES[element].k;
    element == TILE_TF32 ? add_in_turns<TF32_SUMMED_AT_ONCE>(sums, a, b, count) : add_in_turns<SUMMED_AT_ONCE>(sums, a, b, count);
}

void add_products(int *sums, const double *a, const Reals *b, TileElement element)
{
    for (int k = 0; k < SHAPES[element].k; k++)
        for (int n = 0; n < 2; n++)
            sums[n] = static_cast<int>(static_cast<unsigned>(sums[n]) + static_cast<unsigned>(static_cast<int>(a[k] * b[k][n])));
}

void add_products(double *sums, const double *a, const Reals *b, TileElement element)
{
    for (int k = 0; k < SHAPES[element].k; k++)
        for (int n = 0; n < 2; n++)
            sums[n] += a[k] * b[k][n];
}

template <class Sum> void add_all(void *const *lanes, TileElement element, const Gathered &tiles)
{
    const Shape &shape = SHAPES[element];
    for (int m = 0; m < shape.m; m++)
        for (int pair = 0; pair < shape.n / 2; pair++) {
            const Tiles *owner = static_cast<const Tiles *>(lanes[m % 8 * 4 + pair]);
            add_products(static_cast<Sum *>(owner->c) + m / 8 * 2, tiles.a[m], tiles.b[pair], element);
        }
}

void multiply(void *const *lanes)
{
    const TileElement element = static_cast<const Tiles *>(lanes[0])->element;
    const bool half = static_cast<const Tiles *>(lanes[0])->half;
    Gathered tiles;
    count_tensor_products(SHAPES[element].m * SHAPES[element].n * SHAPES[element].k / (half ? 2 : 1));
    gather(lanes, SHAPES[element].k / 8, &tiles);
    switch (element) {
    case TILE_I8:
    case TILE_U8: return add_all<int>(lanes, element, tiles);
    case TILE_F64: return add_all<double>(lanes, element, tiles);
    default: return add_all<float>(lanes, element, tiles);
    }
}

}   // namespace

void load_matrices(const MatrixLine *line, bool turned, unsigned *tile, Place place)
{
    Lines mine = {line, tile, turned};
    together(&mine, deal_matrices, place);
}

void multiply_tiles(TileElement element, bool half, const void *a, const void *b, void *c, Place place)
{
    Tiles mine = {element, half, a, b, c};
    together(&mine, multiply, place);
}

}   // namespace rollerc_interp
