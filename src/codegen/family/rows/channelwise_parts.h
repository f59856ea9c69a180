// What the parts of the channelwise family share.
#pragma once
#include "codegen/cuda/loop_invariant.h"
#include "codegen/cuda/rows.h"
#include "codegen/family/rows/families.h"
#include "codegen/family/rows/passes.h"
#include "kernel/layout.h"
#include "rprogram/rprogram.h"
#include "rtile/space.h"

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

/* The spatial axis along which what is read at every element lies side by side; -1: there is none. */
int channelwise_axis(const Fusion *fusion);

/* Lanes side by side fill whole words of what is stored one bit an element. */
bool channelwise_packs_bits(const Fusion *fusion);

/* The family's view. */
typedef struct ChannelView {
    int vector;    // channels of one access: 16 bytes of the narrowest tensor that is read at every element
    Reads reads;   // at every element, in vectors of channels
    Passes passes;
} ChannelView;

/* Whether the channels of a vector are one aligned access. */
bool channelwise_is_vector(const Fusion *fusion, const Affine *offset, int vector);

/* Bit i: sum op i of a step is needed by itself, as the centre of its squares. */
uint64_t channelwise_step_sums(const Fusion *fusion);

/* Of the widest reduction, in shared memory. */
int64_t channelwise_result_bytes(const Fusion *fusion);

/* The op is a sum of squared distances from a value of the channel. */
bool channelwise_is_centred(const Fusion *fusion, int op, CentredSum *sum);

/* The results that blocks leave for each other together after a pass, where each holds a share of the
   positions: plain ones, and squared distances from the mean of the share, which go along with the sum that
   it is made of. */
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

// ---- the parameter block ----

typedef struct ChannelEmitter {
    StrBuf *out;
    const Fusion *fusion;
    int vector;
    Reads reads;
    Invariants invariants;
    Passes passes;
    Scope first, element;   // the first channel of a vector; channel e of it
    uint64_t elements;      // bit i: some pass makes op i's
    int places;             // in shared memory that reductions have taken
    int passes_emitted;
    char text[24];
} ChannelEmitter;

/* A pass under construction: its members, and what its functions do. */
typedef struct ChannelPass {
    StrBuf members;
    Step start, begin, add, store_elements, pack_elements, finish, publish, collect, conclude, store_channels;
    uint64_t ops;   // bit i: op i's elements are needed
} ChannelPass;
ChannelPass channelwise_pass(const ChannelEmitter *emitter);

/* `struct Pass3 : Pass<Pass2> { … }`; `struct Start` of a pass that makes nothing of elements. */
void channelwise_emit_pass(ChannelEmitter *emitter, ChannelPass *pass);
void channelwise_emit_start(ChannelEmitter *emitter);

/* The pass adds `term`, which needs what `expr` does, to `total` at every element. */
void channelwise_add(const ChannelEmitter *emitter, ChannelPass *pass, int op, const char *total,
                     const char *term, const Expr *expr);
/* Squares of the distances from the mean of `sums` (total0 or step0), which is made as the pass begins. */
void channelwise_add_squares(const ChannelEmitter *emitter, ChannelPass *pass, int op, const CentredSum *sum,
                             const char *sums);
/* `total3`, which starts as the identity of its reduction. */
void channelwise_add_total(ChannelPass *pass, const Fusion *fusion, int op);
/* `v3` of the channels, made of `value` by one of the functions; stored, if it is. */
void channelwise_add_value(const ChannelEmitter *emitter, ChannelPass *pass, Step *step, int op,
                           const char *value);
/* The channels' own values that are there after so many passes. */
void channelwise_add_values(const ChannelEmitter *emitter, ChannelPass *pass, Step *step, int passes);
/* The result of `total` from all groups; and the op's value. */
void channelwise_add_groups(ChannelEmitter *emitter, Step *step, int op, const char *total);
void channelwise_add_result(ChannelEmitter *emitter, ChannelPass *pass, Step *step, int op);

/* From the channel and the flat position of all others. */
void channelwise_emit_positions(StrBuf *out, const char *indent, const char *here, const Scope *scope,
                                uint32_t used);

/* The passes of kernels whose threads hold their positions, or go on from one to the next; whose blocks hold
   a share of them each; that only add up. */
void channelwise_emit_column(ChannelEmitter *emitter);
void channelwise_emit_grid(ChannelEmitter *emitter);
void channelwise_emit_totals(ChannelEmitter *emitter);

/* What is made of every element, if anything is stored of them. */
void channelwise_emit_element_pass(ChannelEmitter *emitter);

/* Family.emit */
void channelwise_emit(StrBuf *out, const KernelPlan *plan);
