// Pieces of the launcher: arguments and their checks, what must be done before a launch, launches.
#include "codegen/cuda/launcher_parts.h"

#include <inttypes.h>
#include <string.h>

#include "hal/device.h"
#include "hal/runtime.h"

const char *launcher_argument(Arena *arena, const Program *program, int argument)
{
    bool input = argument < program->input_count;
    return arena_printf(arena, input ? "in%d" : "out%d", input ? argument : argument - program->input_count);
}

void launcher_tensor(StrBuf *out, const Tensor *stored)
{
    const Tensor *tensor = tensor_shown(stored);
    strbuf_printf(out, "%s[", tensor->name);
    for (int d = 0; d < tensor->rank; d++)
        strbuf_printf(out, "%s%" PRId64, d ? ", " : "", tensor->shape[d]);
    strbuf_printf(out, "] : %s", dtype_info[tensor->dtype].name);
}

bool launcher_is_weight(const Program *program, int argument)
{
    return argument_tensor(program, argument)->is_weight;
}

/* `const void *x, const void *prepared, void *y, void *workspace` */
static void write_parameters(StrBuf *out, const Kernel *kernel, bool numbered)
{
    const Program *program = kernel->program;
    for (int i = 0; i < argument_count(program); i++) {
        if (i == program->input_count && kernel->prepared_id)
            strbuf_puts(out, "const void *prepared, ");
        if (!launcher_is_weight(program, i))
            strbuf_printf(out, "%svoid *%s, ", i < program->input_count ? "const " : "",
                          numbered ? launcher_argument(out->arena, program, i) : kernel->arguments[i]);
    }
    strbuf_puts(out, "void *workspace");
}

void launcher_signature(StrBuf *out, const Kernel *kernel, bool numbered)
{
    strbuf_printf(out, "int %s_launch(", kernel->name);
    write_parameters(out, kernel, numbered);
    strbuf_puts(out, ", void *stream)");
}

void launcher_graph_signature(StrBuf *out, const Kernel *kernel, bool numbered)
{
    strbuf_printf(out, "int %s_graph(void **graph, ", kernel->name);
    write_parameters(out, kernel, numbered);
    strbuf_puts(out, ")");
}

void launcher_check_place(StrBuf *out, const char *name, int64_t bytes)
{
    if (bytes)
        strbuf_printf(out, " || !%s || (size_t)%s %% 256 != 0", name, name);
}

void launcher_unused(StrBuf *out, const char *name, int64_t bytes)
{
    if (!bytes)
        strbuf_printf(out, "    (void)%s;\n", name);
}

/* The kernels read and write up to 16 bytes at once, and what lies beside the arguments is used at multiples of 256
   bytes. */
void launcher_check(StrBuf *out, const Program *program, const Kernel *kernel)
{
    int checked = 0;
    strbuf_puts(out, "    if ((");
    for (int i = 0; i < argument_count(program); i++)
        if (!launcher_is_weight(program, i))
            strbuf_printf(out, "%s(size_t)%s", checked++ ? " | " : "", launcher_argument(out->arena, program, i));
    strbuf_puts(out, ") % 16 != 0");
    launcher_check_place(out, "workspace", kernel->workspace_bytes);
    launcher_check_place(out, "prepared", kernel->prepared_bytes);
    strbuf_puts(out, ")\n        return (int)cudaErrorInvalidValue;\n");
    launcher_unused(out, "workspace", kernel->workspace_bytes);
    if (kernel->prepared_id)
        launcher_unused(out, "prepared", kernel->prepared_bytes);
}

void launcher_using(StrBuf *out, const Kernel *kernel)
{
    strbuf_printf(out, "    using namespace %s" PRELUDE_SUFFIX ";\n", kernel->name);
}

// ---- launches ----

