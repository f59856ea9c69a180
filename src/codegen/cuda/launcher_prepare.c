// NAME_weights, NAME_prepared and NAME_prepare of a program with weights.
#include <inttypes.h>

#include "codegen/cuda/launcher_parts.h"
#include "ir/prepared.h"

void launcher_prepare_signature(StrBuf *out, const Kernel *kernel)
{
    strbuf_printf(out, "int %s_prepare(const void *weights, void *prepared, void *workspace, void *stream)", kernel->name);
}

static void write_copies(StrBuf *out, const Kernel *kernel)
{
    for (int i = 0; i < kernel->copy_count; i++) {
        const LaunchCopy *copy = &kernel->copies[i];
        strbuf_printf(out,
                      "    if (to.status == cudaSuccess)\n"
                      "        to.status = cudaMemcpyAsync((char *)prepared + %" PRId64 ", (const char *)weights + %" PRId64
                      ", %" PRId64 ", cudaMemcpyDefault, to.stream);\n",
                      copy->to, copy->from, copy->bytes);
    }
}

/* One line a weight: where it lies in the file. */
static void write_weights(StrBuf *out, const Kernel *kernel)
{
    const Program *program = kernel->program;
    strbuf_puts(out, "\n// The weights, at their offsets in the file. NAME_prepare converts them before any launch.\n");
    for (int i = 0; i < program->input_count; i++)
        if (launcher_is_weight(program, i)) {
            strbuf_printf(out, "//   %10" PRId64 "  ", weight_offset(program, i));
            launcher_tensor(out, program->inputs[i]);
            strbuf_puts(out, "\n");
        }
}

void launcher_sizes_of_weights(StrBuf *out, const Kernel *kernel)
{
    strbuf_printf(out,
                  "#define %s_PREPARED_ID 0x%sull\n"
                  "extern \"C\" size_t %s_weights(void) { return %" PRId64 "; }\n"
                  "extern \"C\" size_t %s_prepared(void) { return %" PRId64 "; }\n",
                  kernel->name, kernel->prepared_id, kernel->name, kernel->weight_bytes, kernel->name, kernel->prepared_bytes);
}

void launcher_prepare(StrBuf *out, const Kernel *kernel)
{
    launcher_list(out, kernel, launcher_preparations(kernel));
    bool uses = launcher_uses(kernel, launcher_preparations(kernel), buffer_beside(kernel->program, BUFFER_WORKSPACE));
    int64_t workspace = uses ? kernel->workspace_bytes : 0;
    write_weights(out, kernel);
    strbuf_puts(out, "extern \"C\" ");
    launcher_prepare_signature(out, kernel);
    strbuf_puts(out, "\n{\n    if ((size_t)weights % 256 != 0");
    launcher_check_place(out, "prepared", kernel->prepared_bytes);
    launcher_check_place(out, "workspace", workspace);
    strbuf_puts(out, ")\n        return (int)cudaErrorInvalidValue;\n");
    launcher_unused(out, "prepared", kernel->prepared_bytes);
    launcher_unused(out, "workspace", workspace);
    launcher_begin_list(out, kernel, "(cudaStream_t)stream");
    write_copies(out, kernel);
    launcher_make_list(out, kernel, launcher_preparations(kernel));
    strbuf_puts(out, "    return (int)to.status;\n}\n");
}
