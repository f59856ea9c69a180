#include "front/onnx/tensor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "front/onnx/mapped.h"

static const struct { int data_type; const char *name; DType type;
} types[] = {
    {1, "float", DTYPE_F32},
    {2, "uint8", DTYPE_U8},
    {3, "int8", DTYPE_I8},
    {4, "uint16", DTYPE_COUNT},
    {5, "int16", DTYPE_COUNT},
    {6, "int32", DTYPE_I32},
    {7, "int64", DTYPE_I64},
    {8, "string", DTYPE_COUNT},
    {9, "bool", DTYPE_B1},
    {10, "float16", DTYPE_F16},
    {11, "double", DTYPE_F64},
    {12, "uint32", DTYPE_COUNT},
    {13, "uint64", DTYPE_COUNT},
    {14, "complex64", DTYPE_COUNT},
    {15, "complex128", DTYPE_COUNT},
    {16, "bfloat16", DTYPE_BF16},
    {17, "float8e4m3fn", DTYPE_COUNT},
    {18, "float8e4m3fnuz", DTYPE_COUNT},
    {19, "float8e5m2", DTYPE_COUNT},
    {20, "float8e5m2fnuz", DTYPE_COUNT},
    {21, "uint4", DTYPE_COUNT},
    {22, "int4", DTYPE_COUNT},
    {23, "float4e2m1", DTYPE_COUNT},
};

const char *tensor_type(int data_type, DType *type)
{
    *type = DTYPE_COUNT;
    const char *name = "an unknown type";
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].data_type == data_type) {
            *type = types[i].type;
            name = types[i].name;
        }
    return *type == DTYPE_COUNT ? name : NULL;
}

// ---- where the elements are ----

static const char *find_entry(const Onnx__TensorProto *tensor, const char *key)
{
    for (size_t i = 0; i < tensor->n_external_data; i++)
        if (tensor->external_data[i]->key && strcmp(tensor->external_data[i]->key, key) == 0)
            return tensor->external_data[i]->value;
    return NULL;
}

/* A decimal number of 0 or more; -1: it is none. */
static int64_t entry_number(const char *text, int64_t otherwise)
{
    if (!text)
        return otherwise;
    char *end;
    int64_t value = strtoll(text, &end, 10);
    return *end || *text < '0' || *text > '9' ? -1 : value;
}

static const void *read_external(Arena *arena, const char *model, const Onnx__TensorProto *tensor,
                                 size_t bytes, const char **problem)
{
    const char *location = find_entry(tensor, "location");
    int64_t offset = entry_number(find_entry(tensor, "offset"), 0);
    int64_t length = entry_number(find_entry(tensor, "length"), (int64_t)bytes);
    if (!location || offset < 0 || length != (int64_t)bytes)
        *problem = arena_printf(arena, "external data that is no %zu bytes of a file", bytes);
    if (*problem)
        return NULL;
    Mapped data = mapped_external(arena, model, tensor->name ? tensor->name : "", location, offset, length);
    return (uintptr_t)data.bytes % 8 ? memcpy(arena_room(arena, data.length + 1), data.bytes, data.length)
                                     : data.bytes;
}

/* int32_data holds the narrow types, too; f16 and bf16 as their bits. */
static const void *read_narrow(Arena *arena, const Onnx__TensorProto *tensor, DType type, size_t count)
{
    size_t size = (size_t)constant_bytes(type);
    char *bytes = arena_room(arena, size * count + 1);
    for (size_t i = 0; i < count; i++)
        memcpy(bytes + i * size, &tensor->int32_data[i], size);   // little-endian
    return bytes;
}

/* NULL: there are not as many elements as the shape says. */
static const void *read_typed(Arena *arena, const Onnx__TensorProto *tensor, DType type, size_t count)
{
    switch (type) {
    case DTYPE_F32: return tensor->n_float_data == count ? tensor->float_data : NULL;
    case DTYPE_F64: return tensor->n_double_data == count ? tensor->double_data : NULL;
    case DTYPE_I64: return tensor->n_int64_data == count ? tensor->int64_data : NULL;
    case DTYPE_I32: return tensor->n_int32_data == count ? tensor->int32_data : NULL;
    default: return tensor->n_int32_data == count ? read_narrow(arena, tensor, type, count) : NULL;
    }
}

static const void *read_elements(Arena *arena, const char *model, const Onnx__TensorProto *tensor, DType type,
                                 size_t count, const char **problem)
{
    size_t bytes = count * (size_t)constant_bytes(type);
    if (tensor->has_data_location && tensor->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return read_external(arena, model, tensor, bytes, problem);
    if (count == 0)
        return "";
    const void *data = tensor->has_raw_data ? (tensor->raw_data.len == bytes ? tensor->raw_data.data : NULL)
                                            : read_typed(arena, tensor, type, count);
    if (!data)
        *problem = arena_printf(arena, "it does not hold the %zu elements of its shape", count);
    return data;
}

const void *tensor_read(Arena *arena, const char *model, const Onnx__TensorProto *tensor, DType *type,
                        Dims *shape, const char **problem)
{
    *problem = NULL;
    const char *refused = tensor_type(tensor->data_type, type);
    if (refused)
        *problem = arena_printf(arena, "type %s", refused);
    else if (tensor->segment)
        *problem = "a segment of a tensor";
    else if (tensor->n_dims > MAX_RANK)
        *problem = arena_printf(arena, "%zu dimensions; a tensor has at most %d", tensor->n_dims, MAX_RANK);
    if (*problem)
        return NULL;
    *shape = shape_of((int)tensor->n_dims, tensor->dims);
    int64_t count = shape_count(shape);
    if (count < 0)
        *problem = arena_printf(arena, "shape %s", shape_text(arena, shape));
    return *problem ? NULL : read_elements(arena, model, tensor, *type, (size_t)count, problem);
}
