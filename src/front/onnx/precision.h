// A model of f32 in a narrower type: which values are rounded.
#pragma once
#include "front/onnx/draft.h"
#include "front/onnx/onnx.h"

/* What is f32 becomes f16 or bf16, but for - what must be fine: results of reductions, of functions and of
   integers, and what is computed of them point by point, until a product or a convolution reads it; moves and
   views are as what they move, - weights that are vectors, what is made of weights alone and is a vector, and
   weights that hold a number beyond the type, - inputs and outputs, which are of the type `io`. It works on
   the text of the draft, and so for every operator. */
void precision_lower(Draft *draft, DType narrow, DType io);
