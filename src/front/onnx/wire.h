// The bytes of a model to messages: hostile input is refused before it is unpacked.
#pragma once
#include <onnx.pb-c.h>

#include "base/arena.h"

/* No model, or a part of the format that is not known: an error with EXIT_INPUT. Nothing refers to the bytes
   any more; `name` is for messages. */
const Onnx__ModelProto *wire_unpack(Arena *arena, const char *name, const void *bytes, size_t length);
