// Where the elements of each tensor come from, and what they cost; eval_read.c makes them.
#include "ir/eval.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "ir/eval_origin.h"
#include "ir/stream.h"

typedef struct Inlining {
    const Origin *origins;
    int size;
} Inlining;

enum {
    INLINED_SIZE = 48,  // nodes of a definition that is as cheap to compute as to look up
    ESTIMATED = 4096    // points of a reduction that are enough for an estimate
};

static void inline_definitions(Evaluator *evaluator, Origin *origin);

static void mark_read(Expr *expr, void *context)
{
    Evaluator *evaluator = context;
    if (expr_tensor(expr))
        evaluator->origins[expr_tensor(expr)->id].read = true;
}

static void add_inlined(Expr *expr, void *context)
{
    Inlining *inlining = context;
    if (expr->kind == EXPR_ACCESS)
        inlining->size += inlining->origins[expr->access.tensor->id].inlined_size;
}

static bool only_moves(const TensorOp *op)
{
    const Expr *body = op->body;
    while (body->kind == EXPR_GUARD)
        body = body->guard.body;
    return body->kind == EXPR_ACCESS && body->access.tensor->dtype == op->out->dtype;
}

/* Nodes of the definition with those of all that is inlined in it. A sum of one term has other forms, too;
   and what products allow of shares, and of what is rounded at any scale, they allow of elements. */
static void find_inlined(Evaluator *evaluator, Origin *origin)
{
    bool allowed = (origin->loose && !only_moves(origin->op)) || evaluator->shares[origin->tensor->id];
    Inlining inlining = {evaluator->origins, expr_size(origin->op->body) + 1};
    expr_visit(origin->op->body, add_inlined, &inlining);
    if (origin->points == 1 && origin->op->reduce != REDUCE_SUM && inlining.size <= INLINED_SIZE && !allowed)
        origin->inlined_size = inlining.size;
}

static void origin_from_op(Origin *origin, const TensorOp *op)
{
    origin->op = op;
    origin->points = 1;
    origin->inner_axis = -1;
    for (int a = 0; a < op->axis_count; a++) {
        if (op->axes[a].extent > 1)
            origin->inner_axis = a;
        if (a >= op->spatial_count)
            origin->points *= op->axes[a].extent;
    }
}

Evaluator *evaluator_new(Arena *arena, const Program *program, InputSource inputs)
{
    Evaluator *evaluator = NEW(arena, Evaluator);
    *evaluator = (Evaluator){.arena = arena, .program = program};
    evaluator->tensor_count = program->tensor_count;
    evaluator->ranges = ranges_new(arena, program);
    evaluator->shares = streams_find_shares(arena, program);
    evaluator->origins = NEW_ARRAY(arena, Origin, program->tensor_count);
    for (int i = 0; i < program->tensor_count; i++)
        evaluator->origins[i] = (Origin){.tensor = program->tensors[i], .input = -1};
    for (int i = 0; i < program->input_count; i++)
        evaluator_replace(evaluator, program->inputs[i], inputs, i);
    const bool *loose = streams_find_loose(arena, program);
    for (int i = 0; i < program->op_count; i++) {
        evaluator->origins[program->ops[i]->out->id].loose = loose[program->ops[i]->out->id];
        origin_from_op(&evaluator->origins[program->ops[i]->out->id], program->ops[i]);
        expr_visit(program->ops[i]->body, mark_read, evaluator);
        find_inlined(evaluator, &evaluator->origins[program->ops[i]->out->id]);
    }
    return evaluator;
}

void evaluator_allow(Evaluator *evaluator, EvalMath math)
{
    evaluator->math = math;
}

/* Passes over points of the outer axes first: 64 x 56 x 56 become 1 x 56 x 56. */
static void skip_points(Origin *origin)
{
    const TensorOp *op = origin->op;
    int64_t left = origin->points;
    origin->estimated = left > ESTIMATED;
    for (int a = op->spatial_count; a < op->axis_count && left > ESTIMATED; a++) {
        int64_t extent = op->axes[a].extent, least = a == origin->inner_axis ? WINDOW : 1;
        int64_t wanted = extent / ceil_div(left, ESTIMATED);
        wanted = wanted > least ? wanted / least * least : least;
        origin->skip[a] = extent > wanted ? ceil_div(extent * least, wanted) - least : 0;
        left = left / extent * wanted;
    }
}

void evaluator_estimate(Evaluator *evaluator)
{
    for (int i = 0; i < evaluator->tensor_count; i++)
        if (evaluator->origins[i].op)
            skip_points(&evaluator->origins[i]);
}

void evaluator_give(Evaluator *evaluator, const Tensor *tensor, Evaluator *other)
{
    evaluator->origins[tensor->id].other = other;
}

void evaluator_replace(Evaluator *evaluator, const Tensor *tensor, InputSource source, int input)
{
    Origin *origin = &evaluator->origins[tensor->id];
    origin->source = source;
    origin->input = input;
    origin->op = NULL;
    origin->inlined_size = 0;
}

static Reach reach_of(const Origin *origin, const TensorOp *op)
{
    Reach reach = {.op = origin->other || origin->input >= 0 ? NULL : op};
    for (int a = 0; a < op->axis_count; a++) {
        int64_t extent = op->axes[a].extent, window = a == origin->inner_axis ? WINDOW : 1;
        reach.points[a] = origin->skip[a] ? ceil_div(extent, window + origin->skip[a]) * window : extent;
    }
    return reach;
}

