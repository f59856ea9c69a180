// NAME_graph: the launches as nodes of a CUDA graph, with an edge from each to those that come after it.
#include "codegen/cuda/launcher_parts.h"

void launcher_graph(StrBuf *out, const Kernel *kernel)
{
    strbuf_puts(out, "\n// The launches as a cudaGraph_t, with an edge from each predecessor; the caller destroys it.\n"
                     "extern \"C\" ");
    launcher_graph_signature(out, kernel, true);
    strbuf_puts(out, "\n{\n");
    launcher_check(out, kernel->program, kernel);
    strbuf_printf(out, "    cudaGraphNode_t nodes[%d];\n", kernel->launch_count - kernel->prepare_count);
    launcher_begin_list(out, kernel, "nullptr");
    strbuf_puts(out, "    to.nodes = nodes;\n"
                     "    if (to.status == cudaSuccess)\n        to.status = cudaGraphCreate(&to.graph, 0);\n");
    launcher_make_list(out, kernel, launcher_calls(kernel));
    strbuf_puts(out, "    if (to.status == cudaSuccess)\n"
                     "        *graph = to.graph;\n"
                     "    else if (to.graph)\n"
                     "        cudaGraphDestroy(to.graph);\n"
                     "    return (int)to.status;\n}\n");
}
