// Attention and rotary embeddings.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"
#include "front/onnx/tensor.h"

typedef struct AttentionNode {
    const GraphValue *q, *k, *v, *mask, *past_key, *past_value, *lengths;
    bool flat;   // [batch, position, head and unit]; else [batch, head, position, unit]
    int64_t batch, heads, kv_heads, queries, keys, size, value_size, past;
    bool causal, may_be_empty;   // a query without any key
    int64_t left, right;         // of a window; -1: none
    double scale, cap;
    DType soft;   // of scores and exponentials
} AttentionNode;

// ---- what is given ----

static int64_t heads_of(const Map *m, const GraphValue *x, const char *name, bool flat)
{
    int64_t heads = flat ? attribute_int(m, name, 0) : x->shape.size[1];
    if (heads < 1 || (flat && x->shape.size[2] % heads))
        refuse(m, "%" PRId64 " heads of a tensor %s", heads, shape_text(m->arena, &x->shape));
    return heads;
}

static void check_attention(const Map *m, const AttentionNode *a)
{
    bool fits =
        a->k->shape.size[0] == a->batch && a->v->shape.size[0] == a->batch && a->heads % a->kv_heads == 0 &&
        (a->flat ? a->k->shape.size[2] == a->kv_heads * a->size : a->k->shape.size[3] == a->size) &&
        a->v->shape.size[a->flat ? 1 : 2] == a->keys && (a->flat || a->v->shape.size[1] == a->kv_heads);
    if (!fits)
        refuse(m, "queries %s, keys %s and values %s do not go together", shape_text(m->arena, &a->q->shape),
               shape_text(m->arena, &a->k->shape), shape_text(m->arena, &a->v->shape));
    Dims past_k = {4, {a->batch, a->kv_heads, a->past, a->size}},
         past_v = {4, {a->batch, a->kv_heads, a->past, a->value_size}};
    if (!a->past_key != !a->past_value ||
        (a->past_key && (a->lengths || !shape_equal(&a->past_key->shape, &past_k) ||
                         !shape_equal(&a->past_value->shape, &past_v))))
        refuse(m, "keys and values of before do not go together");
    if (a->lengths && (a->lengths->shape.rank != 1 || a->lengths->shape.size[0] != a->batch))
        refuse(m, "lengths %s of %" PRId64 " sequences", shape_text(m->arena, &a->lengths->shape), a->batch);
    if (a->mask && (a->mask->shape.rank < 1 || a->mask->shape.rank > 4 ||
                    a->mask->shape.size[a->mask->shape.rank - 1] > a->past + a->keys))
        refuse(m, "a mask %s for %" PRId64 " keys", shape_text(m->arena, &a->mask->shape), a->past + a->keys);
    if (!(a->scale > 0) || !(a->cap >= 0) || !is_real(a->q->type))
        refuse(m, "a scale of %g, a cap of %g", a->scale, a->cap);
}

static AttentionNode read_attention(const Map *m)
{
    AttentionNode a = {.q = need(m, 0), .k = need(m, 1), .v = need(m, 2), .mask = maybe(m, 3)};
    a.past_key = maybe(m, 4), a.past_value = maybe(m, 5), a.lengths = maybe(m, 6);
    int rank = a.q->shape.rank;
    if ((rank != 3 && rank != 4) || a.k->shape.rank != rank || a.v->shape.rank != rank)
        refuse(m, "queries of %d dimensions", rank);
    a.flat = rank == 3;
    a.batch = a.q->shape.size[0];
    a.heads = heads_of(m, a.q, "q_num_heads", a.flat);
    a.kv_heads = heads_of(m, a.k, "kv_num_heads", a.flat);
    heads_of(m, a.v, "kv_num_heads", a.flat);
    a.queries = a.q->shape.size[a.flat ? 1 : 2];
    a.keys = a.k->shape.size[a.flat ? 1 : 2];
    a.size = a.flat ? a.q->shape.size[2] / a.heads : a.q->shape.size[3];
    a.value_size = a.flat ? a.v->shape.size[2] / a.kv_heads : a.v->shape.size[3];
    a.past = a.past_key && a.past_key->shape.rank == 4 ? a.past_key->shape.size[2] : 0;
    a.causal = attribute_int(m, "is_causal", 0) != 0;
    a.left = attribute_int(m, "left_window_size", -1);
    a.right = attribute_int(m, "right_window_size", -1);
    a.scale = attribute_real(m, "scale", 1 / sqrt((double)(a.size ? a.size : 1)));
    a.cap = attribute_real(m, "softcap", 0);
    a.may_be_empty = a.mask || a.lengths || a.left >= 0 || a.right >= 0;
    DType soft = DTYPE_F32;
    if (attribute_int(m, "softmax_precision", 0))
        tensor_type((int)attribute_int(m, "softmax_precision", 0), &soft);
    a.soft = soft == DTYPE_F64 ? DTYPE_F64 : wide(a.q->type);
    check_attention(m, &a);
    return a;
}

