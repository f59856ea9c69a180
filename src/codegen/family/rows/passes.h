// The plan of a kernel that goes over elements in passes: a chain of reductions is made in as many passes as
// it has links, and what is made of every element in one more. It is made once, from a fusion and what the
// kernel keeps; the schedule's items and the functions of the text are both made by walking it.
//
//   y[i,j] = x[i,j] - m[i], m[i] = s[i] / 512, s[i] = sum[j](x[i,j])      pass 0: reduces s, then knows m
//                                                                         pass 1: makes y and stores it
#pragma once
#include "codegen/cuda/reads.h"
#include "rtile/space.h"

enum { MAX_PASS_OPS = 64 };   // of a fusion: a bit for each

/* Families that go through elements in passes take no fusion with more ops; its definitions then meet in
   memory. */
bool passes_hold(const Fusion *fusion);

/* Sets of ops, or of reads: bit i for number i. A loop's set is made once; no loop is left by `break`. */
#define OP_BIT(op) (UINT64_C(1) << (op))
#define FOR_BITS(i, set)                                                                                     \
    for (uint64_t left_##i = (set); left_##i; left_##i &= left_##i - 1)                                      \
        for (int i = __builtin_ctzll(left_##i), end_##i = i + 1; i < end_##i; i++)

typedef struct RowPass {
    uint64_t made;      // ops whose elements it makes of every vector
    uint64_t reduced;   // whose totals are known at its end
    uint64_t stored;    // whose elements it stores
    uint64_t values;    // of the row, made of these totals and of those before
    uint32_t reads;     // bit i: read i, for what it makes and reduces
    bool beside;        // some of that reads where it is used: below a guard
} RowPass;

typedef struct PassPlan {
    const Fusion *fusion;
    int of[MAX_PASS_OPS];       // by op: the first pass in which its body can be computed
    int leader[MAX_PASS_OPS];   // the reduction along with which this one grows; -1: none
    int along[MAX_PASS_OPS];    // the one that grows along with it; -1: none
    RowPass before;             // has nothing but the values that are known without a pass
    int count;
    RowPass *pass;
} PassPlan;

/* What a kernel keeps from pass to pass. */
typedef struct PassKind {
    bool keeps;   // elements, once they are made; else every pass makes anew what it needs of them
    bool early;   // a pass stores what it can; else the last one stores all
    /* Along with which reduction the op grows, as far as the plan is made; -1: none. NULL: no op does. */
    int (*leader)(const PassPlan *plan, int op);
} PassKind;
const PassPlan *passes_find(Arena *arena, const Reads *reads, PassKind kind);

/* The pass that makes what is stored of elements, unless others may. */
const RowPass *passes_last(const PassPlan *plan);

/* States that the tiles of those of the ops that are stored go to memory. */
void passes_store(Schedule *schedule, const Fusion *fusion, const TileSpace *space, uint64_t ops);

/* Ops whose elements some pass makes. */
uint64_t passes_made(const PassPlan *plan);

/* Ops whose elements the expression needs. */
uint64_t passes_elements(const Fusion *fusion, const Expr *expr);

/* Bit a: axis a is reduced over, it runs along the rows. */
uint32_t fusion_columns(const Fusion *fusion);

/* How many reductions there are, and ops of elements. False: some reduction runs along other axes than the
   columns. */
bool fusion_counts(const Fusion *fusion, int *reductions, int *of_elements);
