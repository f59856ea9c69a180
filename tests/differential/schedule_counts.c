// What schedules say of the first and the last block of a launch, and what the CPU interpreter counts of them.
//
//   schedule_counts                                         names every kind of kernel there is
//   schedule_counts DEVICE PROGRAM.te [FAMILY/VARIANT…]     of every kind that the program can be, or of these
//
// Then every item of the schedule is dropped, and doubled: the counts must differ from those seen, but for what comes from a
// cache another time and for figures that nobody states. For run_schedule.py, which knows of all programs, every figure and
// every such change is said:
//
//   figure KIND known|unknown NAME = what is counted
//   change KIND found|unfound dropped|doubled ITEM
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/codegen.h"
#include "codegen/family/gemm/product.h"
#include "differential/batch.h"
#include "front/lex.h"
#include "front/lower.h"
#include "front/parse.h"
#include "hal/runtime.h"
#include "ir/compose.h"
#include "ir/fuse_join.h"

enum { KEEP = 100, MAX_KINDS = 64, BLOCKS = 2 };

/* Launch k of a plan, whose kernel other checks may share. */
typedef struct Check {
    const Plan *plan;
    const Kernel *kernel;
    int k;
    int first;   // launch of the kernel, of all in the translation unit
    const char *kind;
} Check;

typedef struct Subject {
    Arena *arena;
    const Program *program;
    const DeviceSpec *device;
    Target target;
    const TemplateStore *templates;
    const char *const *wanted;
    int wanted_count;
    Check checks[MAX_KINDS];
    int check_count;
    Launch *launches;   // of all kernels, one behind the other
    int launch_count;
    int failures, kinds, mutants, unseen;
} Subject;

/* "bulk/six stages", "bulk/six stages, persistent"; "gemm/two stages, rows", if these are reduced; "attention_bulk/2 splits, 64 columns,
   clusters" beside those without. */
static const char *kernel_kind(Arena *arena, const PlannedLaunch *launch)
{
    bool persistent = schedule_is_persistent(launch->kind->schedule) && launch->program->turns > 1;
    bool rows = launch->fusion->streams && launch->family->view == product_view;
    bool clusters = launch->fusion->streams && launch->family->copying_warps && launch->program->cluster > 1;
    return arena_printf(arena, "%s/%s%s%s%s", launch->family->name, launch->kind->name, rows ? ", rows" : "",
                        persistent ? ", persistent" : "", clusters ? ", clusters" : "");
}

// ---- one run ----

static void fill(void *context, int tensor, int64_t offset, int64_t count, void *bytes)
{
    (void)context, (void)tensor, (void)offset;
    memset(bytes, 0, (size_t)count);
}

static RuntimeTensor tensor_of(const LaunchArg *arg)
{
    return (RuntimeTensor){
        .name = arg->tensor->name,
        .buffer = arg->buffer,
        .offset = arg->offset,
        .bytes = arg->bytes,
        .written = arg->written,
    };
}

/* Whether it is the first check of its kernel. */
static bool leads(const Subject *subject, int i) { return !i || subject->checks[i].kernel != subject->checks[i - 1].kernel; }

/* A launcher of all kernels, which share the program's tensors and a workspace: one launch of them is run at a time. */
static void write_launcher(StrBuf *out, const Subject *subject, int arg_count)
{
    StrBuf params = strbuf_new(subject->arena), args = strbuf_new(subject->arena);
    for (int a = 0; a < arg_count; a++) {
        strbuf_printf(&params, "void *a%d, ", a);
        strbuf_printf(&args, "a%d, ", a);
    }
    strbuf_printf(out, "\nextern \"C\" int batch_launch(%svoid *workspace, void *stream)\n{\n    int status = 0;\n", params.text);
    for (int i = 0; i < subject->check_count; i++)
        if (leads(subject, i))
            strbuf_printf(out, "    status = status ? status : %s_launch(%sworkspace, stream);\n", subject->checks[i].kernel->name,
                          args.text);
    strbuf_puts(out, "    return status;\n}\n");
}

