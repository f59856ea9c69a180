#include "hal/jit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "hal/jit_cache.h"
#include "hal/nvrtc.h"
#include "hal/worker.h"

enum {
    MAX_JOBS = 64,
    MORE_ARGUMENTS = 3,    // that only some versions know
    SECONDS = 60,          // for one kernel: a large one takes 2
    REASON_BYTES = 2000,   // of the compiler's messages that are quoted
    CODE_BYTES =
        64
        << 20,   // of the PTX or the cubin of one text: unrolled matmuls come to 0.3 MB, and a model has 130 kernels
    LOG_BYTES = 1 << 20,
    FIRST_MINIMAL = 1204,     // 12.4 may leave out what no kernel uses: textures, the runtime on the device
    FIRST_CACHING = 1209,     // 12.9 keeps a cache, and says nothing of registers when it hits
    FIRST_SPLITTING = 1206,   // 12.4 does not know the option
};

// Of the threads that optimise a text's kernels. It is one of the things that machine code is made from, so
// it does not follow the cores. A ResNet-50 of 32 kernels takes 3.4 s in place of 5.2 and a DenseNet-121 of
// 146 10.2 in place of 17.4 (64 cores); with 16 threads 3.4 and 9.8.
static const char split_argument[] = "--split-compile=8";

static const int64_t MEMORY_BYTES = (int64_t)6 << 30;   // of address space; a large text takes 0.5 GB

/* What a worker hands back. */
typedef struct JitAnswer {
    JitStatus status;
    int major, minor;
    bool all_registers;
    size_t ptx_length, cubin_length;
    char reason[REASON_BYTES];
    char log[LOG_BYTES];
    char ptx[CODE_BYTES];
    char cubin[CODE_BYTES];
} JitAnswer;

typedef struct JitJob {
    const JitRequest *request;
    const char *key;   // in the cache; NULL: there is none
    const char *arch;
    JitAnswer *answer;
    int index;
} JitJob;

int jit_arguments(Arena *arena, const char *arch, bool all_registers, const char ***arguments)
{
    const char *list[] = {arena_printf(arena, "-arch=%s", arch), "-std=c++17", "--ptxas-options=-v",
                          all_registers ? "--maxrregcount=255" : NULL, NULL};
    int count = sizeof list / sizeof *list - 1 - !all_registers;
    *arguments = NEW_ARRAY(arena, const char *, count + 1 + MORE_ARGUMENTS);
    memcpy(*arguments, list, (size_t)count * sizeof *list);
    return count;
}

/* The same with what a version knows beyond that. */
static int all_arguments(Arena *arena, const JitRequest *request, const char *arch, bool all_registers,
                         int version, const char ***arguments)
{
    int count = jit_arguments(arena, arch, all_registers, arguments);
    if (version >= FIRST_MINIMAL)
        (*arguments)[count++] = "--minimal";
    if (version >= FIRST_CACHING)
        (*arguments)[count++] = "--no-cache";
    if (request->split && version >= FIRST_SPLITTING)
        (*arguments)[count++] = split_argument;
    return count;
}

// ---- the worker ----

/* The first messages of the log, without what ptxas counts. */
static void quote_errors(JitAnswer *answer)
{
    const char *error = strstr(answer->log, "error");
    const char *line = error ? error : answer->log;
    while (line > answer->log && line[-1] != '\n')
        line--;
    snprintf(answer->reason, sizeof answer->reason, "%.600s", line);
    answer->reason[strcspn(answer->reason, "\n")] = '\0';
}

static void read_messages(const Nvrtc *nvrtc, NvrtcHandle program, JitAnswer *answer)
{
    size_t bytes = 0;
    if (nvrtc->log_size(program, &bytes) == 0 && bytes <= LOG_BYTES)
        nvrtc->log(program, answer->log);
}

static bool read_code(const Nvrtc *nvrtc, NvrtcHandle program, JitAnswer *answer)
{
    size_t ptx = 0, cubin = 0;
    if (nvrtc->ptx_size(program, &ptx) != 0 || nvrtc->cubin_size(program, &cubin) != 0)
        return false;
    if (ptx > CODE_BYTES || cubin > CODE_BYTES || ptx < 2 || cubin == 0) {
        snprintf(answer->reason, sizeof answer->reason,
                 "gives %zu bytes of machine code; at most %d are taken", cubin > ptx ? cubin : ptx,
                 CODE_BYTES);
        return false;
    }
    answer->ptx_length = ptx - 1;   // it counts the '\0'
    answer->cubin_length = cubin;
    return nvrtc->ptx(program, answer->ptx) == 0 && nvrtc->cubin(program, answer->cubin) == 0;
}

