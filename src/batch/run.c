#include "batch/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/output.h"
#include "base/path.h"
#include "base/progress.h"
#include "base/stopwatch.h"
#include "driver.h"
#include "hal/worker.h"

enum {
    ENTRY_SECONDS = 3600,      // of one entry; whatever takes long has limits of its own
    MESSAGE_BYTES = 16000,     // of what one says
    PLAIN_LINE_SECONDS = 10,   // between two lines where nothing is redrawn: silence looks like a hang
};

/* What a worker returns besides its exit code and messages. */
typedef struct EntryAnswer {
    Outcome outcome;
    char hashes[MAX_ARTEFACTS][HASH_DIGITS + 1];   // of the files
} EntryAnswer;

/* An entry that is being made. */
typedef struct Task {
    const Job *job;
    const BatchOptions *options;
    EntryAnswer *answer;   // shared
    int messages;     // a file in memory that is the worker's stderr
    int compilers;    // of machine code, that it may run at once
} Task;

typedef struct BatchRun {
    Arena *arena;
    const BatchOptions *options;
    Results *results;
    RunReport report;
    Worker workers[MAX_BATCH_JOBS];
    Task tasks[MAX_BATCH_JOBS];
    int count;            // of all entries
    int file;             // of the results; -1: they are written in the end
    double start, said;   // seconds
} BatchRun;

// ---- the worker ----

static void make_folders(Arena *arena, const Entry *entry)
{
    const char *slash = strrchr(entry->output, '/');
    if (!slash || slash == entry->output)
        return;
    const char *folder = arena_strndup(arena, entry->output, (size_t)(slash - entry->output));
    if (!path_make_folders(arena, folder))
        fatal(EXIT_MACHINE, "cannot make the folder '%s': %s", folder, strerror(errno));
}

static void hash_files(Arena *arena, const Entry *entry, EntryAnswer *answer)
{
    for (int i = 0; i < entry->file_count; i++) {
        const char *hash = hash_of_file(arena, entry->files[i]);
        if (!hash)
            fatal(EXIT_MACHINE, "cannot read '%s': %s", entry->files[i], strerror(errno));
        strcpy(answer->hashes[i], hash);
    }
}

static void make_entry(void *context)
{
    const Task *task = context;
    const Entry *entry = task->job->entry;
    dup2(task->messages, STDERR_FILENO);
    prctl(PR_SET_PDEATHSIG, SIGTERM);   // time to remove what is temporary
    output_install_signals();
    Arena *arena = arena_new();
    Options *options = options_parse(arena, entry->word_count, entry->words);
    diag_configure((DiagOptions){.verbose = task->options->verbose});   // messages are kept, without colours
    if (task->options->cache)
        options->cache = *task->options->cache ? task->options->cache : NULL;
    options->jobs = task->compilers;
    make_folders(arena, entry);
    int code = compile(options, &task->answer->outcome);
    if (code != EXIT_DONE)
        exit(code);
    hash_files(arena, entry, task->answer);
}

static bool start(Worker *worker, Task *task)
{
    const WorkerLimits limits = {.seconds = ENTRY_SECONDS};
    if (!task->answer) {
        task->answer = worker_share(sizeof *task->answer);
        task->messages = memfd_create("messages", MFD_CLOEXEC);
    }
    if (!task->answer || task->messages < 0)
        return false;
    memset(task->answer, 0, sizeof *task->answer);
    return ftruncate(task->messages, 0) == 0 && lseek(task->messages, 0, SEEK_SET) == 0 &&
           worker_start(worker, &limits, make_entry, task);
}

// ---- what became of it ----

/* What it said, without the last line's end. */
static char *messages_of(Arena *arena, const Task *task)
{
    char *text = arena_alloc(arena, MESSAGE_BYTES + 1);
    ssize_t length = pread(task->messages, text, MESSAGE_BYTES, 0);
    while (length > 0 && text[length - 1] == '\n')
        text[--length] = '\0';
    return text;
}

static const char *death_of(Arena *arena, const Worker *worker, const char *messages, int *exit_code)
{
    *exit_code = worker->signal == 0         ? worker->exit_code
                 : worker->signal == SIGKILL ? EXIT_MACHINE
                                             : EXIT_BUG;
    if (worker->signal == 0)
        return *messages ? messages : "it ended without a word";
    const char *how = worker->signal == SIGKILL
                          ? "rollerc was killed; is there too little memory?"
                          : arena_printf(arena, "rollerc crashes (%s)", strsignal(worker->signal));
    return arena_printf(arena, "%s%s%s", messages, *messages ? "\n" : "", how);
}

/* NULL: it was made. */
static const char *failure_of(Arena *arena, const Worker *worker, const char *messages, int *exit_code)
{
    *exit_code = EXIT_MACHINE;
    switch (worker->state) {
    case WORKER_CRASHED: return death_of(arena, worker, messages, exit_code);
    case WORKER_TIMEOUT: return arena_printf(arena, "it does not end within %d s", ENTRY_SECONDS);
    case WORKER_IDLE: return "no further process can be started";
    default: *exit_code = EXIT_DONE; return NULL;
    }
}

static void add_inputs(Json *line, const Entry *entry)
{
    json_set_string(line, "output", entry->output);
    json_set_string(line, "name", entry->name);
    json_set_string(line, "expr", entry->expr);
    json_set_string(line, "device", entry->device);
    Json *defines = json_set_object(line, "defines");
    for (int i = 0; i < entry->define_count; i++)
        json_set_string(defines, entry->defines[i].name, entry->defines[i].text);
    Json *command = json_set_array(line, "command");
    for (int i = 0; i < entry->word_count; i++)
        json_push_string(command, entry->words[i]);
}

