#include "hal/device_fields.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) .offset = offsetof(DeviceSpec, member)

enum { KIB = 1024 };
static const double TIB = 1099511627776.0;

#define TEXT(path_, kind_, member) {.path = path_, .kind = kind_, AT(member)}
#define FLAG(path_, member) {.path = path_, .kind = FIELD_BOOL, AT(member), .most = 1}
#define NUMBER(path_, kind_, member, least_, most_, unit_) \
    {.path = path_, .kind = kind_, AT(member), .least = least_, .most = most_, .unit = unit_}
#define CACHE(path_, kind_, member, least_, most_, unit_) \
    {.path = path_, .kind = kind_, .cached = true, AT(member), .least = least_, .most = most_, .unit = unit_}
#define PEAK(name, unit_, optional_) \
    {.path = "peak_gflop_s." name, .kind = FIELD_REAL, .optional = optional_, AT(peak[unit_]), \
     .least = 1, .most = 1e8, .unit = "Gflop/s"}

/* What no datasheet says, in clocks of 1980 MHz and latencies of 400 ns, as it was measured: 1 us to begin
   and to end is 1980 clocks, and so 2.26 us at 875 MHz. */
#define STANDARD(path_, member, standard_, of_, least_, most_, unit_) \
    {.path = path_, .kind = FIELD_REAL, .optional = true, .standard = standard_, .of = STANDARD_##of_, \
     AT(member), .least = least_, .most = most_, .unit = unit_}
#define MEASURED STANDARD   // with micro-kernels: by `rollerc calibrate`, or as doc/devices.md says
#define FITTED STANDARD     // with whole kernels (tuning-log 1 to 8)

const char *const unit_name[UNIT_COUNT] = {
    [UNIT_FP32] = "fp32",
    [UNIT_FP64] = "fp64",
    [UNIT_INT32] = "int32",
    [UNIT_SFU] = "sfu",
    [UNIT_TENSOR_F16] = "tensor_f16",
    [UNIT_TENSOR_BF16] = "tensor_bf16",
    [UNIT_TENSOR_TF32] = "tensor_tf32",
    [UNIT_TENSOR_F64] = "tensor_f64",
    [UNIT_TENSOR_I8] = "tensor_i8",
    [UNIT_WGMMA_F16] = "wgmma_f16",
    [UNIT_WGMMA_BF16] = "wgmma_bf16",
    [UNIT_WGMMA_TF32] = "wgmma_tf32",
    [UNIT_WGMMA_I8] = "wgmma_i8",
};

