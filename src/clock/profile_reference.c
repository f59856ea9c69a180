#include "clock/profile_reference.h"

#include <math.h>
#include <stdio.h>

#include "base/stopwatch.h"

enum {
    MAX_SAMPLE = 2000,
    BATCH = 16,             // elements that are evaluated between two looks at the clock
    DIMENSION_CHOICES = 4   // first, last, or (twice as often) any
};

static const double SECONDS = 0.2;   // of the reference, for one output and class; one batch at least

static const char *const input_class_name[INPUT_CLASSES] = {"random real inputs",
                                                            "random whole-number inputs"};

// ---- inputs ----

/* The same as input_position() in src/hal/gpu/helpers.cu. */
static size_t input_position(int64_t element)
{
    uint64_t x = (uint64_t)element * 0x9e3779b97f4a7c15u;   // splitmix64's constants
    return (size_t)((x ^ x >> 30) * 0xbf58476d1ce4e5b9u >> 52);
}

/* An InputSource. */
static double input_element(void *context, int input, int64_t element)
{
    const ProfileInput *inputs = context;
    return inputs[input].values[input_position(element)];
}

static void store(DType type, ProfileInput *input, int64_t position)
{
    if (type == DTYPE_B1)
        input->stored[position] = input->values[position] != 0;
    else
        dtype_store(type, input->stored, position, input->values[position]);
}

static ProfileInput *make_inputs(Arena *arena, const Program *program, InputKind kind)
{
    RandomInputs random = {program, 0, kind};
    ProfileInput *inputs = NEW_ARRAY(arena, ProfileInput, program->input_count);
    for (int i = 0; i < program->input_count; i++) {
        inputs[i].element_bytes = dtype_info[program->inputs[i]->dtype].bits / 8;
        for (int64_t k = 0; k < GPU_TABLE; k++) {
            inputs[i].values[k] = random_input_element(&random, i, k);
            store(program->inputs[i]->dtype, &inputs[i], k);
        }
    }
    return inputs;
}

// ---- which elements ----

/* A number in [0, below) from a counter: the same on every machine. */
static int64_t pick(uint64_t *counter, int64_t below)
{
    uint64_t x = ++*counter * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (int64_t)((x ^ x >> 31) % (uint64_t)below);
}

static int64_t pick_element(const Tensor *tensor, uint64_t *counter)
{
    int64_t element = 0;
    for (int d = 0; d < tensor->rank; d++) {
        int64_t size = tensor->shape[d], choice = pick(counter, DIMENSION_CHOICES);
        int64_t at = choice == 0 ? 0 : choice == 1 ? size - 1 : pick(counter, size);
        element = element * size + at;
    }
    return element;
}

/* Of a part of a concatenation one that lies in it. */
static int64_t in_part(const Tensor *tensor, int64_t element)
{
    if (tensor_has(tensor, element))
        return element;
    int64_t at = element % tensor->part_stride;
    return element - at + tensor->part_first + at % (tensor->part_end - tensor->part_first);
}

static void choose_elements(Arena *arena, Sample *sample)
{
    int64_t all = tensor_elements(sample->tensor);
    uint64_t counter = (uint64_t)sample->tensor->id << 32;
    sample->count = all < MAX_SAMPLE ? all : MAX_SAMPLE;
    sample->elements = NEW_ARRAY(arena, int64_t, sample->count);
    for (int64_t i = 0; i < sample->count; i++) {
        int64_t element = all <= MAX_SAMPLE ? i
                          : i < 2           ? i * (all - 1)
                                            : pick_element(sample->tensor, &counter);
        sample->elements[i] = in_part(sample->tensor, element);
    }
}

// ---- their values ----

/* As many as time allows: an element of a long reduction may take a second. */
static void evaluate_sample(Evaluator *evaluator, Sample *sample, Value *values)
{
    double end = seconds_now() + SECONDS;
    int64_t done = 0;
    while (done < sample->count && (done == 0 || seconds_now() < end)) {
        int64_t batch = done == 0 && sample->count > 2 ? 2 : BATCH;   // first and last whatever it takes
        batch = batch < sample->count - done ? batch : sample->count - done;
        evaluate(evaluator, sample->tensor, sample->elements + done, batch, values + done);
        done += batch;
    }
    sample->count = done;
}

ProfileReference *profile_reference(Arena *arena, const Program *program, EvalMath math, double most_work)
{
    ProfileReference *reference = NEW(arena, ProfileReference);
    *reference = (ProfileReference){.program = program};
    reference->samples = NEW_ARRAY(arena, Sample, program->output_count);
    for (int i = 0; i < program->output_count; i++) {
        reference->samples[i].tensor = program->outputs[i];
        choose_elements(arena, &reference->samples[i]);
    }
    for (int class = 0; class < INPUT_CLASSES; class++) {
        reference->inputs[class] = make_inputs(arena, program, class == 1 ? INPUT_WHOLE : INPUT_REAL);
        InputSource source = {input_element, reference->inputs[class]};
        Evaluator *evaluator = evaluator_new(arena, program, source);
        evaluator_allow(evaluator, math);
        for (int i = 0; i < program->output_count; i++) {
            Sample *sample = &reference->samples[i];
            if (most_work && evaluator_work(evaluator, sample->tensor, false) > most_work)
                sample->count = 0;
            sample->values[class] = NEW_ARRAY(arena, Value, sample->count + 1);
            evaluate_sample(evaluator, sample, sample->values[class]);
        }
        evaluator_free(evaluator);
    }
    return reference;
}

// ---- comparison ----

static double element_seen(const Sample *sample, const void *memory, int64_t i)
{
    if (sample->tensor->dtype == DTYPE_B1)
        return ((const uint32_t *)memory)[i] >> sample->elements[i] % 32 & 1;
    return dtype_load(sample->tensor->dtype, memory, i);
}

/* Whether the value is legal; how far it is off goes into the comparison. */
static bool judge(DType type, double seen, Value expected, Comparison *comparison)
{
    if (isnan(expected.real) || isnan(seen))
        return isnan(expected.real) && isnan(seen);
    double low = dtype_round(type, expected.real - expected.bound);
    double high = dtype_round(type, expected.real + expected.bound);
    double error = fabs(seen - expected.real), allowed = fmax(high - expected.real, expected.real - low);
    if (isfinite(error))
        comparison->max_abs = fmax(comparison->max_abs, error);
    if (isfinite(error) && isfinite(allowed) && allowed > 0)
        comparison->max_of_bound = fmax(comparison->max_of_bound, error / allowed);
    return value_allows(type, seen, expected);
}

bool sample_compare(const Sample *sample, int class, const void *memory, Comparison *comparison, char *reason,
                    size_t reason_bytes)
{
    for (int64_t i = 0; i < sample->count; i++) {
        Value expected = sample->values[class][i];
        double seen = element_seen(sample, memory, i);
        comparison->elements++;
        if (!isfinite(expected.bound)) {
            comparison->unjudged++;
        } else if (!judge(sample->tensor->dtype, seen, expected, comparison)) {
            snprintf(reason, reason_bytes, "%s at flat offset %lld is %.9g, expected %.9g within %.3g (%s)",
                     tensor_shown(sample->tensor)->name, (long long)sample->elements[i], seen, expected.real,
                     expected.bound, input_class_name[class]);
            return false;
        }
    }
    return true;
}
