// Products in the shape in which they are read.
//
//   y[r:4096, n] = sum[k](x[r, k] * w[k, n])      view v[8, 512, 768] = y      z[b, t, n] = v[b, t, n] + u[b, t, n]
//   ->  y[b, t, n] = sum[k](x[512*b + t, k] * w[k, n])      z[b, t, n] = y[b, t, n] + u[b, t, n]
//
// Exporters flatten what a layer multiplies and restore the shape behind it. A product that has the shape of
// its readers takes them as its epilogue.
#pragma once
#include "ir/tensor_op.h"

/* In place, of a program whose ops and tensors are its own. */
void products_in_read_shape(Arena *arena, Program *program);
