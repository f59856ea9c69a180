// Elements on demand: it goes from an output to the inputs, each op over batches of points, and what was
// computed once is kept.
#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "ir/eval_origin.h"

enum { MAX_DEPTH = 2000 };   // definitions that read each other; the evaluation is recursive

static ReadElements read_elements;

/* The place on the spatial axes of an element of the output. */
static void element_place(const TensorOp *op, int64_t offset, int64_t *at)
{
    int a = op->spatial_count - 1;
    memset(at, 0, MAX_AXES * sizeof *at);
    for (; a >= 0 && offset >= UINT32_MAX; a--) {
        at[a] = offset % op->axes[a].extent;
        offset /= op->axes[a].extent;
    }
    for (uint32_t rest = (uint32_t)offset; a >= 0 && rest > 0; a--) {   // four times as fast
        uint32_t extent = op->axes[a].extent > UINT32_MAX ? UINT32_MAX : (uint32_t)op->axes[a].extent;
        at[a] = rest % extent;
        rest /= extent;
    }
}

/* Goes on from `at` by `length` points of the inner axis; false behind the last point of the
   reduction. */
static bool advance(const Origin *origin, int64_t *at, int length)
{
    const TensorOp *op = origin->op;
    int a = origin->inner_axis;
    at[a] += length;
    if (origin->skip[a] && at[a] % (WINDOW + origin->skip[a]) == WINDOW)
        at[a] += origin->skip[a];
    while (at[a] >= op->axes[a].extent) {
        at[a] = 0;
        if (--a < op->spatial_count)
            return false;
        at[a] += 1 + origin->skip[a];
    }
    return true;
}

/* Points of the inner axis from `at` on that are looked at one after the other. */
static int64_t points_ahead(const Origin *origin, const int64_t *at)
{
    int a = origin->inner_axis;
    int64_t left = origin->op->axes[a].extent - at[a];
    int64_t window = origin->skip[a] ? WINDOW - at[a] % (WINDOW + origin->skip[a]) : left;
    return left < window ? left : window;
}

static Run *add_run(Batch *batch, int element, const int64_t *at, int axis, int length)
{
    Run *run = &batch->runs[batch->run_count++];
    run->lane = batch->lanes;
    run->length = length;
    run->axis = axis;
    run->element = element;
    run->last = false;
    memcpy(run->at, at, sizeof run->at);
    batch->lanes += length;
    return run;
}

static bool is_full(const Batch *batch)
{
    return batch->lanes == BATCH || batch->run_count == MAX_RUNS;
}

static void run_batch(Evaluator *evaluator, Origin *origin)
{
    tape_run(origin->tape, origin->batch, read_elements, evaluator);
}

/* The interval that covers all forms of a sum. */
static Cell any_form(const Origin *origin, const Cell *sums, int lane)
{
    Cell result = sums[0];
    for (int f = 1; f < origin->forms.count; f++)
        result.real = real_either(result.real, tape_finish(origin->tape, f, sums[f], lane).real);
    return result;
}

/* Of one term. */
static Cell any_form_of_point(const Origin *origin, int lane)
{
    Cell terms[MOST_FORMS];
    for (int f = 0; f < origin->forms.count; f++)
        terms[f] = tape_terms(origin->tape, f)[lane];
    return any_form(origin, terms, lane);
}

static Cell stored(const Origin *origin, Cell cell)
{
    const TensorOp *op = origin->op;
    Cell rounded = cell_convert(op->out->dtype, op->body->type, cell);
    return origin->loose && op->body->type == DTYPE_F32 ? cell_loosen(op->out->dtype, cell, rounded)
                                                        : rounded;
}

/* The axis along which elements at that distance are adjacent, a row's or a column's; -1: none. */
static int axis_of_step(const TensorOp *op, int64_t step)
{
    int64_t stride = 1;
    for (int a = op->spatial_count - 1; a >= 0 && stride <= step; a--) {
        if (stride == step && op->axes[a].extent > 1)
            return a;
        stride *= op->axes[a].extent;
    }
    return -1;
}

/* A run of those that are asked for one after the other. */
static int add_points(Batch *batch, const TensorOp *op, const int64_t *offsets, int first, int count)
{
    int64_t at[MAX_AXES];
    int64_t step = count > 1 ? offsets[first + 1] - offsets[first] : 0;
    int axis = axis_of_step(op, step), length = 1;
    element_place(op, offsets[first], at);
    int most = axis < 0 ? 1 : (int)smaller(count, op->axes[axis].extent - at[axis]);
    while (length < most && offsets[first + length] == offsets[first + length - 1] + step)
        length++;
    add_run(batch, first, at, axis, length);
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
        while (next < count && !is_full(batch))
            next += add_points(batch, origin->op, offsets, next,
                               (int)smaller(count - next, BATCH - batch->lanes));
        run_batch(evaluator, origin);
        const Cell *values = tape_terms(origin->tape, 0);
        bool plain = origin->forms.count == 1;
        for (int i = first; i < next; i++)
            cells[i] = stored(origin, plain ? values[i - first] : any_form_of_point(origin, i - first));
    }
}

