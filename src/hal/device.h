// A device is data: one YAML file, read into this record. Nothing above hal/ knows any GPU by name.
//
// Every number of the file carries its source in the file (datasheet, paper, or measured when and how).
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/source.h"
#include "base/strbuf.h"

/* The language of its kernels; of a device without one they are ranked, and no text is written. */
typedef enum Dialect { DIALECT_CUDA, DIALECT_HIP, DIALECT_NONE } Dialect;

/* What does the arithmetic: one peak each. */
typedef enum Unit {
    UNIT_FP32,          // CUDA cores / SIMD lanes, one fused multiply-add = 2 flop
    UNIT_FP64,
    UNIT_INT32,
    UNIT_SFU,           // exp, log, rsqrt, …: results per second, not flop
    UNIT_TENSOR_F16,    // mma.sync; dense, f32 accumulation
    UNIT_TENSOR_BF16,
    UNIT_TENSOR_TF32,
    UNIT_TENSOR_F64,
    UNIT_TENSOR_I8,
    UNIT_WGMMA_F16,     // the same units, fed from shared memory
    UNIT_WGMMA_BF16,
    UNIT_WGMMA_TF32,
    UNIT_WGMMA_I8,
    UNIT_COUNT
} Unit;

enum {
    PORTABLE_CLUSTER_BLOCKS = 8,   // of more a kernel must be told that it may (CUDA programming guide)
    MOST_BLOCKS = INT32_MAX,       // of a launch, along the first dimension: the only one that kernels use
};

typedef struct Capabilities {
    bool async_copy;        // cp.async
    bool mma;               // mma.sync tensor-core instructions with f16 operands
    bool bulk_tensor_copy;  // TMA
    bool wgmma;
    bool clusters;          // blocks that reach each other's shared memory
    bool cooperative;       // launches whose blocks may all wait for each other
    bool early_launches;    // programmatic dependent launch: a launch begins while the one before it ends
} Capabilities;

/* One level of the memory hierarchy as the model sees it. */
typedef struct MemoryLevel {
    double bandwidth_gb_s;      // of the whole device
    int transaction_bytes;      // smallest unit that moves
} MemoryLevel;

/* What takes time beside arithmetic and bytes. Cycles are those of `clock_mhz`. */
typedef struct Timing {
    double block_start_cycles;  // of the whole device, from one block's start to the next one's
    double operand_cycles;      // that a warp waits for the operands of its next arithmetic
    double barrier_cycles;      // of a block: from the first warp's arrival to the last one's release
    double warp_copy_cycles;    // of an SM, for a warp's copy of a vector a lane to shared memory without registers
    double block_wait_us;       // of a block that loads, computes and stores once: to begin, to synchronise, to end
    double copy_wait_us;        // more, where it waits for asynchronous copies
    double cluster_barrier_us;  // of two blocks and of more
    double grid_barrier_us;     // a barrier of all blocks, which then read the others' results
} Timing;

typedef struct DeviceSpec {
    const char *name;           // as in --device
    const char *title;          // as its maker calls it
    Dialect dialect;
    const char *arch;           // what the compiler of the dialect is told: "sm_80", "gfx906"
    double clock_mhz;           // boost
    int sm_count;               // execution units: SMs, CUs
    int lanes_per_sm;           // fp32 lanes
    int warp_size;
    int schedulers_per_sm;      // warp schedulers, SIMD units
    int max_threads_per_block, max_threads_per_sm, max_blocks_per_sm;
    int max_blocks_per_cluster; // 0: the device has no clusters
    int cluster_sms;            // where clusters of more than two blocks find room, each of which fills an SM; 0: all
    int max_blocks_per_launch;  // 0: MOST_BLOCKS
    int64_t max_threads_per_launch;   // 0: as many as its blocks have
    int64_t registers_per_sm;   // 32-bit
    int registers_per_thread;   // the compiler's cap
    int register_granule;       // registers of a warp are handed out in multiples of this many a thread
    int64_t shared_per_block;         // static limit, bytes
    int64_t shared_per_block_optin;   // dynamic limit, bytes
    int64_t shared_per_sm;            // bytes
    int64_t shared_reserved_per_block;// taken by the driver from each resident block, bytes
    int shared_banks, shared_bank_bytes;
    MemoryLevel dram, l2, shared;
    double exchange_gb_s;       // of one unit, from the shared memory of another one of its cluster
    int64_t l2_bytes;
    int64_t dram_bytes;
    double dram_latency_ns, l2_latency_ns;
    double dram_pieces_share;   // of memory's bandwidth that pieces of some hundred bytes reach
    double l2_port_share;       // of L2's bandwidth one unit can draw so many times its even share
    Timing timing;
    double launch_us;           // one kernel of a sequence, back to back
    double early_launch_us;     // what it takes less where it begins while the one before it ends
    double superstep_us;        // all units synchronise before they compute on what they exchanged; 0: it is not bulk-synchronous
    double peak[UNIT_COUNT];    // Gflop/s (SFU: G results/s); 0 = the device has no such unit
    Capabilities has;
    const char *sha256;         // of the file's bytes, 64 hexadecimal digits
    const char *file;           // where it came from: a path, or "devices/NAME.yaml" for a built-in one
} DeviceSpec;

extern const char *const unit_name[UNIT_COUNT];   // as in the YAML: "fp32", "tensor_f16", …

/* `device` is a built-in name, or a path (it has a '/' or ends in .yaml). Unknown, unreadable, malformed,
   contradictory or unphysical: an error with a caret and EXIT_INPUT. Nothing is ever asked of the machine
   rollerc runs on. */
DeviceSpec *device_read(Arena *arena, const char *device);

/* The same from text, for tests and fuzzing. */
DeviceSpec *device_parse(Arena *arena, const Source *source);

/* Are programs for it ranked, but not written? */
static inline bool device_is_ranked_only(const DeviceSpec *device) { return device->dialect == DIALECT_NONE; }

/* Its units share no memory: in supersteps they exchange what they need, synchronise, and compute. */
static inline bool device_is_bulk_synchronous(const DeviceSpec *device) { return device->superstep_us > 0; }

/* Blocks of so many threads that one launch may have. */
int64_t device_most_blocks(const DeviceSpec *device, int64_t threads);

/* Blocks that one cluster may have; 1: the device has no clusters. */
int device_most_cluster_blocks(const DeviceSpec *device);

/* Those that any kernel may have. */
int device_portable_cluster_blocks(const DeviceSpec *device);

/* SMs on which blocks in clusters of so many find room. */
int device_sms_of_clusters(const DeviceSpec *device, int blocks);

/* "sm_90a" -> 90; 0 for another dialect's. */
int arch_capability(const char *arch);

/* Prints the names of the built-in devices, one a line with its title. */
void device_list(StrBuf *out);

/* Text of the built-in file, for `--print-device`; NULL if there is none. */
const char *device_text(const char *name);

void device_print(StrBuf *out, const DeviceSpec *device);