/* All kernels in one translation unit, which takes the compiler less time than each alone. */
static RuntimeSource source_of_all(Subject *subject)
{
    int count = 0, launch_count = 0;
    BatchKernel kernels[MAX_KINDS] = {0};
    for (int i = 0; i < subject->check_count; i++)
        if (leads(subject, i)) {
            kernels[count++].kernel = subject->checks[i].kernel;
            launch_count += subject->checks[i].kernel->launch_count;
        }
    StrBuf text = strbuf_new(subject->arena);
    batch_write_kernels(&text, kernels, count, subject->device);
    RuntimeSource source = kernel_source(kernels[0].kernel);
    assert(source.weight_count == 0);
    write_launcher(&text, subject, source.arg_count);
    subject->launches = NEW_ARRAY(subject->arena, Launch, launch_count);
    source = (RuntimeSource){
        .name = "batch", .text = text.text, .length = text.length, .arg_count = source.arg_count, .launches = subject->launches,
        .limits = runtime_limits(subject->device), .builds = RUNTIME_COUNTED,
    };
    for (int i = 0; i < subject->check_count; i++) {
        Check *check = &subject->checks[i];
        if (leads(subject, i)) {
            check->first = source.launch_count;
            memcpy(subject->launches + check->first, check->kernel->launches, sizeof(Launch) * (size_t)check->kernel->launch_count);
            source.launch_count += check->kernel->launch_count;
        } else {
            check->first = check[-1].first;
        }
    }
    subject->launch_count = source.launch_count;
    return source;
}

/* What a launch must wait for are those of its own kernel. Others before it write the same outputs: they are said to touch
   nothing. */
static void list_only(const Subject *subject, const Check *check)
{
    const Kernel *kernel = check->kernel;
    for (int k = 0; k < subject->launch_count; k++)
        subject->launches[k].arg_count = subject->launches[k].map_count = 0;
    memcpy(subject->launches + check->first, kernel->launches, sizeof(Launch) * (size_t)kernel->launch_count);
}

/* Runs one launch alone. */
static RuntimeResult run(const Subject *subject, const RuntimeModule *module, const Check *check, RuntimeTensor *tensors, int count)
{
    const Launch *launch = &check->kernel->launches[check->k];
    for (int i = 0; i < count; i++)
        tensors[i] = tensor_of(&launch->args[i]);
    RuntimeJob job = {
        .buffer_bytes = kernel_buffers(subject->arena, check->kernel),
        .tensors = tensors,
        .tensor_count = count,
        .fill = fill,
        .only_launch = check->first + check->k,
        .max_blocks = INT64_MAX,
        .schedule = RUNTIME_LOWEST_FIRST,
        .checked = true,
        .counts = true,
        .seconds = 100,
    };
    return runtime_interp.run(subject->arena, module, &job);
}

// ---- what is compared ----

typedef struct Figure {
    const char *what;
    int64_t stated, seen;
} Figure;

enum { MAX_FIGURES = MAX_DATA_TILES + 24 };

/* COUNT_UNKNOWN: nobody states it. Tensors that no tile has are what an epilogue reads beside a product; of those that several
   have, parts may be the same. */
static int64_t sectors_stated(const TileSpace *space, const Counts *counts, const char *name, bool written)
{
    int64_t stated = 0;
    int tiles = 0;
    for (int i = 0; i < space->tile_count; i++)
        if (space->tiles[i].name && strcmp(space->tiles[i].name, name) == 0 && space->tiles[i].output == written) {
            stated = counts->sectors[i];
            tiles++;
        }
    return tiles == 1 ? stated : COUNT_UNKNOWN;
}

