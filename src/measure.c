#include "measure.h"

#include <math.h>
#include <string.h>

#include "base/strbuf.h"
#include "hal/runtime.h"
#include "ir/eval.h"

enum {
    BATCH = 1024,     // elements that are evaluated at a time
    MIN_BLOCKS = 2,   // of a sampled launch: the first and the last
    MAX_BLOCKS = 32,
    INPUT_VALUES = 1 << 12,
    LOOKUP_WORK = 30,       // of the reference for one element, before any arithmetic
    PAGE_ELEMENTS = 1024,   // of a page that is made when one of them is read
    HANG_SECONDS = 60
};

static const double WHOLE_WORK =
    3e7;   // about a second on the interpreter, and one for the reference
static const double SAMPLE_WORK = 3e6;          // of one sampled launch
static const double CHECK_WORK = 3e6;           // of the reference for what it wrote
static const int64_t WHOLE_BYTES = 256 << 20;   // of all buffers

/* Whole numbers make sums exact: no rounding can hide a wrong element. The second run goes through
   blocks and threads in the opposite order and finds other bytes where nothing was written. */
typedef struct InputClass {
    const char *name;
    bool integers;
    uint8_t poison;
    bool reverse;
} InputClass;

static const InputClass CLASSES[] = {
    {"random real inputs", false, 0xff, false},
    {"random whole-number inputs", true, 0x00, true},
};
enum { CLASS_COUNT = sizeof CLASSES / sizeof *CLASSES };

/* An input's elements are drawn from a few random ones by a hash of their position: gigabytes are
 * filled in seconds. */
typedef struct InputTable {
    int64_t bytes;   // of an element in memory; 0: b1
    double values[INPUT_VALUES];
    _Alignas(8) unsigned char stored[INPUT_VALUES * 8];   // the same as they lie in memory
} InputTable;

/* One run: a part of the kernel on one class of inputs. */
typedef struct Proof {
    Arena *arena;
    const Program *program;
    const Kernel *kernel;
    const RuntimeModule *module;
    const VerifyOptions *options;
    const InputClass *class;
    InputTable *inputs;        // one for each
    Evaluator *truth, *plan;   // of `program`; of the kernel's, with the temporaries of the plan
    const Launch *launch;      // NULL: all of them
    RuntimeTensor *tensors;
    const Tensor **sources;   // one for each of `tensors`
    int tensor_count;
    int64_t *buffer_bytes;
    VerifyReport *report;
} Proof;

// ---- where tensors lie ----

static int position(Tensor *const *list, int count, const Tensor *tensor)
{
    for (int i = 0; i < count; i++)
        if (list[i] == tensor)
            return i;
    return -1;
}

/* Arguments come in the order of the inputs, then the outputs; the workspace follows. */
static int workspace_buffer(const Program *program)
{
    return program->input_count + program->output_count;
}

static void add_tensor(Proof *proof, const Tensor *tensor, int buffer, int64_t offset,
                       bool written)
{
    proof->sources[proof->tensor_count] = tensor;
    proof->tensors[proof->tensor_count++] = (RuntimeTensor){
        .name = tensor->name,
        .buffer = buffer,
        .offset = offset,
        .bytes = tensor_bytes(tensor),
        .written = written,
    };
}

/* The whole program: inputs are read, outputs and workspace written. */
static void place_program(Proof *proof)
{
    const Program *program = proof->kernel->program;
    for (int i = 0; i < program->input_count; i++)
        add_tensor(proof, program->inputs[i], i, 0, false);
    for (int i = 0; i < program->output_count; i++)
        add_tensor(proof, program->outputs[i], program->input_count + i, 0, true);
    if (proof->kernel->workspace_bytes == 0)
        return;
    proof->tensors[proof->tensor_count++] = (RuntimeTensor){
        .name = "workspace",
        .buffer = workspace_buffer(program),
        .bytes = proof->kernel->workspace_bytes,
        .written = true,
    };
}

/* One launch: what it reads was made before. */
static void place_launch(Proof *proof, const Launch *launch)
{
    const Program *program = proof->kernel->program;
    for (int i = 0; i < launch->arg_count; i++) {
        const LaunchArg *arg = &launch->args[i];
        int output = position(program->outputs, program->output_count, arg->tensor);
        int buffer = workspace_buffer(program);
        if (arg->workspace_offset < 0)
            buffer = output >= 0 ? program->input_count + output
                                 : position(program->inputs, program->input_count, arg->tensor);
        add_tensor(proof, arg->tensor, buffer,
                   arg->workspace_offset < 0 ? 0 : arg->workspace_offset, arg->written);
    }
}

