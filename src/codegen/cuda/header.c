// The C header of an emitted file.
#include <inttypes.h>

#include "codegen/cuda/launcher.h"
#include "codegen/cuda/launcher_parts.h"
#include "ir/prepared.h"

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

/* Where weights lie in their file. */
static void write_offsets(StrBuf *out, const Kernel *kernel)
{
    for (int i = 0; i < kernel->program->input_count; i++)
        if (launcher_is_weight(kernel->program, i))
            strbuf_printf(out, "#define %s_%s_offset ((size_t)%" PRId64 ")   /* in the weights */\n", kernel->name,
                          kernel->arguments[i], weight_offset(kernel->program, i));
}

static void write_prepare(StrBuf *out, const Kernel *kernel)
{
    strbuf_printf(out,
                  "\n/* The layout of what is prepared: programs with equal ones may share it. */\n"
                  "#define %s_PREPARED_ID 0x%sull\n\n"
                  "/* Bytes of the weights, each at its offset, and of what is prepared; 0: none. Both are aligned to 256. */\n"
                  "size_t %s_weights(void);\nsize_t %s_prepared(void);\n\n"
                  "/* Makes of the weights what launches read, once. `weights` is any memory that the device reads, and of no use "
                  "afterwards;\n   `prepared` is device memory that stays as it is while launches read it. Launches come behind it, "
                  "by stream or event. */\n",
                  kernel->name, kernel->prepared_id, kernel->name, kernel->name);
    launcher_prepare_signature(out, kernel);
    strbuf_puts(out, ";\n");
}

static void write_sizes(StrBuf *out, const Kernel *kernel)
{
    strbuf_puts(out, "/* Bytes of the tensors, which are dense and row-major. */\n");
    for (int i = 0; i < argument_count(kernel->program); i++) {
        const Tensor *tensor = argument_tensor(kernel->program, i);
        strbuf_printf(out, "#define %s_%s_bytes ", kernel->name, kernel->arguments[i]);
        write_bytes(out, tensor);
        strbuf_puts(out, "   /* ");
        launcher_tensor(out, tensor);
        strbuf_puts(out, " */\n");
    }
    write_offsets(out, kernel);
    for (int i = 0; i < argument_count(kernel->program); i++) {
        const Tensor *tensor = argument_tensor(kernel->program, i);
        strbuf_printf(out, "static_assert(%s_%s_bytes == %" PRId64 "u, \"", kernel->name,
                      kernel->arguments[i], tensor_bytes(tensor));
        launcher_tensor(out, tensor);
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
    if (kernel->prepared_id)
        write_prepare(&out, kernel);
    strbuf_printf(
        &out,
        "\n/* Bytes of workspace, aligned to 256: %" PRId64 ", of which up to %" PRId64 " hold something at once. 0: none is needed. */\n"
        "size_t %s_workspace(void);\n\n"
        "/* Returns a cudaError_t. Pointers are device memory aligned to 16 bytes; `stream` is a "
        "cudaStream_t. */\n",
        kernel->workspace_bytes, kernel->alive_bytes, kernel->name);
    launcher_signature(&out, kernel, false);
    strbuf_puts(&out, ";\n");
    if (kernel->has_graph) {
        strbuf_puts(&out, "\n/* The same launches as a cudaGraph_t with fixed pointers, which the caller destroys. */\n");
        launcher_graph_signature(&out, kernel, false);
        strbuf_puts(&out, ";\n");
    }
    strbuf_puts(&out, "\n#ifdef __cplusplus\n}\n#endif\n");
    return out.text;
}
