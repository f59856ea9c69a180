// An op's body as a tape: its nodes in an order in which each comes after its operands, each with a
// lane for every point of a batch. Walking the tree once for 256 points makes the walk cost
// nothing.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "ir/eval_parts.h"

typedef enum StepKind {
    STEP_CONST,
    STEP_INDEX,
    STEP_INSIDE,   // of a guard: does it hold?
    STEP_READ,
    STEP_FETCH,    // a read at an offset that the steps of its places move
    STEP_GUARD,
    STEP_APPLY,
    STEP_CAST,
} StepKind;

typedef struct TapeStep {
    StepKind kind;
    const Expr *expr;
    int operands[MAX_OPERANDS];   // steps; of a guard: inside, body, otherwise
    int inside;                   // only there is it made, where this step holds; -1: everywhere
    Affine offset;                // read, fetch: flat, in elements
    int *places;                  // fetch: the step of each place
    int share;   // of a product: the operand that is a share, with which 0 it may be left out; else -1
    bool in_parts;                // the share is f32 and may be multiplied in parts
    int padded[2];   // of a product that is a term: the step that says whether each operand is inside; -1: it always is
    Cell *lanes;
} TapeStep;

struct Tape {
    int axis_count;
    EvalMath math;
    bool summed;                  // the op is a sum
    const bool *shares;           // by tensor id
    int difference;               // the step of a centred sum that is x - m; else -1
    const SumForms *forms;
    int terms[MOST_FORMS];        // the step of each form that is its term,
    int *factors[MOST_FORMS];     // … and those of its factors
    TapeStep *steps;
    int count;
    int64_t offsets[BATCH];       // scratch
};

static int compile(Arena *arena, Tape *tape, const Expr *expr, int inside);

static int add_step(Arena *arena, Tape *tape, StepKind kind, const Expr *expr)
{
    TapeStep *step = &tape->steps[tape->count];
    *step = (TapeStep){.kind = kind, .expr = expr, .inside = -1, .share = -1, .padded = {-1, -1}};
    step->lanes = NEW_ARRAY(arena, Cell, BATCH);
    return tape->count++;
}

static int compile_const(Arena *arena, Tape *tape, const Expr *expr)
{
    int step = add_step(arena, tape, STEP_CONST, expr);
    Cell cell = {.whole = {expr->constant.integer, 0}};
    if (dtype_info[expr->type].is_real)   // a constant has its compute type: 0.1 is 0.1f
        cell.real = (Real){dtype_round(expr->type, expr->constant.real), 0};
    for (int lane = 0; lane < BATCH; lane++)
        tape->steps[step].lanes[lane] = cell;
    return step;
}

/* What is read below a guard is only read inside it. */
static int compile_guard(Arena *arena, Tape *tape, const Expr *expr, int outer)
{
    int inside = add_step(arena, tape, STEP_INSIDE, expr);
    tape->steps[inside].inside = outer;
    int body = compile(arena, tape, expr->guard.body, inside);
    int otherwise = compile(arena, tape, expr->guard.otherwise, outer);
    int step = add_step(arena, tape, STEP_GUARD, expr);
    int operands[MAX_OPERANDS] = {inside, body, otherwise};
    memcpy(tape->steps[step].operands, operands, sizeof operands);
    return step;
}

static int compile_fetch(Arena *arena, Tape *tape, const Expr *expr, int inside)
{
    const Fetch *fetch = &expr->fetch;
    int *places = NEW_ARRAY(arena, int, fetch->count);
    for (int i = 0; i < fetch->count; i++)
        places[i] = compile(arena, tape, fetch->places[i].value, inside);
    int step = add_step(arena, tape, STEP_FETCH, expr);
    tape->steps[step].inside = inside;
    tape->steps[step].offset = access_offset(&fetch->access);
    tape->steps[step].places = places;
    return step;
}

static void set_share(TapeStep *step, const Expr *product, int share)
{
    step->share = share;
    step->in_parts = expr_tensor(product->apply.operands[share])->dtype == DTYPE_F32;
}

