#include "hal/interp_child.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/stopwatch.h"
#include "hal/interp_shadow.h"

enum { SIGNAL_STACK_BYTES = 64 << 10, SHARED_CANARY = 0xa5 };

/* Signal handlers and call-backs find it here. */
static struct {
    InterpReport *report;
    InterpCounts *counts;
    const RuntimeJob *job;
    InterpMemory *memory;
    InterpHost host;
    int seconds;
    volatile double filling, filled;   // since when it waits to be filled, 0: it does not; for how long it did
    int64_t shared_bytes;    // dynamic, of each block of a team
    int shared_blocks;
    int stacks;              // so far
} child;

// ---- how it ends ----

static _Noreturn void end(RuntimeStatus status)
{
    child.report->status = status;
    child.report->blocks_run = child.host.blocks_run;
    child.report->blocks_total = child.host.blocks_total;
    int launches = child.host.launches;
    child.report->launch_count = launches < INTERP_MAX_LAUNCHES ? launches : INTERP_MAX_LAUNCHES;
    _exit(0);
}

static __attribute__((format(printf, 1, 2))) void append_where(const char *format, ...)
{
    char *text = child.report->where;
    size_t length = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + length, INTERP_WHERE_BYTES - length, format, args);
    va_end(args);
}

/* "launch 1, block (3,0,0), thread 17, " as far as it is known. */
static void report_where(void)
{
    const InterpHost *host = &child.host;
    child.report->where[0] = '\0';
    if (host->launch >= 0)
        append_where("launch %d, ", host->launch);
    int thread = interp_thread();
    if (thread >= 0)
        append_where("block (%u,%u,%u), thread %d, ", host->block[0], host->block[1], host->block[2], thread);
    if (host->file && !host->pc)
        append_where("%s:%d: ", strrchr(host->file, '/') ? strrchr(host->file, '/') + 1 : host->file,
                     host->line);
}

static __attribute__((format(printf, 1, 0))) void report_what(const char *format, va_list args)
{
    report_where();
    child.report->pc = child.host.pc;
    child.report->other_pc = child.host.other_pc;
    vsnprintf(child.report->what, INTERP_WHAT_BYTES, format, args);
}

static _Noreturn __attribute__((format(printf, 1, 2))) void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report_what(format, args);
    va_end(args);
    end(RUNTIME_WRONG);
}

static _Noreturn __attribute__((format(printf, 1, 2))) void run_out(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report_what(format, args);
    va_end(args);
    end(RUNTIME_TIMEOUT);
}

static _Noreturn void lack(const char *what)
{
    snprintf(child.report->what, INTERP_WHAT_BYTES, "%s", what);
    end(RUNTIME_MACHINE);
}

// ---- signals ----

static bool is_write(const ucontext_t *context)
{
#ifdef __x86_64__
    return context->uc_mcontext.gregs[REG_ERR] &
           2;   // page fault error code: the access was a write
#else
    (void)context;
    return false;
#endif
}

/* The start of the shared memory that the address lies in or near; NULL: there is none. */
static unsigned char *shared_near(const unsigned char *address)
{
    enum { NEAR = 8 << 20 };   // half of the guard region between two
    for (int b = 0; b < child.shared_blocks; b++) {
        unsigned char *shared = child.host.shared + b * child.host.shared_stride;
        if (address >= shared - NEAR && address < shared + child.shared_bytes + NEAR)
            return shared;
    }
    return NULL;
}

static _Noreturn void fail_outside(const unsigned char *address, bool write)
{
    char what[300];
    if (interp_memory_describe(child.memory, address, write, what, sizeof what))
        fail("%s", what);
    const unsigned char *shared = shared_near(address);
    if (shared)
        fail("%s at byte %lld of the shared memory, which has %lld", write ? "writes" : "reads",
             (long long)(address - shared), (long long)child.shared_bytes);
    fail("%s outside of every buffer", write ? "writes" : "reads");
}

/* Of the processor: how busy the machine is says nothing of a kernel. 0: none. */
static void set_clock(double seconds)
{
    struct itimerval left = {.it_value.tv_sec = (time_t)seconds};
    left.it_value.tv_usec = (suseconds_t)((seconds - (double)left.it_value.tv_sec) * 1e6);
    setitimer(ITIMER_PROF, &left, NULL);
}

