// The text of a schedule for `-d schedule` and a ranking.
#pragma once
#include "kernel/kind.h"

/* `pace`: how its threads run, in a word or two. A line for each load or wait, and one for what is computed up
   to the next. */
void schedule_print(StrBuf *out, const KernelKind *kind, const Fusion *fusion, const char *pace);

/* In one line: "load x; reduce max m, exchange block; map y, store y". */
void schedule_print_short(StrBuf *out, const KernelKind *kind, const Fusion *fusion);