static void add_made(Json *line, const Entry *entry, const EntryAnswer *answer)
{
    json_set_double(line, "predicted_us", answer->outcome.predicted_us);
    if (answer->outcome.measured_us > 0)
        json_set_double(line, "measured_us", answer->outcome.measured_us);
    Json *files = json_set_array(line, "files");
    for (int i = 0; i < entry->file_count; i++) {
        Json *file = json_push_object(files);
        json_set_string(file, "path", entry->files[i]);
        json_set_string(file, "sha256", answer->hashes[i]);
    }
}

static Result result_of(Arena *arena, const Task *task, const char *failure, int exit_code)
{
    const Entry *entry = task->job->entry;
    Json *line = json_object();
    add_inputs(line, entry);
    json_set_string(line, "content", task->job->content);
    json_set_string(line, "status", failure ? "failed" : "done");
    if (failure) {
        json_set_int(line, "exit_code", exit_code);
        json_set_string(line, "reason", failure);
    } else {
        add_made(line, entry, task->answer);
    }
    Result result = {entry->output, task->job->content, json_text(arena, line, false), .done = !failure};
    json_free(line);
    return result;
}

// ---- talk ----

/* What a kernel said, below its name; a failure also under -q. */
static void say(const char *output, const char *what, const char *messages)
{
    progress_end();
    fprintf(stderr, "rollerc: %s: %s%s%s\n", output, what, *messages ? ":\n" : "", messages);
}

static void say_how_far(BatchRun *run)
{
    int done = run->report.made + run->report.failed;
    double seconds = seconds_now() - run->start, left = seconds / done * (run->count - done);
    if (!isatty(STDERR_FILENO) && seconds_now() - run->said < PLAIN_LINE_SECONDS)
        return;
    run->said = seconds_now();
    if (done < run->count)
        progress("%d of %d kernels, %d failed, %.0f s left", done, run->count, run->report.failed, left);
    else
        progress_end();
}

// ---- the parent ----

/* One write, so that a line is there or not. */
static void append(const BatchRun *run, const char *line)
{
    const char *text = arena_printf(run->arena, "%s\n", line);
    size_t length = strlen(text);
    if (run->file >= 0 && write(run->file, text, length) != (ssize_t)length)
        fatal(EXIT_MACHINE, "cannot write '%s': %s", run->options->results, strerror(errno));
}

static void finish(BatchRun *run, Worker *worker, Task *task)
{
    int exit_code;
    const char *messages = messages_of(run->arena, task), *output = task->job->entry->output;
    const char *failure = failure_of(run->arena, worker, messages, &exit_code);
    Result result = result_of(run->arena, task, failure, exit_code);
    results_add(run->arena, run->results, result);
    append(run, result.line);
    run->report.made += !failure;
    run->report.failed += failure != NULL;
    if (exit_code > run->report.exit_code)
        run->report.exit_code = exit_code;
    if (failure)
        say(output, "failed", failure);
    else if (diag_is_verbose() || (*messages && !diag_is_quiet()))
        say(output, "made", messages);
    say_how_far(run);
    worker->state = WORKER_IDLE;
}

/* After a failure the kernels in progress are finished, and no others are begun. */
static bool may_go_on(const BatchRun *run) { return !run->report.failed || run->options->keep_going; }

/* Two kernels that are timed at once would both be slow. */
static int slots_for(const BatchOptions *options, const Job *jobs, int count)
{
    for (int i = 0; i < count; i++)
        if (jobs[i].entry->profiled)
            return 1;
    return options->jobs;
}

static void run_all(BatchRun *run, const Job *jobs)
{
    int slots = slots_for(run->options, jobs, run->count);
    for (int next = 0, running = 0; (next < run->count && may_go_on(run)) || running > 0;) {
        for (int i = 0; i < slots && next < run->count && may_go_on(run); i++) {
            if (run->workers[i].state != WORKER_IDLE)
                continue;
            run->tasks[i].job = &jobs[next++];
            run->tasks[i].options = run->options;
            run->tasks[i].compilers = worker_cores() > slots ? worker_cores() / slots : 1;
            if (start(&run->workers[i], &run->tasks[i]))
                running++;
            else
                finish(run, &run->workers[i], &run->tasks[i]);
        }
        int ended = running > 0 ? worker_wait(run->workers, slots) : -1;
        if (ended >= 0 && run->workers[ended].state != WORKER_RUNNING) {
            finish(run, &run->workers[ended], &run->tasks[ended]);
            running--;
        }
    }
}

RunReport run(Arena *arena, const BatchOptions *options, const Job *jobs, int count, Results *results)
{
    BatchRun *run = NEW(arena, BatchRun);
    *run = (BatchRun){.arena = arena,
                 .options = options,
                 .results = results,
                 .count = count,
                 .file = -1,
                 .start = seconds_now(),
                 .said = seconds_now()};
    if (results_are_kept(options->results)) {
        run->file = open(options->results, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
        if (run->file < 0)
            fatal(EXIT_MACHINE, "cannot write '%s': %s", options->results, strerror(errno));
    }
    run_all(run, jobs);
    for (int i = 0; i < options->jobs; i++)
        if (run->tasks[i].answer) {
            worker_unshare(run->tasks[i].answer, sizeof *run->tasks[i].answer);
            close(run->tasks[i].messages);
        }
    if (run->file >= 0)
        close(run->file);
    return run->report;
}
