#include "model/calibration.h"

const char *const pace_name[] = {[PACE_FREE] = "free",
                                 [PACE_IN_TURN] = "in turn",
                                 [PACE_BY_STEPS] = "by steps",
                                 [PACE_IN_STEP] = "in step"};

/* What several rows have. */
enum {
    SUM_CYCLES = 40,           // of an epilogue, for each sum of a thread: tuning-log 59, 56 and 116
    LINES_KNEE = 3             // of threads that walk along lines of images: tuning-log 70 and 113
};

/* SMs that ask for the same lines at about the same time are served at once: tuning-log 41 and 93. */
#define BULK(cycles)                                                                                         \
    {                                                                                                        \
        .read_share = 0.6, .sum_cycles = (cycles)                                                            \
    }

/* tuning-log 113 */
#define PAIRS(...)                                                                                           \
    {                                                                                                        \
        .pace = PACE_BY_STEPS, .step_knee = LINES_KNEE, .tail_share = 0.33, __VA_ARGS__                      \
    }

/* tuning-log 116 and 156 */
#define ATTENTION(...)                                                                                       \
    {                                                                                                        \
        .special_share = 0.55, .sum_cycles = SUM_CYCLES, __VA_ARGS__                                         \
    }

const Calibration calibration = {
    .in_turn_knee = 5,                      // tuning-log 7
    .beside_knee = 3,                       // tuning-log 107
    .step_knee = 1.1,                       // tuning-log 38
    .exchange_gb_s = 25,                    // tuning-log 46
    .large_cluster_sms = 10.0 / 11,         // tuning-log 46
    .least_exposed = 1.0 / 8,               // estimate
    .elementwise = {.thread_points = 32},   // tuning-log 11
    .reduce =
        {
            .thread_terms = 32,      // tuning-log 14
            .many_rows_bytes = 32,   // tuning-log 15
            .products = {.pace = PACE_BY_STEPS},   // tuning-log 168
        },
    // tuning-log 17 and 18
    .window = {.element_instructions = 2, .output_instructions = 12},
    // tuning-log 51
    .depthwise = {.element_instructions = 0.7,
                  .output_instructions = 30,
                  .cost = {.pace = PACE_IN_TURN}},
    .element_in_same_bank = 1.3,   // tuning-log 99
    // tuning-log 105
    .many_taps = {.piece_instructions = 2,
                  .line_instructions = 5,
                  .pair_instructions = 10.5,
                  .cost = {.once_knee = 1.6}},
    // tuning-log 70
    .strip = {.threads = 128,
              .step_instructions = 16,
              .cost = {.pace = PACE_BY_STEPS, .step_knee = LINES_KNEE, .tail_share = 0.3},
              .wide_cost = {.pace = PACE_BY_STEPS,
                            .step_knee = LINES_KNEE,
                            .tail_share = 0.56}},   // tuning-log 99 and 109
    .depthwise_copy_instructions = 24,
    // tuning-log 38 and 127
    .matmul = {.ready_share = 0.46},
    .skinny = {.pace = PACE_BY_STEPS, .sum_cycles = 200, .whole_sum_cycles = 70},   // tuning-log 58 and 163
    // tuning-log 59, 56 and 45
    .gemm = {.cost = {.peak_share = 0.72, .sum_cycles = SUM_CYCLES},
             .shift_instructions = 18},
    .wgmma = {.sum_cycles = SUM_CYCLES},   // tuning-log 59
    .bulk = {.alone = BULK(SUM_CYCLES), .in_clusters = BULK(SUM_CYCLES / 2)},
    .attention = ATTENTION(.peak_share = 0.5),
    .attention_lone = ATTENTION(.peak_share = 0.5, .lone_product_cycles = 12),   // tuning-log 158
    .attention_bulk = ATTENTION(),
    .rows =
        {
            .thread_elements = 32,                                                           // tuning-log 19
            .weights_first_elements = 48,                                                    // tuning-log 24
            .block_threads = 64,                                                             // tuning-log 23
            .shortest_block_threads = 128,                                                   // tuning-log 23
            .masked_work = 0.75,                                                             // tuning-log 20
            .ahead_instructions = 3,                                                         // counted
            .cost = {.pace = PACE_IN_TURN},
            .walking_cost = {.pace = PACE_IN_TURN},
            .memory_cost = {.pace = PACE_IN_STEP},
        },
    .channels = {.totals = {.pace = PACE_IN_STEP},
                 .elements = {.tail_share = 0.1}},   // tuning-log 35
    .filter_tiles = {.pace = PACE_BY_STEPS},
    // tuning-log 107
    .toeplitz = {.cost = {.pace = PACE_BY_STEPS, .busy_warps = 1.5, .once_knee = 0.2},
                 .step_instructions = 50,
                 .output_instructions = 0.2},
    .pairs = {.cost = PAIRS(), .narrow_cost = PAIRS(.read_share = 3), .step_instructions = 170},
    .narrow = {.pace = PACE_BY_STEPS},
};
