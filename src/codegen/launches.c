#include "codegen/launches.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "codegen/chain.h"
#include "codegen/cuda/expr.h"
#include "codegen/cuda/token.h"
#include "codegen/memory.h"
#include "codegen/prepare.h"
#include "codegen/workspace.h"
#include "hal/launch_order.h"
#include "ir/concatenation.h"

/* The program with the tensors and definitions that only this plan has. */
static const Program *plan_program_copy(Arena *arena, const Program *program, const Plan *plan)
{
    if (!plan->partial_count)
        return program;
    Program *copy = NEW(arena, Program);
    *copy = *program;
    copy->tensors = NEW_ARRAY(arena, Tensor *, program->tensor_count + plan->partial_count);
    copy->ops = NEW_ARRAY(arena, TensorOp *, program->op_count + plan->partial_count);
    memcpy(copy->tensors, program->tensors, sizeof(Tensor *) * (size_t)program->tensor_count);
    memcpy(copy->ops, program->ops, sizeof(TensorOp *) * (size_t)program->op_count);
    for (int i = 0; i < plan->partial_count; i++) {
        TensorOp *op = NEW(arena, TensorOp);
        *op = *plan->partial_ops[i];
        op->out->id = copy->tensor_count;
        copy->tensors[copy->tensor_count++] = op->out;
        copy->ops[copy->op_count++] = op;
    }
    return copy;
}

/* Where tensors lie, by id. */
typedef struct Places {
    const int64_t *prepared;   // -1: not there
    const Workspace *workspace;
} Places;

/* Position of the tensor among the program's arguments. */
static int program_argument(const Program *program, const Tensor *tensor)
{
    int argument = argument_count(program) - 1;
    while (argument >= 0 && argument_tensor(program, argument) != tensor)
        argument--;
    assert(argument >= 0);
    return argument;
}

/* Of a concatenation a kernel may make, or read, some of its parts. */
static void set_part(LaunchArg *arg, const Fusion *fusion, const Tensor *seen)
{
    if (!seen->part_stride)
        return;
    int64_t bytes = dtype_info[seen->dtype].bits / 8;
    RowPart part = fusion_part(fusion, seen, arg->written);
    arg->first = seen->part_first * bytes;
    arg->row = seen->part_stride * bytes;
    arg->row_first = part.first * bytes;
    arg->row_end = part.end * bytes;
}

/* A kernel may see a view of the tensor. */
static LaunchArg launch_arg(const Kernel *kernel, const Fusion *fusion, const Tensor *seen, bool written, bool in_call,
                            const Places *places)
{
    const Program *program = kernel->program;
    const Tensor *tensor = program->tensors[seen->id];
    LaunchArg arg = {.tensor = tensor,
                     .part = seen->part ? program->tensors[seen->part->id] : NULL,
                     .bytes = tensor_bytes(tensor),
                     .written = written};
    set_part(&arg, fusion, seen);
    if (prepare_find(kernel, places->prepared, tensor, in_call, &arg))
        return arg;
    if (tensor->role == ROLE_TEMPORARY) {
        arg.buffer = buffer_beside(program, BUFFER_WORKSPACE);
        arg.offset = places->workspace->of_tensor[tensor->id];
    } else {
        arg.buffer = program_argument(program, tensor);
    }
    return arg;
}

static double scalar_work(const Fusion *fusion)
{
    double work = 0;
    for (int i = 0; i < fusion->op_count; i++) {
        double points = expr_size(fusion->ops[i].body);
        for (int a = 0; a < fusion->axis_count; a++)
            if ((fusion->ops[i].spatial | fusion->ops[i].reduced) >> a & 1)
                points *= (double)fusion->axes[a].extent;
        work += points;
    }
    return work;
}

/* Blocks work out where an element would lie before they know whether there is one: two images each, of five
   in all, have an address of a sixth. A tensor is larger by as much as whole tiles cover more of it. */
