#include "rank/ranking.h"

#include <inttypes.h>
#include <sha256.h>
#include <string.h>

#include "base/json.h"
#include "codegen/codegen.h"

static const char schema_id[] = "urn:rollerc:ranking:1";

enum { ID_LENGTH = 16 };   // hexadecimal digits of a candidate's id: 64 bits, plenty for 100 of them

static char *hash_of(Arena *arena, const char *text, size_t length)
{
    char *hex = arena_alloc(arena, SHA256_DIGEST_STRING_LENGTH);
    return SHA256Data((const uint8_t *)text, length, hex);
}

// ---- the problem ----

static const char *const role_name[] = {[ROLE_INPUT] = "input", [ROLE_OUTPUT] = "output",
                                        [ROLE_TEMPORARY] = "temporary"};

static void add_tensor(Json *tensors, const Tensor *tensor)
{
    Json *entry = json_push_object(tensors);
    json_set_string(entry, "name", tensor->name);
    json_set_string(entry, "role", role_name[tensor->role]);
    json_set_string(entry, "dtype", dtype_info[tensor->dtype].name);
    Json *shape = json_set_array(entry, "shape");
    for (int i = 0; i < tensor->rank; i++)
        json_push_int(shape, tensor->shape[i]);
}

/* What every plan has to move at least: each input once, each output once. */
static double least_dram_bytes(const Program *program)
{
    double bytes = 0;
    for (int i = 0; i < program->input_count; i++)
        bytes += (double)tensor_bytes(program->inputs[i]);
    for (int i = 0; i < program->output_count; i++)
        bytes += (double)tensor_bytes(program->outputs[i]);
    return bytes;
}

/* Operations of the definitions as written, one by one: a fused multiply-add counts 2, a reduction step 1. */
static void count_apply(Expr *expr, void *context)
{
    double *flops = context;
    if (expr->kind == EXPR_APPLY)
        ++*flops;
}

static double program_flops(const Program *program)
{
    double flops = 0;
    for (int i = 0; i < program->op_count; i++) {
        const TensorOp *op = program->ops[i];
        double op_flops = op->reduce == REDUCE_NONE ? 0 : 1;   // of one point first
        expr_visit(op->body, count_apply, &op_flops);
        for (int a = 0; a < op->axis_count; a++)
            op_flops *= (double)op->axes[a].extent;
        flops += op_flops;
    }
    return flops;
}

static void add_workload(Arena *arena, Json *root, const Program *program)
{
    StrBuf text = strbuf_new(arena);
    program_print(&text, program);
    double flops = program_flops(program), bytes = least_dram_bytes(program);

    Json *workload = json_set_object(root, "workload");
    json_set_string(workload, "id", hash_of(arena, text.text, text.length));
    json_set_string(workload, "expr", text.text);
    Json *tensors = json_set_array(workload, "tensors");
    for (int i = 0; i < program->tensor_count; i++)
        add_tensor(tensors, program->tensors[i]);
    json_set_double(workload, "flops", flops);
    json_set_double(workload, "min_dram_bytes", bytes);
    json_set_double(workload, "arithmetic_intensity", flops / bytes);
}

static void add_device(Json *root, const DeviceSpec *device)
{
    Json *entry = json_set_object(root, "device");
    json_set_string(entry, "name", device->name);
    json_set_string(entry, "title", device->title);
    json_set_string(entry, "arch", device->arch);
    json_set_string(entry, "yaml_sha256", device->sha256);
    json_set_int(entry, "sm_count", device->sm_count);
    json_set_double(entry, "clock_mhz", device->clock_mhz);
    json_set_int(entry, "shared_bytes_per_sm", device->shared_per_sm);
    json_set_int(entry, "shared_bytes_per_block", device->shared_per_block_optin);
    json_set_int(entry, "registers_per_sm", device->registers_per_sm);
    json_set_int(entry, "l2_bytes", device->l2_bytes);
    json_set_double(entry, "dram_gb_s", device->dram.bandwidth_gb_s);
    Json *peak = json_set_object(entry, "peak_gflop_s");
    for (int unit = 0; unit < UNIT_COUNT; unit++)
        if (device->peak[unit] > 0)
            json_set_double(peak, unit_name[unit], device->peak[unit]);
}

/* Those that change the result. */
static void add_options(Json *root, const Options *options)
{
    Json *entry = json_set_object(root, "options");
    json_set_string(entry, "name", options->name);
    json_set_string(entry, "math", eval_math_name[options->math]);
    json_set_int(entry, "top_k", options->top_k);
    Json *params = json_set_object(entry, "params");
    for (int i = 0; i < options->param_count; i++)
        json_set_string(params, options->params[i].name, options->params[i].text);
}

// ---- the candidates ----

