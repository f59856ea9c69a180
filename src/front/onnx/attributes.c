#include <string.h>

#include "front/onnx/map.h"

enum { MOST_NUMBERS = 1 << 20 };   // of one attribute

/* An attribute of the node, or, in a function's body, the caller's that it refers to. */
static const Onnx__AttributeProto *find(const GraphNode *node, const char *name)
{
    for (size_t i = 0; node && i < node->proto->n_attribute; i++) {
        const Onnx__AttributeProto *attribute = node->proto->attribute[i];
        if (!attribute->name || strcmp(attribute->name, name) != 0)
            continue;
        bool refers = attribute->ref_attr_name && *attribute->ref_attr_name;
        return refers ? find(node->caller, attribute->ref_attr_name) : attribute;
    }
    return NULL;
}

static const Onnx__AttributeProto *find_of(const Map *m, const char *name,
                                           Onnx__AttributeProto__AttributeType type, const char *wanted)
{
    const Onnx__AttributeProto *attribute = find(m->node, name);
    if (attribute && attribute->has_type && attribute->type != type)
        refuse(m, "attribute '%s' is no %s", name, wanted);
    return attribute;
}

bool has_attribute(const Map *m, const char *name) { return find(m->node, name) != NULL; }

int64_t attribute_int(const Map *m, const char *name, int64_t otherwise)
{
    const Onnx__AttributeProto *found =
        find_of(m, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, "integer");
    return found ? found->i : otherwise;
}

double attribute_real(const Map *m, const char *name, double otherwise)
{
    const Onnx__AttributeProto *found =
        find_of(m, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, "real number");
    return found ? found->f : otherwise;
}

const char *attribute_text(const Map *m, const char *name, const char *otherwise)
{
    const Onnx__AttributeProto *found =
        find_of(m, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING, "text");
    return found ? arena_strndup(m->arena, (const char *)found->s.data, found->s.len) : otherwise;
}

Ints attribute_ints(const Map *m, const char *name)
{
    const Onnx__AttributeProto *found =
        find_of(m, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS, "list of integers");
    if (found && found->n_ints > MOST_NUMBERS)
        refuse(m, "attribute '%s' has more than %d integers", name, MOST_NUMBERS);
    return found ? (Ints){(int)found->n_ints, found->ints} : (Ints){0, NULL};
}

Reals attribute_reals(const Map *m, const char *name)
{
    const Onnx__AttributeProto *found =
        find_of(m, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS, "list of numbers");
    if (found && found->n_floats > MOST_NUMBERS)
        refuse(m, "attribute '%s' has more than %d numbers", name, MOST_NUMBERS);
    return found ? (Reals){(int)found->n_floats, found->floats} : (Reals){0, NULL};
}

const Onnx__TensorProto *attribute_tensor(const Map *m, const char *name)
{
    const Onnx__AttributeProto *found =
        find_of(m, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR, "tensor");
    return found ? found->t : NULL;
}

const char *attribute_literal(const Map *m, const char *name, const char *otherwise)
{
    const Onnx__AttributeProto *found = find(m->node, name);
    if (!found && !otherwise)
        refuse(m, "attribute '%s' is missing", name);
    if (!found)
        return otherwise;
    if (found->has_type && found->type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT)
        return literal_int(m->arena, found->i);
    return literal_real(m->arena, DTYPE_F32, attribute_real(m, name, 0));
}

// ---- axes ----

int axis_of(const Map *m, int64_t axis, int rank)
{
    if (axis < -rank || axis >= rank)
        refuse(m, "axis %lld is none of a tensor of %d dimensions", (long long)axis, rank);
    return (int)(axis < 0 ? axis + rank : axis);
}

bool axes_given(const Map *m, const char *name, int input, int rank, bool flags[MAX_RANK])
{
    bool is_input = input >= 0 && maybe(m, input), given = is_input || has_attribute(m, name);
    Ints axes = is_input ? need_ints(m, input) : attribute_ints(m, name);
    memset(flags, 0, MAX_RANK * sizeof *flags);
    for (int i = 0; i < axes.count; i++)
        flags[axis_of(m, axes.items[i], rank)] = true;
    return given && axes.count > 0;
}
