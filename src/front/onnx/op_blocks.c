// Blocks of a feature map as channels, and back.
#include <inttypes.h>
#include <string.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"

static int64_t block_of(const Map *m, const GraphValue *x)
{
    int64_t block = attribute_int(m, "blocksize", 0);
    if (x->shape.rank != 4 || block < 1 || block > 1 << 20)
        refuse(m, "blocks of %" PRId64 " of a tensor %s", block, shape_text(m->arena, &x->shape));
    return block;
}

/* A view, a permutation, a view. */
static void permute(Map *m, const GraphValue *x, const Dims *seen, const char *places, const Dims *moved,
                    const Dims *shape)
{
    GraphValue *blocks = part(m, out(m, 0), "blocks"), *permuted = part(m, out(m, 0), "moved");
    view_as(m, blocks, x, seen);
    move(m, permuted, blocks, moved, places);
    view_as(m, out(m, 0), permuted, shape);
}

void map_depth_to_space(Map *m)
{
    const GraphValue *x = need(m, 0);
    const int64_t *size = x->shape.size, b = block_of(m, x), channels = size[1] / (b * b);
    const char *mode = attribute_text(m, "mode", "DCR");
    bool depth_first = strcmp(mode, "DCR") == 0;
    if (channels * b * b != size[1] || (!depth_first && strcmp(mode, "CRD") != 0))
        refuse(m, "mode '%s', blocks of %" PRId64 " of %" PRId64 " channels", mode, b, size[1]);
    comment(m, "blocks of %" PRId64, b);
    Dims seen = {6, {size[0], b, b, channels, size[2], size[3]}};
    if (!depth_first)
        seen = (Dims){6, {size[0], channels, b, b, size[2], size[3]}};
    permute(m, x, &seen, depth_first ? "i, l, n, j, k, m" : "i, j, l, n, k, m",
            &(Dims){6, {size[0], channels, size[2], b, size[3], b}},
            &(Dims){4, {size[0], channels, size[2] * b, size[3] * b}});
}

void map_space_to_depth(Map *m)
{
    const GraphValue *x = need(m, 0);
    const int64_t *size = x->shape.size, b = block_of(m, x), rows = size[2] / b, columns = size[3] / b;
    if (rows * b != size[2] || columns * b != size[3])
        refuse(m, "blocks of %" PRId64 " of a tensor %s", b, shape_text(m->arena, &x->shape));
    comment(m, "blocks of %" PRId64, b);
    const char *mode = attribute_text(m, "mode", "DCR");
    bool depth_first = strcmp(mode, "DCR") == 0;
    if (!depth_first && strcmp(mode, "CRD") != 0)
        refuse(m, "mode '%s'", mode);
    Dims moved = {6, {size[0], b, b, size[1], rows, columns}};
    if (!depth_first)
        moved = (Dims){6, {size[0], size[1], b, b, rows, columns}};
    permute(m, x, &(Dims){6, {size[0], size[1], rows, b, columns, b}},
            depth_first ? "i, l, m, j, n, k" : "i, j, m, k, n, l", &moved,
            &(Dims){4, {size[0], b * b * size[1], rows, columns}});
}