static void compile_text(const Nvrtc *nvrtc, const JitJob *job, bool all_registers, JitAnswer *answer)
{
    Arena *arena = arena_new();
    answer->all_registers = all_registers;
    const char **arguments;
    nvrtc->version(&answer->major, &answer->minor);
    int version = answer->major * 100 + answer->minor;
    int count = all_arguments(arena, job->request, job->arch, all_registers, version, &arguments);
    NvrtcHandle program;
    answer->status = JIT_ERROR;
    int error = nvrtc->create(&program, job->request->text, job->request->name, 0, NULL, NULL);
    if (error == 0)
        error = nvrtc->compile(program, count, arguments);
    read_messages(nvrtc, program, answer);
    if (error != 0 && answer->log[0])
        quote_errors(answer);
    else if (error != 0)
        snprintf(answer->reason, sizeof answer->reason, "%s", nvrtc->error_string(error));
    else if (read_code(nvrtc, program, answer))
        answer->status = JIT_DONE;
}

static bool answer_spills(const JitAnswer *answer)
{
    Arena *arena = arena_new();
    JitResult result = {.status = answer->status};
    result.kernel_count = jit_read_log(arena, answer->log, &result.kernels);
    bool spills = jit_spills(&result);
    arena_free(arena);
    return spills;
}

/* No more than there is: pages that are never touched cost nothing. */
static void copy_answer(JitAnswer *to, const JitAnswer *from)
{
    memcpy(to, from, offsetof(JitAnswer, log));
    strcpy(to->log, from->log);
    memcpy(to->ptx, from->ptx, from->ptx_length + 1);
    memcpy(to->cubin, from->cubin, from->cubin_length);
}

/* Once more, if that leaves no spills. */
static void compile_without_spills(const Nvrtc *nvrtc, const JitJob *job)
{
    compile_text(nvrtc, job, false, job->answer);
    if (job->answer->status != JIT_DONE || !answer_spills(job->answer))
        return;
    JitAnswer *again = calloc(1, sizeof *again);
    if (!again)
        return;
    compile_text(nvrtc, job, true, again);
    if (again->status == JIT_DONE && !answer_spills(again))
        copy_answer(job->answer, again);
    free(again);
}

static void work(void *context)
{
    const JitJob *job = context;
    JitAnswer *answer = job->answer;
    Nvrtc nvrtc;
    answer->status = JIT_MACHINE;
    if (nvrtc_open(&nvrtc, answer->reason, sizeof answer->reason) &&
        nvrtc_knows(&nvrtc, job->arch, answer->reason, sizeof answer->reason))
        compile_without_spills(&nvrtc, job);
}

// ---- which compiler ----

typedef struct Compiler {
    int major, minor;
    char build[100];   // hexadecimal digits; a build id has 40
    char name[150];    // all of it in words
} Compiler;

static void ask_compiler(void *context)
{
    Compiler *compiler = context;
    Nvrtc nvrtc;
    char reason[REASON_BYTES];
    if (!nvrtc_open(&nvrtc, reason, sizeof reason))
        return;
    nvrtc.version(&compiler->major, &compiler->minor);
    nvrtc_build(&nvrtc, compiler->build, sizeof compiler->build);
    snprintf(compiler->name, sizeof compiler->name, "NVRTC %d.%d, build %s", compiler->major, compiler->minor,
             compiler->build);
}

static const Compiler *find_compiler(void)
{
    static Compiler *found;
    if (found)
        return found;
    Worker worker;
    WorkerLimits limits = {SECONDS, MEMORY_BYTES};
    found = worker_share(sizeof *found);
    if (!found)
        fatal(EXIT_MACHINE, "out of memory");
    if (worker_start(&worker, &limits, ask_compiler, found))
        while (worker_wait(&worker, 1) >= 0 && worker.state == WORKER_RUNNING)
            ;
    return found;
}

const char *jit_compiler(void)
{
    const Compiler *compiler = find_compiler();
    return compiler->build[0] ? compiler->name : NULL;
}

bool jit_is_doubted(const char *arch, int major, int minor)
{
    size_t length = strlen(arch);
    return length > 0 && arch[length - 1] == 'a' && (major < 13 || (major == 13 && minor < 1));
}

const char *jit_doubt(Arena *arena, const char *arch)
{
    const Compiler *compiler = find_compiler();
    return compiler->major && jit_is_doubted(arch, compiler->major, compiler->minor)
             ? arena_printf(arena, "NVRTC %d.%d", compiler->major, compiler->minor) : NULL;
}

// ---- what was compiled before ----

/* All that machine code is made from. */
static const char *key_of(Arena *arena, const JitRequest *request, const JitOptions *options)
{
    const Compiler *compiler = find_compiler();
    const char **arguments;
    int version = compiler->major * 100 + compiler->minor;
    int count = all_arguments(arena, request, options->arch, false, version, &arguments);
    StrBuf all = strbuf_new(arena);
    strbuf_printf(&all, "%s\n", compiler->name);
    for (int i = 0; i < count; i++)
        strbuf_printf(&all, "%s\n", arguments[i]);
    strbuf_printf(&all, "%s\n%s", request->name, request->text);
    return hash_of(arena, all.text, all.length);
}

