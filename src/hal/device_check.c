#include "hal/device_check.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "hal/device_fields.h"

typedef struct Subject {
    Arena *arena;
    const DeviceSpec *device;
    const YamlNode *root;
} Subject;

/* The place of the value; of its group if it is absent. */
static Loc loc_of(const Subject *s, const char *path)
{
    const char *dot = strchr(path, '.');
    const YamlNode *group =
        yaml_child(s->root, arena_strndup(s->arena, path, (size_t)(dot - path)));
    const YamlNode *value = group ? yaml_child(group, dot + 1) : NULL;
    return value ? value->loc : group ? group->loc : s->root->loc;
}

static double number(const Subject *s, const char *path) { return device_number(s->device, path); }

/* "shared.banks = 32" */
static const char *fact(const Subject *s, const char *path)
{
    return arena_printf(s->arena, "%s = %s", path, device_number_text(s->arena, number(s, path)));
}

/* ---- a <= b; a number that is absent (0) passes ---- */

typedef struct AtMost {
    const char *small, *large;
} AtMost;

static const AtMost AT_MOST[] = {
    {"shared.bytes_per_block", "shared.bytes_per_block_optin"},
    {"shared.bytes_per_block_optin", "shared.bytes_per_sm"},
    {"dram.bandwidth_gb_s", "l2.bandwidth_gb_s"},
    {"dram.bandwidth_gb_s", "shared.bandwidth_gb_s"},
    {"l2.bytes", "dram.bytes"},
    {"l2.latency_ns", "dram.latency_ns"},
    {"threads.max_per_block", "threads.max_per_sm"},
    {"peak_gflop_s.fp64", "peak_gflop_s.fp32"},
    {"peak_gflop_s.sfu", "peak_gflop_s.fp32"},
    {"peak_gflop_s.tensor_tf32", "peak_gflop_s.tensor_f16"},
};

static void check_at_most(const Subject *s)
{
    for (size_t i = 0; i < sizeof AT_MOST / sizeof *AT_MOST; i++)
        if (number(s, AT_MOST[i].small) > number(s, AT_MOST[i].large))
            diag_fatal(loc_of(s, AT_MOST[i].small), EXIT_INPUT, "%s is more than %s",
                       fact(s, AT_MOST[i].small), fact(s, AT_MOST[i].large));
}

/* ---- a is a whole number of b's ---- */

typedef struct MultipleOf {
    const char *whole, *part, *because;
} MultipleOf;

static const MultipleOf MULTIPLE_OF[] = {
    {"threads.max_per_block", "threads.warp_size", "threads come in whole warps"},
    {"threads.max_per_sm", "threads.warp_size", "threads come in whole warps"},
    {"compute.lanes_per_sm", "compute.schedulers_per_sm", "schedulers share the lanes evenly"},
    {"registers.per_sm", "threads.warp_size", "registers belong to whole warps"},
    {"shared.bytes_per_block", "shared.transaction_bytes", "a row of banks is the least"},
    {"shared.bytes_per_block_optin", "shared.transaction_bytes", "a row of banks is the least"},
    {"shared.bytes_per_sm", "shared.transaction_bytes", "a row of banks is the least"},
};

static void check_multiple_of(const Subject *s)
{
    for (size_t i = 0; i < sizeof MULTIPLE_OF / sizeof *MULTIPLE_OF; i++) {
        const char *whole = MULTIPLE_OF[i].whole, *part = MULTIPLE_OF[i].part;
        if ((int64_t)number(s, whole) % (int64_t)number(s, part) != 0)
            diag_fatal(loc_of(s, whole), EXIT_INPUT, "%s is not a multiple of %s: %s",
                       fact(s, whole), fact(s, part), MULTIPLE_OF[i].because);
    }
}

/* ---- powers of two ---- */

static const char *const POWER_OF_TWO[] = {
    "threads.warp_size",      "registers.granule",        "shared.banks",
    "shared.bank_bytes",      "shared.transaction_bytes", "l2.transaction_bytes",
    "dram.transaction_bytes",
};

static void check_powers_of_two(const Subject *s)
{
    for (size_t i = 0; i < sizeof POWER_OF_TWO / sizeof *POWER_OF_TWO; i++) {
        int64_t value = (int64_t)number(s, POWER_OF_TWO[i]);
        if (value & (value - 1))
            diag_fatal(loc_of(s, POWER_OF_TWO[i]), EXIT_INPUT, "%s is not a power of two",
                       fact(s, POWER_OF_TWO[i]));
    }
}

/* ---- what a number or capability needs beside it ---- */

typedef struct Requires {
    const char *given, *needed;
} Requires;

