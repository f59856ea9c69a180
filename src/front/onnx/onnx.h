// A model in the ONNX format to the text of a program, as a person would write it, and its weights.
#pragma once
#include <stddef.h>

#include "base/file_parts.h"
#include "ir/tensor_op.h"

/* `--bind NAME=TEXT`: the size of a symbolic dimension, or the values of a small input of the graph. */
typedef struct OnnxBinding {
    const char *name, *text;
} OnnxBinding;

/* In which order feature maps lie; `auto`: channels-last if they are of 16 bits, else as in the model. */
typedef enum OnnxLayout { ONNX_LAYOUT_AUTO, ONNX_LAYOUT_NCHW, ONNX_LAYOUT_NHWC, ONNX_LAYOUTS } OnnxLayout;

typedef struct OnnxOptions {
    const OnnxBinding *bindings;
    int binding_count;
    DType precision;      // f16 or bf16: what f32 becomes inside; else nothing changes
    DType io_precision;   // f32, f16 or bf16: inputs and outputs of these types; else they stay as they are
    OnnxLayout layout;
} OnnxOptions;

typedef struct OnnxProgram {
    const char *text;
    size_t length;
    size_t weight_bytes;             // of the file of weights; 0: there are none
    const struct DraftText *draft;   // what it is made of
} OnnxProgram;

/* All nodes that cannot be taken are named, up to twenty: EXIT_INPUT; so is a symbol without a binding. */
OnnxProgram onnx_import(Arena *arena, const char *path, const OnnxOptions *options);

/* The same of a file's bytes; `path` is where its external data is looked for. */
OnnxProgram onnx_import_bytes(Arena *arena, const char *path, const void *bytes, size_t length,
                              const OnnxOptions *options);

/* The file of weights: each at the next multiple of 256, in the order of their statements. */
FileParts onnx_weights(Arena *arena, const OnnxProgram *program);