static int figures_of(const Subject *subject, const PlannedLaunch *launch, const Counts *stated, const RuntimeCounts *seen,
                      const RuntimeTensor *tensors, int tensor_count, Figure *figures)
{
    const TileSpace *space = launch->kind->space;
    int count = 0;
    for (int i = 0; i < tensor_count; i++) {
        const char *name = tensors[i].name;
        bool written = tensors[i].written;
        int64_t sectors = written ? seen->written_sectors[i] : seen->read_sectors[i];
        figures[count++] = (Figure){arena_printf(subject->arena, "%s %s", name, written ? "written" : "read"),
                                    sectors_stated(space, stated, name, written), sectors};
    }
    figures[count++] = (Figure){"shared read", stated->shared_read, seen->shared_read};
    figures[count++] = (Figure){"shared written", stated->shared_written, seen->shared_written};
    figures[count++] = (Figure){"shuffles", stated->shuffles, seen->warp_meetings};
    figures[count++] = (Figure){"block barriers", stated->barriers[SCOPE_BLOCK], seen->block_barriers};
    figures[count++] = (Figure){"cluster barriers", stated->barriers[SCOPE_CLUSTER], seen->cluster_barriers};
    figures[count++] = (Figure){"waits", stated->waits, seen->waits};
    figures[count++] = (Figure){"pending", stated->pending, seen->pending};
    figures[count++] = (Figure){"additions", stated->additions, seen->additions};
    figures[count++] = (Figure){"multiplications", stated->multiplications, seen->multiplications};
    figures[count++] = (Figure){"comparisons", stated->comparisons, seen->comparisons};
    figures[count++] = (Figure){"functions", stated->functions, seen->functions};
    figures[count++] = (Figure){"tensor products", stated->tensor_products, seen->tensor_products};
    figures[count++] = (Figure){"copying warps", stated->copying_warps, seen->copying_warps};
    figures[count++] = (Figure){"multiplying warps", stated->multiplying_warps, seen->multiplying_warps};
    return count;
}

/* Which of the figures are stated. */
static void say_figures(Arena *arena, const PlannedLaunch *launch, const Figure *figures, int count)
{
    for (int i = 0; i < count; i++)
        if (figures[i].stated == COUNT_UNKNOWN || figures[i].stated || figures[i].seen)
            printf("figure %s %s %s = %" PRId64 "\n", kernel_kind(arena, launch),
                   figures[i].stated == COUNT_UNKNOWN ? "unknown" : "known", figures[i].what, figures[i].seen);
}

/* How many figures differ, and which if it is to be said; else whether any does. */
static int differences(Subject *subject, const PlannedLaunch *launch, const RuntimeResult *result,
                       const RuntimeTensor *tensors, int tensor_count, bool says)
{
    int found = 0, blocks = result->blocks_total > 1 ? BLOCKS : 1;
    const RProgram *program = launch->program;
    if (launch->family->blocks && launch->kind->space->axes[0].extent % program->tile[LEVEL_SHARED].size[0])
        blocks = program->grid > 1 ? 1 : 0;   // others make the last tile
    for (int last = 0; last < blocks && (says || !found); last++) {
        Figure figures[MAX_FIGURES];
        Counts stated = planned_counts(subject->arena, launch, subject->device, last);
        int count = figures_of(subject, launch, &stated, &result->counts[last], tensors, tensor_count, figures);
        if (says)
            say_figures(subject->arena, launch, figures, count);
        for (int i = 0; i < count; i++) {
            if (figures[i].stated == COUNT_UNKNOWN || figures[i].stated == figures[i].seen)
                continue;
            found++;
            if (says)
                printf("  %s block, %s: the schedule says %" PRId64 ", the interpreter counts %" PRId64 "\n",
                       last ? "last" : "first", figures[i].what, figures[i].stated, figures[i].seen);
        }
    }
    return found;
}

// ---- mutants ----

static bool is_unknown(const TileSpace *space, const Counts *counts, const Move *move)
{
    bool reads = move->from == PLACE_SHARED, writes = move->to == PLACE_SHARED;
    bool known = (move->bytes > 0 && !writes) || (reads && counts->shared_read != COUNT_UNKNOWN) ||
                 (writes && counts->shared_written != COUNT_UNKNOWN);
    for (int i = 0; i < space->tile_count; i++)
        if (move->tiles >> i & 1 && !reads && (!writes || move->from == PLACE_MEMORY))
            known |= sectors_stated(space, counts, space->tiles[i].name, space->tiles[i].output) != COUNT_UNKNOWN;
    return !known;
}

