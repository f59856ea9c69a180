// Tensor cores: tiles that are distributed over the lanes of a warp are gathered and multiplied.
//
// The sums are those of the hardware where it is at its worst: of every eight products, four of tf32, and what was summed before them the
// bits below the largest one's last bit but one are cut off, and so is the result (Fasi, Higham, Mikaitis and Pranesh,
// "Numerical behavior of NVIDIA tensor cores", 2021; later ones keep more bits). Integers wrap; products of doubles are
// added one by one, each to the nearest.
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

// Numbers without their signs are in the order of their bits, infinities and NaNs behind the others.
long long magnitude_bits(double x) { return static_cast<long long>(same_bits<unsigned long long>(x) & ~0ull >> 1); }

float add_plainly(float sum, const double *products, int count)
{
    double plain = sum;
    for (int i = 0; i < count; i++)
        plain += products[i];
    return static_cast<float>(plain);
}

// sum + the products, aligned with the largest of them.
float add_aligned(float sum, const double *products, int count)
{
    const long long infinite = 0x7ffll << 52;
    long long largest = magnitude_bits(sum);
    for (int i = 0; i < count; i++) {
        const long long bits = magnitude_bits(products[i]);
        largest = bits > largest ? bits : largest;
    }
    if (largest == 0 || largest >= infinite)
        return add_plainly(sum, products, count);
    const int exponent = static_cast<int>(largest >> 52) - 1023;   // it is below 2^(exponent + 1)
    const double last = two_to(exponent + 1 - KEPT_BITS), per_last = two_to(KEPT_BITS - 1 - exponent);
    long long kept = static_cast<long long>(sum * per_last);
    for (int i = 0; i < count; i++)
        kept += static_cast<long long>(products[i] * per_last);
    return cut_off(static_cast<double>(kept) * last);
}

struct Gathered {
    double a[MOST_ROWS][MOST_K], b[8][MOST_K];
};

// Row l / 4 of each matrix is lane l's, and `each` adjacent elements along k from l % 4 * each on: half of k is four times as many.
void gather(void *const *lanes, int each, Gathered *tiles)
{
    for (int lane = 0; lane < 32; lane++) {
        const Tiles *mine = static_cast<const Tiles *>(lanes[lane]);
        for (int e = 0; e < each; e++) {
            const int line = lane / 4, k = lane % 4 * each + e;
            for (int i = 0; i < 4; i++)
                tiles->a[i % 2 * 8 + line][i / 2 * 4 * each + k] = value_at(mine->element, mine->a, i * each + e);
            for (int i = 0; i < 2; i++)
                tiles->b[line][i * 4 * each + k] = value_at(mine->element, mine->b, i * each + e);
        }
    }
}

float add_products(float sum, const double *a, const double *b, TileElement element)
{
    const int at_once = element == TILE_TF32 ? TF32_SUMMED_AT_ONCE : SUMMED_AT_ONCE, count = SHAPES[element].k;
    for (int k = 0; k < count; k += at_once) {
        double products[SUMMED_AT_ONCE];
        for (int i = 0; i < at_once; i++)
            products[i] = a[k + i] * b[k + i];
        sum = add_aligned(sum, products, at_once);
    }
    return sum;
}

int add_products(int sum, const double *a, const double *b, TileElement element)
{
    unsigned wrapped = static_cast<unsigned>(sum);
    for (int k = 0; k < SHAPES[element].k; k++)
        wrapped += static_cast<unsigned>(static_cast<int>(a[k] * b[k]));
    return static_cast<int>(wrapped);
}

double add_products(double sum, const double *a, const double *b, TileElement element)
{
    for (int k = 0; k < SHAPES[element].k; k++)
        sum += a[k] * b[k];
    return sum;
}

template <class Sum> void add_all(void *const *lanes, TileElement element, const Gathered &tiles)
{
    const Shape &shape = SHAPES[element];
    for (int m = 0; m < shape.m; m++)
        for (int n = 0; n < shape.n; n++) {
            const Tiles *owner = static_cast<const Tiles *>(lanes[m % 8 * 4 + n / 2]);
            Sum &sum = static_cast<Sum *>(owner->c)[m / 8 * 2 + n % 2];
            sum = add_products(sum, tiles.a[m], tiles.b[n], element);
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
