// What a run of a kernel reads: where its tensors lie and what they hold.
#include <string.h>

#include "codegen/codegen.h"
#include "hal/worker.h"
#include "ir/prepared.h"
#include "prove/verify_parts.h"

static const double SHARED_WORK = 3e7;   // of a tensor that two processors make: some tenths of a second
enum { SHARE_SECONDS = 600 };            // the worker dies with its parent, sooner

// ---- where tensors lie ----

static void add_tensor(Proof *proof, const Tensor *tensor, int buffer, int64_t offset, bool written)
{
    proof->sources[proof->tensor_count] = tensor;
    proof->tensors[proof->tensor_count++] = (RuntimeTensor){
        .name = tensor->name,
        .buffer = buffer,
        .offset = offset,
        .bytes = tensor_bytes(tensor),
        .written = written,
        .costly = !written && verify_is_costly(proof, tensor),
    };
}

static void add_buffer(Proof *proof, const char *name, BufferBeside which, int64_t bytes)
{
    if (bytes > 0)
        proof->tensors[proof->tensor_count++] = (RuntimeTensor){
            .name = name,
            .buffer = buffer_beside(proof->kernel->program, which),
            .bytes = bytes,
            .written = true,
        };
}

/* The whole program: inputs and the file of weights are read, all else is written. */
static void place_program(Proof *proof)
{
    const Program *program = proof->kernel->program;
    for (int i = 0; i < argument_count(program); i++)
        if (argument_tensor(program, i)->is_weight)
            add_tensor(proof, argument_tensor(program, i), buffer_beside(program, BUFFER_WEIGHTS),
                       weight_offset(program, i), false);
        else
            add_tensor(proof, argument_tensor(program, i), i, 0, i >= program->input_count);
    add_buffer(proof, "workspace", BUFFER_WORKSPACE, proof->kernel->workspace_bytes);
    add_buffer(proof, "prepared", BUFFER_PREPARED, proof->kernel->prepared_bytes);
}

/* From the first row's part to the last row's. */
static void set_part(RuntimeTensor *tensor, const LaunchArg *arg)
{
    tensor->first = arg->row_first;
    tensor->end = arg->bytes - arg->row + arg->row_end;
}

/* What the last tensor is made of in place. */
static void set_under(Proof *proof, const Tensor *tensor)
{
    proof->under[proof->tensor_count - 1] = tensor;
    proof->tensors[proof->tensor_count - 1].costly = true;
}

/* One launch: what it reads was made before. */
static void place_launch(Proof *proof, const Launch *launch)
{
    for (int i = 0; i < launch->arg_count; i++) {
        const LaunchArg *arg = &launch->args[i];
        int other = launch_in_place(launch, i);
        if (other >= 0 && !arg->written)
            continue;   // it comes with the sum
        add_tensor(proof, arg->tensor, arg->buffer, arg->offset, arg->written);
        if (other >= 0)
            set_under(proof, launch->args[other].tensor);
        if (arg->row)
            set_part(&proof->tensors[proof->tensor_count - 1], arg);
    }
}

void verify_place(Proof *proof)
{
    const Program *program = proof->kernel->program;
    int count = argument_count(program) + BUFFERS_BESIDE + (proof->launch ? proof->launch->arg_count : 0);
    proof->tensors = NEW_ARRAY(proof->arena, RuntimeTensor, count);
    proof->sources = NEW_ARRAY(proof->arena, const Tensor *, count);
    proof->under = NEW_ARRAY(proof->arena, const Tensor *, count);
    proof->buffer_bytes = kernel_buffers(proof->arena, proof->kernel);
    if (proof->launch)
        place_launch(proof, proof->launch);
    else
        place_program(proof);
}

// ---- reference values ----

/* Outputs are judged by what the user wrote, which the kernel's program holds too. */
void verify_reference(const Proof *proof, const Tensor *tensor, const int64_t *elements, int64_t count,
                      Value *values)
{
    if (proof->launch)
        evaluate(proof->told.reference, tensor, elements, count, values);
    else
        evaluate(proof->truth, proof->program->tensors[tensor->id], elements, count, values);
}

int64_t verify_elements_in(const Tensor *tensor, int64_t bytes)
{
    return bytes * 8 / dtype_info[tensor->dtype].bits;
}

