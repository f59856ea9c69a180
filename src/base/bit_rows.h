// A square table of bits: row i says of each of `count` things whether it stands in a relation to thing i.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct BitRows {
    int count, words;   // of a row
    uint64_t *bits;
} BitRows;

static inline BitRows bit_rows_new(Arena *arena, int count)
{
    int words = (count + 63) / 64;
    return (BitRows){count, words, arena_alloc_array(arena, (size_t)count * (size_t)words, sizeof(uint64_t))};
}

static inline uint64_t *bit_row(const BitRows *rows, int row)
{
    return rows->bits + (int64_t)row * rows->words;
}
static inline bool bit_get(const BitRows *rows, int row, int i)
{
    return bit_row(rows, row)[i / 64] >> i % 64 & 1;
}
static inline void bit_set(BitRows *rows, int row, int i)
{
    bit_row(rows, row)[i / 64] |= (uint64_t)1 << i % 64;
}

/* All of row `from` as well. */
static inline void bit_row_join(BitRows *rows, int row, int from)
{
    for (int w = 0; w < rows->words; w++)
        bit_row(rows, row)[w] |= bit_row(rows, from)[w];
}
