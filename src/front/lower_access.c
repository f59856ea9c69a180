// Elements of tensors: which one an access reads, and whether its indices stay inside.
#include <inttypes.h>

#include "base/checked.h"
#include "front/lower_parts.h"
#include "ir/eval.h"

// ---- bounds ----

/* |constant| + sum of |coefficient| * extent: further than the index ever gets from 0. */
static bool index_reach(const IndexScope *scope, const Affine *index, int64_t *reach)
{
    if (index->constant == INT64_MIN)
        return false;
    *reach = index->constant < 0 ? -index->constant : index->constant;
    for (int a = 0; a < scope->count; a++) {
        int64_t term;
        if (!checked_mul(index->coef[a], scope->extents[a], &term) || term == INT64_MIN ||
            !checked_add(*reach, term < 0 ? -term : term, reach))
            return false;
    }
    return true;
}

/* Even where a pad hides it, the flat offset of what an access would read has to fit in 64 bits. */
static void expect_reachable(const Lower *lower, const Access *access, Loc loc)
{
    int64_t total = 0, stride = 1;
    for (int d = access->rank - 1; d >= 0; d--) {
        int64_t reach;
        if (!index_reach(&lower->scope, &access->dims[d].index, &reach) ||
            !checked_mul(reach, stride, &reach) || !checked_add(total, reach, &total))
            reject(loc, "an index reaches too far outside '%s' for 64-bit arithmetic", access->tensor->name);
        stride *= access->dims[d].size;
    }
}

const Symbol *accessed(const Lower *lower, const AstExpr *access)
{
    const Symbol *symbol = tensor_symbol(lower, access->access.name, access->loc);
    const Tensor *tensor = symbol->tensor;
    if (access->access.count != tensor->rank)
        reject(access->loc, "'%s' has %d dimension%s, saw %d %s", tensor->name, tensor->rank,
               tensor->rank == 1 ? "" : "s", access->access.count,
               access->access.count == 1 ? "index" : "indices");
    return symbol;
}

// ---- an element under construction ----

/* What an access becomes: its dimensions, the places that are computed, and what has to hold for it to be
   read. */
typedef struct Element {
    Lower *lower;
    const AstExpr *access;
    const Tensor *seen;   // in these dimensions
    bool padded;          // what lies outside is `pad`'s constant
    Dim dims[MAX_RANK];
    FetchPlace places[MAX_RANK];
    int place_count;
    Dim bounds[MAX_RANK];   // of indices that can leave the tensor
    int bound_count;
    Expr *inside;   // the same of places, a condition; NULL: all are inside
} Element;

static Expr *constant(const Element *element, DType type, int64_t value)
{
    Expr *expr = NEW(element->lower->arena, Expr);
    *expr = (Expr){.kind = EXPR_CONST, .type = type, .loc = element->access->loc};
    expr->constant.integer = value;
    return expr;
}

static Expr *apply(const Element *element, Op op, DType type, Expr *a, Expr *b)
{
    return expr_apply(element->lower->arena, op, type, a, b, NULL);
}

static Expr *clamped(const Element *element, Expr *value, int64_t low, int64_t high)
{
    DType type = value->type;
    Expr *raised = apply(element, OP_MAX, type, value, constant(element, type, low));
    return apply(element, OP_MIN, type, raised, constant(element, type, high));
}

static void expect_between(Element *element, Expr *value, int64_t low, int64_t high)
{
    Expr *above = apply(element, OP_GE, DTYPE_B1, value, constant(element, value->type, low));
    Expr *below = apply(element, OP_LE, DTYPE_B1, value, constant(element, value->type, high));
    Expr *between = apply(element, OP_AND, DTYPE_B1, above, below);
    element->inside = element->inside ? apply(element, OP_AND, DTYPE_B1, element->inside, between) : between;
}

static void add_place(Element *element, int d, Expr *value)
{
    int64_t stride = 1;
    for (int inner = d + 1; inner < element->seen->rank; inner++)
        stride *= element->seen->shape[inner];
    element->places[element->place_count++] = (FetchPlace){value, stride};
}

const char *read_of_only(const Lower *lower, const AstExpr *access, int dimension)
{
    Loc whole = access->loc, index = access->access.indices[dimension]->loc;
    const char *text = whole.source->text, *behind = text + index.offset + index.length;
    return arena_printf(lower->arena, "%.*s0%.*s", (int)(index.offset - whole.offset), text + whole.offset,
                        (int)(text + whole.offset + whole.length - behind), behind);
}

