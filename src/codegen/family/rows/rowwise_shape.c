// How the threads of a row kernel walk along the rows, and in how many passes.
#include "base/checked.h"
#include "codegen/family/rows/rowwise_parts.h"
#include "rtile/space.h"

enum {
    NARROW = 2,        // accesses of less than that part of the widest are worth masking the ends of the rows
    WINDOW = 2,        // neighbouring elements are enough where rows are short: the more, the more are masked
    SHORT_ROW = 8192,  // elements; longer ones are copied by 16 bytes
    LEAST_LINE = 8     // elements of a vector, see below
};

RowVariant rowwise_variant(const KernelKind *kind) { return *(const RowVariant *)kind->choice.value; }

bool rowwise_keeps(RowHome home) { return home == ROW_IN_REGISTERS || home == ROW_AHEAD; }

bool rowwise_copies(RowHome home) { return home == ROW_IN_SHARED || home == ROW_AHEAD; }

// ---- vectors ----

static Walk walk_of(const Fusion *fusion, RowShape shape)
{
    return (Walk){
        .fusion = fusion,
        .ops = fusion->op_count,
        .axis = fusion->axis_count - 1,
        .vector = shape.vector,
        .unaligned = shape.unaligned,
        .lines = shape.lines,
    };
}

static Reads find_reads(const Fusion *fusion, RowShape shape) { return reads_find(walk_of(fusion, shape)); }

/* 16 bytes of the narrowest tensor that lies along the rows; bits are no obstacle. */
static int fullest_vector(const Fusion *fusion, const Reads *reads)
{
    int narrowest = 64;
    for (int i = 0; i < reads->count; i++) {
        int bits = dtype_info[reads->reads[i].access->tensor->dtype].bits;
        if (bits > 1 && bits < narrowest && access_axes(reads->reads[i].access) & fusion_columns(fusion))
            narrowest = bits;
    }
    return VECTOR_BYTES * 8 / narrowest;
}

/* Whether an element lies in memory where its point does among all points. */
static bool is_stored_in_order(const Fusion *fusion, const FusedOp *op)
{
    Affine offset = access_offset(&op->store);
    int64_t stride = 1;
    for (int a = fusion->axis_count - 1; a >= 0; stride *= fusion->axes[a--].extent)
        if (offset.coef[a] != stride)
            return false;
    return offset.constant == 0;
}

/* A vector that hangs over the ends of its row may read other elements than the expression says: only where
   no access needs a guard, all of them are made vector by vector, and rows are stored one after the other. */
static bool allows_unaligned(const Fusion *fusion, const Reads *reads)
{
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        if (op->stored && fusion_is_of_elements(fusion, &fusion->ops[i]) &&
            (op->out->dtype == DTYPE_B1 || !is_stored_in_order(fusion, op)))
            return false;
    }
    FusedAccess found[MAX_ACCESSES];
    int count = fusion_accesses(fusion, found, MAX_ACCESSES);
    for (int i = 0; i < count; i++)
        if (found[i].guarded)
            return false;
    return count < MAX_LOADED && reads->count < MAX_LOADED && fusion->axis_count == fusion->spatial_count + 1;
}

/* A vector's bits are whole bytes, which no other row shares, and leave no padding to be written. */
static bool packs_bits(const Fusion *fusion, int vector)
{
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        Affine offset = access_offset(&op->store);
        bool is_bits = op->stored && op->out->dtype == DTYPE_B1;
        if (is_bits && (!fusion_is_of_elements(fusion, op) || vector < ROWWISE_BITS ||
                        tensor_elements(op->out) % WORD_BITS ||
                        !affine_allows_vector(&offset, fusion->axis_count - 1, vector)))
            return false;
    }
    return true;
}

static RowShape widest_shape(const Fusion *fusion)
{
    Reads reads = find_reads(fusion, (RowShape){.vector = 1});
    int fullest = fullest_vector(fusion, &reads), vector = fullest;
    if (count_bit_outputs(fusion) && vector < ROWWISE_BITS)
        vector = fullest = ROWWISE_BITS;
    while (vector > 1 && fusion->axes[fusion->axis_count - 1].extent % vector)
        vector /= 2;
    int64_t columns = reduction_points(fusion);
    if (vector * NARROW < fullest && columns > fullest && allows_unaligned(fusion, &reads))
        return (RowShape){.vector = columns <= SHORT_ROW && fullest > WINDOW ? WINDOW : fullest,
                          .unaligned = true};
    return (RowShape){.vector = vector};
}

/* Weights of at least twice the bytes of all else: of layer norm of f16 rows with f32 weights two thirds of
   what blocks read and write. */
static bool are_weights_most(const Fusion *fusion, const Reads *reads)
{
    int weights = 0, rest = 0;
    for (int i = 0; i < reads->count; i++) {
        int bits = dtype_info[reads->reads[i].access->tensor->dtype].bits;
        if (rowwise_is_weight(reads, i))
            weights += bits;
        else if (access_axes(reads->reads[i].access) & fusion_columns(fusion))
            rest += bits;
    }
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored && fusion_is_of_elements(fusion, &fusion->ops[i]))
            rest += dtype_info[fusion->ops[i].out->dtype].bits;
    return rest > 0 && weights >= 2 * rest;
}

