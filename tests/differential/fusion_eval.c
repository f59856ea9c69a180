#include "differential/fusion_eval.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ir/concatenation.h"
#include "ir/eval_parts.h"

enum { LANES = BATCH };   // points that are evaluated together

/* One kernel under way. */
typedef struct Launch {
    Memory *memory;
    const Fusion *fusion;
    Scalar **values;   // by op: at the points of its spatial axes, row-major
    int op;            // under way
    int count;         // of lanes
    int64_t at[MAX_AXES][LANES];
    const char *finding;   // the first
} Launch;

#define FINDING(launch, ...)                                                                                 \
    ((launch)->finding =                                                                                     \
         (launch)->finding ? (launch)->finding : arena_printf((launch)->memory->arena, __VA_ARGS__))

// ---- points ----

static uint32_t all_axes(const Fusion *fusion) { return (1u << fusion->axis_count) - 1; }

static int64_t points_of(const Fusion *fusion, uint32_t axes)
{
    int64_t points = 1;
    for (int a = 0; a < fusion->axis_count; a++)
        if (axes >> a & 1)
            points *= fusion->axes[a].extent;
    return points;
}

/* The order in which points are met: rows of `outer` axes, then `inner` ones, the last of them fastest. */
typedef struct Walk {
    int axes[MAX_AXES], count;
    int64_t extents[MAX_AXES], at[MAX_AXES];
    int64_t left;
} Walk;

static void walk_add(Walk *walk, const Fusion *fusion, uint32_t axes)
{
    for (int a = 0; a < fusion->axis_count; a++)
        if (axes >> a & 1) {
            walk->axes[walk->count] = a;
            walk->extents[walk->count++] = fusion->axes[a].extent;
        }
}

static Walk walk_start(const Fusion *fusion, uint32_t outer, uint32_t inner)
{
    Walk walk = {.left = points_of(fusion, outer) * points_of(fusion, inner)};
    walk_add(&walk, fusion, outer);
    walk_add(&walk, fusion, inner);
    return walk;
}

static void walk_advance(Walk *walk)
{
    for (int i = walk->count - 1; i >= 0 && ++walk->at[i] == walk->extents[i]; i--)
        walk->at[i] = 0;
}

/* The next points as lanes; false behind the last. */
static bool next_lanes(Launch *launch, Walk *walk)
{
    launch->count = (int)(walk->left < LANES ? walk->left : LANES);
    walk->left -= launch->count;
    for (int lane = 0; lane < launch->count; lane++) {
        for (int i = 0; i < walk->count; i++)
            launch->at[walk->axes[i]][lane] = walk->at[i];
        walk_advance(walk);
    }
    return launch->count > 0;
}

static void affine_lanes(const Launch *launch, const Affine *form, int64_t *values)
{
    for (int lane = 0; lane < launch->count; lane++)
        values[lane] = form->constant;
    for (int a = 0; a < launch->fusion->axis_count; a++)
        if (form->coef[a])
            for (int lane = 0; lane < launch->count; lane++)
                values[lane] += form->coef[a] * launch->at[a][lane];
}

/* Flat positions among the values of an op with these axes. */
static Affine position_among(const Fusion *fusion, uint32_t axes)
{
    Affine form = affine_constant(0);
    int64_t stride = 1;
    for (int a = fusion->axis_count - 1; a >= 0; a--)
        if (axes >> a & 1) {
            form.coef[a] = stride;
            stride *= fusion->axes[a].extent;
        }
    return form;
}

// ---- expressions ----

static Scalar converted(DType to, DType from, Scalar value)
{
    bool real = dtype_info[from].is_real;
    Cell cell =
        cell_convert(to, from, real ? (Cell){.real = {value.real, 0}} : (Cell){.whole = {value.whole, 0}});
    return dtype_info[to].is_real ? (Scalar){.real = cell.real.value} : (Scalar){.whole = cell.whole.value};
}

static Scalar applied(const Launch *launch, Op op, DType type, Scalar a, Scalar b)
{
    if (dtype_info[type].is_real) {
        double value = op_value(op, a.real, b.real);
        return (Scalar){.real = launch->memory->rounds ? dtype_round(type, value) : value};
    }
    return (Scalar){.whole = whole_apply(op, type, (Whole){a.whole, 0}, (Whole){b.whole, 0}).value};
}

