// The pipeline.
#pragma once
#include "options.h"

/* What is known of the kernel that was written, for who makes many. */
typedef struct Outcome {
    double predicted_us;
    double measured_us;   // the median of --profile; 0: not timed
} Outcome;

/* The whole compiler; returns the exit code. `outcome` may be NULL. */
int compile(const Options *options, Outcome *outcome);

/* `rollerc explain` of a ranking that there is; returns the exit code. */
int explain(const Options *options);
