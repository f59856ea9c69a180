#include "codegen/cuda/launcher.h"

#include <string.h>

#include "codegen/cuda/launcher_parts.h"
#include "hal/device.h"
#include "hal/runtime.h"

/* `x[64, 1024] : f16` */
static void write_tensor(StrBuf *out, const Tensor *stored)
{
    const Tensor *tensor = tensor_shown(stored);
    strbuf_printf(out, "%s[", tensor->name);
    for (int d = 0; d < tensor->rank; d++)
        strbuf_printf(out, "%s%" PRId64, d ? ", " : "", tensor->shape[d]);
    strbuf_printf(out, "] : %s", dtype_info[tensor->dtype].name);
}

static void write_signature(StrBuf *out, const Kernel *kernel, bool numbered)
{
    strbuf_printf(out, "int %s_launch(", kernel->name);
    launcher_write_parameters(out, kernel, numbered);
    strbuf_puts(out, ", void *stream)");
}

/* What the launcher takes of the prelude. */
static void write_using(StrBuf *out, const Kernel *kernel)
{
    strbuf_printf(out, "    using namespace %s" PRELUDE_SUFFIX ";\n", kernel->name);
}

// ---- what kernels must be allowed ----

static void write_allowance(StrBuf *out, const Launch *launch, const char *attribute, int64_t value)
{
    strbuf_printf(out,
                  "    if (status == cudaSuccess)\n"
                  "        status = cudaFuncSetAttribute(%s_scope::%s, cudaFuncAttribute%s, %" PRId64 ");\n",
                  launch->entry, launch->entry, attribute, value);
}

/* Each thread asks once for each device, so none waits for another; asking twice changes nothing. */
static void write_allowances(StrBuf *out, const Kernel *kernel, bool hip)
{
    if (!launcher_needs_allowance(kernel))
        return;
    strbuf_printf(out,
                  "\n// What the kernels must be allowed, once for each thread and device.\n"
                  "static cudaError_t %s_allow()\n{\n"
                  "    static thread_local unsigned long long allowed = 0;   // bit i: on device i\n"
                  "    int device = 0;\n"
                  "    cudaError_t status = cudaGetDevice(&device);\n"
                  "    if (status == cudaSuccess && device < 64 && allowed >> device & 1)\n"
                  "        return cudaSuccess;\n",
                  kernel->name);
    if (hip)
        write_using(out, kernel);
    for (int k = 0; k < kernel->kernel_count; k++) {
        const Launch *launch = &kernel->launches[kernel->leaders[k]];
        if (launch->asks_shared)
            write_allowance(out, launch, "MaxDynamicSharedMemorySize", launch->shared_bytes);
        if (launcher_needs_large_cluster(launch))
            write_allowance(out, launch, "NonPortableClusterSizeAllowed", 1);
    }
    strbuf_puts(out, "    if (status == cudaSuccess && device < 64)\n"
                     "        allowed |= 1ull << device;\n"
                     "    return status;\n}\n");
}

// ---- launches ----

/* Up to its ( */
static void write_call(StrBuf *out, const Launch *launch, bool attributes)
{
    strbuf_printf(out, "cudaLaunch%sKernel%s(", launch->cooperative && !attributes ? "Cooperative" : "",
                  attributes ? "ExC" : "");
}

/* Clusters, and that it may begin early, are attributes of a launch. */
static int attribute_count(const Launch *launch)
{
    return (launch_cluster_blocks(launch) > 1 ? 2 : 0) + launch->early;
}

static void write_cluster(StrBuf *out, const char *indent, const Launch *launch)
{
    strbuf_printf(out,
                  "%sattributes[0].id = cudaLaunchAttributeClusterDimension;\n"
                  "%sattributes[0].val.clusterDim = {%d, %d, %d};\n"
                  "%sattributes[1].id = cudaLaunchAttributeCooperative;\n"
                  "%sattributes[1].val.cooperative = %d;\n",
                  indent, indent, launch->cluster[0], launch->cluster[1], launch->cluster[2], indent, indent,
                  launch->cooperative);
}

