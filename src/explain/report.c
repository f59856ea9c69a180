#include "explain/report.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/diag.h"
#include "base/json.h"
#include "base/utf8.h"

static const char schema_id[] = "urn:rollerc:ranking:", schema_major[] = "2";

const char *const term_name[TERM_COUNT] = {
    [TERM_COMPUTE] = "compute",
    [TERM_SPECIAL] = "special functions",
    [TERM_SHARED] = "shared memory",
    [TERM_L2] = "L2",
    [TERM_DRAM] = "DRAM",
    [TERM_START] = "block start",
};
const char *const term_meaning[TERM_COUNT] = {
    [TERM_COMPUTE] = "arithmetic",
    [TERM_SPECIAL] = "exp, log, rsqrt and their like",
    [TERM_SHARED] = "traffic of shared memory and L1",
    [TERM_L2] = "traffic of the L2 cache",
    [TERM_DRAM] = "traffic of the device's memory",
    [TERM_START] = "blocks start one after the other",
};
const char *const part_name[PART_COUNT] = {
    [PART_LONGEST] = "longest term",
    [PART_UNHIDDEN] = "others, not hidden",
    [PART_TAIL] = "tail",
    [PART_WAIT] = "waiting",
    [PART_LAUNCH] = "launch",
};
const char *const part_meaning[PART_COUNT] = {
    [PART_LONGEST] = "of the terms below, which overlap: it counts in full",
    [PART_UNHIDDEN] = "what the other terms add, as far as the longest does not hide them",
    [PART_TAIL] = "the last wave of blocks leaves a part of the device idle",
    [PART_WAIT] = "for data and at barriers, while nothing else is done",
    [PART_LAUNCH] = "of the kernels, before their first blocks start",
};
const char *const resource_name[RESOURCE_COUNT] = {
    [RESOURCE_THREADS] = "threads",
    [RESOURCE_BLOCKS] = "blocks",
    [RESOURCE_REGISTERS] = "registers",
    [RESOURCE_SHARED] = "shared memory",
};

// ---- fields ----

/* A value of the document and the way to it, for messages: `candidates[2].launches[0]`. */
typedef struct Node {
    const Json *json;
    const char *path;
} Node;

typedef struct ReportReader {
    Arena *arena;
    const Source *source;
} ReportReader;

static _Noreturn void lacks(const ReportReader *r, Node of, const char *what, const char *key)
{
    bool top = !*of.path;
    fatal(EXIT_INPUT, "'%s' is no complete ranking: %s%slacks the %s '%s'", r->source->name,
          top ? "it " : of.path, top ? "" : " ", what, key);
}

static Node below(const ReportReader *r, Node of, const char *key)
{
    return (Node){json_get(of.json, key),
                  arena_printf(r->arena, "%s%s%s", of.path, *of.path ? "." : "", key)};
}

static Node object(const ReportReader *r, Node of, const char *key)
{
    Node node = below(r, of, key);
    if (!json_is_object(node.json))
        lacks(r, of, "object", key);
    return node;
}

/* The items of an array; whoever walks them names each by its number. */
static Node array(const ReportReader *r, Node of, const char *key)
{
    Node node = below(r, of, key);
    if (!json_is_array(node.json))
        lacks(r, of, "list", key);
    return node;
}

static Node item(const ReportReader *r, Node list, const Json *json, int index)
{
    return (Node){json, arena_printf(r->arena, "%s[%d]", list.path, index)};
}

static int count_items(const Json *list)
{
    int count = 0;
    for (const Json *json = json_first(list); json; json = json_next(json))
        count++;
    return count;
}

/* What is counted or measured is at least 0, and what is divided by is more; drawings must end. */
static const double LARGEST = 1e30, SMALLEST = 1e-9;

static double number_or(const ReportReader *r, Node of, const char *key, double absent)
{
    double value = absent;
    const Json *json = json_get(of.json, key);
    if (json && (!json_number(json, &value) || value < 0 || value > LARGEST))
        lacks(r, of, "number", key);
    return value;
}

static double number(const ReportReader *r, Node of, const char *key)
{
    if (!json_get(of.json, key))
        lacks(r, of, "number", key);
    return number_or(r, of, key, 0);
}

static double positive(const ReportReader *r, Node of, const char *key)
{
    double value = number(r, of, key);
    if (value < SMALLEST)
        lacks(r, of, "positive number", key);
    return value;
}

/* Nothing that would move the cursor of a terminal; lines may end. */
static const char *clean(const ReportReader *r, const char *text)
{
    char *copy = arena_strdup(r->arena, text);
    size_t length = strlen(copy);
    for (size_t i = 0, bytes; i < length; i += bytes ? bytes : 1) {
        bytes = utf8_shown(copy + i, length - i, NULL);
        if (!bytes && copy[i] != '\n')
            copy[i] = '?';
    }
    return copy;
}

