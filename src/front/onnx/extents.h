// Index variables of a definition: which extents need not be stated, since they follow from what is read.
#pragma once
#include <stdbool.h>

#include "base/strbuf.h"
#include "front/onnx/name_table.h"

/* `shapes`: of tensors, by their names. Expressions state the extents of all their reductions: sum[k:64,
   r:3](…). */

/* Calls tell(context, name) for each tensor that the expression reads. */
void extents_reads(const NameTable *shapes, const char *expr, void (*tell)(void *context, const char *name),
                   void *context);

/* Does `index` stand alone in a dimension of what is read from `expr` to `end`, and have all such the size
   `extent`? */
bool extents_follow(Arena *arena, const NameTable *shapes, const char *expr, const char *end,
                    const char *index, int64_t extent);

/* The expression without the extents that follow. */
void extents_print(StrBuf *out, const NameTable *shapes, const char *expr);
