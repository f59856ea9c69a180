// What the kinds and the generator of the channelwise family both ask of a fusion.
#include "codegen/family/rows/channelwise_parts.h"

ChannelWalk channelwise_walks(const KernelKind *kind) { return *(const ChannelWalk *)kind->choice.value; }

int channelwise_axis(const Fusion *fusion)
{
    FusedAccess found[MAX_ACCESSES];
    int count = fusion_accesses(fusion, found, MAX_ACCESSES), axis = -1;
    int64_t most = 0;
    for (int i = 0; i < count; i++) {
        int64_t bytes = tensor_bytes(found[i].access->tensor);
        if (!(access_axes(found[i].access) & fusion_columns(fusion)) || bytes <= most)
            continue;
        Affine offset = access_offset(found[i].access);
        for (int a = 0; a < fusion->spatial_count; a++)
            if (offset.coef[a] == 1) {
                axis = a;
                most = bytes;
            }
    }
    return axis;
}

bool channelwise_packs_bits(const Fusion *fusion)
{
    int channel = channelwise_axis(fusion);
    for (int i = 0; i < fusion->op_count; i++) {
        if (!fusion->ops[i].stored || fusion->ops[i].out->dtype != DTYPE_B1)
            continue;
        Affine offset = access_offset(&fusion->ops[i].store);
        for (int a = 0; a < fusion->axis_count; a++)
            if (a != channel && offset.coef[a] % WORD_BITS)
                return false;
        if (offset.coef[channel] != 1 || offset.constant % WORD_BITS ||
            fusion->axes[channel].extent % WORD_BITS || !fusion_is_of_elements(fusion, &fusion->ops[i]))
            return false;
    }
    return true;
}

int64_t channelwise_result_bytes(const Fusion *fusion)
{
    int64_t bytes = 4;
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].reduce != REDUCE_NONE && dtype_info[fusion->ops[i].body->type].bits == 64)
            bytes = 8;
    return bytes;
}

static bool is_reduction(const Fusion *fusion, int op) { return fusion->ops[op].reduce != REDUCE_NONE; }

bool channelwise_is_centred(const Fusion *fusion, int op, CentredSum *sum)
{
    return is_reduction(fusion, op) && fusion_depends_on_reductions(fusion, fusion->ops[op].body) &&
           fusion_centred_sum(fusion, op, sum);
}

uint64_t channelwise_centred_ops(const Fusion *fusion)
{
    uint64_t ops = 0;
    CentredSum sum;
    for (int i = 0; i < fusion->op_count; i++)
        ops |= channelwise_is_centred(fusion, i, &sum) ? OP_BIT(i) : 0;
    return ops;
}

bool channelwise_adds_up(const Fusion *fusion)
{
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        CentredSum sum;
        if (op->stored && fusion_is_of_elements(fusion, &fusion->ops[i]))
            return false;
        if (is_reduction(fusion, i) && fusion_depends_on_reductions(fusion, op->body) &&
            !fusion_centred_sum(fusion, i, &sum))
            return false;
    }
    return fusion_reduces(fusion);
}

uint64_t channelwise_step_sums(const Fusion *fusion)
{
    uint64_t ops = 0;
    CentredSum sum;
    for (int i = 0; i < fusion->op_count; i++)
        if (channelwise_is_centred(fusion, i, &sum))
            ops |= UINT64_C(1) << sum.total;
    return ops;
}

bool channelwise_centres(const Fusion *fusion) { return channelwise_step_sums(fusion) != 0; }
