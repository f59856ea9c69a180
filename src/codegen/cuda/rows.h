// What the families of rows write into their parameter blocks. Their templates go along rows in passes: they
// hold the loops over vectors, the guards of ends, loads, waits and barriers. The block says what happens to a
// vector, or to the row.
#pragma once
#include "codegen/cuda/expr.h"

/* A function of a pass under construction: its statements, and the axes whose positions they need. */
typedef struct Step {
    StrBuf text;
    uint32_t axes;
} Step;
Step rows_step(Arena *arena);

/* How deep the statements stand, in a function of a struct. */
#define ROWS_INDENT "        "

/* `struct Elements`: the values of a vector that the ops make (bit i: op i), `el.v3[e]`. */
void rows_emit_elements(StrBuf *out, const Fusion *fusion, uint64_t ops);

/* The scope of element e, where the axes in `columns` run along the row. */
Scope rows_element_scope(Arena *arena, const Scope *first, int inner, uint32_t columns);

/* Axes whose positions an expression still needs when what the scope knows of it is loaded. */
uint32_t rows_axes_left(const Scope *scope, const Expr *expr);

/* What the body, or a part of it, makes at an element: as the readers of the op see it, or
   ROWS_NOT_ROUNDED. */
enum { ROWS_NOT_ROUNDED = -1 };
const char *rows_value(Arena *arena, const Scope *scope, int op, const Expr *body);

/* `array[e] = value;` for every element of a vector. */
void rows_emit_each(StrBuf *out, const char *indent, const char *array, const char *value);

/* `{ … }` for every element of a vector, after `guard`. */
void rows_emit_block_each(StrBuf *out, const char *guard, const char *statements);

/* Stores `v3`, the op's value of a row. */
void rows_emit_value_store(Step *step, const Scope *first, int op);

/* Stores `array` as the op's elements, neighbours along the axis: at once, if a vector of them is one access, else one by one. */
void rows_emit_store(Step *step, const Scope *first, const Scope *element, int op, const char *array, int axis,
                     int vector);
