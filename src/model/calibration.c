#include "model/calibration.h"

const char *const pace_name[] = {[PACE_FREE] = "free",
                                 [PACE_IN_TURN] = "in turn",
                                 [PACE_BY_STEPS] = "by steps",
                                 [PACE_IN_STEP] = "in step"};

enum {
    SUM_CYCLES = 40   // of an epilogue, for each sum of a thread: tuning-log 56, 59, 116 and 167
};
#define SPECIAL_SHARE 0.55   // of attention: tuning-log 116 and 156

const Calibration calibration = {
    .knee = 5,                             // tuning-log 7, 113 and 179
    .least_exposed = 1.0 / 8,              // tuning-log 161 and 167
    .once_exposed = 0.3,                   // tuning-log 236
    .thread_elements = 32,                 // tuning-log 14, 19 and 167
    .weights_first_elements = 48,          // tuning-log 24
    .in_turn = {.pace = PACE_IN_TURN},
    .by_steps = {.pace = PACE_BY_STEPS},   // tuning-log 168
    .in_step = {.pace = PACE_IN_STEP},
    .permute = {.pace = PACE_IN_TURN, .by_pieces = true},
    .channelwise = {.parts_of_rows = true},   // tuning-log 198
    .down = {.pace = PACE_BY_STEPS, .drifts = true},
    .window = {.element_instructions = 1.25, .output_instructions = 8.5},   // counted
    .filters = {.element_instructions = 2.0, .output_instructions = 8.5, .setup_instructions = 105},   // counted
    .depthwise = {.output_instructions = 30,                            // counted
                  .element_instructions = 0.7},                         // tuning-log 51 and 167
    .finding_cycles = 2.3,                 // counted
    .row_copy_instructions = 1.8,          // counted
    .strip_step_instructions = 16,         // counted
    .pairs_step_instructions = 170,        // tuning-log 113, 167 and 179
    .depthwise_copy_instructions = 34,     // counted
    .operand_wait_cycles = 75,             // tuning-log 127, 182 and 248
    .together_cycles = 64,                 // tuning-log 248
    .matmul = {.from_shared = true},
    .toeplitz = {.pace = PACE_BY_STEPS, .from_shared = true},
    .skinny = {.pace = PACE_BY_STEPS, .sum_cycles = SUM_CYCLES},
    // tuning-log 45
    .gemm = {.cost = {.sum_cycles = SUM_CYCLES},
             .shift_instructions = 18},
    // Bulk copies read L2 at 9.4 TB/s, loads at 7.7: micro-kernels, tuning-log 186
    .bulk = {.read_share = 0.82, .sum_cycles = SUM_CYCLES},
    .attention = {.special_share = SPECIAL_SHARE, .sum_cycles = SUM_CYCLES, .peak_share = 0.5},   // tuning-log 116, 156
    .attention_bulk = {.special_share = SPECIAL_SHARE, .sum_cycles = SUM_CYCLES},
};
