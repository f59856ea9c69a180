// Images whose columns do not lie side by side, since their channels do, are turned (ir/fuse_turn.h), and so is what is
// made of them. Between are kernels of planes, which multiply on tensor cores whatever the filter's size. Of a
// filter's gradient both factors are turned.
#pragma once
#include "kernel/family.h"

/* Nothing is gained, too, where all columns lie side by side. */
extern const Rewrite turn_images;

/* The other way round, where a group has several channels: they come last in both factors of a filter's gradient. */
extern const Rewrite turn_planes_of_groups;
