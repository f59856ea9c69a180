// The text of the whole launcher.
#include "codegen/cuda/launcher.h"

#include <inttypes.h>
#include <string.h>

#include "codegen/cuda/launcher_parts.h"
#include "hal/runtime.h"

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
static const char *launcher_head(Arena *arena, const Kernel *kernel)
{
    StrBuf out = strbuf_new(arena);
    strbuf_printf(&out,
                  "#ifndef __CUDACC_RTC__\nextern \"C\" size_t %s_workspace(void) { return %" PRId64 "; }\n",
                  kernel->name, kernel->workspace_bytes);
    if (kernel->prepared_id)
        launcher_sizes_of_weights(&out, kernel);
    return out.text;
}

static const char *launch_functions(Arena *arena, const Kernel *kernel, bool hip)
{
    StrBuf out = strbuf_new(arena);
    launcher_functions(&out, kernel);
    return hip ? in_hip(arena, out.text) : out.text;
}

/* `// x[64, 1024] : f16, prepared, y[64, 1024] : f16` */
static void write_tensors(StrBuf *out, const Kernel *kernel)
{
    const Program *program = kernel->program;
    int written = 0;
    for (int i = 0; i < argument_count(program); i++) {
        const char *separator = written ? ", " : launcher_is_list(kernel) ? "\n// " : "// ";
        if (i == program->input_count && kernel->prepared_id) {
            strbuf_printf(out, "%sprepared", separator);
            separator = ", ";
        }
        if (launcher_is_weight(program, i))
            continue;
        written++;
        strbuf_puts(out, separator);
        launcher_tensor(out, argument_tensor(program, i));
    }
}

/* What NAME_launch does. */
static void write_launches(StrBuf *out, const Kernel *kernel, bool hip)
{
    if (launcher_is_list(kernel)) {
        launcher_begin_list(out, kernel, "(cudaStream_t)stream");
        launcher_make_list(out, kernel, launcher_calls(kernel));
        strbuf_puts(out, "    return (int)to.status;\n");
        return;
    }
    if (hip || launcher_alone_uses_prelude(kernel))
        launcher_using(out, kernel);
    launcher_alone(out, kernel);
}

/* The launcher with numbers for names. */
static const char *numbered_launcher(Arena *arena, const Kernel *kernel, bool hip)
{
    StrBuf out = strbuf_new(arena);
    const Program *program = kernel->program;
    if (kernel->prepared_id)
        launcher_prepare(&out, kernel);
    if (launcher_is_list(kernel))
        launcher_list(&out, kernel, launcher_calls(kernel));
    write_tensors(&out, kernel);
    strbuf_puts(&out, "\nextern \"C\" ");
    launcher_signature(&out, kernel, true);
    strbuf_puts(&out, "\n{\n");
    launcher_check(&out, program, kernel);
    write_launches(&out, kernel, hip);
    strbuf_puts(&out, "}\n");
    if (kernel->has_graph)
        launcher_graph(&out, kernel);
    strbuf_puts(&out, "#endif\n");
    return hip ? in_hip(arena, out.text) : out.text;
}

const char *launcher_text(Arena *arena, Kernel *kernel, bool hip, Names *names)
{
    const Program *program = kernel->program;
    const char *head = launcher_head(arena, kernel), *functions = launch_functions(arena, kernel, hip);
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
