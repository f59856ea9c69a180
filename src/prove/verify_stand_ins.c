// Stand-ins: what a launch that is proven alone finds in place of a product that an earlier launch made.
//
// Each right element of a product of a product costs a row of the earlier product, and so on back to the
// inputs. But a product is judged where it is made, and what the next launch makes of it is a function of
// what lies in memory, whatever that is. So a few thousand of its elements are computed, at places all over
// it, from stand-ins of what it reads, and are then spread over it like the values of an input. Each launch
// costs what it would cost on inputs.
//
// Stand-ins have the range, the signs and the rounding of the right values, but they are no longer functions
// of what the product was made of. Kernels do not rely on that for a product. They do for a maximum or a mean
// of elements, which is therefore made of the elements or stand-ins that the launch finds. A tensor has
// stand-ins if
//   * it is a sum of products, or made point by point of some that no other definition reads,
//   * and the launch reads it and could not have made it from the others that it reads.
// Of a concatenation that several launches write the parts have stand-ins, and what is read of it is chosen
// among these.
#include <math.h>

#include "prove/verify_parts.h"

enum { RUN = 64 };   // adjacent elements that are computed at a time

static const double DRAW_WORK = 1e7;   // for the stand-ins of a tensor: a tenth of a second,
enum { FEWEST = 16 };                  // … or for that many of them
static const double MOST_WORK = 1e8;   // of one; else what is read is made as if there were none

// ---- which tensors ----

/* Where a tensor comes from, back to what was in memory before its launch. All by tensor id. */
typedef struct Cone {
    const Program *program;
    const StandIns *stand_ins;
    int launch;
    bool *inside;   // the launch makes it to make the tensor,
    bool *mixed;    // … from a sum of products, or as one
} Cone;

static bool is_before(const Cone *cone, const Tensor *tensor)
{
    int writer = cone->stand_ins->writer[tensor->id];
    return verify_position(cone->program->inputs, cone->program->input_count, tensor) >= 0 ||
           (writer >= 0 && writer < cone->launch);
}

static void mark_inside(Expr *expr, void *context)
{
    const Cone *cone = context;
    const Tensor *tensor = expr_tensor(expr);
    if (tensor && !is_before(cone, tensor))
        cone->inside[tensor->id] = true;
}

typedef struct MixedElements {
    uint32_t reduced;   // axes
    const Expr *first;
    bool several;   // different elements go along them
} MixedElements;

static void note_factor(Expr *expr, void *context)
{
    MixedElements *factors = context;
    if (!expr_tensor(expr) || !(expr_axes(expr) & factors->reduced))
        return;
    factors->several |= factors->first && !expr_equal(factors->first, expr);
    factors->first = factors->first ? factors->first : expr;
}

/* A sum to which two tensors bring elements, or one its elements from two places. */
static bool mixes(const TensorOp *op)
{
    MixedElements factors = {.reduced = ((1u << op->axis_count) - 1) & ~((1u << op->spatial_count) - 1)};
    if (op->reduce == REDUCE_SUM)
        expr_visit(op->body, note_factor, &factors);
    return factors.several;
}

typedef struct ReadTensors {
    const bool *of;   // by tensor id
    bool any, all;
} ReadTensors;

static void note_read(Expr *expr, void *context)
{
    ReadTensors *reads = context;
    const Tensor *tensor = expr_tensor(expr);
    if (!tensor)
        return;
    reads->any |= reads->of[tensor->id];
    reads->all &= reads->of[tensor->id];
}

static ReadTensors reads_of(const TensorOp *op, const bool *of)
{
    ReadTensors reads = {of, false, true};
    expr_visit(op->body, note_read, &reads);
    return reads;
}

/* Whether what is mixed on the way to the tensor is read by nothing else. */
static bool is_closed(const Cone *cone, const Tensor *tensor)
{
    bool own = cone->mixed[tensor->id];
    cone->mixed[tensor->id] = false;   // that may be read by all
    for (int i = 0; i < cone->program->op_count && own; i++) {
        const TensorOp *op = cone->program->ops[i];
        own = cone->inside[op->out->id] || !reads_of(op, cone->mixed).any;
    }
    return own;
}