/* The ranges are wide: they catch a wrong unit (GHz for MHz, KiB for bytes), not a fast GPU. */
const DeviceField device_fields[] = {
    TEXT("device.name", FIELD_NAME, name),
    TEXT("device.title", FIELD_TITLE, title),
    TEXT("device.dialect", FIELD_DIALECT, dialect),
    TEXT("device.arch", FIELD_NAME, arch),

    NUMBER("compute.clock_mhz", FIELD_REAL, clock_mhz, 100, 10000, "MHz"),
    NUMBER("compute.sm_count", FIELD_INT, sm_count, 1, 4096, "execution units"),
    NUMBER("compute.lanes_per_sm", FIELD_INT, lanes_per_sm, 1, 1024, "fp32 lanes"),
    NUMBER("compute.schedulers_per_sm", FIELD_INT, schedulers_per_sm, 1, 64, "warp schedulers"),
    MEASURED("compute.launch_us", launch_us, 1.2, ITSELF, 0.001, 1000, "us"),
    MEASURED("compute.early_launch_us", early_launch_us, 0.4, ITSELF, 0.001, 1000, "us"),
    {.path = "compute.superstep_us", .kind = FIELD_REAL, .optional = true, AT(superstep_us),
     .least = 0.001, .most = 1000, .unit = "us"},

    PEAK("fp32", UNIT_FP32, false),
    PEAK("fp64", UNIT_FP64, false),
    PEAK("int32", UNIT_INT32, false),
    PEAK("sfu", UNIT_SFU, false),
    PEAK("tensor_f16", UNIT_TENSOR_F16, true),
    PEAK("tensor_bf16", UNIT_TENSOR_BF16, true),
    PEAK("tensor_tf32", UNIT_TENSOR_TF32, true),
    PEAK("tensor_f64", UNIT_TENSOR_F64, true),
    PEAK("tensor_i8", UNIT_TENSOR_I8, true),
    PEAK("wgmma_f16", UNIT_WGMMA_F16, true),
    PEAK("wgmma_bf16", UNIT_WGMMA_BF16, true),
    PEAK("wgmma_tf32", UNIT_WGMMA_TF32, true),
    PEAK("wgmma_i8", UNIT_WGMMA_I8, true),

    NUMBER("threads.warp_size", FIELD_INT, warp_size, 1, 128, "threads"),
    NUMBER("threads.max_per_block", FIELD_INT, max_threads_per_block, 1, 1024, "threads"),
    NUMBER("threads.max_per_sm", FIELD_INT, max_threads_per_sm, 1, 8192, "threads"),
    NUMBER("threads.max_blocks_per_sm", FIELD_INT, max_blocks_per_sm, 1, 256, "blocks"),
    {.path = "threads.max_blocks_per_cluster", .kind = FIELD_INT, .optional = true, AT(max_blocks_per_cluster),
     .least = 2, .most = 64, .unit = "blocks"},
    {.path = "threads.cluster_sms", .kind = FIELD_INT, .optional = true, AT(cluster_sms),
     .least = 1, .most = 4096, .unit = "execution units"},

    {.path = "threads.max_per_launch", .kind = FIELD_INT64, .optional = true, AT(max_threads_per_launch),
     .least = 65536, .most = 1e15, .unit = "threads"},
    {.path = "threads.max_blocks_per_launch", .kind = FIELD_INT, .optional = true, AT(max_blocks_per_launch),
     .least = 65535, .most = MOST_BLOCKS, .unit = "blocks"},

    NUMBER("registers.per_sm", FIELD_INT64, registers_per_sm, 64, 1 << 20, "registers"),
    NUMBER("registers.per_thread", FIELD_INT, registers_per_thread, 16, 256, "registers"),
    NUMBER("registers.granule", FIELD_INT, register_granule, 1, 64, "registers"),

    NUMBER("shared.bytes_per_block", FIELD_INT64, shared_per_block, 4 * KIB, 1024 * KIB, "bytes"),
    NUMBER("shared.bytes_per_block_optin", FIELD_INT64, shared_per_block_optin, 4 * KIB,
           1024 * KIB, "bytes"),
    NUMBER("shared.bytes_per_sm", FIELD_INT64, shared_per_sm, 4 * KIB, 1024 * KIB, "bytes"),
    NUMBER("shared.bytes_reserved_per_block", FIELD_INT64, shared_reserved_per_block, 0, 16 * KIB,
           "bytes"),
    NUMBER("shared.banks", FIELD_INT, shared_banks, 1, 256, "banks"),
    NUMBER("shared.bank_bytes", FIELD_INT, shared_bank_bytes, 1, 32, "bytes"),
    NUMBER("shared.bandwidth_gb_s", FIELD_REAL, shared.bandwidth_gb_s, 10, 1e7, "GB/s"),
    NUMBER("shared.transaction_bytes", FIELD_INT, shared.transaction_bytes, 4, 1024, "bytes"),

    MEASURED("shared.exchange_gb_s", exchange_gb_s, 28, ITSELF, 1, 1e5, "GB/s"),

    CACHE("l2.bytes", FIELD_INT64, l2_bytes, 64 * KIB, 4096.0 * 1024 * KIB, "bytes"),
    CACHE("l2.bandwidth_gb_s", FIELD_REAL, l2.bandwidth_gb_s, 10, 1e6, "GB/s"),
    CACHE("l2.transaction_bytes", FIELD_INT, l2.transaction_bytes, 4, 1024, "bytes"),

    MEASURED("l2.latency_ns", l2_latency_ns, 0.365, LATENCIES_NS, 1, 10000, "ns"),
    FITTED("l2.port_share", l2_port_share, 2, ITSELF, 1, 1000, "even shares"),

    NUMBER("dram.bytes", FIELD_INT64, dram_bytes, 64.0 * 1024 * KIB, 16 * TIB, "bytes"),
    NUMBER("dram.bandwidth_gb_s", FIELD_REAL, dram.bandwidth_gb_s, 10, 1e5, "GB/s"),
    NUMBER("dram.transaction_bytes", FIELD_INT, dram.transaction_bytes, 4, 1024, "bytes"),
    MEASURED("dram.latency_ns", dram_latency_ns, 400, ITSELF, 10, 10000, "ns"),
    MEASURED("dram.pieces_share", dram_pieces_share, 0.82, ITSELF, 0.01, 1, "of the bandwidth"),

    MEASURED("timing.block_start_cycles", timing.block_start_cycles, 1.21, ITSELF, 0.001, 1e4, "cycles"),
    MEASURED("timing.operand_cycles", timing.operand_cycles, 30, ITSELF, 1, 1e4, "cycles"),
    MEASURED("timing.barrier_cycles", timing.barrier_cycles, 29, ITSELF, 1, 1e5, "cycles"),
    MEASURED("timing.warp_copy_cycles", timing.warp_copy_cycles, 12.4, ITSELF, 1, 1e4, "cycles"),
    FITTED("timing.block_wait_us", timing.block_wait_us, 1980, CLOCKS_US, 0.01, 1000, "us"),
    FITTED("timing.copy_wait_us", timing.copy_wait_us, 1, LATENCIES_US, 0.01, 1000, "us"),
    MEASURED("timing.cluster_barrier_us", timing.cluster_barrier_us, 1089, CLOCKS_US, 0.01, 1000, "us"),
    MEASURED("timing.grid_barrier_us", timing.grid_barrier_us, 4, LATENCIES_US, 0.01, 1000, "us"),

    FLAG("capabilities.async_copy", has.async_copy),
    FLAG("capabilities.mma", has.mma),
    FLAG("capabilities.bulk_tensor_copy", has.bulk_tensor_copy),
    FLAG("capabilities.wgmma", has.wgmma),
    FLAG("capabilities.clusters", has.clusters),
    {.path = "capabilities.cooperative", .kind = FIELD_BOOL, .optional = true, AT(has.cooperative), .most = 1},
    {.path = "capabilities.early_launches",
     .kind = FIELD_BOOL,
     .optional = true,
     AT(has.early_launches),
     .most = 1},
    {.path = NULL},
};

