// What follows from a device file: the numbers that decide which tile is good.
#include "hal/device.h"

#include <string.h>

#include "hal/device_fields.h"

static const char *rounded_to(StrBuf *out, double value, int parts)
{
    return device_number_text(out->arena, (double)(int64_t)(parts * value + 0.5) / parts);
}

/* One decimal is enough for a reader. */
static const char *rounded(StrBuf *out, double value) { return rounded_to(out, value, 10); }

static void print_level(StrBuf *out, const DeviceSpec *device, const char *name, int64_t bytes,
                        MemoryLevel level)
{
    double bytes_per_clock = level.bandwidth_gb_s * 1e3 / device->clock_mhz / device->sm_count;
    strbuf_printf(out, "  %-14s %12lld %10s %14s %12d\n", name, (long long)bytes,
                  rounded(out, level.bandwidth_gb_s), rounded(out, bytes_per_clock),
                  level.transaction_bytes);
}

static void print_memory(StrBuf *out, const DeviceSpec *device)
{
    strbuf_printf(out, "\n  %-14s %12s %10s %14s %12s\n", "memory", "bytes", "GB/s", "B/clock/SM",
                  "transaction");
    print_level(out, device, "shared", device->shared_per_sm * device->sm_count, device->shared);
    bool exchanges = device_is_bulk_synchronous(device);
    if (!exchanges)
        print_level(out, device, "l2", device->l2_bytes, device->l2);
    print_level(out, device, exchanges ? "exchange" : "dram", device->dram_bytes, device->dram);
}

/* flop/byte: below it a kernel waits for that memory, above it for the unit. */
static void print_units(StrBuf *out, const DeviceSpec *device)
{
    strbuf_printf(out, "\n  %-14s %12s %14s %16s\n", "unit", "Gflop/s", "flop/B dram",
                  "flop/B shared");
    for (int unit = 0; unit < UNIT_COUNT; unit++)
        if (device->peak[unit] > 0)
            strbuf_printf(out, "  %-14s %12s %14s %16s\n", unit_name[unit],
                          rounded(out, device->peak[unit]),
                          rounded(out, device->peak[unit] / device->dram.bandwidth_gb_s),
                          rounded(out, device->peak[unit] / device->shared.bandwidth_gb_s));
}

static void print_occupancy(StrBuf *out, const DeviceSpec *device)
{
    double in_flight = device->dram.bandwidth_gb_s * device->dram_latency_ns / device->sm_count;
    strbuf_printf(out, "  %-34s %lld\n", "registers a thread, all resident",
                  (long long)(device->registers_per_sm / device->max_threads_per_sm));
    strbuf_printf(out, "  %-34s %lld\n", "shared bytes a block, two resident",
                  (long long)(device->shared_per_sm / 2 - device->shared_reserved_per_block));
    strbuf_printf(out, "  %-34s %lld\n", "bytes in flight a SM to fill dram",
                  (long long)(in_flight + 0.5));
}

static void print_timing(StrBuf *out, const DeviceSpec *device)
{
    static const char GROUP[] = "timing.";
    strbuf_puts(out, "\n  timing\n");
    if (device_is_bulk_synchronous(device)) {
        strbuf_printf(out, "  %-20s %6s\n", "superstep_us", rounded_to(out, device->superstep_us, 100));
        return;   // no term of the others enters
    }
    for (const DeviceField *field = device_fields; field->path; field++)
        if (strncmp(field->path, GROUP, strlen(GROUP)) == 0)
            strbuf_printf(out, "  %-20s %6s\n", field->path + strlen(GROUP),
                          rounded_to(out, device_number(device, field->path), 100));
}

void device_print(StrBuf *out, const DeviceSpec *device)
{
    strbuf_printf(out, "device %s: %s, %s\n", device->name, device->title, device->arch);
    strbuf_printf(out, "  %d SMs x %d lanes at %s MHz, %d schedulers, warps of %d\n",
                  device->sm_count, device->lanes_per_sm, rounded(out, device->clock_mhz),
                  device->schedulers_per_sm, device->warp_size);
    print_occupancy(out, device);
    print_memory(out, device);
    print_units(out, device);
    print_timing(out, device);
}
