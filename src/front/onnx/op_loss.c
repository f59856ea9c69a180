// Losses of a classification: the logarithm of the target's probability.
#include <inttypes.h>
#include <string.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"

/* Scores have the shape [n, classes, …], targets [n, …]; a target of `ignored` counts nothing. */
typedef struct Loss {
    const GraphValue *named;   // parts are called after it
    DType type;                // of sums
    Dims shape;                // of the targets
    const char *letters, *target;
    const char *ignored;   // a condition; NULL: none is
} Loss;

static Loss loss_of(const Map *m, const GraphValue *scores, const GraphValue *target, const GraphValue *named)
{
    Loss loss = {.named = named, .type = wide(scores->type), .shape = target->shape};
    bool fits =
        scores->shape.rank == target->shape.rank + 1 && target->shape.rank > 0 && !is_real(target->type);
    for (int d = 0; d < target->shape.rank && fits; d++)
        fits = target->shape.size[d] == scores->shape.size[d + (d > 0)];
    if (!fits)
        refuse(m, "targets %s for scores %s", shape_text(m->arena, &target->shape),
               shape_text(m->arena, &scores->shape));
    loss.letters = letters_of(loss.shape.rank);
    loss.target = at_broadcast(m, target, &loss.shape);
    if (has_attribute(m, "ignore_index"))
        loss.ignored = fmt(m, "%s == %s", loss.target, attribute_literal(m, "ignore_index", NULL));
    return loss;
}

/* `x[i, target[i, j], j]` */
static const char *at_target(const Map *m, const Loss *loss, const GraphValue *x)
{
    const char *rest = loss->letters + 1;
    return at(m, x, fmt(m, "i, %s%s%s", loss->target, *rest ? ", " : "", *rest ? letters_list(m, rest) : ""));
}

static const char *unless_ignored(const Map *m, const Loss *loss, const char *expr)
{
    return loss->ignored ? fmt(m, "select(%s, 0, %s)", loss->ignored, expr) : expr;
}

/* What each target weighs; NULL: all weigh 1. */
static GraphValue *define_weights(Map *m, const Loss *loss, int64_t classes)
{
    const GraphValue *weight = maybe(m, 2);
    if (!weight && !loss->ignored)
        return NULL;
    if (weight && (weight->shape.rank != 1 || weight->shape.size[0] != classes))
        refuse(m, "weights %s of %" PRId64 " classes", shape_text(m->arena, &weight->shape), classes);
    GraphValue *weights = part(m, loss->named, "weights");
    define(m, weights, loss->type, &loss->shape, loss->letters,
           unless_ignored(m, loss, weight ? at(m, weight, loss->target) : "1.0"));
    return weights;
}

static void define_reduced(Map *m, GraphValue *value, const GraphValue *each, const GraphValue *weights,
                           const char *reduction, DType type)
{
    bool flags[MAX_RANK];
    for (int d = 0; d < MAX_RANK; d++)
        flags[d] = true;
    if (strcmp(reduction, "mean") == 0 && weights) {
        GraphValue *sum = part(m, value, "sum"), *total = part(m, value, "total");
        reduce(m, sum, each->type, each, flags, false, "sum[$r]($0)");
        reduce(m, total, each->type, weights, flags, false, "sum[$r]($0)");
        define(m, value, type, &(Dims){0}, "", fmt(m, "%s / %s", at(m, sum, ""), at(m, total, "")));
    } else if (strcmp(reduction, "mean") == 0 || strcmp(reduction, "sum") == 0) {
        reduce(m, value, type, each, flags, false, *reduction == 'm' ? "sum[$r]($0) / $n" : "sum[$r]($0)");
    } else {
        refuse(m, "'reduction' is '%s'", reduction);
    }
}

/* Output 0, of logarithms of probabilities. */
static void define_loss(Map *m, const GraphValue *logs, const GraphValue *target, DType type)
{
    const char *reduction = attribute_text(m, "reduction", "mean");
    Loss loss = loss_of(m, logs, target, out(m, 0));
    const GraphValue *weights = define_weights(m, &loss, logs->shape.size[1]);
    bool whole = strcmp(reduction, "none") == 0;
    GraphValue *each = whole ? out(m, 0) : part(m, out(m, 0), "each");
    const char *expr = fmt(m, "-%s", at_target(m, &loss, logs));
    if (weights && maybe(m, 2))
        expr = fmt(m, "%s * %s", expr, at_broadcast(m, weights, &loss.shape));
    define(m, each, whole ? type : loss.type, &loss.shape, loss.letters, unless_ignored(m, &loss, expr));
    if (!whole)
        define_reduced(m, out(m, 0), each, weights, reduction, type);
}

void map_likelihood_loss(Map *m)
{
    const GraphValue *logs = need(m, 0);
    define_loss(m, logs, need(m, 1), logs->type);
}

void map_cross_entropy_loss(Map *m)
{
    const GraphValue *x = need(m, 0), *named = out(m, 0) ? out(m, 0) : out(m, 1);
    if (x->shape.rank < 2)
        refuse(m, "%s has no classes", shape_text(m->arena, &x->shape));
    DType type = wide(x->type);
    bool flags[MAX_RANK] = {[1] = true};
    GraphValue *largest = part(m, named, "max"), *power = part(m, named, "exp"),
               *sum = part(m, named, "sum_exp");
    GraphValue *logs = out(m, 1) && type == x->type ? out(m, 1) : part(m, named, "log");
    const char *letters = letters_of(x->shape.rank), *element = at_broadcast(m, x, &x->shape);
    reduce(m, largest, type, x, flags, false, "max[$r]($0)");
    const char *row = at_reduced(m, largest, &x->shape, flags);
    define(m, power, type, &x->shape, letters, fmt(m, "exp(%s - %s)", element, row));
    reduce(m, sum, type, power, flags, false, "sum[$r]($0)");
    define(m, logs, type, &x->shape, letters,
           fmt(m, "%s - %s - log(%s)", element, row, at_reduced(m, sum, &x->shape, flags)));
    if (out(m, 1) && logs != out(m, 1))
        define(m, out(m, 1), x->type, &x->shape, letters, at_broadcast(m, logs, &x->shape));
    if (out(m, 0))
        define_loss(m, logs, need(m, 1), x->type);
}
