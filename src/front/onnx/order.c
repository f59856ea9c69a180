#include "front/onnx/order.h"

#include <string.h>

bool order_is_moved(const DimOrder *order) { return order->rank > 0; }

bool order_equal(const DimOrder *a, const DimOrder *b)
{
    return a->rank == b->rank && memcmp(a->at, b->at, (size_t)a->rank * sizeof *a->at) == 0;
}

DimOrder order_channels_last(int rank)
{
    DimOrder order = {rank, {0}};
    for (int p = 1; p < rank; p++)
        order.at[p] = p + 1 < rank ? p + 1 : 1;
    return order;
}

bool order_lies_as_is(const DimOrder *order, const Dims *shape)
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

Dims order_shape(const Dims *shape, const DimOrder *order)
{
    Dims result = *shape;
    for (int p = 0; p < order->rank; p++)
        result.size[p] = shape->size[order->at[p]];
    return result;
}

const char *order_text(Arena *arena, const char *letters, const DimOrder *order)
{
    char *result = arena_strdup(arena, letters);
    for (int p = 0; p < order->rank; p++)
        result[p] = letters[order->at[p]];
    return result;
}

bool order_alike(const DimOrder *a, const DimOrder *b, const Dims *shape)
{
    Dims stored = order_shape(shape, a);
    DimOrder between = {a->rank, {0}};
    for (int p = 0; p < b->rank; p++)
        for (int q = 0; q < a->rank; q++)
            if (a->at[q] == b->at[p])
                between.at[p] = q;
    return order_lies_as_is(&between, &stored);
}