/* Threads that have all of their reduction to themselves exchange nothing. */
static bool is_alone(const PlannedLaunch *launch, const Exchange *exchange)
{
    const TileSpace *space = launch->kind->space;
    const RTile *tile = launch->program->tile;
    bool shares = exchange->combine != COMBINE_TREE && exchange->width > 1;
    for (int a = 0; a < space->axis_count; a++)
        shares |= space->axes[a].reduction && tile[LEVEL_SHARED].size[a] > tile[LEVEL_REGISTER].size[a];
    return exchange->ops && !shares;
}

/* What it adds to shared memory's traffic goes under in what nobody states. */
static bool is_lost(const Counts *counts, const Exchange *exchange)
{
    return exchange->combine == COMBINE_ROWS && counts->shared_read == COUNT_UNKNOWN &&
           counts->shared_written == COUNT_UNKNOWN;
}

/* Must a change of it be found in every kernel? Of what is computed figures may be unstated, and of one round no loop is
   missed: those are found in some kernel of each family. */
/* Shuffles are counted of the first warp, which copies where there are roles. */
static bool is_another_warps(const PlannedLaunch *launch, const Exchange *exchange)
{
    const Schedule *schedule = launch->kind->schedule;
    bool roles = false;
    for (int i = 0; i < schedule->count; i++)
        roles |= schedule->items[i].kind == ITEM_ROLE;
    return roles && exchange->combine == COMBINE_LANES;
}

static bool is_counted(const PlannedLaunch *launch, const Counts *counts, const Item *item)
{
    switch ((ItemKind)item->kind) {
    case ITEM_LOOP:
    case ITEM_END:
    case ITEM_MAP:
    case ITEM_REDUCE:
    case ITEM_ROLE:
    case ITEM_PRODUCT: return false;
    case ITEM_WAIT: return true;
    case ITEM_EXCHANGE:
        return !is_alone(launch, &item->exchange) && !is_lost(counts, &item->exchange) &&
               !is_another_warps(launch, &item->exchange);
    case ITEM_LOAD:
    case ITEM_STORE: break;
    }
    return !item->move.again && item->move.to != PLACE_L2 &&
           !is_unknown(launch->kind->space, counts, &item->move);
}

/* Where the loop that begins at item i ends. */
static int end_of_loop(const Schedule *schedule, int i)
{
    int end = i + 1;
    while (end < schedule->count && schedule_is_around(schedule, i, end + 1))
        end++;
    return end;
}

/* Without item i, or with it twice. */
static void change_item(Schedule *schedule, int i, bool twice)
{
    Item *item = &schedule->items[i];
    size_t after = (size_t)(schedule->count - i - 1) * sizeof *item;
    memmove(twice ? item + 2 : item, item + 1, after);
    if (twice)
        item[1] = item[0];
    schedule->count += twice ? 1 : -1;
}

/* A loop ends as often as it begins. */
static Schedule mutant_of(const Schedule *schedule, int i, bool twice)
{
    Schedule mutant;
    memcpy(&mutant, schedule, schedule_bytes(schedule));
    if (schedule->items[i].kind == ITEM_LOOP)
        change_item(&mutant, end_of_loop(schedule, i), twice);
    change_item(&mutant, i, twice);
    return mutant;
}

static const char *item_name(const Item *item)
{
    static const char *const names[] = {
        [ITEM_LOOP] = "loop",     [ITEM_LOAD] = "load",       [ITEM_WAIT] = "wait",
        [ITEM_MAP] = "map",       [ITEM_REDUCE] = "reduce",   [ITEM_EXCHANGE] = "exchange",
        [ITEM_PRODUCT] = "product", [ITEM_STORE] = "store",   [ITEM_ROLE] = "role"};
    return item->kind == ITEM_EXCHANGE && !item->exchange.ops ? "barrier" : names[item->kind];
}

