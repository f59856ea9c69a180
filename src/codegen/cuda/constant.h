// Constants of CUDA text and what follows from them: `constexpr int THREADS = GROUP * ROWS;` is 64 where
// those are known. Integers only; whatever is not plain arithmetic is unknown.
#pragma once
#include <stdint.h>

#include "base/words.h"
#include "codegen/cuda/token.h"

typedef struct Constant {
    bool known;
    int64_t value;
} Constant;

typedef struct Constants {
    WordTable table;                 // of Constants
    const struct Constants *outer;   // looked into next; NULL: nothing
    const Slice *hidden;             // names that mean something else here; the last one is empty; NULL: none
} Constants;

/* Those of `constexpr int A = 1, B = 2 * A;`. What is defined twice is unknown. */
void constants_read(Constants *constants, const char *definition);

/* False: it is not known. */
bool constants_evaluate(const Constants *constants, Slice expression, int64_t *value);

bool constants_have(const Constants *constants, Slice name);
