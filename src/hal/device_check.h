// What no device can be: numbers that contradict each other or physics. A file copied from a slide often fails here.
#pragma once
#include "hal/device.h"
#include "hal/yaml.h"

/* Returns if `device`, read from the file `root`, holds together; else an error with EXIT_INPUT at the number. */
void device_check(Arena *arena, const DeviceSpec *device, const YamlNode *root);

/* The place of a value, "shared.banks"; of its group if the value is absent. */
Loc device_loc(const YamlNode *root, const char *path);
