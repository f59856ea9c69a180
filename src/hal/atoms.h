// The table of instructions that multiply tiles, as records.
#pragma once
#include "hal/device.h"

typedef struct Atom {
    const char *element;   // of a and b, as the language spells it: "f16"
    bool shared;           // a and b lie in shared memory, and four warps share the work
    int m, n, k;
    Unit unit;
} Atom;

/* The device's instruction for elements of this type, `shared`: whose operands lie in shared memory; NULL: it has none. */
const Atom *atom_for(const DeviceSpec *device, const char *element, bool shared);