static bool reaches_far(const Fusion *fusion, const TileSpace *space, const RTile *block)
{
    double largest = (double)fusion_largest_tensor(fusion);   // positions of a tile may share elements
    RTile problem = rtile_problem(space), reached = problem;
    for (int a = 0; a < space->axis_count; a++)
        reached.size[a] = round_up(problem.size[a], block->size[a]);
    for (int i = 0; i < space->tile_count; i++) {
        const DataTile *tile = &space->tiles[i];
        double elements = data_tile_bytes(tile, &problem, space->axis_count) * 8 / tile->element_bits,
               more = (double)data_tile_elements(tile, &reached, space->axis_count) /
                      (double)data_tile_elements(tile, &problem, space->axis_count);
        if (is_past_32_bits((int64_t)fmin(fmin(elements, largest) * more, INT32_MAX)))
            return true;
    }
    return false;
}

static KernelPlan kernel_plan(const CodegenRequest *request, const PlannedLaunch *planned)
{
    const RTile *tile = planned->program->tile;
    return (KernelPlan){
        .fusion = planned->fusion,
        .view = planned->view,
        .kind = planned->kind,
        .program = planned->program,
        .device = request->device,
        .shared = kind_layout(planned->kind, &tile[LEVEL_SHARED], &tile[LEVEL_REGISTER], request->device),
        .threads = launch_threads(planned->family, planned->program, request->device),
        .wide = fusion_is_wide(planned->fusion) ||
                reaches_far(planned->fusion, planned->kind->space, &planned->program->tile[LEVEL_SHARED]),
    };
}

static Launch make_launch(Arena *arena, const CodegenRequest *request, const Kernel *kernel, int index,
                          const Places *places)
{
    bool in_call = index >= kernel->prepare_count;
    const PlannedLaunch *planned = &request->plan->launches[index];
    const Fusion *fusion = planned->fusion;
    const RProgram *program = planned->program;
    KernelPlan plan = kernel_plan(request, planned);
    Launch launch = {
        .grid = {launch_blocks(planned->family, &plan), 1, 1},
        .block = {plan.threads, 1, 1},
        .cluster = {program->cluster, 1, 1},
        .shared_bytes = program->shared_bytes,
        .asks_shared = program->shared_bytes > request->device->shared_per_block,
        .turns = schedule_counts_turns(planned->kind->schedule) ? program->turns : 1,
        .args = NEW_ARRAY(arena, LaunchArg, fusion->input_count + fusion->output_count),
    };
    for (int i = 0; i < fusion->input_count; i++)
        launch.args[launch.arg_count++] = launch_arg(kernel, fusion, fusion->inputs[i], false, in_call, places);
    for (int i = 0; i < fusion->output_count; i++)
        launch.args[launch.arg_count++] = launch_arg(kernel, fusion, fusion->outputs[i], true, in_call, places);
    assert(launch.arg_count <= MAX_LAUNCH_ARGS);
    assert(launch.grid[0] <= device_most_blocks(request->device, plan.threads));
    if (planned->family->maps)
        launch.map_count = planned->family->maps(&plan, launch.maps);
    launch.brief = program->perf.overlap_us > 0;
    launch.work = scalar_work(fusion);
    launch.by_tensor_cores = planned->kind->space->unit >= UNIT_TENSOR_F16;
    return launch;
}

/* NAME_prepare's launches are a chain of their own, and a call's. */
static void chain_both(Arena *arena, Kernel *kernel, const DeviceSpec *device)
{
    int prepared = kernel->prepare_count;
    chain_launches(arena, kernel->launches, prepared, device);
    chain_launches(arena, kernel->launches + prepared, kernel->launch_count - prepared, device);
}

/* Launches come after others of their own list. */
static void order_both(Arena *arena, Kernel *kernel)
{
    int prepared = kernel->prepare_count;
    launches_order(arena, kernel->launches, prepared);
    launches_order(arena, kernel->launches + prepared, kernel->launch_count - prepared);
}