static int compile_apply(Arena *arena, Tape *tape, const Expr *expr, int inside)
{
    int operands[MAX_OPERANDS] = {0};
    for (int i = 0; i < op_info[expr->apply.op].operands; i++)
        operands[i] = compile(arena, tape, expr->apply.operands[i], inside);
    int step = add_step(arena, tape, STEP_APPLY, expr);
    memcpy(tape->steps[step].operands, operands, sizeof operands);
    for (int i = 0; tape->summed && expr->apply.op == OP_MUL && i < 2; i++)
        if (expr->apply.operands[i]->kind == EXPR_ACCESS &&
            tape->shares[expr->apply.operands[i]->access.tensor->id])
            set_share(&tape->steps[step], expr, i);
    return step;
}

static int compile_new(Arena *arena, Tape *tape, const Expr *expr, int inside)
{
    int step = 0, body;
    switch (expr->kind) {
    case EXPR_CONST:
        return compile_const(arena, tape, expr);
    case EXPR_INDEX:
        return add_step(arena, tape, STEP_INDEX, expr);
    case EXPR_ACCESS:
        step = add_step(arena, tape, STEP_READ, expr);
        tape->steps[step].inside = inside;
        tape->steps[step].offset = access_offset(&expr->access);
        return step;
    case EXPR_FETCH:
        return compile_fetch(arena, tape, expr, inside);
    case EXPR_GUARD:
        return compile_guard(arena, tape, expr, inside);
    case EXPR_APPLY:
        return compile_apply(arena, tape, expr, inside);
    case EXPR_CAST:
        body = compile(arena, tape, expr->cast.body, inside);
        step = add_step(arena, tape, STEP_CAST, expr);
        tape->steps[step].operands[0] = body;
        return step;
    case EXPR_VALUE:
        break;
    }
    assert(!"a fused kernel's value in a program");
    return step;
}

/* What the sum as it stands has made is there for its other forms. */
static int find_made(const Tape *tape, const Expr *expr, int inside)
{
    for (int step = 0; step < tape->terms[0]; step++)
        if (tape->steps[step].kind != STEP_INSIDE && tape->steps[step].inside == inside &&
            expr_equal(tape->steps[step].expr, expr))
            return step;
    return -1;
}

static int compile(Arena *arena, Tape *tape, const Expr *expr, int inside)
{
    int step = find_made(tape, expr, inside);
    if (step < 0) {
        step = compile_new(arena, tape, expr, inside);
        tape->steps[step].inside = inside;
    }
    return step;
}

static int step_of(const Tape *tape, const Expr *expr)
{
    int step = 0;
    while (tape->steps[step].expr != expr || tape->steps[step].kind == STEP_INSIDE)
        step++;
    return step;
}

static int size_of(const SumForms *forms)
{
    int size = 0;
    for (int f = 0; f < forms->count; f++) {
        size += expr_size(forms->form[f].term);
        for (int i = 0; i < forms->form[f].count; i++)
            size += expr_size(forms->form[f].factors[i].expr);
    }
    return size;
}

/* Of what is 0 outside its tensor the step that says whether it is inside; -1: of anything else. */
static int inside_of(const Tape *tape, int at)
{
    const TapeStep *step = &tape->steps[at];
    if (step->kind == STEP_CAST)
        return inside_of(tape, step->operands[0]);
    if (step->kind != STEP_GUARD || !expr_is_zero(step->expr->guard.otherwise))
        return -1;
    int deeper = inside_of(tape, step->operands[1]);   // which is inside both
    return deeper >= 0 ? deeper : step->operands[0];
}

/* Of a term that is a product: which of its factors lie outside their tensors. */
static void find_padded(Tape *tape, int at)
{
    TapeStep *step = &tape->steps[at];
    if (step->kind != STEP_APPLY || step->expr->apply.op != OP_MUL || !dtype_info[step->expr->type].is_real)
        return;
    for (int i = 0; i < 2; i++) {
        step->padded[i] = inside_of(tape, step->operands[i]);
        find_padded(tape, step->operands[i]);
    }
}

