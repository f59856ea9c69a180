#include "measure.h"

#include "verify_parts.h"

enum { HANG_SECONDS = 60 };

/* The second run goes through blocks and threads in the opposite order and finds other bytes where nothing was
   written. */
static const InputClass CLASSES[] = {
    {"random real inputs", false, 0xff, false},
    {"random whole-number inputs", true, 0x00, true},
};
enum { CLASS_COUNT = sizeof CLASSES / sizeof *CLASSES };

static VerifyStatus status_of(RuntimeStatus status)
{
    return status == RUNTIME_DONE ? VERIFY_RIGHT : status == RUNTIME_WRONG ? VERIFY_WRONG : VERIFY_MACHINE;
}

static void run_proof(Proof *proof)
{
    verify_place(proof);
    RuntimeJob job = {
        .buffer_bytes = proof->buffer_bytes,
        .tensors = proof->tensors,
        .tensor_count = proof->tensor_count,
        .fill = verify_fill,
        .context = proof,
        .poison = proof->class->poison,
        .only_launch = proof->launch ? (int)(proof->launch - proof->kernel->launches) : -1,
        .max_blocks = proof->launch ? verify_sample_blocks(proof->kernel, proof->launch) : INT64_MAX,
        .seed = proof->options->seed,
        .lazy = proof->launch != NULL,
        .schedule = proof->class->reverse ? RUNTIME_HIGHEST_FIRST : RUNTIME_LOWEST_FIRST,
        .seconds = proof->options->seconds ? proof->options->seconds : HANG_SECONDS,
    };
    RuntimeResult result = runtime_interp.run(proof->arena, proof->module, &job);
    proof->report->blocks_run += result.blocks_run;
    proof->report->blocks_total += result.blocks_total;
    if (result.status != RUNTIME_DONE) {
        verify_wrong(proof, result.reason);
        proof->report->status = status_of(result.status);
    } else if (proof->launch) {
        verify_compare_pages(proof, &result);
    } else {
        verify_compare_whole(proof, &result);
    }
    runtime_interp.release(&result);
}

static void prove_class(Proof *proof)
{
    proof->inputs = verify_inputs(proof);
    InputSource source = {verify_input_element, proof->inputs};
    proof->truth = evaluator_new(proof->arena, proof->program, source);
    proof->plan = evaluator_new(proof->arena, proof->kernel->program, source);
    if (!proof->report->sampled)
        run_proof(proof);
    for (int i = 0; proof->report->sampled && i < proof->kernel->launch_count && !proof->report->message;
         i++) {
        proof->launch = &proof->kernel->launches[i];
        proof->tensor_count = 0;
        run_proof(proof);
    }
    evaluator_free(proof->truth);
    evaluator_free(proof->plan);
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
    VerifyReport report = {.sampled = verify_is_too_large(kernel, options->whole_work)};
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