static Scalar compared(Op op, DType type, Scalar a, Scalar b)
{
    if (dtype_info[type].is_real)
        return (Scalar){.whole = op_value(op, a.real, b.real) != 0};
    return (Scalar){.whole = whole_compare(op, (Whole){a.whole, 0}, (Whole){b.whole, 0}).value};
}

static void eval(Launch *launch, const Expr *expr, const bool *inside, Scalar *result);

static void eval_elements(Launch *launch, const Tensor *tensor, const int64_t *offsets, const bool *inside,
                          Scalar *result)
{
    const Storage *storage = memory_of(launch->memory, tensor);
    if (tensor->dtype != storage->tensor->dtype || tensor->part_first)
        FINDING(launch, "%s is read in units, but not just moved, or from a part on", tensor->name);
    for (int lane = 0; lane < launch->count; lane++) {
        result[lane].whole = 0;
        if (!inside[lane] || launch->finding)
            continue;
        if (offsets[lane] < 0 || offsets[lane] >= storage->count)
            FINDING(launch, "element %" PRId64 " of %s is read, which has %" PRId64, offsets[lane],
                    tensor->name, storage->count);
        else if (!storage->written[offsets[lane]])
            FINDING(launch, "element %" PRId64 " of %s is read before it is written", offsets[lane],
                    tensor->name);
        else
            result[lane] = storage->elements[offsets[lane]];
    }
}

static void eval_access(Launch *launch, const Access *access, const bool *inside, Scalar *result)
{
    Affine form = access_offset(access);
    int64_t offsets[LANES];
    affine_lanes(launch, &form, offsets);
    eval_elements(launch, access->tensor, offsets, inside, result);
}

static void add_places(Launch *launch, const Fetch *fetch, const bool *inside, int64_t *offsets)
{
    Scalar place[LANES];
    for (int i = 0; i < fetch->count; i++) {
        eval(launch, fetch->places[i].value, inside, place);
        for (int lane = 0; lane < launch->count; lane++)
            offsets[lane] += inside[lane] ? fetch->places[i].stride * place[lane].whole : 0;
    }
}

static void eval_fetch(Launch *launch, const Fetch *fetch, const bool *inside, Scalar *result)
{
    Affine form = access_offset(&fetch->access);
    int64_t offsets[LANES];
    affine_lanes(launch, &form, offsets);
    add_places(launch, fetch, inside, offsets);
    eval_elements(launch, fetch->access.tensor, offsets, inside, result);
}

static void eval_guard(Launch *launch, const Guard *guard, const bool *outside, Scalar *result)
{
    bool inside[LANES];
    memcpy(inside, outside, sizeof inside);
    for (int i = 0; i < guard->count; i++) {
        int64_t values[LANES];
        affine_lanes(launch, &guard->bounds[i].index, values);
        for (int lane = 0; lane < launch->count; lane++)
            inside[lane] &= values[lane] >= 0 && values[lane] < guard->bounds[i].size;
    }
    Scalar otherwise[LANES];
    eval(launch, guard->body, inside, result);
    eval(launch, guard->otherwise, outside, otherwise);
    for (int lane = 0; lane < launch->count; lane++)
        if (!inside[lane])
            result[lane] = otherwise[lane];
}

static void eval_apply(Launch *launch, const Expr *expr, const bool *inside, Scalar *result)
{
    Op op = expr->apply.op;
    DType type = expr->apply.operands[0]->type;
    Scalar operands[MAX_OPERANDS][LANES];
    int count = op_info[op].operands;
    const Scalar *a = operands[0], *b = operands[count > 1 ? 1 : 0], *c = operands[count - 1];
    for (int i = 0; i < count; i++)
        eval(launch, expr->apply.operands[i], inside, operands[i]);
    for (int lane = 0; lane < launch->count; lane++)
        switch (op_info[op].class) {
        case OP_CLASS_ARITH:
        case OP_CLASS_WHOLE:
        case OP_CLASS_REAL: result[lane] = applied(launch, op, expr->type, a[lane], b[lane]); break;
        case OP_CLASS_COMPARE: result[lane] = compared(op, type, a[lane], b[lane]); break;
        case OP_CLASS_LOGIC:
            result[lane].whole = op_value(op, (double)a[lane].whole, (double)b[lane].whole) != 0;
            break;
        case OP_CLASS_SELECT: result[lane] = a[lane].whole ? b[lane] : c[lane]; break;
        }
}