/* NULL: there is none. */
static const char *string_or_null(const ReportReader *r, Node of, const char *key)
{
    const char *text = json_string(json_get(of.json, key));
    return text ? clean(r, text) : NULL;
}

static const char *string(const ReportReader *r, Node of, const char *key)
{
    const char *text = string_or_null(r, of, key);
    if (!text)
        lacks(r, of, "text", key);
    return text;
}

// ---- a launch ----

static void read_costs(const ReportReader *r, Node predicted, Costs *costs)
{
    static const char *const term_key[TERM_COUNT] = {
        [TERM_COMPUTE] = "compute_us", [TERM_SPECIAL] = "special_us", [TERM_SHARED] = "shared_us",
        [TERM_L2] = "l2_us",           [TERM_DRAM] = "dram_us",       [TERM_START] = "start_us",
    };
    static const char *const part_key[PART_COUNT] = {[PART_UNHIDDEN] = "unhidden_us",
                                                     [PART_TAIL] = "tail_us",
                                                     [PART_WAIT] = "wait_us",
                                                     [PART_LAUNCH] = "launch_us"};
    costs->time = positive(r, predicted, "time_us");
    for (Part i = PART_UNHIDDEN; i < PART_COUNT; i++)
        costs->part[i] = number(r, predicted, part_key[i]);
    for (Term i = 0; i < TERM_COUNT; i++) {
        costs->term[i] = number(r, predicted, term_key[i]);
        costs->part[PART_LONGEST] = fmax(costs->part[PART_LONGEST], costs->term[i]);
    }
}

static void read_occupancy(const ReportReader *r, Node predicted, ReportLaunch *launch)
{
    static const char *const key[RESOURCE_COUNT] = {
        [RESOURCE_THREADS] = "threads",
        [RESOURCE_BLOCKS] = "blocks",
        [RESOURCE_REGISTERS] = "registers",
        [RESOURCE_SHARED] = "shared_memory",
    };
    Node occupancy = object(r, predicted, "occupancy"), room = object(r, occupancy, "room_for");
    launch->blocks_per_sm = number(r, occupancy, "blocks_per_sm");
    launch->limiter = string(r, occupancy, "limiter");
    for (Resource i = 0; i < RESOURCE_COUNT; i++)
        launch->room[i] = number_or(r, room, key[i], -1);
}

static void read_bytes(const ReportReader *r, Node predicted, ReportLaunch *launch)
{
    Node bytes = object(r, predicted, "bytes");
    launch->dram_bytes = number(r, bytes, "dram_load") + number(r, bytes, "dram_store");
    launch->l2_bytes = number(r, bytes, "l2_load") + number(r, bytes, "l2_store");
    launch->shared_bytes = number(r, bytes, "shared_load") + number(r, bytes, "shared_store");
}

static bool is_reduced(const ReportReader *r, Node config, const char *axis)
{
    for (const Json *json = json_first(array(r, config, "reduced").json); json; json = json_next(json))
        if (json_string(json) && strcmp(json_string(json), axis) == 0)
            return true;
    return false;
}

static void read_tiles(const ReportReader *r, Node config, ReportLaunch *launch)
{
    static const char *const level[TILE_LEVELS] = {
        [TILE_PROBLEM] = "global", [TILE_BLOCK] = "shared", [TILE_THREAD] = "register"};
    Node tile = object(r, config, "tile"), problem = object(r, tile, level[TILE_PROBLEM]);
    for (const Json *json = json_first(problem.json); json && launch->axis_count < MAX_TILE_AXES;
         json = json_next(json)) {
        TileAxis *axis = &launch->axes[launch->axis_count++];
        *axis =
            (TileAxis){.name = clean(r, json_key(json)), .reduced = is_reduced(r, config, json_key(json))};
        for (TileLevel i = 0; i < TILE_LEVELS; i++)
            axis->size[i] = positive(r, object(r, tile, level[i]), json_key(json));
    }
}

static double product(const ReportReader *r, Node of, const char *key)
{
    double value = 1, factor;
    for (const Json *json = json_first(array(r, of, key).json); json; json = json_next(json))
        value *= json_number(json, &factor) && factor >= 1 && factor <= LARGEST ? factor : 1;
    return value;
}

static void read_compiled(const ReportReader *r, Node of, ReportLaunch *launch)
{
    launch->registers = number(r, of, "estimated_registers");
    if (!json_get(of.json, "compiled"))
        return;
    Node compiled = object(r, of, "compiled");
    launch->compiled = true;
    launch->registers = number(r, compiled, "registers");
    launch->spills = number(r, compiled, "spill_store_bytes") + number(r, compiled, "spill_load_bytes") > 0;
}

