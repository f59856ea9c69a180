#include "rank/ranking.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "codegen/codegen.h"
#include "rank/ranking_parts.h"

static const char schema_id[] = "urn:rollerc:ranking:2";

enum {
    ID_LENGTH = 16,         // hexadecimal digits of a candidate's id: 64 bits, plenty for 100 of them
    OF_INSTRUCTION = 128    // threads that execute one instruction, at most: a group of four warps
};

// ---- the candidates ----

static bool stages_tiles(const KernelKind *kind)
{
    bool staged = false;
    for (int i = 0; i < kind->space->tile_count; i++)
        staged |= kind->space->tiles[i].staged;
    return staged && (kind->schedule->stages || !kind->schedule->vectors);
}

static void add_config(Arena *arena, Json *launch, const PlannedLaunch *planned)
{
    static const char *const level_name[] = {
        [LEVEL_REGISTER] = "register", [LEVEL_SHARED] = "shared", [LEVEL_GLOBAL] = "global"};
    const TileSpace *space = planned->kind->space;
    Json *config = json_set_object(launch, "config");
    json_set_string(config, "variant", planned->kind->name);
    json_set_int(config, "threads", planned->program->threads);
    if (stages_tiles(planned->kind))
        json_set_int(config, "stages", schedule_buffers(planned->kind->schedule));
    if (planned->kind->schedule->vectors > 0)
        json_set_int(config, "vectors", planned->kind->schedule->vectors);
    json_set_string(config, "schedule", plan_schedule_text(arena, planned));
    json_set_int(config, "tile_threads", kind_tile_threads(planned->kind));
    json_set_double(config, "padding_tolerance", planned->program->tolerance);
    Json *reduced = json_set_array(config, "reduced");
    for (int a = 0; a < space->axis_count; a++)
        if (space->axes[a].reduction)
            json_push_string(reduced, space->axes[a].name);
    Json *tile = json_set_object(config, "tile");
    for (int level = LEVEL_GLOBAL; level >= LEVEL_REGISTER; level--) {
        Json *sizes = json_set_object(tile, level_name[level]);
        for (int a = 0; a < space->axis_count; a++)
            json_set_int(sizes, space->axes[a].name, planned->program->tile[level].size[a]);
    }
}

/* Blocks that share an SM, with so many registers a thread. */
typedef struct Residency {
    int registers;
    int blocks_per_sm;
    Limiter limiter;
    double waves;
} Residency;

/* The model's, or what follows from the registers that the compiler took. */
static Residency residency_of(const RProgram *program, const DeviceSpec *device, const JitKernel *compiled)
{
    const PerfEstimate *perf = &program->perf;
    if (!compiled)
        return (Residency){program->registers, perf->blocks_per_sm, perf->limiter, perf->waves};
    Residency own = {.registers = compiled->registers};
    own.blocks_per_sm =
        perf_blocks_per_sm(device, program->threads, own.registers, program->shared_bytes, &own.limiter);
    own.blocks_per_sm = own.blocks_per_sm > 0 ? own.blocks_per_sm : 1;
    if (program->grid <= (int64_t)(own.blocks_per_sm - 1) * device->sm_count)
        own.limiter = LIMIT_GRID;
    own.waves = (double)program->dealt / (own.blocks_per_sm * (double)device->sm_count);
    return own;
}

static void add_occupancy(Json *predicted, const RProgram *program, const Residency *residency,
                          const DeviceSpec *device)
{
    static const char *const resource[LIMIT_GRID] = {[LIMIT_THREADS] = "threads",
                                                     [LIMIT_BLOCKS] = "blocks",
                                                     [LIMIT_REGISTERS] = "registers",
                                                     [LIMIT_SHARED] = "shared_memory"};
    int64_t limits[LIMIT_GRID];
    perf_block_limits(device, program->threads, residency->registers, program->shared_bytes, limits);
    Json *occupancy = json_set_object(predicted, "occupancy");
    json_set_int(occupancy, "blocks_per_sm", residency->blocks_per_sm);
    json_set_string(occupancy, "limiter", limiter_name[residency->limiter]);
    Json *room = json_set_object(occupancy, "room_for");
    for (int i = 0; i < LIMIT_GRID; i++)
        if (limits[i] < INT64_MAX)
            json_set_int(room, resource[i], limits[i]);
}

