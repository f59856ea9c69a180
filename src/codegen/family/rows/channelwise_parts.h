// What the parts of the channelwise family share.
#pragma once
#include "codegen/family/rows/families.h"
#include "codegen/family/rows/channelwise_structs.h"
#include "kernel/layout.h"
#include "rprogram/rprogram.h"
#include "rtile/space.h"

/* Space axes. */
enum { CHANNEL, SLAB, POSITION };

/* The family's choice. */
typedef enum ChannelWalk {
    COLUMN,     // a block holds all positions
    ELEMENTS,   // nothing is reduced: position after position
    TOTALS      // likewise, and elements are only added up
} ChannelWalk;
ChannelWalk channelwise_walks(const KernelKind *kind);

/* The kernel adds up elements, and stores none: any number of positions may be gone through. */
bool channelwise_adds_up(const Fusion *fusion);

/* Some of it are squares around a mean. */
bool channelwise_centres(const Fusion *fusion);

/* The spatial axis along which the largest tensor read at every element is contiguous; -1: there is none. */
int channelwise_axis(const Fusion *fusion);

/* Lanes side by side fill whole words of what is stored one bit an element. */
bool channelwise_packs_bits(const Fusion *fusion);

/* The family's view. */
typedef struct ChannelView {
    Reads reads;   // at every element, in vectors of channels: 16 bytes of the narrowest of these tensors
    const PassPlan *passes;
} ChannelView;

/* Bit i: sum op i of a step is needed by itself, as the centre of its squares. */
uint64_t channelwise_step_sums(const Fusion *fusion);

/* Of the widest reduction, in shared memory. */
int64_t channelwise_result_bytes(const Fusion *fusion);

/* The op is a sum of squared distances from a value of the channel. */
bool channelwise_is_centred(const Fusion *fusion, int op, CentredSum *sum);
uint64_t channelwise_centred_ops(const Fusion *fusion);

/* What a schedule of channels follows from. */
typedef struct ChannelKernel {
    const Fusion *fusion;
    const TileSpace *space;
    const Reads *reads;
    const PassPlan *passes;
    ChannelWalk walk;
    int lanes, groups, warp;   // threads side by side, rows of them in a block; threads of a warp
} ChannelKernel;
void channelwise_state(Schedule *schedule, const ChannelKernel *kernel);

/* Family.emit */
void channelwise_emit(StrBuf *out, const KernelPlan *plan);
