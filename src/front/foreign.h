// What people write who come from other languages, and how it is said here: for messages alone.
#pragma once
#include "base/arena.h"

/* `silu(a) is a * sigmoid(a)`, of the name of a function or reduction of another language; NULL: it is
   none. */
const char *foreign_function(Arena *arena, const char *name);

/* `write sqrt(-1)`, of a value's name; NULL: it is none. */
const char *foreign_value(Arena *arena, const char *name);

/* `a ** b is pow(a, b)`, of an operator, which may be a word; NULL: it is none. */
const char *foreign_operator(Arena *arena, const char *symbol);

/* The operator or other symbol of `length` characters that `text` begins with, copied; NULL: there is
   none. */
const char *foreign_symbol(Arena *arena, const char *text, int length);

/* The same where a constant or an index stands; NULL: as elsewhere. */
const char *foreign_in_brackets(const char *symbol);

/* How an element is read whose place is no affine form, quotient, remainder or element. */
#define FOREIGN_INDEX "define any other integer, as in j[t] = e, and read x[j[t]]"
