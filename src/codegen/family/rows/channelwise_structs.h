// The structs of a parameter block, one a pass, that build on each other. A thread reduces to a vector of values,
// one for each of its neighbouring channels.
//
//   struct Pass1 : Pass<Pass0> {
//       float total2[VECTOR];                        // of this thread
//       float v2[VECTOR];                            // of its channels, from finish() on
//
//       void make(…)             el.v1[e] = …;       // elements of a vector
//       void add(…)              total2[e] = …;      // what they add to the totals
//       void store_elements(…)   store_vector(…);
//       void finish(…)           v2[e] = …;
//       void store_channels(…)   store_vector(…);
//   };
#pragma once
#include "codegen/cuda/rows.h"
#include "codegen/family/rows/passes.h"

enum { MAX_INVARIANTS = 16 };   // held in registers; more are read where they are used

/* Reads that stay the same while a thread goes through its elements: they are made once. */
typedef struct Invariants {
    const Access *access[MAX_INVARIANTS];
    Affine offset[MAX_INVARIANTS];
    int count;
} Invariants;

/* All axes along which they do move. */
uint32_t invariants_axes(const Invariants *invariants);

/* What a pass may do, in the order in which its struct says so. */
typedef enum PassFunction {
    PASS_START,   // totals, before the first step
    PASS_BEGIN,   // of each step
    PASS_MAKE,
    PASS_ADD,
    PASS_STORE_ELEMENTS,
    PASS_PACK_ELEMENTS,   // of one bit, by whole warps
    PASS_FINISH,
    PASS_CONCLUDE,
    PASS_STORE_CHANNELS,
    PASS_FUNCTIONS
} PassFunction;

/* A struct under construction. */
typedef struct PassText {
    StrBuf members;
    Step function[PASS_FUNCTIONS];
    uint64_t made;   // ops whose elements PASS_MAKE makes
} PassText;

typedef struct PassEmitter {
    StrBuf *out;
    const Fusion *fusion;
    const PassPlan *passes;
    Reads reads;
    Invariants invariants;
    int axis, vector;       // along which elements lie side by side; of one access
    Scope first, element;   // where a vector begins; element e of it
    uint64_t made;          // by any struct so far
    int count;              // of structs, but for the first one
    int places;             // in shared memory that reductions have taken
    char text[24];
} PassEmitter;

/* The emitter is what its scopes refer to. */
void pass_begin(PassEmitter *emitter, StrBuf *out, const KernelPlan *plan, const PassPlan *passes,
                const Reads *reads, int axis);

PassText pass_text(const PassEmitter *emitter);

/* `total3`, which starts as the identity of its reduction. */
void pass_add_total(const PassEmitter *emitter, PassText *text, int op);
/* `term`, which needs what `expr` does, is added to `total` at every element. */
void pass_add_term(const PassEmitter *emitter, PassText *text, int op, const char *total, const char *term,
                   const Expr *expr);
/* Both of an op. */
void pass_add_reduction(const PassEmitter *emitter, PassText *text, int op);
/* `float name3[VECTOR]`. */
void pass_declare(PassText *text, DType type, const char *name, int op);
/* The result of `total` from all groups. */
void pass_add_groups(PassEmitter *emitter, Step *step, int op, const char *total);
/* `v3`, made of `value` by a function; stored, if it is. */
void pass_add_value(const PassEmitter *emitter, PassText *text, PassFunction function, int op,
                    const char *value);
/* Values of the channels that need no further reduction. */
void pass_add_values(const PassEmitter *emitter, PassText *text, PassFunction function, uint64_t ops);

/* Positions of the spatial axes, from the channel and the flat position of all others: members of `here`. */
void pass_emit_positions(StrBuf *out, const char *indent, const char *here, const Scope *scope,
                         uint32_t used);

/* `struct Pass3 : Pass<Pass2> { … }`: of a text; of all that a pass does. */
void pass_emit_struct(PassEmitter *emitter, PassText *text);
void pass_emit(PassEmitter *emitter, const RowPass *pass);

/* What all structs make of elements, then these, which `emit` writes behind the first one. */
void pass_emit_all(PassEmitter *emitter, void (*emit)(PassEmitter *emitter));
