#include "base/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/path.h"

// ---- what must not outlive the process ----

enum { MAX_TEMPS = 32 };   // a run writes at most 16 artefacts and makes one folder

typedef struct Temp {
    char path[PATH_MAX];
    volatile sig_atomic_t owner;   // the process that removes it, 0: free. A forked child must leave its parent's alone
} Temp;

static Temp temps[MAX_TEMPS];

/* Only system calls from here to on_signal(): all of it also runs inside a signal handler. */
static void remove_tree(int parent, const char *name)
{
    int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return;
    _Alignas(struct dirent64) char entries[4096];
    for (ssize_t count; (count = getdents64(folder, entries, sizeof entries)) > 0;)
        for (ssize_t at = 0; at < count;) {
            const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
            at += entry->d_reclen;
            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                continue;
            if (unlinkat(folder, entry->d_name, 0) != 0)
                remove_tree(folder, entry->d_name);
        }
    close(folder);
    unlinkat(parent, name, AT_REMOVEDIR);
}

static void remove_temps(void)
{
    pid_t self = getpid();
    for (Temp *temp = temps; temp < temps + MAX_TEMPS; temp++)
        if (temp->owner == self) {
            if (unlink(temp->path) != 0)
                remove_tree(AT_FDCWD, temp->path);
            temp->owner = 0;
        }
}

enum {
    MAX_CHILDREN = 64,   // as many as compile at once
    TERM_TICKS = 30,     // of 10 ms, until a child is killed that does not end;
    KILL_TICKS = 40,     // a second is what an interrupt may take
};

static volatile sig_atomic_t children[MAX_CHILDREN];   // process ids, 0: free. Each leads a group of its own
static volatile sig_atomic_t children_owner;           // a forked child must leave its parent's alone

static void replace_child(pid_t old, pid_t new)
{
    if (children_owner != getpid())
        for (int i = 0; i < MAX_CHILDREN; i++)
            children[i] = 0;
    children_owner = getpid();
    for (int i = 0; i < MAX_CHILDREN; i++)
        if (children[i] == old) {
            children[i] = new;
            return;
        }
}

void output_own_child(pid_t child)
{
    replace_child(0, child);
}

void output_disown_child(pid_t child)
{
    replace_child(child, 0);
}

static bool children_left(void)
{
    bool left = false;
    for (int i = 0; i < MAX_CHILDREN; i++)
        left |= children[i] && waitpid(children[i], NULL, WNOHANG) == 0;
    return left;
}

/* Sends them a signal, and waits so long at most for all to end. */
static void end_children_by(int number, int ticks)
{
    for (int i = 0; i < MAX_CHILDREN; i++)
        if (children[i]) {
            kill(-children[i], number);
            if (waitpid(children[i], NULL, WNOHANG) == 0)
                kill(children[i], number);   // should it not have its group yet
        }
    while (ticks-- > 0 && children_left())
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

static void end_children(void)
{
    if (children_owner != getpid())
        return;
    end_children_by(SIGTERM, TERM_TICKS);
    end_children_by(SIGKILL, KILL_TICKS);
}

static void on_signal(int number)
{
    end_children();
    remove_temps();
    _exit(128 + number);
}

/* assert() has said what is wrong. */
static void on_abort(int number)
{
    static const char message[] = "rollerc: this is a bug in rollerc\n";
    (void)number;
    remove_temps();
    ssize_t ignored = write(STDERR_FILENO, message, sizeof message - 1);
    (void)ignored;
    _exit(EXIT_BUG);
}

/* write() then fails with EPIPE or EFBIG; a handler, unlike SIG_IGN, is not inherited by child processes. */
static void on_failed_write(int number)
{
    (void)number;
}

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { ENDING_SIGNALS = sizeof ending_signals / sizeof *ending_signals };

/* Between a file's birth and its entry in `temps`, and between the renames of a set, no signal may get in. */
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

/* A free row, with `path` written into it for mkostemp() or mkdtemp() to complete. */
static Temp *temp_reserve(const char *path)
{
    static bool registered;
    if (!registered && atexit(remove_temps) != 0)
        fatal(EXIT_MACHINE, "out of memory");
    registered = true;
    for (Temp *temp = temps; temp < temps + MAX_TEMPS; temp++)
        if (!temp->owner) {
            if (strlen(path) >= sizeof temp->path)
                fatal(EXIT_MACHINE, "cannot write '%s': %s", path, strerror(ENAMETOOLONG));
            strcpy(temp->path, path);
            return temp;
        }
    fatal(EXIT_BUG, "more than %d temporary files", MAX_TEMPS);
}

char *temp_dir_make(Arena *arena)
{
    const char *base = getenv("TMPDIR");
    if (!base || !*base)
        base = "/tmp";
    Temp *temp = temp_reserve(arena_printf(arena, "%s/rollerc-XXXXXX", base));
    sigset_t before = hold_signals();
    bool made = mkdtemp(temp->path) != NULL;
    int error = errno;
    temp->owner = made ? getpid() : 0;
    release_signals(before);
    if (!made)
        fatal(EXIT_MACHINE, "cannot make a temporary folder in '%s': %s", base, strerror(error));
    return arena_strdup(arena, temp->path);
}

// ---- the end of the process ----

static void check_stdout(void)
{
    bool failed = ferror(stdout) != 0;
    if (fflush(stdout) == 0 && !failed)
        return;
    if (errno != EPIPE)   // a pipe whose reader has read enough
        fprintf(stderr, "rollerc: error: cannot write to stdout: %s\n", strerror(errno));
    remove_temps();
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
    for (int i = 0; i < ENDING_SIGNALS; i++) {
        struct sigaction now;
        if (sigaction(ending_signals[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)   // nohup, `&` in scripts
            sigaction(ending_signals[i], &(struct sigaction){.sa_handler = on_signal}, NULL);
    }
    sigaction(SIGABRT, &(struct sigaction){.sa_handler = on_abort}, NULL);
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = on_failed_write}, NULL);
    sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = on_failed_write}, NULL);   // `ulimit -f`
    atexit(check_stdout);
}

