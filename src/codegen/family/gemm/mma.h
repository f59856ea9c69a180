// Common parts of products on tensor cores: their factors are elements of one type as they are in memory.
#pragma once
#include "codegen/family/gemm/families.h"
#include "codegen/family/gemm/product.h"
#include "codegen/family/gemm/product_rows.h"
#include "hal/atoms.h"
#include "rprogram/rprogram.h"

/* Elements are copied in 16-byte vectors where aligned; so many are a line of 128 bytes. */
enum { LINE_PIECES = 8 };
int64_t mma_piece(const Product *product);

/* The factor's element as it is in memory, or a zero instead; the condition of that, NULL: none. */
const Access *mma_access(const Expr *factor);
const Guard *mma_guard(const Product *product, int factor);

DType mma_element_type(const Product *product);

/* Whether tensor cores truncate the sums, which are floats. */
bool mma_is_cut_off(const Product *product);

/* Bytes of an accumulator; and its bits in registers, which double if there are several promotion intervals. */
int mma_value_bytes(const Product *product);
int mma_sum_bits(const Product *product);

/* The type of accumulators, and the one that passes shared memory: the 16-bit type that a sum is rounded to before the
   epilogue; of rows that are not aligned the type of C; otherwise the same. */
DType mma_sum_type(const Product *product);
DType mma_kept_type(const Fusion *fusion, const Product *product);
bool mma_is_kept(const Fusion *fusion, const Product *product);   // rounded

/* Axes batch, m, n, k; tiles of both factors, staged, of the stored results and of what the epilogue loads. */
TileSpace *mma_space(Arena *arena, const Fusion *fusion, const Product *product, const Atom *atom,
                     const DeviceSpec *device);

/* Address arithmetic of copied vectors: those of a line share theirs. */
void mma_count_copies(TileSpace *space, const Fusion *fusion, const Product *product);

/* The schedule after the loop over k: warps stage their sums in shared memory and store rows; or the blocks of a
   cluster exchange theirs, and each stores rows of the totals. Sums pass shared memory in that type. What the epilogue loads
   is prefetched so many tiles ahead. */
void mma_schedule_store(Schedule *schedule, const Fusion *fusion, const Product *product, const TileSpace *space,
                        Exchange exchange, DType passed, int ahead);

/* Rows of C are not aligned, and of a 16-bit type: they pass shared memory when they are complete, from where they are
   moved in vectors that are aligned in global memory. */
bool mma_is_shifted(const Fusion *fusion, const Product *product);

/* Columns of C in one aligned access, at most so many. */
enum { MAX_VECTOR = 8 };
int mma_columns(const Fusion *fusion, const Product *product);

/* Common parts of kernels whose warp groups of GROUP_WARPS warps multiply operands in shared memory, in lines of
   128 bytes along k. Their tiles are aligned to SHARED_ALIGNMENT bytes there. */
enum { GROUP_WARPS = 4, GROUP_LANES = GROUP_WARPS * LANES };
enum { MAX_GROUPS = 3, MAX_GROUP_TILE = 256, SHARED_ALIGNMENT = 1024, SLAB_ROWS = 8 };
enum { BESIDE_BYTES = 128, SLAB_EACH = 16 };   // of a lane of templates/bulk.cu: bytes of a residual before the products, elements of a slab
enum { FIT_BYTES = 64 };                       // and of templates/gemm.cu: bytes that are loaded together
void mma_group_kind(Arena *arena, KernelKind *kind, const Fusion *fusion, const DeviceSpec *device,
                     const Product *product, const Atom *atom);

/* Factors that the template can copy before the launch waits (bits 0 and 1), and that it does copy. */
void mma_emit_early(StrBuf *out, const KernelPlan *plan, const Product *product, unsigned able);

/* The parameter block: of warps that multiply fragments in registers, or of warp groups that multiply boxes in shared
   memory. `rows`: those that are reduced. NULL: C is stored. */
void mma_emit(StrBuf *out, const KernelPlan *plan, const Product *product, const ProductRows *rows, bool boxed);
