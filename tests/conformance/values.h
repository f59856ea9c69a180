// What the checks of checks.def put in, for the device and for the host: plain C and C++.
//
// BOTH stands before a function; the includer defines it (`static inline`, or with __device__ in front).
#pragma once

enum {
    THREADS = 256,        // of a block; every count of a check is a multiple of it
    TABLE_BYTES = 65536,  // byte_of(0), byte_of(1) …
};

BOTH int key(int i) { return (int)((unsigned)i * 2654435761u ^ (unsigned)i >> 7); }
BOTH unsigned char byte_of(int i) { return (unsigned char)((unsigned)key(i) >> 13); }

// All signs and exponents; the low half straddles what f16 and bf16 cut off.
BOTH unsigned real_bits(int i)
{
    const unsigned low[16] = {0,      1,      0x0fff, 0x1000, 0x1001, 0x2fff, 0x3000, 0x3001,
                              0x7fff, 0x8000, 0x8001, 0xefff, 0xf000, 0xf001, 0xffff, 0x5555};
    return ((unsigned)i >> 4) << 16 | low[i & 15];
}

BOTH double nudge(int i) { return 1 + (i % 3 - 1) * 0x1p-40; }   // just below, at and just above
BOTH double span(int i, double low, double high) { return low + (high - low) * i / 4096; }

// Integers around the ends of every type, as doubles with a fraction.
BOTH double end_value(int i)
{
    const double ends[8] = {0, 127, -128, 255, 2147483647.0, -2147483648.0, 1e20, -1e20};
    return ends[i & 7] + ((i >> 3) % 9 - 4) * 0.375;
}
BOTH int whole(int i)
{
    const int ends[8] = {0, 1, -1, 2147483647, -2147483647 - 1, 65536, -46341, 7};
    return i & 8 ? key(i) : ends[i & 7];
}
BOTH int other_whole(int i) { return whole(i / 16 * 5 + i % 16 * 3); }

// One choice for all threads of a block.
BOTH int width_of(int i) { return 1 << i / THREADS % 6; }
BOTH int lane_of(int i) { return i / THREADS / 6 * 5 % 32; }
enum { WIDTHS = THREADS * 6 * 8 };

BOTH int is_active(int thread) { return thread / 32 != 2 && thread % 7 != 3; }
BOTH int bit_of(int i) { return key(i) >> 5 & 1; }

// Tiles of 16 x k, k x 8 and 16 x 8 whose product is exact.
BOTH int tile_a(int which, int m, int k) { return (which * 5 + m * 3 + k * 7) % 11 - 5; }
BOTH int tile_b(int k, int n) { return (k * 5 + n * 2) % 9 - 4; }
BOTH int tile_c(int m, int n) { return m - 3 * n; }

// Of 64 x k by k x 64: thread i's n-th sum, where the layout of wgmma.m64n64 in the PTX ISA says. The bits of the mask count.
BOTH int shared_sum(int i, int n, int depth, int mask)
{
    const int row = i % 128 / 32 * 16 + i % 32 / 4 + n / 2 % 2 * 8, column = n / 4 * 8 + i % 4 * 2 + n % 2;
    int sum = 0;
    for (int k = 0; k < depth; k++)
        sum += (tile_a(0, row, k) & mask) * (tile_b(k, column) & mask);
    return sum;
}
