// The CPU interpreter as a runtime: the program runs in a child, so that a crash or a hang is a
// result.
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "hal/interp/interface.h"
#include "hal/interp_compile.h"
#include "hal/interp_memory.h"
#include "hal/runtime.h"

enum {
    REASON_BYTES = 1000,
    SIGNAL_STACK_BYTES = 8 << 20,   // a fault may call the reference evaluator, which recurses
    SHARED_CANARY = 0xa5
};

struct RuntimeModule {
    const char *object;   // path of the shared object
    RuntimeSource source;
};

/* What the child tells its parent. */
typedef struct Report {
    RuntimeStatus status;
    int64_t blocks_run, blocks_total;
    char reason[REASON_BYTES];
} Report;

/* Of the child: signal handlers and call-backs find it here. */
static struct {
    Report *report;
    InterpMemory *memory;
    InterpHost host;
    int seconds;
    int (*thread)(void);
    unsigned char *shared;   // dynamic shared memory of a block
    int64_t shared_bytes;
} child;

// ---- the child: how it ends ----

static _Noreturn void end(RuntimeStatus status)
{
    child.report->status = status;
    child.report->blocks_run = child.host.blocks_run;
    child.report->blocks_total = child.host.blocks_total;
    _exit(0);
}

static void append(const char *format, ...)
{
    char *text = child.report->reason;
    size_t length = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + length, REASON_BYTES - length, format, args);
    va_end(args);
}

/* "launch 1, block (3,0,0), thread 17, " as far as it is known. */
static void append_place(void)
{
    const InterpHost *host = &child.host;
    child.report->reason[0] = '\0';
    if (host->launch >= 0)
        append("launch %d, ", host->launch);
    int thread = child.thread ? child.thread() : -1;
    if (thread >= 0)
        append("block (%u,%u,%u), thread %d, ", host->block[0], host->block[1], host->block[2],
               thread);
    if (host->file)
        append("%s:%d: ", strrchr(host->file, '/') ? strrchr(host->file, '/') + 1 : host->file,
               host->line);
}

static void fail(const char *format, ...)
{
    append_place();
    size_t length = strlen(child.report->reason);
    va_list args;
    va_start(args, format);
    vsnprintf(child.report->reason + length, REASON_BYTES - length, format, args);
    va_end(args);
    end(RUNTIME_WRONG);
}

// ---- the child: signals ----

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

static bool in_shared(const unsigned char *address)
{
    enum { NEAR = 16 << 20 };
    return child.shared && address >= child.shared - NEAR &&
           address < child.shared + child.shared_bytes + NEAR;
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    char what[300];
    unsigned char *address = info->si_addr;
    bool write = is_write(context);
    if (signal == SIGALRM)
        fail("does not end within %d s", child.seconds);
    if (signal == SIGFPE || signal == SIGILL)
        fail("%s", signal == SIGFPE ? "a division traps"
                                    : "a misaligned access, or an operation that traps");
    MemoryFault fault = interp_memory_fault(child.memory, address, write, what, sizeof what);
    if (fault == FAULT_OPENED)
        return;
    if (fault == FAULT_WRONG)
        fail("%s", what);
    if (in_shared(address))
        fail("%s at byte %lld of the shared memory, which has %lld", write ? "writes" : "reads",
             (long long)(address - child.shared), (long long)child.shared_bytes);
    fail("%s outside of every buffer", write ? "writes" : "reads");
}

static void catch_signals(int seconds)
{
    static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM};
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
    alarm((unsigned)seconds);
}

