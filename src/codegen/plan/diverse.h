// Which choices are alike, and which of many are kept for the ranking.
#pragma once
#include "codegen/plan/choices.h"

/* The same kernels but for the sizes of tiles and blocks. */
bool launches_same_kernels(const PlannedLaunch *left, const PlannedLaunch *right, int count);
bool choice_same_kernels(const Choice *left, const Choice *right);

/* As many launches, and the one that makes the outputs, or their parts, of the same family. */
bool choice_same_family(const Choice *left, const Choice *right);

/* The fastest choice of each family that is within reach of the best, from choices in order of time. Gives how many. */
int best_of_families(const ChoiceList *list, Choice **found);

/* In order of time, but with every family's best, since the model may be wrong about a whole family, if not
   27 times; at most a fifth with the same register tile or the same shared tile, and no mirror images, as
   long as there are others. */
void keep_diverse(ChoiceList *list, int keep);
