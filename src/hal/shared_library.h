// Libraries that may be missing are opened when they are needed: rollerc itself links none of CUDA.
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* A function that a library is asked for; `optional`: newer versions only. */
typedef struct LibrarySymbol {
    const char *name;
    size_t offset;   // of the pointer in the caller's table
    bool optional;
} LibrarySymbol;

#define LIBRARY_SYMBOL(Table, member, symbol)                                                                \
    {                                                                                                        \
        symbol, offsetof(Table, member), false                                                               \
    }

/* Opens the first of `names` (ended by NULL) that is found: below $ROLLERC_CUDA_PATH, $CUDA_PATH, $CUDA_HOME
   and /usr/local/cuda, in lib64/ and lib/ (as in the wheels), then where the dynamic linker looks. Fills
   `table`. False: `reason` says what was looked for, or what is missing. The library stays open. */
bool library_open(const char *const *names, const LibrarySymbol *symbols, int count, void *table,
                  char *reason, size_t reason_bytes);
