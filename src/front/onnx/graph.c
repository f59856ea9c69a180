#include "front/onnx/graph.h"

#include <string.h>

#include "base/checked.h"
#include "base/strbuf.h"
#include "ir/eval.h"

GraphValue *graph_scope_find(const GraphScope *scope, const char *name)
{
    for (; scope; scope = scope->around) {
        GraphValue *value = name_table_find(&scope->values, name);
        if (value)
            return value;
    }
    return NULL;
}

int64_t shape_count(const Dims *shape)
{
    int64_t count = 1;
    for (int d = 0; d < shape->rank; d++)
        if (shape->size[d] < 0 || !checked_mul(count, shape->size[d], &count) || count > (int64_t)1 << 40)
            return -1;
    return count;
}

bool shape_equal(const Dims *a, const Dims *b)
{
    bool equal = a->rank == b->rank;
    for (int d = 0; d < a->rank && equal; d++)
        equal = a->size[d] == b->size[d];
    return equal;
}

Dims shape_of(int rank, const int64_t *sizes)
{
    Dims shape = {.rank = rank};
    for (int d = 0; d < rank; d++)
        shape.size[d] = sizes[d];
    return shape;
}

const char *shape_text(Arena *arena, const Dims *shape)
{
    StrBuf out = strbuf_new(arena);
    strbuf_putc(&out, '[');
    for (int d = 0; d < shape->rank; d++)
        strbuf_printf(&out, "%s%lld", d ? ", " : "", (long long)shape->size[d]);
    strbuf_putc(&out, ']');
    return out.text;
}

// ---- constants ----

/* Larger ones are weights, even where all elements are alike: those of a model that was not trained. */
enum { MOST_INLINE = 1024 };

int constant_bytes(DType type) { return type == DTYPE_B1 ? 1 : dtype_info[type].bits / 8; }

int64_t constant_int(const GraphValue *value, int64_t index)
{
    int64_t whole;
    if (value->uniform)
        index = 0;
    if (value->type != DTYPE_I64)
        return (int64_t)constant_real(value, index);
    memcpy(&whole, (const char *)value->data + index * 8, sizeof whole);
    return whole;
}

double constant_real(const GraphValue *value, int64_t index)
{
    DType stored = value->type == DTYPE_B1 ? DTYPE_U8 : value->type;
    return dtype_load(stored, value->data, value->uniform ? 0 : index);
}

bool constant_is_one_value(const GraphValue *value)
{
    size_t size = (size_t)constant_bytes(value->type), bytes = size * (size_t)shape_count(&value->shape);
    return value->uniform ||
           (bytes > 0 && memcmp(value->data, (const char *)value->data + size, bytes - size) == 0);
}

void constant_set(GraphValue *value, DType type, Dims shape, const void *data)
{
    value->type = type;
    value->shape = shape;
    value->data = data;
    value->uniform = false;
    value->uniform = shape_count(&shape) <= MOST_INLINE && constant_is_one_value(value);
    value->state = VALUE_KNOWN;
}
