#include "front/onnx/layout.h"

#include <ctype.h>
#include <string.h>

#include "front/onnx/draft_parts.h"
#include "front/onnx/groups.h"
#include "front/onnx/names.h"
#include "front/onnx/order.h"

/* Where a tensor of the graph lies: under its own order, or also, or only, in others. */
typedef struct HomeList HomeList;
struct HomeList {
    Home home;
    HomeList *next;
};

typedef struct LayoutPass {
    Draft *draft;
    StatementList body;     // as it is written anew
    NameTable places;       // HomeList, of tensors that have others than their own
    NameTable shapes;       // Dims in the graph's order, of the tensors of `places`
    NameTable outputs;      // names of the model's outputs
    bool every, narrowed;   // every type; f32 will be of 16 bits
    const Statement *at_hand;
    StorageOrder order;   // that it gets
} LayoutPass;

static bool may_lie_last(const LayoutPass *l, DType type, int rank)
{
    bool narrow = type == DTYPE_F16 || type == DTYPE_BF16 || (type == DTYPE_F32 && l->narrowed);
    return rank >= 3 && rank <= 5 && (l->every || narrow);
}

// ---- places ----

static const Dims *shape_in_graph(const LayoutPass *l, const char *name)
{
    const Dims *shape = name_table_find(&l->shapes, name);
    return shape ? shape : &draft_statement(l->draft, name)->shape;
}

static const Home *first_home(const LayoutPass *l, const char *name)
{
    const HomeList *place = name_table_find(&l->places, name);
    return place ? &place->home : NULL;
}

static const Home *home_in(const LayoutPass *l, const char *name, const StorageOrder *order)
{
    for (const HomeList *place = name_table_find(&l->places, name); place; place = place->next)
        if (order_equal(&place->home.order, order))
            return &place->home;
    return NULL;
}

static const Home *add_home(LayoutPass *l, const char *name, const Dims *shape, Home home)
{
    Arena *arena = l->draft->arena;
    HomeList *place = NEW(arena, HomeList), *last = name_table_find(&l->places, name);
    place->home = home;
    if (!last) {
        Dims *kept = NEW(arena, Dims);
        *kept = *shape;
        name_table_set(&l->shapes, name, kept);
        name_table_set(&l->places, name, place);
        return &place->home;
    }
    while (last->next)
        last = last->next;
    last->next = place;
    return &place->home;
}

static const char *moved_name(LayoutPass *l, const char *name, const StorageOrder *order)
{
    static const char *const last[] = {[3] = "nwc", [4] = "nhwc", [5] = "ndhwc"};
    StorageOrder channels = order_channels_last(order->rank);
    const char *suffix = !order_is_moved(order) ? "in_order"
                         : order->rank >= 3 && order->rank <= 5 && order_equal(order, &channels)
                             ? last[order->rank]
                             : "permuted";
    return names_take(l->draft->taken, arena_printf(l->draft->arena, "%s_%s", name, suffix), NULL);
}

// ---- statements ----

static Statement *put(LayoutPass *l, Statement given)
{
    Statement *statement = NEW(l->draft->arena, Statement);
    *statement = given;
    statement->live = true;
    statement_append(l->draft->arena, &l->body, statement);
    draft_declare(l->draft, statement);
    return statement;
}

static const char *list_of(Arena *arena, const char *letters)
{
    StrBuf out = strbuf_new(arena);
    for (int d = 0; letters[d]; d++)
        strbuf_printf(&out, "%s%c", d ? ", " : "", letters[d]);
    return out.text;
}

/* Letters of the graph's dimensions: those that windows have for a feature map, else plain ones, in order
   where the copy is defined. */
static const char *letters_for(Arena *arena, const StorageOrder *from, const StorageOrder *to, int rank)
{
    static const char *const features[] = {[3] = "nch", [4] = "nchv", [5] = "ncdhv"};
    const StorageOrder *moved = order_is_moved(to) ? to : from;
    StorageOrder channels = order_channels_last(rank);
    if (rank >= 3 && rank <= 5 && order_equal(moved, &channels))
        return features[rank];
    char *letters = arena_strndup(arena, plain_axes, (size_t)rank);
    for (int p = 0; p < to->rank; p++)
        letters[to->at[p]] = plain_axes[p];
    return letters;
}

