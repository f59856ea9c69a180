// Which elements are needed, and where they come from: demand goes from an output to the inputs,
// each op over batches of points, and what was computed once is kept.
#include "ir/eval.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/diag.h"
#include "ir/eval_parts.h"

/* Where the elements of one tensor come from. */
typedef struct Origin {
    const Tensor *tensor;
    int input;              // position in program->inputs, or -1
    const TensorOp *op;     // else
    bool read;              // by an op: its elements are kept
    int inner_axis;         // of op: the last with more than one point, or -1; all after it stay 0
    int64_t points;         // of op's reduction, for one element
    Memo memo;
    // Made at the first use, in the arena:
    Tape *tape;
    Batch *batch;
    int64_t *wanted;        // scratch: offsets that the memo lacks
    Cell *fresh;            // … and their values
} Origin;

struct Evaluator {
    Arena *arena;
    InputSource inputs;
    int tensor_count;
    Origin *origins;        // by tensor id
    int depth;
    EvalMath math;
};

enum { MAX_DEPTH = 2000 };   // definitions in a chain; the evaluation is recursive

static void mark_read(Expr *expr, void *context)
{
    Evaluator *evaluator = context;
    if (expr->kind == EXPR_ACCESS)
        evaluator->origins[expr->access.tensor->id].read = true;
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
    *evaluator = (Evaluator){.arena = arena, .inputs = inputs};
    evaluator->tensor_count = program->tensor_count;
    evaluator->origins = NEW_ARRAY(arena, Origin, program->tensor_count);
    for (int i = 0; i < program->tensor_count; i++)
        evaluator->origins[i] = (Origin){.tensor = program->tensors[i], .input = -1};
    for (int i = 0; i < program->input_count; i++)
        evaluator->origins[program->inputs[i]->id].input = i;
    for (int i = 0; i < program->op_count; i++) {
        origin_from_op(&evaluator->origins[program->ops[i]->out->id], program->ops[i]);
        expr_visit(program->ops[i]->body, mark_read, evaluator);
    }
    return evaluator;
}

void evaluator_allow(Evaluator *evaluator, EvalMath math)
{
    evaluator->math = math;
}

void evaluator_free(Evaluator *evaluator)
{
    for (int i = 0; i < evaluator->tensor_count; i++)
        memo_free(&evaluator->origins[i].memo);
}

static void prepare(Evaluator *evaluator, Origin *origin)
{
    if (origin->fresh)
        return;
    origin->wanted = NEW_ARRAY(evaluator->arena, int64_t, BATCH);
    origin->fresh = NEW_ARRAY(evaluator->arena, Cell, BATCH);
    if (origin->read)
        origin->memo = memo_new(tensor_elements(origin->tensor));
    if (origin->op) {
        origin->tape = tape_compile(evaluator->arena, origin->op, origin->inner_axis, evaluator->math);
        origin->batch = NEW(evaluator->arena, Batch);
    }
}

static ReadElements read_elements;

/* The place on the spatial axes of an element of the output. */
static void element_place(const TensorOp *op, int64_t offset, int64_t *at)
{
    memset(at, 0, MAX_AXES * sizeof *at);
    for (int a = op->spatial_count - 1; a >= 0; a--) {
        at[a] = offset % op->axes[a].extent;
        offset /= op->axes[a].extent;
    }
}

/* Goes on from `at` by `length` points of the inner axis; false behind the last point of the
   reduction. */
static bool advance(const Origin *origin, int64_t *at, int length)
{
    const TensorOp *op = origin->op;
    int a = origin->inner_axis;
    at[a] += length;
    while (at[a] == op->axes[a].extent) {
        at[a] = 0;
        if (--a < op->spatial_count)
            return false;
        at[a]++;
    }
    return true;
}

static int smaller(int64_t a, int64_t b)
{
    return (int)(a < b ? a : b);
}

static Run *add_run(Batch *batch, int element, const int64_t *at, int length)
{
    Run *run = &batch->runs[batch->run_count++];
    *run = (Run){.lane = batch->lanes, .length = length, .element = element};
    memcpy(run->at, at, sizeof run->at);
    batch->lanes += length;
    return run;
}

static bool is_full(const Batch *batch)
{
    return batch->lanes == BATCH || batch->run_count == MAX_RUNS;
}

static const Cell *run_batch(Evaluator *evaluator, Origin *origin)
{
    return tape_run(origin->tape, origin->batch, read_elements, evaluator);
}

static Cell stored(const TensorOp *op, Cell cell)
{
    return cell_convert(op->out->dtype, op->body->type, cell);
}

/* Neighbours in a row that are asked for one after the other. */
static int run_length(const Origin *origin, const int64_t *offsets, int count, const int64_t *at)
{
    if (origin->inner_axis < 0)
        return 1;
    int most = smaller(count, origin->op->axes[origin->inner_axis].extent - at[origin->inner_axis]);
    int length = 1;
    while (length < most && offsets[length] == offsets[0] + length)
        length++;
    return length;
}

/* One point an element: a lane for each. */
static void compute_points(Evaluator *evaluator, Origin *origin, const int64_t *offsets, int count,
                           Cell *cells)
{
    Batch *batch = origin->batch;
    for (int next = 0; next < count;) {
        int first = next;
        batch->lanes = batch->run_count = 0;
        while (next < count && !is_full(batch)) {
            int64_t at[MAX_AXES];
            element_place(origin->op, offsets[next], at);
            int room = smaller(count - next, BATCH - batch->lanes);
            int length = run_length(origin, offsets + next, room, at);
            add_run(batch, next, at, length);
            next += length;
        }
        const Cell *values = run_batch(evaluator, origin);
        for (int i = first; i < next; i++)
            cells[i] = stored(origin->op, values[i - first]);
    }
}