static bool needs_prelude(const Launch *launch) { return launch->map_count || attribute_count(launch); }

/* What the call of a launch with attributes begins with. */
static void write_attributes(StrBuf *out, const char *indent, const Launch *launch)
{
    int count = attribute_count(launch);
    strbuf_printf(out, "%scudaLaunchAttribute attributes[%d] = {};\n", indent, count);
    if (launch_cluster_blocks(launch) > 1)
        write_cluster(out, indent, launch);
    if (launch->early)
        strbuf_printf(out, "%sattributes[%d] = begins_early();\n", indent, count - 1);
    strbuf_printf(out, "%sconst cudaLaunchConfig_t config = {", indent);
    launcher_write_shape(out, launch);
    strbuf_printf(out,
                  ",\n%s                                   %" PRId64
                  ", (cudaStream_t)stream, attributes, %d};\n",
                  indent, launch->shared_bytes, count);
}

/* `result` is what its status goes to: `return (int)`, `status = `. */
static void write_launch(StrBuf *out, const char *indent, const char *result, const Program *program,
                         const Launch *launch)
{
    bool attributes = attribute_count(launch) > 0;
    launcher_write_arguments(out, indent, program, launch);
    launcher_write_maps(out, indent, program, launch);
    if (attributes)
        write_attributes(out, indent, launch);
    if (launch->map_count)
        strbuf_printf(out, "%sif (status == cudaSuccess)\n    ", indent);
    strbuf_printf(out, "%s%s", indent, result);
    write_call(out, launch, attributes);
    strbuf_printf(out, "%s%s_scope::%s, ", attributes ? "&config, " : "", launch->entry, launch->entry);
    if (!attributes) {
        launcher_write_shape(out, launch);
        strbuf_printf(out, ",\n%s    ", indent);
    }
    strbuf_puts(out, "args");
    if (!attributes)
        strbuf_printf(out, ", %" PRId64 ", (cudaStream_t)stream", launch->shared_bytes);
    strbuf_puts(out, ");\n");
}

// ---- kernels that are launched more than once: a function of their own, and calls of it ----

/* `static cudaError_t net_k2_launch(const void *a0, void *a1, void *stream)` */
static void write_function(StrBuf *out, const Kernel *kernel, const Launch *launch, bool hip)
{
    bool maps = launch->map_count > 0;
    strbuf_printf(out, "\nstatic cudaError_t %s_launch(", launch->entry);
    for (int i = 0; i < launch->arg_count; i++)
        strbuf_printf(out, "%svoid *a%d, ", launch->args[i].written ? "" : "const ", i);
    strbuf_puts(out, "void *stream)\n{\n");
    if (hip || needs_prelude(launch))
        write_using(out, kernel);
    strbuf_puts(out, maps ? "    cudaError_t status;\n" : "");
    write_launch(out, "    ", maps ? "status = " : "return ", NULL, launch);
    strbuf_puts(out, maps ? "    return status;\n}\n" : "}\n");
}

/* What it makes, in the user's words, and the call. */
static void write_function_call(StrBuf *out, const Program *program, const Launch *launch)
{
    strbuf_puts(out, "    if (status == cudaSuccess)   //");
    for (int i = 0; i < launch->arg_count; i++)
        if (launch->args[i].written && launch->args[i].tensor)
            strbuf_printf(out, " %s", tensor_shown(launch->args[i].tensor)->name);
    strbuf_printf(out, "\n        status = %s_launch(", launch->entry);
    for (int i = 0; i < launch->arg_count; i++)
        if (launch->args[i].buffer == argument_count(program))
            strbuf_printf(out, "(char *)workspace + %" PRId64 ", ", launch->args[i].offset);
        else
            strbuf_printf(out, "%s, ", launcher_argument(out->arena, program, launch->args[i].buffer));
    strbuf_puts(out, "stream);\n");
}

