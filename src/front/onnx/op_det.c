// Determinants of small matrices.
#include "front/onnx/map.h"
#include "front/onnx/operators.h"

enum { LARGEST = 4 };   // the sum has a product for each permutation: 24

typedef struct Leibniz {
    const Map *m;
    const GraphValue *x;
    const char *matrix;   // places of the matrix: "i, j, "
    int size, columns[LARGEST];
    StrBuf sum;
} Leibniz;

static void add_product(Leibniz *l)
{
    int inversions = 0;
    for (int a = 0; a < l->size; a++)
        for (int b = a + 1; b < l->size; b++)
            inversions += l->columns[a] > l->columns[b];
    strbuf_puts(&l->sum, inversions % 2 ? " - " : l->sum.length ? " + " : "");
    for (int row = 0; row < l->size; row++)
        strbuf_printf(&l->sum, "%s%s", row ? " * " : "",
                      at(l->m, l->x, fmt(l->m, "%s%d, %d", l->matrix, row, l->columns[row])));
}

static void permute(Leibniz *l, int row)
{
    if (row == l->size)
        add_product(l);
    for (int column = 0; column < l->size && row < l->size; column++) {
        bool used = false;
        for (int before = 0; before < row; before++)
            used |= l->columns[before] == column;
        l->columns[row] = column;
        if (!used)
            permute(l, row + 1);
    }
}

void map_det(Map *m)
{
    const GraphValue *x = need(m, 0);
    int rank = x->shape.rank;
    if (rank < 2 || x->shape.size[rank - 1] != x->shape.size[rank - 2])
        refuse(m, "a tensor %s that is no square matrix", shape_text(m->arena, &x->shape));
    if (x->shape.size[rank - 1] > LARGEST)
        refuse(m, "a matrix of %d rows; at most %d can be taken", (int)x->shape.size[rank - 1], LARGEST);
    Dims shape = x->shape;
    shape.rank -= 2;
    const char *letters = letters_of(shape.rank);
    Leibniz l = {m,
                 x,
                 shape.rank ? fmt(m, "%s, ", letters_list(m, letters)) : "",
                 (int)x->shape.size[rank - 1],
                 {0},
                 strbuf_new(m->arena)};
    permute(&l, 0);
    define(m, out(m, 0), x->type, &shape, letters, l.sum.text);
}