static const char *mend_of_outside(const Element *element, int d)
{
    if (element->seen->shape[d] > 1 && element->lower->index_depth)
        return "define the padded element, as in j[t] = pad(..., 0), and read x[j[t]]";
    if (element->seen->shape[d] > 1)
        return "wrap the access in pad(..., 0)";
    return arena_printf(element->lower->arena, "to read its only element write %s",
                        read_of_only(element->lower, element->access, d));
}

static _Noreturn void reject_outside(const Element *element, int d, int64_t low, int64_t high)
{
    reject(element->access->access.indices[d]->loc,
           "index reaches %" PRId64 " .. %" PRId64 " but dimension %d of '%s' has size "
           "%" PRId64 "; %s",
           low, high, d, element->seen->name, element->seen->shape[d], mend_of_outside(element, d));
}

// ---- the three kinds of index ----

static bool is_inside(const Element *element, int d, const Affine *index, int64_t *low, int64_t *high)
{
    const IndexScope *scope = &element->lower->scope;
    affine_range(index, scope->extents, scope->count, low, high);
    return *low >= 0 && *high < element->seen->shape[d];
}

static void take_affine(Element *element, int d, const Affine *index)
{
    int64_t low, high;
    element->dims[d] = (Dim){*index, element->seen->shape[d]};
    if (is_inside(element, d, index, &low, &high))
        return;
    if (!element->padded)
        reject_outside(element, d, low, high);
    element->bounds[element->bound_count++] = element->dims[d];
}

/* The affine part stays in the dimension's index if it is inside the dimension without the rest. */
static void take_computed(Element *element, int d, const IndexForm *index)
{
    int64_t low, high, size = element->seen->shape[d], affine_low, affine_high;
    DType type = index_span(element->lower, index, element->access->loc, &low, &high);
    bool leaves = low < 0 || high >= size;
    element->dims[d] = (Dim){affine_constant(0), size};
    if (!leaves && is_inside(element, d, &index->affine, &affine_low, &affine_high)) {
        element->dims[d].index = index->affine;
        add_place(element, d, index->computed);
        return;
    }
    Expr *value = index_expr(element->lower, index, type);
    if (leaves && !element->padded)
        reject_outside(element, d, low, high);
    if (leaves)
        expect_between(element, value, 0, size - 1);
    add_place(element, d, leaves ? clamped(element, value, 0, size - 1) : value);
}

static AffineTerm lower_index_element(const Element *element, const AstExpr *access)
{
    Lower *lower = element->lower;
    if (++lower->index_depth > MAX_INDEX_DEPTH)
        reject(access->loc, "elements as indices nest at most %d deep; define the inner ones",
               MAX_INDEX_DEPTH);
    AffineTerm term = lower_access(lower, access);
    lower->index_depth--;
    DType type = term.expr->type;
    if (dtype_info[type].is_real || type == DTYPE_B1)
        reject(access->loc,
               "an index is an integer, and '%s' holds %s; define it as one: j[t] = cast(%s[...], i32), then "
               "x[j[t]]",
               access->access.name, dtype_info[term.element].name, access->access.name);
    return term;
}

/* What the tensor holds are indices of a dimension of this size: test inputs are drawn so. */
static void mark_indexes(const Expr *read, int64_t size)
{
    Tensor *tensor = expr_tensor(read);
    tensor->indexes = larger(tensor->indexes, size);
}

/* idx[t] + c, clamped to the dimension: the element between -c and size - 1 - c, before c is added, so that
   nothing wraps. */
static void take_element(Element *element, int d, const IndexForm *index)
{
    int64_t size = element->seen->shape[d], offset = index->affine.constant, low, high;
    bool fits = checked_mul(offset, -1, &low) && checked_add(size - 1, low, &high);
    if (!fits)
        reject(element->access->access.indices[d]->loc, "the index overflows");
    Expr *value = lower_index_element(element, index->element).expr;
    mark_indexes(value, size);
    if (low < INT32_MIN || low > INT32_MAX || high < INT32_MIN || high > INT32_MAX)
        value = expr_cast(element->lower->arena, DTYPE_I64, value);
    if (element->padded)
        expect_between(element, value, low, high);
    Expr *place = clamped(element, value, low, high);
    if (offset)
        place = apply(element, OP_ADD, DTYPE_I64, expr_cast(element->lower->arena, DTYPE_I64, place),
                      constant(element, DTYPE_I64, offset));
    element->dims[d] = (Dim){affine_constant(0), size};
    add_place(element, d, place);
}

