// What a resident kernel keeps, and where in the shared memory of a block.
#include "base/checked.h"
#include "codegen/family/rows/resident_parts.h"
#include "rtile/space.h"

enum {
    WORD_BITS = 32    // of a word of one-bit elements
};

/* What more than one pass reads; bits are read again. */
uint32_t resident_kept(const Fusion *fusion, const Reads *reads, const Passes *passes)
{
    uint32_t seen = 0, kept = 0;
    for (int pass = 0; pass < passes->count; pass++) {
        uint32_t used = passes_needs(fusion, reads, passes, pass).reads_used;
        kept |= seen & used;
        seen |= used;
    }
    for (int i = 0; i < reads->count; i++)
        if (reads->reads[i].access->tensor->dtype == DTYPE_B1)
            kept &= ~(1u << i);
    return kept;
}

Reads resident_reads(const Fusion *fusion, int vector)
{
    return reads_find((Walk){
        .fusion = fusion,
        .ops = fusion->op_count,
        .axis = fusion->axis_count - 1,
        .vector = vector,
        .along = fusion_columns(fusion),
    });
}

static int64_t inner_extent(const Fusion *fusion) { return fusion->axes[fusion->axis_count - 1].extent; }

/* Neighbouring elements of one access: 16 bytes of the narrowest tensor, if the innermost extent is whole
   vectors. */
int resident_vector(const Fusion *fusion)
{
    int narrowest = 64;
    Reads reads = resident_reads(fusion, 1);
    for (int i = 0; i < reads.count; i++) {
        int bits = dtype_info[reads.reads[i].access->tensor->dtype].bits;
        if (bits > 1 && bits < narrowest)
            narrowest = bits;
    }
    int vector = ACCESS_BYTES * 8 / narrowest;
    while (vector > 1 && inner_extent(fusion) % vector)
        vector /= 2;
    return vector;
}

/* Whether runs of so many elements are aligned and contiguous in the tensor. */
bool resident_is_run(const Fusion *fusion, const Affine *offset, int64_t run)
{
    int inner = fusion->axis_count - 1;
    for (int a = 0; a < MAX_AXES; a++)
        if (a != inner && offset->coef[a] % run)
            return false;
    return offset->coef[inner] == 1 && offset->constant % run == 0 && inner_extent(fusion) % run == 0;
}

/* Bits that one write covers: a whole word, or a part that no other row shares, if that leaves no padding to
   be written. 0: there is none. */
int resident_bit_run(const Fusion *fusion, const FusedOp *op)
{
    Affine offset = access_offset(&op->store);
    if (tensor_elements(op->out) % WORD_BITS)
        return 0;
    for (int run = WORD_BITS; run >= 8 && run >= resident_vector(fusion); run /= 2)
        if (resident_is_run(fusion, &offset, run))
            return run;
    return 0;
}

int resident_reductions(const Fusion *fusion)
{
    int count = 0;
    for (int i = 0; i < fusion->op_count; i++)
        count += fusion->ops[i].reduce != REDUCE_NONE;
    return count;
}

/* Columns of a block; whole words of bits, too. */
int64_t resident_share(const Fusion *fusion, int cluster)
{
    return round_up(ceil_div(reduction_points(fusion), cluster), WORD_BITS);
}