static void place_tensors(Proof *proof)
{
    const Program *program = proof->kernel->program;
    int count = workspace_buffer(program) + 1 + (proof->launch ? proof->launch->arg_count : 0);
    proof->tensors = NEW_ARRAY(proof->arena, RuntimeTensor, count);
    proof->sources = NEW_ARRAY(proof->arena, const Tensor *, count);
    proof->buffer_bytes = NEW_ARRAY(proof->arena, int64_t, count);
    for (int i = 0; i < program->input_count; i++)
        proof->buffer_bytes[i] = tensor_bytes(program->inputs[i]);
    for (int i = 0; i < program->output_count; i++)
        proof->buffer_bytes[program->input_count + i] = tensor_bytes(program->outputs[i]);
    proof->buffer_bytes[workspace_buffer(program)] = proof->kernel->workspace_bytes;
    if (proof->launch)
        place_launch(proof, proof->launch);
    else
        place_program(proof);
}

// ---- reference values ----

/* Outputs are judged by what the user wrote. */
static void reference(const Proof *proof, const Tensor *tensor, const int64_t *elements,
                      int64_t count, Value *values)
{
    const Program *program = proof->kernel->program;
    int output = position(program->outputs, program->output_count, tensor);
    if (output >= 0)
        evaluate(proof->truth, proof->program->outputs[output], elements, count, values);
    else
        evaluate(proof->plan, tensor, elements, count, values);
}

static int64_t elements_in(const Tensor *tensor, int64_t bytes)
{
    return bytes * 8 / dtype_info[tensor->dtype].bits;
}

static InputTable *make_inputs(const Proof *proof)
{
    const Program *program = proof->program;
    RandomInputs random = {program, proof->options->seed, proof->class->integers};
    InputTable *tables = NEW_ARRAY(proof->arena, InputTable, program->input_count);
    for (int i = 0; i < program->input_count; i++) {
        tables[i].bytes = dtype_info[program->inputs[i]->dtype].bits / 8;
        for (int64_t k = 0; k < INPUT_VALUES; k++) {
            tables[i].values[k] = random_input_element(&random, i, k);
            dtype_store(program->inputs[i]->dtype, tables[i].stored, k, tables[i].values[k]);
        }
    }
    return tables;
}

static inline size_t table_position(int64_t element)
{
    uint64_t x = (uint64_t)element * 0x9e3779b97f4a7c15u;   // splitmix64's constants
    return (size_t)((x ^ x >> 30) * 0xbf58476d1ce4e5b9u >> 52);
}

/* An InputSource. */
static double input_element(void *context, int input, int64_t element)
{
    const InputTable *tables = context;
    return tables[input].values[table_position(element)];
}