// ---- elements ----

/* Of queries, keys or values: at batch n, `head`, `position` and `unit`. */
static const char *at_head(const Map *m, const AttentionNode *a, const GraphValue *x, const char *head,
                           const char *position, char unit, int64_t size)
{
    return a->flat ? at(m, x, fmt(m, "n, %s, %" PRId64 "*(%s) + %c", position, size, head, unit))
                   : at(m, x, fmt(m, "n, %s, %s, %c", head, position, unit));
}

static const char *kv_head(const Map *m, const AttentionNode *a)
{
    int64_t each = a->heads / a->kv_heads;
    return each == 1 ? "h" : fmt(m, "h/%" PRId64, each);
}

/* What was kept, and behind it what is new: [batch, head, position, unit]. */
static const GraphValue *define_present(Map *m, const AttentionNode *a, GraphValue *value,
                                        const GraphValue *past, const GraphValue *x, int64_t size)
{
    Dims shape = {4, {a->batch, a->kv_heads, a->past + a->keys, size}};
    if (!past) {
        define_moved(m, value, x->type, &shape, "nhjd", at_head(m, a, x, "h", "j", 'd', size));
        return value;
    }
    const char *places =
        fmt(m, a->flat ? "n, j - %" PRId64 ", %" PRId64 "*h + d" : "n, h, j - %" PRId64 ", d", a->past, size);
    define_moved(m, value, x->type, &shape, "nhjd",
                 fmt(m, "select(j < %" PRId64 ", %s, %s)", a->past, at_padded(m, past, "n, h, j, d", "0"),
                     at_padded(m, x, places, "0")));
    return value;
}

/* Keys or values of all positions, read at `position`. */
static const char *at_present(const Map *m, const AttentionNode *a, const GraphValue *present,
                              const GraphValue *x, char unit, int64_t size)
{
    return present ? at(m, present, fmt(m, "n, %s, j, %c", kv_head(m, a), unit))
                   : at_head(m, a, x, kv_head(m, a), "j", unit, size);
}

// ---- masks ----

static void add_condition(StrBuf *condition, const char *text)
{
    strbuf_printf(condition, "%s%s", condition->length ? " && " : "", text);
}

static const char *mask_at(const Map *m, const AttentionNode *a)
{
    const Dims *shape = &a->mask->shape;
    int64_t total = a->past + a->keys;
    Dims all = {4, {a->batch, a->heads, a->queries, total}};
    StrBuf places = strbuf_new(m->arena);
    for (int d = 0; d < shape->rank; d++) {
        int to = d + 4 - shape->rank;
        bool last = d == shape->rank - 1;
        if (!last && shape->size[d] != 1 && shape->size[d] != all.size[to])
            refuse(m, "a mask %s for scores %s", shape_text(m->arena, shape), shape_text(m->arena, &all));
        add_place(&places, !last && shape->size[d] == 1 ? "0" : fmt(m, "%c", "nhij"[to]));
    }
    if (shape->size[shape->rank - 1] == total)
        return at(m, a->mask, places.text);
    return at_padded(m, a->mask, places.text, a->mask->type == DTYPE_B1 ? "0" : "-inf");
}

/* Where a key takes part; "": everywhere. */
static const char *takes_part(const Map *m, const AttentionNode *a)
{
    StrBuf condition = strbuf_new(m->arena);
    const char *length = a->lengths ? at(m, a->lengths, "n") : NULL;
    const char *query = length        ? fmt(m, "i + %s - %" PRId64, length, a->queries)
                        : a->past > 0 ? fmt(m, "i + %" PRId64, a->past)
                                      : "i";
    if (a->mask && a->mask->type == DTYPE_B1)
        add_condition(&condition, mask_at(m, a));
    if (a->causal)
        add_condition(&condition, fmt(m, "j <= %s", query));
    if (a->left >= 0)
        add_condition(&condition, fmt(m, "%s - j <= %" PRId64, query, a->left));
    if (a->right >= 0)
        add_condition(&condition, fmt(m, "j - (%s) <= %" PRId64, query, a->right));
    if (length)
        add_condition(&condition, fmt(m, "j < %s", length));
    return condition.text;
}

// ---- the steps ----

