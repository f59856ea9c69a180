// Orders of dimensions.
#pragma once
#include "front/onnx/access.h"

bool order_is_moved(const StorageOrder *order);
bool order_equal(const StorageOrder *a, const StorageOrder *b);
/* Channels are dimension 1 of the graph. */
StorageOrder order_channels_last(int rank);
/* The order of dimensions larger than one is that of the graph: the elements lie as they would there. */
bool order_lies_as_is(const StorageOrder *order, const Dims *shape);
/* Equal but for dimensions of size 1. */
bool order_alike(const StorageOrder *a, const StorageOrder *b, const Dims *shape);

/* The graph's shape, and letters of its dimensions, in that order. */
Dims order_shape(const Dims *shape, const StorageOrder *order);
const char *order_text(Arena *arena, const char *letters, const StorageOrder *order);
