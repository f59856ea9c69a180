#include "differential/batch.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "codegen/cuda/trim.h"
#include "ir/prepared.h"

enum { POISON = 0xff };

// ---- what is in it ----

Batch batch_new(Arena *arena, int most_kernels, int most_buffers, void *context)
{
    return (Batch){.arena = arena,
                   .context = context,
                   .passes = PASSES,
                   .kernels = NEW_ARRAY(arena, BatchKernel, most_kernels),
                   .buffers = NEW_ARRAY(arena, BatchBuffer, most_buffers)};
}

int batch_add_inputs(Batch *batch, const void *owner, const char *label, const Program *program)
{
    int first = batch->buffer_count;
    for (int i = 0; i < program->input_count; i++)
        batch->buffers[batch->buffer_count++] = (BatchBuffer){owner, label, program->inputs[i], i};
    return first;
}

/* A kernel's place in the workspace of the batch: its own, what is prepared, weights. */
static int64_t prepared_offset(const Kernel *kernel) { return round_up(kernel->workspace_bytes, WORKSPACE_ALIGNMENT); }
static int64_t weights_offset(const Kernel *kernel)
{
    return prepared_offset(kernel) + round_up(kernel->prepared_bytes, WORKSPACE_ALIGNMENT);
}
static int64_t beside_bytes(const Kernel *kernel)
{
    return weights_offset(kernel) + round_up(kernel->weight_bytes, WORKSPACE_ALIGNMENT);
}

void batch_add_kernel(Batch *batch, const void *owner, const char *label, const Program *program,
                      const Kernel *kernel, int first_input)
{
    batch->kernels[batch->count++] =
        (BatchKernel){program, kernel, first_input, batch->buffer_count, batch->workspace};
    for (int i = 0; i < program->output_count; i++)
        batch->buffers[batch->buffer_count++] = (BatchBuffer){owner, label, program->outputs[i], -1};
    batch->workspace += beside_bytes(kernel);
}

// ---- its text ----

void batch_write_kernels(StrBuf *out, const BatchKernel *kernels, int count, const DeviceSpec *device)
{
    StrBuf body = strbuf_new(out->arena);
    for (int c = 0; c < count; c++)
        strbuf_puts(&body, kernels[c].kernel->without_prelude);
    Trim *prelude = trim_new(&(TemplateStore){.arena = out->arena}, target_of(device, false), "batch", 0);
    trim_add_user(prelude, body.text);
    trim_take(prelude);
    trim_write_prelude(out, prelude);
    for (int c = 0; c < count; c++)
        strbuf_printf(out, "namespace %s_prelude = batch_prelude;\n", kernels[c].kernel->name);
    strbuf_write(out, body.text, body.length);
}

/* The weights are brought together, as they lie in a file. */
static void write_prepare(StrBuf *out, const BatchKernel *of)
{
    int64_t file = of->workspace_offset + weights_offset(of->kernel);
    for (int i = 0; i < of->program->input_count; i++)
        if (of->program->inputs[i]->is_weight)
            strbuf_printf(out, "    cudaMemcpyAsync((char *)workspace + %" PRId64 ", a%d, %" PRId64 ", cudaMemcpyDefault, stream);\n",
                          file + weight_offset(of->program, i), of->first_input + i, tensor_bytes(of->program->inputs[i]));
    strbuf_printf(out, "    if (int status = %s_prepare((char *)workspace + %" PRId64 ", (char *)workspace + %" PRId64
                       ", (char *)workspace + %" PRId64 ", stream))\n        return status;\n    cudaStreamSynchronize(stream);\n",
                  of->kernel->name, file, of->workspace_offset + prepared_offset(of->kernel), of->workspace_offset);
}

static void write_arguments(StrBuf *out, const BatchKernel *of)
{
    for (int i = 0; i < of->program->input_count; i++)
        if (!of->program->inputs[i]->is_weight)
            strbuf_printf(out, "a%d, ", of->first_input + i);
    if (of->kernel->weight_bytes)
        strbuf_printf(out, "(char *)workspace + %" PRId64 ", ", of->workspace_offset + prepared_offset(of->kernel));
    for (int i = 0; i < of->program->output_count; i++)
        strbuf_printf(out, "a%d, ", of->first_output + i);
    strbuf_printf(out, "(char *)workspace + %" PRId64, of->workspace_offset);
}

static void write_call(StrBuf *out, const BatchKernel *of)
{
    if (of->kernel->weight_bytes)
        write_prepare(out, of);
    strbuf_printf(out, "    if (int status = %s_launch(", of->kernel->name);
    write_arguments(out, of);
    strbuf_puts(out, ", stream))\n        return status;\n");
}

/* Its launches are run before the next one's are added. One launch alone is made as in a stream. */
static void write_graph_call(StrBuf *out, const BatchKernel *of)
{
    if (!of->kernel->has_graph) {
        write_call(out, of);
        return;
    }
    if (of->kernel->weight_bytes)
        write_prepare(out, of);
    strbuf_printf(out, "    if (int status = %s_graph(graph, ", of->kernel->name);
    write_arguments(out, of);
    strbuf_puts(out, "))\n        return status;\n    rollerc_interp::run_nodes();\n");
}

static void write_function(StrBuf *out, const Batch *batch, bool graph)
{
    strbuf_printf(out, "\nextern \"C\" int batch_%s", graph ? "graph(void **graph, " : "launch(");
    for (int b = 0; b < batch->buffer_count; b++)
        strbuf_printf(out, "void *a%d, ", b);
    strbuf_printf(out, "void *workspace%s", graph ? ")\n{\n    void *stream = nullptr;\n    *graph = nullptr;\n" : ", void *stream)\n{\n");
    for (int c = 0; c < batch->count; c++)
        (graph ? write_graph_call : write_call)(out, &batch->kernels[c]);
    strbuf_puts(out, "    return 0;\n}\n");
}

