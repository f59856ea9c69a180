#include <string.h>

#include "base/path.h"
#include "base/strbuf.h"
#include "option_parts.h"

int option_choose(Arena *arena, const char *option, const char *word, const char *const *choices, int count)
{
    StrBuf list = strbuf_new(arena);
    for (int i = 0; i < count; i++) {
        if (strcmp(word, choices[i]) == 0)
            return i;
        strbuf_printf(&list, "%s%s", i ? ", " : "", choices[i]);
    }
    usage_error("unknown word '%s' for %s; it is one of %s", word, option, list.text);
}

const char *option_colour(Arena *arena, const char *word)
{
    static const char *const colours[] = {"auto", "always", "never"};
    return colours[option_choose(arena, "--color", word, colours, 3)];
}

void option_add_binding(CommandLine *line, const char *text)
{
    Options *options = line->options;
    const char *equals = strrchr(text, '=');   // a symbol's name may have one
    if (!equals || equals == text)
        usage_error("--bind wants NAME=VALUE, not '%s'", text);
    if (options->binding_count == MAX_BINDINGS)
        usage_error("more than %d bindings", MAX_BINDINGS);
    const char *name = arena_strndup(line->arena, text, (size_t)(equals - text));
    options->bindings[options->binding_count++] = (OnnxBinding){name, equals + 1};
}

DType option_precision(CommandLine *line, const char *option, const char *word)
{
    static const char *const names[] = {"f32", "f16", "bf16"};
    static const DType types[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16};
    line->options->arranges_model = true;
    return types[option_choose(line->arena, option, word, names, 3)];
}

OnnxLayout option_layout(CommandLine *line, const char *word)
{
    static const char *const names[ONNX_LAYOUTS] = {"auto", "nchw", "nhwc"};
    line->options->arranges_model = true;
    return (OnnxLayout)option_choose(line->arena, "--layout", word, names, ONNX_LAYOUTS);
}

char *option_stem(Arena *arena, const char *path)
{
    return strcmp(path, "-") == 0 ? arena_strdup(arena, "kernel") : path_stem(arena, path);
}