static const Requires REQUIRES[] = {
    {"peak_gflop_s.tensor_f16", "capabilities.mma"},
    {"peak_gflop_s.tensor_bf16", "capabilities.mma"},
    {"peak_gflop_s.tensor_tf32", "capabilities.mma"},
    {"peak_gflop_s.tensor_f64", "capabilities.mma"},
    {"peak_gflop_s.tensor_i8", "capabilities.mma"},
    {"peak_gflop_s.wgmma_f16", "capabilities.wgmma"},
    {"peak_gflop_s.wgmma_bf16", "capabilities.wgmma"},
    {"capabilities.mma", "peak_gflop_s.tensor_f16"},
    {"capabilities.wgmma", "capabilities.mma"},
    {"capabilities.wgmma", "capabilities.bulk_tensor_copy"},
    {"capabilities.bulk_tensor_copy", "capabilities.async_copy"},
    {"capabilities.clusters", "threads.max_blocks_per_cluster"},
    {"threads.max_blocks_per_cluster", "capabilities.clusters"},
};

static void check_requires(const Subject *s)
{
    for (size_t i = 0; i < sizeof REQUIRES / sizeof *REQUIRES; i++)
        if (number(s, REQUIRES[i].given) != 0 && number(s, REQUIRES[i].needed) == 0)
            diag_fatal(loc_of(s, REQUIRES[i].given), EXIT_INPUT, "%s needs %s as well",
                       REQUIRES[i].given, REQUIRES[i].needed);
}

/* ---- what must be the product of others ---- */

enum { MAX_FACTORS = 4 };

typedef struct LimitProduct {
    const char *path;
    const char *factors[MAX_FACTORS];
    double scale;
    const char *scale_text;
    double least, most;   // the value may be this many times the product
} LimitProduct;

static const LimitProduct PRODUCTS[] = {
    {
        .path = "peak_gflop_s.fp32",   // a lane's multiply-add each clock is 2 flop
        .factors = {"compute.sm_count", "compute.lanes_per_sm", "compute.clock_mhz"},
        .scale = 2.0 / 1000,
        .scale_text = " x 2 / 1000",
        .least = 0.95,
        .most = 1.05,
    },
    {
        .path = "shared.transaction_bytes",
        .factors = {"shared.banks", "shared.bank_bytes"},
        .scale = 1,
        .scale_text = "",
        .least = 1,
        .most = 1,
    },
    {
        .path = "shared.bandwidth_gb_s",   // a row of banks each clock; loads reach 75 to 98 %
        .factors = {"compute.sm_count", "shared.banks", "shared.bank_bytes", "compute.clock_mhz"},
        .scale = 1.0 / 1000,
        .scale_text = " / 1000",
        .least = 0.70,
        .most = 1.05,
    },
};

/* "compute.sm_count x compute.lanes_per_sm" or, with `values`, "108 x 64" */
static const char *product_text(const Subject *s, const LimitProduct *product, bool values)
{
    StrBuf text = strbuf_new(s->arena);
    for (int i = 0; i < MAX_FACTORS && product->factors[i]; i++) {
        const char *path = product->factors[i];
        strbuf_puts(&text, i ? " x " : "");
        strbuf_puts(&text, values ? device_number_text(s->arena, number(s, path)) : path);
    }
    strbuf_puts(&text, product->scale_text);
    return text.text;
}

static void check_product(const Subject *s, const LimitProduct *product)
{
    double expected = product->scale, value = number(s, product->path);
    for (int i = 0; i < MAX_FACTORS && product->factors[i]; i++)
        expected *= number(s, product->factors[i]);
    if (value >= product->least * expected && value <= product->most * expected)
        return;
    int percent = (int)(100 * value / expected + 0.5);
    diag_fatal(loc_of(s, product->path), EXIT_INPUT, "%s contradicts %s = %s = %.0f: %d %% of it",
               fact(s, product->path), product_text(s, product, false),
               product_text(s, product, true), expected, percent);
}

/* ---- the rest: one rule, one function ---- */

/* Every resident block has at least one warp. */
static void check_blocks(const Subject *s)
{
    const DeviceSpec *d = s->device;
    if (d->max_blocks_per_sm > d->max_threads_per_sm / d->warp_size)
        diag_fatal(loc_of(s, "threads.max_blocks_per_sm"), EXIT_INPUT,
                   "%s is more than the %d warps of %s", fact(s, "threads.max_blocks_per_sm"),
                   d->max_threads_per_sm / d->warp_size, fact(s, "threads.max_per_sm"));
}

/* Every SM may be full at once. */
static void check_launch(const Subject *s)
{
    const DeviceSpec *d = s->device;
    int64_t resident = (int64_t)d->sm_count * d->max_threads_per_sm;
    if (d->max_threads_per_launch && d->max_threads_per_launch < resident)
        diag_fatal(loc_of(s, "threads.max_per_launch"), EXIT_INPUT,
                   "%s is less than compute.sm_count x threads.max_per_sm = %" PRId64,
                   fact(s, "threads.max_per_launch"), resident);
}