static void add_config(Json *launch, const PlannedLaunch *planned)
{
    static const char *const level_name[] = {
        [LEVEL_REGISTER] = "register", [LEVEL_SHARED] = "shared", [LEVEL_GLOBAL] = "global"};
    const TileSpace *space = &planned->rules->space;
    Json *config = json_set_object(launch, "config");
    json_set_string(config, "variant", planned->rules->variant_name);
    json_set_int(config, "threads", planned->program.threads);
    json_set_int(config, "stages", planned->rules->stages);
    json_set_double(config, "padding_tolerance", planned->program.tolerance);
    Json *tile = json_set_object(config, "tile");
    for (int level = LEVEL_GLOBAL; level >= LEVEL_REGISTER; level--) {
        Json *sizes = json_set_object(tile, level_name[level]);
        for (int a = 0; a < space->axis_count; a++)
            json_set_int(sizes, space->axes[a].name, planned->program.tile[level].size[a]);
    }
}

static void add_estimate(Json *launch, const PerfEstimate *perf)
{
    Json *predicted = json_set_object(launch, "predicted");
    json_set_double(predicted, "time_us", perf->time_us);
    json_set_double(predicted, "compute_us", perf->compute_us);
    json_set_double(predicted, "special_us", perf->special_us);
    json_set_double(predicted, "shared_us", perf->shared_us);
    json_set_double(predicted, "l2_us", perf->l2_us);
    json_set_double(predicted, "dram_us", perf->dram_us);
    json_set_double(predicted, "start_us", perf->start_us);
    json_set_double(predicted, "latency_us", perf->latency_us);
    json_set_double(predicted, "launch_us", perf->launch_us);
    json_set_string(predicted, "bound_by", bound_name[perf->bound_by]);
    json_set_double(predicted, "waves", perf->waves);
    json_set_double(predicted, "tail_efficiency", perf->tail_efficiency);
    Json *occupancy = json_set_object(predicted, "occupancy");
    json_set_int(occupancy, "blocks_per_sm", perf->blocks_per_sm);
    json_set_string(occupancy, "limiter", limiter_name[perf->limiter]);
    Json *bytes = json_set_object(predicted, "bytes");
    json_set_double(bytes, "dram_load", perf->dram_load_bytes);
    json_set_double(bytes, "dram_store", perf->dram_store_bytes);
    json_set_double(bytes, "l2_load", perf->l2_load_bytes);
    json_set_double(bytes, "l2_store", perf->l2_store_bytes);
    json_set_double(bytes, "shared_load", perf->shared_load_bytes);
    json_set_double(bytes, "shared_store", perf->shared_store_bytes);
    json_set_double(predicted, "flops", perf->flops);
    json_set_double(predicted, "padding_waste", perf->padding_waste);
}

static void add_triple(Json *object, const char *key, int64_t x, int64_t y, int64_t z)
{
    Json *triple = json_set_array(object, key);
    json_push_int(triple, x);
    json_push_int(triple, y);
    json_push_int(triple, z);
}

// ---- what the compiler made of it, what a GPU measured ----

static void add_compiled(Arena *arena, Json *launch, const JitResult *compiled, const JitKernel *kernel,
                         const char *arch)
{
    const char **arguments;
    int count = jit_arguments(arena, arch, &arguments);
    Json *entry = json_set_object(launch, "compiled");
    json_set_string(entry, "compiler", compiled->compiler);
    Json *options = json_set_array(entry, "options");
    for (int i = 0; i < count; i++)
        json_push_string(options, arguments[i]);
    json_set_int(entry, "registers", kernel->registers);
    json_set_int(entry, "spill_store_bytes", kernel->spill_store_bytes);
    json_set_int(entry, "spill_load_bytes", kernel->spill_load_bytes);
    json_set_int(entry, "stack_bytes", kernel->stack_bytes);
    json_set_int(entry, "static_smem_bytes", kernel->static_shared_bytes);
    const char *cubin = (const char *)compiled->cubin;
    json_set_string(entry, "cubin_sha256", hash_of(arena, cubin, compiled->cubin_length));
}

static void add_measured(Json *candidate, const CandidateList *list, const Measurement *measured)
{
    Json *entry = json_set_object(candidate, "measured");
    json_set_string(entry, "gpu", list->gpu);
    json_set_string(entry, "driver", list->driver);
    json_set_int(entry, "warmup", measured->warmup);
    json_set_int(entry, "reps", measured->reps);
    json_set_int(entry, "buffer_sets", measured->buffer_sets);
    Json *time = json_set_object(entry, "time_us");
    json_set_double(time, "min", measured->min_us);
    json_set_double(time, "median", measured->median_us);
    json_set_double(time, "mean", measured->mean_us);
    json_set_double(time, "p95", measured->p95_us);
    json_set_double(time, "stdev", measured->stdev_us);
    Json *verified = json_set_object(entry, "verified");
    json_set_int(verified, "elements", measured->elements);
    json_set_int(verified, "unjudged", measured->unjudged);
    json_set_double(verified, "max_abs", measured->max_abs);
    json_set_double(verified, "max_of_bound", measured->max_of_bound);
}