static void take_index(Element *element, int d)
{
    IndexForm index = lower_index(element->lower, element->access->access.indices[d]);
    if (index.element)
        take_element(element, d, &index);
    else if (index.computed)
        take_computed(element, d, &index);
    else
        take_affine(element, d, &index.affine);
}

// ---- the element ----

static Expr *read_of(const Element *element, Tensor *tensor)
{
    Arena *arena = element->lower->arena;
    int rank = element->seen->rank, places = element->place_count;
    Dim *dims = NEW_ARRAY(arena, Dim, rank);
    for (int d = 0; d < rank; d++)
        dims[d] = element->dims[d];
    Access access = {tensor, rank, dims};
    Expr *expr = NEW(arena, Expr);
    *expr = (Expr){.type = dtype_info[tensor->dtype].compute, .loc = element->access->loc};
    expr->kind = places ? EXPR_FETCH : EXPR_ACCESS;
    if (places) {
        FetchPlace *list = NEW_ARRAY(arena, FetchPlace, places);
        for (int i = 0; i < places; i++)
            list[i] = element->places[i];
        expr->fetch = (Fetch){access, places, list};
    } else {
        expr->access = access;
    }
    expect_reachable(element->lower, &access, expr->loc);
    return expr;
}

static Element element_new(Lower *lower, const AstExpr *access, bool padded)
{
    Element element = {.lower = lower, .access = access, .padded = padded};
    element.seen = accessed(lower, access)->tensor;
    for (int d = 0; d < element.seen->rank; d++)
        take_index(&element, d);
    return element;
}

static Expr *element_read(const Element *element)
{
    const Symbol *symbol = accessed(element->lower, element->access);
    return read_of(element, symbol->viewed ? symbol->viewed : symbol->tensor);
}

static AffineTerm moved(Expr *expr, const Tensor *tensor)
{
    return (AffineTerm){
        .expr = expr, .is_long = tensor->dtype == DTYPE_I64, .moves = true, .element = tensor->dtype};
}

AffineTerm lower_access(Lower *lower, const AstExpr *access)
{
    Element element = element_new(lower, access, false);
    return moved(element_read(&element), element.seen);
}

// ---- pad ----

/* An element as the tensor could hold it: 0 or 1 for b1, the real number rounded to f16 for f16. */
static Expr *padding(Lower *lower, const AstExpr *pad, const Tensor *tensor)
{
    Number number = lower_const(lower, pad->pad.otherwise);
    if (!number_fits(number, tensor->dtype))
        reject(pad->pad.otherwise->loc, "the padding %s is no value of '%s', which holds %s: %s",
               number_text(lower->arena, number), tensor->name, dtype_info[tensor->dtype].name,
               values_text(lower->arena, tensor->dtype));
    Expr *expr = expr_constant(lower->arena, dtype_info[tensor->dtype].compute,
                               dtype_round(tensor->dtype, number_real(number)));
    if (tensor->dtype == DTYPE_I64)   // a double may not hold it
        number_is_integer(number, &expr->constant.integer);
    expr->loc = pad->pad.otherwise->loc;
    return expr;
}

/* "pad" "(" access "," const ")": a guard on the dimensions that can leave the tensor, and a choice where
   places do */
AffineTerm lower_pad(Lower *lower, const AstExpr *pad)
{
    Element element = element_new(lower, pad->pad.access, true);
    Expr *body = element_read(&element);
    Expr *otherwise = padding(lower, pad, element.seen);
    if (element.inside) {
        body = expr_apply(lower->arena, OP_SELECT, body->type, element.inside, body, otherwise);
        body->loc = pad->loc;
    }
    if (!element.bound_count)
        return moved(body, element.seen);
    Dim *bounds = NEW_ARRAY(lower->arena, Dim, element.bound_count);
    for (int i = 0; i < element.bound_count; i++)
        bounds[i] = element.bounds[i];
    Expr *guard = NEW(lower->arena, Expr);
    *guard = (Expr){.kind = EXPR_GUARD, .type = body->type, .loc = pad->loc};
    guard->guard = (Guard){element.bound_count, bounds, body, otherwise};
    return moved(guard, element.seen);
}