static RandomInputs random_of(const Proof *proof)
{
    return (RandomInputs){proof->program, proof->options->seed, proof->kind};
}

void verify_table_set(InputTable *table, DType type, int64_t position, double value)
{
    table->bytes = dtype_info[type].bits / 8;
    table->values[position] =
        dtype_info[type].is_real ? dtype_round(type, value) : value;   // as it lies in memory
    dtype_store(type, table->stored, position, value);
}

InputTable *verify_inputs(const Proof *proof)
{
    const Program *program = proof->program;
    RandomInputs random = random_of(proof);
    if (random.kind != INPUT_REAL && random.kind != INPUT_WHOLE)
        return NULL;
    InputTable *tables = NEW_ARRAY(proof->arena, InputTable, program->input_count);
    for (int i = 0; i < program->input_count; i++)
        for (int64_t k = 0; k < INPUT_VALUES; k++)
            verify_table_set(&tables[i], program->inputs[i]->dtype, k, random_input_element(&random, i, k));
    return tables;
}

static inline size_t table_position(int64_t element)
{
    uint64_t x = (uint64_t)element * 0x9e3779b97f4a7c15u;   // splitmix64's constants
    return (size_t)((x ^ x >> 30) * 0xbf58476d1ce4e5b9u >> 52);
}

static double table_element(void *context, int input, int64_t element)
{
    const InputTable *tables = context;
    return tables[input].values[table_position(element)];
}

InputSource verify_table_source(InputTable *tables) { return (InputSource){table_element, tables}; }

/* What the file of weights holds of the input; NULL: it is drawn. */
static const char *weights_of(const Proof *proof, int input)
{
    const char *file = proof->options->weights;
    return file && proof->program->inputs[input]->is_weight ? file + weight_offset(proof->program, input)
                                                            : NULL;
}

static double drawn_element(const Proof *proof, int input, int64_t element)
{
    RandomInputs random = random_of(proof);
    return proof->inputs ? table_element(proof->inputs, input, element)
                         : random_input_element(&random, input, element);
}

/* An InputSource: weights are those of a file. */
static double given_element(void *context, int input, int64_t element)
{
    const Proof *proof = context;
    const char *weights = weights_of(proof, input);
    return weights ? dtype_load(proof->program->inputs[input]->dtype, weights, element)
                   : drawn_element(proof, input, element);
}

InputSource verify_source(const Proof *proof)
{
    if (proof->options->weights)
        return (InputSource){given_element, (Proof *)proof};
    if (proof->inputs)
        return verify_table_source(proof->inputs);
    return random_input_source(proof->arena, random_of(proof));
}

static void fill_from_table(const InputTable *table, int64_t first, int64_t count, void *memory)
{
    for (int64_t i = 0; i < count; i++) {
        size_t k = table_position(first + i);
        switch (table->bytes) {
        case 1: ((uint8_t *)memory)[i] = table->stored[k]; break;
        case 2: ((uint16_t *)memory)[i] = ((const uint16_t *)table->stored)[k]; break;
        case 4: ((uint32_t *)memory)[i] = ((const uint32_t *)table->stored)[k]; break;
        case 8: ((uint64_t *)memory)[i] = ((const uint64_t *)table->stored)[k]; break;
        default: dtype_store(DTYPE_B1, memory, i, table->values[k]);
        }
    }
}

