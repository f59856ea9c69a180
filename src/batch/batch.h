// `rollerc batch`: the kernels of a manifest, all at once, and only those that are not there yet.
//
//   kernels.yaml ── manifest ──→ entries ─┬─ content ──→ those that changed ── run ──→ files, kernels.jsonl
//                                         └─ ninja ──→ build.ninja
#pragma once

/* The arguments begin with "batch". Returns the exit code. */
int batch(int argc, char **argv);
