#include "clock/profile_parts.h"

#include "base/diag.h"
#include "base/progress.h"

static void tell(const PartList *list, int p)
{
    const ProgramPart *part = &list->parts[p];
    const Candidate *best = &part->list.items[0];
    progress("timed %d of %d kernels (%s, %d in the program: candidate %d of %d, %.2f us)", p + 1,
             list->count, part->makes, part->step_count, best->model_rank, part->list.count,
             best->measured ? best->measured->median_us : 0);
}

void part_is_timed(PartList *list, int position)
{
    ProgramPart *part = &list->parts[position];
    candidates_sort(&part->list);
    if (candidate_failed(&part->list.items[0]))
        fatal(EXIT_WRONG, "every candidate of the kernel that makes %s failed; the first one: %s",
              part->makes, part->list.items[0].reason);
    tell(list, position);
}