static void compile_form(Arena *arena, Tape *tape, int form)
{
    const CommonFactors *common = &tape->forms->form[form];
    int *factors = NEW_ARRAY(arena, int, common->count);
    int term = compile(arena, tape, common->term, -1);
    for (int i = 0; i < common->count; i++)
        factors[i] = compile(arena, tape, common->factors[i].expr, -1);
    if (tape->summed)
        find_padded(tape, term);
    tape->terms[form] = term;
    tape->factors[form] = factors;
}

Tape *tape_compile(Arena *arena, const TensorOp *op, EvalMath math, const Expr *difference,
                   const SumForms *forms, const bool *shares)
{
    Tape *tape = NEW(arena, Tape);
    tape->axis_count = op->axis_count;
    tape->math = math;
    tape->summed = op->reduce == REDUCE_SUM;
    tape->shares = shares;
    tape->forms = forms;
    int most = 3 * size_of(forms);   // a guard makes three steps: inside, otherwise and itself
    tape->steps = NEW_ARRAY(arena, TapeStep, most);
    for (int f = 0; f < forms->count; f++)
        compile_form(arena, tape, f);
    assert(tape->count <= most);
    tape->difference = difference ? step_of(tape, difference) : -1;
    return tape;
}

static int64_t affine_at(const Tape *tape, const Affine *form, const int64_t *at)
{
    int64_t value = form->constant;
    for (int a = 0; a < tape->axis_count; a++)
        value += form->coef[a] * at[a];
    return value;
}

/* The form at every lane: along a run it grows by the same step. */
static void affine_lanes(const Tape *tape, const Affine *form, const Batch *batch, int64_t *values)
{
    for (int r = 0; r < batch->run_count; r++) {
        const Run *run = &batch->runs[r];
        int64_t value = affine_at(tape, form, run->at);
        int64_t step = run->axis < 0 ? 0 : form->coef[run->axis];
        for (int i = 0; i < run->length; i++)
            values[run->lane + i] = value + step * i;
    }
}

static void run_index(Tape *tape, const TapeStep *step, const Batch *batch)
{
    affine_lanes(tape, &step->expr->index, batch, tape->offsets);
    for (int lane = 0; lane < batch->lanes; lane++)
        step->lanes[lane].whole = (Whole){tape->offsets[lane], 0};
}

static void run_inside(Tape *tape, const TapeStep *step, const Batch *batch)
{
    const Guard *guard = &step->expr->guard;
    const Cell *outer = step->inside < 0 ? NULL : tape->steps[step->inside].lanes;
    for (int lane = 0; lane < batch->lanes; lane++)
        step->lanes[lane].whole.value = !outer || outer[lane].whole.value;
    for (int d = 0; d < guard->count; d++) {
        affine_lanes(tape, &guard->bounds[d].index, batch, tape->offsets);
        for (int lane = 0; lane < batch->lanes; lane++)
            if (tape->offsets[lane] < 0 || tape->offsets[lane] >= guard->bounds[d].size)
                step->lanes[lane].whole.value = 0;
    }
}

static void outside_asks_for_nothing(Tape *tape, const TapeStep *step, const Batch *batch)
{
    for (int lane = 0; step->inside >= 0 && lane < batch->lanes; lane++)
        if (!tape->steps[step->inside].lanes[lane].whole.value)
            tape->offsets[lane] = -1;
}

static void run_read(Tape *tape, const TapeStep *step, const Batch *batch, ReadElements *read,
                     void *context)
{
    affine_lanes(tape, &step->offset, batch, tape->offsets);
    outside_asks_for_nothing(tape, step, batch);
    read(context, step->expr->access.tensor, tape->offsets, batch->lanes, step->lanes);
}

static Whole place_at(const Tape *tape, const TapeStep *step, int place, int lane)
{
    return tape->steps[step->places[place]].lanes[lane].whole;
}

/* Which element is meant is unknown where a place is: its integer was made of a real that rounds either
   way. */
