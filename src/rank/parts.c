#include "rank/parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "ir/concatenation.h"

// ---- a fusion as a program ----

/* As a program sees it that begins or ends with it. */
static Tensor *border_tensor(Arena *arena, const Tensor *tensor, Role role)
{
    Tensor *copy = NEW(arena, Tensor);
    *copy = *tensor;
    copy->role = role;
    copy->is_weight = role == ROLE_INPUT && tensor_is_fixed(tensor);
    copy->is_prepared = false;
    return copy;
}

static void add_inputs(Program *part, const Fusion *fusion, bool weights)
{
    for (int i = 0; i < fusion->input_count; i++) {
        Tensor *tensor = part->tensors[fusion->inputs[i]->id];
        if (tensor->is_weight == weights)
            part->inputs[part->input_count++] = tensor;
    }
}

static bool is_input(const Fusion *fusion, const Tensor *tensor)
{
    int i = 0;
    while (i < fusion->input_count && fusion->inputs[i]->id != tensor->id)
        i++;
    return i < fusion->input_count;
}

/* Of a concatenation that is read its parts are elements. */
static void read_parts(Arena *arena, Program *part, const Concatenation *concatenation)
{
    for (int i = 0; i < part->op_count; i++)
        for (int k = 0; k < concatenation->count; k++)
            if (part->ops[i]->out == concatenation->parts[k].tensor)
                part->ops[i] = concatenation_part(arena, concatenation, k);
}

static void read_all_parts(Arena *arena, Program *part, const Program *whole, const Fusion *fusion)
{
    const Concatenation **found = NULL;
    for (int i = 0; i < fusion->input_count; i++) {
        const Tensor *tensor = fusion->inputs[i];
        if (!tensor->part_stride || tensor->id >= whole->tensor_count || tensor->id < 0)
            continue;
        found = found ? found : concatenations_find(arena, whole);
        if (found[tensor->id])
            read_parts(arena, part, found[tensor->id]);
    }
}

/* Ids and definitions stay, but for those of what it reads. */
static const Program *program_of(Arena *arena, const Program *whole, const Fusion *fusion)
{
    Program *part = NEW(arena, Program);
    *part = (Program){.tensor_count = whole->tensor_count, .fast_math = whole->fast_math};
    part->tensors = NEW_ARRAY(arena, Tensor *, whole->tensor_count);
    part->ops = NEW_ARRAY(arena, TensorOp *, whole->op_count);
    part->inputs = NEW_ARRAY(arena, Tensor *, fusion->input_count);
    part->outputs = NEW_ARRAY(arena, Tensor *, fusion->output_count);
    memcpy(part->tensors, whole->tensors, sizeof(Tensor *) * (size_t)whole->tensor_count);
    for (int i = 0; i < fusion->input_count; i++)
        part->tensors[fusion->inputs[i]->id] = border_tensor(arena, fusion->inputs[i], ROLE_INPUT);
    for (int i = 0; i < fusion->output_count; i++)
        part->tensors[fusion->outputs[i]->id] = part->outputs[part->output_count++] =
            border_tensor(arena, fusion->outputs[i], ROLE_OUTPUT);
    add_inputs(part, fusion, false);
    add_inputs(part, fusion, true);
    for (int i = 0; i < whole->op_count; i++)
        if (!is_input(fusion, whole->ops[i]->out))
            part->ops[part->op_count++] = whole->ops[i];
    read_all_parts(arena, part, whole, fusion);
    return part;
}

// ---- parts that are alike ----