/* `name` = the tensor of another order; where both lie alike the same memory. */
static void put_copy(LayoutPass *l, const char *name, const Dims *shape, const Home *from,
                     const StorageOrder *order, const char *comment)
{
    Arena *arena = l->draft->arena;
    DType type = draft_statement(l->draft, from->name)->type;
    Dims stored = order_shape(shape, order);
    Statement copy = {.kind = STATEMENT_VIEW,
                      .comment = comment,
                      .name = name,
                      .shape = stored,
                      .type = type,
                      .of = from->name};
    if (!order_lies_as_is(order, shape) || !order_lies_as_is(&from->order, shape)) {
        const char *letters = letters_for(arena, &from->order, order, shape->rank);
        copy.kind = STATEMENT_DEFINE;
        copy.axes = order_text(arena, letters, order);
        copy.expr = arena_printf(arena, "%s[%s]", from->name,
                                 list_of(arena, order_text(arena, letters, &from->order)));
        copy.is_border = true;
    }
    put(l, copy);
}

/* The tensor in that order, copied where it does not lie so yet. */
static const Home *copied(LayoutPass *l, const char *name, const StorageOrder *order)
{
    const Home *there = home_in(l, name, order);
    if (there)
        return there;
    const Dims *shape = shape_in_graph(l, name);
    const Home *first = first_home(l, name);
    Home own = {name, {0}};
    if (!first)
        first = add_home(l, name, shape, own);
    if (order_equal(&first->order, order))
        return first;
    Home home = {moved_name(l, name, order), *order};
    put_copy(l, home.name, shape, first, order, l->at_hand->comment);
    return add_home(l, name, shape, home);
}

// ---- definitions ----

/* Where the access that the definition at hand makes shall read. */
static const Home *home_for(void *context, const char *name)
{
    LayoutPass *l = context;
    const Statement *statement = draft_statement(l->draft, name);
    const Dims *shape = statement ? shape_in_graph(l, name) : NULL;
    if (!statement)
        return NULL;
    bool over = l->at_hand->slides && shape->rank == l->at_hand->shape.rank &&
                statement->kind != STATEMENT_WEIGHT && may_lie_last(l, statement->type, shape->rank);
    StorageOrder last = order_channels_last(shape->rank);
    const Home *alike = home_in(l, name, &l->order);
    return over ? copied(l, name, &last) : alike ? alike : first_home(l, name);
}

/* Letters of the definition that stand in the place, behind those found before. */
static void add_letters(const char *place, const char *axes, char *found)
{
    for (const char *c = place; *c; c++) {
        bool alone = !(c > place && (isalnum((unsigned char)c[-1]) || c[-1] == '_')) &&
                     !isalnum((unsigned char)c[1]) && c[1] != '_' && c[1] != '[';
        if (alone && strchr(axes, *c) && !strchr(found, *c))
            found[strlen(found)] = *c;
    }
}

/* The order in which the letters of the definition run through the access; those of size 1 where the tensor
   has theirs. False: one that is larger does not stand there. */
static bool order_along(const LayoutPass *l, const Statement *s, const Bracket *access, const Home *home,
                        StorageOrder *order)
{
    char found[MAX_RANK + 2] = {0};
    for (int p = 0; p < home->order.rank; p++)
        add_letters(access_place(l->draft->arena, access, home->order.at[p]), s->axes, found);
    *order = (StorageOrder){s->shape.rank, {0}};
    int count = 0;
    for (const char *c = found; *c; c++)
        order->at[count++] = (int)(strchr(s->axes, *c) - s->axes);
    for (int d = 0; d < s->shape.rank; d++) {
        if (strchr(found, s->axes[d]))
            continue;
        if (s->shape.size[d] > 1)
            return false;
        order->at[count++] = d;
    }
    return true;
}

/* That of what it reads, if that lies in another order than the graph's. */
static StorageOrder order_followed(const LayoutPass *l, const Statement *s)
{
    Bracket access;
    for (const char *at = s->expr, *end = at + strlen(at); bracket_next(&at, end, &access);) {
        const char *name = arena_strndup(l->draft->arena, access.name, access.length);
        const Home *home = bracket_is_reduction(&access) ? NULL : first_home(l, name);
        StorageOrder order;
        if (!home || !order_is_moved(&home->order) || !order_along(l, s, &access, home, &order))
            continue;
        if (home->order.rank == s->shape.rank && order_alike(&home->order, &order, &s->shape))
            return home->order;
        return order_lies_as_is(&order, &s->shape) ? (StorageOrder){0} : order;
    }
    return (StorageOrder){0};
}

