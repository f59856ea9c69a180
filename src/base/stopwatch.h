// How long something takes, and what `-v` says of each stage.
#pragma once
#include <time.h>

static inline double seconds_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

typedef struct Stopwatch {
    double lap;   // when the stage at hand began
} Stopwatch;

static inline Stopwatch stopwatch_start(void) { return (Stopwatch){seconds_now()}; }

/* A stage is done, the next one begins. Under -v a line says so: `rollerc: lex      42 tokens      0.03
   ms`. */
void stopwatch_lap(Stopwatch *watch, const char *stage, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
