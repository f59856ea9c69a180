// Work that may crash, hang or eat memory is done in a process of its own; how that ended is a value.
//
// A worker is a fork: it sees everything its parent had, and answers through memory that both share. It
// dies with its parent, however the parent ends.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct WorkerLimits {
    int seconds;            // wall clock, between two signs of life
    int64_t memory_bytes;   // of address space, beside what its parent has mapped; 0: no limit
} WorkerLimits;

typedef enum WorkerState {
    WORKER_IDLE,
    WORKER_RUNNING,
    WORKER_DONE,   // returned
    WORKER_CRASHED,
    WORKER_TIMEOUT   // and was killed
} WorkerState;

typedef struct Worker {
    WorkerState state;
    pid_t pid;
    int life;          // ends when the worker does; a byte is a sign of life
    double deadline;   // seconds on the monotonic clock
    int signal;        // of one that crashed; 0: it exited by itself,
    int exit_code;     // with this
    WorkerLimits limits;
} Worker;

/* Of the processors, those that this process may use. */
int worker_cores(void);

/* Runs work(context) in a new process. False: there can be none. */
bool worker_start(Worker *worker, const WorkerLimits *limits, void (*work)(void *context), void *context);

/* In a worker: a sign of life, from which the timeout counts again. */
void worker_alive(void);

/* From now on this long between two signs of life. */
void worker_limit(Worker *worker, int seconds);

/* Waits until some worker gives a sign of life or ends; its position, or -1 if none is running. */
int worker_wait(Worker *workers, int count);

/* The same without waiting, of one worker: takes what it has said until now, or its end. */
void worker_hear(Worker *worker);

/* Zeroed memory that workers and parent share; NULL: there is none. Pages that are never touched cost
   nothing. */
void *worker_share(size_t bytes);
void worker_unshare(void *memory, size_t bytes);

/* Memory that the parent hands out piece by piece, also to workers that run already: it lies at the same
   address in all of them. */
typedef struct SharedMemory {
    char *start;
    size_t bytes, used;
} SharedMemory;

/* Zeroed, at a multiple of 64; NULL: there is no room. */
void *shared_take(SharedMemory *memory, size_t bytes);
