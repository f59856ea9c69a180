#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/leftovers.h"
#include "base/path.h"

// ---- signals ----

static void on_signal(int number)
{
    leftovers_clear();
    _exit(128 + number);
}

/* assert() has said what is wrong. */
static void on_abort(int number)
{
    static const char message[] = "rollerc: this is a bug in rollerc\n";
    (void)number;
    leftovers_clear();
    ssize_t ignored = write(STDERR_FILENO, message, sizeof message - 1);
    (void)ignored;
    _exit(EXIT_BUG);
}

// Models and weights are mapped: what is gone from the file is found missing where it is used.
#define CUT_OFF "a file was cut off, or could not be read, while it was in use"

/* It dies of the signal all the same: who waits for it is to see that. */
static void on_crash(int number)
{
    static const char cut_off[] = "rollerc: error: " CUT_OFF "\n";
    leftovers_clear();
    if (number == SIGBUS && write(STDERR_FILENO, cut_off, sizeof cut_off - 1) < 0)
        _exit(EXIT_MACHINE);
    signal(number, SIG_DFL);
    raise(number);
}

/* write() then fails with EPIPE or EFBIG; a handler, unlike SIG_IGN, is not inherited by child processes. */
static void on_failed_write(int number)
{
    (void)number;
}

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { ENDING_SIGNALS = sizeof ending_signals / sizeof *ending_signals };

static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGQUIT, SIGXCPU};
enum { CRASH_SIGNALS = sizeof crash_signals / sizeof *crash_signals, CRASH_STACK_BYTES = 64 << 10 };

/* On a stack of its own, since the other one may be full. */
static void catch_crashes(void)
{
    static char stack[CRASH_STACK_BYTES];
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    for (int i = 0; i < CRASH_SIGNALS; i++) {
        struct sigaction now;
        if (sigaction(crash_signals[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)   // not a sanitizer's
            sigaction(crash_signals[i], &(struct sigaction){.sa_handler = on_crash, .sa_flags = SA_ONSTACK},
                      NULL);
    }
}

/* Between the renames of a set no signal may get in. */
static sigset_t hold_signals(void)
{
    sigset_t held, before;
    sigemptyset(&held);
    for (int i = 0; i < ENDING_SIGNALS; i++)
        sigaddset(&held, ending_signals[i]);
    sigprocmask(SIG_BLOCK, &held, &before);
    return before;
}

static void release_signals(sigset_t before)
{
    sigprocmask(SIG_SETMASK, &before, NULL);
}

char *temp_dir_make(Arena *arena)
{
    const char *base = getenv("TMPDIR");
    if (!base || !*base)
        base = "/tmp";
    char *path = leftovers_add_path(arena_printf(arena, "%s/rollerc-XXXXXX", base));
    if (!mkdtemp(path)) {
        int error = errno;
        leftovers_drop_path(path);
        fatal(EXIT_MACHINE, "cannot make a temporary folder in '%s': %s", base, strerror(error));
    }
    return arena_strdup(arena, path);
}

// ---- the end of the process ----

static void check_stdout(void)
{
    bool failed = ferror(stdout) != 0;
    if (fflush(stdout) == 0 && !failed)
        return;
    if (errno != EPIPE)   // a pipe whose reader has read enough
        fprintf(stderr, "rollerc: error: cannot write to stdout: %s\n", strerror(errno));
    leftovers_clear();
    _exit(EXIT_MACHINE);
}

/* If one of 0, 1, 2 is closed, the next file that is opened would become it and be written to by accident. */
static void occupy_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
            _exit(EXIT_MACHINE);
}

void output_install_signals(void)
{
    occupy_standard_streams();
    leftovers_share();
    for (int i = 0; i < ENDING_SIGNALS; i++) {
        struct sigaction now;
        if (sigaction(ending_signals[i], NULL, &now) == 0 &&
            now.sa_handler != SIG_IGN)   // nohup, `&` in scripts
            sigaction(ending_signals[i], &(struct sigaction){.sa_handler = on_signal}, NULL);
    }
    sigaction(SIGABRT, &(struct sigaction){.sa_handler = on_abort}, NULL);
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = on_failed_write}, NULL);
    sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = on_failed_write}, NULL);   // `ulimit -f`
    catch_crashes();
    atexit(check_stdout);
}

// ---- one output ----

typedef struct Output {
    const char *path;     // as the user wrote it
    const char *target;   // the same behind symbolic links
    FileParts parts;
    char *temp;           // staged here; NULL: written directly, or nothing to do
    int fd;               // of it, until the commit
    bool direct;          // stdout or a special file
    struct Output *next;
} Output;

struct OutputSet {
    Arena *arena;
    Output *first, **last;
};

static bool is_stdout(const char *path)
{
    return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0;
}

static _Noreturn void cannot_write(const char *path, int error)
{
    if (is_stdout(path) && error == EPIPE)
        exit(EXIT_MACHINE);   // in silence
    fatal(EXIT_MACHINE, "cannot write '%s': %s", is_stdout(path) ? "<stdout>" : path,
          error == EFAULT ? CUT_OFF : strerror(error));
}

static bool write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(fd, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        bytes += written;
        length -= (size_t)written;
    }
    return true;
}

static bool write_parts(int fd, FileParts parts)
{
    for (int i = 0; i < parts.count; i++)
        if (!write_all(fd, parts.items[i].bytes, parts.items[i].length))
            return false;
    return true;
}

static bool sync_file(int fd)
{
    int result;
    do
        result = fsync(fd);
    while (result != 0 && errno == EINTR);
    return result == 0 || errno == EINVAL;   // EINVAL: the file system cannot
}

