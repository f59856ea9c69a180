#include "hal/atoms.h"

#include <string.h>

// clang-format off
static const Atom atoms[] = {
#define ATOM(element, m, n, k, unit) {#element, IN_REGISTERS, m, n, k, UNIT_##unit},
#define SHARED_ATOM(element, m, n, k, unit) {#element, IN_SHARED, m, n, k, UNIT_##unit},
#define SHARED_ATOM_ALONG_K(element, m, n, k, unit) {#element, IN_SHARED_ALONG_K, m, n, k, UNIT_##unit},
#include "hal/atoms.def"
#undef SHARED_ATOM_ALONG_K
#undef SHARED_ATOM
#undef ATOM
};
// clang-format on

static bool may_use(const DeviceSpec *device, Unit unit, bool rounds)
{
    bool is_tf32 = unit == UNIT_TENSOR_TF32 || unit == UNIT_WGMMA_TF32;
    return device->peak[unit] > 0 && (!is_tf32 || rounds);
}

const Atom *atom_for(const DeviceSpec *device, const char *element, AtomPlace place, bool rounds)
{
    bool has = place == IN_REGISTERS ? device->has.mma : device->has.wgmma;
    for (size_t i = 0; i < sizeof atoms / sizeof *atoms; i++)
        if (has && atoms[i].place == place && strcmp(atoms[i].element, element) == 0 &&
            may_use(device, atoms[i].unit, rounds))
            return &atoms[i];
    return NULL;
}
