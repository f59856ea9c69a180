// The entries as a build file, so that Ninja decides what is made when, beside everything else that a project
// builds.
#pragma once
#include "batch/batch_options.h"
#include "batch/manifest.h"

/* The whole file, which also says how it is written anew when the manifest changes. */
char *ninja_text(Arena *arena, const Manifest *manifest, const BatchOptions *options);
