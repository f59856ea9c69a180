#include <math.h>

#include "ir/eval.h"

static const int64_t MOST_DRAWN = 1 << 20;   // 8 MB: elements of a program's inputs that are kept

const char *const input_kind_name[INPUT_KINDS] = {
    [INPUT_REAL] = "random real inputs",
    [INPUT_WHOLE] = "random whole-number inputs",
    [INPUT_NEGATIVE] = "negative inputs",
    [INPUT_HIGH] = "zeros but for a 3 in each row",
    [INPUT_LOW] = "zeros but for a -3 in each row",
    [INPUT_ENDS] = "zeros but for the ends",
    [INPUT_NAN] = "a NaN in each row",
    [INPUT_INFINITE] = "an infinity in each row",
    [INPUT_DENORMAL] = "denormal inputs",
    [INPUT_ROWS] = "constant rows",
};

/* splitmix64's finaliser (Steele, Lea, Flood 2014). */
static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t hash_of(uint64_t key, int64_t number)
{
    return mixed(key + 0x9e3779b97f4a7c15u * ((uint64_t)number + 1));
}

static double random_number(DType type, uint64_t hash, bool whole)
{
    if (type == DTYPE_B1)
        return (double)(hash >> 63);
    if (!dtype_info[type].is_real)
        return (double)(hash >> 60) - (type == DTYPE_U8 ? 0 : 8);
    if (whole)
        return (double)(hash % 9) - 4;
    double value = dtype_round(type, (double)(hash >> 11) * 0x1p-52 - 1);
    return value < 1 ? value : -1;   // 0.9999 is 1 in bf16
}

/* Three of four lie in the dimension; the others are its ends, just outside, and as far as the type goes. */
static double random_index(DType type, int64_t size, uint64_t hash)
{
    double least = type == DTYPE_U8 ? 0 : -ldexp(1, dtype_info[type].bits - 1), most = -least - 1;
    double farthest = type == DTYPE_I64 ? 0x1p62 : type == DTYPE_U8 ? 255 : most;   // a double holds it
    const double ends[] = {0, (double)size - 1, -1, (double)size, least, farthest, 0x1p32 + 1, 1 - 0x1p32};
    uint64_t choice = hash >> 59;
    double index = choice < sizeof ends / sizeof *ends ? ends[choice] : (double)(hash % (uint64_t)size);
    return fmin(fmax(index, least), farthest);
}

static double smallest(DType type)
{
    return type == DTYPE_F64    ? 0x1p-1074
           : type == DTYPE_F16  ? 0x1p-24
           : type == DTYPE_BF16 ? 0x1p-133
                                : 0x1p-149;
}

static bool is_unsigned(DType type) { return type == DTYPE_U8 || type == DTYPE_B1; }

/* Elements of a row, the innermost dimension. */
static int64_t row_length(const Tensor *tensor) { return tensor->rank ? tensor->shape[tensor->rank - 1] : 1; }

/* One element after each row's length and one more: they walk through all columns, and along a column too
   there is one of so many:

       . . # .
       . # . .
       # . . .
       . . . .
       . . . # */
static bool input_is_special(const Tensor *tensor, uint64_t key, int64_t element)
{
    int64_t length = row_length(tensor);
    return element % (length + 1) == (int64_t)(mixed(key) % (uint64_t)length);
}

static double at_ends(const Tensor *tensor, int64_t element)
{
    bool low = element == 0, high = element == tensor_elements(tensor) - 1;
    if (is_unsigned(tensor->dtype))
        return low || high;
    return high ? 3 : low ? -3 : 0;
}

double random_input_element(void *random_inputs, int input, int64_t element)
{
    const RandomInputs *random = random_inputs;
    const Tensor *tensor = random->program->inputs[input];
    DType type = tensor->dtype;
    bool real = dtype_info[type].is_real;
    uint64_t key = mixed(random->seed + 0x9e3779b97f4a7c15u * ((uint64_t)input + 1));
    uint64_t hash = hash_of(key, random->kind == INPUT_ROWS ? element / row_length(tensor) : element);
    bool is_index = tensor->indexes && random->kind != INPUT_NEGATIVE;
    double value = is_index ? random_index(type, tensor->indexes, hash)
                            : random_number(type, hash, random->kind == INPUT_WHOLE);
    switch (random->kind) {
    case INPUT_NEGATIVE:
        return is_unsigned(type) ? value : dtype_round(type, -fabs(value) - (real ? 0.5 : 1));
    case INPUT_HIGH: return !input_is_special(tensor, key, element) ? 0 : type == DTYPE_B1 ? 1 : 3;
    case INPUT_LOW:
        return input_is_special(tensor, key, element) == is_unsigned(type) ? 0 : is_unsigned(type) ? 1 : -3;
    case INPUT_ENDS: return at_ends(tensor, element);
    case INPUT_NAN: return real && input_is_special(tensor, key, element) ? (double)NAN : value;
    case INPUT_INFINITE:
        if (real && element / row_length(tensor) % 4 == 3)
            return -(double)INFINITY;
        return real && input_is_special(tensor, key, element) ? (double)(element % 2 ? INFINITY : -INFINITY)
                                                              : value;
    case INPUT_DENORMAL: return real ? floor(value * 8) * smallest(type) : value;
    default: return value;
    }
}

static double drawn_element(void *context, int input, int64_t element)
{
    double *const *drawn = context;
    return drawn[input][element];
}

InputSource random_input_source(Arena *arena, RandomInputs inputs)
{
    const Program *program = inputs.program;
    int64_t elements = 0;
    RandomInputs *random = NEW(arena, RandomInputs);
    *random = inputs;
    for (int i = 0; i < program->input_count; i++)
        elements += tensor_elements(program->inputs[i]);
    if (elements > MOST_DRAWN)
        return (InputSource){random_input_element, random};
    double **drawn = NEW_ARRAY(arena, double *, program->input_count);
    for (int i = 0; i < program->input_count; i++) {
        int64_t count = tensor_elements(program->inputs[i]);
        drawn[i] = NEW_ARRAY(arena, double, count);
        for (int64_t e = 0; e < count; e++)
            drawn[i][e] = random_input_element(random, i, e);
    }
    return (InputSource){drawn_element, drawn};
}

bool input_kind_applies(const Program *program, InputKind kind)
{
    bool for_reals = kind == INPUT_NAN || kind == INPUT_INFINITE || kind == INPUT_DENORMAL;
    bool any = !for_reals;
    for (int i = 0; i < program->input_count; i++)
        any |= dtype_info[program->inputs[i]->dtype].is_real;
    return any;
}