/* A warp's registers lie in its scheduler's part of the SM's: 65536 in four parts hold 255 a thread twice. */
static void check_registers(const Subject *s)
{
    const DeviceSpec *d = s->device;
    Loc loc = loc_of(s, "registers.per_thread");
    const DialectRow *dialect = dialect_row(d->dialect);
    if (d->registers_per_thread > dialect->registers_per_thread)
        diag_fatal(loc, EXIT_INPUT, "%s is more than the %d that an instruction of '%s' can name",
                   fact(s, "registers.per_thread"), dialect->registers_per_thread, dialect->name);
    int64_t most = round_up(d->registers_per_thread, d->register_granule) * d->warp_size;
    int64_t part = d->registers_per_sm / d->schedulers_per_sm;
    if (most > part)
        diag_fatal(loc, EXIT_INPUT,
                   "%s: a warp of %d threads would need %" PRId64 ", more than each scheduler's %" PRId64
                   " (%s over %s)",
                   fact(s, "registers.per_thread"), d->warp_size, most, part, fact(s, "registers.per_sm"),
                   fact(s, "compute.schedulers_per_sm"));
}

/* The largest block must fit beside what the driver takes: 163 + 1 of 164 KiB. */
static void check_reserved(const Subject *s)
{
    const DeviceSpec *d = s->device;
    if (d->shared_per_block_optin + d->shared_reserved_per_block > d->shared_per_sm)
        diag_fatal(loc_of(s, "shared.bytes_reserved_per_block"), EXIT_INPUT,
                   "%s and %s are more than %s", fact(s, "shared.bytes_reserved_per_block"),
                   fact(s, "shared.bytes_per_block_optin"), fact(s, "shared.bytes_per_sm"));
}

static void check_arch(const Subject *s)
{
    const DialectRow *dialect = dialect_row(s->device->dialect);
    size_t length = strlen(dialect->arch_prefix);
    if (length == 0)
        return;   // no compiler will be told
    if (strncmp(s->device->arch, dialect->arch_prefix, length) != 0 ||
        !isdigit((unsigned char)s->device->arch[length]))
        diag_fatal(loc_of(s, "device.arch"), EXIT_INPUT,
                   "'%s' is no architecture of '%s': wanted %s and a number", s->device->arch, dialect->name,
                   dialect->arch_prefix);
}

/* No family that emits text supports supersteps. */
static void check_supersteps(const Subject *s)
{
    if (device_is_bulk_synchronous(s->device) && !device_is_ranked_only(s->device))
        diag_fatal(loc_of(s, "compute.superstep_us"), EXIT_INPUT,
                   "%s is of a device that is ranked only: device.dialect = none",
                   fact(s, "compute.superstep_us"));
}

/* ---- what came with which architecture ---- */

typedef struct Since {
    const char *capability;
    const char *arch;   // the first that has it (PTX ISA, target notes)
    bool only;          // and the last
    bool hip;           // it is no instruction of PTX: AMD's may have it as well
} Since;

static const Since SINCE[] = {
    {.capability = "capabilities.cooperative", .arch = "sm_60", .hip = true},
    {.capability = "capabilities.async_copy", .arch = "sm_80"},
    {.capability = "capabilities.mma", .arch = "sm_80"},   // m16n8k16
    {.capability = "capabilities.bulk_tensor_copy", .arch = "sm_90"},
    {.capability = "capabilities.clusters", .arch = "sm_90"},
    {.capability = "capabilities.early_launches", .arch = "sm_90"},
    {.capability = "capabilities.wgmma", .arch = "sm_90a", .only = true},
};

static bool arch_has(const DeviceSpec *device, const Since *since)
{
    if (device_is_ranked_only(device))
        return true;
    if (device->dialect != DIALECT_CUDA)
        return since->hip;
    return since->only ? strcmp(device->arch, since->arch) == 0
                       : arch_capability(device->arch) >= arch_capability(since->arch);
}

static void check_capabilities(const Subject *s)
{
    for (size_t i = 0; i < sizeof SINCE / sizeof *SINCE; i++)
        if (number(s, SINCE[i].capability) != 0 && !arch_has(s->device, &SINCE[i]))
            diag_fatal(loc_of(s, SINCE[i].capability), EXIT_INPUT,
                       "%s contradicts device.arch = %s: it %s %s", SINCE[i].capability, s->device->arch,
                       SINCE[i].only ? "is only in" : "came with", SINCE[i].arch);
}

void device_check(Arena *arena, const DeviceSpec *device, const YamlNode *root)
{
    const Subject subject = {arena, device, root};
    check_arch(&subject);
    check_supersteps(&subject);
    check_powers_of_two(&subject);
    for (size_t i = 0; i < sizeof PRODUCTS / sizeof *PRODUCTS; i++)
        check_product(&subject, &PRODUCTS[i]);
    check_multiple_of(&subject);
    check_at_most(&subject);
    check_requires(&subject);
    check_blocks(&subject);
    check_launch(&subject);
    check_registers(&subject);
    check_reserved(&subject);
    check_capabilities(&subject);
}
