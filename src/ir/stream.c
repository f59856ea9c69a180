// Finds streamed chains: see stream.h.
#include "ir/stream.h"

#include <math.h>

#include "ir/compose.h"
#include "ir/exact_type.h"
#include "ir/fuse_inline.h"

// ---- definitions ----

static const TensorOp *definition_of(const Chain *chain, const Expr *expr)
{
    return expr->kind == EXPR_ACCESS && access_is_own(&expr->access)
               ? chain->definition[expr->access.tensor->id]
               : NULL;
}

/* A definition that can stand in the place of its element. */
static const TensorOp *pointwise_at(const Chain *chain, const Expr *expr)
{
    const TensorOp *op = definition_of(chain, expr);
    return op && op_is_pointwise(op) && op->out->role == ROLE_TEMPORARY ? op : NULL;
}

/* The body of the definition at the element that is read, its reduction axis that one of the kernel's. */
static Expr *body_at(const Chain *chain, const TensorOp *op, const Access *access, int reduced)
{
    Affine forms[MAX_AXES] = {0};
    for (int d = 0; d < access->rank; d++)
        forms[d] = access->dims[d].index;
    if (op->axis_count > op->spatial_count)
        forms[op->spatial_count] = affine_axis(reduced);
    return expr_substitute(chain->arena, op->body, forms, op->axis_count);
}

static Expr *expand(const Chain *chain, const Expr *expr);

static Expr *expanded(const Expr *expr, void *chain) { return expand(chain, expr); }

/* A copy with the pointwise definitions in place of their elements. */
static Expr *expand(const Chain *chain, const Expr *expr)
{
    const TensorOp *op = pointwise_at(chain, expr);
    if (!op)
        return expr_remake(chain->arena, expr, expanded, (Chain *)chain);
    chain->used[op->out->id] = true;
    Expr *body = expand(chain, body_at(chain, op, &expr->access, -1));
    return op->out->exact ? body : expr_cast(chain->arena, op->out->dtype, body);
}

/* A reduction along one axis whose result another definition may ask for. */
static bool is_reduction(const TensorOp *op, Reduce reduce)
{
    return op && op->reduce == reduce && op->axis_count == op->spatial_count + 1;
}

static bool is_half(DType type) { return type == DTYPE_F16 || type == DTYPE_BF16; }

static bool has_axis(const Expr *expr, int axis) { return expr_axes(expr) >> axis & 1; }

/* x of select(c, 0, x), where rows have the condition: a row of which no column counts has no shares. NULL:
   it is none. */
static Expr *chosen_by_row(const Expr *expr, int column)
{
    if (!expr_is(expr, OP_SELECT) || has_axis(expr->apply.operands[0], column))
        return NULL;
    Expr *const *sides = expr->apply.operands + 1;
    return expr_is_zero(sides[0]) ? sides[1] : expr_is_zero(sides[1]) ? sides[0] : NULL;
}

/* Each of its dimensions is an axis of its own, from end to end: those axes; 0: it is not so. */
static uint32_t axes_of_point(const Chain *chain, const Expr *expr)
{
    const TensorOp *op = definition_of(chain, expr), *sum = chain->sum;
    uint32_t axes = 0;
    for (int d = 0; op && d < expr->access.rank; d++) {
        int axis = affine_single_axis(&expr->access.dims[d].index);
        if (axis < 0 || axis > chain->column || axes >> axis & 1 ||
            sum->axes[axis].extent != op->axes[d].extent)
            return 0;
        axes |= 1u << axis;
    }
    return axes;
}

static const Expr *unguarded(const Chain *chain, const Expr *expr)
{
    return chain->guarded && expr->kind == EXPR_GUARD ? expr->guard.body : expr;
}

// ---- the second product: shares and what they weigh ----

/* p = e / z, e * r, …: down to the exponential. What is rounded on the way is so at its own scale. */
static Expr *find_exponential(Chain *chain, Expr *expr)
{
    for (;;) {
        const TensorOp *op = pointwise_at(chain, expr);
        if (op && dtype_info[op->out->dtype].compute == op->out->dtype) {
            chain->used[op->out->id] = true;
            expr = body_at(chain, op, &expr->access, -1);
            chain->exponential_name = op->out->name;
        } else if ((expr_is(expr, OP_DIV) || expr_is(expr, OP_MUL)) &&
                   !has_axis(expr->apply.operands[1], chain->column)) {
            expr = expr->apply.operands[0];
            chain->exponential_name = NULL;
        } else if (expr_is(expr, OP_MUL) && !has_axis(expr->apply.operands[0], chain->column)) {
            expr = expr->apply.operands[1];
            chain->exponential_name = NULL;
        } else if (chosen_by_row(expr, chain->column)) {
            expr = chosen_by_row(expr, chain->column);
            chain->exponential_name = NULL;
        } else {
            return expr_is(expr, OP_EXP) && expr->type == DTYPE_F32 ? expr : NULL;
        }
    }
}

