// Models as input: `rollerc import`, and a model in the place of an expression.
#pragma once
#include "base/output.h"
#include "base/source.h"
#include "front/onnx/mapped.h"
#include "front/onnx/onnx.h"
#include "options.h"

/* The program that is to be compiled: the text of the input file, or of the model in it. */
typedef struct ModelInput {
    Source *source;
    OnnxProgram program;        // of a model
    const char *weights_path;   // where a model's are to be written; NULL: it has none
    bool embeds;                // with a source for the assembler beside them
    Mapped given;               // the weights of an expression, which --weights names
} ModelInput;

/* The weights of a model go to `path`, and beside them, under the kernel's name, what puts them into a
   program; `embeds` NULL: nothing does. */
void import_stage_weights(Arena *arena, OutputSet *outputs, const char *path, const OnnxProgram *program,
                          const char *embeds);

ModelInput import_input(Arena *arena, const Options *options);

/* The weights that --weights names, all in one place; NULL: it names none. */
const char *import_weights(Arena *arena, const Options *options, const ModelInput *input);

/* `rollerc import MODEL.onnx …`; returns the exit code. */
int import_main(int argc, char **argv);