static void try_mutant(Subject *subject, const PlannedLaunch *launch, const RuntimeResult *result,
                       const RuntimeTensor *tensors, int tensor_count, int i, bool twice)
{
    const Item *item = &launch->kind->schedule->items[i];
    Counts stated = planned_counts(subject->arena, launch, subject->device, false);
    KernelKind *kind = kind_copy(subject->arena, launch->kind);
    PlannedLaunch mutant = *launch;
    Schedule other = mutant_of(launch->kind->schedule, i, twice);
    kind->schedule = &other;
    mutant.kind = kind;
    bool found = differences(subject, &mutant, result, tensors, tensor_count, false) > 0;
    const char *change = twice ? "doubled" : "dropped";
    printf("change %s %s %s %s\n", kernel_kind(subject->arena, launch), found ? "found" : "unfound", change, item_name(item));
    subject->mutants += found;
    if (found || !is_counted(launch, &stated, item))
        return;
    subject->unseen++;
    printf("  %s item %d of %s goes unseen\n", change, i, kernel_kind(subject->arena, launch));
}

static void try_mutants(Subject *subject, const PlannedLaunch *launch, const RuntimeResult *result,
                        const RuntimeTensor *tensors, int tensor_count)
{
    const Schedule *schedule = launch->kind->schedule;
    for (int i = 0; i < schedule->count; i++)
        for (int twice = 0; twice < 2; twice++)
            if (schedule->items[i].kind != ITEM_END)
                try_mutant(subject, launch, result, tensors, tensor_count, i, twice);
}

// ---- kinds of kernels ----

static void check_launch(Subject *subject, const RuntimeModule *module, const Check *check)
{
    const PlannedLaunch *launch = &check->plan->launches[check->k];
    int tensor_count = check->kernel->launches[check->k].arg_count;
    RuntimeTensor *tensors = NEW_ARRAY(subject->arena, RuntimeTensor, tensor_count + 1);
    list_only(subject, check);
    RuntimeResult result = run(subject, module, check, tensors, tensor_count);
    printf("%s\n", check->kind);
    subject->kinds++;
    if (result.status != RUNTIME_DONE) {
        printf("  %s\n", result.reason);
        subject->failures++;
    } else {
        bool differs = differences(subject, launch, &result, tensors, tensor_count, true) > 0;
        subject->failures += differs;
        if (!differs)
            try_mutants(subject, launch, &result, tensors, tensor_count);
    }
    runtime_interp.release(&result);
}

static void check_all(Subject *subject)
{
    if (!subject->check_count)
        return;
    RuntimeModule *module;
    RuntimeSource source = source_of_all(subject);
    const char *why;
    if (runtime_interp.load(subject->arena, &source, &module, &why) != RUNTIME_DONE) {
        printf("%s\n", why);
        subject->failures++;
        return;
    }
    for (int i = 0; i < subject->check_count; i++)
        check_launch(subject, module, &subject->checks[i]);
}

static const Kernel *kernel_of(Subject *subject, const Plan *plan)
{
    const Check *last = subject->check_count ? &subject->checks[subject->check_count - 1] : NULL;
    if (last && last->plan == plan)
        return last->kernel;
    return codegen_kernel(subject->arena, &(CodegenRequest){
                                              .name = arena_printf(subject->arena, "k%d", subject->check_count),
                                              .program = subject->program,
                                              .plan = plan,
                                              .device = subject->device,
                                              .templates = subject->templates,
                                          });
}

static bool is_wanted(const Subject *subject, const char *kind)
{
    for (int i = 0; i < subject->wanted_count; i++)
        if (strcmp(subject->wanted[i], kind) == 0)
            return true;
    return subject->wanted_count == 0;
}