static Json *add_launch(Json *launches, const PlannedLaunch *planned, const Launch *launch)
{
    Json *entry = json_push_object(launches);
    json_set_string(entry, "kernel", launch->entry);
    json_set_string(entry, "family", planned->family->name);
    json_set_string(entry, "template", planned->family->template_path);
    add_config(entry, planned);
    add_triple(entry, "grid", launch->grid[0], launch->grid[1], launch->grid[2]);
    add_triple(entry, "block", launch->block[0], launch->block[1], launch->block[2]);
    if (launch_cluster_blocks(launch) > 1)
        add_triple(entry, "cluster", launch->cluster[0], launch->cluster[1], launch->cluster[2]);
    json_set_bool(entry, "cooperative", launch->cooperative);
    json_set_int(entry, "dynamic_smem_bytes", launch->shared_bytes);
    json_set_int(entry, "estimated_registers", planned->program.registers);
    add_estimate(entry, &planned->program.perf);
    return entry;
}

/* A candidate is named by what it launches, so that two rankings can be compared: the hash of its launches' tiles. */
static char *candidate_id(Arena *arena, const Plan *plan)
{
    StrBuf text = strbuf_new(arena);
    strbuf_puts(&text, plan->fusion_plan);
    for (int k = 0; k < plan->count; k++) {
        const PlannedLaunch *planned = &plan->launches[k];
        strbuf_printf(&text, ";%s %s", planned->family->name, planned->rules->variant_name);
        if (planned->program.cluster > 1)
            strbuf_printf(&text, " in %d", planned->program.cluster);
        for (int level = 0; level < LEVEL_COUNT; level++)
            for (int a = 0; a < planned->rules->space.axis_count; a++)
                strbuf_printf(&text, " %" PRId64, planned->program.tile[level].size[a]);
    }
    char *id = hash_of(arena, text.text, text.length);
    id[ID_LENGTH] = '\0';
    return id;
}

static void add_summary(Arena *arena, Json *root, const Ranking *ranking)
{
    const ConstructStats *stats = ranking->stats;
    const Candidate *best = ranking->candidates->items;
    bool any = ranking->candidates->count > 0 && !candidate_failed(best);
    Json *summary = json_set_object(root, "summary");
    json_set_int(summary, "generated", stats->generated);
    json_set_int(summary, "feasible", stats->feasible);
    Json *pruned = json_set_object(summary, "pruned");
    for (int reason = 0; reason < PRUNE_COUNT; reason++)
        json_set_int(pruned, prune_reason_name[reason], stats->pruned[reason]);
    json_set_string(summary, "best_id", any ? candidate_id(arena, best->plan) : NULL);
}

static void add_launches(Arena *arena, Json *entry, const Ranking *ranking, const Candidate *candidate)
{
    const Plan *plan = candidate->plan;
    CodegenRequest request = {
        .name = ranking->options->name, .program = ranking->program, .plan = plan, .device = ranking->device};
    const Kernel *kernel = candidate->kernel ? candidate->kernel : codegen_launches(arena, &request);
    json_set_int(entry, "workspace_bytes", kernel->workspace_bytes);
    json_set_double(json_set_object(entry, "predicted"), "time_us", plan->time_us);
    Json *launches = json_set_array(entry, "launches");
    for (int k = 0; k < plan->count; k++) {
        const JitResult *compiled = candidate->compiled;
        const JitKernel *facts = compiled ? jit_find_kernel(compiled, kernel->launches[k].entry) : NULL;
        Json *launch = add_launch(launches, &plan->launches[k], &kernel->launches[k]);
        if (facts)
            add_compiled(arena, launch, compiled, facts, ranking->device->arch);
    }
}

static void add_candidate(Arena *arena, Json *candidates, const Ranking *ranking, int position)
{
    const Candidate *candidate = &ranking->candidates->items[position];
    Json *entry = json_push_object(candidates);
    json_set_string(entry, "id", candidate_id(arena, candidate->plan));
    json_set_int(entry, "rank", position + 1);
    json_set_string(entry, "status", candidate_status_name[candidate->status]);
    if (candidate->reason)
        json_set_string(entry, "reason", candidate->reason);
    json_set_string(entry, "fusion", candidate->plan->fusion_plan);
    add_launches(arena, entry, ranking, candidate);
    if (candidate->measured)
        add_measured(entry, ranking->candidates, candidate->measured);
}

char *ranking_json(Arena *arena, const Ranking *ranking)
{
    Json *root = json_object();
    json_set_string(root, "$schema", schema_id);
    json_set_string(root, "schema_version", "1.0.0");
    Json *tool = json_set_object(root, "tool");
    json_set_string(tool, "name", "rollerc");
    json_set_string(tool, "version", ROLLERC_VERSION);
    add_workload(arena, root, ranking->program);
    add_device(root, ranking->device);
    add_options(root, ranking->options);
    add_summary(arena, root, ranking);
    Json *candidates = json_set_array(root, "candidates");
    for (int i = 0; i < ranking->candidates->count; i++)
        add_candidate(arena, candidates, ranking, i);
    char *text = json_text(arena, root, true);
    json_free(root);
    return text;
}
