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

RowVariant rowwise_variant(const TileRules *rules)
{
    RowVariant variant;
    rules_chosen(rules, &variant, sizeof variant);
    return variant;
}

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

Reads rowwise_reads(const Fusion *fusion, RowShape shape) { return reads_find(walk_of(fusion, shape)); }

/* 16 bytes of the narrowest tensor that lies along the rows; bits are no obstacle. */
static int fullest_vector(const Fusion *fusion, const Reads *reads)
{
    int narrowest = 64;
    for (int i = 0; i < reads->count; i++) {
        int bits = dtype_info[reads->reads[i].access->tensor->dtype].bits;
        if (bits > 1 && bits < narrowest && access_axes(reads->reads[i].access) & fusion_columns(fusion))
            narrowest = bits;
    }
    return ACCESS_BYTES * 8 / narrowest;
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
        if (op->stored && fusion_op_is_of_elements(fusion, op) && !is_stored_in_order(fusion, op))
            return false;
    }
    FusedAccess found[MAX_ACCESSES];
    int count = fusion_accesses(fusion, found, MAX_ACCESSES);
    for (int i = 0; i < count; i++)
        if (found[i].guarded)
            return false;
    return count < MAX_LOADED && reads->count < MAX_LOADED && fusion->axis_count == fusion->spatial_count + 1;
}

RowShape rowwise_shape(const Fusion *fusion)
{
    Reads reads = rowwise_reads(fusion, (RowShape){.vector = 1});
    int fullest = fullest_vector(fusion, &reads), vector = fullest;
    while (vector > 1 && fusion->axes[fusion->axis_count - 1].extent % vector)
        vector /= 2;
    int64_t columns = reduction_points(fusion);
    if (vector * NARROW < fullest && columns > fullest && allows_unaligned(fusion, &reads))
        return (RowShape){.vector = columns <= SHORT_ROW && fullest > WINDOW ? WINDOW : fullest,
                          .unaligned = true};
    return (RowShape){.vector = vector};
}

/* Weights of rows that begin anywhere are put together from pieces where that is faster than single reads: in
   vectors of 8, and for rows in shared memory (tuning-log 27). */
RowShape rowwise_shape_of(const Fusion *fusion, RowVariant variant)
{
    RowShape shape = rowwise_shape(fusion);
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

int rowwise_weights(const Reads *reads)
{
    int count = 0;
    for (int i = 0; i < reads->count; i++)
        count += rowwise_is_weight(reads, i);
    return count;
}

bool rowwise_reads_weights_first(const Reads *reads, RowVariant variant, int64_t vectors)
{
    int64_t elements = vectors * reads->walk.vector * rowwise_weights(reads);
    return variant.home == ROW_IN_REGISTERS && elements > 0 && elements <= MAX_WEIGHTS_FIRST;
}

bool rowwise_is_copied(const Reads *reads, int index)
{
    const Read *read = &reads->reads[index];
    int bits = dtype_info[read->access->tensor->dtype].bits;
    return read->pattern == PATTERN_ROW && !rowwise_is_weight(reads, index) && bits > 1 &&
           bits * reads->walk.vector % (8 * ACCESS_BYTES) == 0;
}