static void fill_input(const Proof *proof, int input, int64_t first, int64_t count, void *memory)
{
    const InputTable *table = &proof->inputs[input];
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

static void fill_made(const Proof *proof, const Tensor *tensor, int64_t first, int64_t count,
                      void *memory)
{
    Value values[BATCH];
    int64_t elements[BATCH];
    for (int64_t done = 0; done < count; done += BATCH) {
        int64_t batch = count - done < BATCH ? count - done : BATCH;
        for (int64_t i = 0; i < batch; i++)
            elements[i] = first + done + i;
        reference(proof, tensor, elements, batch, values);
        for (int64_t i = 0; i < batch; i++)
            dtype_store(tensor->dtype, memory, done + i, values[i].real);
    }
}

/* A RuntimeFill: the tensor's values, wherever they come from. */
static void fill(void *context, int index, int64_t offset, int64_t bytes, void *memory)
{
    Proof *proof = context;
    const Program *program = proof->kernel->program;
    const Tensor *tensor = proof->sources[index];
    int64_t first = elements_in(tensor, offset), count = elements_in(tensor, bytes),
            all = tensor_elements(tensor);
    memset(memory, 0, (size_t)bytes);
    count = first + count < all ? count : all - first;   // b1: the last word may be ragged
    int input = position(program->inputs, program->input_count, tensor);
    if (input >= 0)
        fill_input(proof, input, first, count, memory);
    else
        fill_made(proof, tensor, first, count, memory);
}

// ---- what things cost, in scalar operations ----

/* What one element of a tensor costs to the launch that makes it; nothing if it is an input. */
static double element_work(const Kernel *kernel, const Tensor *tensor)
{
    for (int k = 0; k < kernel->launch_count; k++)
        for (int i = 0; i < kernel->launches[k].arg_count; i++)
            if (kernel->launches[k].args[i].tensor == tensor &&
                kernel->launches[k].args[i].written)
                return kernel->launches[k].work / (double)tensor_elements(tensor);
    return 0;
}

/* What one element of a tensor costs the reference: it may have to go back to the inputs. */
static double reference_work(const Kernel *kernel, const Tensor *tensor)
{
    double work = 0;
    for (int k = 0; k < kernel->launch_count; k++)
        work += kernel->launches[k].work;
    return position(kernel->program->outputs, kernel->program->output_count, tensor) < 0
               ? element_work(kernel, tensor)
               : work / (double)tensor_elements(tensor);
}

static int64_t blocks_of(const Launch *launch)
{
    return launch->grid[0] * launch->grid[1] * launch->grid[2];
}

/* A block computes its share; and a page of each tensor that it reads has to be made for it. */
static double block_work(const Kernel *kernel, const Launch *launch)
{
    double work = launch->work / (double)blocks_of(launch) + 1;
    for (int i = 0; i < launch->arg_count; i++)
        if (!launch->args[i].written)
            work += PAGE_ELEMENTS * element_work(kernel, launch->args[i].tensor);
    return work;
}

/* As many blocks as the budget allows. */
static int64_t sample_blocks(const Kernel *kernel, const Launch *launch)
{
    double affordable = SAMPLE_WORK / block_work(kernel, launch);
    return affordable < MIN_BLOCKS   ? MIN_BLOCKS
           : affordable > MAX_BLOCKS ? MAX_BLOCKS
                                     : (int64_t)affordable;
}

// ---- comparison ----

/* NaN must be NaN; else the value lies between the rounded ends of the interval that the reference
 * gives. */
static bool is_legal(DType type, double seen, Value expected)
{
    if (isnan(expected.real) || isnan(seen))
        return isnan(expected.real) && isnan(seen);
    double low = dtype_round(type, expected.real - expected.bound);
    double high = dtype_round(type, expected.real + expected.bound);
    return seen >= low && seen <= high;
}

static void print_index(StrBuf *out, const Tensor *tensor, int64_t element)
{
    int64_t stride = tensor_elements(tensor);
    strbuf_puts(out, tensor->name);
    for (int d = 0; d < tensor->rank; d++) {
        stride /= tensor->shape[d];
        strbuf_printf(out, "%s%lld", d == 0 ? "[" : ", ", (long long)(element / stride));
        element %= stride;
    }
    strbuf_puts(out, tensor->rank > 0 ? "]" : "");
}

static void print_run(StrBuf *out, const Proof *proof)
{
    strbuf_printf(out, " (%s, seed %llu", proof->class->name,
                  (unsigned long long)proof->options->seed);
    if (proof->launch)
        strbuf_printf(out, ", some blocks of %s alone", proof->launch->entry);
    strbuf_puts(out, ")");
}

static void wrong(Proof *proof, const char *text)
{
    proof->report->status = VERIFY_WRONG;
    proof->report->message = text;
}

static void wrong_element(Proof *proof, const Tensor *tensor, int64_t element, double seen,
                          Value expected)
{
    StrBuf out = strbuf_new(proof->arena);
    print_index(&out, tensor, element);
    strbuf_puts(&out, " is ");
    strbuf_double(&out, seen);
    strbuf_puts(&out, ", expected ");
    strbuf_double(&out, expected.real);
    if (expected.bound > 0) {
        strbuf_puts(&out, " within ");
        strbuf_double(&out, expected.bound);
    }
    print_run(&out, proof);
    wrong(proof, out.text);
}

/* Judges some elements; `memory` holds the whole tensor. Stops at the first that is wrong. */
static void compare(Proof *proof, const Tensor *tensor, const void *memory,
                    const int64_t *elements, int64_t count)
{
    Value expected[BATCH];
    reference(proof, tensor, elements, count, expected);
    proof->report->elements += count;
    for (int64_t i = 0; i < count && !proof->report->message; i++) {
        double seen = dtype_load(tensor->dtype, memory, elements[i]);
        if (!isfinite(expected[i].bound))
            proof->report->unjudged++;
        else if (!is_legal(tensor->dtype, seen, expected[i]))
            wrong_element(proof, tensor, elements[i], seen, expected[i]);
    }
}

static void compare_all(Proof *proof, const Tensor *tensor, const void *memory)
{
    int64_t elements[BATCH], all = tensor_elements(tensor);
    for (int64_t first = 0; first < all && !proof->report->message; first += BATCH) {
        int64_t count = all - first < BATCH ? all - first : BATCH;
        for (int64_t i = 0; i < count; i++)
            elements[i] = first + i;
        compare(proof, tensor, memory, elements, count);
    }
}

/* The bits behind the last element of a b1 tensor are zero. */
static void compare_tail(Proof *proof, const Tensor *tensor, const void *memory)
{
    const uint32_t *words = memory;
    int64_t count = tensor_elements(tensor);
    if (tensor->dtype != DTYPE_B1 || count % 32 == 0 || words[count / 32] >> count % 32 == 0)
        return;
    if (proof->launch && words[count / 32] == proof->class->poison * 0x01010101u)
        return;   // not written
    StrBuf out = strbuf_new(proof->arena);
    strbuf_printf(&out, "the padding bits of %s are not zero", tensor->name);
    print_run(&out, proof);
    wrong(proof, out.text);
}

static void compare_whole(Proof *proof, const RuntimeResult *result)
{
    const Program *program = proof->kernel->program;
    for (int i = 0; i < program->output_count && !proof->report->message; i++) {
        const Tensor *tensor = program->outputs[i];
        const void *memory = result->buffers[program->input_count + i];
        compare_all(proof, tensor, memory);
        if (!proof->report->message)
            compare_tail(proof, tensor, memory);
    }
}

/* Bytes that still hold the poison are taken as not written. b1 is looked at by words. */
static bool is_poisoned(const unsigned char *memory, int64_t bytes, int poison)
{
    for (int64_t i = 0; i < bytes; i++)
        if (memory[i] != poison)
            return false;
    return true;
}

/* Where a page and a written tensor overlap: bytes [low, high) of the tensor. */
typedef struct Overlap {
    const Tensor *tensor;
    const unsigned char *memory;   // of the tensor
    int64_t low, high;
} Overlap;

static bool overlap(const Proof *proof, const RuntimeResult *result, const RuntimePage *page,
                    int index, Overlap *both)
{
    const RuntimeTensor *tensor = &proof->tensors[index];
    int64_t low = page->offset > tensor->offset ? page->offset : tensor->offset;
    int64_t page_end = page->offset + page->bytes, end = tensor->offset + tensor->bytes;
    int64_t high = page_end < end ? page_end : end;
    if (tensor->buffer != page->buffer || !tensor->written || low >= high)
        return false;
    const unsigned char *memory = (unsigned char *)result->buffers[page->buffer] + tensor->offset;
    *both = (Overlap){proof->sources[index], memory, low - tensor->offset, high - tensor->offset};
    return true;
}

/* The elements of an overlap that were written, every `step`-th of all that are found; `found`
 * counts on. */
static void compare_overlap(Proof *proof, const Overlap *both, int64_t step, int64_t *found)
{
    int64_t unit = both->tensor->dtype == DTYPE_B1 ? 4 : dtype_info[both->tensor->dtype].bits / 8;
    int64_t elements[BATCH], count = 0, all = tensor_elements(both->tensor);
    for (int64_t at = both->low; at < both->high && !proof->report->message; at += unit) {
        if (is_poisoned(both->memory + at, unit, proof->class->poison))
            continue;
        int64_t first = elements_in(both->tensor, at), last = elements_in(both->tensor, at + unit);
        for (int64_t e = first; e < last && e < all; e++) {
            if ((*found)++ % step != 0)
                continue;
            elements[count++] = e;
            if (count == BATCH) {
                compare(proof, both->tensor, both->memory, elements, count);
                count = 0;
            }
        }
    }
    if (!proof->report->message)
        compare(proof, both->tensor, both->memory, elements, count);
    if (both->high == tensor_bytes(both->tensor) && !proof->report->message)
        compare_tail(proof, both->tensor, both->memory);
}

static int64_t count_written(const Proof *proof, const Overlap *both)
{
    int64_t unit = both->tensor->dtype == DTYPE_B1 ? 4 : dtype_info[both->tensor->dtype].bits / 8,
            count = 0;
    for (int64_t at = both->low; at < both->high; at += unit)
        count += !is_poisoned(both->memory + at, unit, proof->class->poison);
    return count * (elements_in(both->tensor, unit));
}

/* What the launch wrote: all of it, or where the reference would take too long, elements at equal
 * distances. */
static void compare_pages(Proof *proof, const RuntimeResult *result)
{
    Overlap both;
    for (int i = 0; i < proof->tensor_count && !proof->report->message; i++) {
        int64_t written = 0, found = 0;
        for (int64_t p = 0; p < result->page_count; p++)
            if (overlap(proof, result, &result->pages[p], i, &both))
                written += count_written(proof, &both);
        double work =
            (double)written * (LOOKUP_WORK + reference_work(proof->kernel, proof->sources[i]));
        int64_t step = work > CHECK_WORK ? (int64_t)(work / CHECK_WORK) + 1 : 1;
        step = step < written ? step
               : written > 1  ? written - 1
                              : 1;   // the first and the last at least
        for (int64_t p = 0; p < result->page_count && !proof->report->message; p++)
            if (overlap(proof, result, &result->pages[p], i, &both))
                compare_overlap(proof, &both, step, &found);
    }
}

// ---- runs ----

static VerifyStatus status_of(RuntimeStatus status)
{
    return status == RUNTIME_DONE    ? VERIFY_RIGHT
           : status == RUNTIME_WRONG ? VERIFY_WRONG
                                     : VERIFY_MACHINE;
}

static void run_proof(Proof *proof)
{
    place_tensors(proof);
    RuntimeJob job = {
        .buffer_bytes = proof->buffer_bytes,
        .tensors = proof->tensors,
        .tensor_count = proof->tensor_count,
        .fill = fill,
        .context = proof,
        .poison = proof->class->poison,
        .only_launch = proof->launch ? (int)(proof->launch - proof->kernel->launches) : -1,
        .max_blocks = proof->launch ? sample_blocks(proof->kernel, proof->launch) : INT64_MAX,
        .seed = proof->options->seed,
        .lazy = proof->launch != NULL,
        .reverse = proof->class->reverse,
        .seconds = proof->options->seconds ? proof->options->seconds : HANG_SECONDS,
    };
    RuntimeResult result = runtime_interp.run(proof->arena, proof->module, &job);
    proof->report->blocks_run += result.blocks_run;
    proof->report->blocks_total += result.blocks_total;
    if (result.status != RUNTIME_DONE) {
        StrBuf out = strbuf_new(proof->arena);
        strbuf_puts(&out, result.reason);
        print_run(&out, proof);
        wrong(proof, out.text);
        proof->report->status = status_of(result.status);
    } else if (proof->launch) {
        compare_pages(proof, &result);
    } else {
        compare_whole(proof, &result);
    }
    runtime_interp.release(&result);
}

static void prove_class(Proof *proof)
{
    proof->inputs = make_inputs(proof);
    InputSource source = {input_element, proof->inputs};
    proof->truth = evaluator_new(proof->arena, proof->program, source);
    proof->plan = evaluator_new(proof->arena, proof->kernel->program, source);
    if (!proof->report->sampled)
        run_proof(proof);
    for (int i = 0;
         proof->report->sampled && i < proof->kernel->launch_count && !proof->report->message;
         i++) {
        proof->launch = &proof->kernel->launches[i];
        proof->tensor_count = 0;
        run_proof(proof);
    }
    evaluator_free(proof->truth);
    evaluator_free(proof->plan);
}

static bool is_too_large(const Kernel *kernel, double whole_work)
{
    double work = 0, bytes = (double)kernel->workspace_bytes;
    for (int i = 0; i < kernel->launch_count; i++)
        work += kernel->launches[i].work;
    for (int i = 0; i < kernel->program->input_count; i++)
        bytes += (double)tensor_bytes(kernel->program->inputs[i]);
    for (int i = 0; i < kernel->program->output_count; i++)
        bytes += (double)tensor_bytes(kernel->program->outputs[i]);
    return work > whole_work || bytes > (double)WHOLE_BYTES;
}

static RuntimeSource source_of(const Kernel *kernel, const DeviceSpec *device)
{
    return (RuntimeSource){
        .name = kernel->name,
        .text = kernel->source,
        .length = kernel->source_length,
        .arg_count = kernel->program->input_count + kernel->program->output_count,
        .limits = {device->warp_size, device->max_threads_per_block, device->shared_per_block,
                   device->shared_per_block_optin},
    };
}

VerifyReport verify(Arena *scratch, const Program *program, const Kernel *kernel,
                    const DeviceSpec *device, const VerifyOptions *options)
{
    VerifyReport report = {
        .sampled = is_too_large(kernel, options->whole_work ? options->whole_work : WHOLE_WORK)};
    RuntimeSource source = source_of(kernel, device);
    RuntimeModule *module;
    report.status = status_of(runtime_interp.load(scratch, &source, &module, &report.message));
    for (int i = 0; i < CLASS_COUNT && report.status == VERIFY_RIGHT; i++) {
        Proof proof = {
            .arena = scratch,
            .program = program,
            .kernel = kernel,
            .module = module,
            .options = options,
            .class = &CLASSES[i],
            .report = &report,
        };
        prove_class(&proof);
    }
    return report;
}
