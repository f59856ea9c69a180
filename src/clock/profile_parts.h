// A program of many kernels on a GPU: what the clock said of the candidates of each different kernel.
#pragma once
#include "rank/parts.h"

/* The candidates of one part have been timed: the best comes first then. If none is right, the program ends
   with EXIT_WRONG. */
void part_is_timed(PartList *list, int position);