const DialectRow dialects[] = {
    {"cuda", DIALECT_CUDA, "sm_", .registers_per_thread = 255},   // the 256th is always zero
    {"hip", DIALECT_HIP, "gfx", .registers_per_thread = 256},
    {"none", DIALECT_NONE, "", .registers_per_thread = 256},
    {.name = NULL},
};

const DialectRow *dialect_row(Dialect dialect)
{
    const DialectRow *row = dialects;
    while (row->dialect != dialect)
        row++;
    return row;
}

int arch_capability(const char *arch)
{
    return strncmp(arch, "sm_", strlen("sm_")) == 0 ? atoi(arch + strlen("sm_")) : 0;
}

const DeviceField *device_field(const char *path)
{
    for (const DeviceField *field = device_fields; field->path; field++)
        if (strcmp(field->path, path) == 0)
            return field;
    return NULL;
}

double device_number(const DeviceSpec *device, const char *path)
{
    const DeviceField *field = device_field(path);
    assert(field && "a rule names no key of the table");
    const void *member = (const char *)device + field->offset;
    switch (field->kind) {
    case FIELD_BOOL:
        return *(const bool *)member;
    case FIELD_INT:
        return *(const int *)member;
    case FIELD_INT64:
        return (double)*(const int64_t *)member;   // exact: no field reaches 2^53
    case FIELD_REAL:
        return *(const double *)member;
    default:
        assert(!"a text is no number");
        return 0;
    }
}

const char *device_number_text(Arena *arena, double value)
{
    if (value > -1e15 && value < 1e15 && value == (double)(int64_t)value)
        return arena_printf(arena, "%" PRId64, (int64_t)value);
    StrBuf text = strbuf_new(arena);
    strbuf_double(&text, value);
    return text.text;
}
