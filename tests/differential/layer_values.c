// Each definition of a program by itself, on values that somebody gives of what it reads: models that are too large to be run whole.
//
//   layer_values TEXT.te WEIGHTS|- [--samples N] < LIST       a line of the list: NAME of a tensor, FILE with its elements; a tab between
//
// The inputs that the list does not name are weights: they lie in WEIGHTS, each at the next multiple of 256. Of every definition
// on the list some elements are evaluated, with all other tensors as given, and compared with its own. A last line says how many
// definitions and elements there were; a line before it is `FAIL NAME: why`.
#include <argp.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/diag.h"
#include "front/lower.h"
#include "front/parse.h"
#include "ir/eval.h"
#include "ir/prepared.h"

enum { MAX_LINE = 4096, MAX_SAMPLES = 4096 };

/* Beside the bound of a definition: its values come from a library that rounds to the same type, and whose functions
   err by up to 4 units, as ours may; and it may add up what cancels, as x*scale + (shift - mean*scale) does, so these
   are units of the largest element that is looked at. */
enum { UNITS = 8 };

typedef struct File {
    const char *bytes;
    size_t length;
} File;

typedef struct Layers {
    Arena *arena;
    const char *text, *weights;
    int samples;
    Program *program;
    File *known;   // by tensor id; `bytes` NULL: nobody says
    int64_t definitions, elements, unjudged, failures;
} Layers;

static File map_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0 || info.st_size == 0)
        fatal(EXIT_INPUT, "cannot read %s", path);
    void *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        fatal(EXIT_MACHINE, "cannot map %s", path);
    close(fd);
    return (File){bytes, (size_t)info.st_size};
}

// ---- what is known ----

static const Tensor *tensor_named(const Program *program, const char *name)
{
    for (int t = 0; t < program->tensor_count; t++)
        if (strcmp(program->tensors[t]->name, name) == 0)
            return program->tensors[t];
    return NULL;
}

/* Conditions are given as bytes. */
static size_t given_bytes(const Tensor *tensor)
{
    return (size_t)(tensor->dtype == DTYPE_B1 ? tensor_elements(tensor) : tensor_bytes(tensor));
}

/* What the program has no tensor of, it has folded, or sees as a view. */
static void read_list(Layers *layers)
{
    char line[MAX_LINE], *rest;
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        const char *name = strtok_r(line, "\t", &rest), *path = strtok_r(NULL, "\t", &rest);
        if (!name || !path)
            fatal(EXIT_USAGE, "a line of the list has two fields, with a tab between them");
        const Tensor *tensor = tensor_named(layers->program, name);
        if (!tensor)
            continue;
        File file = map_file(path);
        if (file.length != given_bytes(tensor))
            fatal(EXIT_INPUT, "'%s' has %zu bytes, and %zu are given", name, given_bytes(tensor),
                  file.length);
        layers->known[tensor->id] = file;
    }
}

static void place_weights(Layers *layers)
{
    File weights = strcmp(layers->weights, "-") == 0 ? (File){0} : map_file(layers->weights);
    size_t at = 0;
    for (int i = 0; i < layers->program->input_count; i++) {
        const Tensor *input = layers->program->inputs[i];
        if (layers->known[input->id].bytes)
            continue;
        at = (size_t)round_up((int64_t)at, WEIGHT_ALIGNMENT);
        layers->known[input->id] = (File){weights.bytes + at, given_bytes(input)};
        at += given_bytes(input);
    }
    if (at > weights.length)
        fatal(EXIT_INPUT, "the weights take %zu bytes, and their file has %zu", at, weights.length);
}

static double known_element(const Layers *layers, const Tensor *tensor, int64_t element)
{
    const char *bytes = layers->known[tensor->id].bytes;
    return dtype_load(tensor->dtype == DTYPE_B1 ? DTYPE_U8 : tensor->dtype, bytes, element);
}

/* `number` is a tensor's. */
static double element_of_tensor(void *context, int number, int64_t element)
{
    const Layers *layers = context;
    return known_element(layers, layers->program->tensors[number], element);
}

static double element_of_input(void *context, int input, int64_t element)
{
    const Layers *layers = context;
    return known_element(layers, layers->program->inputs[input], element);
}

// ---- one definition ----

