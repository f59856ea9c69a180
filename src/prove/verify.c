#include "prove/verify.h"

#include <math.h>

#include "base/progress.h"
#include "base/stopwatch.h"
#include "codegen/codegen.h"
#include "prove/verify_parts.h"

enum { HANG_SECONDS = 60, MAX_PASSES = 2 };

static const Pass lowest = {"lowest thread first", 0xff, RUNTIME_LOWEST_FIRST, false, false},
                  checked = {"checked accesses", 0xff, RUNTIME_LOWEST_FIRST, true, false},
                  highest = {"highest thread first, launches in another order", 0x00, RUNTIME_HIGHEST_FIRST,
                             false, true},
                  priority = {"threads by priority", 0xff, RUNTIME_PRIORITY, false, false};

/* What each kind of inputs is run with. The special kinds are for small programs. */
static const Pass *const PASSES[INPUT_KINDS][MAX_PASSES] = {
    [INPUT_REAL] = {&lowest, &checked},
    [INPUT_WHOLE] = {&highest, &priority},
    [INPUT_NEGATIVE] = {&highest},
    [INPUT_HIGH] = {&priority},
    [INPUT_LOW] = {&lowest},
    [INPUT_ENDS] = {&highest},
    [INPUT_NAN] = {&lowest},
    [INPUT_INFINITE] = {&priority},
    [INPUT_DENORMAL] = {&lowest},
    [INPUT_ROWS] = {&highest},
};

static const Runtime *runtime_of(const VerifyOptions *options)
{
    return options->runtime ? options->runtime : &runtime_interp;
}

static VerifyStatus status_of(RuntimeStatus status)
{
    static const VerifyStatus statuses[] = {
        [RUNTIME_DONE] = VERIFY_RIGHT,
        [RUNTIME_WRONG] = VERIFY_WRONG,
        [RUNTIME_TIMEOUT] = VERIFY_TIMEOUT,
        [RUNTIME_MACHINE] = VERIFY_MACHINE,
    };
    return statuses[status];
}

/* Runs `proof->launch`, or all of them, and judges. */
static void run_proof(Proof *proof)
{
    const Launch *launch = proof->launch;
    const Pass *pass = proof->pass;
    VerifyReport *report = proof->report;
    proof->tensor_count = 0;
    verify_place(proof);
    RuntimeJob job = {
        .buffer_bytes = proof->buffer_bytes,
        .tensors = proof->tensors,
        .tensor_count = proof->tensor_count,
        .fill = verify_fill,
        .fill_before = proof->kernel->weight_bytes ? verify_fill_before : NULL,
        .context = proof,
        .poison = pass->poison,
        .graph = pass->graph && !launch,
        .only_launch = launch ? (int)(launch - proof->kernel->launches) : -1,
        .max_blocks = launch ? verify_sample_blocks(proof) : INT64_MAX,
        .seed = proof->options->seed,
        .lazy = launch != NULL,
        .ends_written =
            launch && launch->grid[1] * launch->grid[2] == 1,   // of larger grids the last may be left out
        .schedule = pass->schedule,
        .checked = pass->checked || launch,
        .seconds = proof->options->seconds ? proof->options->seconds : HANG_SECONDS,
    };
    const Runtime *runtime = runtime_of(proof->options);
    RuntimeResult result = runtime->run(proof->arena, proof->module, &job);
    report->blocks_run += pass->checked ? 0 : result.blocks_run;
    report->blocks_total += pass->checked ? 0 : result.blocks_total;
    if (result.status != RUNTIME_DONE) {
        verify_wrong(proof, result.reason);
        report->status = status_of(result.status);
    } else if (launch || !pass->checked) {
        (launch ? verify_compare_pages : verify_compare_whole)(proof, &result);
    }
    runtime->release(&result);
}

/* Whole numbers show all but the last bits: they suffice if the reference takes long, or if the kernel is
   known to be right. */
static bool is_left_to_whole_numbers(const Proof *proof)
{
    return proof->repeats || verify_is_expensive(proof);
}

/* With each of the passes; one of them, if an equal launch has had all. */
static void prove_launch(Proof *proof, const Launch *launch, const Pass *const *passes, int count)
{
    proof->launch = launch;
    proof->repeats = verify_repeats(proof->kernel, launch);
    count = proof->repeats ? 1 : count;
    verify_tell(proof);
    const char *unproven = verify_too_long(proof);
    if (unproven) {
        proof->report->unproven = unproven;
    } else if (proof->kind == INPUT_WHOLE || !is_left_to_whole_numbers(proof)) {
        verify_prepare(proof);
        for (int i = 0; i < count && !proof->report->message; i++) {
            proof->pass = passes[i];
            run_proof(proof);
        }
    }
    verify_draw(proof);
    verify_forget(proof);
}

