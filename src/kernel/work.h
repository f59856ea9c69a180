// The work of an item of a schedule in numbers: arithmetic, tensor cores and shared memory.
//
// Most of it follows from the ops and tiles that the item names. Where a family's template works differently, the
// family states it here.
#pragma once
#include "kernel/kind.h"

enum { COUNT_UNKNOWN = -1 };   // left to the compiler, or not stated

/* An item at one execution by the block. */
typedef struct CountedItem {
    Arena *arena;
    const Item *item;
    const KernelKind *kind;
    const Fusion *fusion;
    const DeviceSpec *device;
    const RTile *shared, *inner;    // the block's tile, a thread's
    const int64_t *first, *count;   // positions along each axis that the block's tile has inside the tensors
    int64_t times;                  // how often, for this tile
    int threads;                    // of the block
    bool last;                      // of its cluster
} CountedItem;

/* The work of all these executions by all threads. Of a load, a store or an exchange, all that passes through
   shared memory. */
typedef struct ItemWork {
    int64_t additions, multiplications, comparisons, functions;
    int64_t tensor_products;
    int64_t multiplying_warps;             // that do these products; 0: all that compute
    int64_t shared_read, shared_written;   // bytes
    uint32_t tiles;                        // bit i: sectors of memory of data tile i are stated, too
    int64_t sectors[MAX_DATA_TILES];
} ItemWork;

/* False: it follows from the item. `view`: of the family. */
typedef bool StatedWork(const void *view, const CountedItem *at, ItemWork *work);

// ---- work.c: arithmetic where the expressions say it, on numbers that are no indices ----

/* Of one value. A maximum is a comparison; a division is not counted, except by a constant. */
typedef struct ExprWork {
    int additions, multiplications, comparisons, functions;
    bool divides;       // reals, by something other than such a constant
    bool conditional;   // computed only at some points
} ExprWork;
ExprWork expr_work(const Expr *expr);

/* Adds the work of so many values; COUNT_UNKNOWN where it is not known. */
void work_add_values(ItemWork *work, const ExprWork *of, int64_t values);

/* COUNT_UNKNOWN stays. */
static inline void count_add(int64_t *count, int64_t more)
{
    bool known = *count != COUNT_UNKNOWN && more != COUNT_UNKNOWN;
    *count = known ? *count + more : COUNT_UNKNOWN;
}
