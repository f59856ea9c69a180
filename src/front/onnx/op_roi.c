// Regions of a feature map, each as a few averages of computed places.
#include <inttypes.h>
#include <string.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"

typedef struct Regions {
    const GraphValue *x, *rois, *batch;
    int64_t count, samples, result[2];   // [0] rows, [1] columns
    double scale;
    bool shifts;   // half a pixel
    DType type;
} Regions;

static Regions read_regions(const Map *m)
{
    Regions r = {.x = need(m, 0), .rois = need(m, 1), .batch = need(m, 2)};
    const char *mode = attribute_text(m, "mode", "avg"),
               *how = attribute_text(m, "coordinate_transformation_mode",
                                     m->node->version < 16 ? "output_half_pixel" : "half_pixel");
    r.samples = attribute_int(m, "sampling_ratio", 0);
    r.result[0] = attribute_int(m, "output_height", 1);
    r.result[1] = attribute_int(m, "output_width", 1);
    r.scale = attribute_real(m, "spatial_scale", 1);
    r.shifts = strcmp(how, "half_pixel") == 0;
    r.type = wide(r.x->type);
    if (strcmp(mode, "avg") != 0)
        refuse(m, "mode '%s'", mode);
    if (r.samples < 1)
        refuse(m, "a number of samples that depends on data: 'sampling_ratio' is not set");
    if (r.samples > 1 << 12 || r.result[0] < 1 || r.result[1] < 1 ||
        (!r.shifts && strcmp(how, "output_half_pixel") != 0))
        refuse(m, "regions of %" PRId64 " x %" PRId64 " with %" PRId64 " samples, '%s'", r.result[0],
               r.result[1], r.samples, how);
    r.count = r.rois->shape.rank == 2 ? r.rois->shape.size[0] : 0;
    if (r.x->shape.rank != 4 || r.count < 1 || r.rois->shape.size[1] != 4 || r.batch->shape.rank != 1 ||
        r.batch->shape.size[0] != r.count)
        refuse(m, "regions %s and batches %s of a tensor %s", shape_text(m->arena, &r.rois->shape),
               shape_text(m->arena, &r.batch->shape), shape_text(m->arena, &r.x->shape));
    return r;
}

/* Where the samples lie along one dimension: [region, bin, sample]. */
static const GraphValue *define_places(Map *m, const Regions *r, int d)
{
    GraphValue *first = part(m, r->rois, d ? "left" : "top"),
               *size = part(m, r->rois, d ? "width" : "height"),
               *places = part(m, r->rois, d ? "columns" : "rows");
    const char *scale = literal_real(m->arena, r->type, r->scale);
    const char *from = at(m, r->rois, d ? "n, 0" : "n, 1"), *to = at(m, r->rois, d ? "n, 2" : "n, 3");
    Dims one = {1, {r->count}}, all = {3, {r->count, r->result[d], r->samples}};
    define(m, first, r->type, &one, "n", fmt(m, "%s * %s%s", from, scale, r->shifts ? " - 0.5" : ""));
    const char *length = fmt(m, "(%s * %s - %s * %s)", to, scale, from, scale);
    define(m, size, r->type, &one, "n", r->shifts ? length : fmt(m, "max(%s, 1)", length));
    define(m, places, r->type, &all, "nhq",
           fmt(m, "%s + (h + (q + 0.5) / %" PRId64 ") * %s / %" PRId64, at(m, first, "n"), r->samples,
               at(m, size, "n"), r->result[d]));
    return places;
}

typedef struct Sampled {
    const char *places, *weights;   // elements [n, bin, sample, neighbour]
} Sampled;

/* The two pixels around each sample, and their weights; 0 a pixel or more outside the map. */
static Sampled define_neighbours(Map *m, const Regions *r, int d, char bin, char sample, char neighbour)
{
    const GraphValue *places = define_places(m, r, d);
    int64_t size = r->x->shape.size[d + 2];
    const char *place = at(m, places, "n, h, q");
    const char *inside = fmt(m, "min(max(%s, 0), %" PRId64 ")", place, size - 1);
    GraphValue *taken = part(m, places, "at"), *weights = part(m, places, "weight");
    Dims shape = {4, {r->count, r->result[d], r->samples, 2}};
    define(m, taken, DTYPE_I64, &shape, "nhqt", fmt(m, "cast(floor(%s), i64) + t", inside));
    const char *rest = fmt(m, "(%s - floor(%s))", inside, inside);
    define(m, weights, r->type, &shape, "nhqt",
           fmt(m, "select(%s < -1 || %s > %" PRId64 ", 0, select(t == 0, 1 - %s, %s))", place, place, size,
               rest, rest));
    const char *point = fmt(m, "n, %c, %c, %c", bin, sample, neighbour);
    return (Sampled){at(m, taken, point), at(m, weights, point)};
}

void map_roi_align(Map *m)
{
    Regions r = read_regions(m);
    comment(m, "%" PRId64 "x%" PRId64 " of %" PRId64 " regions", r.result[0], r.result[1], r.count);
    Sampled rows = define_neighbours(m, &r, 0, 'h', 'q', 't'),
            columns = define_neighbours(m, &r, 1, 'v', 'r', 'u');
    Dims shape = {4, {r.count, r.x->shape.size[1], r.result[0], r.result[1]}};
    const char *element =
        at(m, r.x, fmt(m, "%s, c, %s, %s", at(m, r.batch, "n"), rows.places, columns.places));
    define(m, out(m, 0), r.x->type, &shape, "nchv",
           fmt(m, "sum[q:%" PRId64 ", r:%" PRId64 ", t:2, u:2](%s * %s * %s) / %" PRId64, r.samples,
               r.samples, rows.weights, columns.weights, element, r.samples * r.samples));
}
