// What the parts of the channelwise family share.
#pragma once
#include "codegen/cuda/loop_invariant.h"
#include "codegen/family/family.h"
#include "codegen/family/rows/passes.h"
#include "rtile/space.h"
#include "schedule/layout.h"

/* Space axes. */
enum { CHANNEL, SLAB, POSITION, SHARE };

/* The family's choice. */
typedef enum ChannelWalk {
    COLUMN,     // a block holds all positions
    GRID,       // all blocks of a cooperative launch hold them together, each a share
    ELEMENTS,   // nothing is reduced: position after position
    TOTALS      // likewise, and elements are only added up
} ChannelWalk;
ChannelWalk channelwise_walks(const TileRules *rules);

/* The kernel adds up elements, and stores none: any number of positions may be gone through. */
bool channelwise_adds_up(const Fusion *fusion);

/* Some of it are squares around a mean. */
bool channelwise_centres(const Fusion *fusion);

/* The axes that are reduced over, or gone through in chunks. */
uint32_t channelwise_positions(const Fusion *fusion);

/* The spatial axis along which what is read at every element lies side by side; -1: there is none. */
int channelwise_axis(const Fusion *fusion);

/* Lanes side by side fill whole words of what is stored one bit an element. */
bool channelwise_packs_bits(const Fusion *fusion);

/* Channels of one access: 16 bytes of the narrowest tensor that is read at every element. */
int channelwise_vector(const Fusion *fusion);

/* Whether the channels of a vector are one aligned access. */
bool channelwise_is_vector(const Fusion *fusion, const Affine *offset, int vector);

/* Reductions over the positions. */
int channelwise_reductions(const Fusion *fusion);

/* Bit i: sum op i of a step is needed by itself, as the centre of its squares. */
uint64_t channelwise_step_sums(const Fusion *fusion);

/* Of the widest reduction, in shared memory. */
int64_t channelwise_result_bytes(const Fusion *fusion);

/* What is read at every element, in vectors of channels. */
Walk channelwise_walk(const Fusion *fusion, int vector);

// ---- the parameter block ----

typedef struct Emitter {
    StrBuf *out;
    const Fusion *fusion;
    Reads reads;
    Fixed fixed;
    Passes passes;
    Scope first;              // the first channel of a vector
    Scope channel, element;   // channel e of it, alone and at one position
    int places;               // in shared memory that reductions have taken
    char text[24];
} Emitter;

/* The loop over a thread's positions, up to the positions of the axes in `used`. Past the last one a thread goes through the
   motions at the first one, and is not `inside`. */
void channelwise_emit_loop(Emitter *emitter, const char *condition, uint32_t used);

/* `v3[e] = …;` for every element's value among `ops`. */
void channelwise_emit_values(Emitter *emitter, uint64_t ops);

/* The channels' own values that are there after so many passes. */
void channelwise_emit_channel_values(Emitter *emitter, int passes);

/* `total3[e] = Sum::identity<…>();`; and `total3[e] = Sum::combine(total3[e], `, whose end is the caller's. */
void channelwise_emit_identity(Emitter *emitter, int op);
void channelwise_emit_combine(StrBuf *out, const Fusion *fusion, int op);

/* A reduction's result in `total<op>` from all groups; the op's value, once it is there; both. */
void channelwise_emit_groups(Emitter *emitter, StrBuf *out, int op);
void channelwise_emit_total_value(Emitter *emitter, StrBuf *out, int op);
void channelwise_emit_result(Emitter *emitter, StrBuf *out, int op);

/* Stores of the channels' own values. */
void channelwise_emit_channel_stores(Emitter *emitter);

/* A pass that ends in reductions: their totals of this thread, then of all. */
void channelwise_emit_reduction_pass(Emitter *emitter, int pass);

/* What is made of every element. */
void channelwise_emit_element_pass(Emitter *emitter);

/* What is added up in one loop over a thread's positions. */
typedef struct Addends {
    uint64_t ops;    // of the elements
    uint32_t axes;   // whose positions they need
    StrBuf statements;
} Addends;
void channelwise_add_addend(Emitter *emitter, Addends *addends, const Expr *expr);
void channelwise_emit_addends(Emitter *emitter, const Addends *addends);

/* The op is a sum of squared distances from a value of the channel. */
bool channelwise_is_centred(const Fusion *fusion, int op, CentredSum *sum);

/* The axes whose positions some op of the kernel needs. */
uint32_t channelwise_axes(const Fusion *fusion);

/* What the body of a function needs first: positions of the spatial axes. */
void channelwise_emit_positions(StrBuf *out, const Scope *scope, uint32_t used);

/* The signature of compute() in kernels whose threads hold their positions, up to its first statements. */
void channelwise_emit_holding_compute(Emitter *emitter);

/* The results that blocks leave for each other together after a pass, where each holds a share of the positions: plain ones,
   and squared distances from the mean of the share, which go along with the sum that it is made of. */
typedef struct ChannelMeeting {
    uint64_t plain, centred;
} ChannelMeeting;
ChannelMeeting channelwise_meeting(const Fusion *fusion, const Passes *passes, int pass);

/* What a schedule of channels follows from. */
typedef struct ChannelKernel {
    const Fusion *fusion;
    const TileSpace *space;
    const Reads *reads;
    const Passes *passes;
    ChannelWalk walk;
    int lanes, groups, warp;   // threads side by side, rows of them in a block; threads of a warp
    int64_t shares;            // blocks that hold the positions together
} ChannelKernel;
void channelwise_state(Schedule *schedule, const ChannelKernel *kernel);

/* Of kernels whose blocks hold a share of the positions each: compute(). */
void channelwise_emit_grid(Emitter *emitter);

/* Of kernels that add up elements: Totals, compute() and finish(). */
void channelwise_emit_totals(Emitter *emitter, uint32_t used);

/* Family.emit */
void channelwise_emit(StrBuf *out, const KernelPlan *plan);
