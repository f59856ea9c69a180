#include "front/onnx/triangle.h"

#include <string.h>

#include "base/checked.h"

enum {
    MOST_OPERANDS = 3,
    MOST_NODES =
        8   // from a mask to its triangle: of a chain whose nodes read the one before twice, 2^8 ways
};

static bool is_trilu(const GraphNode *node, const GraphValue *value)
{
    const GraphValue *filled = node->inputs[0], *offset = node->input_count > 1 ? node->inputs[1] : NULL;
    return strcmp(node->op, "Trilu") == 0 && value->shape.rank >= 2 && filled->data &&
           constant_is_one_value(filled) && (!offset || offset->data);
}

static void begin(const Map *m, const GraphValue *value, Triangle *triangle)
{
    Map of = *m;
    of.node = value->maker;
    const GraphValue *filled = of.node->inputs[0],
                     *offset = of.node->input_count > 1 ? of.node->inputs[1] : NULL;
    *triangle = (Triangle){
        .upper = attribute_int(&of, "upper", 1) != 0,
        .rows = value->shape.size[value->shape.rank - 2],
        .columns = value->shape.size[value->shape.rank - 1],
        .inside = constant_real(filled, 0),
    };
    int64_t diagonal = offset && shape_count(&offset->shape) > 0 ? constant_int(offset, 0) : 0;
    triangle->diagonal = smaller(larger(diagonal, -triangle->rows - 1), triangle->columns + 1);
}

// ---- what is computed of it ----

typedef double Formula(const double *operands);

static double equal(const double *x) { return x[0] == x[1]; }
static double not_x(const double *x) { return x[0] == 0; }
static double same(const double *x) { return x[0]; }
static double chosen(const double *x) { return x[0] != 0 ? x[1] : x[2]; }
static double product(const double *x) { return x[0] * x[1]; }
static double difference(const double *x) { return x[0] - x[1]; }

static const struct {
    const char *op;
    Formula *formula;
    int operands;
} formulas[] = {
    {"Equal", equal, 2}, {"Not", not_x, 1},      {"Where", chosen, 3}, {"Mul", product, 2},
    {"Cast", same, 1},   {"Sub", difference, 2}, {"Identity", same, 1}, {"Unsqueeze", same, 1},
};

static bool is_alike(const Triangle *a, const Triangle *b)
{
    return a->upper == b->upper && a->diagonal == b->diagonal && a->rows == b->rows &&
           a->columns == b->columns;
}

static bool find(const Map *m, const GraphValue *value, int nodes, Triangle *triangle);

/* An operand's values inside and outside; the first triangle gives the others theirs. */
static bool add_operand(const Map *m, const GraphValue *operand, int nodes, Triangle *triangle,
                        double *inside, double *outside)
{
    Triangle other;
    if (operand->data && constant_is_one_value(operand)) {
        *inside = *outside = constant_real(operand, 0);
        return true;
    }
    if (!find(m, operand, nodes, &other) || (triangle->rows && !is_alike(triangle, &other)))
        return false;
    *triangle = other;
    *inside = other.inside, *outside = other.outside;
    return true;
}

static bool compute(const Map *m, const GraphValue *value, Formula *formula, int operands, int nodes,
                    Triangle *triangle)
{
    double inside[MOST_OPERANDS], outside[MOST_OPERANDS];
    const GraphNode *node = value->maker;
    bool condition = value->type == DTYPE_B1;
    *triangle = (Triangle){0};
    for (int i = 0; i < operands; i++)
        if (i >= node->input_count || !node->inputs[i] ||
            !add_operand(m, node->inputs[i], nodes, triangle, &inside[i], &outside[i]))
            return false;
    triangle->inside = condition ? formula(inside) != 0 : formula(inside);
    triangle->outside = condition ? formula(outside) != 0 : formula(outside);
    int rank = value->shape.rank;
    return triangle->rows && (condition || dtype_info[value->type].is_real) && rank >= 2 &&
           value->shape.size[rank - 2] == triangle->rows && value->shape.size[rank - 1] == triangle->columns;
}

static bool find(const Map *m, const GraphValue *value, int nodes, Triangle *triangle)
{
    const GraphNode *node = value->maker;
    if (nodes == 0 || value->data || !node || *node->domain || node->input_count == 0 || !node->inputs[0])
        return false;
    if (is_trilu(node, value)) {
        begin(m, value, triangle);
        return true;
    }
    for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++)
        if (strcmp(node->op, formulas[i].op) == 0)
            return compute(m, value, formulas[i].formula, formulas[i].operands, nodes - 1, triangle);
    return false;
}

bool triangle_of(const Map *m, const GraphValue *value, Triangle *triangle)
{
    return find(m, value, MOST_NODES, triangle);
}

// ---- what it says ----

const char *triangle_condition(const Map *m, const Triangle *triangle, char row, char column)
{
    return fmt(m, "%c %s %s", column, triangle->upper ? ">=" : "<=", affine(m, 1, row, triangle->diagonal));
}

bool triangle_meets_rows(const Triangle *triangle)
{
    return triangle->upper ? triangle->rows - 1 + triangle->diagonal < triangle->columns
                           : triangle->diagonal >= 0;
}
