// What was fitted to kinds of kernels: how far a thread and a block go before they lose speed, what masks and
// tails cost. Times that belong to a device are keys of its file. Each row stands in calibration.c, beside
// the entry of doc/tuning-log.md that it was taken from.
#pragma once

/* How the warps of a block go through what its schedule says, as the model has it. */
typedef enum Pace {
    PACE_FREE,       // each for itself, but for the barriers
    PACE_IN_TURN,    // all load, all compute, all store: only other blocks overlap
    PACE_BY_STEPS,   // in each round all load, then compute, at about the same time
    PACE_IN_STEP     // they wait for each other, though some load while others compute
} Pace;
extern const char *const pace_name[];

/* What the model knows of a kind of kernel beside its schedule and its tiles: KernelKind.cost points to it. */
typedef struct KindCost {
    Pace pace;
    double peak_share;          // of its unit that the kernel's instructions reach beside others; 0: all
    double ready_share;         // of the time a warp has its operands: a scheduler waits while none of its warps has
                                // them; 0: always
    double special_share;       // of the special functions' rate that the threads of a register tile reach alone, between
                                // their products, while other tiles' threads multiply; 0: they make both at once
    double busy_warps;          // of a scheduler, of which some multiply while others load; 0: any number does
    double step_knee;           // how sharply its steps turn from load-bound to compute-bound; 0: as usual
    double once_knee;           // the same of blocks that load once and compute, more than 1; 0: not so
    double tail_share;          // of a block's time: for so long the last ones run on while SMs idle
    double read_share;          // of what blocks copy is read from L2, where requests to a line are merged; 0 = 1
    double sum_cycles;          // for each sum of a thread, once they are complete
    double whole_sum_cycles;    // the same where no lanes halve them
    double lone_product_cycles; // for each 16 x 8 x 16 of its last step's products, by a warp that has all rows
} KindCost;

typedef struct WindowFit {
    double element_instructions, output_instructions;   // Move.instructions
    KindCost cost;
} WindowFit;

typedef struct Calibration {
    double beside_knee;     // how sharply the warps of a scheduler keep it busy that seldom wait in their steps
    double in_turn_knee;    // how sharply those that load, compute and store once turn from throughput- to latency-bound
    double step_knee;       // and in each of their steps, where these are many
    double exchange_gb_s;   // of a block's sums in f32, which a cluster adds up
    double large_cluster_sms;   // share of the SMs where clusters of more than two blocks find room
    double least_exposed;   // of the shorter terms, this much stays visible however well they overlap
    struct {
        int thread_points;
    } elementwise;
    struct {
        int thread_terms;      // whose loads are in flight at a time,
        int many_rows_bytes;   // or so many bytes where there are many rows
        KindCost products;     // of factors that threads read again and again
    } reduce;
    WindowFit window, depthwise;
    double element_in_same_bank;   // times its instructions where other lanes' elements lie in its bank
    struct {
        double piece_instructions;   // of a thread for each element that a block copies contiguously,
        double line_instructions;    // line by line,
        double pair_instructions;    // and for threads of two columns, whose lines have zeros at both ends
        KindCost cost;
    } many_taps;
    double depthwise_copy_instructions;   // to find a vector of an image, and its place in shared memory
    struct {
        int threads;   // of a block
        double step_instructions;   // of a thread for a row of the input
        KindCost cost, wide_cost;      // over lines of 16 bits an element or of a filter's gradient, of more
    } strip;
    KindCost matmul;   // of tiles in two stages
    KindCost skinny;
    struct {
        KindCost cost;
        double shift_instructions;   // of a thread to bring one element that lies anywhere into its place
    } gemm;
    KindCost wgmma;
    struct {
        KindCost alone;         // SMs that ask for the same lines at about the same time are served at once
        KindCost in_clusters;   // each stores half as many sums
    } bulk;
    KindCost attention, attention_lone, attention_bulk;
    struct {
        int thread_elements;          // of a row, or of a channel
        int weights_first_elements;   // of a row and of its weights in a thread that reads both first
        int block_threads;            // of a block of several rows: in small ones no warp waits for others to end
        int shortest_block_threads;   // of the shortest rows, which would have too many blocks to start
        double masked_work;           // of a row of whose vectors a mask leaves out some, beside a whole one
        double ahead_instructions;    // of a thread to copy an element and to fetch it
        KindCost cost;                // of rows in registers,
        KindCost walking_cost, memory_cost;   // in shared memory; that every pass reads again
    } rows;
    struct {
        KindCost totals, elements;   // of kernels that go on in steps
    } channels;
    KindCost filter_tiles;   // of a filter's gradient, by threads of a few taps or tensor cores
    struct {
        KindCost cost;
        double step_instructions;     // of a warp in each row of the input, beside products,
        double output_instructions;   // and for each of its outputs
    } toeplitz;
    struct {
        KindCost cost, narrow_cost;   // of blocks of few channels: twice what is read and written
        double step_instructions;     // of a warp in each row of the input, beside products
    } pairs;
    KindCost narrow;
} Calibration;

extern const Calibration calibration;