static void write_launches(StrBuf *out, const Kernel *kernel)
{
    bool allows = launcher_needs_allowance(kernel);
    if (kernel->launch_count == 1 && !allows && !kernel->launches[0].map_count) {
        write_launch(out, "    ", "return (int)", kernel->program, &kernel->launches[0]);
        return;
    }
    launcher_write_status(out, kernel);
    for (int k = 0; k < kernel->launch_count; k++) {
        const Launch *launch = &kernel->launches[k];
        if (launcher_is_shared(kernel, launch->kernel)) {
            write_function_call(out, kernel->program, launch);
            continue;
        }
        strbuf_puts(out, "    if (status == cudaSuccess) {\n");
        write_launch(out, "        ", "status = ", kernel->program, launch);
        strbuf_puts(out, "    }\n");
    }
    strbuf_puts(out, "    return (int)status;\n");
}

/* For launches that it makes itself. */
static bool uses_prelude(const Kernel *kernel)
{
    for (int k = 0; k < kernel->launch_count; k++)
        if (needs_prelude(&kernel->launches[k]) && !launcher_is_shared(kernel, kernel->launches[k].kernel))
            return true;
    return false;
}

/* In the words of HIP: `hipSuccess`; two functions take kernels of any type and are the prelude's. */
static const char *in_hip(Arena *arena, const char *text)
{
    StrBuf out = strbuf_new(arena);
    Slice rest = slice_of(text), token;
    const char *written = text;
    while (token_read(&rest, &token)) {
        if (!slice_starts(token, "cuda"))
            continue;
        bool launches = slice_equals(token, "cudaLaunchKernel"),
             allows = slice_equals(token, "cudaFuncSetAttribute");
        strbuf_write(&out, written, (size_t)(token.start - written));
        strbuf_puts(&out, launches ? "launch_kernel" : allows ? "set_attribute" : "hip");
        written = launches || allows ? token.end : token.start + strlen("cuda");
    }
    strbuf_puts(&out, written);
    return out.text;
}

/* What stands before the launcher and has no names of the user's. */
static const char *launcher_head(Arena *arena, const Kernel *kernel, bool hip)
{
    StrBuf out = strbuf_new(arena);
    strbuf_printf(&out,
                  "#ifndef __CUDACC_RTC__\nextern \"C\" size_t %s_workspace(void) { return %" PRId64 "; }\n",
                  kernel->name, kernel->workspace_bytes);
    write_allowances(&out, kernel, hip);
    return hip ? in_hip(arena, out.text) : out.text;
}

static const char *launch_functions(Arena *arena, const Kernel *kernel, bool hip)
{
    StrBuf out = strbuf_new(arena);
    for (int k = 0; k < kernel->kernel_count; k++)
        if (launcher_is_shared(kernel, k))
            write_function(&out, kernel, &kernel->launches[kernel->leaders[k]], hip);
    return hip ? in_hip(arena, out.text) : out.text;
}

/* The launcher with numbers for names. */
static const char *numbered_launcher(Arena *arena, const Kernel *kernel, bool hip)
{
    StrBuf out = strbuf_new(arena);
    const Program *program = kernel->program;
    for (int i = 0; i < argument_count(program); i++) {
        strbuf_puts(&out, i ? ", " : "\n// ");
        write_tensor(&out, argument_tensor(program, i));
    }
    strbuf_puts(&out, "\nextern \"C\" ");
    write_signature(&out, kernel, true);
    strbuf_puts(&out, "\n{\n");
    launcher_write_checks(&out, kernel);
    if (hip || uses_prelude(kernel))
        write_using(&out, kernel);
    write_launches(&out, kernel);
    strbuf_puts(&out, "}\n");
    if (kernel->has_graph)
        launcher_write_graph(&out, kernel);
    strbuf_puts(&out, "#endif\n");
    return hip ? in_hip(arena, out.text) : out.text;
}

