// Windows of signals and banks of filters: constants that sizes make.
#include <inttypes.h>
#include <math.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"
#include "front/onnx/tensor.h"
#include "ir/eval.h"

static DType output_type(const Map *m)
{
    DType type;
    const char *problem = tensor_type((int)attribute_int(m, "output_datatype", 1), &type);
    if (problem)
        refuse(m, "to %s", problem);
    if (!is_real(type))
        refuse(m, "'output_datatype' is %s, and a real type is expected", dtype_info[type].name);
    return type;
}

static int64_t need_size(const Map *m, int input)
{
    Ints given = need_ints(m, input);
    if (given.count != 1 || given.items[0] < 1 || given.items[0] > 1 << 24)
        refuse(m, "'%s' is no size", need(m, input)->name);
    return given.items[0];
}

/* A cosine or a sum of some; a periodic one begins anew behind its end. */
void map_taper(Map *m)
{
    int64_t size = need_size(m, 0), period = attribute_int(m, "periodic", 1) ? size : size - 1;
    if (period < 1)
        refuse(m, "a symmetric window of one element");
    const char *point = fmt(m, "(2 * pi * cast(i, f64) / %" PRId64 ")", period);
    DType type = output_type(m);
    const char *value = expand(m, m->row->text, &(Filling){.operands = {point}});
    define(m, out(m, 0), type, &(Dims){1, {size}}, "i", fmt(m, "cast(%s, %s)", value, dtype_info[type].name));
}

// ---- a bank of triangles on the mel scale ----

typedef struct MelBank {
    int64_t bins, length, rate, rows;
    double low, high;   // in mel
} MelBank;

static double mel_of(double hertz) { return 2595 * log1p(hertz / 700) / log(10); }

/* The row of the spectrum in which the edge lies. */
static int64_t mel_edge(const Map *m, const MelBank *bank, int64_t index)
{
    double mel = bank->low + (double)index * (bank->high - bank->low) / (double)(bank->bins + 2);
    double hertz = 700 * expm1(mel / 2595 * log(10));
    double row = floor((double)(bank->length + 1) * hertz / (double)bank->rate);
    if (!(row >= 0 && row < (double)bank->rows))
        refuse(m, "a frequency beyond the spectrum");
    return (int64_t)row;
}

static MelBank mel_bank_of(const Map *m)
{
    MelBank bank = {.bins = need_size(m, 0), .length = need_size(m, 1), .rate = need_size(m, 2)};
    for (int i = 3; i < 5; i++)
        if (shape_count(&need_constant(m, i)->shape) != 1)
            refuse(m, "'%s' is no frequency", need(m, i)->name);
    bank.rows = bank.length / 2 + 1;
    bank.low = mel_of(constant_real(need(m, 3), 0));
    bank.high = mel_of(constant_real(need(m, 4), 0));
    if (bank.bins * bank.rows > 1 << 24)
        refuse(m, "%" PRId64 " x %" PRId64 " weights", bank.rows, bank.bins);
    return bank;
}

static void fill_triangle(const MelBank *bank, double *weights, int64_t bin, int64_t left, int64_t center,
                          int64_t right)
{
    if (left == center)
        weights[center * bank->bins + bin] = 1;
    for (int64_t row = left; row <= center && left < center; row++)
        weights[row * bank->bins + bin] = (double)(row - left) / (double)(center - left);
    for (int64_t row = center; row < right; row++)
        weights[row * bank->bins + bin] = (double)(right - row) / (double)(right - center);
}

void map_mel_weights(Map *m)
{
    MelBank bank = mel_bank_of(m);
    DType type = output_type(m);
    int64_t count = bank.rows * bank.bins;
    double *weights = NEW_ARRAY(m->arena, double, count);
    for (int64_t bin = 0; bin < bank.bins; bin++)
        fill_triangle(&bank, weights, bin, mel_edge(m, &bank, bin), mel_edge(m, &bank, bin + 1),
                      mel_edge(m, &bank, bin + 2));
    char *data = NEW_ARRAY(m->arena, char, count *constant_bytes(type));
    for (int64_t i = 0; i < count; i++)
        dtype_store(type, data, i, weights[i]);
    give(m, out(m, 0), type, (Dims){2, {bank.rows, bank.bins}}, data);
}
