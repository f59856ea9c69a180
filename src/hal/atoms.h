// The table of instructions that multiply tiles, as records.
#pragma once
#include "hal/device.h"

typedef enum AtomPlace { IN_REGISTERS, IN_SHARED, IN_SHARED_ALONG_K } AtomPlace;   // of a and b

/* Promotion interval: terms that tensor cores accumulate before the sum is added to one that rounds. They
   truncate at most 1024 times, with an error of 2^-14 of the sum. */
enum { MAX_CHAIN = 8192 };

typedef struct Atom {
    const char *element;   // of a and b, as the language spells it: "f16"
    AtomPlace place;       // in shared memory: four warps share the work
    int m, n, k;
    Unit unit;
} Atom;

/* The device's instruction for elements of this type, whose operands lie in that place; NULL: it has none.
   `rounds`: it may round f32 to tf32. */
const Atom *atom_for(const DeviceSpec *device, const char *element, AtomPlace place, bool rounds);
