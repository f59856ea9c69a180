#include "front/onnx/precision.h"

#include <math.h>
#include <string.h>

#include "base/diag.h"
#include "front/onnx/draft_parts.h"
#include "front/onnx/formula.h"
#include "front/onnx/names.h"
#include "ir/eval.h"

typedef struct PrecisionPass {
    Draft *draft;
    DType narrow, io;     // f32: nothing is rounded
    StatementList body;   // as it is written anew
    NameTable rounded;    // Home: of inputs and outputs, the rounded ones that products read
    const Statement *at_hand;
} PrecisionPass;

static double largest(DType type)
{
    return type == DTYPE_F16 ? 65504 : type == DTYPE_BF16 ? 0x1.FEp127 : INFINITY;
}

static FormulaKind kind_of(const PrecisionPass *p, const Statement *s)
{
    return formula_kind(s->expr, largest(p->narrow));
}

// ---- what is known of each tensor ----

static void fix_list(const StatementList *list, bool fixed)
{
    for (int i = 0; i < list->count; i++) {
        list->items[i]->lowers = list->items[i]->type == DTYPE_F32;
        list->items[i]->fixed = fixed;
    }
}

/* Outputs, and what they are views of. */
static void fix_outputs(const Draft *draft)
{
    for (int i = 0; i < draft->outputs.count; i++) {
        Statement *s = draft_statement(draft, draft->outputs.items[i]->name);
        for (s->fixed = true; s->kind == STATEMENT_VIEW; s->fixed = true)
            s = draft_statement(draft, s->of);
    }
}

static void find_readers(const Statement *s)
{
    for (int r = 0; r < s->read_count; r++) {
        s->reads[r]->shared |= s->reads[r]->reader && s->reads[r]->reader != s;
        s->reads[r]->reader = s;
    }
}

/* From the last statement on: what reads a tensor stands behind it. */
static void find_wanted(const PrecisionPass *p)
{
    for (int i = p->draft->body.count; i-- > 0;) {
        const Statement *s = p->draft->body.items[i];
        find_readers(s);
        FormulaKind kind = s->kind == STATEMENT_VIEW ? FORMULA_MOVE : kind_of(p, s);
        bool wants =
            (kind == FORMULA_PRODUCT && s->lowers) || (kind == FORMULA_MOVE && s->wanted && !s->fixed);
        for (int r = 0; r < s->read_count && wants; r++)
            s->reads[r]->wanted = true;
    }
}

static bool is_whole(DType type) { return !dtype_info[type].is_real && type != DTYPE_B1; }

static bool is_vector(const Dims *shape)
{
    int larger = 0;
    for (int d = 0; d < shape->rank; d++)
        larger += shape->size[d] > 1;
    return larger < 2;
}

/* A norm's scale, say, which is a weight but for its making. */
static bool is_settled(const Statement *s)
{
    bool settled = s->read_count > 0;
    for (int r = 0; r < s->read_count; r++)
        settled &= s->reads[r]->kind == STATEMENT_WEIGHT || s->reads[r]->settled;
    return settled;
}

static bool is_fine(const PrecisionPass *p, const Statement *s)
{
    FormulaKind kind = s->kind == STATEMENT_VIEW ? FORMULA_MOVE : kind_of(p, s);
    bool fine = (kind == FORMULA_FINE && !s->slides) || (s->settled && is_vector(&s->shape));
    for (int r = 0; r < s->read_count && kind != FORMULA_PRODUCT; r++)
        fine |= (s->reads[r]->fine && !s->reads[r]->settled) ||
                (kind == FORMULA_POINT && is_whole(s->reads[r]->type));
    return fine && !s->wanted;
}

/* A step of a formula that is several nodes: nobody else reads it, and it is in no memory. */
static bool is_passing(const PrecisionPass *p, const Statement *s)
{
    return s->kind == STATEMENT_DEFINE && kind_of(p, s) == FORMULA_POINT && s->reader && !s->shared &&
           !s->wanted && s->reader->kind == STATEMENT_DEFINE && kind_of(p, s->reader) == FORMULA_POINT &&
           shape_count(&s->reader->shape) == shape_count(&s->shape);
}

// ---- types ----

static DType type_of(const PrecisionPass *p, const Statement *s)
{
    if (s->fixed)
        return p->io;
    if (s->kind == STATEMENT_VIEW)
        return s->reads[0]->type;
    return s->fine || is_passing(p, s) ? DTYPE_F32 : p->narrow;
}

static bool reads_other(const Statement *s)
{
    bool other = false;
    for (int r = 0; r < s->read_count; r++)
        other |= s->reads[r]->lowers && s->reads[r]->type != s->type;
    return other;
}

/* Must the type be written? An access has that of what it reads; everything else is f32 by itself. */
static bool is_stated(const PrecisionPass *p, const Statement *s)
{
    if (s->type != DTYPE_F32)
        return !formula_is_access(s->expr) || reads_other(s);
    return s->stated || (kind_of(p, s) == FORMULA_MOVE && reads_other(s));
}