// ---- one output ----

typedef struct Output {
    const char *path;     // as the user wrote it
    const char *target;   // the same behind symbolic links
    const char *bytes;
    size_t length;
    Temp *temp;           // staged here; NULL: written directly, or nothing to do
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
    fatal(EXIT_MACHINE, "cannot write '%s': %s", is_stdout(path) ? "<stdout>" : path, strerror(error));
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

static bool holds_already(const char *path, const struct stat *status, const char *bytes, size_t length)
{
    if ((size_t)status->st_size != length)
        return false;
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    char piece[8192];
    size_t at = 0, got;
    while ((got = fread(piece, 1, sizeof piece, file)) > 0) {
        if (got > length - at || memcmp(piece, bytes + at, got) != 0)
            break;
        at += got;
    }
    fclose(file);
    return got == 0 && at == length;
}

static mode_t mode_by_umask(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* A fresh file beside `target`, open for writing; -1: there can be none, and errno says why. */
static int open_temp(Arena *arena, const char *target, Temp **temp)
{
    const char *slash = strrchr(target, '/');
    int folder_length = slash ? (int)(slash - target) + 1 : 0;
    *temp = temp_reserve(arena_printf(arena, "%.*s.rollerc-XXXXXX", folder_length, target));
    sigset_t before = hold_signals();
    int fd = mkostemp((*temp)->path, O_CLOEXEC);
    int error = errno;
    (*temp)->owner = fd >= 0 ? getpid() : 0;
    release_signals(before);
    errno = error;
    return fd;
}

static Temp *stage_in_temp(Arena *arena, const Output *output, mode_t mode)
{
    Temp *temp;
    int fd = open_temp(arena, output->target, &temp);
    if (fd < 0)
        cannot_write(output->path, errno);
    if (!write_all(fd, output->bytes, output->length) || fchmod(fd, mode) != 0 || !sync_file(fd)) {
        int error = errno;
        close(fd);
        cannot_write(output->path, error);
    }
    if (!close_file(fd))
        cannot_write(output->path, errno);
    return temp;
}

bool output_try_write(const char *path, const char *bytes, size_t length)
{
    Arena *arena = arena_new();
    Temp *temp;
    int fd = open_temp(arena, path, &temp);
    arena_free(arena);
    if (fd < 0)
        return false;
    bool whole = write_all(fd, bytes, length);
    whole &= close_file(fd);
    sigset_t before = hold_signals();
    whole = whole && rename(temp->path, path) == 0;
    if (!whole)
        unlink(temp->path);
    temp->owner = 0;
    release_signals(before);
    return whole;
}

static void write_directly(const Output *output)
{
    bool to_stdout = is_stdout(output->path);
    if (to_stdout && fflush(stdout) != 0)
        cannot_write(output->path, errno);
    int fd = to_stdout ? STDOUT_FILENO : open(output->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || !write_all(fd, output->bytes, output->length))
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
        output->temp = stage_in_temp(arena, output, mode_by_umask());
        return;
    }
    // A rename could replace a file that is read-only all the same, but it was protected on purpose.
    if (access(output->target, W_OK) != 0)
        cannot_write(output->path, errno);
    if (!holds_already(output->target, &found, output->bytes, output->length))
        output->temp = stage_in_temp(arena, output, found.st_mode & 0777);
}

void output_stage(OutputSet *set, const char *path, const char *bytes, size_t length)
{
    Output *output = NEW(set->arena, Output);
    *output = (Output){.path = path, .bytes = bytes, .length = length};
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

void output_commit(OutputSet *set)
{
    for (const Output *output = set->first; output; output = output->next)
        if (output->direct)
            write_directly(output);

    sigset_t before = hold_signals();
    for (Output *output = set->first; output; output = output->next)
        if (output->temp) {
            if (rename(output->temp->path, output->target) != 0)
                cannot_write(output->path, errno);
            output->temp->owner = 0;
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
