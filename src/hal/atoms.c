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

static bool may_use(const DeviceSpec *device, Unit unit)
{
    return device->peak[unit] > 0 && (unit != UNIT_TENSOR_TF32 || device->rounds_to_tf32);
}

const Atom *atom_for(const DeviceSpec *device, const char *element, bool shared)
{
    bool has = shared ? device->has.wgmma : device->has.mma;
    for (size_t i = 0; i < sizeof atoms / sizeof *atoms; i++)
        if (has && atoms[i].shared == shared && strcmp(atoms[i].element, element) == 0 && may_use(device, atoms[i].unit))
            return &atoms[i];
    return NULL;
}
