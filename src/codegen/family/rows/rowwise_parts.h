// What the kinds and the generator of the row kernels both know of a fusion.
#pragma once
#include "codegen/cuda/reads.h"
#include "codegen/cuda/rows.h"
#include "codegen/family/rows/families.h"
#include "codegen/family/rows/passes.h"
#include "kernel/layout.h"
#include "rprogram/rprogram.h"
#include "rtile/space.h"

/* Where a row stays between its first and its last use. */
typedef enum RowHome {
    ROW_IN_REGISTERS,
    ROW_IN_SHARED,   // as it is stored: every pass over the row widens it again
    ROW_IN_MEMORY,   // every pass reads it again
    ROW_AHEAD,       // in registers, while the next row of the group is copied to shared memory
    ROW_HOMES
} RowHome;

/* How threads walk along a row. */
typedef struct RowShape {
    int vector;       // neighbouring elements that a thread reads and writes at once
    bool unaligned;   // rows are no whole vectors: each begins with the aligned vector that holds its first element
    bool lines;       // vectors of weights are then put together from the pieces that hold them
} RowShape;

/* The family's choice. */
typedef struct RowVariant {
    RowHome home;
    int group;     // threads of a row
    int cluster;   // blocks they are in
    int turns;     // rows that they make one after the other; 0 = 1
    int together;  // rows that they make at the same time, where rows are in shared memory; 0 = 1
    int at_once;   // vectors that a thread loads before it uses the first, where rows are read from memory
    bool half;     // vectors of half of RowShape.vector: then neighbouring threads read weights of twice the width together
} RowVariant;
RowVariant rowwise_variant(const KernelKind *kind);

/* Several passes use what one has loaded or made of an element. */
bool rowwise_keeps(RowHome home);
/* Rows are copied to shared memory as they are. */
bool rowwise_copies(RowHome home);

/* The op divides all elements of a row by one value. */
bool rowwise_divides(const Fusion *fusion, int op);

/* The type, of 16 bits, that all exponentials of the rows are rounded to once they are divided by their sum,
   and are read by nobody else; f32: there is none. See softmax_exp_f16 in the prelude. */
DType rowwise_softmax_type(const Fusion *fusion);
/* The op is such a quotient, whatever it is rounded to: exp(a - m) / sum[j] exp(a - m) with m = max[j] a. */
bool rowwise_is_softmax(const Fusion *fusion, int op);

/* The family's view. */
typedef struct RowView {
    RowShape shape;             // vectors as wide as they get
    bool weights_most;          // weights take at least twice the bytes of all else
    const Reads *reads[2][2];   // of vectors of the whole width or a half, without and with RowShape.lines
    const PassPlan *passes[ROW_HOMES];   // by RowHome
} RowView;
View rowwise_view;

RowShape rowwise_shape_of(const RowView *view, RowVariant variant);
/* Rows that lie apart by so many, or a multiple, begin alike in their first vectors. */
int64_t rowwise_rows_apart(const Fusion *fusion, RowShape shape);
const Reads *rowwise_reads_of(const RowView *view, RowShape shape);
/* Of one thread, where `group` of them share a row. */
int64_t rowwise_vectors(const Fusion *fusion, RowShape shape, int64_t group);
/* Elements between two vectors of one thread in the copy of a row: what the other threads of its block have
   there. */
int64_t rowwise_places(RowShape shape, RowVariant variant);

/* The reduction along with which a sum grows that would wait for another one, in its pass (PassKind.leader):

   - squared distances from what is made of the sum of the same elements, along with that sum, where a row does
     not stay in registers. The group meets once for both. Rows in registers gain nothing (tuning-log 28);
   - a sum of exponentials below a maximum, along with that, where a row is read again. */
int rowwise_along_sum(const PassPlan *plan, int op);
int rowwise_along_any(const PassPlan *plan, int op);

/* Reads that are copied to shared memory (bit i: read i): whole 16 bytes, in the order of the row's elements,
   which more than one pass reads. ROW_AHEAD copies all such, since registers are filled from there. */
uint32_t rowwise_copied(const Reads *reads, const PassPlan *plan, RowHome home);

/* The same elements for every row: of one read, of all (bit i: read i). */
bool rowwise_is_weight(const Reads *reads, int index);
uint32_t rowwise_weights(const Reads *reads);

/* Weights that take few registers of a thread are read before its part of the row, and nobody waits for them
   after the reductions. */
enum { MAX_WEIGHTS_FIRST = 32 };   // elements
bool rowwise_reads_weights_first(const Reads *reads, RowVariant variant, int64_t vectors);