/* Folds the batch's runs; a result goes out with the last run of its element. */
static void fold_batch(const Origin *origin, Fold *fold, const Cell *values, Cell *cells)
{
    const Batch *batch = origin->batch;
    for (int r = 0; r < batch->run_count; r++) {
        const Run *run = &batch->runs[r];
        fold_add(fold, values + run->lane, run->length);
        if (!run->last)
            continue;
        cells[run->element] = stored(origin->op, fold_end(fold));
        *fold = fold_start(origin->op->reduce, origin->op->body->type);
    }
}

/* Many points an element, one element after the other; a batch may hold several. */
static void compute_reductions(Evaluator *evaluator, Origin *origin, const int64_t *offsets,
                               int count, Cell *cells)
{
    const TensorOp *op = origin->op;
    Batch *batch = origin->batch;
    Fold fold = fold_start(op->reduce, op->body->type);
    int64_t at[MAX_AXES];
    element_place(op, offsets[0], at);
    for (int element = 0; element < count;) {
        batch->lanes = batch->run_count = 0;
        while (element < count && !is_full(batch)) {
            int64_t left = op->axes[origin->inner_axis].extent - at[origin->inner_axis];
            Run *run = add_run(batch, element, at, smaller(left, BATCH - batch->lanes));
            run->last = !advance(origin, at, run->length);
            if (run->last && ++element < count)
                element_place(op, offsets[element], at);
        }
        fold_batch(origin, &fold, run_batch(evaluator, origin), cells);
    }
}

static void compute_inputs(Evaluator *evaluator, Origin *origin, const int64_t *offsets, int count,
                           Cell *cells)
{
    InputSource *inputs = &evaluator->inputs;
    bool real = dtype_info[origin->tensor->dtype].is_real;
    for (int i = 0; i < count; i++) {
        if (offsets[i] < 0)   // asks for nothing
            continue;
        double value = inputs->element(inputs->context, origin->input, offsets[i]);
        if (real)
            cells[i].real = (Real){value, 0};
        else
            cells[i].whole = (Whole){(int64_t)value, 0};
    }
}

static void compute(Evaluator *evaluator, Origin *origin, const int64_t *offsets, int count,
                    Cell *cells)
{
    if (origin->input >= 0) {
        compute_inputs(evaluator, origin, offsets, count, cells);
        return;
    }
    assert(origin->op);
    if (++evaluator->depth > MAX_DEPTH)
        fatal(EXIT_MACHINE, "the reference evaluator follows chains of at most %d definitions",
              MAX_DEPTH);
    if (origin->points == 1)
        compute_points(evaluator, origin, offsets, count, cells);
    else
        compute_reductions(evaluator, origin, offsets, count, cells);
    evaluator->depth--;
}

/* At most BATCH elements, through the memo. */
static void read_elements(void *context, const Tensor *tensor, const int64_t *offsets, int count,
                          Cell *cells)
{
    Evaluator *evaluator = context;
    Origin *origin = &evaluator->origins[tensor->id];
    if (origin->input >= 0) {   // as cheap to make as to look up
        compute_inputs(evaluator, origin, offsets, count, cells);
        return;
    }
    prepare(evaluator, origin);
    int known = memo_copy(&origin->memo, offsets, count, cells);
    if (known == count)
        return;
    memo_trim(&origin->memo);
    int missing = memo_claim(&origin->memo, offsets + known, count - known, origin->wanted);
    compute(evaluator, origin, origin->wanted, missing, origin->fresh);
    memo_put(&origin->memo, origin->wanted, missing, origin->fresh);
    memo_copy(&origin->memo, offsets + known, count - known, cells + known);
}

static Value value_of_cell(DType type, Cell cell)
{
    if (dtype_info[type].is_real)
        return (Value){cell.real.value, cell.real.bound};
    return (Value){(double)cell.whole.value, cell.whole.bound};
}

void evaluate(Evaluator *evaluator, const Tensor *tensor, const int64_t *elements, int64_t count,
              Value *values)
{
    Origin *origin = &evaluator->origins[tensor->id];
    Cell cells[BATCH];
    prepare(evaluator, origin);
    for (int64_t first = 0; first < count; first += BATCH) {
        int block = smaller(BATCH, count - first);
        if (origin->read)
            read_elements(evaluator, tensor, elements + first, block, cells);
        else
            compute(evaluator, origin, elements + first, block, cells);
        for (int i = 0; i < block; i++)
            values[first + i] = value_of_cell(tensor->dtype, cells[i]);
    }
}

void evaluate_range(Evaluator *evaluator, const Tensor *tensor, int64_t first, int64_t count,
                    Value *values)
{
    int64_t offsets[BATCH];
    for (int64_t done = 0; done < count; done += BATCH) {
        int block = smaller(BATCH, count - done);
        for (int i = 0; i < block; i++)
            offsets[i] = first + done + i;
        evaluate(evaluator, tensor, offsets, block, values + done);
    }
}

// ---- judging ----

bool value_allows(DType type, double seen, Value expected)
{
    if (isnan(expected.real) || isnan(seen))
        return isnan(expected.real) && isnan(seen);
    if (!dtype_info[type].is_real && type != DTYPE_B1)   // the shorter way round
        return fabs(remainder(seen - expected.real, ldexp(1, dtype_info[type].bits))) <= expected.bound;
    return seen >= dtype_round(type, expected.real - expected.bound) &&
           seen <= dtype_round(type, expected.real + expected.bound);
}
