// A model in the ONNX format to the text of a program, as a person would write it, and its weights.
#pragma once
#include <stddef.h>

#include "base/arena.h"

/* `--bind NAME=TEXT`: the size of a symbolic dimension, or the values of a small input of the graph. */
typedef struct OnnxBinding {
    const char *name, *text;
} OnnxBinding;

typedef struct OnnxProgram {
    const char *text;
    size_t length;
    const char
        *weights;   // the file of weights: each at the next multiple of 256, in the order of their statements
    size_t weight_bytes;   // 0: there are none
} OnnxProgram;

/* All nodes that cannot be taken are named, up to twenty: EXIT_INPUT; so is a symbol without a binding. */
OnnxProgram onnx_import(Arena *arena, const char *path, const OnnxBinding *bindings, int binding_count);

/* The same of a file's bytes; `path` is where its external data is looked for. */
OnnxProgram onnx_import_bytes(Arena *arena, const char *path, const void *bytes, size_t length,
                              const OnnxBinding *bindings, int binding_count);
