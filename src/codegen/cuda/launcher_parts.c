#include "codegen/cuda/launcher_parts.h"

#include "codegen/cuda/launcher_map.h"
#include "hal/device.h"

/* `in0`, `out1`: what the argument is called until it has its name. */
const char *launcher_argument(Arena *arena, const Program *program, int argument)
{
    bool input = argument < program->input_count;
    return arena_printf(arena, input ? "in%d" : "out%d", input ? argument : argument - program->input_count);
}

/* `const void *x, void *y, void *workspace` */
void launcher_write_parameters(StrBuf *out, const Kernel *kernel, bool numbered)
{
    const Program *program = kernel->program;
    for (int i = 0; i < argument_count(program); i++)
        strbuf_printf(out, "%svoid *%s, ", i < program->input_count ? "const " : "",
                      numbered ? launcher_argument(out->arena, program, i) : kernel->arguments[i]);
    strbuf_puts(out, "void *workspace");
}

void launcher_write_graph_signature(StrBuf *out, const Kernel *kernel, bool numbered)
{
    strbuf_printf(out, "int %s_graph(void **graph, ", kernel->name);
    launcher_write_parameters(out, kernel, numbered);
    strbuf_puts(out, ")");
}

/* The kernels read and write up to 16 bytes at once, and the workspace is used at multiples of 256 bytes. */
void launcher_write_checks(StrBuf *out, const Kernel *kernel)
{
    const Program *program = kernel->program;
    strbuf_puts(out, "    if ((");
    for (int i = 0; i < argument_count(program); i++)
        strbuf_printf(out, "%s(size_t)%s", i ? " | " : "", launcher_argument(out->arena, program, i));
    strbuf_puts(out, ") % 16 != 0");
    if (kernel->workspace_bytes)
        strbuf_puts(out, " || !workspace || (size_t)workspace % 256 != 0");
    strbuf_puts(out, ")\n        return (int)cudaErrorInvalidValue;\n");
    if (!kernel->workspace_bytes)
        strbuf_puts(out, "    (void)workspace;\n");
}

bool launcher_needs_large_cluster(const Launch *launch)
{
    return launch_cluster_blocks(launch) > PORTABLE_CLUSTER_BLOCKS;
}

bool launcher_needs_allowance(const Kernel *kernel)
{
    for (int k = 0; k < kernel->launch_count; k++)
        if (kernel->launches[k].asks_shared || launcher_needs_large_cluster(&kernel->launches[k]))
            return true;
    return false;
}

void launcher_write_status(StrBuf *out, const Kernel *kernel)
{
    bool allows = launcher_needs_allowance(kernel);
    strbuf_printf(out, "    cudaError_t status = %s%s;\n", allows ? kernel->name : "cudaSuccess", allows ? "_allow()" : "");
}

void launcher_write_shape(StrBuf *out, const Launch *launch)
{
    strbuf_printf(out, "dim3(%" PRId64 ", %" PRId64 ", %" PRId64 "), dim3(%d, %d, %d)", launch->grid[0],
                  launch->grid[1], launch->grid[2], launch->block[0], launch->block[1], launch->block[2]);
}

/* What the launcher calls argument i of a launch; `program` NULL: what a kernel's own function does. */
static const char *pointer_name(Arena *arena, const Program *program, const Launch *launch, int i)
{
    if (!program)
        return arena_printf(arena, "a%d", i);
    int buffer = launch->args[i].buffer;
    return buffer == argument_count(program) ? arena_printf(arena, "w%d", i)
                                               : launcher_argument(arena, program, buffer);
}

void launcher_write_arguments(StrBuf *out, const char *indent, const Program *program, const Launch *launch)
{
    for (int i = 0; i < launch->arg_count && program; i++)
        if (launch->args[i].buffer == argument_count(program))
            strbuf_printf(out, "%svoid *w%d = (char *)workspace + %" PRId64 ";\n", indent, i,
                          launch->args[i].offset);
    for (int i = 0; i < launch->map_count; i++)
        strbuf_printf(out, "%sTensorMap m%d;\n", indent, i);
    strbuf_printf(out, "%svoid *args[] = {", indent);
    for (int i = 0; i < launch->arg_count; i++)
        strbuf_printf(out, "%s&%s", i ? ", " : "", pointer_name(out->arena, program, launch, i));
    for (int i = 0; i < launch->map_count; i++)
        strbuf_printf(out, ", &m%d", i);
    strbuf_puts(out, "};\n");
}

/* How bulk copies see the arguments, with `status` for what the driver says. */
void launcher_write_maps(StrBuf *out, const char *indent, const Program *program, const Launch *launch)
{
    for (int i = 0; i < launch->map_count; i++) {
        if (i)
            strbuf_printf(out, "%sif (status == cudaSuccess)\n    ", indent);
        strbuf_puts(out, indent);
        launcher_write_map(out, &launch->maps[i], i, pointer_name(out->arena, program, launch, launch->maps[i].arg));
    }
}

bool launcher_is_shared(const Kernel *kernel, int k)
{
    int count = 0;
    for (int i = 0; i < kernel->launch_count; i++)
        count += kernel->launches[i].kernel == k;
    return count > 1;
}
