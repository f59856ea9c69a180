// What a resident kernel keeps, and where in the shared memory of a block.
#include "base/checked.h"
#include "codegen/family/rows/resident_parts.h"
#include "rtile/space.h"

/* Bits that one write covers: a whole word, or a part that no other row shares, if that leaves no padding to
   be written. 0: there is none. */
int resident_bit_run(const Fusion *fusion, int vector, const FusedOp *op)
{
    Affine offset = access_offset(&op->store);
    if (tensor_elements(op->out) % WORD_BITS)
        return 0;
    int inner = fusion->axis_count - 1;
    for (int run = WORD_BITS; run >= 8 && run >= vector; run /= 2)
        if (fusion->axes[inner].extent % run == 0 && affine_allows_vector(&offset, inner, run))
            return run;
    return 0;
}

/* Columns of a block; whole words of bits, too. */
int64_t resident_share(const Fusion *fusion, int cluster)
{
    return round_up(ceil_div(reduction_points(fusion), cluster), WORD_BITS);
}
