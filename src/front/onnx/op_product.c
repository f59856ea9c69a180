// Products of matrices.
#include <inttypes.h>
#include <string.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"

static const char batch_letters[] = "nhpqrs";

/* `[batch letters] rows columns`, of which vectors lack one. */
static const char *factor_letters(const Map *m, const GraphValue *value, const char *matrix, int batch_rank,
                                  char vector)
{
    if (value->shape.rank == 1)
        return fmt(m, "%c", vector);
    int batch = value->shape.rank - 2;
    return fmt(m, "%.*s%s", batch, batch_letters + (batch_rank - batch), matrix);
}

/* The larger rank of both, without rows and columns. */
static int batch_rank_of(const GraphValue *a, const GraphValue *b)
{
    int rank = a->shape.rank > b->shape.rank ? a->shape.rank : b->shape.rank;
    return rank > 2 ? rank - 2 : 0;
}

void map_matmul(Map *m)
{
    const GraphValue *a = need(m, 0), *b = need(m, 1);
    if (!a->shape.rank || !b->shape.rank)
        refuse(m, "a factor is a scalar");
    int batch = batch_rank_of(a, b);
    Factor terms[] = {{a, factor_letters(m, a, "ik", batch, 'k')},
                      {b, factor_letters(m, b, "kj", batch, 'k')}};
    int rows = a->shape.rank > 1, columns = b->shape.rank > 1;
    if (a->shape.size[a->shape.rank - 1] != b->shape.size[columns ? b->shape.rank - 2 : 0])
        refuse(m, "shapes %s and %s do not go together", shape_text(m->arena, &a->shape),
               shape_text(m->arena, &b->shape));
    const char *letters = fmt(m, "%.*s%s%s", batch, batch_letters, rows ? "i" : "", columns ? "j" : "");
    int64_t extents[26];
    letter_extents(m, terms, 2, extents);
    Dims shape = shape_of_letters(letters, extents);
    define(m, out(m, 0), a->type, &shape, letters, contraction(m, letters, terms, 2));
}

/* `2.0 * `, or nothing of 1. */
static const char *scale(const Map *m, const char *name)
{
    return attribute_real(m, name, 1) == 1 ? "" : fmt(m, "%s * ", attribute_literal(m, name, NULL));
}

void map_gemm(Map *m)
{
    const GraphValue *a = need(m, 0), *b = need(m, 1), *c = maybe(m, 2);
    if (a->shape.rank != 2 || b->shape.rank != 2)
        refuse(m, "shapes %s and %s are no matrices", shape_text(m->arena, &a->shape),
               shape_text(m->arena, &b->shape));
    Factor terms[] = {{a, attribute_int(m, "transA", 0) ? "ki" : "ik"},
                      {b, attribute_int(m, "transB", 0) ? "jk" : "kj"}};
    int64_t extents[26];
    letter_extents(m, terms, 2, extents);
    Dims shape = shape_of_letters("ij", extents);
    if (c && !broadcasts_to(m, c, &shape))
        refuse(m, "%s cannot be added to %s", shape_text(m->arena, &c->shape), shape_text(m->arena, &shape));
    const char *sum = fmt(m, "%s%s", scale(m, "alpha"), contraction(m, "ij", terms, 2));
    if (c)
        sum = fmt(m, "%s + %s%s", sum, scale(m, "beta"), at_broadcast(m, c, &shape));
    define(m, out(m, 0), a->type, &shape, "ij", sum);
}