static int ascending(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

/* How large its tensors are, in whatever order the kernel has them. */
static void write_sizes(StrBuf *out, const Launch *launch)
{
    int64_t sizes[MAX_LAUNCH_ARGS];
    for (int i = 0; i < launch->arg_count; i++)
        sizes[i] = launch->args[i].bytes;
    qsort(sizes, (size_t)launch->arg_count, sizeof *sizes, ascending);
    for (int i = 0; i < launch->arg_count; i++)
        strbuf_printf(out, " %" PRId64, sizes[i]);
}

/* All that a clock can see of the candidates: their kernels, whatever tensors are called, and what these are
   given. */
static const char *key_of(Arena *arena, const CodegenRequest *base, const CandidateList *list)
{
    StrBuf key = strbuf_new(arena);
    for (int i = 0; i < list->count; i++) {
        CodegenRequest request = *base;
        request.plan = list->items[i].plan;
        const Kernel *kernel = codegen_launches(arena, &request, true);
        for (int k = 0; k < kernel->launch_count; k++) {
            strbuf_printf(&key, "%s\n", kernel->likenesses[kernel->launches[k].kernel]);
            write_sizes(&key, &kernel->launches[k]);
        }
        strbuf_puts(&key, "\n\n");
    }
    return key.text;
}

static CandidateList candidates_of_ways(Arena *arena, const char *fusion_plan, const PlanStep *ways,
                                        int count)
{
    PlanList plans = {.plans = NEW_ARRAY(arena, Plan, count), .count = count};
    for (int i = 0; i < count; i++)
        plans.plans[i] = plan_of_steps(arena, fusion_plan, &ways[i], 1, INT64_MAX);
    return candidates_of_plans(arena, &plans);
}

static int find_part(const PartList *list, const char *key)
{
    int i = 0;
    while (i < list->count && strcmp(list->parts[i].key, key) != 0)
        i++;
    return i;
}

static void add_step(Arena *arena, PartList *list, int s, const CodegenRequest *base, const Target *target,
                     int keep)
{
    const PlanStep *step = &list->plan->steps[s];
    PlanStep *ways = list->ways[s] = NEW_ARRAY(arena, PlanStep, keep);
    int count = step_ways(arena, step, target, keep, ways);
    CodegenRequest request = *base;
    request.program = program_of(arena, base->program, step->fusion);
    ProgramPart part = {.program = request.program, .makes = tensor_shown(step->fusion->outputs[0])->name};
    part.list = candidates_of_ways(arena, list->plan->fusion_plan, ways, count);
    part.key = key_of(arena, &request, &part.list);
    int p = list->part_of[s] = find_part(list, part.key);
    if (p == list->count)
        list->parts[list->count++] = part;
    list->parts[p].step_count++;
}

bool parts_are_many(const Plan *plan, int keep)
{
    int64_t combined = 1;
    for (int s = 0; s < plan->step_count && combined <= keep; s++)
        combined *= step_is_prepared(&plan->steps[s]) ? 1 : 2;
    return combined > keep;
}

PartList parts_of_plan(Arena *arena, const Plan *plan, const CodegenRequest *base, const Target *target,
                       int keep)
{
    PartList list = {.plan = plan,
                     .parts = NEW_ARRAY(arena, ProgramPart, plan->step_count),
                     .part_of = NEW_ARRAY(arena, int, plan->step_count),
                     .ways = NEW_ARRAY(arena, PlanStep *, plan->step_count)};
    for (int s = 0; s < plan->step_count; s++)
        if (step_is_prepared(&plan->steps[s]))
            list.part_of[s] = -1;
        else
            add_step(arena, &list, s, base, target, keep);
    return list;
}

void parts_write(Arena *arena, PartList *list, const CodegenRequest *base)
{
    for (int p = 0; p < list->count; p++) {
        CodegenRequest request = *base;
        request.program = list->parts[p].program;
        request.form = CODEGEN_PIECES;
        candidates_write(arena, &list->parts[p].list, 0, list->parts[p].list.count, &request);
    }
}

// ---- the plan that is made of them ----

bool parts_agree(const PartList *list)
{
    bool agree = true;
    for (int p = 0; p < list->count; p++)
        agree &= list->parts[p].list.items[0].model_rank == 1;
    return agree;
}

Plan parts_plan(Arena *arena, const PartList *list, const CodegenRequest *base)
{
    const Plan *plan = list->plan;
    PlanStep *steps = NEW_ARRAY(arena, PlanStep, plan->step_count);
    for (int s = 0; s < plan->step_count; s++) {
        int p = list->part_of[s];
        steps[s] = p < 0 ? plan->steps[s] : list->ways[s][list->parts[p].list.items[0].model_rank - 1];
    }
    int64_t room = base->device->dram_bytes - program_bytes(base->program);
    return plan_of_steps(arena, plan->fusion_plan, steps, plan->step_count, room);
}