typedef struct Scores {
    Dims shape;
    const char *raw, *capped, *masked;   // elements [n, h, i, j]
    const GraphValue *tensor;            // `masked`
} Scores;

static Scores define_scores(Map *m, const AttentionNode *a, const GraphValue *keys)
{
    Scores s = {.shape = {4, {a->batch, a->heads, a->queries, a->past + a->keys}}};
    GraphValue *raw = part(m, a->q, "scores");
    define(m, raw, a->soft, &s.shape, "nhij",
           fmt(m, "sum[k:%" PRId64 "](%s * %s) * %s", a->size, at_head(m, a, a->q, "h", "i", 'k', a->size),
               at_present(m, a, keys, a->k, 'k', a->size), literal_real(m->arena, a->soft, a->scale)));
    s.raw = s.capped = at(m, raw, "n, h, i, j");
    if (a->cap > 0) {
        const char *cap = literal_real(m->arena, a->soft, a->cap);
        GraphValue *capped = part(m, a->q, "capped");
        define(m, capped, a->soft, &s.shape, "nhij", fmt(m, "%s * tanh(%s / %s)", cap, s.raw, cap));
        s.capped = at(m, capped, "n, h, i, j");
    }
    const char *condition = takes_part(m, a);
    bool adds = a->mask && a->mask->type != DTYPE_B1;
    s.masked = adds ? fmt(m, "%s + %s", s.capped, mask_at(m, a)) : s.capped;
    if (*condition)
        s.masked = fmt(m, "select(%s, %s, -inf)", condition, s.masked);
    if (adds || *condition) {
        GraphValue *masked = part(m, a->q, "masked");
        define(m, masked, a->soft, &s.shape, "nhij", s.masked);
        s.masked = at(m, masked, "n, h, i, j");
    }
    return s;
}

/* Shares of the keys of each query; none of a query without keys. */
static const GraphValue *define_shares(Map *m, const AttentionNode *a, const Scores *s)
{
    GraphValue *largest = part(m, a->q, "max"), *power = part(m, a->q, "exp"), *sum = part(m, a->q, "sum"),
               *share = part(m, a->q, "share");
    Dims rows = {3, {a->batch, a->heads, a->queries}};
    int64_t total = s->shape.size[3];
    define(m, largest, a->soft, &rows, "nhi", fmt(m, "max[j:%" PRId64 "](%s)", total, s->masked));
    const char *row = at(m, largest, "n, h, i");
    define(m, power, a->soft, &s->shape, "nhij", fmt(m, "exp(%s - %s)", s->masked, row));
    const char *element = at(m, power, "n, h, i, j");
    define(m, sum, a->soft, &rows, "nhi", fmt(m, "sum[j:%" PRId64 "](%s)", total, element));
    const char *part_of = fmt(m, "%s / %s", element, at(m, sum, "n, h, i"));
    define(m, share, a->q->type, &s->shape, "nhij",
           a->may_be_empty ? fmt(m, "select(%s == -inf, 0, %s)", row, part_of) : part_of);
    return share;
}

