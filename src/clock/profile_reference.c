#include "clock/profile_reference.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#include "base/diag.h"

enum {
    MAX_SAMPLE = 2000,
    BATCH = 16,             // elements that are evaluated between two looks at the clock
    DIMENSION_CHOICES = 4   // first, last, or (twice as often) any
};

static const double SECONDS = 0.2;   // of a processor, for one output and class; one batch at least

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

/* Of this process: others that keep the cores busy do not make the proof weaker. */
static double seconds_worked(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* As many as time allows: an element of a long reduction may take a second. */
static int64_t evaluate_sample(Evaluator *evaluator, const Sample *sample, Value *values)
{
    double end = seconds_worked() + SECONDS;
    int64_t done = 0;
    while (done < sample->count && (done == 0 || seconds_worked() < end)) {
        int64_t batch = done == 0 && sample->count > 2 ? 2 : BATCH;   // first and last whatever it takes
        batch = batch < sample->count - done ? batch : sample->count - done;
        evaluate(evaluator, sample->tensor, sample->elements + done, batch, values + done);
        done += batch;
    }
    return done;
}

static void *take(SharedMemory *shared, size_t bytes)
{
    void *taken = shared_take(shared, bytes);
    if (!taken)
        fatal(EXIT_MACHINE, "out of memory for what kernels are compared with");
    return taken;
}

ProfileReference *reference_new(Arena *arena, const Program *program, SharedMemory *shared)
{
    ProfileReference *reference = NEW(arena, ProfileReference);
    *reference =
        (ProfileReference){.program = program, .ready = take(shared, INPUT_CLASSES * sizeof(atomic_bool))};
    reference->samples = NEW_ARRAY(arena, Sample, program->output_count);
    for (int i = 0; i < program->output_count; i++) {
        Sample *sample = &reference->samples[i];
        sample->tensor = program->outputs[i];
        choose_elements(arena, sample);
        sample->evaluated = take(shared, INPUT_CLASSES * sizeof(int64_t));
        for (int class = 0; class < INPUT_CLASSES; class ++)
            sample->values[class] = take(shared, (size_t)sample->count * sizeof(Value));
    }
    for (int class = 0; class < INPUT_CLASSES; class ++)
        reference->inputs[class] = make_inputs(arena, program, class == 1 ? INPUT_WHOLE : INPUT_REAL);
    return reference;
}

void reference_evaluate(ProfileReference *reference, int class, EvalMath math, double most_work)
{
    Arena *arena = arena_new();
    Evaluator *evaluator =
        evaluator_new(arena, reference->program, (InputSource){input_element, reference->inputs[class]});
    evaluator_allow(evaluator, math);
    for (int i = 0; i < reference->program->output_count; i++) {
        Sample *sample = &reference->samples[i];
        if (!most_work || evaluator_work(evaluator, sample->tensor, false) <= most_work)
            sample->evaluated[class] = evaluate_sample(evaluator, sample, sample->values[class]);
    }
    evaluator_free(evaluator);
    arena_free(arena);
    reference->ready[class] = true;
}

bool reference_is_ready(const ProfileReference *reference)
{
    bool ready = true;
    for (int class = 0; class < INPUT_CLASSES; class ++)
        ready &= reference->ready[class];
    return ready;
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
    for (int64_t i = 0; i < sample->evaluated[class]; i++) {
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