/* exp(t - m), m the maximum of t along the columns. */
static bool find_maximum(Chain *chain, Expr *exponential)
{
    Expr *shifted = exponential->apply.operands[0];
    if (!expr_is(shifted, OP_SUB))
        return false;
    Expr *maximum = shifted->apply.operands[1];
    const TensorOp *op = definition_of(chain, maximum);
    if (!is_reduction(op, REDUCE_MAX) ||
        op->axes[op->spatial_count].extent != chain->sum->axes[chain->column].extent)
        return false;
    chain->maximum = op;
    chain->maximum_access = maximum;
    chain->used[op->out->id] = true;
    chain->score = expand(chain, shifted->apply.operands[0]);
    chain->exponential = expand(chain, exponential);
    Expr *largest = expand(chain, body_at(chain, op, &maximum->access, chain->column));
    bool exact = op->out->dtype == DTYPE_F32 || expr_is_exact(largest, op->out->dtype);
    return exact && chain->score->type == DTYPE_F32 && expr_equal(largest, chain->score);
}

/* Shares of f32 are multiplied in parts. */
static bool may_be_weighed(DType share, DType value) { return share == value || share == DTYPE_F32; }

static bool find_weight(Chain *chain, Expr *weight, const Expr *value)
{
    const TensorOp *op = pointwise_at(chain, weight);
    const Tensor *tensor = value->kind == EXPR_ACCESS ? value->access.tensor : NULL;
    uint32_t axes = axes_of_point(chain, weight), column = 1u << chain->column;
    if (!op || !tensor || !is_half(tensor->dtype) || !may_be_weighed(op->out->dtype, tensor->dtype) ||
        !(axes & column) || !has_axis(value, chain->column) || !(((1u << chain->column) - 1) & ~axes))
        return false;
    chain->weight = op;
    chain->weight_access = weight;
    chain->value = value;
    chain->rows = axes & ~column;
    chain->used[op->out->id] = true;
    Expr *body = body_at(chain, op, &weight->access, -1);
    Expr *exponential = find_exponential(chain, body);
    if (!exponential || !find_maximum(chain, exponential))
        return false;
    chain->share = expand(chain, body);
    return axes_of_point(chain, chain->maximum_access) == chain->rows;
}

// ---- the first product ----

/* An element that was only moved is read where it comes from. */
static const Expr *unmoved(const Chain *chain, const Expr *expr)
{
    for (;;) {
        const TensorOp *op = pointwise_at(chain, expr);
        if (!op || op->body->kind != EXPR_ACCESS || op->body->access.tensor->dtype != op->out->dtype)
            return expr;
        chain->used[op->out->id] = true;
        expr = body_at(chain, op, &expr->access, -1);
    }
}

/* So far from 1 a number may wait until the sum is there: doc/language.md, "Arithmetic". */
static bool may_wait(const Expr *expr)
{
    double value;
    return stream_number(expr, &value) && fabs(value) >= 0x1p-32 && fabs(value) <= 0x1p32;
}

static bool add_scale(Chain *chain, Op op, Expr *by)
{
    if (!may_wait(by) || chain->scale_count == MAX_SCALES)
        return false;
    chain->scales[chain->scale_count].op = op;
    chain->scales[chain->scale_count++].by = by;
    return true;
}

static bool find_sides(Chain *chain, Expr *term, int *count);

/* An element, as it is moved. One that is another's multiple and may be rounded at any scale is not rounded
   at all: the number waits for the sum (q / 8 of f16, which nothing else reads). */
static bool find_side(Chain *chain, const Expr *element, int *count)
{
    const Expr *side = unmoved(chain, element);
    const TensorOp *op = pointwise_at(chain, side);
    if (op && chain->loose[op->out->id] && (expr_is(op->body, OP_MUL) || expr_is(op->body, OP_DIV))) {
        int scales = chain->scale_count, sides = *count;
        if (find_sides(chain, body_at(chain, op, &side->access, -1), count)) {
            chain->used[op->out->id] = true;
            return true;
        }
        chain->scale_count = scales;
        *count = sides;
    }
    if (*count == 2)
        return false;
    chain->sides[(*count)++] = side;
    return true;
}