/* The ranking's word, as the terms and parts are called here. */
static const char *bound_name(const char *word)
{
    const char *const names[][2] = {
        {"special", term_name[TERM_SPECIAL]}, {"shared", term_name[TERM_SHARED]}, {"l2", term_name[TERM_L2]},
        {"dram", term_name[TERM_DRAM]},       {"latency", part_name[PART_WAIT]},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(word, names[i][0]) == 0)
            return names[i][1];
    return word;
}

static void read_launch(const ReportReader *r, Node of, Node peaks, ReportLaunch *launch)
{
    Node config = object(r, of, "config"), predicted = object(r, of, "predicted");
    *launch = (ReportLaunch){
        .kernel = string(r, of, "kernel"),
        .makes = string_or_null(r, of, "makes"),
        .family = string(r, of, "family"),
        .variant = string_or_null(r, config, "variant"),
        .bound_by = bound_name(string(r, predicted, "bound_by")),
        .unit = string(r, predicted, "unit"),
        .blocks = product(r, of, "grid"),
        .threads = product(r, of, "block"),
        .cluster = json_get(of.json, "cluster") ? product(r, of, "cluster") : 1,
        .stages = number_or(r, config, "stages", 0),
        .vectors = number_or(r, config, "vectors", 0),
        .tile_threads = number(r, config, "tile_threads"),
        .flops = number(r, predicted, "flops"),
        .block_shared_bytes = number(r, of, "dynamic_smem_bytes"),
        .waves = number(r, predicted, "waves"),
        .supersteps = number_or(r, predicted, "supersteps", 0),
        .balance = number(r, predicted, "tail_efficiency"),
    };
    launch->peak_gflop_s = positive(r, peaks, launch->unit);
    read_costs(r, predicted, &launch->costs);
    read_occupancy(r, predicted, launch);
    read_bytes(r, predicted, launch);
    read_tiles(r, config, launch);
    read_compiled(r, of, launch);
}

// ---- a candidate ----

static void add_costs(Costs *sum, const Costs *costs)
{
    sum->time += costs->time;
    for (Term i = 0; i < TERM_COUNT; i++)
        sum->term[i] += costs->term[i];
    for (Part i = 0; i < PART_COUNT; i++)
        sum->part[i] += costs->part[i];
}

static bool has_failed(const char *status)
{
    return strcmp(status, "ok") != 0 && strcmp(status, "not_run") != 0;
}

static void read_candidate(const ReportReader *r, Node of, Node peaks, ReportCandidate *candidate)
{
    Node launches = array(r, of, "launches");
    const char *status = string(r, of, "status");
    candidate->status = has_failed(status) ? status : NULL;
    candidate->reason = string_or_null(r, of, "reason");
    candidate->model_rank = number(r, of, "model_rank");
    candidate->launches = NEW_ARRAY(r->arena, ReportLaunch, count_items(launches.json));
    for (const Json *json = json_first(launches.json); json; json = json_next(json)) {
        ReportLaunch *launch = &candidate->launches[candidate->launch_count];
        read_launch(r, item(r, launches, json, candidate->launch_count++), peaks, launch);
        add_costs(&candidate->costs, &launch->costs);
    }
    if (candidate->launch_count == 0)
        lacks(r, of, "items of", "launches");
    if (!json_get(of.json, "measured"))
        return;
    Node time = object(r, object(r, of, "measured"), "time_us");
    candidate->measured_us = number(r, time, "median");
    candidate->measured_p95 = number(r, time, "p95");
}

/* The candidates of `of`, of whatever that is. */
static ReportCandidate *read_candidates(const ReportReader *r, Node of, Node peaks, int *count)
{
    Node list = array(r, of, "candidates");
    ReportCandidate *candidates = NEW_ARRAY(r->arena, ReportCandidate, count_items(list.json));
    for (const Json *json = json_first(list.json); json; json = json_next(json), ++*count)
        read_candidate(r, item(r, list, json, *count), peaks, &candidates[*count]);
    if (*count == 0)
        lacks(r, of, "items of", "candidates");
    return candidates;
}

static const char *read_gpu(const ReportReader *r, Node root)
{
    Node list = array(r, root, "candidates");
    const char *gpu = NULL;
    int position = 0;
    for (const Json *json = json_first(list.json); json; json = json_next(json), position++)
        if (json_get(json, "measured"))
            gpu = string(r, object(r, item(r, list, json, position), "measured"), "gpu");
    return gpu;
}

