// What was asked: the expression, the device, the options, and what answers.
#include <string.h>

#include "base/hash.h"
#include "rank/ranking_parts.h"

static const char *const role_name[] = {
    [ROLE_INPUT] = "input", [ROLE_OUTPUT] = "output", [ROLE_TEMPORARY] = "temporary"};

static void add_tensor(Json *tensors, const Tensor *stored)
{
    const Tensor *tensor = tensor_shown(stored);
    Json *entry = json_push_object(tensors);
    json_set_string(entry, "name", tensor->name);
    json_set_string(entry, "role", role_name[stored->role]);
    json_set_string(entry, "dtype", dtype_info[tensor->dtype].name);
    Json *shape = json_set_array(entry, "shape");
    for (int i = 0; i < tensor->rank; i++)
        json_push_int(shape, tensor->shape[i]);
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

static void add_tool(Json *root, const Ranking *ranking)
{
    Json *tool = json_set_object(root, "tool");
    json_set_string(tool, "name", "rollerc");
    json_set_string(tool, "version", ROLLERC_VERSION);
    json_set_string(tool, "templates_sha256", templates_sha256(ranking->templates));
}

static void add_workload(Arena *arena, Json *root, const Ranking *ranking)
{
    const Program *program = ranking->program;
    double flops = program_flops(program), bytes = (double)program_bytes(program);   // least to move

    Json *workload = json_set_object(root, "workload");
    json_set_string(workload, "id", hash_of(arena, ranking->expr, strlen(ranking->expr)));
    json_set_string(workload, "expr", ranking->expr);
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
    json_set_int(entry, "warp_size", device->warp_size);
    json_set_int(entry, "max_threads_per_sm", device->max_threads_per_sm);
    json_set_int(entry, "max_blocks_per_sm", device->max_blocks_per_sm);
    json_set_double(entry, "dram_gb_s", device->dram.bandwidth_gb_s);
    json_set_double(entry, "l2_gb_s", device->l2.bandwidth_gb_s);
    json_set_double(entry, "shared_gb_s", device->shared.bandwidth_gb_s);
    json_set_double(entry, "dram_latency_ns", device->dram_latency_ns);
    json_set_double(entry, "launch_us", device->launch_us);
    Json *peak = json_set_object(entry, "peak_gflop_s");
    for (int unit = 0; unit < UNIT_COUNT; unit++)
        if (device->peak[unit] > 0)
            json_set_double(peak, unit_name[unit], device->peak[unit]);
}

static void add_options(Json *root, const RankingOptions *options)
{
    Json *entry = json_set_object(root, "options");
    json_set_string(entry, "name", options->name);
    json_set_string(entry, "math", eval_math_name[options->math]);
    json_set_int(entry, "top_k", options->top_k);
    if (options->candidate)
        json_set_int(entry, "candidate", options->candidate);
    json_set_bool(entry, "verify", options->verify);
    json_set_bool(entry, "profile", options->profile);
    json_set_bool(entry, "force_device", options->force_device);
    if (options->hang_after)
        json_set_int(entry, "hang_after", options->hang_after);
    json_set_bool(entry, "line_directives", options->line_directives);
    json_set_bool(entry, "with_test", options->with_test);
    Json *params = json_set_object(entry, "params");
    for (int i = 0; i < options->param_count; i++)
        json_set_string(params, options->params[i].name, options->params[i].text);
}

void ranking_add_problem(Arena *arena, Json *root, const Ranking *ranking)
{
    add_tool(root, ranking);
    add_workload(arena, root, ranking);
    add_device(root, ranking->device);
    add_options(root, ranking->options);
}