/* Factors of the terms of s: two elements, and numbers. */
static bool find_sides(Chain *chain, Expr *term, int *count)
{
    double value;
    if (chain->guarded && term->kind == EXPR_GUARD)
        term = term->guard.body;
    if (stream_number(term, &value))
        return add_scale(chain, OP_MUL, term);
    if (expr_is(term, OP_DIV))
        return add_scale(chain, OP_DIV, term->apply.operands[1]) &&
               find_sides(chain, term->apply.operands[0], count);
    if (expr_is(term, OP_MUL))
        return find_sides(chain, term->apply.operands[0], count) &&
               find_sides(chain, term->apply.operands[1], count);
    return term->kind == EXPR_ACCESS && find_side(chain, term, count);
}

/* q's elements lie in rows and k's in columns, both in depths. */
static bool sides_fit(Chain *chain)
{
    const Expr **sides = chain->sides;
    if (has_axis(sides[0], chain->column)) {
        const Expr *first = sides[0];
        sides[0] = sides[1];
        sides[1] = first;
    }
    for (int i = 0; i < 2; i++)
        if (sides[i]->access.tensor->dtype != chain->value->access.tensor->dtype ||
            !has_axis(sides[i], chain->depth))
            return false;
    return !has_axis(sides[0], chain->column) && has_axis(sides[1], chain->column);
}

typedef struct ProductSearch {
    Chain *chain;
    bool several;
} ProductSearch;

static void product_visit(Expr *expr, void *context)
{
    ProductSearch *search = context;
    Chain *chain = search->chain;
    const TensorOp *op = definition_of(chain, expr);
    if (!is_reduction(op, REDUCE_SUM) || !has_axis(expr, chain->column) || op->body->type != DTYPE_F32)
        return;
    int count = 0, scales = chain->scale_count;
    const Expr *sides[2] = {chain->sides[0], chain->sides[1]};
    bool first = !chain->product;
    if (!first && expr_equal(expr, chain->product_access))
        return;
    bool found = first && find_sides(chain, body_at(chain, op, &expr->access, chain->depth), &count) &&
                 count == 2 && sides_fit(chain);
    if (found) {
        chain->product = op;
        chain->product_access = expr;
        chain->used[op->out->id] = true;
        return;
    }
    chain->scale_count = scales;
    chain->sides[0] = sides[0];
    chain->sides[1] = sides[1];
    search->several |= chain->product && op == chain->product;
}

/* One sum of products in the score; whatever else it reads lies in memory. */
static bool find_product(Chain *chain)
{
    ProductSearch search = {.chain = chain};
    expr_visit(chain->score, product_visit, &search);
    return chain->product && !search.several;
}

// ---- sums of the exponentials ----

/* Its terms, as an element of the row is read, are the exponentials, or what p was rounded from. */
static bool adds_exponentials(const Chain *chain, const TensorOp *op, const Access *access)
{
    const Expr *term = expand(chain, body_at(chain, op, access, chain->column));
    bool loose = term->kind == EXPR_CAST && is_half(term->cast.to) && op->body->kind == EXPR_ACCESS &&
                 op->body->access.tensor == chain->weight->out;
    return expr_equal(loose ? term->cast.body : term, chain->exponential);
}

static void sums_visit(Expr *expr, void *context)
{
    Chain *chain = context;
    const TensorOp *op = definition_of(chain, expr);
    if (!is_reduction(op, REDUCE_SUM) || has_axis(expr, chain->column) ||
        axes_of_point(chain, expr) != chain->rows ||
        op->axes[op->spatial_count].extent != chain->sum->axes[chain->column].extent)
        return;
    for (int i = 0; i < chain->sum_count; i++)
        if (chain->sums[i] == op)
            return;
    Chain trial = *chain;   // definitions that another softmax is made of are none of this chain
    trial.used = NEW_ARRAY(chain->arena, bool, chain->program->tensor_count);
    if (chain->sum_count == MAX_ROW_SUMS || !adds_exponentials(&trial, op, &expr->access))
        return;
    for (int i = 0; i < chain->program->tensor_count; i++)
        chain->used[i] |= trial.used[i];
    chain->used[op->out->id] = true;
    chain->sums[chain->sum_count] = op;
    chain->sums_access[chain->sum_count++] = expr;
}