/* The time in which it was filled is given back; false: there was none. */
static bool has_more_time(void)
{
    enum { LEAST_MS = 1 };
    double now = seconds_now(), more = child.filled + (child.filling > 0 ? now - child.filling : 0);
    child.filled = 0;
    child.filling = child.filling > 0 ? now : 0;
    bool enough = more * 1e3 >= LEAST_MS;
    if (enough)
        set_clock(more);
    return enough;
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    unsigned char *address = info->si_addr;
    if (signal == SIGPROF && has_more_time())
        return;
    if (signal == SIGPROF)
        run_out("does not end within %d s", child.seconds);
    child.report->trapped = signal == SIGILL || signal == SIGTRAP;
    if (signal == SIGFPE || child.report->trapped)
        fail("%s", signal == SIGFPE ? "a division traps" : "an operation that traps");
    fail_outside(address, is_write(context));
}

/* A checked access that belongs to no tensor. */
static void outside(void *address, int write)
{
    fail_outside(address, write);
}

/* Filling what a program reads does not count as the program's time. Its clock goes on, since elements are filled one
   by one, and stopping it for each took longer than that. */
static void begin_filling(void) { child.filling = seconds_now(); }
static void end_filling(void)
{
    child.filled = child.filled + seconds_now() - child.filling;
    child.filling = 0;
}

static void open_piece(void *address)
{
    begin_filling();
    interp_memory_open(child.memory, address);
    end_filling();
}

static void fill_bytes(int index, long long offset, int count)
{
    const RuntimeTensor *tensor = &child.job->tensors[index];
    unsigned char *target = interp_memory_buffer(child.memory, tensor->buffer);
    unsigned char bytes[16];
    begin_filling();
    child.job->fill(child.job->context, index, offset, count, bytes);
    end_filling();
    memcpy(target + tensor->offset + offset, bytes, (size_t)count);
}

/* What NAME_prepare left is all that calls find. */
static void seal(void)
{
    int beside = child.host.source->arg_count;
    begin_filling();
    interp_memory_seal(child.memory);
    interp_shadow_change(&child.host, child.job, beside + BUFFER_PREPARED, beside + BUFFER_PREPARED, SHADOW_SEAL);
    interp_shadow_change(&child.host, child.job, beside + BUFFER_WEIGHTS, beside + BUFFER_WEIGHTS, SHADOW_CLOSE);
    interp_shadow_change(&child.host, child.job, beside + BUFFER_WORKSPACE, beside + BUFFER_WORKSPACE, SHADOW_FORGET);
    end_filling();
}

static void refill(int before)
{
    begin_filling();
    interp_memory_refill(child.memory, before ? child.job->fill_before : child.job->fill);
    interp_shadow_change(&child.host, child.job, 0, child.host.source->arg_count + BUFFER_WORKSPACE, SHADOW_FORGET);
    end_filling();
}

static void cast_shadow(InterpShadow *shadow)
{
    if (!interp_shadow_cast(shadow))
        lack("not enough memory for the checks of the interpreter");
}

static void catch_signals(void)
{
    static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGPROF};
    static const int plain[] = {SIGINT, SIGTERM, SIGHUP};
    stack_t stack = {.ss_size = SIGNAL_STACK_BYTES};
    stack.ss_sp =
        mmap(NULL, SIGNAL_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
        sigaction(caught[i], &action, NULL);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        signal(plain[i], SIG_DFL);
}

