// `rollerc calibrate`: the micro-profiler of a device. It measures the GPU that is here and writes a device
// file.
#pragma once

/* Returns the exit code. */
int calibrate_main(int argc, char **argv);