// ---- weights ----

/* Number of elements that are finite in the model and would not be any more. */
static int64_t count_beyond(const GraphValue *value, DType narrow)
{
    const float *data = value->data;
    double most =
        largest(narrow) * (narrow == DTYPE_F16 ? 1 + 0x1p-12 : 1 + 0x1p-9);   // half a unit above it
    int64_t count = 0;
    for (int64_t i = 0, end = shape_count(&value->shape); i < end; i++)
        count += isfinite(data[i]) && fabs((double)data[i]) >= most;
    return count;
}

static void lower_weights(const PrecisionPass *p)
{
    for (int i = 0; i < p->draft->weights.count; i++) {
        Statement *s = p->draft->weights.items[i];
        if (!s->lowers || (!s->fixed && is_vector(&s->shape)))
            continue;
        DType type = s->fixed ? p->io : p->narrow;
        int64_t beyond = type == DTYPE_F32 ? 0 : count_beyond(s->weight, type);
        if (beyond && !s->fixed)
            diag_warning((Loc){0}, "weight '%s' stays f32: %lld of its elements are beyond %s",
                         s->weight->name, (long long)beyond, dtype_info[type].name);
        else
            s->type = type;
    }
}

// ---- definitions ----

static Statement *put(PrecisionPass *p, Statement given)
{
    Statement *statement = NEW(p->draft->arena, Statement);
    *statement = given;
    statement->live = true;
    statement_append(p->draft->arena, &p->body, statement);
    draft_declare(p->draft, statement);
    return statement;
}

/* `x_f16[i, j] : f16 = x[i, j]` */
static const Home *round_for_product(PrecisionPass *p, const Statement *s)
{
    const Home *there = name_table_find(&p->rounded, s->name);
    if (there)
        return there;
    Arena *arena = p->draft->arena;
    Home *home = NEW(arena, Home);
    home->name =
        names_take(p->draft->taken, arena_printf(arena, "%s_%s", s->name, dtype_info[p->narrow].name), NULL);
    put(p, (Statement){.kind = STATEMENT_DEFINE,
                       .comment = p->at_hand->comment,
                       .name = home->name,
                       .shape = s->shape,
                       .type = p->narrow,
                       .stated = true,
                       .axes = arena_strndup(arena, plain_axes, (size_t)s->shape.rank),
                       .expr = plain_access(arena, s->name, s->shape.rank)});
    name_table_set(&p->rounded, s->name, home);
    return home;
}

/* Inputs and outputs of f32 are read rounded. */
static const Home *home_for(void *context, const char *name)
{
    PrecisionPass *p = context;
    const Statement *s = draft_statement(p->draft, name), *of = s;
    while (of && of->kind == STATEMENT_VIEW)
        of = draft_statement(p->draft, of->of);
    bool rounds = s && s->lowers && s->type == DTYPE_F32 && of->fixed && of->kind != STATEMENT_WEIGHT;
    return rounds ? round_for_product(p, s) : NULL;
}

static void lower_define(PrecisionPass *p, Statement *s)
{
    if (s->lowers && p->narrow != DTYPE_F32 && kind_of(p, s) == FORMULA_PRODUCT)
        s->expr = access_rewrite(p->draft->arena, s->expr, home_for, p, "", NULL);
    if (s->lowers)
        s->stated = is_stated(p, s);
}

static void lower_body(PrecisionPass *p)
{
    for (int i = 0; i < p->draft->body.count; i++) {
        Statement *s = p->draft->body.items[i];
        p->at_hand = s;
        s->settled = is_settled(s);
        s->fine = s->lowers && is_fine(p, s);
        if (s->lowers)
            s->type = type_of(p, s);
        if (s->kind == STATEMENT_DEFINE)
            lower_define(p, s);
        statement_append(p->draft->arena, &p->body, s);
    }
}

static DType known(DType type) { return type == DTYPE_F16 || type == DTYPE_BF16 ? type : DTYPE_F32; }

void precision_lower(Draft *draft, DType narrow, DType io)
{
    PrecisionPass p = {
        .draft = draft, .narrow = known(narrow), .io = known(io), .rounded = name_table_new(draft->arena)};
    if (p.narrow == DTYPE_F32 && p.io == DTYPE_F32)
        return;
    draft_prune(draft);
    fix_list(&draft->inputs, true);
    fix_list(&draft->weights, false);
    fix_list(&draft->body, false);
    fix_outputs(draft);
    if (p.narrow != DTYPE_F32)
        find_wanted(&p);
    for (int i = 0; i < draft->inputs.count; i++)
        if (draft->inputs.items[i]->lowers)
            draft->inputs.items[i]->type = p.io;
    lower_weights(&p);
    lower_body(&p);
    draft->body = p.body;
    for (int i = 0; i < draft->body.count; i++)
        draft_set_reads(draft, draft->body.items[i]);
}
