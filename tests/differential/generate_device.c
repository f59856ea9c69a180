// Random device files: no GPU is like them, but one could be. Every number keeps to what device_check() asks of it.
#include <inttypes.h>

#include "differential/generate.h"
#include "differential/generate_parts.h"

typedef struct Arch {
    const char *dialect, *name;
    int warp, register_limit;
    bool async_copy, mma, clusters;   // what it has at most
} Arch;

static const Arch archs[] = {
    // those that can do most stand here most
    {"cuda", "sm_60", 32, 255, false, false, false}, {"cuda", "sm_75", 32, 255, false, false, false},
    {"cuda", "sm_80", 32, 255, true, true, false},   {"cuda", "sm_89", 32, 255, true, true, false},
    {"cuda", "sm_90a", 32, 255, true, true, true},   {"cuda", "sm_90a", 32, 255, true, true, true},
    {"cuda", "sm_90a", 32, 255, true, true, true},   {"cuda", "sm_90a", 32, 255, true, true, true},
    {"cuda", "sm_90a", 32, 255, true, true, true},   {"cuda", "sm_90a", 32, 255, true, true, true},
    {"hip", "gfx906", 64, 256, false, false, false}, {"hip", "gfx1100", 32, 256, false, false, false},
};

static const char *flag(bool value) { return value ? "true" : "false"; }

static void write_compute(Random *r, StrBuf *out, int64_t sms, int64_t clock, bool mma)
{
    static const int64_t lanes[] = {32, 64, 128}, dp_shares[] = {2, 32, 64}, sfu_shares[] = {4, 8, 16};
    int64_t lanes_per_sm = PICK(r, lanes), fp32 = sms * lanes_per_sm * 2 * clock / 1000;
    strbuf_printf(
        out, "compute:\n  clock_mhz: %" PRId64 "\n  sm_count: %" PRId64 "\n  lanes_per_sm: %" PRId64 "\n",
        clock, sms, lanes_per_sm);
    strbuf_printf(out, "  schedulers_per_sm: %d\n  launch_us: %d\n", random_chance(r, 80) ? 4 : 1,
                  1 + (int)random_below(r, 8));
    strbuf_printf(
        out,
        "peak_gflop_s:\n  fp32: %" PRId64 "\n  fp64: %" PRId64 "\n  int32: %" PRId64 "\n  sfu: %" PRId64 "\n",
        fp32, 1 + fp32 / PICK(r, dp_shares), fp32 / (1 + random_below(r, 4)), fp32 / PICK(r, sfu_shares));
    if (mma)
        strbuf_printf(out, "  tensor_f16: %" PRId64 "\n", fp32 * (2 + random_below(r, 8)));
    if (mma && random_chance(r, 80))
        strbuf_printf(out, "  tensor_bf16: %" PRId64 "\n  tensor_tf32: %" PRId64 "\n  tensor_i8: %" PRId64 "\n", fp32 * 2, fp32,
                      fp32 * 4);
}

/* What few devices lack: registers, threads of a launch, shared memory without asking. A chance of their own, so
   that the other numbers of a device stay what they were. */
typedef struct Scarce {
    int registers;      // of a thread; 0: as many as others
    int shared_kib;     // of a block that does not ask; 0: likewise
    int64_t threads;    // of a launch; 0: any number
} Scarce;

static Scarce scarce(uint64_t number)
{
    Random random = {generate_hash(~number)}, *r = &random;
    return (Scarce){
        .registers = random_chance(r, 10) ? 16 + (int)random_below(r, 48) : 0,
        .shared_kib = random_chance(r, 25) ? 4 << random_below(r, 3) : 0,
        .threads = random_chance(r, 25) ? INT64_C(1) << (20 + random_below(r, 13)) : 0,   // 300 SMs hold 768,000
    };
}

static int fewer(int usual, int scarce) { return scarce ? scarce : usual; }

static void write_threads(Random *r, StrBuf *out, const Arch *arch, bool clusters, const Scarce *scarce)
{
    static const int per_block[] = {128, 256, 512, 1024, 1024, 1024}, per_sm[] = {1024, 1536, 2048, 2560};
    static const int blocks[] = {4, 8, 16}, registers[] = {32768, 65536, 131072}, granules[] = {1, 4, 8};
    strbuf_printf(
        out, "threads:\n  warp_size: %d\n  max_per_block: %d\n  max_per_sm: %d\n  max_blocks_per_sm: %d\n",
        arch->warp, PICK(r, per_block), PICK(r, per_sm), PICK(r, blocks));
    if (clusters)
        strbuf_printf(out, "  max_blocks_per_cluster: %d\n", 2 << random_below(r, 4));
    if (scarce->threads)
        strbuf_printf(out, "  max_per_launch: %" PRId64 "\n", scarce->threads);
    strbuf_printf(out, "registers:\n  per_sm: %d\n  per_thread: %d\n  granule: %d\n", PICK(r, registers),
                  fewer(random_chance(r, 70) ? arch->register_limit : 64 + (int)random_below(r, 128), scarce->registers),
                  PICK(r, granules));
}

