#include "hal/atoms.h"

#include <string.h>

// clang-format off
static const Atom atoms[] = {
#define ATOM(element, m, n, k, unit) {#element, false, m, n, k, UNIT_##unit},
#define SHARED_ATOM(element, m, n, k, unit) {#element, true, m, n, k, UNIT_##unit},
#include "hal/atoms.def"
#undef SHARED_ATOM
#undef ATOM
};
// clang-format on

const Atom *atom_for(const DeviceSpec *device, const char *element, bool shared)
{
    bool has = shared ? device->has.wgmma : device->has.mma;
    for (size_t i = 0; i < sizeof atoms / sizeof *atoms; i++)
        if (has && atoms[i].shared == shared && strcmp(atoms[i].element, element) == 0 && device->peak[atoms[i].unit] > 0)
            return &atoms[i];
    return NULL;
}
