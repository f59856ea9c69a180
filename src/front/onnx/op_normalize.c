// Normalisations and softmax.
#include <inttypes.h>
#include <string.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"
#include "front/onnx/triangle.h"

/* With the mean and variance of the model; in training those of the batch. */
typedef struct Affinity {
    GraphValue *scale, *shift;
} Affinity;

/* What the norm of a channel comes to, of weights alone as a rule: made once, and not for each element.
       y_scale[i] = scale[i] / sqrt(var[i] + 1e-05)      y_shift[i] = bias[i] - mean[i] * y_scale[i] */
static Affinity define_affinity(Map *m, const GraphValue *x)
{
    for (int i = 1; i < 5; i++)
        at_channel(m, need(m, i), &x->shape, 1);   // or refuses
    Affinity made = {part(m, out(m, 0), "scale"), part(m, out(m, 0), "shift")};
    Dims channels = {1, {x->shape.size[1]}};
    DType type = wide(x->type);
    Filling filling = {.operands = {"", at(m, need(m, 1), "i"), at(m, need(m, 2), "i"),
                                    at(m, need(m, 3), "i"), at(m, need(m, 4), "i")}};
    define(m, made.scale, type, &channels, "i", expand(m, "$1 / sqrt($4 + {epsilon=1e-05})", &filling));
    filling.operands[0] = at(m, made.scale, "i");
    define(m, made.shift, type, &channels, "i", expand(m, "$2 - $3 * $0", &filling));
    return made;
}

void map_batch_normalization(Map *m)
{
    const GraphValue *x = need(m, 0);
    if (x->shape.rank < 2)
        refuse(m, "%s has no channels", shape_text(m->arena, &x->shape));
    if (m->node->version >= 14 && attribute_int(m, "training_mode", 0) != 0) {
        batch_normalization_training(m);
        return;
    }
    if (m->node->version < 7 && !attribute_int(m, "is_test", 0))
        refuse(m, "mean and variance of the batch, as in training before version 7");
    if (attribute_int(m, "spatial", 1) == 0)
        refuse(m, "'spatial' 0, a mean for each element");
    for (int output = 1; output < 5; output++)
        refuse_output(m, output, "a statistic");
    Affinity of_channels = define_affinity(m, x);
    define(m, out(m, 0), x->type, &x->shape, letters_of(x->shape.rank),
           fmt(m, "%s * %s + %s", at_broadcast(m, x, &x->shape),
               at_channel(m, of_channels.scale, &x->shape, 1),
               at_channel(m, of_channels.shift, &x->shape, 1)));
}

/* The axes of a softmax: one, or before version 13 all from `axis` on. */
static void softmax_axes(const Map *m, const GraphValue *x, bool flags[MAX_RANK])
{
    bool old = m->node->version < 13;
    int axis = axis_of(m, attribute_int(m, "axis", old ? 1 : -1), x->shape.rank + (old && x->shape.rank < 2));
    for (int d = 0; d < MAX_RANK; d++)
        flags[d] = old ? d >= axis : d == axis;
}

/* Numbers as low as these stand for minus infinity: a softmax of other scores beside them is 0 there. */
static const double LOWEST = -1e30;

/* It has a position for each of the scores': none is broadcast along rows or columns. */
static bool covers_scores(const Triangle *mask, const Dims *shape)
{
    return mask->rows == shape->size[shape->rank - 2] && mask->columns == shape->size[shape->rank - 1];
}

/* Scores to which a mask of positions alone is added: what lies outside is left out, whatever it is, and a
   kernel need not compute it. Each row has an element that counts: else all would count again, by their
   differences. */
static const GraphValue *without_masked(Map *m, const GraphValue *x)
{
    const GraphNode *node = x->maker;
    if (x->data || !node || *node->domain || strcmp(node->op, "Add") != 0)
        return x;
    for (int i = 0; i < 2; i++) {
        const GraphValue *scores = node->inputs[1 - i];
        Triangle mask;
        if (!scores || !node->inputs[i] || !triangle_of(m, node->inputs[i], &mask))
            continue;
        if (mask.inside != 0 || !(mask.outside <= LOWEST) || !triangle_meets_rows(&mask) ||
            !shape_equal(&scores->shape, &x->shape) || !covers_scores(&mask, &x->shape))
            continue;
        const char *letters = letters_of(x->shape.rank), *last = letters + x->shape.rank - 1;
        GraphValue *kept = part(m, out(m, 0), "scores");
        define_moved(m, kept, x->type, &x->shape, letters,
                     fmt(m, "select(%s, %s, -inf)", triangle_condition(m, &mask, last[-1], last[0]),
                         at_broadcast(m, scores, &x->shape)));
        return kept;
    }
    return x;
}

/* `text` of $0, the element, $1, the largest of its row, $2, the sum of exponentials, and $3, the
   exponential. */
void map_softmax(Map *m)
{
    const GraphValue *x = need(m, 0);
    bool flags[MAX_RANK];
    softmax_axes(m, x, flags);
    int axes = 0;
    for (int d = 0; d < x->shape.rank; d++)
        axes += flags[d];
    bool shares = strcmp(m->node->op, "Softmax") == 0;   // their logarithms stay finite where a mask is
    if (shares && axes == 1 && flags[x->shape.rank - 1])
        x = without_masked(m, x);
    GraphValue *largest = part(m, out(m, 0), "max"), *power = part(m, out(m, 0), "exp"),
               *sum = part(m, out(m, 0), "sum");
    const Dims *shape = &x->shape;
    const char *letters = letters_of(shape->rank), *element = at_broadcast(m, x, shape);
    reduce(m, largest, wide(x->type), x, flags, false, "max[$r]($0)");
    const char *row_largest = at_reduced(m, largest, shape, flags);
    define(m, power, wide(x->type), shape, letters, fmt(m, "exp(%s - %s)", element, row_largest));
    reduce(m, sum, wide(x->type), power, flags, false, "sum[$r]($0)");
    Filling filling = {
        .operands = {element, row_largest, at_reduced(m, sum, shape, flags), at_broadcast(m, power, shape)}};
    define(m, out(m, 0), x->type, shape, letters, expand(m, m->row->text, &filling));
}

/* Sums of squares of adjacent channels. */
void map_lrn(Map *m)
{
    const GraphValue *x = need(m, 0);
    int64_t size = attribute_int(m, "size", 0);
    if (size < 1 || size > 1 << 20 || x->shape.rank < 2)
        refuse(m, "'size' is %" PRId64 ", of a tensor of %d dimensions", size, x->shape.rank);
    comment(m, "%" PRId64 " channels", size);
    const char *letters = letters_of(x->shape.rank),
               *rest = x->shape.rank > 2 ? letters_list(m, letters + 2) : "";
    const char *places = fmt(m, "i, j + r - %" PRId64 "%s%s", (size - 1) / 2, *rest ? ", " : "", rest);
    GraphValue *squares = part(m, out(m, 0), "squares");
    define(m, squares, wide(x->type), &x->shape, letters,
           fmt(m, "sum[r:%" PRId64 "](sq(%s))", size, at_padded(m, x, places, "0")));
    const char *scale = attribute_literal(m, "alpha", "0.0001");
    Filling filling = {.operands = {at_broadcast(m, x, &x->shape), at_broadcast(m, squares, &x->shape), scale,
                                    fmt(m, "%" PRId64, size)}};
    define(m, out(m, 0), x->type, &x->shape, letters,
           expand(m, "$0 / pow({bias=1.0} + $2 / $3 * $1, {beta=0.75})", &filling));
}