static void run_fetch(Tape *tape, const TapeStep *step, const Batch *batch, ReadElements *read, void *context)
{
    const Fetch *fetch = &step->expr->fetch;
    bool real = dtype_info[step->expr->type].is_real;
    affine_lanes(tape, &step->offset, batch, tape->offsets);
    outside_asks_for_nothing(tape, step, batch);
    for (int lane = 0; lane < batch->lanes; lane++)
        for (int i = 0; i < fetch->count && tape->offsets[lane] >= 0; i++)
            tape->offsets[lane] += fetch->places[i].stride * place_at(tape, step, i, lane).value;
    read(context, fetch->access.tensor, tape->offsets, batch->lanes, step->lanes);
    for (int i = 0; i < fetch->count; i++)
        for (int lane = 0; lane < batch->lanes; lane++)
            if (place_at(tape, step, i, lane).bound > 0)
                *(real ? &step->lanes[lane].real.bound : &step->lanes[lane].whole.bound) = INFINITY;
}

static const Cell *lanes_of(const Tape *tape, const TapeStep *step, int operand)
{
    return tape->steps[step->operands[operand]].lanes;
}

static void run_guard(const Tape *tape, const TapeStep *step, int lanes)
{
    const Cell *inside = lanes_of(tape, step, 0);
    const Cell *body = lanes_of(tape, step, 1);
    const Cell *otherwise = lanes_of(tape, step, 2);
    for (int lane = 0; lane < lanes; lane++)
        step->lanes[lane] = inside[lane].whole.value ? body[lane] : otherwise[lane];
}

/* 0 * NaN is NaN, or nothing where the term was left out. */
static void allow_left_out(const TapeStep *step, const Cell *share, const Cell *other, int lanes)
{
    for (int lane = 0; lane < lanes; lane++)
        if (share[lane].real.value == 0 && share[lane].real.bound == 0 && !isfinite(other[lane].real.value))
            step->lanes[lane].real = (Real){0, INFINITY};
}

/* The same of 0 that lies outside a tensor. */
static void allow_outside(const Tape *tape, const TapeStep *step, int factor, const Cell *other, int lanes)
{
    const Cell *inside = tape->steps[step->padded[factor]].lanes;
    for (int lane = 0; lane < lanes; lane++)
        if (!inside[lane].whole.value && !isfinite(other[lane].real.value))
            step->lanes[lane].real = (Real){0, INFINITY};
}

/* Shares of f32 are at most 1, and parts of f16 err by 2^-40 of that. Of an infinite factor one part may be
   infinite where the other is 0. */
static void allow_parts(const TapeStep *step, const Cell *other, int lanes)
{
    for (int lane = 0; lane < lanes; lane++)
        if (!isfinite(other[lane].real.value))
            step->lanes[lane].real = (Real){0, INFINITY};
        else
            step->lanes[lane].real.bound += 0x1p-39 * fabs(other[lane].real.value);
}

static void run_arith(const Tape *tape, const TapeStep *step, const Cell *a, const Cell *b, int lanes)
{
    Op op = step->expr->apply.op;
    DType type = step->expr->type;
    bool unary = op_info[op].operands == 1;
    bool exact = tape->math == EVAL_EXACT || type == DTYPE_F64;
    Cell none = {.real = {0, 0}};
    if (!dtype_info[type].is_real) {
        for (int lane = 0; lane < lanes; lane++)
            step->lanes[lane].whole =
                whole_apply(op, type, a[lane].whole, unary ? none.whole : b[lane].whole);
        return;
    }
    real_apply(op, type, a, b, lanes, step->lanes);
    if (step->share >= 0)
        allow_left_out(step, step->share ? b : a, step->share ? a : b, lanes);
    if (step->in_parts)
        allow_parts(step, step->share ? a : b, lanes);
    for (int i = 0; i < 2; i++)
        if (step->padded[i] >= 0)
            allow_outside(tape, step, i, i ? a : b, lanes);
    for (int lane = 0; lane < lanes && !exact; lane++)
        step->lanes[lane].real = math_allow(tape->math, tape->summed, op, a[lane].real,
                                            unary ? none.real : b[lane].real, step->lanes[lane].real);
}