static void start_folds(const Origin *origin, Fold *folds)
{
    for (int f = 0; f < origin->forms.count; f++)
        folds[f] = fold_start(origin->op->reduce, origin->op->body->type);
}

static Cell end_folds(const Origin *origin, const Fold *folds, int lane)
{
    Cell sums[MOST_FORMS];
    if (origin->estimated)
        return fold_estimate(&folds[0], origin->points);
    for (int f = 0; f < origin->forms.count; f++)
        sums[f] = fold_end(&folds[f]);
    return any_form(origin, sums, lane);
}

/* Folds the batch's runs, those of each form for itself; a result goes out with the last run of its
   element. */
static void fold_batch(const Origin *origin, Fold *folds, Cell *cells)
{
    const Batch *batch = origin->batch;
    for (int r = 0; r < batch->run_count; r++) {
        const Run *run = &batch->runs[r];
        for (int f = 0; f < origin->forms.count; f++)
            fold_add(&folds[f], tape_terms(origin->tape, f) + run->lane, run->length);
        if (!run->last)
            continue;
        cells[run->element] = stored(origin, end_folds(origin, folds, run->lane));
        start_folds(origin, folds);
    }
}

/* Many points an element, one element after the other; a batch may hold several. */
static void compute_reductions(Evaluator *evaluator, Origin *origin, const int64_t *offsets,
                               int count, Cell *cells)
{
    const TensorOp *op = origin->op;
    Batch *batch = origin->batch;
    Fold folds[MOST_FORMS];
    int64_t at[MAX_AXES];
    start_folds(origin, folds);
    element_place(op, offsets[0], at);
    for (int element = 0; element < count;) {
        batch->lanes = batch->run_count = 0;
        while (element < count && !is_full(batch)) {
            int length = (int)smaller(points_ahead(origin, at), BATCH - batch->lanes);
            Run *run = add_run(batch, element, at, origin->inner_axis, length);
            run->last = !advance(origin, at, run->length);
            if (run->last && ++element < count)
                element_place(op, offsets[element], at);
        }
        run_batch(evaluator, origin);
        fold_batch(origin, folds, cells);
    }
}

static void compute_inputs(const Origin *origin, const int64_t *offsets, int count, Cell *cells)
{
    const InputSource *inputs = &origin->source;
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

static void compute_given(Origin *origin, const int64_t *offsets, int count, Cell *cells)
{
    Value values[BATCH];
    evaluate(origin->other, origin->tensor, offsets, count, values);
    for (int i = 0; i < count; i++)
        if (dtype_info[origin->tensor->dtype].is_real)
            cells[i].real =
                (Real){dtype_round(origin->tensor->dtype, values[i].real), 0};   // as it was stored
        else
            cells[i].whole = (Whole){values[i].whole, 0};
}

static void compute(Evaluator *evaluator, Origin *origin, const int64_t *offsets, int count,
                    Cell *cells)
{
    if (origin->other) {
        compute_given(origin, offsets, count, cells);
        return;
    }
    if (origin->input >= 0) {
        compute_inputs(origin, offsets, count, cells);
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

/* Equal offsets in a row are computed once. A negative offset asks for nothing. */
static void read_anew(Evaluator *evaluator, Origin *origin, const int64_t *offsets, int count, Cell *cells)
{
    int wanted = 0;
    for (int i = 0; i < count; i++)
        if (offsets[i] >= 0 && (wanted == 0 || origin->wanted[wanted - 1] != offsets[i]))
            origin->wanted[wanted++] = offsets[i];
    compute(evaluator, origin, origin->wanted, wanted, origin->fresh);
    for (int i = 0, k = -1; i < count; i++) {
        if (offsets[i] < 0)
            continue;
        if (k < 0 || origin->wanted[k] != offsets[i])
            k++;
        cells[i] = origin->fresh[k];
    }
}

/* At most BATCH elements, through the memo. */
static void read_elements(void *context, const Tensor *tensor, const int64_t *offsets, int count,
                          Cell *cells)
{
    Evaluator *evaluator = context;
    Origin *origin = &evaluator->origins[tensor->id];
    if (origin->input >= 0) {   // as cheap to make as to look up
        compute_inputs(origin, offsets, count, cells);
        return;
    }
    origin_prepare(evaluator, origin);
    if (!origin_is_kept(origin)) {
        read_anew(evaluator, origin, offsets, count, cells);
        return;
    }
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
        return (Value){cell.real.value, cell.real.bound, 0};
    return (Value){(double)cell.whole.value, cell.whole.bound, cell.whole.value};
}

void evaluate(Evaluator *evaluator, const Tensor *tensor, const int64_t *elements, int64_t count,
              Value *values)
{
    Origin *origin = &evaluator->origins[tensor->id];
    Cell cells[BATCH];
    origin_prepare(evaluator, origin);
    for (int64_t first = 0; first < count; first += BATCH) {
        int block = (int)smaller(BATCH, count - first);
        if (origin_is_kept(origin))
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
        int block = (int)smaller(BATCH, count - done);
        for (int i = 0; i < block; i++)
            offsets[i] = first + done + i;
        evaluate(evaluator, tensor, offsets, block, values + done);
    }
}