/* The comparison of positions that masks all that the rows read: where it holds for no element of a vector,
   all of them have the same values, and threads ask for that. NULL: there is none, or none that is worth
   asking for. */
Expr *rowwise_mask(const Reads *reads, RowVariant variant);

/* The group meets once for this sum and one of squared distances that grows along with it: each warp leaves a
   Part. */
bool rowwise_shares_parts(const PassPlan *plan, int op);
/* The reductions for which the group meets after the pass, once each. */
uint64_t rowwise_rounds(const PassPlan *plan, int pass);
/* What a warp leaves of the widest reduction. */
int rowwise_result_bytes(const PassPlan *plan);
/* What a schedule of rows follows from. */
typedef struct RowKernel {
    const Fusion *fusion;
    const TileSpace *space;
    const Reads *reads;
    const PassPlan *passes;
    const RowVariant *variant;
    RowShape shape;
    int64_t vectors;   // of a thread
    uint32_t copied;   // tiles that rows are copied from, where they are
    int warp;          // threads of one
} RowKernel;
void rowwise_state(Schedule *schedule, const RowKernel *row);

/* Of what a vector reads, `in` lies along the row and is read first. `weights`, the same for every row, stay
   in the caches: they are read where they are used, and take no registers before; or before all else, where
   they take few. */
typedef enum ReadKind { READ_IN, READ_WEIGHTS } ReadKind;

/* The kernel under construction. */
typedef struct RowEmitter {
    StrBuf *out;
    const Fusion *fusion;
    RowShape shape;
    RowVariant variant;
    Reads reads;
    const PassPlan *passes;
    Expr *mask;             // see rowwise_mask
    Scope first, element;   // where a vector begins; each of its elements
    bool weighed, weights_first;
    bool meets;             // its reductions take rounds in shared memory
    bool starts;            // something is known of a row before its first pass
    DType softmax;          // see rowwise_softmax_type
    const char *declared;   // type of the last of the members
    StrBuf members, make, store_elements, finish, store_values;   // of struct Row
    char text[32];
} RowEmitter;

enum { ROWWISE_BITS = 8 };   // the least vector with one-bit outputs: a byte is the smallest store
enum { ROWWISE_MOST_UNROLLED = 16 };   // vectors of a thread: more take more instructions than an instruction cache holds

/* Adds what a pass does to a function of struct Row. */
enum { BEFORE_PASSES = -1 };   // what is known without one
void rowwise_emit_part(StrBuf *function, int pass, const char *opening, const Step *step);

// ---- rowwise_steps.c ----

/* The function that makes exponentials below a row's maximum. */
const char *rowwise_exponential(const RowEmitter *row);
/* The op's elements are shares of a sum of exponentials: a multiplication by its reciprocal is exact
   enough. */
bool rowwise_takes_shares(const RowEmitter *row, int op);
/* What the pass makes of a vector of a row. */
void rowwise_emit_vector(RowEmitter *row, int pass);

// ---- rowwise_totals.c ----

/* A member of struct Row. */
void rowwise_declare(RowEmitter *row, const char *type, const char *declarator);
/* Some reduction leaves Parts. */
bool rowwise_has_parts(const RowEmitter *row);
/* Values of a row that are known at the end of the pass, in order: totals and what is made of them. */
void rowwise_emit_row_values(RowEmitter *row, int pass);

// ---- rowwise_reads.c ----

/* That a mask, a half-line of positions, holds for some element of the vector, or for all. */
const char *rowwise_condition_text(const RowEmitter *row, Expr *condition, bool all);
/* Some read is left out where a comparison of positions masks it. */
bool rowwise_has_conditions(const RowEmitter *row);
bool rowwise_widens_in_branches(const RowEmitter *row);
/* Whether L2 is told how rows are read: see read_global. */
bool rowwise_reads_once(const RowEmitter *row);
/* For Scope.loaded, with the RowEmitter as its context. */
const char *rowwise_loaded(void *context, const Expr *expr);
/* UNROLL or UNROLL_4 */
const char *rowwise_unrolling(const RowEmitter *row);
/* emit_used_positions, unless the flat position is the only axis's. */
void rowwise_emit_positions(StrBuf *out, const char *indent, const char *flat, const Scope *scope, int first,
                            int end, uint32_t used);
/* The struct of a row's copy, and the function that copies a vector. */
void rowwise_emit_copies(const RowEmitter *row);
/* The struct of what a vector reads, and the function that loads it. */
void rowwise_emit_reads(RowEmitter *row, ReadKind kind);

/* Family.emit */
void rowwise_emit(StrBuf *out, const KernelPlan *plan);
