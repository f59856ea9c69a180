// What `-d schedule` and a ranking show of a schedule.
#pragma once
#include "kernel/kind.h"

/* `pace`: how its threads go, in a word or two. A line for what is loaded or waited for, and one for what is made of it up to the next. */
void schedule_print(StrBuf *out, const KernelKind *kind, const Fusion *fusion, const char *pace);

/* The same in one line: "load x; reduce max m, exchange block; map y, store y". */
void schedule_print_short(StrBuf *out, const KernelKind *kind, const Fusion *fusion);
