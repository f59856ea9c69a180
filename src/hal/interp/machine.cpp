// The machine, in one translation unit: its parts call each other at every access of a checked kernel.
#include "machine.h"

#include "schedule.cpp"
#include "meet.cpp"
#include "copies.cpp"
#include "tiles.cpp"
#include "products.cpp"
#include "bulk.cpp"
#include "counts.cpp"
#include "shadow.cpp"
#include "earlier.cpp"
#include "launch.cpp"
#include "graph.cpp"