static void write_dim3(StrBuf *out, int64_t x, int64_t y, int64_t z)
{
    if (y == 1 && z == 1)
        strbuf_printf(out, "%" PRId64, x);
    else
        strbuf_printf(out, "dim3(%" PRId64 ", %" PRId64 ", %" PRId64 ")", x, y, z);
}

void launcher_write_shape(StrBuf *out, const Launch *launch)
{
    write_dim3(out, launch->grid[0], launch->grid[1], launch->grid[2]);
    strbuf_puts(out, ", ");
    write_dim3(out, launch->block[0], launch->block[1], launch->block[2]);
}

void launcher_write_cluster(StrBuf *out, const Launch *launch)
{
    write_dim3(out, launch->cluster[0], launch->cluster[1], launch->cluster[2]);
}

bool launcher_has_attributes(const Launch *launch)
{
    return launch_cluster_blocks(launch) > 1 || launch->early;
}

/* It lies beside the program's arguments, or behind where one of them begins. */
static bool has_place(const Program *program, const LaunchArg *arg)
{
    return arg->buffer >= argument_count(program) || arg->first;
}

/* What the launcher calls argument i of a launch; `program` NULL: what a kernel's own function does. */
static const char *pointer_name(Arena *arena, const Program *program, const Launch *launch, int i)
{
    if (!program)
        return arena_printf(arena, "a%d", i);
    return has_place(program, &launch->args[i]) ? arena_printf(arena, "w%d", i)
                                                : launcher_argument(arena, program, launch->args[i].buffer);
}

/* `void *w2 = (char *)workspace + 4096;`, which the launch may write to if it is not const. */
static void write_place(StrBuf *out, const Program *program, const LaunchArg *arg, int i)
{
    static const char *const names[] = {
        [BUFFER_WORKSPACE] = "workspace", [BUFFER_PREPARED] = "prepared", [BUFFER_WEIGHTS] = "weights"};
    int beside = arg->buffer - argument_count(program);
    const char *constant = beside != BUFFER_WORKSPACE && !arg->written ? "const " : "";
    strbuf_printf(out, "    %svoid *w%d = (%schar *)%s + %" PRId64 ";\n", constant, i, constant,
                  beside < 0 ? launcher_argument(out->arena, program, arg->buffer) : names[beside], launch_arg_start(arg));
}

void launcher_write_arguments(StrBuf *out, const Program *program, const Launch *launch)
{
    for (int i = 0; i < launch->arg_count && program; i++)
        if (has_place(program, &launch->args[i]))
            write_place(out, program, &launch->args[i], i);
    for (int i = 0; i < launch->map_count; i++)
        strbuf_printf(out, "%sm%d%s", i ? ", " : "    TensorMap ", i, i + 1 < launch->map_count ? "" : ";\n");
    strbuf_puts(out, "    void *args[] = {");
    for (int i = 0; i < launch->arg_count; i++)
        strbuf_printf(out, "%s&%s", i ? ", " : "", pointer_name(out->arena, program, launch, i));
    for (int i = 0; i < launch->map_count; i++)
        strbuf_printf(out, ", &m%d", i);
    strbuf_puts(out, "};\n");
}

/* `{64, 128, 1}`, in front of which a comma stands. */
static void write_integers(StrBuf *out, const int64_t *values, int count)
{
    strbuf_puts(out, ", {");
    for (int i = 0; i < count; i++)
        strbuf_printf(out, "%s%" PRId64, i ? ", " : "", values[i]);
    strbuf_puts(out, "}");
}

static void write_ints(StrBuf *out, const int *values, int count)
{
    int64_t wide[MAX_MAP_RANK];
    for (int i = 0; i < count; i++)
        wide[i] = values[i];
    write_integers(out, wide, count);
}

static void write_pixels(StrBuf *out, const TensorMap *map)
{
    write_ints(out, map->lower, map->pixel_axes);
    write_ints(out, map->upper, map->pixel_axes);
    write_ints(out, map->steps, map->pixel_axes);
    strbuf_printf(out, ", %d", map->box[1]);
}