static void read_kernels(const ReportReader *r, Node root, Node peaks, Report *report)
{
    if (!json_get(root.json, "kernels"))
        return;
    Node list = array(r, root, "kernels");
    report->kernels = NEW_ARRAY(r->arena, ReportKernel, count_items(list.json));
    for (const Json *json = json_first(list.json); json; json = json_next(json)) {
        Node of = item(r, list, json, report->kernel_count);
        ReportKernel *kernel = &report->kernels[report->kernel_count++];
        *kernel = (ReportKernel){.makes = string(r, of, "makes"), .times = positive(r, of, "times")};
        kernel->candidates = read_candidates(r, of, peaks, &kernel->count);
    }
}

// ---- the document ----

static void read_device(const ReportReader *r, Node root, ReportDevice *device)
{
    Node of = object(r, root, "device");
    *device = (ReportDevice){
        .name = string(r, of, "name"),
        .title = string_or_null(r, of, "title"),
        .sm_count = positive(r, of, "sm_count"),
        .warp_size = positive(r, of, "warp_size"),
        .max_threads = positive(r, of, "max_threads_per_sm"),
        .dram_gb_s = positive(r, of, "dram_gb_s"),
        .l2_gb_s = positive(r, of, "l2_gb_s"),
    };
}

static void read_emitted(const ReportReader *r, Node root, Report *report)
{
    Node emitted = object(r, root, "emitted");
    double rank = number(r, emitted, "rank");
    if (rank < 1 || rank > report->count)
        lacks(r, root, "candidate of", "emitted.rank");
    report->emitted = (int)rank - 1;
    report->source_sha256 = string_or_null(r, emitted, "source_sha256");
    if (!json_get(emitted.json, "verified"))
        return;
    Node verified = object(r, emitted, "verified");
    report->verified = true;
    report->sampled = json_is_true(json_get(verified.json, "sampled"));
    report->verified_elements = number(r, verified, "elements");
    report->verified_seconds = number(r, verified, "seconds");
}

static void check_schema(const ReportReader *r, const Json *root)
{
    const char *name = r->source->name, *id = json_string(json_get(root, "$schema"));
    const char *version = json_string(json_get(root, "schema_version"));
    if (!id || strncmp(id, schema_id, strlen(schema_id)) != 0)
        fatal(EXIT_INPUT, "'%s' is no ranking; `rollerc EXPR.te --device NAME --json FILE' makes one", name);
    if (strcmp(id + strlen(schema_id), schema_major) != 0)
        fatal(EXIT_INPUT,
              "'%s' has version %s of the schema, and this rollerc reads %s.x; make the ranking again", name,
              version ? clean(r, version) : "?", schema_major);
}

static Json *parse(const ReportReader *r)
{
    const Source *source = r->source;
    const char *wrong;
    Json *root = json_read(source->text, &wrong);
    if (root)
        return root;
    size_t end = source->length;
    while (end > 0 && isspace((unsigned char)source->text[end - 1]))
        end--;
    if (end == 0 || source->text[end - 1] != '}')   // with which a ranking ends
        diag_fatal((Loc){source, (uint32_t)end, 1}, EXIT_INPUT,
                   "the file ends within the JSON: is it whole?");
    diag_fatal((Loc){source, (uint32_t)(wrong - source->text), 1}, EXIT_INPUT, "this is no JSON");
}

Report *report_read(Arena *arena, const Source *source)
{
    ReportReader reader = {.arena = arena, .source = source}, *r = &reader;
    Report *report = NEW(arena, Report);
    Json *json = parse(r);
    check_schema(r, json);
    Node root = {json, ""}, workload = object(r, root, "workload"), tool = object(r, root, "tool");
    report->name = string(r, object(r, root, "options"), "name");
    report->version = string(r, tool, "version");
    report->expr = string(r, workload, "expr");
    report->flops = number(r, workload, "flops");
    report->min_bytes = number(r, workload, "min_dram_bytes");
    report->generated = number(r, object(r, root, "summary"), "generated");
    read_device(r, root, &report->device);
    Node peaks = object(r, object(r, root, "device"), "peak_gflop_s");
    report->candidates = read_candidates(r, root, peaks, &report->count);
    report->gpu = read_gpu(r, root);
    read_kernels(r, root, peaks, report);
    read_emitted(r, root, report);
    json_free(json);
    return report;
}

const ReportLaunch *longest_launch(const ReportCandidate *candidate)
{
    const ReportLaunch *longest = candidate->launches;
    for (int i = 1; i < candidate->launch_count; i++)
        if (candidate->launches[i].costs.time > longest->costs.time)
            longest = &candidate->launches[i];
    return longest;
}

bool launch_has_roofline(const ReportLaunch *launch) { return launch->flops > 0 && launch->dram_bytes > 0; }

double report_resident(const Report *report, const ReportLaunch *launch)
{
    return fmin(launch->blocks_per_sm, ceil(launch->blocks / report->device.sm_count));
}