/* In p, and in what is made of rows or results elsewhere. */
static void find_sums(Chain *chain)
{
    expr_visit(chain->share, sums_visit, chain);
    Affine forms[MAX_AXES];
    for (int i = 0; i < chain->program->op_count; i++) {
        const TensorOp *op = chain->program->ops[i];
        if (!is_reduction(op, REDUCE_SUM) || op->spatial_count != chain->maximum_access->access.rank)
            continue;
        for (int d = 0; d < op->spatial_count; d++)
            forms[d] = chain->maximum_access->access.dims[d].index;
        Access access = access_new(chain->arena, op->out, forms);
        Expr *expr = NEW(chain->arena, Expr);
        *expr = (Expr){.kind = EXPR_ACCESS, .type = dtype_info[op->out->dtype].compute, .access = access};
        sums_visit(expr, chain);
    }
}

// ---- the whole ----

static bool is_candidate(const TensorOp *op)
{
    return is_reduction(op, REDUCE_SUM) && op->body->type == DTYPE_F32 && expr_is(op->body, OP_MUL) &&
           op->axis_count + 1 <= MAX_AXES;
}

/* Parts of f32 shares are of at most 1: e, or e / z. */
static bool has_parts(const Chain *chain)
{
    const Expr *chosen = chosen_by_row(chain->share, chain->column), *share = chosen ? chosen : chain->share;
    if (chain->weight->out->dtype != DTYPE_F32 || expr_equal(share, chain->exponential))
        return true;
    bool found = false;
    for (int i = 0; i < chain->sum_count && expr_is(share, OP_DIV); i++)
        found |= expr_equal(share->apply.operands[0], chain->exponential) &&
                 expr_equal(share->apply.operands[1], chain->sums_access[i]);
    return found;
}

static bool chain_find(Chain *chain)
{
    if (!is_candidate(chain->sum))
        return false;
    Expr *const *factors = chain->sum->body->apply.operands;
    bool found = false;
    for (int i = 0; i < 2 && !found; i++) {
        const Expr *value = unguarded(chain, factors[1 - i]);
        chain->value_guarded = value != factors[1 - i];
        found = find_weight(chain, factors[i], value->kind == EXPR_ACCESS ? unmoved(chain, value) : value);
    }
    if (!found || !find_product(chain))
        return false;
    find_sums(chain);
    return has_parts(chain);
}

static Chain chain_new(Arena *arena, const Program *program, const TensorOp *const *definition,
                       const bool *loose, const TensorOp *sum)
{
    return (Chain){
        .arena = arena,
        .program = program,
        .definition = definition,
        .loose = loose,
        .used = NEW_ARRAY(arena, bool, program->tensor_count),
        .sum = sum,
        .column = sum->spatial_count,
        .depth = sum->axis_count,
    };
}

static const TensorOp *const *definitions_of(Arena *arena, const Program *program)
{
    const TensorOp **definition = NEW_ARRAY(arena, const TensorOp *, program->tensor_count);
    for (int i = 0; i < program->op_count; i++)
        definition[program->ops[i]->out->id] = program->ops[i];
    return definition;
}

StreamList streams_find(Arena *arena, const Program *program)
{
    StreamList list = {.streams = NEW_ARRAY(arena, Stream, program->op_count)};
    const TensorOp *const *definition = definitions_of(arena, program);
    const bool *loose = streams_find_loose(arena, program);
    for (int i = 0; i < program->op_count; i++) {
        Chain chain = chain_new(arena, program, definition, loose, program->ops[i]);
        chain.used[chain.sum->out->id] = true;
        list.count += chain_find(&chain) && chain_build(&chain, &list.streams[list.count]);
    }
    return list;
}

const Stream *streams_member(const StreamList *list, const Tensor *tensor)
{
    for (int s = 0; s < list->count; s++)
        for (int i = 0; i < list->streams[s].member_count; i++)
            if (list->streams[s].members[i]->out == tensor)
                return &list->streams[s];
    return NULL;
}

// ---- what may be left out ----

/* The last part of a chain's columns has fewer: its factors are guarded. */
static void add_guarded_shares(Arena *arena, const Program *program, bool *shares)
{
    const TensorOp *const *definition = definitions_of(arena, program);
    const bool *loose = streams_find_loose(arena, program);
    for (int i = 0; i < program->op_count; i++) {
        Chain chain = chain_new(arena, program, definition, loose, program->ops[i]);
        chain.guarded = true;
        if (chain_find(&chain))
            shares[chain.weight->out->id] |= chain.value_guarded;
    }
}

bool *streams_find_shares(Arena *arena, const Program *program)
{
    bool *shares = NEW_ARRAY(arena, bool, program->tensor_count);
    StreamList list = streams_find(
        arena, compose(arena, program));   // heads that share k and v by a quotient are cut there
    for (int s = 0; s < list.count; s++)
        if (list.streams[s].share->id < program->tensor_count)
            shares[list.streams[s].share->id] = true;
    add_guarded_shares(arena, program, shares);
    return shares;
}
