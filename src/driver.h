// The pipeline.
#pragma once
#include "options.h"

/* The whole compiler; returns the exit code. */
int compile(const Options *options);

/* `rollerc explain` of a ranking that there is; returns the exit code. */
int explain(const Options *options);