/* Of the last place of a number of the type; 0: of integers. */
static double unit(DType type, double value)
{
    static const int digits[DTYPE_COUNT] = {
        [DTYPE_F64] = 52, [DTYPE_F32] = 23, [DTYPE_F16] = 10, [DTYPE_BF16] = 7};
    return digits[type] ? ldexp(fabs(value), -digits[type]) : 0;
}

static bool is_near(const Tensor *tensor, double given, Value value, double largest)
{
    double allowed = 2 * value.bound + UNITS * unit(tensor->dtype, largest);
    return given == value.real || (isnan(given) && isnan(value.real)) || fabs(given - value.real) <= allowed;
}

static void compare(Layers *layers, const Tensor *tensor, const int64_t *elements, int count,
                    const Value *values)
{
    layers->definitions++;
    layers->elements += count;
    double largest = 0;
    for (int i = 0; i < count; i++)
        largest = isfinite(values[i].real) ? fmax(largest, fabs(values[i].real)) : largest;
    for (int i = 0; i < count; i++) {
        double given = known_element(layers, tensor, elements[i]);
        layers->unjudged += !isfinite(values[i].bound);
        if (!isfinite(values[i].bound) || is_near(tensor, given, values[i], largest))
            continue;
        printf("FAIL %s: element %" PRId64 " is %.9g within %.3g, and %.9g is given\n", tensor->name,
               elements[i], values[i].real, values[i].bound, given);
        layers->failures++;
        return;
    }
}

static void evaluate_layer(Layers *layers, const Tensor *tensor)
{
    Program *program = layers->program;
    Evaluator *evaluator = evaluator_new(layers->arena, program, (InputSource){element_of_input, layers});
    for (int o = 0; o < program->op_count; o++)
        if (program->ops[o]->out != tensor && layers->known[program->ops[o]->out->id].bytes)
            evaluator_replace(evaluator, program->ops[o]->out, (InputSource){element_of_tensor, layers},
                              program->ops[o]->out->id);
    int64_t total = tensor_elements(tensor), elements[MAX_SAMPLES];
    int count = total < layers->samples ? (int)total : layers->samples;
    Value values[MAX_SAMPLES];
    for (int64_t i = 0; i < count; i++)   // both ends, and evenly between, a little off the row each time
        elements[i] =
            i == 0 || i == count - 1 ? (i ? total - 1 : 0) : (i * (total / count) + i * 7919) % total;
    evaluate(evaluator, tensor, elements, count, values);
    compare(layers, tensor, elements, count, values);
    evaluator_free(evaluator);
}

// ---- the command line ----

static const struct argp_option options[] = {
    {"samples", 'n', "N", 0, "elements of a definition (default 64)", 0},
    {0},
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    Layers *layers = state->input;
    switch (key) {
    case 'n': layers->samples = atoi(text) < MAX_SAMPLES ? atoi(text) : MAX_SAMPLES; return 0;
    case ARGP_KEY_ARG:
        *(state->arg_num ? &layers->weights : &layers->text) = text;
        return state->arg_num > 1 ? ARGP_ERR_UNKNOWN : 0;
    case ARGP_KEY_END: return layers->weights ? 0 : EINVAL;
    }
    return ARGP_ERR_UNKNOWN;
}

int main(int argc, char **argv)
{
    Layers layers = {.arena = arena_new(), .samples = 64};
    argp_parse(&(struct argp){.options = options, .parser = parse_option, .args_doc = "TEXT.te WEIGHTS"},
               argc, argv, 0, NULL, &layers);
    layers.program =
        lower(layers.arena, parse(layers.arena, lex(layers.arena, source_read(layers.arena, layers.text))),
              NULL, 0);
    layers.known = NEW_ARRAY(layers.arena, File, layers.program->tensor_count);
    read_list(&layers);
    place_weights(&layers);
    for (int o = 0; o < layers.program->op_count; o++)
        if (layers.known[layers.program->ops[o]->out->id].bytes)
            evaluate_layer(&layers, layers.program->ops[o]->out);
    printf("%" PRId64 " definitions, %" PRId64 " elements, %" PRId64 " too close to call, %" PRId64
           " failed\n",
           layers.definitions, layers.elements, layers.unjudged, layers.failures);
    return layers.failures || !layers.definitions ? 1 : 0;
}