#define STEP "    status = status ? status : "   // the first error stays

/* `    status = status ? status : describe_tensor(&m0, w1, 1, {64, 64}, {128}, {64, 64});`: how bulk copies see a tensor. */
static void write_map(StrBuf *out, const TensorMap *map, int number, const char *pointer)
{
    strbuf_puts(out, STEP);
    if (map->pixel_axes)
        strbuf_printf(out, "describe_pixels<%d>", map->rank);
    else
        strbuf_puts(out, "describe_tensor");
    if (map->start)
        strbuf_printf(out, "(&m%d, (const char *)%s + %" PRId64, number, pointer, map->start);
    else
        strbuf_printf(out, "(&m%d, %s", number, pointer);
    strbuf_printf(out, ", %d", map->tf32 ? 11 : map->element_bytes > 2 ? 2 : map->element_bytes - 1);   // 0 … 2: unsigned integers
    write_integers(out, map->sizes, map->rank);
    write_integers(out, map->strides, map->rank - 1);
    if (map->pixel_axes)
        write_pixels(out, map);
    else
        write_ints(out, map->box, map->rank);
    strbuf_puts(out, ");\n");
}

static void write_allowance(StrBuf *out, const Launch *launch, const char *attribute, int64_t value)
{
    strbuf_printf(out, STEP "cudaFuncSetAttribute(%s_scope::%s, cudaFuncAttribute%s, %" PRId64 ");\n", launch->entry,
                  launch->entry, attribute, value);
}

const char *launcher_steps(Arena *arena, const Program *program, const Launch *launch)
{
    StrBuf out = strbuf_new(arena);
    if (launch->asks_shared)
        write_allowance(&out, launch, "MaxDynamicSharedMemorySize", launch->shared_bytes);
    if (launch_cluster_blocks(launch) > PORTABLE_CLUSTER_BLOCKS)
        write_allowance(&out, launch, "NonPortableClusterSizeAllowed", 1);
    for (int i = 0; i < launch->map_count; i++)
        write_map(&out, &launch->maps[i], i, pointer_name(arena, program, launch, launch->maps[i].arg));
    return out.text;
}

/* `launch_early(net_k0_scope::net_k0, 132, 512, args, 144632, (cudaStream_t)stream)` */
static void write_launch(StrBuf *out, const Launch *launch)
{
    bool clusters = launch_cluster_blocks(launch) > 1;
    strbuf_printf(out, "%s(%s_scope::%s, ",
                  clusters              ? "launch_with"
                  : launch->early       ? "launch_early"
                  : launch->cooperative ? "cudaLaunchCooperativeKernel"
                                        : "cudaLaunchKernel",
                  launch->entry, launch->entry);
    launcher_write_shape(out, launch);
    strbuf_printf(out, ", args, %" PRId64 ", (cudaStream_t)stream", launch->shared_bytes);
    if (clusters) {
        strbuf_puts(out, launch->early ? ", true, " : ", false, ");
        launcher_write_cluster(out, launch);
    }
    strbuf_puts(out, clusters && launch->cooperative ? ", true)" : ")");
}

void launcher_alone(StrBuf *out, const Kernel *kernel)
{
    const Launch *launch = kernel->launches;
    const char *steps = launcher_steps(out->arena, kernel->program, launch);
    launcher_write_arguments(out, kernel->program, launch);
    if (*steps)
        strbuf_printf(out, "    cudaError_t status = %s", steps + strlen(STEP));
    strbuf_puts(out, *steps ? "    return (int)(status ? status : " : "    return (int)");
    write_launch(out, launch);
    strbuf_puts(out, *steps ? ");\n" : ";\n");
}

bool launcher_alone_uses_prelude(const Kernel *kernel)
{
    return kernel->launches->map_count || launcher_has_attributes(kernel->launches);
}