static void define_debug_output(Map *m, const AttentionNode *a, const Scores *s, const GraphValue *share)
{
    int64_t mode = attribute_int(m, "qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3)
        refuse(m, "qk_matmul_output_mode %" PRId64, mode);
    define(m, out(m, 3), a->q->type, &s->shape, "nhij",
           mode == 0   ? s->raw
           : mode == 1 ? s->capped
           : mode == 2 ? s->masked
                       : at(m, share, "n, h, i, j"));
}

void map_attention(Map *m)
{
    AttentionNode a = read_attention(m);
    comment(m, "%" PRId64 " heads of %" PRId64 "%s", a.heads, a.size, a.causal ? ", causal" : "");
    const GraphValue *keys = NULL, *values = NULL;
    if (a.past || out(m, 1))
        keys =
            define_present(m, &a, out(m, 1) ? out(m, 1) : part(m, a.k, "present"), a.past_key, a.k, a.size);
    if (a.past || out(m, 2))
        values = define_present(m, &a, out(m, 2) ? out(m, 2) : part(m, a.v, "present"), a.past_value, a.v,
                                a.value_size);
    Scores scores = define_scores(m, &a, keys);
    const GraphValue *share = define_shares(m, &a, &scores);
    if (out(m, 3))
        define_debug_output(m, &a, &scores, share);
    if (!out(m, 0))
        return;
    const char *sum = fmt(m, "sum[j:%" PRId64 "](%s * %s)", a.past + a.keys, at(m, share, "n, h, i, j"),
                          at_present(m, &a, values, a.v, 'd', a.value_size));
    if (!a.flat) {
        define(m, out(m, 0), a.q->type, &(Dims){4, {a.batch, a.heads, a.queries, a.value_size}}, "nhid", sum);
        return;
    }
    GraphValue *split = part(m, out(m, 0), "heads");
    define(m, split, a.q->type, &(Dims){4, {a.batch, a.queries, a.heads, a.value_size}}, "nihd", sum);
    view_as(m, out(m, 0), split, &(Dims){3, {a.batch, a.queries, a.heads * a.value_size}});
}

// ---- rotary embeddings ----

typedef struct Rotary {
    const GraphValue *positions;
    int64_t size, turned;   // units of a head, and how many of them are rotated
    bool interleaved;
} Rotary;

/* An element of the table of sines or cosines for unit d. */
static const char *at_angle(const Map *m, const Rotary *r, const GraphValue *table)
{
    int64_t half = r->turned / 2;
    const char *unit = r->turned == r->size ? "d" : fmt(m, "(d%%%" PRId64 ")", r->turned);
    const char *angle = half == 1        ? "0"
                        : r->interleaved ? fmt(m, "%s/2", unit)
                                         : fmt(m, "%s%%%" PRId64, unit, half);
    return r->positions ? at(m, table, fmt(m, "%s, %s", at(m, r->positions, "n, i"), angle))
                        : at(m, table, fmt(m, "n, i, %s", angle));
}

static void check_rotary(const Map *m, const Rotary *r, const GraphValue *table, int64_t batch, int64_t steps)
{
    const Dims *shape = &table->shape;
    bool fits = r->positions
                    ? shape->rank == 2 && r->positions->shape.rank == 2 &&
                          r->positions->shape.size[0] == batch && r->positions->shape.size[1] == steps
                    : shape->rank == 3 && shape->size[0] == batch && shape->size[1] == steps;
    if (!fits || shape->size[shape->rank - 1] != r->turned / 2 || r->turned < 2 || r->turned % 2 ||
        r->turned > r->size)
        refuse(m, "a table of angles %s for %" PRId64 " of %" PRId64 " units", shape_text(m->arena, shape),
               r->turned, r->size);
}

void map_rotary_embedding(Map *m)
{
    const GraphValue *x = need(m, 0), *cosines = need(m, 1), *sines = need(m, 2), *split = x;
    bool flat = x->shape.rank == 3;
    if (!flat && x->shape.rank != 4)
        refuse(m, "a tensor of %d dimensions", x->shape.rank);
    int64_t heads = heads_of(m, x, "num_heads", flat);
    Rotary r = {maybe(m, 3), flat ? x->shape.size[2] / heads : x->shape.size[3],
                attribute_int(m, "rotary_embedding_dim", 0), attribute_int(m, "interleaved", 0) != 0};
    r.turned = r.turned ? r.turned : r.size;
    int64_t steps = x->shape.size[flat ? 1 : 2];
    check_rotary(m, &r, cosines, x->shape.size[0], steps);
    check_rotary(m, &r, sines, x->shape.size[0], steps);
    Dims shape = flat ? (Dims){4, {x->shape.size[0], steps, heads, r.size}} : x->shape;
    const char *letters = flat ? "nihd" : "nhid", *point = flat ? "n, i, h" : "n, h, i";
    if (flat) {
        GraphValue *view = part(m, x, "heads");
        view_as(m, view, x, &shape);
        split = view;
    }
    const char *other =
        r.interleaved ? "d/2*2 + (d + 1)%2" : fmt(m, "(d + %" PRId64 ")%%%" PRId64, r.turned / 2, r.turned);
    const char *sign = r.interleaved ? "d % 2 == 0" : fmt(m, "d < %" PRId64, r.turned / 2);
    const char *element = at(m, split, fmt(m, "%s, d", point));
    bool whole = r.turned == r.size;
    const char *places = fmt(m, "%s, %s", point, other);
    const char *partner = whole || !r.interleaved ? at(m, split, places) : at_padded(m, split, places, "0");
    const char *turned = fmt(m, "%s * %s + select(%s, -1, 1) * %s * %s", element, at_angle(m, &r, cosines),
                             sign, partner, at_angle(m, &r, sines));
    if (!whole)
        turned = fmt(m, "select(d < %" PRId64 ", %s, %s)", r.turned, turned, element);
    GraphValue *value = flat ? part(m, out(m, 0), "turned") : out(m, 0);
    define(m, value, x->type, &shape, letters, turned);
    if (flat)
        view_as(m, out(m, 0), value, &x->shape);
}
