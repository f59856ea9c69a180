// Launches of a program that begin while the one before them ends: templates/prelude/chain.cuh says how that works
// on the device. Here is decided who begins early and who waits where. A program of one launch is left as it is.
#pragma once
#include "codegen/cuda/kernel.h"
#include "codegen/cuda/template.h"

/* Sets `early`, `waits_last` and `lets_begin` of all launches, whose arguments are known. */
void chain_launches(Launch *launches, int count);

/* The template's body, whose kernel begins with what the launch has to say. */
const char *chain_body(const TemplateStore *store, const Template *template, const Launch *launch);
