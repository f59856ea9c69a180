// What an item of a schedule makes a block do, in numbers: of arithmetic, of tensor cores and in shared memory.
//
// Most of it follows from the ops and tiles that the item names. Where a family's template does it in a way of
// its own, the family states it here.
#pragma once
#include "kernel/kind.h"

enum { COUNT_UNKNOWN = -1 };   // it is the compiler's choice, or nobody states it

/* An item, where the block comes by. */
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

/* In all these times, by all threads. Of a load, a store or an exchange, all that passes through shared memory. */
typedef struct ItemWork {
    int64_t additions, multiplications, comparisons, functions;
    int64_t tensor_products;
    int64_t multiplying_warps;             // that make any of these; 0: all that compute
    int64_t shared_read, shared_written;   // bytes
    uint32_t tiles;                        // bit i: sectors of memory of data tile i are stated, too
    int64_t sectors[MAX_DATA_TILES];
} ItemWork;

/* False: it follows from the item. `view`: what the fusion is to the family. */
typedef bool StatedWork(const void *view, const CountedItem *at, ItemWork *work);

// ---- work.c: arithmetic where the expressions say it, on numbers that are no indices ----

/* Of one value. A maximum is a comparison; a division is none of these, but for one by a constant. */
typedef struct ExprWork {
    int additions, multiplications, comparisons, functions;
    bool divides;       // reals, by what is no such constant
    bool conditional;   // they are made only at some points
} ExprWork;
ExprWork expr_work(const Expr *expr);

/* The same of so many values; COUNT_UNKNOWN where it is not known. */
void work_add_values(ItemWork *work, const ExprWork *of, int64_t values);

/* COUNT_UNKNOWN stays. */
static inline void count_add(int64_t *count, int64_t more)
{
    bool known = *count != COUNT_UNKNOWN && more != COUNT_UNKNOWN;
    *count = known ? *count + more : COUNT_UNKNOWN;
}