static void write_memory(Random *r, StrBuf *out, int64_t sms, int64_t clock, const Scarce *scarce)
{
    static const int64_t kib[] = {16, 32, 48, 48, 64, 96, 160, 227}, lines[] = {32, 32, 64, 128};
    int64_t most = PICK(r, kib), block = fewer(most < 48 ? (int)most : 48, scarce->shared_kib), reserved = random_chance(r, 50) ? 1024 : 0;
    int64_t unit = most * 1024 * (1 + random_below(r, 3)) + reserved, line = PICK(r, lines);
    int64_t shared = sms * clock * 128 * (75 + random_below(r, 25)) / 100 / 1000,
            dram = 10 + shared * (4 + random_below(r, 30)) / 100;
    strbuf_printf(out, "shared:\n  bytes_per_block: %" PRId64 "\n  bytes_per_block_optin: %" PRId64 "\n",
                  block * 1024, most * 1024);
    strbuf_printf(out, "  bytes_per_sm: %" PRId64 "\n  bytes_reserved_per_block: %" PRId64 "\n", unit,
                  reserved);
    strbuf_printf(out,
                  "  banks: 32\n  bank_bytes: 4\n  bandwidth_gb_s: %" PRId64 "\n  transaction_bytes: 128\n",
                  shared);
    strbuf_printf(
        out, "l2:\n  bytes: %" PRId64 "\n  bandwidth_gb_s: %" PRId64 "\n  transaction_bytes: %" PRId64 "\n",
        INT64_C(65536) << random_below(r, 11), dram * (1 + random_below(r, 4)), line);
    strbuf_printf(out,
                  "dram:\n  bytes: %" PRId64 "\n  bandwidth_gb_s: %" PRId64 "\n  transaction_bytes: %" PRId64
                  "\n"
                  "  latency_ns: %" PRId64 "\n",
                  INT64_C(17179869184), dram, line, 200 + random_below(r, 600));
}

/* From far shorter to far longer than that of any GPU. What is left out follows from the clock and the latency. */
static void write_timing(Random *r, StrBuf *out)
{
    static const char *const keys[] = {"block_start_cycles", "operand_cycles", "barrier_cycles",   "block_wait_us",
                                       "cluster_barrier_us", "copy_wait_us",   "grid_barrier_us", "warp_copy_cycles"};
    strbuf_puts(out, "timing:\n");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (i == 0 || random_chance(r, 50))   // a group has a key
            strbuf_printf(out, "  %s: %d\n", keys[i], 1 << random_below(r, 9));
}

char *generate_device(Arena *arena, uint64_t number)
{
    static const int64_t sm_counts[] = {1, 2, 2, 4, 8, 20, 60, 108, 132, 300};
    Random random = {generate_hash(number)}, *r = &random;
    const Arch *arch = &PICK(r, archs);
    bool async = arch->async_copy && random_chance(r, 90), mma = arch->mma && random_chance(r, 70);
    bool clusters = arch->clusters && random_chance(r, 90),
         bulk = arch->clusters && async && random_chance(r, 70);
    int64_t sms = PICK(r, sm_counts), clock = 800 + random_below(r, 1400);
    StrBuf out = strbuf_new(arena);
    strbuf_printf(&out,
                  "device:\n  name: random-%" PRIu64 "\n  title: random device\n  dialect: %s\n  arch: %s\n",
                  number, arch->dialect, arch->name);
    write_compute(r, &out, sms, clock, mma);
    const Scarce few = scarce(number);
    write_threads(r, &out, arch, clusters, &few);
    write_memory(r, &out, sms, clock, &few);
    strbuf_printf(&out, "capabilities:\n  async_copy: %s\n  mma: %s\n  bulk_tensor_copy: %s\n  wgmma: %s\n",
                  flag(async), flag(mma), flag(bulk), flag(bulk && mma));
    strbuf_printf(&out, "  clusters: %s\n  cooperative: %s\n", flag(clusters), flag(random_chance(r, 70)));
    if (random_chance(r, 50))
        write_timing(r, &out);
    return out.text;
}
