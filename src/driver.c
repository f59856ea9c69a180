#include "driver.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/output.h"
#include "base/stopwatch.h"
#include "codegen/codegen.h"
#include "codegen/cuda/trim.h"
#include "codegen/plan/plan.h"
#include "codegen/plan/type_advice.h"
#include "explain/explain.h"
#include "front/lex.h"
#include "front/lower.h"
#include "front/parse.h"
#include "hal/device.h"
#include "import.h"
#include "ir/common_factors.h"
#include "ir/compose.h"
#include "ir/fuse.h"
#include "ir/prepared.h"
#include "prove/verify.h"
#include "rank/candidates.h"
#include "rank/ranking.h"
#include "trial.h"

/* Nothing is wanted of the stages after this one. */
static bool is_last_stage(const Options *opt, DumpStage stage)
{
    for (int later = (int)stage + 1; later < STAGE_COUNT; later++)
        if (opt->dump[later])
            return false;
    return opt->artefact_count == 0 && !opt->verify && !opt->profile;
}

/* Prints what a stage made, if `-d` asked for it, and ends there if nothing more was asked for; `print` is
   the statement that does so into `out`. */
#define DUMP(id, print)                                                                                      \
    if (opt->dump[STAGE_##id]) {                                                                             \
        diag_finish();                                                                                       \
        StrBuf buffer = strbuf_new(arena), *out = &buffer;                                                   \
        print;                                                                                               \
        fwrite(out->text, 1, out->length, stdout);                                                           \
        if (is_last_stage(opt, STAGE_##id)) {                                                                \
            arena_free(arena);                                                                               \
            return EXIT_DONE;                                                                                \
        }                                                                                                    \
    }

/* Make reads a blank as the end of a name. */
static void write_path(StrBuf *out, const char *path)
{
    for (; *path; path++) {
        if (*path == ' ' || *path == '#' || *path == '\\')
            strbuf_putc(out, '\\');
        else if (*path == '$')
            strbuf_putc(out, '$');
        strbuf_putc(out, *path);
    }
}

static void write_dependency(StrBuf *out, const char *path)
{
    strbuf_putc(out, ' ');
    write_path(out, path);
}

/* What `-MD` lists: every file that was read. */
static void write_depfile(Arena *arena, const Options *opt, const DeviceSpec *device, const Plan *plan,
                          OutputSet *outputs)
{
    StrBuf out = strbuf_new(arena);
    if (opt->dep_target)
        write_path(&out, opt->dep_target);
    for (int i = 0; !opt->dep_target && i < opt->artefact_count; i++)
        if (strcmp(opt->artefacts[i].path, "-") != 0) {
            strbuf_puts(&out, out.length ? " " : "");
            write_path(&out, opt->artefacts[i].path);
        }
    strbuf_puts(&out, ":");
    if (strcmp(opt->input, "-") != 0)
        write_dependency(&out, opt->input);
    if (!device_text(opt->device))
        write_dependency(&out, device->file);
    if (opt->templates) {
        const TemplateStore store = {.arena = arena, .folder = opt->templates};
        for (const char *const *path = prelude_files(&store); *path; path++)
            write_dependency(&out, template_place(&store, *path));
        for (int k = 0; k < plan->count; k++)
            write_dependency(&out, template_place(&store, plan->launches[k].family->template_path));
    }
    strbuf_puts(&out, "\n");
    output_stage(outputs, opt->depfile, out.text, out.length);
}

/* What is written, and the ranking it stands in. */
typedef struct Written {
    const Candidate *best;
    const Source *ranking;
} Written;

static const char *explanation(Arena *arena, ArtefactKind kind, const Source *ranking)
{
    const Report *report = report_read(arena, ranking);
    return kind == ARTEFACT_PAGE ? explain_page(arena, report) : explain_text(arena, report);
}

static const char *text_of(Arena *arena, ArtefactKind kind, const Written *product)
{
    switch (kind) {
    case ARTEFACT_CU: return product->best->kernel->source;
    case ARTEFACT_HEADER: return codegen_header(arena, product->best->kernel);
    case ARTEFACT_JSON: return product->ranking->text;
    default: return explanation(arena, kind, product->ranking);
    }
}

static void stage_artefact(Arena *arena, OutputSet *outputs, const Artefact *artefact,
                           const Written *product)
{
    const JitResult *compiled = product->best->compiled ? product->best->compiled[0] : NULL;
    if (artefact->kind == ARTEFACT_PTX) {
        output_stage(outputs, artefact->path, compiled->ptx, compiled->ptx_length);
    } else if (artefact->kind == ARTEFACT_CUBIN) {
        output_stage(outputs, artefact->path, (const char *)compiled->cubin, compiled->cubin_length);
    } else {
        const char *text = text_of(arena, artefact->kind, product);
        output_stage(outputs, artefact->path, text, strlen(text));
    }
}

/* Hundreds of megabytes go to the disk while the kernels are planned. */
static OutputSet *begin_outputs(Arena *arena, const Options *opt, const ModelInput *input, Stopwatch *watch)
{
    OutputSet *outputs = output_set_new(arena);
    if (!input->weights_path)
        return outputs;
    import_stage_weights(arena, outputs, input->weights_path, &input->program,
                         input->embeds ? opt->name : NULL);
    stopwatch_lap(watch, "weights", "%zu bytes", input->program.weight_bytes);
    return outputs;
}

static void write_outputs(Arena *arena, OutputSet *outputs, const Options *opt, const DeviceSpec *device,
                          const Written *product)
{
    for (int i = 0; i < opt->artefact_count; i++)
        stage_artefact(arena, outputs, &opt->artefacts[i], product);
    if (opt->depfile)
        write_depfile(arena, opt, device, product->best->plan, outputs);
    output_commit(outputs);
}

static const Candidate *choose(const Options *opt, const CandidateList *list)
{
    const Candidate *best = list->items;
    for (int i = 0; i < list->count && opt->candidate; i++)
        if (list->items[i].model_rank == opt->candidate)
            best = &list->items[i];
    if (candidate_failed(best) && opt->candidate)
        fatal(EXIT_WRONG, "candidate %d failed: %s", opt->candidate, best->reason);
    if (candidate_failed(best))
        fatal(EXIT_WRONG, "every candidate failed; the first one: %s", best->reason);
    return best;
}

/* Runs the kernel on the CPU interpreter and says how that went. */
static VerifyReport prove(Arena *arena, const Options *opt, const Program *program, const Kernel *kernel,
                          const DeviceSpec *device, const char *weights, Stopwatch *watch)
{
    VerifyReport report = verify(arena, program, kernel, device,
                                 &(VerifyOptions){.math = opt->math,
                                                  .seconds = opt->hang_after,
                                                  .weights = weights,
                                                  .progress = kernel->kernel_count > 1});
    if (report.status == VERIFY_WRONG)
        fatal(EXIT_WRONG, "the kernel is wrong and is not written: %s", report.message);
    if (report.status == VERIFY_TIMEOUT)
        fatal(EXIT_MACHINE, "the proof takes too long, and the kernel is not written: %s", report.message);
    if (report.status == VERIFY_MACHINE)
        fatal(EXIT_MACHINE, "cannot verify: %s", report.message);
    if (report.sampled)
        talk("verified %" PRId64 " elements on %" PRId64 " of %" PRId64
             " blocks (corners, edges and random ones%s)",
             report.elements - report.unjudged, report.blocks_run, report.blocks_total,
             report.estimated ? "; what launches pass on of long reductions was estimated" : "");
    else
        talk("verified all %" PRId64 " elements that were computed", report.elements - report.unjudged);
    stopwatch_lap(watch, "verify", "%" PRId64 " elements, %" PRId64 " of %" PRId64 " blocks", report.elements,
                  report.blocks_run, report.blocks_total);
    return report;
}

/* The kernel is written all the same: where it is compiled says nothing of where it runs, and what a device
   has beyond its own memory, managed or mapped, rollerc does not know. */
static void warn_of_memory(const Program *program, const Plan *plan, const DeviceSpec *device)
{
    if (!plan->fits)
        diag_warning(
            (Loc){0},
            "the tensors take %.1f GB and the workspace %.1f GB, and '%s' has %.1f GB of memory: they do not "
            "fit into it",
            1e-9 * (double)program_bytes(program), 1e-9 * (double)plan->workspace_bytes, device->name,
            1e-9 * (double)device->dram_bytes);
}

/* What of all that can be asked for needs a text. */
static const char *text_wanted_by(const Options *opt)
{
    for (int i = 0; i < opt->artefact_count; i++) {
        ArtefactKind kind = opt->artefacts[i].kind;
        if (kind != ARTEFACT_JSON && kind != ARTEFACT_TEXT && kind != ARTEFACT_PAGE)
            return opt->artefacts[i].option;
    }
    return opt->verify               ? "--verify"
           : opt->profile            ? opt->profile
           : opt->dump[STAGE_kernel] ? "-d kernel"
                                     : NULL;
}

static void check_text(const Options *opt, const DeviceSpec *device)
{
    const char *wanted = text_wanted_by(opt);
    if (device_is_ranked_only(device) && wanted)
        fatal(EXIT_USAGE,
              "'%s' is ranked only: there is no text for %s; -o FILE.json, FILE.txt or FILE.html ranks",
              device->name, wanted);
}

static void warn_of_math(EvalMath math, const DeviceSpec *device)
{
    if (math == EVAL_TF32 && device->peak[UNIT_TENSOR_TF32] == 0 && device->peak[UNIT_WGMMA_TF32] == 0)
        diag_warning((Loc){0}, "--math=tf32 changes nothing: '%s' has no tensor cores for TF32",
                     device->name);
}

/* The file is that of this program: the importer's for its text, or what an expression is to be proven
   with. */
static void check_weights(const Options *opt, const ModelInput *input, const Program *program)
{
    bool is_model = options_input_is_model(opt);
    size_t wanted = (size_t)program_weight_bytes(program);
    size_t seen = is_model ? input->program.weight_bytes : input->given.length;
    assert(!is_model || seen == wanted);
    if (is_model || !opt->weights || seen == wanted)
        return;
    if (!wanted)
        fatal(EXIT_USAGE, "--weights: '%s' has none", opt->input);
    fatal(EXIT_INPUT, "'%s' has %zu bytes; the weights of '%s' have %zu, each at the next multiple of %d",
          opt->weights, seen, opt->input, wanted, WEIGHT_ALIGNMENT);
}

static int token_count(const Token *tokens)
{
    int count = 0;
    while (tokens[count].kind != TOKEN_END)
        count++;
    return count;
}

static Outcome outcome_of(const Candidate *best)
{
    return (Outcome){best->plan->time_us, best->measured ? best->measured->median_us : 0};
}

static RankingOptions ranking_options(const Options *opt)
{
    return (RankingOptions){
        .name = opt->name,
        .math = opt->math,
        .top_k = opt->top_k,
        .candidate = opt->candidate,
        .verify = opt->verify,
        .profile = opt->profile,
        .force_device = opt->force_device,
        .hang_after = opt->hang_after,
        .line_directives = opt->line_directives,
        .with_test = opt->with_test,
        .params = opt->params,
        .param_count = opt->param_count,
    };
}

/* The whole compiler, in order. Each line takes what the lines above it made. */
int compile(const Options *opt, Outcome *outcome)
{
    Arena *arena = arena_new();
    Stopwatch watch = stopwatch_start();
    const DeviceSpec *device = device_read(arena, opt->device);
    const Target target = {device, opt->math, opt->without};
    check_text(opt, device);
    warn_of_math(opt->math, device);
    stopwatch_lap(&watch, "device", "%s: %d SMs of %s", device->name, device->sm_count, device->arch);
    ModelInput input = import_input(arena, opt);
    Token *tokens = lex(arena, input.source);
    stopwatch_lap(&watch, "lex", "%d tokens", token_count(tokens));
    DUMP(tokens, tokens_print(out, tokens));
    Ast *ast = parse(arena, tokens);
    stopwatch_lap(&watch, "parse", "%d statements, %d reductions", ast->statement_count,
                  ast->reduction_count);
    DUMP(ast, ast_print(out, ast));
    Program *program = lower(arena, ast, opt->params, opt->param_count);
    program->fast_math = opt->math == EVAL_FAST;
    check_weights(opt, &input, program);
    common_factors_advise(arena, program);
    stopwatch_lap(&watch, "lower", "%d tensors, %d definitions", program->tensor_count, program->op_count);
    OutputSet *outputs = begin_outputs(arena, opt, &input, &watch);
    DUMP(op, program_print(out, program));
    Program *composed = compose(arena, program);
    FusionPlans fusions = fuse(arena, composed);
    stopwatch_lap(&watch, "fuse", "%d ways to divide them into kernels", fusions.count);
    PlanList plans = plan_program(arena, &fusions, &target, opt->top_k);
    stopwatch_lap(&watch, "plan", "%" PRId64 " programs, %" PRId64 " legal, %d plans kept",
                  plans.stats.generated, plans.stats.feasible, plans.count);
    types_advise(arena, program, &target, &plans);
    DUMP(fusion, (fusion_plans_print(out, &fusions), plan_families_print(out, &fusions, &target, &plans)));
    DUMP(analysis, plan_families_print(out, &fusions, &target, &plans));
    DUMP(device, device_print(out, device));
    DUMP(rtile, plan_kinds_print(out, &fusions, &target));
    DUMP(rprogram, plan_list_print(out, &plans));
    if (!plans.count)
        fatal(EXIT_NO_PROGRAM, "the device '%s' can hold no program for this expression", device->name);

    if (opt->candidate > plans.count)
        fatal(EXIT_USAGE, "there is no candidate %d: %d were kept", opt->candidate, plans.count);

    DUMP(schedule, plan_schedules_print(out, &plans.plans[opt->candidate ? opt->candidate - 1 : 0], device));
    CandidateList candidates = candidates_of_plans(arena, &plans);
    StrBuf expr = strbuf_new(arena);
    ast_print_source(&expr, ast, opt->params, opt->param_count);
    TemplateStore templates = {
        .arena = arena, .folder = opt->templates, .line_directives = opt->line_directives};
    CodegenRequest base = {
        .name = opt->name,
        .program = composed,
        .expr = expr.text,
        .device = device,
        .templates = &templates,
        .fast_math = opt->math == EVAL_FAST,
        .with_test = opt->with_test,
    };
    PartList parts = try_candidates(arena, opt, &base, &target, &candidates, &watch);
    Written product = {.best = choose(opt, &candidates)};
    warn_of_memory(program, product.best->plan, device);
    DUMP(kernel, strbuf_puts(out, product.best->kernel->source));
    VerifyReport proof = {0};
    if (opt->verify)
        proof = prove(arena, opt, program, product.best->kernel, device, import_weights(arena, opt, &input),
                      &watch);
    RankingOptions asked = ranking_options(opt);
    Ranking ranking = {
        .options = &asked,
        .expr = expr.text,
        .program = composed,
        .device = device,
        .stats = &plans.stats,
        .templates = &templates,
        .candidates = &candidates,
        .parts = &parts,
        .emitted = product.best,
        .proof = opt->verify ? &proof : NULL,
    };
    if (trial_wants_ranking(opt)) {
        const char *json = ranking_json(arena, &ranking);
        product.ranking = source_from_text(arena, "the ranking", json, strlen(json));
        stopwatch_lap(&watch, "rank", "%d candidates, %zu bytes", candidates.count, product.ranking->length);
    }
    write_outputs(arena, outputs, opt, device, &product);
    stopwatch_lap(&watch, "write", "%d files", opt->artefact_count + (opt->depfile != NULL));
    if (outcome)
        *outcome = outcome_of(product.best);
    arena_free(arena);
    return EXIT_DONE;
}

int explain(const Options *opt)
{
    Arena *arena = arena_new();
    const Source *ranking = source_read_long(arena, opt->input, RANKING_MAX_BYTES);
    OutputSet *outputs = output_set_new(arena);
    for (int i = 0; i < opt->artefact_count; i++) {
        const char *text = explanation(arena, opt->artefacts[i].kind, ranking);
        output_stage(outputs, opt->artefacts[i].path, text, strlen(text));
    }
    output_commit(outputs);
    arena_free(arena);
    return EXIT_DONE;
}