/* The first of every kind, of persistent blocks and of others. */
static void visit_launch(Subject *subject, const Plan *plan, int k)
{
    const PlannedLaunch *launch = &plan->launches[k];
    const char *kind = arena_printf(subject->arena, "%s/%s", launch->family->name, launch->kind->name);
    const char *name = kernel_kind(subject->arena, launch);
    for (int i = 0; i < subject->check_count; i++)
        if (strcmp(subject->checks[i].kind, name) == 0)
            return;
    if (!is_wanted(subject, kind) || subject->check_count == MAX_KINDS)
        return;
    Check check = {plan, kernel_of(subject, plan), k, 0, name};
    subject->checks[subject->check_count++] = check;
}

/* Every kind that a plan of one kernel can be, whether it is among the best or not. */
static void visit_single(Subject *subject, const FusionPlan *fusions)
{
    KernelKind *variants = NEW_ARRAY(subject->arena, KernelKind, MAX_VARIANTS);
    Viewed viewed = {.arena = subject->arena, .fusion = fusions->fusions[0], .target = &subject->target};
    for (int f = 0; families[f] && fusions->count == 1; f++) {
        int count = family_kinds(subject->arena, families[f], &viewed, variants);
        for (int v = 0; v < count; v++) {
            PlannedLaunch *launch = NEW(subject->arena, PlannedLaunch);
            Plan *plan = NEW(subject->arena, Plan);
            KernelKind *kind = NEW(subject->arena, KernelKind);
            ConstructStats stats = {0};
            *kind = variants[v];
            RProgram *program = NEW(subject->arena, RProgram);
            *launch = (PlannedLaunch){families[f], viewed.fusion, family_view(families[f], &viewed), kind, program};
            *plan = (Plan){.fusion_plan = fusions->name, .launches = launch, .count = 1};
            if (rprogram_construct(subject->arena, kind, &(Target){.device = subject->device}, 0, 1, program, &stats))
                visit_launch(subject, plan, 0);
        }
    }
}

/* All of a plan's kernels as one. */
static void visit_joint(Subject *subject, const FusionPlan *fusions)
{
    bool *needed = NEW_ARRAY(subject->arena, bool, subject->program->tensor_count);
    for (int i = 0; i < subject->program->output_count; i++)
        needed[subject->program->outputs[i]->id] = true;
    Fusion *joint = fusions->count > 1 && fusions->count <= MAX_JOINED
                        ? fusion_join(subject->arena, fusions->fusions, fusions->count, needed)
                        : NULL;
    if (joint)
        visit_single(subject, &(FusionPlan){.name = fusions->name, .fusions = &joint, .count = 1});
}

static void print_kinds(void)
{
    for (int f = 0; families[f]; f++)
        for (const char *const *name = families[f]->variants; *name; name++)
            printf("%s/%s\n", families[f]->name, *name);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        print_kinds();
        return 0;
    }
    Arena *arena = arena_new();
    TemplateStore templates = {.arena = arena};
    Source *source = source_read(arena, argv[2]);
    Program *program = lower(arena, parse(arena, lex(arena, source)), NULL, 0);
    const DeviceSpec *device = device_read(arena, argv[1]);
    Subject subject = {
        .arena = arena,
        .program = program,
        .device = device,
        .target = {device, EVAL_TF32},   // kinds that are asked for by name need not be first
        .templates = &templates,
        .wanted = (const char *const *)argv + 3,
        .wanted_count = argc - 3,
    };
    FusionPlans fusions = fuse(arena, compose(arena, program));
    for (int p = 0; p < fusions.count; p++)
        visit_single(&subject, &fusions.plans[p]);
    visit_joint(&subject, &fusions.plans[0]);
    PlanList plans = plan_program(arena, &fusions, &subject.target, KEEP);
    for (int p = 0; p < plans.count; p++)
        for (int k = 0; k < plans.plans[p].count; k++)
            visit_launch(&subject, &plans.plans[p], k);
    check_all(&subject);
    printf("kinds=%d failures=%d mutants=%d unseen=%d\n", subject.kinds, subject.failures, subject.mutants,
           subject.unseen);
    arena_free(arena);
    return subject.failures > 0;
}
