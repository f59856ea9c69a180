// Names of a model's values, made legal and readable in a program.
#pragma once
#include "front/onnx/name_table.h"

/* A name that nothing of the program has yet, like that of the value `name`, which a node of type `op` makes
   (NULL: none does): `/layer1/conv1/Conv_output_0` of a Conv is `layer1_conv1`. The same names in the same
   order give the same result. */
const char *names_take(NameTable *taken, const char *name, const char *op);