static void add_estimate(Json *launch, const PlannedLaunch *planned, const DeviceSpec *device,
                         const JitKernel *compiled)
{
    const PerfEstimate *perf = &planned->program->perf;
    Residency residency = residency_of(planned->program, device, compiled);
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
    json_set_double(predicted, "unhidden_us", perf->unhidden_us);
    json_set_double(predicted, "tail_us", perf->tail_us);
    json_set_double(predicted, "wait_us", perf->wait_us);
    json_set_string(predicted, "bound_by", bound_name[perf->bound_by]);
    if (perf->supersteps > 0)
        json_set_double(predicted, "supersteps", perf->supersteps);
    json_set_double(predicted, "waves", residency.waves);
    json_set_double(predicted, "tail_efficiency", perf->tail_efficiency);
    add_occupancy(predicted, planned->program, &residency, device);
    Json *bytes = json_set_object(predicted, "bytes");
    json_set_double(bytes, "dram_load", perf->dram_load_bytes);
    json_set_double(bytes, "dram_store", perf->dram_store_bytes);
    json_set_double(bytes, "l2_load", perf->l2_load_bytes);
    json_set_double(bytes, "l2_store", perf->l2_store_bytes);
    json_set_double(bytes, "shared_load", perf->shared_load_bytes);
    json_set_double(bytes, "shared_store", perf->shared_store_bytes);
    Unit unit = planned->kind->space->unit;
    json_set_string(predicted, "unit", unit_name[device->peak[unit] > 0 ? unit : UNIT_FP32]);
    json_set_double(predicted, "flops", perf->flops);
    if (perf->instructions > 0)
        json_set_double(predicted, "instructions", perf->instructions);
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
    int count = jit_arguments(arena, arch, compiled->all_registers, &arguments);
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

static Json *add_launch(Arena *arena, Json *launches, const PlannedLaunch *planned, const Launch *launch,
                        const DeviceSpec *device, const JitKernel *compiled)
{
    Json *entry = json_push_object(launches);
    json_set_string(entry, "kernel", launch->entry);
    json_set_string(entry, "makes", tensor_shown(planned->fusion->outputs[0])->name);
    json_set_string(entry, "family", planned->family->name);
    json_set_string(entry, "template", planned->family->template_path);
    add_config(arena, entry, planned);
    add_triple(entry, "grid", launch->grid[0], launch->grid[1], launch->grid[2]);
    add_triple(entry, "block", launch->block[0], launch->block[1], launch->block[2]);
    if (launch_cluster_blocks(launch) > 1)
        add_triple(entry, "cluster", launch->cluster[0], launch->cluster[1], launch->cluster[2]);
    json_set_bool(entry, "cooperative", launch->cooperative);
    if (launch->early)
        json_set_bool(entry, "early", true);
    json_set_int(entry, "dynamic_smem_bytes", launch->shared_bytes);
    json_set_int(entry, "estimated_registers", planned->program->registers);
    add_estimate(entry, planned, device, compiled);
    return entry;
}

/* A candidate is named by what it launches, so that two rankings can be compared: the hash of its launches'
   tiles, and of threads that share one where they are more than one instruction's. */
static char *candidate_id(Arena *arena, const Plan *plan)
{
    StrBuf text = strbuf_new(arena);
    strbuf_puts(&text, plan->fusion_plan);
    for (int k = 0; k < plan->count; k++) {
        const PlannedLaunch *planned = &plan->launches[k];
        strbuf_printf(&text, ";%s %s", planned->family->name, planned->kind->name);
        if (planned->program->cluster > 1)
            strbuf_printf(&text, " in %d", planned->program->cluster);
        if (kind_tile_threads(planned->kind) > OF_INSTRUCTION)
            strbuf_printf(&text, " by %d", kind_tile_threads(planned->kind));
        for (int level = 0; level < LEVEL_COUNT; level++)
            for (int a = 0; a < planned->kind->space->axis_count; a++)
                strbuf_printf(&text, " %" PRId64, planned->program->tile[level].size[a]);
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

// ---- what was written ----

static void add_proof(Json *emitted, const VerifyReport *proof)
{
    Json *entry = json_set_object(emitted, "verified");
    json_set_int(entry, "elements", proof->elements);
    json_set_int(entry, "unjudged", proof->unjudged);
    json_set_bool(entry, "sampled", proof->sampled);
    json_set_bool(entry, "estimated", proof->estimated);
    json_set_int(entry, "blocks_run", proof->blocks_run);
    json_set_int(entry, "blocks_total", proof->blocks_total);
    json_set_double(entry, "seconds", proof->seconds);
}

static void add_emitted(Arena *arena, Json *root, const Ranking *ranking)
{
    const Candidate *emitted = ranking->emitted;
    const Kernel *kernel = emitted->kernel;   // NULL: the device is ranked only
    Json *entry = json_set_object(root, "emitted");
    json_set_string(entry, "id", candidate_id(arena, emitted->plan));
    json_set_int(entry, "rank", emitted - ranking->candidates->items + 1);
    json_set_int(entry, "model_rank", emitted->model_rank);
    json_set_string(entry, "source_sha256",
                    kernel ? hash_of(arena, kernel->source, kernel->source_length) : NULL);
    if (ranking->proof)
        add_proof(entry, ranking->proof);
}

// ---- the document ----

/* Launches [first, end) of the candidate, as `key`. */
static void add_launch_list(Arena *arena, Json *entry, const char *key, const Ranking *ranking,
                            const Candidate *candidate, const Kernel *kernel, int first, int end)
{
    Json *launches = json_set_array(entry, key);
    for (int k = first; k < end; k++) {
        CandidateCode code = candidate->compiled ? candidate_code(arena, candidate, k) : (CandidateCode){0};
        const JitKernel *facts = code.compiled ? jit_find_kernel(code.compiled, code.entry) : NULL;
        Json *launch = add_launch(arena, launches, &candidate->plan->launches[k], &kernel->launches[k],
                                  ranking->device, facts);
        if (facts)
            add_compiled(arena, launch, code.compiled, facts, ranking->device->arch);
    }
}

static void add_launches(Arena *arena, Json *entry, const Ranking *ranking, const Candidate *candidate)
{
    const Plan *plan = candidate->plan;
    CodegenRequest request = {
        .name = ranking->options->name, .program = ranking->program, .plan = plan, .device = ranking->device};
    const Kernel *kernel = candidate->kernel ? candidate->kernel : codegen_launches(arena, &request, false);
    json_set_int(entry, "workspace_bytes", kernel->workspace_bytes);
    Json *predicted = json_set_object(entry, "predicted");
    json_set_double(predicted, "time_us", plan->time_us);
    if (candidate_judged_us(candidate) > plan->time_us)
        json_set_double(predicted, "compiled_time_us", candidate_judged_us(candidate));
    if (plan->prepare_count)
        add_launch_list(arena, entry, "prepare", ranking, candidate, kernel, 0, plan->prepare_count);
    add_launch_list(arena, entry, "launches", ranking, candidate, kernel, plan->prepare_count, plan->count);
}

static void add_candidate(Json *candidates, const Ranking *ranking, int position, Arena *scratch)
{
    arena_reset(scratch);   // of 650 launches ten candidates' texts take 250 MB
    const Candidate *candidate = &ranking->candidates->items[position];
    Json *entry = json_push_object(candidates);
    json_set_string(entry, "id", candidate_id(scratch, candidate->plan));
    json_set_int(entry, "rank", position + 1);
    json_set_int(entry, "model_rank", candidate->model_rank);
    json_set_string(entry, "status", candidate_status_name[candidate->status]);
    if (candidate->reason)
        json_set_string(entry, "reason", candidate->reason);
    json_set_string(entry, "fusion", candidate->plan->fusion_plan);
    add_launches(scratch, entry, ranking, candidate);
    if (candidate->measured)
        add_measured(entry, ranking->candidates, candidate->measured);
}

/* Each part of a program of many kernels, with its candidates as the candidates of the whole are. */
static void add_parts(Json *root, const Ranking *ranking, Arena *scratch)
{
    Json *kernels = json_set_array(root, "kernels");
    for (int p = 0; p < ranking->parts->count; p++) {
        const ProgramPart *part = &ranking->parts->parts[p];
        Ranking of_part = *ranking;
        of_part.program = part->program;
        of_part.candidates = &part->list;
        Json *entry = json_push_object(kernels);
        json_set_string(entry, "makes", part->makes);
        json_set_int(entry, "times", part->step_count);
        Json *candidates = json_set_array(entry, "candidates");
        for (int i = 0; i < part->list.count; i++)
            add_candidate(candidates, &of_part, i, scratch);
    }
}

char *ranking_json(Arena *arena, const Ranking *ranking)
{
    Json *root = json_object();
    json_set_string(root, "$schema", schema_id);
    json_set_string(root, "schema_version", "2.2.0");
    ranking_add_problem(arena, root, ranking);
    add_summary(arena, root, ranking);
    add_emitted(arena, root, ranking);
    Json *candidates = json_set_array(root, "candidates");
    Arena *scratch = arena_new();
    for (int i = 0; i < ranking->candidates->count; i++)
        add_candidate(candidates, ranking, i, scratch);
    if (ranking->parts->count)
        add_parts(root, ranking, scratch);
    arena_free(scratch);
    char *text = json_text(arena, root, true);
    json_free(root);
    return text;
}
