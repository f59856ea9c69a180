// Tensor cores: what the lanes of a warp hold together, dealt out and multiplied.
//
// The sums are those of the hardware where it is at its worst: of every eight products and what was summed before them the
// bits below the largest one's last bit but one are cut off, and so is the result (Fasi, Higham, Mikaitis and Pranesh,
// "Numerical behavior of NVIDIA tensor cores", 2021; later ones keep more bits).
namespace rollerc_interp {

namespace {

enum { SUMMED_AT_ONCE = 8, KEPT_BITS = 25 };   // a float's 24 and one more

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
#include "../atoms.def"
#undef SHARED_ATOM
#undef ATOM
};
enum { MOST = 16 };   // of m, n and k

struct Tiles {
    TileElement element;
    const unsigned *a, *b;
    float *c;
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

double magnitude_of(double x) { return x < 0 ? -x : x; }

double two_to(int exponent) { return same_bits<double>(static_cast<long long>(exponent + 1023) << 52); }

float cut_off(double x)
{
    const float nearest = static_cast<float>(x);
    const bool beyond = magnitude_of(nearest) > magnitude_of(x) && magnitude_of(x) < two_to(128);
    return beyond ? same_bits<float>(same_bits<unsigned>(nearest) - 1u) : nearest;
}

// sum + the products, aligned with the largest of them.
float add_aligned(float sum, const double *products)
{
    double largest = magnitude_of(sum), plain = sum;
    for (int i = 0; i < SUMMED_AT_ONCE; i++) {
        largest = magnitude_of(products[i]) > largest ? magnitude_of(products[i]) : largest;
        plain += products[i];
    }
    if (largest == 0 || !(magnitude_of(plain) <= 1.7976931348623157e308))   // a NaN or infinite
        return static_cast<float>(plain);
    const int exponent = static_cast<int>(same_bits<unsigned long long>(largest) >> 52) - 1023;   // it is below 2^(exponent + 1)
    const double last = two_to(exponent + 1 - KEPT_BITS), per_last = two_to(KEPT_BITS - 1 - exponent);
    long long kept = static_cast<long long>(sum * per_last);
    for (int i = 0; i < SUMMED_AT_ONCE; i++)
        kept += static_cast<long long>(products[i] * per_last);
    return cut_off(static_cast<double>(kept) * last);
}

unsigned half_of(unsigned word, int half) { return word >> half * 16 & 0xffffu; }

// Row l / 4 and columns l % 4 * 2 + {0, 1} of each 8 x 8 matrix are lane l's.
void gather(void *const *lanes, double (&a)[MOST][MOST], double (&b)[MOST][MOST])
{
    for (int lane = 0; lane < 32; lane++) {
        const Tiles *mine = static_cast<const Tiles *>(lanes[lane]);
        for (int half = 0; half < 2; half++) {
            const int line = lane / 4, k = lane % 4 * 2 + half;
            for (int i = 0; i < 4; i++)
                a[i % 2 * 8 + line][i / 2 * 8 + k] = value_of(mine->element, half_of(mine->a[i], half));
            for (int i = 0; i < 2; i++)
                b[line][i * 8 + k] = value_of(mine->element, half_of(mine->b[i], half));
        }
    }
}

void multiply(void *const *lanes)
{
    double a[MOST][MOST], b[MOST][MOST];
    gather(lanes, a, b);
    const Shape &shape = SHAPES[static_cast<const Tiles *>(lanes[0])->element];
    for (int m = 0; m < shape.m; m++)
        for (int n = 0; n < shape.n; n++) {
            const Tiles *owner = static_cast<const Tiles *>(lanes[m % 8 * 4 + n / 2]);
            float &sum = owner->c[m / 8 * 2 + n % 2];
            for (int k = 0; k < shape.k; k += SUMMED_AT_ONCE) {
                double products[SUMMED_AT_ONCE];
                for (int i = 0; i < SUMMED_AT_ONCE; i++)
                    products[i] = a[m][k + i] * b[n][k + i];
                sum = add_aligned(sum, products);
            }
        }
}

}   // namespace

void load_matrices(const MatrixLine *line, bool turned, unsigned *tile, Place place)
{
    Lines mine = {line, tile, turned};
    together(&mine, deal_matrices, place);
}

void multiply_tiles(TileElement element, const unsigned *a, const unsigned *b, float *c, Place place)
{
    Tiles mine = {element, a, b, c};
    together(&mine, multiply, place);
}

}   // namespace rollerc_interp
