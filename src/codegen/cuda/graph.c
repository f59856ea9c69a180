// NAME_graph: the launches as nodes of a CUDA graph, with an edge from each to those that come after it.
#include <inttypes.h>

#include "codegen/cuda/launcher_parts.h"
#include "hal/runtime.h"

/* Those of a call, which what is prepared comes before. */
static const Launch *calls(const Kernel *kernel) { return kernel->launches + kernel->prepare_count; }
static int call_count(const Kernel *kernel) { return kernel->launch_count - kernel->prepare_count; }

/* How many come after it, as far as two. */
static int successor_count(const Kernel *kernel, int launch)
{
    int count = 0;
    for (int k = launch + 1; k < call_count(kernel) && count < 2; k++)
        for (int i = 0; i < calls(kernel)[k].after_count; i++)
            count += calls(kernel)[k].after[i] == launch;
    return count;
}

/* A launch that waits for one other waits for all that it needs: that one has waited for what is before it. Behind several launches, or
   beside others, it comes when they have ended. */
static bool begins_early(const Kernel *kernel, const Launch *launch)
{
    return launch->early && launch->after_count == 1 && !calls(kernel)[launch->after[0]].cooperative &&
           successor_count(kernel, launch->after[0]) == 1;
}

/* `2, after<0, 1>()` */
static void write_place(StrBuf *out, const Launch *launch, int number)
{
    strbuf_printf(out, "%d, after<", number);
    for (int i = 0; i < launch->after_count; i++)
        strbuf_printf(out, "%s%d", i ? ", " : "", launch->after[i]);
    strbuf_puts(out, ">()");
}

/* `place` is its number and what it comes after, `early` whether it begins early: in a function, parameters. `program` NULL: there. */
static void write_node(StrBuf *out, const char *indent, const Program *program, const Launch *launch, const char *place, const char *early)
{
    launcher_write_arguments(out, indent, program, launch);
    launcher_write_maps(out, indent, program, launch);
    const char *deeper = launch->map_count ? "    " : "";
    if (launch->map_count)
        strbuf_printf(out, "%sif (status == cudaSuccess)\n", indent);
    strbuf_printf(out, "%s%sstatus = add_node(made, nodes, %s, %s_scope::%s, args,\n%s%s                  ", deeper, indent, place,
                  launch->entry, launch->entry, deeper, indent);
    launcher_write_shape(out, launch);
    strbuf_printf(out, ", dim3(%d, %d, %d), %" PRId64 ", %s, %s);\n", launch->cluster[0], launch->cluster[1], launch->cluster[2],
                  launch->shared_bytes, launch->cooperative ? "true" : "false", early);
}

/* `static cudaError_t net_k2_node(cudaGraph_t made, cudaGraphNode_t *nodes, int number, const int *before, const void *a0, …, bool early)` */
static void write_function(StrBuf *out, const Kernel *kernel, const Launch *launch)
{
    strbuf_printf(out, "\nstatic cudaError_t %s_node(cudaGraph_t made, cudaGraphNode_t *nodes, int number, const int *before",
                  launch->entry);
    for (int i = 0; i < launch->arg_count; i++)
        strbuf_printf(out, ", %svoid *a%d", launch->args[i].written ? "" : "const ", i);
    strbuf_printf(out, ", bool early)\n{\n    using namespace %s" PRELUDE_SUFFIX ";\n    cudaError_t status;\n", kernel->name);
    write_node(out, "    ", NULL, launch, "number, before", "early");
    strbuf_puts(out, "    return status;\n}\n");
}

static void write_call(StrBuf *out, const Program *program, const Launch *launch, const char *place, const char *early)
{
    strbuf_printf(out, "    if (status == cudaSuccess)\n        status = %s_node(made, nodes, %s, ", launch->entry, place);
    launcher_write_values(out, program, launch);
    strbuf_printf(out, "%s);\n", early);
}

static void write_launch(StrBuf *out, const Kernel *kernel, int number)
{
    const Launch *launch = &calls(kernel)[number];
    const char *early = begins_early(kernel, launch) ? "true" : "false";
    StrBuf place = strbuf_new(out->arena);
    write_place(&place, launch, number);
    if (launcher_is_shared(kernel, launch->kernel)) {
        write_call(out, kernel->program, launch, place.text, early);
        return;
    }
    strbuf_puts(out, "    if (status == cudaSuccess) {\n");
    write_node(out, "        ", kernel->program, launch, place.text, early);
    strbuf_puts(out, "    }\n");
}

void launcher_graph(StrBuf *out, const Kernel *kernel)
{
    for (int k = 0; k < kernel->kernel_count; k++)
        if (launcher_is_shared(kernel, k))
            write_function(out, kernel, &kernel->launches[kernel->leaders[k]]);
    strbuf_puts(out, "\n// The same launches as a cudaGraph_t, each behind those that it needs; the caller destroys it.\nextern \"C\" ");
    launcher_graph_signature(out, kernel, true);
    strbuf_puts(out, "\n{\n");
    launcher_check(out, kernel->program, kernel);
    strbuf_printf(out,
                  "    using namespace %s" PRELUDE_SUFFIX ";\n"
                  "    cudaGraph_t made = nullptr;\n"
                  "    cudaGraphNode_t nodes[%d];\n",
                  kernel->name, call_count(kernel));
    launcher_status(out, kernel);
    strbuf_puts(out, "    if (status == cudaSuccess)\n        status = cudaGraphCreate(&made, 0);\n");
    for (int k = 0; k < call_count(kernel); k++)
        write_launch(out, kernel, k);
    strbuf_puts(out, "    if (status == cudaSuccess)\n"
                     "        *graph = made;\n"
                     "    else if (made)\n"
                     "        cudaGraphDestroy(made);\n"
                     "    return (int)status;\n}\n");
}
