// What no device can be: numbers that contradict each other or physics. A file copied from a slide
// often fails here.
#pragma once
#include "hal/device.h"
#include "hal/yaml.h"

/* Returns if `device`, read from the file `root`, is consistent; else an error with EXIT_INPUT
   that points at the number. */
void device_check(Arena *arena, const DeviceSpec *device, const YamlNode *root);
