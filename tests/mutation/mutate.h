// Mutants of what the command line reads: a program or a device file with a few things changed. Most changes keep the
// sense (another extent, type or operator, a dimension less, a statistic that becomes an output), so that four mutants
// in ten reach the end of the pipeline; the others keep nothing.
#pragma once
#include "base/strbuf.h"
#include "mutation/chance.h"

/* `other` is a program too, to be spliced with. The changes are named in `done`. */
char *mutate_program(Arena *arena, Chance chance, const char *text, const char *other, StrBuf *done);

/* Values of a device file; the changed lines go to `done`. */
char *mutate_device(Arena *arena, Chance chance, const char *text, StrBuf *done);
