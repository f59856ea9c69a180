#include "hal/worker.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/leftovers.h"
#include "base/stopwatch.h"

enum { MAX_WORKERS = 256 };   // at once; the machine's cores are fewer

static int own_life = -1;   // of a worker: the end that its parent listens to

// ---- the worker ----

#ifndef __SANITIZE_ADDRESS__   // which maps terabytes
/* Bytes of address space that the parent had mapped; 0 where /proc does not say. */
static rlim_t inherited_bytes(void)
{
    unsigned long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (statm && fscanf(statm, "%lu", &pages) != 1)
        pages = 0;
    if (statm)
        fclose(statm);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}
#endif

static void set_limits(const WorkerLimits *limits)
{
    const struct rlimit no_core = {0, 0}, no_files = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
#ifndef __SANITIZE_ADDRESS__
    if (limits->memory_bytes) {
        const rlim_t most = inherited_bytes() + (rlim_t)limits->memory_bytes;
        const struct rlimit memory = {most, most};
        setrlimit(RLIMIT_AS, &memory);
        setrlimit(RLIMIT_FSIZE, &no_files);
    }
#else
    (void)limits, (void)no_files;
#endif
}

/* What a compiler or a driver prints when it crashes is not for the user. */
static void silence(void)
{
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= 2 && null >= 0; fd++)
        dup2(null, fd);
}

static _Noreturn void be_worker(pid_t parent, const WorkerLimits *limits, void (*work)(void *), void *context)
{
    static const int plain[] = {SIGINT, SIGTERM, SIGHUP, SIGABRT, SIGPIPE, SIGXFSZ};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        signal(plain[i], SIG_DFL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)   // it is gone already
        _exit(1);
    silence();
    set_limits(limits);
    work(context);
    leftovers_clear();
    _exit(0);   // not its parent's exit handlers
}

void worker_alive(void)
{
    ssize_t ignored = write(own_life, "", 1);
    (void)ignored;
}

// ---- the parent ----

int worker_cores(void)
{
    cpu_set_t cores;
    return sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

bool worker_start(Worker *worker, const WorkerLimits *limits, void (*work)(void *), void *context)
{
    int ends[2];
    *worker = (Worker){.limits = *limits, .life = -1};
    leftovers_share();
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        close(ends[0]);
        own_life = ends[1];
        be_worker(parent, limits, work, context);
    }
    close(ends[1]);   // now only the worker holds it
    if (pid < 0) {
        close(ends[0]);
        return false;
    }
    leftovers_add_child(pid);
    worker->state = WORKER_RUNNING;
    worker->pid = pid;
    worker->life = ends[0];
    worker->deadline = seconds_now() + limits->seconds;
    return true;
}

static void bury(Worker *worker, WorkerState state)
{
    int status = 0;
    if (state == WORKER_TIMEOUT) {
        kill(-worker->pid, SIGKILL);
        kill(worker->pid, SIGKILL);   // should it not have its group yet
    }
    while (waitpid(worker->pid, &status, 0) < 0 && errno == EINTR)
        ;
    leftovers_drop_child(worker->pid);
    close(worker->life);
    worker->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    worker->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    worker->state = state == WORKER_DONE && status != 0 ? WORKER_CRASHED : state;
}

/* Milliseconds until the first deadline. */
static int patience(const Worker *workers, int count)
{
    double first = 1e9;
    for (int i = 0; i < count; i++)
        if (workers[i].state == WORKER_RUNNING && workers[i].deadline < first)
            first = workers[i].deadline;
    double left = first - seconds_now();
    return left <= 0 ? 0 : left > 1e6 ? 1000000000 : (int)(left * 1e3) + 1;
}

/* What its pipe holds. */
static void read_signs(Worker *worker)
{
    char signs[64];
    if (read(worker->life, signs, sizeof signs) > 0)
        worker->deadline = seconds_now() + worker->limits.seconds;
    else
        bury(worker, WORKER_DONE);
}

void worker_limit(Worker *worker, int seconds)
{
    worker->limits.seconds = seconds;
    worker->deadline = seconds_now() + seconds;
}

int worker_wait(Worker *workers, int count)
{
    struct pollfd polled[MAX_WORKERS];
    int running = 0;
    assert(count <= MAX_WORKERS);
    for (int i = 0; i < count; i++) {
        bool runs = workers[i].state == WORKER_RUNNING;
        polled[i] = (struct pollfd){.fd = runs ? workers[i].life : -1, .events = POLLIN};
        running += runs;
    }
    while (running > 0) {
        poll(polled, (nfds_t)count, patience(workers, count));
        for (int i = 0; i < count; i++) {
            if (workers[i].state != WORKER_RUNNING)
                continue;
            if (polled[i].revents)
                return read_signs(&workers[i]), i;
            if (seconds_now() >= workers[i].deadline)
                return bury(&workers[i], WORKER_TIMEOUT), i;
        }
    }
    return -1;
}

void worker_hear(Worker *worker)
{
    struct pollfd polled = {.fd = worker->life, .events = POLLIN};
    if (worker->state != WORKER_RUNNING)
        return;
    if (poll(&polled, 1, 0) > 0)
        read_signs(worker);
    else if (seconds_now() >= worker->deadline)
        bury(worker, WORKER_TIMEOUT);
}

void *worker_share(size_t bytes)
{
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void worker_unshare(void *memory, size_t bytes) { munmap(memory, bytes); }

void *shared_take(SharedMemory *memory, size_t bytes)
{
    enum { ALIGNMENT = 64 };
    char *taken = memory->start + memory->used;
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (rounded > memory->bytes - memory->used)
        return NULL;
    memory->used += rounded;
    return taken;
}
