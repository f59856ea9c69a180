#include "front/onnx/order.h"

#include <string.h>

bool order_is_moved(const StorageOrder *order) { return order->rank > 0; }

bool order_equal(const StorageOrder *a, const StorageOrder *b)
{
    return a->rank == b->rank && memcmp(a->at, b->at, (size_t)a->rank * sizeof *a->at) == 0;
}

StorageOrder order_channels_last(int rank)
{
    StorageOrder order = {rank, {0}};
    for (int p = 1; p < rank; p++)
        order.at[p] = p + 1 < rank ? p + 1 : 1;
    return order;
}

bool order_lies_as_is(const StorageOrder *order, const Dims *shape)
{
    int last = -1;
    for (int p = 0; p < order->rank; p++) {
        if (shape->size[order->at[p]] == 1)
            continue;
        if (order->at[p] < last)
            return false;
        last = order->at[p];
    }
    return true;
}

Dims order_shape(const Dims *shape, const StorageOrder *order)
{
    Dims result = *shape;
    for (int p = 0; p < order->rank; p++)
        result.size[p] = shape->size[order->at[p]];
    return result;
}

const char *order_text(Arena *arena, const char *letters, const StorageOrder *order)
{
    char *result = arena_strdup(arena, letters);
    for (int p = 0; p < order->rank; p++)
        result[p] = letters[order->at[p]];
    return result;
}

bool order_alike(const StorageOrder *a, const StorageOrder *b, const Dims *shape)
{
    Dims stored = order_shape(shape, a);
    StorageOrder between = {a->rank, {0}};
    for (int p = 0; p < b->rank; p++)
        for (int q = 0; q < a->rank; q++)
            if (a->at[q] == b->at[p])
                between.at[p] = q;
    return order_lies_as_is(&between, &stored);
}
