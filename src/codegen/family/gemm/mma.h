// What products on tensor cores have in common: their factors are elements of one type as they lie in memory.
#pragma once
#include "codegen/family/gemm/families.h"
#include "codegen/family/gemm/product.h"
#include "codegen/family/gemm/product_rows.h"
#include "hal/atoms.h"
#include "rprogram/rprogram.h"

/* Products that tensor cores add up one after the other, and cut off as they do: at most 1024 times, 2^-14 of
   the sum. */
enum { MAX_CHAIN = 8192 };

/* Elements are copied in pieces, where those are one aligned access; so many are a line of 128 bytes. */
enum { PIECE_BYTES = 16, LINE_PIECES = 8 };
int64_t mma_piece(const Product *product);

/* The factor's element as it lies in memory, or a zero in its place; the condition of that, NULL: none. */
const Access *mma_access(const Expr *factor);
const Guard *mma_guard(const Product *product, int factor);

DType mma_element_type(const Product *product);

/* Tensor cores cut off what they add of floats, as wide as those of C. */
bool mma_is_cut_off(const Product *product);

/* Bytes of an element of the sum, and bits that it takes in registers: of long chains what they have ended
   with is kept beside what they add up. */
int mma_value_bytes(const Product *product);
int mma_sum_bits(const Product *product);

/* In which it is added up, and to what of 16 bits it is rounded before anything is made of it; else the
   same. */
DType mma_sum_type(const Product *product);
DType mma_kept_type(const Fusion *fusion, const Product *product);
bool mma_is_kept(const Fusion *fusion, const Product *product);   // rounded

/* Axes batch, m, n, k; tiles of both factors, staged, of what is stored and what the epilogue reads. */
TileSpace *mma_space(Arena *arena, const Fusion *fusion, const Product *product, const Atom *atom,
                     const DeviceSpec *device);

/* What comes behind the loop along k: warps turn their sums in shared memory, so that lanes have rows, and
   store them; or the blocks of a cluster leave theirs for each other, and each stores rows of the totals.
   They pass shared memory in that type. */
void mma_schedule_end(Schedule *schedule, const Fusion *fusion, const Product *product, const TileSpace *space,
                      ThreadScope scope, DType passed);

/* Of sums that come together in another way; what the epilogue reads is asked for so many tiles ahead. */
void mma_schedule_store(Schedule *schedule, const Fusion *fusion, const Product *product, const TileSpace *space,
                        Exchange exchange, DType passed, int ahead);

/* Rows of C begin within aligned accesses, of elements of 16 bits to which the sum was rounded (kept): they
   are shifted in shared memory to lie as they do there. */
bool mma_is_shifted(const Fusion *fusion, const Product *product);

/* Columns of C that are one aligned access, at most so many. */
enum { MAX_VECTOR = 8 };
int mma_columns(const Fusion *fusion, const Product *product);

/* What kernels have in common where groups of GROUP_WARPS warps multiply what lies in shared memory, in lines
   of 128 bytes along k; their tiles begin at multiples of SHARED_ALIGNMENT bytes there. */
enum { LANES = 32, GROUP_WARPS = 4, GROUP_LANES = GROUP_WARPS * LANES };
enum { MAX_GROUPS = 3, MAX_GROUP_TILE = 256, SHARED_ALIGNMENT = 1024, SLAB_ROWS = 8 };
void mma_group_kind(Arena *arena, KernelKind *kind, const Fusion *fusion, const DeviceSpec *device,
                     const Product *product, const Atom *atom);

/* What sets the parameter blocks of the families apart. */
typedef struct MmaBlock {
    bool atom_shared;      // instructions read shared memory; else registers: the template knows their shape
    const char *holders;   // of a register tile
    bool reads_ahead;      // what the epilogue reads beside the sums is asked for ahead;
    bool asks_beside;      // the template asks whether there is something
    bool keeps;            // sums are rounded before they pass shared memory: the template asks what to
    bool reduces;              // the template asks whether rows are reduced:
    const ProductRows *rows;   // those. NULL: C is stored
    /* What the template asks of an operand; NULL: where its elements are. */
    void (*emit_operand)(StrBuf *out, const Scope *scope, const Product *product, int factor);
} MmaBlock;

/* Of factors that the template can ask for before the launch waits, bit 0 and 1, which it does. */
void mma_emit_early(StrBuf *out, const KernelPlan *plan, const Product *product, unsigned able);

/* The parameter block. */
void mma_emit(StrBuf *out, const KernelPlan *plan, const Product *product, const MmaBlock *how);