static void fill_input(const Proof *proof, int input, int64_t first, int64_t count, void *memory)
{
    DType type = proof->program->inputs[input]->dtype;
    const char *weights = weights_of(proof, input);
    if (weights) {
        for (int64_t i = 0; i < count; i++)
            dtype_store(type, memory, i, dtype_load(type, weights, first + i));
        return;
    }
    if (proof->inputs) {
        fill_from_table(&proof->inputs[input], first, count, memory);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        dtype_store(type, memory, i, proof->source.element(proof->source.context, input, first + i));
}

static void fill_made(const Proof *proof, const Tensor *tensor, int64_t first, int64_t count, void *memory)
{
    Value values[VERIFY_BATCH];
    int64_t elements[VERIFY_BATCH];
    for (int64_t done = 0; done < count; done += VERIFY_BATCH) {
        int64_t batch = count - done < VERIFY_BATCH ? count - done : VERIFY_BATCH;
        for (int64_t i = 0; i < batch; i++)
            elements[i] = first + done + i;
        verify_reference(proof, tensor, elements, batch, values);
        for (int64_t i = 0; i < batch; i++)
            value_store(tensor->dtype, memory, done + i, values[i]);
    }
}

/* Some elements that a worker makes. */
typedef struct Share {
    const Proof *proof;
    const Tensor *tensor;
    int64_t first, count;
    void *memory;
} Share;

/* What a second processor makes. */
static void make_share(void *context)
{
    const Share *share = context;
    fill_made(share->proof, share->tensor, share->first, share->count, share->memory);
}

/* All of a tensor that an earlier launch made, its second half beside the first. */
static void make_whole(const Proof *proof, const Tensor *tensor, void *made)
{
    int64_t all = tensor_elements(tensor), half = all / 2 / 32 * 32;   // words of b1 are not shared
    size_t offset = (size_t)(half * dtype_info[tensor->dtype].bits / 8);
    size_t bytes = (size_t)tensor_bytes(tensor) - offset;
    Share share = {proof, tensor, half, all - half, NULL};
    Worker worker = {.state = WORKER_IDLE};
    bool large = verify_read_work(proof, tensor) * (double)all > SHARED_WORK && half > 0;
    if (large && (share.memory = worker_share(bytes)))
        worker_start(&worker, &(WorkerLimits){.seconds = SHARE_SECONDS}, make_share, &share);
    fill_made(proof, tensor, 0, half, made);
    worker_wait(&worker, 1);
    if (worker.state == WORKER_DONE)
        memcpy((char *)made + offset, share.memory, bytes);
    else
        fill_made(proof, tensor, half, all - half, (char *)made + offset);
    if (share.memory)
        worker_unshare(share.memory, bytes);
}

void verify_prepare(Proof *proof)
{
    Told *told = &proof->told;
    for (int i = 0; i < proof->launch->arg_count; i++) {
        const LaunchArg *arg = &proof->launch->args[i];
        if (arg->written || told->made[arg->tensor->id] || !verify_is_prepared(proof, arg->tensor))
            continue;
        void *made = arena_alloc(told->arena, (size_t)tensor_bytes(arg->tensor));
        make_whole(proof, arg->tensor, made);
        told->made[arg->tensor->id] = made;
    }
}

/* Of the tensor's elements those that the bytes hold, from `first` on. */
static int64_t elements_of(const Tensor *tensor, int64_t offset, int64_t bytes, int64_t *first)
{
    int64_t all = tensor_elements(tensor), count = verify_elements_in(tensor, bytes);
    *first = verify_elements_in(tensor, offset);
    return *first + count < all ? count : all - *first;   // b1: the last word may be ragged
}

/* Each element is what the next one is in the call that is judged. */
void verify_fill_before(void *context, int index, int64_t offset, int64_t bytes, void *memory)
{
    Proof *proof = context;
    const Program *program = proof->kernel->program;
    int input = verify_position(program->inputs, program->input_count, proof->sources[index]);
    int64_t first, count = elements_of(proof->sources[index], offset, bytes, &first);
    memset(memory, 0, (size_t)bytes);
    fill_input(proof, input, first + 1, count, memory);
}

/* A RuntimeFill: the tensor's values, wherever they come from. */
void verify_fill(void *context, int index, int64_t offset, int64_t bytes, void *memory)
{
    Proof *proof = context;
    const Program *program = proof->kernel->program;
    const Tensor *tensor = proof->under[index] ? proof->under[index] : proof->sources[index];
    int64_t first, count = elements_of(tensor, offset, bytes, &first);
    memset(memory, 0, (size_t)bytes);
    int input = verify_position(program->inputs, program->input_count, tensor);
    if (input >= 0)
        fill_input(proof, input, first, count, memory);
    else if (proof->launch && proof->told.given[tensor->id])
        fill_from_table(proof->stand_ins.tables[tensor->id], first, count, memory);
    else if (proof->launch && proof->told.made[tensor->id])
        memcpy(memory, (char *)proof->told.made[tensor->id] + offset, (size_t)bytes);
    else
        fill_made(proof, tensor, first, count, memory);
}
