// What products on tensor cores have in common: their factors are elements of one type as they lie in memory.
#pragma once
#include "codegen/family/family.h"
#include "codegen/family/gemm/product.h"
#include "hal/atoms.h"

/* Products that tensor cores add up one after the other, and cut off as they do: at most 1024 times, 2^-14 of
   the sum. */
enum { MAX_CHAIN = 8192 };

/* Elements that are copied together, where they are one aligned access of 16 bytes. */
int64_t gemm_piece(const Product *product);

/* How the neighbours of a piece are read: by one aligned access, by the two that hold them, one by one. */
typedef enum Way { BY_PIECES, FROM_ANYWHERE, BY_ELEMENTS } Way;

typedef struct Reading {
    bool along_k;   // the neighbours
    Way way;
} Reading;

Reading find_reading(const Fusion *fusion, const Product *product, int factor);

/* The instruction for the elements of both factors, which lie in that place; NULL: there is none. */
const Atom *find_atom(const Product *product, const DeviceSpec *device, AtomPlace place);

/* Bits of an element of C in registers. Of long chains what they have ended with is kept beside what they add
   up. */
int sum_bits(const Product *product);

/* Axes batch, m, n, k; tiles of both factors, staged, and of what is stored. */
TileSpace find_space(const Fusion *fusion, const DeviceSpec *device, const Product *product, const Atom *atom);

/* What comes behind the loop along k: warps turn their sums in shared memory, so that lanes have rows, and
   store them; or the blocks of a cluster leave theirs for each other, and each stores rows of the totals. */
void schedule_finish(Schedule *schedule, const Fusion *fusion, const Product *product, const TileSpace *space,
                     ThreadScope scope);

/* What sets the parameter blocks of both families apart. */
typedef struct TensorTile {
    bool atom_shared;      // instructions read shared memory; else registers, whose shape the template must know
    const char *holders;   // of a register tile
    /* What the template asks of an operand; NULL: where its elements are. */
    void (*emit_operand)(StrBuf *out, const Scope *scope, const Product *product, int factor);
} TensorTile;

/* The parameter block. */
void gemm_emit(StrBuf *out, const KernelPlan *plan, const TensorTile *how);
