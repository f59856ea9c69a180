// Similarity of choices, and the selection of those that the ranking keeps.
#pragma once
#include "codegen/plan/choices.h"

static const double FAR_SLOWER = 8;   // limit of the search: times the best, no error of the model turns that round

/* The same kernels except for the sizes of tiles and blocks. */
bool launches_same_kernels(const PlannedLaunch *left, const PlannedLaunch *right, int count);
/* The same sizes, too: of one fusion, or of two of the same text, this is one program. */
bool launches_same(const PlannedLaunch *left, const PlannedLaunch *right, int count);
bool choice_same_kernels(const Choice *left, const Choice *right);

/* Equally many launches, and the same family of the one that computes the outputs, or their parts. */
bool choice_same_family(const Choice *left, const Choice *right);

/* The fastest choice of each family within reach of the best, from choices in order of time. Returns their
   number. */
int best_of_families(const ChoiceList *list, Choice **found);

/* Keeps choices in order of time, but every family's best, unless it is FAR_SLOWER, since the model may be
   wrong about a family. None is there twice. At most a fifth have the same register tile or the same shared
   tile, and none is a mirror image, as long as there are others. */
void keep_diverse(ChoiceList *list, int keep);
