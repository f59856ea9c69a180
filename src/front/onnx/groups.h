// Which dimensions a view merges and splits.
#pragma once
#include "front/onnx/access.h"

enum { MAX_GROUPS = 2 * MAX_RANK };

/* Dimensions [from, from_end) of a shape that are [to, to_end) of another one. */
typedef struct ViewGroup {
    int from, from_end, to, to_end;
} ViewGroup;

/* Those of two shapes of as many elements; ones belong to the group before them. Returns how many. */
int view_groups(const Dims *from, const Dims *to, ViewGroup groups[MAX_GROUPS]);
/* Groups as the tensor's dimensions lie, of which those of size 1 count only where there are no others. */
void view_groups_sort(const ViewGroup *groups, int count, const StorageOrder *order, const Dims *from,
                      int sorted[MAX_GROUPS]);
/* Dimensions of the groups, one group behind the other: of the view, or of what it is one of. */
StorageOrder view_groups_order(const ViewGroup *groups, const int *sorted, int count, bool of_view, int rank);
