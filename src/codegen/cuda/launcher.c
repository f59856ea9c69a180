#include "codegen/cuda/launcher.h"

#include <inttypes.h>

#include "codegen/codegen.h"

enum {   // past these a kernel must be told that it may (CUDA programming guide)
    STATIC_SHARED_BYTES = 48 * 1024,
    PORTABLE_CLUSTER_BLOCKS = 8
};

int program_argument(const Program *program, const Tensor *tensor)
{
    for (int i = 0; i < program->input_count; i++)
        if (program->inputs[i] == tensor)
            return i;
    for (int i = 0; i < program->output_count; i++)
        if (program->outputs[i] == tensor)
            return program->input_count + i;
    return -1;
}

/* `in0`, `out1`: the launcher's name for a program argument. */
static void write_argument_name(StrBuf *out, const Program *program, int argument)
{
    if (argument < program->input_count)
        strbuf_printf(out, "in%d", argument);
    else
        strbuf_printf(out, "out%d", argument - program->input_count);
}

/* `in0: x[64, 1024], f16`, a line each. */
static void write_argument_list(StrBuf *out, const Program *program, const char *margin)
{
    for (int i = 0; i < program->input_count + program->output_count; i++) {
        bool input = i < program->input_count;
        const Tensor *tensor = input ? program->inputs[i] : program->outputs[i - program->input_count];
        strbuf_puts(out, margin);
        write_argument_name(out, program, i);
        strbuf_printf(out, ": %s[", tensor->name);
        for (int d = 0; d < tensor->rank; d++)
            strbuf_printf(out, "%s%" PRId64, d ? ", " : "", tensor->shape[d]);
        strbuf_printf(out, "], %s\n", dtype_info[tensor->dtype].name);
    }
}

static void write_signature(StrBuf *out, const Program *program, const char *name)
{
    strbuf_printf(out, "int %s_launch(", name);
    for (int i = 0; i < program->input_count; i++)
        strbuf_printf(out, "const void *in%d, ", i);
    for (int i = 0; i < program->output_count; i++)
        strbuf_printf(out, "void *out%d, ", i);
    strbuf_puts(out, "void *workspace, void *stream)");
}

/* The kernels read and write up to 16 bytes at once, and the workspace is used at multiples of 256 bytes. */
static void write_alignment_check(StrBuf *out, const Program *program, const Kernel *kernel)
{
    strbuf_puts(out, "    if ((");
    for (int i = 0; i < program->input_count + program->output_count; i++) {
        strbuf_puts(out, i ? " | (size_t)" : "(size_t)");
        write_argument_name(out, program, i);
    }
    strbuf_puts(out, ") % 16 != 0");
    if (kernel->workspace_bytes)
        strbuf_puts(out, " || !workspace || (size_t)workspace % 256 != 0");
    strbuf_puts(out, ")\n        return cudaErrorInvalidValue;\n");
    if (!kernel->workspace_bytes)
        strbuf_puts(out, "    (void)workspace;\n");
}

#define CHECK_STATUS "        if (status != cudaSuccess)\n            return (int)status;\n"

static void write_allowance(StrBuf *out, const Launch *launch, const char *attribute, int64_t value)
{
    strbuf_printf(out,
                  "        status = cudaFuncSetAttribute(%s_scope::%s, cudaFuncAttribute%s, %" PRId64
                  ");\n" CHECK_STATUS,
                  launch->entry, launch->entry, attribute, value);
}

static void write_allowances(StrBuf *out, const Launch *launch)
{
    if (launch->shared_bytes > STATIC_SHARED_BYTES)
        write_allowance(out, launch, "MaxDynamicSharedMemorySize", launch->shared_bytes);
    if (launch_cluster_blocks(launch) > PORTABLE_CLUSTER_BLOCKS)
        write_allowance(out, launch, "NonPortableClusterSizeAllowed", 1);
}

static void write_shape(StrBuf *out, const Launch *launch)
{
    strbuf_printf(out, "dim3(%" PRId64 ", %" PRId64 ", %" PRId64 "), dim3(%d, %d, %d)", launch->grid[0],
                  launch->grid[1], launch->grid[2], launch->block[0], launch->block[1], launch->block[2]);
}

