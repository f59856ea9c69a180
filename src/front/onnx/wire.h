// The bytes of a model to messages: what is hostile is refused before it is unpacked.
#pragma once
#include <onnx.pb-c.h>

#include "base/arena.h"

/* A model's file. Unreadable, no model, or a part of the format that is not known: an error with EXIT_INPUT. */
const Onnx__ModelProto *wire_read(Arena *arena, const char *path);

/* The same of bytes in memory; `name` is for messages. */
const Onnx__ModelProto *wire_unpack(Arena *arena, const char *name, const void *bytes, size_t length);

/* A tensor alone, as backend tests keep their inputs and outputs. */
const Onnx__TensorProto *wire_unpack_tensor(Arena *arena, const char *name, const void *bytes, size_t length);