static bool stands_alone(const Proof *proof, Arena *arena, const StandIns *stand_ins, const Tensor *tensor)
{
    const Program *program = proof->kernel->program;
    Cone cone = {program, stand_ins, stand_ins->writer[tensor->id],
                 NEW_ARRAY(arena, bool, program->tensor_count),
                 NEW_ARRAY(arena, bool, program->tensor_count)};
    bool ends_so = false;   // as a product, or point by point of what is one
    cone.inside[tensor->id] = true;
    for (int i = program->op_count - 1; i >= 0; i--)
        if (cone.inside[program->ops[i]->out->id])
            expr_visit(program->ops[i]->body, mark_inside, &cone);
    for (int i = 0; i < program->op_count; i++) {
        const TensorOp *op = program->ops[i];
        if (!cone.inside[op->out->id])
            continue;
        cone.mixed[op->out->id] = mixes(op) || reads_of(op, cone.mixed).any;
        ends_so = mixes(op) || op->reduce == REDUCE_NONE;
    }
    return ends_so && is_closed(&cone, tensor);
}

/* The tensor that the launch writes there; NULL: it writes none. */
static const Tensor *made_by(const LaunchArg *arg)
{
    return arg->written && arg->part ? arg->part : arg->written ? arg->tensor : NULL;
}

/* The tensor in memory that holds what the launch writes of this one. */
static const Tensor *holder_of(const Launch *writer, const Tensor *tensor)
{
    for (int i = 0; i < writer->arg_count; i++)
        if (made_by(&writer->args[i]) == tensor)
            return writer->args[i].tensor;
    return tensor;
}

static bool is_read_later(const Proof *proof, const StandIns *stand_ins, const Tensor *tensor)
{
    const Launch *launches = proof->kernel->launches;
    int writer = stand_ins->writer[tensor->id];
    const Tensor *holder = writer >= 0 ? holder_of(&launches[writer], tensor) : NULL;
    for (int k = writer + 1; k < proof->kernel->launch_count && holder; k++)
        for (int i = 0; i < launches[k].arg_count; i++)
            if (!launches[k].args[i].written && launches[k].args[i].tensor == holder)
                return true;
    return false;
}

StandIns verify_stand_ins(const Proof *proof)
{
    const Program *program = proof->kernel->program;
    int count = program->tensor_count;
    StandIns stand_ins = {NEW_ARRAY(proof->arena, int, count), NEW_ARRAY(proof->arena, bool, count),
                          NEW_ARRAY(proof->arena, InputTable *, count)};
    for (int i = 0; i < count; i++)
        stand_ins.writer[i] = -1;
    for (int k = 0; k < proof->kernel->launch_count; k++) {
        const Launch *launch = &proof->kernel->launches[k];
        for (int i = 0; i < launch->arg_count; i++)
            if (made_by(&launch->args[i]))
                stand_ins.writer[made_by(&launch->args[i])->id] = k;
    }
    Arena *scratch = arena_new();
    for (int i = 0; i < proof->program->tensor_count;
         i++) {   // not the plan's: no other definition reads them
        if (is_read_later(proof, &stand_ins, program->tensors[i]))
            stand_ins.allowed[i] = stands_alone(proof, scratch, &stand_ins, program->tensors[i]);
        arena_reset(scratch);
    }
    arena_free(scratch);
    return stand_ins;
}

// ---- which of them a launch reads ----

/* What the launch could make of what it reads: all that it recomputes, and maybe more. */
static void find_makeable(const Proof *proof, bool *known, bool *makeable)
{
    const Program *program = proof->kernel->program;
    for (int i = 0; i < program->op_count; i++) {
        int id = program->ops[i]->out->id;
        makeable[id] = reads_of(program->ops[i], known).all;
        known[id] |= makeable[id];
    }
}

/* The launch reads a temporary that the same launch wrote: partial results of what the tensor was made of,
   maybe. */
