// Tensors of the format to constants.
#pragma once
#include "front/onnx/graph.h"

/* The element type of a TensorProto.DataType; NULL, or what it is that cannot be taken: "type uint16". */
const char *tensor_type(int data_type, DType *type);

/* The elements, row-major, a bool a byte; they lie in the tensor itself where they can. `problem`: NULL, or
   why there are none. `model`: the file, below whose folder external data lies. */
const void *tensor_read(Arena *arena, const char *model, const Onnx__TensorProto *tensor, DType *type,
                        Dims *shape, const char **problem);
