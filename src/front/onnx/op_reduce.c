// Reductions along axes.
#include "front/onnx/map.h"
#include "front/onnx/operators.h"

void map_reduce(Map *m)
{
    const GraphValue *x = need(m, 0);
    bool flags[MAX_RANK];
    bool some = axes_given(m, "axes", 1, x->shape.rank, flags);
    if (!some && !attribute_int(m, "noop_with_empty_axes", 0))
        for (int d = 0; d < MAX_RANK; d++)
            flags[d] = true;
    reduce(m, out(m, 0), x->type, x, flags, attribute_int(m, "keepdims", 1) != 0, m->row->text);
}