/* `t[i, j, k, l] = x[i, k, l, j]`, x in the graph's order: channels-last t lies as x does, and is no copy. */
static bool is_turned_back(const LayoutPass *l, const Statement *s)
{
    Bracket access;
    const char *at = s->expr;
    bool moves = may_lie_last(l, s->type, s->shape.rank) && bracket_next(&at, at + strlen(at), &access) &&
                 access.name == s->expr && access.close[1] == '\0';
    const char *name = moves ? arena_strndup(l->draft->arena, access.name, access.length) : "";
    const Statement *read = draft_statement(l->draft, name);
    if (!moves || !read || read->shape.rank != s->shape.rank || first_home(l, name))
        return false;
    StorageOrder order, last = order_channels_last(s->shape.rank);
    Home own = {name, {s->shape.rank, {0}}};
    for (int d = 0; d < own.order.rank; d++)
        own.order.at[d] = d;
    return order_along(l, s, &access, &own, &order) && order_equal(&order, &last);
}

static StorageOrder order_of(const LayoutPass *l, const Statement *s)
{
    if (s->is_border)
        return (StorageOrder){0};
    if (is_turned_back(l, s))
        return order_channels_last(s->shape.rank);
    if (s->slides && may_lie_last(l, s->type, s->shape.rank))
        return order_channels_last(s->shape.rank);
    return order_followed(l, s);
}

/* `t[i, k, j] = x[i, k, j]`, where x lies so, is x. */
static bool only_renames(const LayoutPass *l, const Statement *s, const Dims *of)
{
    const char *places = list_of(l->draft->arena, s->axes);
    Bracket access;
    const char *at = s->expr;
    return bracket_next(&at, at + strlen(at), &access) && access.name == s->expr && access.close[1] == '\0' &&
           strlen(places) == (size_t)(access.close - access.inside) &&
           memcmp(places, access.inside, strlen(places)) == 0 && shape_equal(of, &s->shape);
}

static void rename_only(const LayoutPass *l, Statement *s)
{
    const char *bracket = strchr(s->expr, '['),
               *of = bracket ? arena_strndup(l->draft->arena, s->expr, (size_t)(bracket - s->expr)) : "";
    const Statement *read = draft_statement(l->draft, of);
    if (read && read->type == s->type && only_renames(l, s, &read->shape)) {
        s->kind = STATEMENT_VIEW;
        s->of = of;
    }
}

static void rewrite_define(LayoutPass *l, const Statement *s, const StorageOrder *order, const char *name)
{
    Arena *arena = l->draft->arena;
    Statement moved = *s;
    // Plain letters are given anew, so that they are in order where the reader begins.
    bool plain = strncmp(s->axes, plain_axes, (size_t)s->shape.rank) == 0 && order_is_moved(order);
    const char *axes = order_text(arena, s->axes, order);
    l->order = *order;
    moved.name = name;
    moved.shape = order_shape(&s->shape, order);
    moved.axes = plain ? s->axes : axes;
    moved.expr = access_rewrite(arena, s->expr, home_for, l, axes, plain ? s->axes : NULL);
    if (strcmp(moved.expr, s->expr) != 0)
        rename_only(l, &moved);
    put(l, moved);
}

// ---- views ----

/* A view of the tensor as it lies; where its dimensions cannot be merged so, of a copy in which they can. */
static void rewrite_view(LayoutPass *l, const Statement *s, const char *name)
{
    const Home *of = first_home(l, s->of);
    const Dims *shape = shape_in_graph(l, s->of);
    ViewGroup groups[MAX_GROUPS];
    int sorted[MAX_GROUPS], count = view_groups(shape, &s->shape, groups);
    view_groups_sort(groups, count, &of->order, shape, sorted);
    StorageOrder grouped = view_groups_order(groups, sorted, count, false, shape->rank);
    if (!order_alike(&of->order, &grouped, shape)) {
        if (order_lies_as_is(&grouped, shape))
            grouped = (StorageOrder){0};
        of = copied(l, s->of, &grouped);
    }
    StorageOrder order = view_groups_order(groups, sorted, count, true, s->shape.rank),
                 last = order_channels_last(s->shape.rank);
    if (order_is_moved(&of->order) && s->shape.rank == shape->rank && s->shape.rank >= 3 &&
        order_alike(&last, &order, &s->shape))
        order = last;
    if (order_lies_as_is(&order, &s->shape))
        order = (StorageOrder){0};
    Statement moved = *s;
    moved.of = of->name;
    moved.name = order_is_moved(&order) ? name : s->name;
    moved.shape = order_shape(&s->shape, &order);
    put(l, moved);
    if (order_is_moved(&order))
        add_home(l, s->name, &s->shape, (Home){moved.name, order});
}

// ---- the draft ----