static void eval_value(Launch *launch, int index, Scalar *result)
{
    const FusedOp *op = &launch->fusion->ops[index], *reader = &launch->fusion->ops[launch->op];
    if (index >= launch->op || op->spatial & ~(reader->spatial | reader->reduced)) {
        FINDING(launch, "%s uses %s, which is not made at its points", reader->out->name, op->out->name);
        memset(result, 0, sizeof *result * LANES);
        return;
    }
    Affine form = position_among(launch->fusion, op->spatial);
    int64_t positions[LANES];
    affine_lanes(launch, &form, positions);
    for (int lane = 0; lane < launch->count; lane++)
        result[lane] = launch->values[index][positions[lane]];
}

/* `inside`: the lanes for which all guards above hold; only there is memory read. */
static void eval(Launch *launch, const Expr *expr, const bool *inside, Scalar *result)
{
    int64_t values[LANES];
    Scalar constant;
    switch (expr->kind) {
    case EXPR_CONST:
        constant.whole = expr->constant.integer;
        if (dtype_info[expr->type].is_real)   // 0.1 is 0.1f
            constant.real = dtype_round(expr->type, expr->constant.real);
        for (int lane = 0; lane < launch->count; lane++)
            result[lane] = constant;
        break;
    case EXPR_INDEX:
        affine_lanes(launch, &expr->index, values);
        for (int lane = 0; lane < launch->count; lane++)
            result[lane].whole = values[lane];
        break;
    case EXPR_ACCESS: eval_access(launch, &expr->access, inside, result); break;
    case EXPR_FETCH: eval_fetch(launch, &expr->fetch, inside, result); break;
    case EXPR_GUARD: eval_guard(launch, &expr->guard, inside, result); break;
    case EXPR_APPLY: eval_apply(launch, expr, inside, result); break;
    case EXPR_CAST:
        eval(launch, expr->cast.body, inside, result);
        for (int lane = 0; lane < launch->count; lane++)
            result[lane] = converted(expr->cast.to, expr->cast.body->type, result[lane]);
        break;
    case EXPR_VALUE: eval_value(launch, expr->value, result); break;
    }
}

// ---- ops ----

static const Op combiners[] = {
    [REDUCE_SUM] = OP_ADD, [REDUCE_MAX] = OP_MAX, [REDUCE_MIN] = OP_MIN, [REDUCE_PROD] = OP_MUL};

/* The op's value at every point of its spatial axes. */
static void make_values(Launch *launch, const FusedOp *op)
{
    static const bool everywhere[LANES] = {[0 ... LANES - 1] = true};
    int64_t terms = points_of(launch->fusion, op->reduced), term = 0, point = 0;
    Scalar lanes[LANES] = {0}, result = {.whole = 0};
    Walk walk = walk_start(launch->fusion, op->spatial, op->reduced);
    launch->values[launch->op] =
        NEW_ARRAY(launch->memory->arena, Scalar, points_of(launch->fusion, op->spatial));
    while (next_lanes(launch, &walk) && !launch->finding) {
        eval(launch, op->body, everywhere, lanes);
        for (int lane = 0; lane < launch->count; lane++) {
            result = term == 0 ? lanes[lane]
                               : applied(launch, combiners[op->reduce], op->body->type, result, lanes[lane]);
            if (++term < terms)
                continue;
            launch->values[launch->op][point++] = converted(op->out->dtype, op->body->type, result);
            term = 0;
        }
    }
}

