#include "measure.h"

#include <math.h>
#include <string.h>

#include "base/strbuf.h"
#include "ir/eval.h"

enum {
    BATCH = 1024,           // elements that are evaluated at a time
    MIN_BLOCKS = 2,         // of a sampled launch: the first and the last
    MAX_BLOCKS = 64,
    HANG_SECONDS = 60
};

static const double WHOLE_WORK = 3e7;            // about a second on the interpreter, and one for the reference
static const double SAMPLE_WORK = 3e6;           // of one sampled launch
static const int64_t WHOLE_BYTES = 256 << 20;    // of all buffers

/* Whole numbers make sums exact: no rounding can hide a wrong element. The second run goes through blocks and threads in
   the opposite order and finds other bytes where nothing was written. */
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

/* One run: a part of the kernel on one class of inputs. */
typedef struct Proof {
    Arena *arena;
    const Program *program;
    const Kernel *kernel;
    const RuntimeModule *module;
    const InputClass *class;
    RandomInputs random;
    Evaluator *truth, *plan;         // of `program`, and of the kernel's own that has more temporaries
    const Launch *launch;            // NULL: all of them
    RuntimeTensor *tensors;
    const Tensor **sources;          // of the kernel's program, one for each of `tensors`
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
static int workspace_buffer(const Program *program) { return program->input_count + program->output_count; }

static void add_tensor(Proof *proof, const Tensor *tensor, int buffer, int64_t offset, bool written)
{
    proof->sources[proof->tensor_count] = tensor;
    proof->tensors[proof->tensor_count++] = (RuntimeTensor){
        .name = tensor->name, .buffer = buffer, .offset = offset, .bytes = tensor_bytes(tensor), .written = written,
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
        .name = "workspace", .buffer = workspace_buffer(program), .bytes = proof->kernel->workspace_bytes,
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
        add_tensor(proof, arg->tensor, buffer, arg->workspace_offset < 0 ? 0 : arg->workspace_offset, arg->written);
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

/* An output is judged by the user's program, a temporary of the plan by the plan. */
static void reference(const Proof *proof, const Tensor *tensor, int64_t first, int64_t count, Value *values)
{
    const Program *program = proof->kernel->program;
    int output = position(program->outputs, program->output_count, tensor);
    if (output >= 0)
        evaluate_range(proof->truth, proof->program->outputs[output], first, count, values);
    else
        evaluate_range(proof->plan, tensor, first, count, values);
}

static int64_t elements_in(const Tensor *tensor, int64_t bytes) { return bytes * 8 / dtype_info[tensor->dtype].bits; }

/* A RuntimeFill: the tensor's values, wherever they come from. */
static void fill(void *context, int index, int64_t offset, int64_t bytes, void *memory)
{
    const Proof *proof = context;
    const Tensor *tensor = proof->sources[index];
    Value values[BATCH];
    int64_t first = elements_in(tensor, offset), count = elements_in(tensor, bytes), all = tensor_elements(tensor);
    memset(memory, 0, (size_t)bytes);
    count = first + count < all ? count : all - first;   // b1: the last word may be ragged
    for (int64_t done = 0; done < count; done += BATCH) {
        int64_t batch = count - done < BATCH ? count - done : BATCH;
        reference(proof, tensor, first + done, batch, values);
        for (int64_t i = 0; i < batch; i++)
            dtype_store(tensor->dtype, memory, done + i, values[i].real);
    }
}

// ---- comparison ----

/* NaN must be NaN; else the value lies between the rounded ends of the interval that the reference gives. */
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
    strbuf_printf(out, " (%s, seed %llu", proof->class->name, (unsigned long long)proof->random.seed);
    if (proof->launch)
        strbuf_printf(out, ", some blocks of %s alone", proof->launch->entry);
    strbuf_puts(out, ")");
}

static void wrong(Proof *proof, const char *text)
{
    proof->report->status = VERIFY_WRONG;
    proof->report->message = text;
}

static void wrong_element(Proof *proof, const Tensor *tensor, int64_t element, double seen, Value expected)
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

/* Compares elements [first, first + count); `memory` holds the whole tensor. Stops at the first that is wrong. */
static void compare(Proof *proof, const Tensor *tensor, const void *memory, int64_t first, int64_t count)
{
    Value expected[BATCH];
    for (int64_t done = 0; done < count && !proof->report->message; done += BATCH) {
        int64_t batch = count - done < BATCH ? count - done : BATCH;
        reference(proof, tensor, first + done, batch, expected);
        proof->report->elements += batch;
        for (int64_t i = 0; i < batch && !proof->report->message; i++) {
            double seen = dtype_load(tensor->dtype, memory, first + done + i);
            if (!isfinite(expected[i].bound))
                proof->report->unjudged++;
            else if (!is_legal(tensor->dtype, seen, expected[i]))
                wrong_element(proof, tensor, first + done + i, seen, expected[i]);
        }
    }
}

/* The bits behind the last element of a b1 tensor are zero. */
static void compare_tail(Proof *proof, const Tensor *tensor, const uint32_t *words)
{
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
        compare(proof, tensor, memory, 0, tensor_elements(tensor));
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

/* Compares what was written of bytes [offset, offset + bytes) of a tensor, in stretches without a gap. */
static void compare_written(Proof *proof, const Tensor *tensor, const unsigned char *memory, int64_t offset,
                            int64_t bytes)
{
    int64_t unit = tensor->dtype == DTYPE_B1 ? 4 : dtype_info[tensor->dtype].bits / 8;
    int64_t end = offset + bytes;
    for (int64_t at = offset; at < end && !proof->report->message;) {
        int64_t first = at;
        while (at < end && !is_poisoned(memory + at, unit, proof->class->poison))
            at += unit;
        int64_t element = elements_in(tensor, first), last = elements_in(tensor, at), all = tensor_elements(tensor);
        compare(proof, tensor, memory, element, (last < all ? last : all) - element);
        at += at == first ? unit : 0;
    }
}

static void compare_pages(Proof *proof, const RuntimeResult *result)
{
    for (int64_t p = 0; p < result->page_count; p++)
        for (int i = 0; i < proof->tensor_count && !proof->report->message; i++) {
            const RuntimePage *page = &result->pages[p];
            const RuntimeTensor *tensor = &proof->tensors[i];
            int64_t low = page->offset > tensor->offset ? page->offset : tensor->offset;
            int64_t high = page->offset + page->bytes;
            high = high < tensor->offset + tensor->bytes ? high : tensor->offset + tensor->bytes;
            if (tensor->buffer != page->buffer || !tensor->written || low >= high)
                continue;
            const unsigned char *memory = (unsigned char *)result->buffers[page->buffer] + tensor->offset;
            compare_written(proof, proof->sources[i], memory, low - tensor->offset, high - low);
            if (high == tensor->offset + tensor->bytes && !proof->report->message)
                compare_tail(proof, proof->sources[i], memory);
        }
}

// ---- runs ----

static int64_t blocks_of(const Launch *launch) { return launch->grid[0] * launch->grid[1] * launch->grid[2]; }

/* As many blocks as the budget allows. */
static int64_t sample_blocks(const Launch *launch)
{
    double affordable = SAMPLE_WORK / (launch->work / (double)blocks_of(launch) + 1);
    return affordable < MIN_BLOCKS ? MIN_BLOCKS : affordable > MAX_BLOCKS ? MAX_BLOCKS : (int64_t)affordable;
}

static void run_proof(Proof *proof, const VerifyOptions *options)
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
        .max_blocks = proof->launch ? sample_blocks(proof->launch) : INT64_MAX,
        .seed = options->seed,
        .lazy = proof->launch != NULL,
        .reverse = proof->class->reverse,
        .seconds = options->seconds ? options->seconds : HANG_SECONDS,
    };
    RuntimeResult result = runtime_interp.run(proof->arena, proof->module, &job);
    proof->report->blocks_run += result.blocks_run;
    proof->report->blocks_total += result.blocks_total;
    if (result.status != RUNTIME_DONE) {
        StrBuf out = strbuf_new(proof->arena);
        strbuf_puts(&out, result.reason);
        print_run(&out, proof);
        wrong(proof, out.text);
        proof->report->status = result.status == RUNTIME_WRONG ? VERIFY_WRONG : VERIFY_MACHINE;
    } else if (proof->launch) {
        compare_pages(proof, &result);
    } else {
        compare_whole(proof, &result);
    }
    runtime_interp.release(&result);
}

static void prove_class(Proof *proof, const InputClass *class, const VerifyOptions *options)
{
    proof->class = class;
    proof->random = (RandomInputs){proof->program, options->seed, class->integers};
    InputSource source = {random_input_element, &proof->random};
    proof->truth = evaluator_new(proof->arena, proof->program, source);
    proof->plan = evaluator_new(proof->arena, proof->kernel->program, source);
    if (!proof->report->sampled)
        run_proof(proof, options);
    for (int i = 0; proof->report->sampled && i < proof->kernel->launch_count && !proof->report->message; i++) {
        proof->launch = &proof->kernel->launches[i];
        proof->tensor_count = 0;
        run_proof(proof, options);
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

VerifyReport verify(Arena *scratch, const Program *program, const Kernel *kernel, const DeviceSpec *device,
                    const VerifyOptions *options)
{
    VerifyReport report = {.status = VERIFY_RIGHT};
    report.sampled = is_too_large(kernel, options->whole_work > 0 ? options->whole_work : WHOLE_WORK);
    RuntimeSource source = source_of(kernel, device);
    RuntimeModule *module;
    RuntimeStatus loaded = runtime_interp.load(scratch, &source, &module, &report.message);
    if (loaded != RUNTIME_DONE) {
        report.status = loaded == RUNTIME_WRONG ? VERIFY_WRONG : VERIFY_MACHINE;
        return report;
    }
    for (int i = 0; i < CLASS_COUNT && !report.message; i++) {
        Proof proof = {.arena = scratch, .program = program, .kernel = kernel, .module = module, .report = &report};
        prove_class(&proof, &CLASSES[i], options);
    }
    return report;
}
