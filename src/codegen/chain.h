// Launches that begin while the one before them ends, the first of a program like the others:
// templates/prelude/intrinsics/chain.cuh says how that works on the device. Here is decided who begins early and who waits where.
#pragma once
#include "codegen/cuda/kernel.h"
#include "codegen/cuda/template.h"
#include "hal/device.h"

/* Sets `early`, `waits_last` and `lets_begin` of all launches, whose arguments are known. */
void chain_launches(Launch *launches, int count, const DeviceSpec *device);

/* The template's body, whose kernel begins with what the launch has to say. */
const char *chain_body(const TemplateStore *store, const Template *template, const Launch *launch);