static void set_limits(void)
{
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

// ---- services for the program ----

/* Many at once in one mapping: a short run would take longer to map each by itself than to use it. Where accesses
   are checked, those of the first blocks have guard pages. The others run the same kernel, and a process may not
   have enough mappings for all. */
static void *map_stack(unsigned long bytes)
{
    enum { GUARDED = 2048, AT_ONCE = 1024 };
    static unsigned char *next;
    const int number = child.stacks++ - (child.job->checked ? GUARDED : 0);
    int64_t stride, size = (int64_t)bytes * AT_ONCE;
    if (number < 0)
        next = guarded_map((int64_t)bytes, 1, &stride);
    else if (number % AT_ONCE == 0 && (next = guarded_map(size, 1, &stride)))
        madvise(next, (size_t)size, MADV_NOHUGEPAGE);   // of each a few pages are touched
    if (!next)
        lack("no memory for the stack of a thread");
    return next += bytes;
}

static unsigned char *shared_end(int block)
{
    return child.host.shared + block * child.host.shared_stride + child.shared_bytes;
}

static int64_t shared_rest(void) { return child.shared_bytes > 0 ? -child.shared_bytes & 15 : 0; }

static void map_shared(long long bytes, int blocks)
{
    InterpHost *host = &child.host;
    int64_t stride;
    if (host->shared)
        guarded_unmap(host->shared, child.shared_bytes, child.shared_blocks);
    host->shared = guarded_map(bytes, blocks, &stride);
    if (!host->shared)
        lack("not enough memory for the shared memory of the blocks that run together");
    if (host->region_count && !interp_shadow_make_shared(host, bytes, blocks))
        lack("not enough memory for the checks of the interpreter");
    host->shared_stride = stride;
    child.shared_bytes = bytes;
    child.shared_blocks = blocks;
    for (int b = 0; b < blocks; b++)
        memset(shared_end(b), SHARED_CANARY, (size_t)shared_rest());
}

static void check_shared(void)
{
    for (int b = 0; b < child.shared_blocks; b++)
        for (int64_t i = 0; i < shared_rest(); i++)
            if (shared_end(b)[i] != SHARED_CANARY)
                fail("writes at byte %lld of the shared memory, which has %lld",
                     (long long)(child.shared_bytes + i), (long long)child.shared_bytes);
}

// ---- the run ----

static InterpHost host_of(const InterpTask *task)
{
    return (InterpHost){
        .source = task->source,
        .job = task->job,
        .buffers = (unsigned char **)task->buffers,
        .fail = fail,
        .map_stack = map_stack,
        .map_shared = map_shared,
        .check_shared = check_shared,
        .open = open_piece,
        .fill = fill_bytes,
        .cast_shadow = cast_shadow,
        .outside = outside,
        .seal = seal,
        .refill = refill,
        .traffic = child.report->traffic,
        .counts = child.counts,
        .launch = -1,
        .thread = -1,
    };
}

static void *load_object(const char *path)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);   // it calls the machine, which is here
    if (!object)
        lack(dlerror());
    return object;
}

/* Called for each object that is loaded, until one of them holds `function`. */
static int find_image(struct dl_phdr_info *info, size_t size, void *function)
{
    (void)size;
    InterpSpan image = {(unsigned char *)info->dlpi_addr, (unsigned char *)info->dlpi_addr};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        unsigned char *end = image.start + part->p_vaddr + part->p_memsz;
        if (part->p_type == PT_LOAD && end > image.end)
            image.end = end;
    }
    unsigned char *wanted = function;
    if (wanted < image.start || wanted >= image.end)
        return 0;
    child.host.own[child.host.own_count++] = image;
    return 1;
}

/* Blocks that are left out hide what they do not write; the first and the last one are never left out. */
static void check_ends(void)
{
    for (int i = 0; i < child.host.region_count; i++) {
        const InterpRegion *region = &child.host.regions[i];
        const RuntimeTensor *tensor = &child.job->tensors[i];
        if (!region->written)
            continue;
        bool first = interp_written(region, tensor->first);
        if (!first || !interp_written(region, (tensor->end ? tensor->end : region->bytes) - 1))
            fail("the %s element of %s is not written", first ? "last" : "first", tensor->name);
    }
}

/* What was read in place and not written is no result. */
static void take_back(void)
{
    for (int i = 0; i < child.host.region_count; i++)
        if (child.host.regions[i].written && child.host.regions[i].costly)
            interp_take_back(&child.host.regions[i], child.job->poison);
}

_Noreturn void interp_child_run(const InterpTask *task)
{
    const RuntimeJob *job = task->job;
    child.job = job;
    child.report = task->report;
    child.counts = task->counts;
    child.memory = task->memory;
    child.host = host_of(task);
    child.seconds = job->seconds;
    set_limits();
    catch_signals();
    void *program = load_object(task->object);
    InterpLauncher *launcher = (InterpLauncher *)(uintptr_t)dlsym(program, job->graph && task->source->graph ? "call_graph" : "call_launcher");
    InterpLauncher *prepare = (InterpLauncher *)(uintptr_t)dlsym(program, "call_prepare");
    dl_iterate_phdr(find_image, (void *)(uintptr_t)launcher);
    child.host.code = child.host.own[0].start;
    if (job->checked && !interp_shadow_make(&child.host, child.memory, job))
        lack("not enough memory for the checks of the interpreter");
    (job->lazy ? interp_memory_unlock : interp_memory_open_all)(child.memory);
    set_clock(job->seconds);
    int result = interp_run(&child.host, prepare, launcher, task->buffers);
    set_clock(0);
    char what[300];
    child.host.file = NULL;
    if (result != 0)
        fail("%s_%s returns error %d", task->source->name,
             prepare && child.host.launches <= task->source->prepare_count ? "prepare or its launch" : "launch", result);
    take_back();   // while memory may be written
    if (!interp_memory_check(child.memory, what, sizeof what))
        fail("%s", what);
    if (job->checked && job->ends_written)
        check_ends();
    end(RUNTIME_DONE);
}
