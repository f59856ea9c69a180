// What depends on weights alone is made once, by NAME_prepare, before any call.
//
// It is made as the program defines it and rounded to its type, like every definition, and lies in memory for
// those that read it in calls: no kernel of a call computes it again. What only moves elements computes
// nothing, and may be folded into its readers as elsewhere. An output is made in each call, whatever it
// depends on, and so is what reads it.
#pragma once
#include "ir/fuse.h"

enum { WEIGHT_ALIGNMENT = 256 };   // of each weight in the file, and of each tensor in `prepared`

/* Marks the temporaries of a program with weights that are made of weights alone, or of nothing. */
void prepared_mark(const Program *program);

/* The same in every call. */
static inline bool tensor_is_fixed(const Tensor *tensor) { return tensor->is_weight || tensor->is_prepared; }

/* All that the kernel makes is. */
bool fusion_is_prepared(const Fusion *fusion);

/* Marks the tensors that the parts of a kernel pass to each other: all of them if the kernel is prepared,
   else those made of weights alone. Definitions of the program, which a part may store as well, keep their
   marks: other plans make them of other things. */
void prepared_mark_parts(const Fusion *whole, Fusion *const *parts, int count);

/* By tensor id: made of weights alone, more than a move of elements, and read (itself, or through what may be
   folded) by a definition that is not made of weights alone. */
bool *prepared_for_calls(Arena *arena, const Program *program);

// ---- the file of weights: all of them in the order of their statements ----

bool program_has_weights(const Program *program);
/* Where the input lies in it, in bytes. */
int64_t weight_offset(const Program *program, int input);
/* Its size; 0: the program has none. */
int64_t program_weight_bytes(const Program *program);
