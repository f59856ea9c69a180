// Why the first candidate is first: what was decided by, and the term that made the difference.
#pragma once
#include "base/strbuf.h"
#include "explain/report.h"

enum {
    MAX_COMPARED = 3,
    MANY_LAUNCHES = 6   // of more, those of one name are counted
};

/* Positions of the first candidate, the second, and of the first that the model expects another time of than
   of those two, where these are equal; failed ones are left out. Returns how many there are. */
int why_compared(const Report *report, int positions[MAX_COMPARED]);

/* The longest of a candidate's terms. */
Term longest_term(const Costs *costs);

/* A few sentences. */
void why_first(StrBuf *out, const Report *report);

/* `18 blocks of 64 threads on an SM, 36 of its 64 warps; more do not fit by registers` */
void say_occupancy(StrBuf *out, const Report *report, const ReportLaunch *launch);

/* `10.34 waves: 24576 blocks, 2376 at once; …` */
void say_waves(StrBuf *out, const Report *report, const ReportLaunch *launch);

/* `rowwise warp`, `reduce + elementwise`, `12 gemm four stages + 3 bulk cluster` */
void candidate_name(StrBuf *out, const ReportCandidate *candidate);

/* The end of a noun behind a number: "" behind 1, else "s". */
const char *plural(double count);

/* 201 MB, 37.5 ms: three digits */
void quantity(StrBuf *out, double value, const char *unit);