static void write_element(Launch *launch, Storage *storage, int64_t offset, Scalar value)
{
    const char *name = storage->tensor->name;
    if (offset < 0 || offset >= storage->count) {
        FINDING(launch, "element %" PRId64 " of %s is written, which has %" PRId64, offset, name,
                storage->count);
        return;
    }
    if (storage->written[offset])
        FINDING(launch, "element %" PRId64 " of %s is written twice", offset, name);
    storage->written[offset] = true;
    storage->elements[offset] = value;
}

static void store_values(Launch *launch, const FusedOp *op)
{
    Storage *storage = memory_of(launch->memory, op->out);
    Affine form = access_offset(&op->store);
    form.constant += op->out->part_first;
    Walk walk = walk_start(launch->fusion, op->spatial, 0);
    int64_t offsets[LANES], point = 0;
    if (storage->tensor->dtype != op->out->dtype)
        FINDING(launch, "%s is written in units, but not just moved", op->out->name);
    while (next_lanes(launch, &walk) && !launch->finding) {
        affine_lanes(launch, &form, offsets);
        for (int lane = 0; lane < launch->count; lane++)
            write_element(launch, storage, offsets[lane], launch->values[launch->op][point++]);
    }
}

/* Nothing is computed, but in units of several elements: each is so many of them. */
static bool moves_units(Launch *launch, const FusedOp *op)
{
    const Tensor *read = expr_tensor(op->body);
    return read && op->reduce == REDUCE_NONE && read->dtype == op->out->dtype &&
           memory_of(launch->memory, op->out)->tensor->dtype != op->out->dtype;
}

static void move_unit(Launch *launch, const Storage *from, int64_t source, Storage *to, int64_t target,
                      int64_t size)
{
    for (int64_t i = 0; i < size; i++) {
        int64_t offset = source * size + i;
        bool known = offset >= 0 && offset < from->count && from->written[offset];
        if (!known)
            FINDING(launch, "element %" PRId64 " of %s is read, which is not there", offset,
                    from->tensor->name);
        else
            write_element(launch, to, target * size + i, from->elements[offset]);
    }
}

static void move_units(Launch *launch, const FusedOp *op)
{
    static const bool everywhere[LANES] = {[0 ... LANES - 1] = true};
    const Access *read = op->body->kind == EXPR_FETCH ? &op->body->fetch.access : &op->body->access;
    const Storage *from = memory_of(launch->memory, read->tensor);
    Storage *to = memory_of(launch->memory, op->out);
    Affine source = access_offset(read), target = access_offset(&op->store);
    target.constant += op->out->part_first;
    int64_t sources[LANES], targets[LANES];
    int64_t size = dtype_info[op->out->dtype].bits / dtype_info[to->tensor->dtype].bits;
    Walk walk = walk_start(launch->fusion, op->spatial, 0);
    if (from->tensor->dtype != to->tensor->dtype)
        FINDING(launch, "%s is moved to %s as it is", from->tensor->name, to->tensor->name);
    while (next_lanes(launch, &walk) && !launch->finding) {
        affine_lanes(launch, &source, sources);
        affine_lanes(launch, &target, targets);
        if (op->body->kind == EXPR_FETCH)
            add_places(launch, &op->body->fetch, everywhere, sources);
        for (int lane = 0; lane < launch->count; lane++)
            move_unit(launch, from, sources[lane], to, targets[lane], size);
    }
}

// ---- kernels ----

static bool is_listed(Tensor *const *list, int count, const Tensor *tensor)
{
    for (int i = 0; i < count; i++)
        if (list[i] == tensor)
            return true;
    return false;
}

static void check_reads(Expr *expr, void *context)
{
    Launch *launch = context;
    const Fusion *fusion = launch->fusion;
    if (expr->kind != EXPR_ACCESS)
        return;
    const Tensor *tensor = expr->access.tensor;
    if (!is_listed(fusion->inputs, fusion->input_count, tensor))
        FINDING(launch, "%s is read, but not among the inputs", tensor->name);
    for (int i = 0; i < fusion->output_count; i++)
        if (memory_of(launch->memory, fusion->outputs[i]) == memory_of(launch->memory, tensor))
            FINDING(launch, "%s is read and written by the same kernel", tensor->name);
}

