#include "front/onnx/bind.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/nearest.h"
#include "base/strbuf.h"
#include "front/onnx/tensor.h"
#include "ir/eval.h"

Bindings bindings_new(Arena *arena, const OnnxBinding *items, int count)
{
    return (Bindings){.arena = arena,
                      .items = items,
                      .count = count,
                      .used = NEW_ARRAY(arena, bool, count + 1),
                      .open = name_table_new(arena),
                      .open_names = NULL};
}

static const OnnxBinding *find(const Bindings *bindings, const char *name)
{
    for (int i = bindings->count; i-- > 0;)   // the last one counts
        if (strcmp(bindings->items[i].name, name) == 0) {
            for (int j = 0; j <= i; j++)
                bindings->used[j] |= strcmp(bindings->items[j].name, name) == 0;
            return &bindings->items[i];
        }
    return NULL;
}

// ---- symbols ----

static void note_open(Bindings *bindings, const char *symbol, const char *tensor)
{
    const char *tensors = name_table_find(&bindings->open, symbol);
    if (!tensors) {
        const char **names = NEW_ARRAY(bindings->arena, const char *, bindings->open_count + 1);
        if (bindings->open_count)
            memcpy(names, bindings->open_names, (size_t)bindings->open_count * sizeof *names);
        names[bindings->open_count++] = symbol;
        bindings->open_names = names;
    }
    name_table_set(
        &bindings->open, symbol,
        arena_printf(bindings->arena, "%s%s'%s'", tensors ? tensors : "", tensors ? ", " : "", tensor));
}

static int64_t read_size(const OnnxBinding *binding)
{
    char *end;
    errno = 0;
    long long size = strtoll(binding->text, &end, 10);
    if (*binding->text < '0' || *binding->text > '9' || *end || errno || size < 1 || size > 1LL << 40)
        fatal(EXIT_USAGE, "--bind %s wants a size of 1 to 2^40, not '%s'", binding->name, binding->text);
    return size;
}

/* A dimension without a size and a name is bound as `x[0]`. */
static int64_t size_of(Bindings *bindings, const Onnx__TensorShapeProto__Dimension *dimension,
                       const char *tensor, int d)
{
    if (dimension->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
        dimension->dim_value > 0)
        return dimension->dim_value;
    if (dimension->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
        dimension->dim_value == 0)
        return 0;
    bool named = dimension->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
                 *dimension->dim_param;
    const char *symbol = named ? dimension->dim_param : arena_printf(bindings->arena, "%s[%d]", tensor, d);
    const OnnxBinding *binding = find(bindings, symbol);
    if (binding)
        return read_size(binding);
    note_open(bindings, symbol, tensor);
    return 1;
}

static Dims shape_from(Bindings *bindings, const Onnx__TensorShapeProto *from, const char *tensor)
{
    Dims shape = {.rank = (int)from->n_dim};
    if (from->n_dim > MAX_RANK)
        fatal(EXIT_INPUT, "input '%s' has %zu dimensions; a tensor has at most %d", tensor, from->n_dim,
              MAX_RANK);
    for (int d = 0; d < shape.rank; d++)
        shape.size[d] = size_of(bindings, from->dim[d], tensor, d);
    return shape;
}

// ---- values ----

static int count_values(const char *text)
{
    int count = *text != '\0';
    for (; *text; text++)
        count += *text == ',';
    return count;
}

static void store_value(const OnnxBinding *binding, DType type, char *data, int index, const char *text,
                        char **end)
{
    DType stored = type == DTYPE_B1 ? DTYPE_U8 : type;
    bool is_real = dtype_info[type].is_real;   // which may be denormal or infinite
    errno = 0;
    if (type == DTYPE_I64) {
        long long value = strtoll(text, end, 10);
        memcpy(data + (size_t)index * sizeof value, &value, sizeof value);
    } else {
        dtype_store(stored, data, index, strtod(text, end));
    }
    if (*end == text || (**end && **end != ',') || (errno && !is_real))
        fatal(EXIT_USAGE, "--bind %s wants numbers with commas between them, not '%s'", binding->name,
              binding->text);
}

static void bind_values(Bindings *bindings, const OnnxBinding *binding, GraphValue *value)
{
    int count = count_values(binding->text);
    char *data = arena_alloc(bindings->arena, (size_t)count * 8 + 1), *at = (char *)binding->text;
    for (int i = 0; i < count; i++) {
        char *end;
        store_value(binding, value->type, data, i, at, &end);
        at = end + 1;
    }
    Dims shape = value->shape;
    if (shape.rank == 1)
        shape.size[0] = count;
    if (shape_count(&shape) != count)
        fatal(EXIT_USAGE, "--bind %s gives %d values for %s", binding->name, count,
              shape_text(bindings->arena, &shape));
    constant_set(value, value->type, shape, data);
}

// ---- inputs ----

/* The shape of an input whose values are bound: a vector's size is their count. */
static Dims shape_of_bound(const Onnx__TensorShapeProto *from)
{
    Dims shape = {.rank = from ? (int)from->n_dim : 1};
    for (int d = 0; d < shape.rank && d < MAX_RANK; d++)
        shape.size[d] =
            from && from->dim[d]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE
                ? from->dim[d]->dim_value
                : 1;
    return shape;
}

void bind_input(Bindings *bindings, const Onnx__ValueInfoProto *info, GraphValue *value)
{
    const Onnx__TypeProto *type = info->type;
    if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        fatal(EXIT_INPUT, "input '%s' is no tensor", value->name);
    const char *problem = tensor_type(type->tensor_type->elem_type, &value->type);
    if (problem)
        fatal(EXIT_INPUT, "input '%s' is of type %s; f64 f32 f16 bf16 i64 i32 i8 u8 and bool can be taken",
              value->name, problem);
    const Onnx__TensorShapeProto *shape = type->tensor_type->shape;
    const OnnxBinding *binding = find(bindings, value->name);
    if (binding) {
        value->shape = shape_of_bound(shape);
        bind_values(bindings, binding, value);
        return;
    }
    if (!shape)
        fatal(EXIT_INPUT, "input '%s' has no shape", value->name);
    value->shape = shape_from(bindings, shape, value->name);
    value->state = VALUE_KNOWN;
    if (shape_count(&value->shape) < 0)
        fatal(EXIT_INPUT, "input '%s' has the shape %s: a tensor has at most 2^40 elements", value->name,
              shape_text(bindings->arena, &value->shape));
    if (shape_count(&value->shape) == 0)
        value->data = "";   // without elements there is nothing to be known later
}

static void refuse_unused(const Bindings *bindings)
{
    for (int i = 0; i < bindings->count; i++)
        if (!bindings->used[i])
            fatal(EXIT_USAGE, "--bind %s: the model has no symbol and no input of this name",
                  bindings->items[i].name);
}

void bindings_finish(const Bindings *bindings, const char *model)
{
    StrBuf list = strbuf_new(bindings->arena);
    for (int i = 0; i < bindings->open_count; i++)
        strbuf_printf(&list, "\n  --bind %s=VALUE   of %s", bindings->open_names[i],
                      (const char *)name_table_find(&bindings->open, bindings->open_names[i]));
    if (bindings->open_count)
        fatal(EXIT_INPUT, "'%s' has sizes that are not bound:%s", model, list.text);
    refuse_unused(bindings);
}