static const Reads *keep_reads(Arena *arena, const Fusion *fusion, RowShape shape)
{
    Reads reads = find_reads(fusion, shape);
    return arena_copy(arena, &reads, sizeof reads);
}

/* Softmax: max 0, exp 1, sum 1, quotient 2. */
static const PassPlan *passes_of(Arena *arena, const Reads *reads, RowHome home)
{
    return passes_find(arena, reads,
                       (PassKind){
                           .keeps = rowwise_keeps(home),
                           .early = true,
                           .leader = rowwise_keeps(home)     ? NULL
                                     : home == ROW_IN_MEMORY ? rowwise_along_any
                                                             : rowwise_along_sum,
                       });
}

const void *rowwise_view(Arena *arena, const Fusion *fusion, const Target *target)
{
    int reductions, of_elements;
    (void)target;
    if (!fusion_counts(fusion, &reductions, &of_elements) || !fusion_columns(fusion) || reductions == 0 ||
        reductions + of_elements < 2 || !passes_hold(fusion))
        return NULL;
    RowView *view = NEW(arena, RowView);
    RowShape shape = view->shape = widest_shape(fusion), half = {.vector = shape.vector / 2}, lines = shape;
    lines.lines = true;
    if (!packs_bits(fusion, shape.vector))
        return NULL;
    view->reads[0][0] = keep_reads(arena, fusion, shape);
    view->weights_most = are_weights_most(fusion, view->reads[0][0]) && !count_bit_outputs(fusion);
    if (shape.unaligned)
        view->reads[0][1] = keep_reads(arena, fusion, lines);
    else if (view->weights_most && half.vector)
        view->reads[1][0] = keep_reads(arena, fusion, half);
    for (RowHome home = 0; home < ROW_HOMES; home++)
        view->passes[home] = passes_of(arena, view->reads[0][0], home);
    return view;
}

const Reads *rowwise_reads_of(const RowView *view, RowShape shape)
{
    return view->reads[shape.vector < view->shape.vector][shape.lines];
}

/* Weights of rows that begin anywhere are put together from pieces where that is faster than single reads: in
   vectors of 8, and for rows in shared memory (tuning-log 27). */
RowShape rowwise_shape_of(const RowView *view, RowVariant variant)
{
    RowShape shape = view->shape;
    shape.vector /= variant.half ? 2 : 1;
    shape.lines = shape.unaligned && (shape.vector >= LEAST_LINE || variant.home == ROW_IN_SHARED);
    return shape;
}

int64_t rowwise_rows_apart(const Fusion *fusion, RowShape shape)
{
    int64_t apart = 1;
    while (shape.unaligned && apart * reduction_points(fusion) % shape.vector)
        apart++;
    return apart;
}

int64_t rowwise_vectors(const Fusion *fusion, RowShape shape, int64_t group)
{
    int64_t overhang = shape.unaligned ? shape.vector - 1 : 0;
    return ceil_div(reduction_points(fusion) + overhang, shape.vector * group);
}

int64_t rowwise_places(RowShape shape, RowVariant variant)
{
    return (int64_t)variant.group / variant.cluster * shape.vector;
}

bool rowwise_is_weight(const Reads *reads, int index)
{
    uint32_t axes = access_axes(reads->reads[index].access), columns = fusion_columns(reads->walk.fusion);
    return axes && (axes & ~columns) == 0;
}

uint32_t rowwise_weights(const Reads *reads)
{
    uint32_t weights = 0;
    for (int i = 0; i < reads->count; i++)
        weights |= (uint32_t)rowwise_is_weight(reads, i) << i;
    return weights;
}

bool rowwise_reads_weights_first(const Reads *reads, RowVariant variant, int64_t vectors)
{
    int64_t elements = vectors * reads->walk.vector * __builtin_popcount(rowwise_weights(reads));
    return variant.home == ROW_IN_REGISTERS && elements > 0 && elements <= MAX_WEIGHTS_FIRST;
}

static bool is_copied(const Reads *reads, int index)
{
    const Read *read = &reads->reads[index];
    int bits = dtype_info[read->access->tensor->dtype].bits;
    return read->pattern == PATTERN_ROW && !rowwise_is_weight(reads, index) && bits > 1 &&
           bits * reads->walk.vector % (8 * VECTOR_BYTES) == 0;
}

uint32_t rowwise_copied(const Reads *reads, const PassPlan *plan, RowHome home)
{
    uint32_t copied = 0, seen = 0, again = 0;
    for (int pass = 0; pass < plan->count; pass++) {
        again |= seen & plan->pass[pass].reads;
        seen |= plan->pass[pass].reads;
    }
    for (int i = 0; i < reads->count; i++)
        copied |= (uint32_t)is_copied(reads, i) << i;
    return home == ROW_AHEAD ? copied : copied & again;
}