/* On Linux the descriptor is gone even when close() was interrupted. */
static bool close_file(int fd)
{
    return close(fd) == 0 || errno == EINTR;
}

static bool goes_on_with(int fd, const FilePart *part)
{
    char seen[64 << 10];
    for (size_t at = 0; at < part->length;) {
        size_t left = part->length - at;
        ssize_t got = read(fd, seen, left < sizeof seen ? left : sizeof seen);
        if (got <= 0 || memcmp(seen, part->bytes + at, (size_t)got) != 0)
            return false;
        at += (size_t)got;
    }
    return true;
}

static bool holds_already(const char *path, const struct stat *status, FileParts parts)
{
    if ((size_t)status->st_size != file_parts_length(parts))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool same = fd >= 0;
    for (int i = 0; i < parts.count && same; i++)
        same = goes_on_with(fd, &parts.items[i]);
    if (fd >= 0)
        close(fd);
    return same;
}

static mode_t mode_by_umask(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* A fresh file beside `target`, open for writing; -1: there can be none, and errno says why. */
static int open_temp(Arena *arena, const char *target, char **temp)
{
    const char *slash = strrchr(target, '/');
    int folder_length = slash ? (int)(slash - target) + 1 : 0;
    *temp = leftovers_add_path(arena_printf(arena, "%.*s.rollerc-XXXXXX", folder_length, target));
    int fd = mkostemp(*temp, O_CLOEXEC);
    if (fd < 0)
        leftovers_drop_path(*temp);
    return fd;
}

/* The disk begins with it at once; the commit waits until it is there. */
static void stage_in_temp(Arena *arena, Output *output, mode_t mode)
{
    output->fd = open_temp(arena, output->target, &output->temp);
    if (output->fd < 0 || !write_parts(output->fd, output->parts) || fchmod(output->fd, mode) != 0)
        cannot_write(output->path, errno);
    sync_file_range(output->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

static void await_disk(const Output *output)
{
    if (!sync_file(output->fd) || !close_file(output->fd))
        cannot_write(output->path, errno);
}

bool output_try_write(const char *path, const char *bytes, size_t length)
{
    Arena *arena = arena_new();
    char *temp;
    int fd = open_temp(arena, path, &temp);
    arena_free(arena);
    if (fd < 0)
        return false;
    bool whole = write_all(fd, bytes, length);
    whole &= close_file(fd);
    sigset_t before = hold_signals();
    whole = whole && rename(temp, path) == 0;
    if (!whole)
        unlink(temp);
    leftovers_drop_path(temp);
    release_signals(before);
    return whole;
}

static void write_directly(const Output *output)
{
    bool to_stdout = is_stdout(output->path);
    if (to_stdout && fflush(stdout) != 0)
        cannot_write(output->path, errno);
    int fd = to_stdout ? STDOUT_FILENO : open(output->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || !write_parts(fd, output->parts))
        cannot_write(output->path, errno);
    if (!to_stdout && !close_file(fd))
        cannot_write(output->path, errno);
}

// ---- sets ----

OutputSet *output_set_new(Arena *arena)
{
    OutputSet *set = NEW(arena, OutputSet);
    set->arena = arena;
    set->last = &set->first;
    return set;
}

/* A regular file, or one that is not there yet. */
static void stage_file(Arena *arena, Output *output)
{
    struct stat found;
    output->target = path_target(arena, output->path);
    if (!output->target)
        cannot_write(output->path, ELOOP);
    if (stat(output->target, &found) != 0) {
        stage_in_temp(arena, output, mode_by_umask());
        return;
    }
    // A rename could replace a file that is read-only all the same, but it was protected on purpose.
    if (access(output->target, W_OK) != 0)
        cannot_write(output->path, errno);
    if (!holds_already(output->target, &found, output->parts))
        stage_in_temp(arena, output, found.st_mode & 0777);
}

void output_stage_parts(OutputSet *set, const char *path, FileParts parts)
{
    Output *output = NEW(set->arena, Output);
    *output = (Output){.path = path, .parts = parts};
    *set->last = output;
    set->last = &output->next;

    struct stat found;
    bool is_special = stat(path, &found) == 0 && !S_ISREG(found.st_mode);
    output->direct = is_stdout(path) || is_special;
    if (!is_stdout(path) && is_special && S_ISDIR(found.st_mode))
        cannot_write(path, EISDIR);
    if (!output->direct)
        stage_file(set->arena, output);
}

void output_stage(OutputSet *set, const char *path, const char *bytes, size_t length)
{
    FilePart *whole = NEW(set->arena, FilePart);
    *whole = (FilePart){bytes, length};
    output_stage_parts(set, path, (FileParts){whole, 1});
}

void output_commit(OutputSet *set)
{
    for (const Output *output = set->first; output; output = output->next)
        if (output->temp)
            await_disk(output);
    for (const Output *output = set->first; output; output = output->next)
        if (output->direct)
            write_directly(output);

    sigset_t before = hold_signals();
    for (Output *output = set->first; output; output = output->next)
        if (output->temp) {
            if (rename(output->temp, output->target) != 0)
                cannot_write(output->path, errno);
            leftovers_drop_path(output->temp);
        }
    release_signals(before);
    *set = (OutputSet){.arena = set->arena, .last = &set->first};
}

void output_write(const char *path, const char *bytes, size_t length)
{
    Arena *arena = arena_new();
    OutputSet *set = output_set_new(arena);
    output_stage(set, path, bytes, length);
    output_commit(set);
    arena_free(arena);
}