static bool comes_with_parts(const Proof *proof, int id)
{
    const int *writer = proof->stand_ins.writer;
    for (int i = 0; i < proof->launch->arg_count; i++) {
        const LaunchArg *arg = &proof->launch->args[i];
        bool part = !arg->written && arg->tensor->id >= proof->program->tensor_count;
        if (part && writer[arg->tensor->id] == writer[id])
            return true;
    }
    return false;
}

bool *verify_given(const Proof *proof, Arena *arena)
{
    int count = proof->kernel->program->tensor_count;
    bool *given = NEW_ARRAY(arena, bool, count), *known = NEW_ARRAY(arena, bool, count),
         *makeable = NEW_ARRAY(arena, bool, count);
    int launch = (int)(proof->launch - proof->kernel->launches);
    for (int i = 0; i < proof->launch->arg_count; i++)
        if (!proof->launch->args[i].written)
            known[proof->launch->args[i].tensor->id] = true;
    find_makeable(proof, known, makeable);
    for (int i = 0; i < count; i++)
        given[i] = proof->stand_ins.tables[i] && proof->stand_ins.writer[i] < launch && !makeable[i] &&
                   !comes_with_parts(proof, i);
    return given;
}

// ---- what they are ----

/* Squares of what is no larger stay finite, and sums of its products with small whole numbers exact. */
static double largest_of(InputKind kind, DType type)
{
    return kind == INPUT_WHOLE || type == DTYPE_F16 ? 0x1p8 : type == DTYPE_F64 ? 0x1p511 : 0x1p63;
}

/* Products of products grow: by a power of two they are as they were. */
static void keep_in_range(Value *values, int count, InputKind kind, DType type)
{
    double largest = 0;
    bool whole = true;
    for (int i = 0; i < count && dtype_info[type].is_real; i++) {
        double size = fabs(values[i].real);
        largest = isfinite(size) && size > largest ? size : largest;
        whole &= !isfinite(size) || size == floor(size);
    }
    int exponent = largest > largest_of(kind, type) ? ilogb(largest / largest_of(kind, type)) + 1 : 0;
    for (int i = 0; i < count && exponent > 0; i++) {
        double value = ldexp(values[i].real, -exponent);
        values[i].real = dtype_round(type, whole ? rint(value) : value);
    }
}

/* Places all over the tensor, the same for all of its size: frac(n * golden ratio) of it. */
static int64_t place_of_run(int run, int64_t elements)
{
    double turns = run * 0x1.3c6ef372fe95p-1;
    return elements <= RUN ? 0 : (int64_t)((turns - floor(turns)) * (double)(elements - RUN));
}

/* As many as there is time for. */
static int count_of(double work)
{
    double affordable = DRAW_WORK / work;
    return affordable > INPUT_VALUES ? INPUT_VALUES : affordable < FEWEST ? FEWEST : (int)affordable;
}

static void draw(Proof *proof, const Tensor *tensor)
{
    const Told *told = &proof->told;
    Evaluator *evaluator = verify_is_too_costly(proof, tensor) ? told->guess : told->reference;
    double work = evaluator_work(evaluator, tensor, false);
    if (work > MOST_WORK)
        return;
    int64_t elements = tensor_elements(tensor), each = elements < RUN ? elements : RUN;
    each = count_of(work) < each ? count_of(work) : each;
    int runs = count_of(work) / (int)each, count = runs * (int)each;
    Value *values = NEW_ARRAY(told->arena, Value, count);
    for (int r = 0; r < runs; r++)
        evaluate_range(evaluator, tensor, place_of_run(r, elements), each, values + r * each);
    keep_in_range(values, count, proof->kind, tensor->dtype);
    InputTable *table = NEW(proof->arena, InputTable);
    for (int i = 0; i < INPUT_VALUES; i++)
        verify_table_set(table, tensor->dtype, i, values[i % count].real);
    proof->stand_ins.tables[tensor->id] = table;
}

void verify_draw(Proof *proof)
{
    const Launch *launch = proof->launch;
    for (int i = 0; i < launch->arg_count && !proof->report->message; i++) {
        const Tensor *tensor = made_by(&launch->args[i]);
        if (tensor && proof->stand_ins.allowed[tensor->id])
            draw(proof, tensor);
    }
}