// ---- the parent ----

static JitResult result_of(Arena *arena, const JitAnswer *answer)
{
    JitResult result = {
        .status = answer->status,
        .reason = answer->status == JIT_DONE ? NULL : arena_strdup(arena, answer->reason),
        .compiler = arena_printf(arena, "NVRTC %d.%d", answer->major, answer->minor),
        .log = arena_strdup(arena, answer->log),
    };
    if (result.status != JIT_DONE)
        return result;
    result.ptx = arena_strndup(arena, answer->ptx, answer->ptx_length);
    result.ptx_length = answer->ptx_length;
    result.cubin = (const unsigned char *)arena_strndup(arena, answer->cubin, answer->cubin_length);
    result.cubin_length = answer->cubin_length;
    result.all_registers = answer->all_registers;
    result.kernel_count = jit_read_log(arena, result.log, &result.kernels);
    return result;
}

static JitResult collect(Arena *arena, const Worker *worker, const JitAnswer *answer)
{
    if (worker->state == WORKER_DONE)
        return result_of(arena, answer);
    if (worker->state == WORKER_TIMEOUT)
        return (JitResult){JIT_TIMEOUT, .reason = arena_printf(arena, "does not compile within %d s",
                                                               worker->limits.seconds)};
    const char *how = worker->signal ? strsignal(worker->signal) : "it exited";
    return (JitResult){JIT_ERROR, .reason = arena_printf(arena, "the compiler crashes (%s)", how)};
}

/* One text to a free worker. False: it could not even be started; its result says so. */
static bool start(Worker *worker, JitJob *job, const JitOptions *options, JitResult *result)
{
    int kernels = job->request->kernels ? job->request->kernels : 1;
    WorkerLimits limits = {kernels * (options->seconds ? options->seconds : SECONDS), MEMORY_BYTES};
    job->answer = worker_share(sizeof *job->answer);
    if (job->answer && worker_start(worker, &limits, work, job))
        return true;
    if (job->answer)
        worker_unshare(job->answer, sizeof *job->answer);
    *result = (JitResult){JIT_MACHINE, .reason = "no further process can be started"};
    return false;
}

static void finish(Arena *arena, Worker *worker, JitJob *job, const JitOptions *options, JitResult *results)
{
    JitResult *result = &results[job->index];
    *result = collect(arena, worker, job->answer);
    worker_unshare(job->answer, sizeof *job->answer);
    worker->state = WORKER_IDLE;
    if (job->key && result->status == JIT_DONE)
        jit_cache_store(options->cache, job->key, result);
    if (options->done)
        options->done(options->context, job->index, result);
}

/* Takes what the cache has; returns how many texts are left to compile, as jobs. */
static int find_known(Arena *arena, const JitRequest *requests, int count, const JitOptions *options,
                      JitResult *results, JitJob *jobs)
{
    bool cached = options->cache && jit_compiler();
    int left = 0;
    for (int i = 0; i < count; i++) {
        const char *key = cached ? key_of(arena, &requests[i], options) : NULL;
        if (!key || !jit_cache_load(arena, options->cache, key, &results[i]))
            jobs[left++] = (JitJob){.request = &requests[i], .key = key, .arch = options->arch, .index = i};
        else if (options->done)
            options->done(options->context, i, &results[i]);
    }
    return left;
}

static void compile_jobs(Arena *arena, JitJob *jobs, int count, const JitOptions *options, JitResult *results)
{
    Worker workers[MAX_JOBS] = {0};
    JitJob *running_jobs[MAX_JOBS];
    int wanted = options->jobs ? options->jobs : worker_cores();
    int slots = wanted < MAX_JOBS ? wanted : MAX_JOBS;
    for (int next = 0, running = 0; next < count || running > 0;) {
        for (int i = 0; i < slots && next < count; i++) {
            if (workers[i].state == WORKER_RUNNING)
                continue;
            running_jobs[i] = &jobs[next++];
            running += start(&workers[i], running_jobs[i], options, &results[running_jobs[i]->index]);
        }
        int ended = running > 0 ? worker_wait(workers, slots) : -1;
        if (ended >= 0 && workers[ended].state != WORKER_RUNNING) {
            finish(arena, &workers[ended], running_jobs[ended], options, results);
            running--;
        }
    }
}

void jit_compile(Arena *arena, const JitRequest *requests, int count, const JitOptions *options,
                 JitResult *results)
{
    JitJob *jobs = NEW_ARRAY(arena, JitJob, count);
    int left = find_known(arena, requests, count, options, results, jobs);
    compile_jobs(arena, jobs, left, options, results);
    if (left > 0 && jobs[0].key)
        jit_cache_trim(options->cache);
}
