#include "front/onnx/groups.h"

int view_groups(const Dims *from, const Dims *to, ViewGroup groups[MAX_GROUPS])
{
    int count = 0, i = 0, j = 0;
    while (i < from->rank || j < to->rank) {
        ViewGroup *group = &groups[count++];
        *group = (ViewGroup){i, i, j, j};
        int64_t a = i < from->rank ? from->size[i++] : 1, b = j < to->rank ? to->size[j++] : 1;
        while (a != b)
            if (a < b)
                a *= from->size[i++];
            else
                b *= to->size[j++];
        while (i < from->rank && from->size[i] == 1 && !(j < to->rank && to->size[j] == 1))
            i++;
        while (j < to->rank && to->size[j] == 1 && !(i < from->rank && from->size[i] == 1))
            j++;
        group->from_end = i;
        group->to_end = j;
    }
    return count;
}

static bool holds_ones(const ViewGroup *group, const Dims *from)
{
    bool ones = true;
    for (int d = group->from; d < group->from_end; d++)
        ones &= from->size[d] == 1;
    return ones;
}

void view_groups_sort(const ViewGroup *groups, int count, const StorageOrder *order, const Dims *from,
                      int sorted[MAX_GROUPS])
{
    bool used[MAX_GROUPS] = {false};
    int next = 0;
    for (int p = 0; p < order->rank; p++)
        for (int g = 0; g < count; g++)
            if (!used[g] && order->at[p] >= groups[g].from && order->at[p] < groups[g].from_end &&
                (from->size[order->at[p]] > 1 || holds_ones(&groups[g], from))) {
                used[g] = true;
                sorted[next++] = g;
            }
    for (int g = 0; g < count; g++)
        if (!used[g])
            sorted[next++] = g;
}

StorageOrder view_groups_order(const ViewGroup *groups, const int *sorted, int count, bool of_view, int rank)
{
    StorageOrder order = {rank, {0}};
    for (int s = 0, p = 0; s < count; s++) {
        const ViewGroup *group = &groups[sorted[s]];
        for (int d = of_view ? group->to : group->from; d < (of_view ? group->to_end : group->from_end); d++)
            order.at[p++] = d;
    }
    return order;
}
