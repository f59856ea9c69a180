// The table of what a device file may say: one row a key. The reader, the checks and the messages
// all work from it.
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "hal/device.h"

typedef enum FieldKind {
    FIELD_NAME,    // a-z, 0-9, '_', '-'
    FIELD_TITLE,
    FIELD_DIALECT,
    FIELD_BOOL,
    FIELD_INT,     // the type of the member; a file makes no difference between the two
    FIELD_INT64,
    FIELD_REAL,
} FieldKind;

/* What the standard value of a key counts in, so that each device has its own. */
typedef enum StandardOf {
    STANDARD_ITSELF,
    STANDARD_CLOCKS_US,      // of compute.clock_mhz: on the chip
    STANDARD_LATENCIES_US,   // of dram.latency_ns: by way of memory
    STANDARD_LATENCIES_NS,
} StandardOf;

typedef struct DeviceField {
    const char *path;      // "compute.sm_count": the group, a dot, the key
    FieldKind kind;
    bool optional;         // absent means `standard`; where that is 0, the device has none
    bool cached;   // a device whose units exchange data needs none: there is nothing between them and memory
    double standard;       // of reals
    StandardOf of;
    size_t offset;         // of the member of DeviceSpec
    double least, most;    // of a number, both allowed
    const char *unit;
} DeviceField;

/* In the order in which a file lists them, ended by a row whose path is NULL. */
extern const DeviceField device_fields[];

typedef struct DialectRow {
    const char *name;           // as in the YAML
    Dialect dialect;
    const char *arch_prefix;
    int registers_per_thread;   // the most that an instruction can name
} DialectRow;

/* Ended by a row whose name is NULL. */
extern const DialectRow dialects[];

const DialectRow *dialect_row(Dialect dialect);

/* NULL if there is none. */
const DeviceField *device_field(const char *path);

/* The value of a number or a yes/no. */
double device_number(const DeviceSpec *device, const char *path);

/* 19492, 12.5: whole numbers in full. */
const char *device_number_text(Arena *arena, double value);