const char *launcher_text(Arena *arena, Kernel *kernel, bool hip, Names *names)
{
    const Program *program = kernel->program;
    const char *head = launcher_head(arena, kernel, hip), *functions = launch_functions(arena, kernel, hip);
    const char *text = numbered_launcher(arena, kernel, hip);
    names_avoid(names, head);
    names_avoid(names, text);
    kernel->arguments = NEW_ARRAY(arena, const char *, argument_count(program));
    for (int i = 0; i < argument_count(program); i++) {
        const char *number = launcher_argument(arena, program, i);
        names_give(names, number, tensor_shown(argument_tensor(program, i))->name);
        kernel->arguments[i] = names_find(names, number);
    }
    return arena_printf(arena, "%s%s%s", head, functions, names_put(names, text));
}

// ---- the header ----

/* `((size_t)1 * 64 * 1024 * 2)`; bits lie in words of 32. */
static void write_bytes(StrBuf *out, const Tensor *tensor)
{
    bool bits = tensor->dtype == DTYPE_B1;
    strbuf_puts(out, bits ? "(((size_t)1" : "((size_t)1");
    for (int d = 0; d < tensor->rank; d++)
        strbuf_printf(out, " * %" PRId64, tensor->shape[d]);
    if (bits)
        strbuf_puts(out, " + 31) / 32 * 4)");
    else
        strbuf_printf(out, " * %d)", dtype_info[tensor->dtype].bits / 8);
}

static void write_sizes(StrBuf *out, const Kernel *kernel)
{
    strbuf_puts(out, "/* Bytes of the tensors, which are dense and row-major. */\n");
    for (int i = 0; i < argument_count(kernel->program); i++) {
        const Tensor *tensor = argument_tensor(kernel->program, i);
        strbuf_printf(out, "#define %s_%s_bytes ", kernel->name, kernel->arguments[i]);
        write_bytes(out, tensor);
        strbuf_puts(out, "   /* ");
        write_tensor(out, tensor);
        strbuf_puts(out, " */\n");
    }
    for (int i = 0; i < argument_count(kernel->program); i++) {
        const Tensor *tensor = argument_tensor(kernel->program, i);
        strbuf_printf(out, "static_assert(%s_%s_bytes == %" PRId64 "u, \"", kernel->name,
                      kernel->arguments[i], tensor_bytes(tensor));
        write_tensor(out, tensor);
        strbuf_puts(out, "\");\n");
    }
}

char *codegen_header(Arena *arena, const Kernel *kernel)
{
    StrBuf out = strbuf_new(arena);
    strbuf_printf(&out,
                  "// Launcher of %s, for C11 and C++11; see %s.cu.\n#pragma once\n#include "
                  "<assert.h>\n#include <stddef.h>\n\n"
                  "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
                  kernel->name, kernel->name);
    write_sizes(&out, kernel);
    strbuf_printf(
        &out,
        "\n/* Bytes of workspace, aligned to 256: %" PRId64 ", of which up to %" PRId64 " hold something at once. 0: none is needed. */\n"
        "size_t %s_workspace(void);\n\n"
        "/* Returns a cudaError_t. Pointers are device memory aligned to 16 bytes; `stream` is a "
        "cudaStream_t. */\n",
        kernel->workspace_bytes, kernel->alive_bytes, kernel->name);
    write_signature(&out, kernel, false);
    strbuf_puts(&out, ";\n");
    if (kernel->has_graph) {
        strbuf_puts(&out, "\n/* The same launches as a cudaGraph_t with fixed pointers, which the caller destroys. */\n");
        launcher_write_graph_signature(&out, kernel, false);
        strbuf_puts(&out, ";\n");
    }
    strbuf_puts(&out, "\n#ifdef __cplusplus\n}\n#endif\n");
    return out.text;
}
