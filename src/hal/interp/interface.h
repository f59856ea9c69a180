// What rollerc and the interpreted program know of each other. C and C++ both read it.
//
// A generated .cu and the twin of CUDA are compiled into one shared object, the machine that runs them into another; a
// child of rollerc loads both and calls interp_run() with this record.
#ifndef ROLLERC_INTERP_INTERFACE
#define ROLLERC_INTERP_INTERFACE

enum {
    INTERP_MAX_LAUNCHES = 64,           // of which traffic is counted
    INTERP_CELL_BYTES = 32,             // of an InterpCell
    INTERP_OWN_SPANS = 3                // program, machine, the launcher's stack
};

// Which thread runs when several can. Bugs of synchronisation show under one order and not another.
enum InterpSchedule { INTERP_LOWEST_FIRST, INTERP_HIGHEST_FIRST, INTERP_PRIORITY };

// Global memory that a launch moves: bytes of all accesses, and 32-byte sectors that were touched at all.
typedef struct InterpTraffic {
    long long read_bytes, written_bytes, read_sectors, written_sectors;
} InterpTraffic;

struct InterpCell;                      // what is known of 4 bytes (shadow.cpp)

// A tensor in global memory, with a cell for every 4 bytes and a bit for every sector.
typedef struct InterpRegion {
    unsigned char *start;
    long long bytes;
    int written;                        // else only read, and initialised
    int costly;                         // a cell is filled when it is read
    struct InterpCell *cells;           // of a written or costly region
    unsigned char *read_sectors, *written_sectors;
} InterpRegion;

typedef struct InterpSpan {
    unsigned char *start, *end;
} InterpSpan;

typedef struct InterpHost {
    // Limits of the device.
    int max_threads;                    // a block
    long long static_shared_limit;      // dynamic shared bytes without the attribute
    long long shared_limit;             // and with it

    // What to run.
    enum InterpSchedule schedule;
    int only_launch;                    // the others are passed over; -1: run all
    long long max_blocks;               // of a launch; when it has more, some are chosen
    unsigned long long seed;            // of that choice, and of priorities

    // For checked accesses; without regions nothing is checked.
    InterpRegion *regions;
    int region_count;
    InterpSpan own[INTERP_OWN_SPANS];   // constants, threadIdx, arguments: accesses there are nobody's business
    int own_count;
    struct InterpCell *shared_cells;    // for shared_limit bytes
    unsigned char *code;                // program counters are kept relative to it
    InterpTraffic *traffic;             // of each launch

    // Services. fail() ends the process and never returns.
    void (*fail)(const char *format, ...) __attribute__((format(printf, 1, 2)));
    void *(*map_stack)(unsigned long bytes);                  // its upper end; a guard page below
    unsigned char *(*map_shared)(long long bytes);            // poisoned; guard pages on both sides
    void (*check_shared)(void);                               // nothing was written beside it
    void (*fill)(int region, long long offset, int bytes);    // costly: what the program is about to read
    void (*outside)(void *address, int write);                // fails: the address belongs to no tensor

    // Where it is: for messages, and the result.
    int launch;                         // the one that runs; -1 before the first and after the last
    int launches;                       // so far
    unsigned block[3];
    int thread;                         // within the block; -1 between blocks
    const char *file;                   // of the last barrier or shuffle, with its line
    int line;
    unsigned pc, other_pc;              // of the access that is wrong, and of the one it conflicts with; 0: none
    long long blocks_run, blocks_total; // of the launches that were run
} InterpHost;

/* interp_known(): whether a byte of a written region was written. */
typedef int InterpKnown(const InterpRegion *region, long long byte);

typedef int InterpLauncher(void **args);   // call_launcher() of the program's object

/* Calls the program's launcher with `args`; its result. */
typedef int InterpRun(InterpHost *host, InterpLauncher *launcher, void **args);

#endif