static void set_limits(int seconds)
{
    const struct rlimit no_core = {0, 0};
    const struct rlimit cpu = {(rlim_t)seconds + 5,
                               (rlim_t)seconds + 5};   // should the alarm not do it
    setrlimit(RLIMIT_CORE, &no_core);
    setrlimit(RLIMIT_CPU, &cpu);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

// ---- the child: services for the program ----

static void *map_stack(unsigned long bytes)
{
    unsigned char *stack = guarded_map((int64_t)bytes);
    if (!stack)
        fail("no memory for the stack of a thread");
    return stack + bytes;
}

static unsigned char *map_shared(long long bytes)
{
    child.shared = guarded_map(bytes);   // the one of the launch before is left behind
    child.shared_bytes = bytes;
    if (!child.shared)
        fail("no memory for %lld bytes of shared memory", bytes);
    if (bytes > 0)
        memset(child.shared + bytes, SHARED_CANARY, (size_t)(-bytes & 15));
    return child.shared;
}

static void check_shared(void)
{
    for (int64_t i = 0; i < (-child.shared_bytes & 15) && child.shared_bytes > 0; i++)
        if (child.shared[child.shared_bytes + i] != SHARED_CANARY)
            fail("writes at byte %lld of the shared memory, which has %lld",
                 (long long)(child.shared_bytes + i), (long long)child.shared_bytes);
}

// ---- the child: the run ----

static InterpHost host_of(const RuntimeLimits *limits, const RuntimeJob *job)
{
    return (InterpHost){
        .max_threads = limits->max_threads_per_block,
        .static_shared_limit = limits->static_shared_bytes,
        .shared_limit = limits->shared_bytes,
        .schedule = job->reverse ? INTERP_HIGHEST_FIRST : INTERP_LOWEST_FIRST,
        .only_launch = job->only_launch,
        .max_blocks = job->max_blocks,
        .seed = job->seed,
        .fail = fail,
        .map_stack = map_stack,
        .map_shared = map_shared,
        .check_shared = check_shared,
        .launch = -1,
        .thread = -1,
    };
}

static _Noreturn void run_child(const RuntimeModule *module, const RuntimeJob *job, void **buffers)
{
    child.host = host_of(&module->source.limits, job);
    child.seconds = job->seconds;
    set_limits(job->seconds);
    catch_signals(job->seconds);
    void *object = dlopen(module->object, RTLD_NOW | RTLD_LOCAL);
    if (!object)
        fail("%s", dlerror());
    InterpRun *run = (InterpRun *)(uintptr_t)dlsym(object, "interp_run");
    child.thread = (int (*)(void))(uintptr_t)dlsym(object, "interp_thread");
    if (!job->lazy)
        interp_memory_open_all(child.memory);
    int result = run(&child.host, buffers);
    char what[300];
    child.host.launch = -1;
    child.host.file = NULL;
    if (result != 0)
        fail("%s_launch returns error %d", module->source.name, result);
    if (!interp_memory_check(child.memory, what, sizeof what))
        fail("%s", what);
    end(RUNTIME_DONE);
}

// ---- the parent ----

static RuntimeStatus load(Arena *arena, const RuntimeSource *source, RuntimeModule **module,
                          const char **reason)
{
    *module = NEW(arena, RuntimeModule);
    (*module)->source = *source;
    return interp_compile(arena, source, &(*module)->object, reason);
}

/* Waits for the child; its report stands unless it was killed before it could write one. */
static void wait_for(pid_t pid, Report *report)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFSIGNALED(status))
        return;
    report->status = RUNTIME_WRONG;
    snprintf(report->reason, REASON_BYTES, "is ended by signal %d (%s)", WTERMSIG(status),
             strsignal(WTERMSIG(status)));
}

static void **buffers_of(Arena *arena, const InterpMemory *memory, int count)
{
    void **buffers = NEW_ARRAY(arena, void *, count);
    for (int i = 0; i < count; i++)
        buffers[i] = interp_memory_buffer(memory, i);
    return buffers;
}

static RuntimeResult machine_failure(const char *reason)
{
    return (RuntimeResult){.status = RUNTIME_MACHINE, .reason = reason};
}

static RuntimeResult run(Arena *arena, const RuntimeModule *module, const RuntimeJob *job)
{
    int count = module->source.arg_count + 1;
    InterpMemory *memory = interp_memory_map(arena, job, count);
    Report *report =
        mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!memory || report == MAP_FAILED)
        return machine_failure("not enough memory for the buffers of the program");
    RuntimeResult result = {.buffer_count = count, .mappings = memory};
    result.buffers = buffers_of(arena, memory, count);
    report->status = RUNTIME_WRONG;
    strcpy(report->reason, "ends before it is done");
    child.report = report;
    child.memory = memory;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        run_child(module, job, result.buffers);
    if (pid < 0)
        return machine_failure("no further process can be started");
    wait_for(pid, report);
    interp_memory_show(memory);
    result.status = report->status;
    result.reason = arena_strdup(arena, report->reason);
    result.blocks_run = report->blocks_run;
    result.blocks_total = report->blocks_total;
    result.pages = interp_memory_pages(memory, &result.page_count);
    munmap(report, sizeof *report);
    return result;
}

static void release(RuntimeResult *result)
{
    if (result->mappings)
        interp_memory_unmap(result->mappings);
    result->mappings = NULL;
}

const Runtime runtime_interp = {.name = "interp", .load = load, .run = run, .release = release};
