// In which order the dimensions of tensors lie in memory: only inputs and outputs of the model have a fixed
// one.
#pragma once
#include "front/onnx/draft.h"
#include "front/onnx/onnx.h"

/* Feature maps channels-last, permuted at the model's borders, and their filters transposed. A feature map is
   what a window slides over or makes, and what is made of one with the same dimensions. `narrowed`: f32 will
   have 16 bits. It works on the text of the draft, and so for every operator. */
void layout_arrange(Draft *draft, OnnxLayout layout, bool narrowed);
