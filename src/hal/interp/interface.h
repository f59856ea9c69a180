// What rollerc and the interpreted program know of each other. C and C++ both read it.
//
// A generated .cu, the stand-in for CUDA and the scheduler are compiled into one shared object; a child
// of rollerc loads it and calls interp_run() with this record.
#ifndef ROLLERC_INTERP_INTERFACE
#define ROLLERC_INTERP_INTERFACE

// Which thread runs when several can. Bugs of synchronisation show under one order and not another.
enum InterpSchedule { INTERP_LOWEST_FIRST, INTERP_HIGHEST_FIRST };

typedef struct InterpHost {
    // Limits of the device.
    int max_threads;                    // a block
    long long static_shared_limit;      // dynamic shared bytes without the attribute
    long long shared_limit;             // and with it

    // What to run.
    enum InterpSchedule schedule;
    int only_launch;                    // the others are passed over; -1: run all
    long long max_blocks;               // of a launch; when it has more, some are chosen
    unsigned long long seed;            // of that choice

    // Services. fail() ends the process and never returns.
    void (*fail)(const char *format, ...) __attribute__((format(printf, 1, 2)));
    void *(*map_stack)(unsigned long bytes);                  // its upper end; a guard page below
    unsigned char *(*map_shared)(long long bytes);            // poisoned; guard pages on both sides
    void (*check_shared)(void);                               // nothing was written beside it

    // Where it is: for messages, and the result.
    int launch;                         // the one that runs; -1 before the first
    unsigned block[3];
    int thread;                         // within the block; -1 between blocks
    const char *file;                   // of the last barrier or shuffle, with its line
    int line;
    long long blocks_run, blocks_total; // of the launches that were run
} InterpHost;

/* Calls the program's launcher with `args`; its result. */
typedef int InterpRun(InterpHost *host, void **args);

#endif
