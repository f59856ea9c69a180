// Results of products in the order in which they are read.
//
//   y[h, i, n] = sum[j](p[h, i, j] * v[h, j, n])      o[i, h, n] = y[h, i, n]      ->  y[i, h, n], o[i, h, n] = y[i, h, n]
//
// Heads of an attention become contiguous so. A sum of products may be stored in any order of its rows; the
// innermost dimension stays where it is, since a kernel writes lines along it. What reads it then is made at
// its own points, and is part of the same kernel.
#pragma once
#include "ir/tensor_op.h"

/* In place: definitions, and all that reads them. */
void results_in_read_order(Arena *arena, Program *program);

/* It would change the program. */
bool results_read_otherwise(Arena *arena, const Program *program);