static void write_plain_launch(StrBuf *out, const Launch *launch)
{
    strbuf_printf(out, "        status = cudaLaunch%sKernel(%s_scope::%s, ",
                  launch->cooperative ? "Cooperative" : "", launch->entry, launch->entry);
    write_shape(out, launch);
    strbuf_printf(out, ", args,\n                                  %" PRId64 ", (cudaStream_t)stream);\n",
                  launch->shared_bytes);
}

static void write_cluster_launch(StrBuf *out, const Launch *launch)
{
    strbuf_printf(out,
                  "        cudaLaunchAttribute attributes[2] = {};\n"
                  "        attributes[0].id = cudaLaunchAttributeClusterDimension;\n"
                  "        attributes[0].val.clusterDim = {%d, %d, %d};\n"
                  "        attributes[1].id = cudaLaunchAttributeCooperative;\n"
                  "        attributes[1].val.cooperative = %d;\n"
                  "        const cudaLaunchConfig_t config = {",
                  launch->cluster[0], launch->cluster[1], launch->cluster[2], launch->cooperative);
    write_shape(out, launch);
    strbuf_printf(out,
                  ",\n                                           %" PRId64
                  ", (cudaStream_t)stream, attributes, 2};\n"
                  "        status = cudaLaunchKernelExC(&config, %s_scope::%s, args);\n",
                  launch->shared_bytes, launch->entry, launch->entry);
}

static void write_launch(StrBuf *out, const Program *program, const Launch *launch)
{
    strbuf_printf(out, "    {   // %s\n", launch->entry);
    for (int i = 0; i < launch->arg_count; i++) {
        const LaunchArg *arg = &launch->args[i];
        strbuf_printf(out, "        const void *a%d = ", i);
        if (arg->workspace_offset >= 0)
            strbuf_printf(out, "(char *)workspace + %" PRId64, arg->workspace_offset);
        else
            write_argument_name(out, program, program_argument(program, arg->tensor));
        strbuf_puts(out, ";\n");
    }
    strbuf_puts(out, "        void *args[] = {");
    for (int i = 0; i < launch->arg_count; i++)
        strbuf_printf(out, "%s&a%d", i ? ", " : "", i);
    strbuf_puts(out, "};\n");
    write_allowances(out, launch);
    if (launch_cluster_blocks(launch) > 1)
        write_cluster_launch(out, launch);
    else
        write_plain_launch(out, launch);
    strbuf_puts(out, CHECK_STATUS "    }\n");
}

void write_launcher(StrBuf *out, const Program *program, const Kernel *kernel)
{
    strbuf_printf(out,
                  "\n#ifndef __CUDACC_RTC__\nextern \"C\" size_t %s_workspace(void)\n{\n    return %" PRId64
                  ";\n}\n\n",
                  kernel->name, kernel->workspace_bytes);
    write_argument_list(out, program, "// ");
    strbuf_puts(out, "extern \"C\" ");
    write_signature(out, program, kernel->name);
    strbuf_puts(out, "\n{\n");
    write_alignment_check(out, program, kernel);
    strbuf_puts(out, "    cudaError_t status = cudaSuccess;\n");
    for (int k = 0; k < kernel->launch_count; k++)
        write_launch(out, program, &kernel->launches[k]);
    strbuf_puts(out, "    return (int)status;\n}\n#endif\n");
}

char *codegen_header(Arena *arena, const Kernel *kernel)
{
    StrBuf out = strbuf_new(arena);
    const Program *program = kernel->program;
    strbuf_printf(
        &out,
        "// Launcher of %s; see %s.cu.\n#pragma once\n#include <stddef.h>\n\n"
        "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
        "/* Bytes of workspace, aligned to 256; 0: none is needed. */\nsize_t %s_workspace(void);\n\n",
        kernel->name, kernel->name, kernel->name);
    strbuf_puts(&out, "/* Returns a cudaError_t. Pointers are device memory aligned to 16 bytes; `stream` is "
                      "a cudaStream_t. Tensors are dense and row-major:\n\n");
    write_argument_list(&out, program, "     ");
    strbuf_puts(&out, "*/\n");
    write_signature(&out, program, kernel->name);
    strbuf_puts(&out, ";\n\n#ifdef __cplusplus\n}\n#endif\n");
    return out.text;
}