static void check_op(Launch *launch, const FusedOp *op)
{
    const Fusion *fusion = launch->fusion;
    const char *name = op->out->name;
    uint32_t axes = op->spatial | op->reduced;
    if (axes & ~all_axes(fusion) || op->spatial & op->reduced)
        FINDING(launch, "%s is made over axes that it cannot have", name);
    if (op->reduced && op->reduce == REDUCE_NONE)
        FINDING(launch, "%s has axes to reduce, but no reduction", name);
    if (expr_axes(op->body) & ~axes)
        FINDING(launch, "%s is made of axes that are not its own", name);
    if (op->stored && access_axes(&op->store) & ~op->spatial)
        FINDING(launch, "%s is stored along axes that are not its own", name);
    if (op->stored != is_listed(fusion->outputs, fusion->output_count, op->out))
        FINDING(launch, "%s is stored and not among the outputs, or the other way round", name);
    expr_visit(op->body, check_reads, launch);
}

static void check_axes(Launch *launch)
{
    const Fusion *fusion = launch->fusion;
    for (int a = 0; a < fusion->axis_count; a++)
        if (fusion->axes[a].reduction != (a >= fusion->spatial_count) || fusion->axes[a].extent < 1)
            FINDING(launch, "axis %d of %d spatial ones says otherwise", a, fusion->spatial_count);
}

/* Rows of elements of which the kernel makes those from `first` to `end`: of a concatenation a part, else one row, all. */
typedef struct OwnPart {
    Storage *storage;
    int64_t row, first, end;
} OwnPart;

static OwnPart own_part(Memory *memory, const Fusion *fusion, const Tensor *tensor)
{
    Storage *storage = memory_of(memory, tensor);
    if (!tensor->part_stride)
        return (OwnPart){storage, storage->count, 0, storage->count};
    RowPart part = fusion_part(fusion, tensor, true);
    int64_t size = dtype_info[tensor->dtype].bits / dtype_info[storage->tensor->dtype].bits;   // of a unit
    return (OwnPart){storage, tensor->part_stride * size, part.first * size, part.end * size};
}

static void check_outputs(Launch *launch)
{
    for (int i = 0; i < launch->fusion->output_count; i++) {
        OwnPart part = own_part(launch->memory, launch->fusion, launch->fusion->outputs[i]);
        for (int64_t row = 0; row < part.storage->count; row += part.row) {
            const bool *written = part.storage->written + row + part.first;
            const bool *missing = memchr(written, false, (size_t)(part.end - part.first));
            if (missing)
                FINDING(launch, "element %td of %s is never written", missing - part.storage->written,
                        part.storage->tensor->name);
        }
    }
}

/* A kernel is evaluated again and again, in other forms. */
static void forget_outputs(Memory *memory, const Fusion *fusion)
{
    for (int i = 0; i < fusion->output_count; i++) {
        OwnPart part = own_part(memory, fusion, fusion->outputs[i]);
        for (int64_t row = 0; row < part.storage->count; row += part.row)
            memset(part.storage->written + row + part.first, false, (size_t)(part.end - part.first));
    }
}

const char *fusion_evaluate(Memory *memory, const Fusion *fusion)
{
    Launch *launch = NEW(memory->arena, Launch);
    launch->memory = memory;
    launch->fusion = fusion;
    launch->values = NEW_ARRAY(memory->arena, Scalar *, fusion->op_count);
    check_axes(launch);
    forget_outputs(memory, fusion);
    for (launch->op = 0; launch->op < fusion->op_count && !launch->finding; launch->op++) {
        const FusedOp *op = &fusion->ops[launch->op];
        check_op(launch, op);
        if (launch->finding)
            break;
        if (moves_units(launch, op)) {
            move_units(launch, op);
            continue;
        }
        make_values(launch, op);
        if (op->stored && !launch->finding)
            store_values(launch, op);
    }
    if (!launch->finding)
        check_outputs(launch);
    return launch->finding;
}

double fusion_steps(const Fusion *fusion)
{
    double steps = 0;
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        steps += (double)points_of(fusion, op->spatial | op->reduced) * expr_size(op->body);
    }
    return steps;
}
