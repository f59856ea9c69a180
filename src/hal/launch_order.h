// Which launches must have ended before another one touches memory: those that write bytes which it reads or
// writes, and those that read bytes which it writes. So a place of the workspace that is used again orders
// launches as a tensor does.
//
//   launch 0 writes a                  after nobody
//   launch 1 reads a, writes b         after 0
//   launch 2 reads a and b             after 1: when that has ended, 0 has
//   launch 3 writes where a was        after 2, which reads it
#pragma once
#include "base/bit_rows.h"
#include "hal/launch.h"

/* Bit (b, a): launch a has ended when launch b touches memory. */
typedef BitRows LaunchOrder;

/* Sets `after` of all launches, which come in an order that is right. */
void launches_order(Arena *arena, Launch *launches, int count);

/* What follows from what launches say that they come after. */
LaunchOrder launches_stated_order(Arena *arena, const Launch *launches, int count);

/* Two launches that no path orders although they share bytes, which one writes: the second one in `later`;
   -1: there are none. Compares each with each. */
int launches_unordered(const Launch *launches, int count, const LaunchOrder *order, int *later);
