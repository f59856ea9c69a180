// Passes over elements: a chain of reductions is made in as many passes as it has links, and what is made of
// every element in one more. A pass makes anew what it needs of the elements, so that only inputs live on
// between passes.
#pragma once
#include "codegen/cuda/reads.h"

enum { MAX_PASS_OPS = 64 };   // of a fusion: a bit for each

/* Families that go through elements in passes take no fusion with more ops; its definitions then meet in
   memory. */
bool passes_hold(const Fusion *fusion);

typedef struct Passes {
    int of[MAX_PASS_OPS];   // by op: the pass in which a reduction is made, or after how many a value is there
    int count;              // the last one makes the elements
} Passes;

/* A reduction waits for those that it depends on; the others of its pass go along. */
Passes passes_find(const Fusion *fusion);

/* What a pass evaluates at every element. */
typedef struct Needs {
    const Fusion *fusion;
    const Reads *reads;
    uint64_t ops;          // bit i: the value of op i, at the element
    uint32_t reads_used;   // bit i: read i
} Needs;
Needs passes_needs(const Fusion *fusion, const Reads *reads, const Passes *passes, int pass);

/* What one expression needs. */
Needs needs_of(const Fusion *fusion, const Reads *reads, const Expr *expr);

/* Neighbours along an axis of so many that are one access: 16 bytes of the narrowest tensor, bits aside. */
int reads_widest_vector(const Reads *reads, int64_t extent);

int fusion_reductions(const Fusion *fusion);

/* Bit a: axis a is reduced over, it runs along the rows. */
uint32_t fusion_columns(const Fusion *fusion);

/* The op is made at every element of the reduced axes. */
bool fusion_op_is_of_elements(const Fusion *fusion, int op);

/* How many reductions there are, and ops of elements. False: some reduction runs along other axes than the
   columns. */
bool fusion_counts(const Fusion *fusion, int *reductions, int *of_elements);

/* Family.memory, of shared memory alone. */
KernelMemory passes_memory(const KernelPlan *plan);