/* A kernel is run where it is launched first; of the launches that follow each tenth is told, since they take
   their time, too. */
static void tell_progress(const Proof *proof, int launch)
{
    const Kernel *kernel = proof->kernel;
    int count = kernel->launch_count, done = launch + 1, kernels = 0;
    while (kernels < kernel->kernel_count && kernel->leaders[kernels] <= launch)
        kernels++;
    bool is_first = kernel->leaders[kernel->launches[launch].kernel] == launch;
    if (proof->options->progress && (is_first || done * 10 / count != launch * 10 / count))
        progress("proven %d of %d kernels, %d of %d launches (%s)", kernels, kernel->kernel_count, done,
                 count, input_kind_name[proof->kind]);
}

/* The program whole, or launch by launch on some blocks. */
static void prove_passes(Proof *proof)
{
    const Kernel *kernel = proof->kernel;
    const Pass *const *passes = PASSES[proof->kind], *on_blocks[MAX_PASSES];
    double whole_work = proof->options->whole_work;
    bool too_large = verify_is_too_large(kernel, whole_work, false);
    int count = 0;
    for (int i = 0; i < MAX_PASSES && passes[i] && !proof->report->message; i++) {
        proof->pass = passes[i];
        if (passes[i]->checked && !runtime_of(proof->options)->checks)
            continue;
        if (!verify_is_too_large(kernel, whole_work, passes[i]->checked))
            run_proof(proof);
        else if (!passes[i]->checked || !too_large)   // else the other passes are checked
            on_blocks[count++] = passes[i];
    }
    for (int i = 0; i < kernel->launch_count && count > 0 && !proof->report->message; i++) {
        prove_launch(proof, &kernel->launches[i], on_blocks, count);
        tell_progress(proof, i);
    }
}

static bool is_tried(const Proof *proof)
{
    return proof->kind == INPUT_REAL || proof->kind == INPUT_WHOLE ||
           (verify_is_small(proof->kernel) && input_kind_applies(proof->program, proof->kind));
}

static void prove_kind(Proof *proof)
{
    proof->inputs = verify_inputs(proof);
    proof->source = verify_source(proof);
    proof->truth = verify_evaluator(proof, proof->arena, proof->program);
    proof->plan = verify_evaluator(proof, proof->arena, proof->kernel->program);
    proof->guess = verify_evaluator(proof, proof->arena, proof->kernel->program);
    evaluator_estimate(proof->guess);
    proof->stand_ins = verify_stand_ins(proof);
    prove_passes(proof);
    evaluator_free(proof->truth);
    evaluator_free(proof->plan);
    evaluator_free(proof->guess);
}

/* A second build, without checks, costs more than it saves up to a second of operations; of programs that are not run whole
   all accesses are checked. */
static RuntimeSource source_of(const Kernel *kernel, const DeviceSpec *device, const VerifyReport *report)
{
    bool plain = !report->sampled && verify_is_too_large(kernel, 0, false);
    RuntimeSource source = kernel_source(kernel);
    source.limits = runtime_limits(device);
    source.builds = RUNTIME_CHECKED | (plain ? RUNTIME_PLAIN : 0);
    source.runs_long = report->sampled && verify_runs_long(kernel);
    return source;
}

VerifyReport verify(Arena *scratch, const Program *program, const Kernel *kernel, const DeviceSpec *device,
                    const VerifyOptions *options)
{
    double start = seconds_now();
    VerifyReport report = {.sampled = verify_is_too_large(kernel, options->whole_work, false)};
    RuntimeSource source = source_of(kernel, device, &report);
    const Runtime *runtime = runtime_of(options);
    RuntimeModule *module;
    report.status = status_of(runtime->load(scratch, &source, &module, &report.message));
    if (report.sampled && !runtime->checks) {
        report.status = VERIFY_TIMEOUT;
        report.message = "the program is too large to be judged whole, and this runtime runs no parts";
    }
    for (InputKind kind = 0; kind < INPUT_KINDS && report.status == VERIFY_RIGHT; kind++) {
        Proof proof = {
            .arena = scratch,
            .program = program,
            .kernel = kernel,
            .module = module,
            .options = options,
            .kind = kind,
            .report = &report,
        };
        if (is_tried(&proof))
            prove_kind(&proof);
    }
    if (options->progress && report.sampled)
        progress_end();
    if (report.status == VERIFY_RIGHT && report.unproven) {   // a wrong launch would be worse
        report.status = VERIFY_TIMEOUT;
        report.message = report.unproven;
    }
    report.seconds = round((seconds_now() - start) * 1e3) / 1e3;   // no more than a clock tells
    return report;
}