static const char *text_of_batch(const Batch *batch, const DeviceSpec *device)
{
    StrBuf out = strbuf_new(batch->arena);
    batch_write_kernels(&out, batch->kernels, batch->count, device);
    write_function(&out, batch, false);
    if (device->dialect != DIALECT_HIP)
        write_function(&out, batch, true);
    return out.text;
}

// ---- runs ----

typedef struct Filling {
    const Batch *batch;
    BatchFill *fill;
} Filling;

static void fill_buffer(void *context, int tensor, int64_t offset, int64_t bytes, void *memory)
{
    const Filling *filling = context;
    filling->fill(filling->batch, &filling->batch->buffers[tensor], offset, bytes, memory);
}

void batch_draw(const BatchBuffer *buffer, InputSource source, int64_t offset, int64_t bytes, void *memory)
{
    DType type = buffer->tensor->dtype;
    int64_t first = offset * 8 / dtype_info[type].bits, count = bytes * 8 / dtype_info[type].bits;
    memset(memory, 0, (size_t)bytes);
    for (int64_t i = 0; i < count && first + i < tensor_elements(buffer->tensor); i++)
        dtype_store(type, memory, i, source.element(source.context, buffer->input, first + i));
}

static int describe_tensors(const Batch *batch, RuntimeTensor *tensors, int64_t *bytes)
{
    int count = batch->buffer_count;
    for (int b = 0; b < count; b++) {
        const BatchBuffer *buffer = &batch->buffers[b];
        bytes[b] = tensor_bytes(buffer->tensor);
        const char *name = arena_printf(batch->arena, "%s of %s", buffer->tensor->name, buffer->label);
        tensors[b] =
            (RuntimeTensor){.name = name, .buffer = b, .bytes = bytes[b], .written = buffer->input < 0};
    }
    bytes[batch->buffer_count] = batch->workspace;
    for (int c = 0; c < batch->count; c++) {
        const BatchKernel *of = &batch->kernels[c];
        if (beside_bytes(of->kernel))
            tensors[count++] = (RuntimeTensor){
                .name = arena_printf(batch->arena, "workspace of %s", of->kernel->name),
                .buffer = batch->buffer_count,
                .offset = of->workspace_offset,
                .bytes = beside_bytes(of->kernel),
                .written = true,
            };
    }
    return count;
}

static RuntimeResult run(Batch *batch, const RuntimeModule *module, BatchFill *fill, int seconds)
{
    static const RuntimeSchedule schedules[] = {RUNTIME_LOWEST_FIRST, RUNTIME_HIGHEST_FIRST,
                                                RUNTIME_PRIORITY};
    enum { SCHEDULES = sizeof schedules / sizeof *schedules };
    int64_t *bytes = NEW_ARRAY(batch->arena, int64_t, batch->buffer_count + 1);
    RuntimeTensor *tensors = NEW_ARRAY(batch->arena, RuntimeTensor, batch->buffer_count + batch->count);
    int count = describe_tensors(batch, tensors, bytes);
    return runtime_interp.run(batch->arena, module,
                              &(RuntimeJob){
                                  .buffer_bytes = bytes,
                                  .tensors = tensors,
                                  .tensor_count = count,
                                  .fill = fill_buffer,
                                  .context = &(Filling){batch, fill},
                                  .poison = POISON,
                                  .only_launch = -1,
                                  .graph = batch->pass == 1,   // launches in another order
                                  .max_blocks = INT64_MAX,
                                  .schedule = schedules[batch->pass % SCHEDULES],
                                  .checked = batch->pass == 0,
                                  .seconds = seconds,
                              });
}

/* One build serves all passes: compiling it takes longest. */
bool batch_prove(Batch *batch, const DeviceSpec *device, BatchFill *fill, BatchTake *take, int seconds,
                 const char **why)
{
    const char *text = text_of_batch(batch, device);
    RuntimeSource source = {
        .name = "batch",
        .text = text,
        .length = strlen(text),
        .arg_count = batch->buffer_count,
        .graph = device->dialect != DIALECT_HIP,
        .limits = runtime_limits(device),
        .builds = RUNTIME_CHECKED,
    };
    RuntimeModule *module;
    if (runtime_interp.load(batch->arena, &source, &module, why) != RUNTIME_DONE)
        return false;
    bool done = true;
    for (batch->pass = 0; batch->pass < batch->passes && done; batch->pass++) {
        RuntimeResult result = run(batch, module, fill, seconds);
        done = result.status == RUNTIME_DONE;
        if (done)
            take(batch, &result);
        else
            *why = result.reason;
        runtime_interp.release(&result);
    }
    return done;
}

// ---- comparison ----

const char *batch_difference(Arena *arena, const Tensor *tensor, const void *memory, const Value *expected)
{
    int64_t count = tensor_elements(tensor);
    for (int64_t i = 0; i < count; i++)
        if (isfinite(expected[i].bound) && !element_allowed(tensor->dtype, memory, i, expected[i]))
            return arena_printf(arena, "element %" PRId64 " of %s is %.17g, expected %.17g within %.3g", i,
                                tensor->name, dtype_load(tensor->dtype, memory, i), expected[i].real,
                                expected[i].bound);
    const uint32_t *words = memory;
    bool padded = tensor->dtype == DTYPE_B1 && count % 32 != 0 && words[count / 32] >> count % 32 != 0;
    return padded ? arena_printf(arena, "the padding bits of %s are not zero", tensor->name) : NULL;
}

int64_t batch_judged(const Value *expected, int64_t count)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++)
        found += isfinite(expected[i].bound);
    return found;
}
