// Models as input: `rollerc import`, and a model in the place of an expression.
#pragma once
#include "base/source.h"
#include "front/onnx/onnx.h"
#include "options.h"

/* The program that is to be compiled: the text of the input file, or of the model in it. */
typedef struct ModelInput {
    Source *source;
    OnnxProgram program;        // of a model
    const char *weights_path;   // where its weights are to be written; NULL: it has none
} ModelInput;

ModelInput import_input(Arena *arena, const Options *options);

/* `rollerc import MODEL.onnx …`; returns the exit code. */
int import_main(int argc, char **argv);