static void run_compare(const TapeStep *step, const Cell *a, const Cell *b, int lanes)
{
    Op op = step->expr->apply.op;
    bool real = dtype_info[step->expr->apply.operands[0]->type].is_real;
    for (int lane = 0; lane < lanes; lane++)
        step->lanes[lane].whole = real ? real_compare(op, a[lane].real, b[lane].real)
                                       : whole_compare(op, a[lane].whole, b[lane].whole);
}

static void run_select(const TapeStep *step, const Cell *condition, const Cell *a, const Cell *b, int lanes)
{
    for (int lane = 0; lane < lanes; lane++)
        if (condition[lane].whole.bound == 0)
            step->lanes[lane] = *(condition[lane].whole.value ? &a[lane] : &b[lane]);
        else
            step->lanes[lane] = cell_select(step->expr->type, condition[lane].whole, a[lane], b[lane]);
}

static void run_apply(const Tape *tape, const TapeStep *step, int lanes)
{
    const Cell *a = lanes_of(tape, step, 0);
    const Cell *b = lanes_of(tape, step, 1);
    const Cell *c = lanes_of(tape, step, 2);
    Op op = step->expr->apply.op;
    switch (op_info[op].class) {
    case OP_CLASS_ARITH:
    case OP_CLASS_WHOLE:
    case OP_CLASS_REAL:
        run_arith(tape, step, a, b, lanes);
        break;
    case OP_CLASS_COMPARE:
        run_compare(step, a, b, lanes);
        break;
    case OP_CLASS_LOGIC:
        for (int lane = 0; lane < lanes; lane++)
            step->lanes[lane].whole = logic_apply(op, a[lane].whole, b[lane].whole);
        break;
    case OP_CLASS_SELECT:
        run_select(step, a, b, c, lanes);
        break;
    }
}

static void run_cast(const Tape *tape, const TapeStep *step, int lanes)
{
    const Cell *body = lanes_of(tape, step, 0);
    DType to = step->expr->cast.to, from = step->expr->cast.body->type;
    for (int lane = 0; lane < lanes; lane++)
        step->lanes[lane] = cell_convert(to, from, body[lane]);
}

static void allow_chunks(const Tape *tape, int lanes)
{
    const TapeStep *step = &tape->steps[tape->difference];
    const Cell *centre = lanes_of(tape, step, 1);
    for (int lane = 0; lane < lanes; lane++)
        step->lanes[lane].real = centred_allow(step->expr->type, centre[lane].real, step->lanes[lane].real);
}

void tape_run(Tape *tape, const Batch *batch, ReadElements *read, void *context)
{
    for (int i = 0; i < tape->count; i++) {
        const TapeStep *step = &tape->steps[i];
        switch (step->kind) {
        case STEP_CONST: break;   // filled when the tape was made
        case STEP_INDEX: run_index(tape, step, batch); break;
        case STEP_INSIDE: run_inside(tape, step, batch); break;
        case STEP_READ: run_read(tape, step, batch, read, context); break;
        case STEP_FETCH: run_fetch(tape, step, batch, read, context); break;
        case STEP_APPLY: run_apply(tape, step, batch->lanes); break;
        case STEP_CAST: run_cast(tape, step, batch->lanes); break;
        case STEP_GUARD: run_guard(tape, step, batch->lanes); break;
        }
        if (i == tape->difference)
            allow_chunks(tape, batch->lanes);
    }
}

const Cell *tape_terms(const Tape *tape, int form) { return tape->steps[tape->terms[form]].lanes; }

static Cell with_factor(const Tape *tape, Op op, DType type, Cell sum, Cell factor)
{
    Cell result;
    real_apply(op, type, &sum, &factor, 1, &result);
    if (tape->math != EVAL_EXACT && type != DTYPE_F64)
        result.real = math_allow(tape->math, false, op, sum.real, factor.real, result.real);
    return result;
}

Cell tape_finish(const Tape *tape, int form, Cell sum, int lane)
{
    const CommonFactors *common = &tape->forms->form[form];
    for (int i = 0; i < common->count; i++)
        sum = with_factor(tape, common->factors[i].op, common->term->type, sum,
                          tape->steps[tape->factors[form][i]].lanes[lane]);
    if (common->negated)
        sum.real.value = -sum.real.value;
    return sum;
}
