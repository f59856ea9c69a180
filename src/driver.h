// The pipeline.
#pragma once
#include "options.h"

/* The whole compiler; returns the exit code. */
int compile(const Options *options);
