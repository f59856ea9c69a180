#include "front/onnx/weights.h"

#include <string.h>

#include "base/checked.h"
#include "ir/eval.h"
#include "ir/prepared.h"

static size_t size_of(const DraftWeight *weight)
{
    DType type = weight->value->type == DTYPE_B1 ? DTYPE_B1 : weight->type;
    return (size_t)constant_bytes(type) * (size_t)shape_count(&weight->value->shape);
}

static void store_one(const DraftWeight *weight, char *bytes, int64_t to, int64_t from)
{
    const char *data = weight->value->data;
    size_t size = (size_t)constant_bytes(weight->type);
    if (weight->value->type == weight->type)
        memcpy(bytes + (size_t)to * size, data + (size_t)from * size, size);
    else if (weight->value->type == DTYPE_F32 && weight->type != DTYPE_B1)
        dtype_store_singles(weight->type, bytes + (size_t)to * size, data + (size_t)from * sizeof(float), 1);
    else
        dtype_store(weight->type, bytes, to, dtype_load(weight->value->type, data, from));
}

/* Elements one by one: in another order, of another type or both. */
static void store_each(const DraftWeight *weight, char *bytes)
{
    const Dims *shape = &weight->value->shape;
    int64_t stride[MAX_RANK], step[MAX_RANK], index[MAX_RANK] = {0}, from = 0;
    int rank = shape->rank;
    for (int d = rank; d-- > 0;)
        stride[d] = d + 1 == rank ? 1 : stride[d + 1] * shape->size[d + 1];
    for (int p = 0; p < rank; p++)
        step[p] = stride[weight->order.rank ? weight->order.at[p] : p];
    for (int64_t to = 0, count = shape_count(shape); to < count; to++) {
        store_one(weight, bytes, to, from);
        for (int p = rank; p-- > 0;) {
            from += step[p];
            if (++index[p] < shape->size[weight->order.rank ? weight->order.at[p] : p])
                break;
            from -= step[p] * index[p];
            index[p] = 0;
        }
    }
}

static const char *stored(Arena *arena, const DraftWeight *weight)
{
    bool same = weight->value->type == DTYPE_B1 || weight->value->type == weight->type;
    if (same && !weight->order.rank)
        return weight->value->data;
    char *bytes = arena_room(arena, size_of(weight));
    if (weight->value->type == DTYPE_F32 && weight->type != DTYPE_B1 && !weight->order.rank)
        dtype_store_singles(weight->type, bytes, weight->value->data, shape_count(&weight->value->shape));
    else
        store_each(weight, bytes);
    return bytes;
}

static size_t align(size_t at) { return (size_t)round_up((int64_t)at, WEIGHT_ALIGNMENT); }

size_t weights_length(const DraftText *text)
{
    size_t at = 0;
    for (int i = 0; i < text->weight_count; i++)
        at = align(at) + size_of(&text->weights[i]);
    return at;
}

FileParts weights_parts(Arena *arena, const DraftText *text)
{
    static const char zeros[WEIGHT_ALIGNMENT];
    FilePart *parts = NEW_ARRAY(arena, FilePart, 2 * text->weight_count);
    size_t at = 0;
    for (int i = 0; i < text->weight_count; i++) {
        const DraftWeight *weight = &text->weights[i];
        parts[2 * i] = (FilePart){zeros, align(at) - at};
        parts[2 * i + 1] = (FilePart){stored(arena, weight), size_of(weight)};
        at = align(at) + size_of(weight);
    }
    return (FileParts){parts, 2 * text->weight_count};
}