/* Where what lies in shared memory, of which the template asserts that it fits. */
static void emit_shared(StrBuf *out, const SharedLayout *shared)
{
    for (int i = 0; i < shared->count; i++)
        strbuf_printf(out, "constexpr Region %s = {%" PRId64 ", %" PRId64 "};%s\n", shared->regions[i].name,
                      shared->regions[i].at, shared->regions[i].bytes,
                      i ? "" : "   // of shared memory, in bytes");
    if (shared->count)
        CONSTEXPR(out, "int SHARED_BYTES", "of a block", shared->bytes);
}

static const bool *early_inputs(Arena *arena, const Launch *launch, const Fusion *fusion)
{
    bool *early = NEW_ARRAY(arena, bool, fusion->input_count + 1);
    for (int i = 0; i < fusion->input_count; i++)
        early[i] = launch->args[i].early;
    return early;
}

/* Inputs that have a map and that the block does not name. */
static uint64_t mapped_inputs(Arena *arena, const Launch *launch, const char *block)
{
    uint64_t mapped = 0, named = 0;
    for (int i = 0; i < launch->map_count; i++)
        mapped |= launch->maps[i].arg < 64 ? UINT64_C(1) << launch->maps[i].arg : 0;
    Slice rest = slice_of(block), token;
    while (token_read(&rest, &token))
        for (int i = 0; i < launch->map_count; i++)
            if (launch->maps[i].arg < 64 && slice_equals(token, arena_printf(arena, "in%d", launch->maps[i].arg)))
                named |= UINT64_C(1) << launch->maps[i].arg;
    return mapped & ~named;
}

/* What the launch is to its kernel: the parameter block. */
static LaunchDraft draft_of(Arena *arena, const CodegenRequest *request, const Kernel *kernel, int index)
{
    const PlannedLaunch *planned = &request->plan->launches[index];
    const Launch *launch = &kernel->launches[index];
    LaunchDraft draft = {.plan = kernel_plan(request, planned),
                         .template_path = planned->family->template_path};
    draft.plan.early = early_inputs(arena, launch, planned->fusion);
    draft.plan.finds_room = launch->finds_room;
    StrBuf tensors = strbuf_new(arena), block = strbuf_new(arena);
    emit_shared(&block, &draft.plan.shared);
    assert(launch->shared_bytes == draft.plan.shared.bytes);
    if (planned->family->emit)
        planned->family->emit(&block, &draft.plan);
    draft.mapped = mapped_inputs(arena, launch, block.text);
    emit_tensors(&tensors, kernel->program, planned->fusion, draft.plan.wide, draft.mapped);
    draft.tensors = tensors.text;
    draft.block = block.text;
    return draft;
}

Kernel *launches_draft(Arena *arena, const CodegenRequest *request, LaunchDraft *drafts)
{
    const Plan *plan = request->plan;
    Kernel *kernel = NEW(arena, Kernel);
    kernel->name = request->name;
    kernel->program = plan_program_copy(arena, request->program, plan);
    const int64_t *prepared = prepare_place(arena, plan, kernel);
    Workspace workspace = workspace_place(arena, kernel->program, plan, prepared);
    kernel->has_graph = request->device->dialect != DIALECT_HIP && plan->count - plan->prepare_count > 1;
    kernel->workspace_bytes = workspace.bytes;
    kernel->alive_bytes = workspace.alive;
    kernel->launches = NEW_ARRAY(arena, Launch, plan->count);
    for (int k = 0; k < plan->count; k++)
        kernel->launches[kernel->launch_count++] =
            make_launch(arena, request, kernel, k, &(Places){prepared, &workspace});
    order_both(arena, kernel);
    memory_check_launches(kernel);
    if (request->device->has.early_launches)
        chain_both(arena, kernel, request->device);
    for (int k = 0; k < plan->count; k++)
        if (drafts)
            drafts[k] = draft_of(arena, request, kernel, k);
        else
            kernel->launches[k].kernel = k;
    if (drafts)
        equal_kernels(arena, kernel, drafts);
    for (int k = 0; k < plan->count; k++)
        kernel->launches[k].entry = arena_printf(arena, "%s_k%d", request->name, kernel->launches[k].kernel);
    return kernel;
}