static bool is_output(const LayoutPass *l, const char *name)
{
    return name_table_find(&l->outputs, name) != NULL;
}

/* Under another name where the model's own order must be there under its own. */
static const char *inner_name(LayoutPass *l, const char *name, const StorageOrder *order)
{
    return is_output(l, name) ? moved_name(l, name, order) : name;
}

static void arrange_define(LayoutPass *l, const Statement *s)
{
    StorageOrder order = order_of(l, s);
    if (!order_is_moved(&order)) {
        rewrite_define(l, s, &order, s->name);
        return;
    }
    const char *name = inner_name(l, s->name, &order);
    rewrite_define(l, s, &order, name);
    add_home(l, s->name, &s->shape, (Home){name, order});
}

static void arrange_statement(LayoutPass *l, const Statement *s)
{
    l->at_hand = s;
    const Home *of = s->kind == STATEMENT_VIEW ? first_home(l, s->of) : NULL;
    if (s->kind == STATEMENT_DEFINE) {
        arrange_define(l, s);
    } else if (of && order_is_moved(&of->order)) {
        StorageOrder last = order_channels_last(s->shape.rank);
        rewrite_view(l, s, inner_name(l, s->name, &last));
    } else {
        put(l, *s);
    }
}

/* Of weights: names of those that something else reads than a window that slides over what has as many
   dimensions. */
static NameTable read_otherwise(const LayoutPass *l)
{
    NameTable found = name_table_new(l->draft->arena);
    for (int i = 0; i < l->draft->body.count; i++) {
        const Statement *s = l->draft->body.items[i];
        for (int r = 0; r < s->read_count; r++)
            if (s->kind != STATEMENT_DEFINE || !s->slides || s->shape.rank != s->reads[r]->shape.rank)
                name_table_set(&found, s->reads[r]->name, s->reads[r]);
    }
    return found;
}

/* A filter of each channel alone has the channels last: adjacent threads read adjacent elements. */
static StorageOrder filter_order(const Dims *shape)
{
    StorageOrder order = order_channels_last(shape->rank);
    if (shape->size[1] == 1)
        for (int p = 0; p < shape->rank; p++)
            order.at[p] = (p + 1) % shape->rank;
    return order;
}

static void turn_filters(LayoutPass *l)
{
    NameTable others = read_otherwise(l);
    for (int i = 0; i < l->draft->weights.count; i++) {
        Statement *weight = l->draft->weights.items[i];
        Dims shape = weight->shape;
        if (name_table_find(&others, weight->name) || !may_lie_last(l, weight->type, shape.rank))
            continue;
        StorageOrder order = filter_order(&shape);
        add_home(l, weight->name, &shape, (Home){weight->name, order});
        weight->order = order;
        weight->shape = order_shape(&shape, &order);
        draft_declare(l->draft, weight);
    }
}

/* Outputs as the model has them. */
static void restore_outputs(LayoutPass *l)
{
    for (int i = 0; i < l->draft->outputs.count; i++) {
        const char *name = l->draft->outputs.items[i]->name;
        const Home *home = first_home(l, name);
        StorageOrder own = {0};
        if (home && order_is_moved(&home->order) && !home_in(l, name, &own)) {
            put_copy(l, name, shape_in_graph(l, name), home, &own, "outputs in the model's order");
            add_home(l, name, shape_in_graph(l, name), (Home){name, own});
        }
    }
}

static void set_all_reads(Draft *draft)
{
    for (int i = 0; i < draft->body.count; i++)
        draft_set_reads(draft, draft->body.items[i]);
    for (int i = 0; i < draft->outputs.count; i++)
        draft_set_reads(draft, draft->outputs.items[i]);
}

void layout_arrange(Draft *draft, OnnxLayout layout, bool narrowed)
{
    if (layout == ONNX_LAYOUT_NCHW)
        return;
    draft_prune(draft);
    Arena *arena = draft->arena;
    LayoutPass l = {.draft = draft,
                    .places = name_table_new(arena),
                    .shapes = name_table_new(arena),
                    .outputs = name_table_new(arena),
                    .every = layout == ONNX_LAYOUT_NHWC,
                    .narrowed = narrowed};
    for (int i = 0; i < draft->outputs.count; i++)
        name_table_set(&l.outputs, draft->outputs.items[i]->name, draft->outputs.items[i]);
    turn_filters(&l);
    for (int i = 0; i < draft->body.count; i++)
        arrange_statement(&l, draft->body.items[i]);
    restore_outputs(&l);
    draft->body = l.body;
    set_all_reads(draft);
}
