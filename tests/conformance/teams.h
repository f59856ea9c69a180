// What teams.cu must write, in plain C and C++.
//
// BOTH stands before a function; the includer defines it (`static inline`, or with __device__ in front).
#pragma once

enum {
    TEAM_BLOCKS = 16,
    TEAM_THREADS = 64,
    TEAM_SIZE = TEAM_BLOCKS * TEAM_THREADS,
    FAR_BYTES = 100 << 10,        // past what a kernel may have without asking
    CLUSTER_LAUNCHES = 6,         // of 1, 2, 4, 8, 16 blocks, and one of 4 with more shared memory
    ROUNDED = 32 * 8,              // that a bulk copy rounds to tf32
    RANKS = 5,                     // of tensors that boxes of 8 lines come from
    BOX_OUTPUTS = RANKS * 32 * 8,
    PIXELS = 16 * 32,              // elements that a copy of pixels brings; of one axis, of two, of three
    TEAM_OUTPUTS = (3 * CLUSTER_LAUNCHES + 3 + 6 + 3) * TEAM_SIZE + 2 * ROUNDED + BOX_OUTPUTS + 3 * PIXELS,
    BOX_X = 24, BOX_Y = 10, BOX_Z = 4,   // of the table as bulk copies see it; they bring 32 x 16 of that at a time
};

BOTH int team_value(int i) { return (int)((unsigned)i * 2654435761u >> 12) - 400000; }

/* The sum of what threads i % 64 of `count` blocks from `first` on hold. */
BOTH int team_sum(int i, int first, int count, int round)
{
    int sum = count * round;
    for (int b = first; b < first + count; b++)
        sum += team_value(b * TEAM_THREADS + i % TEAM_THREADS);
    return sum;
}

/* What a launch in clusters writes at n of its 3 * TEAM_SIZE numbers. */
BOTH int cluster_output(int cluster, int n)
{
    const int i = n % TEAM_SIZE, rank = i / TEAM_THREADS % cluster, first = i / TEAM_THREADS - rank;
    if (n / TEAM_SIZE < 2)
        return team_sum(i, first, cluster, n / TEAM_SIZE) * 16 + rank;
    return (first + (rank + cluster - 1) % cluster) * TEAM_THREADS + i % TEAM_THREADS;
}

/* What a cooperative launch writes there. */
BOTH int grid_output(int n)
{
    const int i = n % TEAM_SIZE;
    return n < TEAM_SIZE ? team_value(i) + 1 : team_sum(i, 0, TEAM_BLOCKS, n / TEAM_SIZE - 1);
}

/* What a thread makes of its 8 elements of a box that begins at (8 * round, 0, block / 4). */
BOTH int box_output(int n)
{
    const int round = n / TEAM_SIZE, block = n % TEAM_SIZE / TEAM_THREADS, first = n % TEAM_THREADS * 8;
    int sum = 0;
    for (int e = first; e < first + 8; e++) {
        const int x = 8 * round + e % 32, y = e / 32;
        if (x < BOX_X && y < BOX_Y)
            sum += (team_value((block / 4 * BOX_Y + y) * BOX_X + x) % 4096) * (e % 8 + 1);
    }
    return sum;
}

/* Bits of a float: of any sign, with an even and an odd last bit of ten and a half of that behind it, or a little more or less. */
BOTH unsigned float_bits(int i)
{
    const unsigned tails[] = {0, 1, 0xfff, 0x1000, 0x1001, 0x1fff};
    const unsigned heads[] = {0x3f800000, 0x3f802000, 0xbf800000, 0xbf806000, 0,
                              0x80002000, 0x7f7fe000, 0x3fffe000, 0x7f800000, 0xff802000};
    return heads[i / 6 % 10] + tails[i % 6];
}

/* The same as tf32: to the nearest, of two the even one. */
BOTH unsigned tf32_bits(unsigned bits)
{
    const unsigned rest = bits % 0x2000, head = bits - rest;
    if ((bits & 0x7fffffff) > 0x7f800000)
        return 0x7fffe000;
    return rest > 0x1000 || (rest == 0x1000 && head & 0x2000) ? head + 0x2000 : head;
}

/* The table as a tensor, a box of it, and where that begins: all leave the tensor at its end. */
typedef struct BoxShape {
    int sizes[RANKS], box[RANKS], at[RANKS];
} BoxShape;

BOTH BoxShape box_shape(int rank)
{
    const BoxShape shapes[RANKS] = {{{1000, 1, 1, 1, 1}, {32, 1, 1, 1, 1}, {976, 0, 0, 0, 0}},
                                    {{24, 40, 1, 1, 1}, {32, 8, 1, 1, 1}, {0, 36, 0, 0, 0}},
                                    {{24, 5, 8, 1, 1}, {32, 4, 2, 1, 1}, {8, 3, 6, 0, 0}},
                                    {{24, 5, 4, 2, 1}, {32, 2, 2, 2, 1}, {8, 4, 2, 1, 0}},
                                    {{24, 3, 2, 3, 2}, {32, 2, 2, 1, 2}, {0, 2, 0, 1, 1}}};
    return shapes[rank - 1];
}

/* Element n % 32 of line n / 32 of the box; zero outside of the tensor. */
BOTH int rank_output(int rank, int n)
{
    const BoxShape shape = box_shape(rank);
    int place = 0, step = 1, rest = n;
    for (int d = 0; d < RANKS; d++) {
        const int at = shape.at[d] + rest % shape.box[d];
        if (at >= shape.sizes[d])
            return 0;
        place += at * step;
        step *= shape.sizes[d];
        rest /= shape.box[d];
    }
    return rest ? 0 : team_value(place);
}

/* The table as images (4, 2, 5) of 24 channels; of one axis (8, 5), of three (2, 2, 2, 5). A walk goes along five columns from the one
   before the first on in steps of two, along two rows, and sees what lies one column farther and, of several axes, one row. It begins
   with the second column of the second image's first row. */
BOTH int pixel_output(int axes, int n)
{
    const int walked = n / 32 + 1 + (axes == 1 ? 3 : axes == 2 ? 6 : 12), channel = n % 32;
    const int column = walked % 3 * 2 - 1 + 1, line = walked / 3;   // of all images
    const int row = axes == 1 ? line : line + 1, rows = 8;
    if (column >= 5 || channel >= BOX_X || line >= rows || (axes > 1 && line % 2 == 1))
        return 0;
    return team_value((row * 5 + column) * BOX_X + channel);
}

BOTH int team_output(int n)
{
    const int pixels = TEAM_OUTPUTS - 3 * PIXELS, boxes = pixels - BOX_OUTPUTS, rounded = boxes - ROUNDED, as_they_were = rounded - ROUNDED;
    if (n >= pixels)
        return pixel_output(1 + (n - pixels) / PIXELS, (n - pixels) % PIXELS);
    if (n >= boxes)
        return rank_output((n - boxes) / 256 + 1, (n - boxes) % 256);
    if (n >= as_they_were)
        return (int)(n >= rounded ? tf32_bits(float_bits(n - rounded)) : float_bits(n - as_they_were));
    const int launch = n / (3 * TEAM_SIZE), rest = n % (3 * TEAM_SIZE);
    return launch < CLUSTER_LAUNCHES - 1    ? cluster_output(1 << launch, rest)
           : launch == CLUSTER_LAUNCHES - 1 ? cluster_output(4, rest)
           : launch == CLUSTER_LAUNCHES + 1 ? cluster_output(2, rest)
           : launch == CLUSTER_LAUNCHES + 3 ? box_output(rest)
                                            : grid_output(rest);
}