double evaluator_work(Evaluator *evaluator, const Tensor *tensor, bool whole)
{
    const Program *program = evaluator->program;
    size_t boxes_bytes = sizeof *evaluator->boxes * (size_t)evaluator->tensor_count;
    if (!evaluator->reaches) {
        evaluator->reaches = NEW_ARRAY(evaluator->arena, Reach, evaluator->tensor_count);
        evaluator->boxes = arena_alloc(evaluator->arena, boxes_bytes);
    }
    memset(evaluator->boxes, 0, boxes_bytes);
    for (int i = 0; i < program->op_count; i++) {
        int id = program->ops[i]->out->id;
        evaluator->reaches[id] = reach_of(&evaluator->origins[id], program->ops[i]);
    }
    for (int d = 0; d < MAX_AXES; d++)
        evaluator->boxes[tensor->id][d] = whole && d < tensor->rank ? tensor->shape[d] : 1;
    return work_wanted(program, evaluator->reaches, evaluator->boxes);
}

void evaluator_free(Evaluator *evaluator)
{
    for (int i = 0; i < evaluator->tensor_count; i++)
        memo_free(&evaluator->origins[i].memo);
}

/* A DefinitionOf. What is allowed in sums is not allowed in what they are made of. */
static const TensorOp *inlined_definition(void *context, const Tensor *tensor)
{
    Evaluator *evaluator = context;
    Origin *origin = &evaluator->origins[tensor->id];
    if (!origin->inlined_size || origin->other || (evaluator->math != EVAL_EXACT && !only_moves(origin->op)))
        return NULL;
    inline_definitions(evaluator, origin);
    return origin->op;
}

/* Another DefinitionOf. */
static const TensorOp *own_definition(void *context, const Tensor *tensor)
{
    Evaluator *evaluator = context;
    const Origin *origin = &evaluator->origins[tensor->id];
    return origin->other ? NULL : origin->op;
}

static void inline_form(Evaluator *evaluator, CommonFactors *form)
{
    form->term = expr_inline(evaluator->arena, form->term, inlined_definition, evaluator);
    for (int i = 0; i < form->count; i++)
        form->factors[i].expr =
            expr_inline(evaluator->arena, form->factors[i].expr, inlined_definition, evaluator);
}

/* With everything in front that leaves the sum, the rest may be a square around a mean. */
static void find_centred(Evaluator *evaluator, Origin *origin, TensorOp *op)
{
    Arena *arena = evaluator->arena;
    SumForms *forms = &origin->forms;
    CommonFactors last = forms->form[forms->count - 1];
    origin->difference = centred_difference(arena, op, last.term, own_definition, evaluator);
    if (!origin->difference)
        return;
    last.term = expr_apply(arena, OP_SQ, op->body->type, origin->difference, NULL, NULL);
    op->body = common_factors_apply(arena, &last, last.term);
    *forms = (SumForms){.form = {{.term = op->body}, last}, .count = 1 + (op->body != last.term)};
}

static void inline_definitions(Evaluator *evaluator, Origin *origin)
{
    if (origin->whole)
        return;
    TensorOp *op = NEW(evaluator->arena, TensorOp);
    *op = *origin->op;
    sum_forms(evaluator->arena, evaluator->ranges, op, evaluator->math, &origin->forms);
    for (int f = 0; f < origin->forms.count; f++)
        inline_form(evaluator, &origin->forms.form[f]);
    op->body = origin->forms.form[0].term;
    if (origin->points > 1)
        find_centred(evaluator, origin, op);
    origin->op = op;
    origin->whole = true;
}

bool origin_is_kept(const Origin *origin) { return origin->read && (!origin->inlined_size || origin->other); }

void origin_prepare(Evaluator *evaluator, Origin *origin)
{
    if (origin->fresh)
        return;
    if (origin->op)
        inline_definitions(evaluator, origin);
    origin->wanted = NEW_ARRAY(evaluator->arena, int64_t, BATCH);
    origin->fresh = NEW_ARRAY(evaluator->arena, Cell, BATCH);
    if (origin_is_kept(origin))
        origin->memo = memo_new(tensor_elements(origin->tensor));
    if (origin->op) {
        origin->tape = tape_compile(evaluator->arena, origin->op, evaluator->math, origin->difference,
                                    &origin->forms, evaluator->shares);
        origin->batch = NEW(evaluator->arena, Batch);
    }
}

static int64_t load_long(const void *memory, int64_t index)
{
    int64_t element;
    memcpy(&element, (const char *)memory + index * (int64_t)sizeof element, sizeof element);
    return element;
}

bool element_allowed(DType type, const void *memory, int64_t index, Value expected)
{
    if (type == DTYPE_I64 && expected.bound == 0)
        return load_long(memory, index) == expected.whole;
    return value_allows(type, dtype_load(type, memory, index), expected);
}

void value_store(DType type, void *memory, int64_t index, Value value)
{
    if (type == DTYPE_I64)
        memcpy((char *)memory + index * (int64_t)sizeof value.whole, &value.whole, sizeof value.whole);
    else
        dtype_store(type, memory, index, value.real);
}

bool value_allows(DType type, double seen, Value expected)
{
    if (isnan(expected.real) || isnan(seen))
        return isnan(expected.real) && isnan(seen);
    if (!dtype_info[type].is_real && type != DTYPE_B1)   // the shorter way round
        return fabs(remainder(seen - expected.real, ldexp(1, dtype_info[type].bits))) <= expected.bound;
    return seen >= dtype_round(type, expected.real - expected.bound) &&
           seen <= dtype_round(type, expected.real + expected.bound);
}
