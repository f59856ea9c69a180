// What was fitted to kinds of kernels, or counted in their machine code: how loads and arithmetic overlap, what a
// thread loads at once, what its instructions are. Times that belong to a device are keys of its file. Each row stands
// in calibration.c, beside the entry of doc/tuning-log.md that it was taken from, or is marked `counted`:
// tests/run_instructions.py finds it in the machine code.
#pragma once
#include <stdbool.h>

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
    bool from_shared;           // warps read operands from shared memory: a scheduler waits while none of its warps has them
    double special_share;       // of the special functions' rate that the threads of a register tile reach alone, between
                                // their products, while other tiles' threads multiply; 0: they make both at once
    bool drifts;                // blocks that start together end at any time within that of one: SMs idle, loads overlap
    bool parts_of_rows;         // of its outputs are what a block stores: of the sectors at both ends others store the rest
    bool by_pieces;             // blocks read and write pieces of rows, which lie apart in memory
    double read_share;          // of what blocks copy takes time of L2, as loads do; 0 = 1
    double sum_cycles;          // for each sum of a thread, once they are complete
} KindCost;

typedef struct WindowFit {
    double element_instructions, output_instructions;   // Move.instructions
    double setup_instructions;                          // of a thread, once
} WindowFit;

typedef struct Calibration {
    double knee;            // of two times that overlap: how sharply a kernel turns from bound by one to bound by the other
    double least_exposed;   // of the shorter terms, this much stays visible however well they overlap
    double once_exposed;    // share of the shorter of loads and arithmetic that does not overlap, of one block on an SM that stages once
    int thread_elements;    // of a row or of a sum, that a thread has in flight
    int weights_first_elements;   // of a row and of its weights in a thread that reads both first
    KindCost in_turn, by_steps, in_step;   // of kernels of which only the pace is known
    KindCost permute;                      // whose tiles read and write pieces of rows
    KindCost channelwise;                  // whose blocks have some channels of many positions
    KindCost down;                         // whose threads or warps iterate down an image
    WindowFit window, filters, depthwise;   // filters: windows that are multiplied by one
    double finding_cycles;                // of a lone warp that finds elements, from one instruction to the next
    double row_copy_instructions;         // of a thread to copy an element and to fetch it, beside a load
    double depthwise_copy_instructions;   // to find a vector of an image, and its place in shared memory
    double strip_step_instructions;       // of a thread for a row of the input
    double pairs_step_instructions;       // of a warp, beside products
    double operand_wait_cycles;           // of a warp for operands from shared memory, in a register step
    double together_cycles;               // steps of fewer cycles are written out and their operands are read together
    KindCost matmul;
    KindCost toeplitz;
    KindCost skinny;
    struct {
        KindCost cost;
        double shift_instructions;   // of a thread to bring one element that lies anywhere into its place
    } gemm;
    KindCost bulk;
    KindCost attention, attention_bulk;
} Calibration;

extern const Calibration calibration;
