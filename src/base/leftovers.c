#include "base/leftovers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/diag.h"

enum {
    MAX_PATHS = 2048,     // 64 kernels of a batch at once, each of at most 16 artefacts and a folder
    MAX_CHILDREN = 512,   // the same 64, each with two compilers, or those of one kernel on 256 cores
    TERM_TICKS = 30,      // of 10 ms, until a child is killed that does not end;
    KILL_TICKS = 40,      // a second is what an interrupt may take
    REMOVE_TICKS = 20,    // of 10 ms, while a compiler that was just killed still writes into a folder
};

/* A row's owner is a process; 0: the row is free; negative: that process is still writing it. Pages that are
   never touched cost nothing. */
typedef struct Table {
    _Atomic pid_t child_owners[MAX_CHILDREN], path_owners[MAX_PATHS];
    _Atomic pid_t children[MAX_CHILDREN];
    char paths[MAX_PATHS][PATH_MAX];
} Table;

static Table *table;

static void tick(void) { nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL); }

// ---- paths: only system calls ----

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

static void remove_path(const char *path)
{
    if (unlink(path) == 0 || errno == ENOENT)
        return;
    remove_tree(AT_FDCWD, path);
    for (int i = 0; i < REMOVE_TICKS && access(path, F_OK) == 0; i++) {
        tick();
        remove_tree(AT_FDCWD, path);
    }
}

static void remove_paths(pid_t owner)
{
    for (int i = 0; i < MAX_PATHS; i++) {
        if (table->path_owners[i] == owner)
            remove_path(table->paths[i]);
        if (abs(table->path_owners[i]) == owner)
            table->path_owners[i] = 0;
    }
}

// ---- children: only system calls ----

static bool children_left(pid_t owner)
{
    bool left = false;
    for (int i = 0; i < MAX_CHILDREN; i++)
        left |= table->child_owners[i] == owner && waitpid(table->children[i], NULL, WNOHANG) == 0;
    return left;
}

/* Sends them a signal, and waits so long at most for all to end. */
static void end_children(pid_t owner, int number, int ticks)
{
    for (int i = 0; i < MAX_CHILDREN; i++) {
        pid_t child = table->children[i];
        if (table->child_owners[i] != owner)
            continue;
        kill(-child, number);
        if (waitpid(child, NULL, WNOHANG) == 0)
            kill(child, number);   // should it not have its group yet
    }
    while (ticks-- > 0 && children_left(owner))
        tick();
}

/* Of a process that has ended, or is about to: what it and its children left. */
static void clear_behind(pid_t owner)
{
    for (int i = 0; i < MAX_CHILDREN; i++) {
        if (abs(table->child_owners[i]) != owner)
            continue;
        bool whole = table->child_owners[i] > 0;
        table->child_owners[i] = 0;
        if (whole) {
            kill(-table->children[i], SIGKILL);
            clear_behind(table->children[i]);
        }
    }
    remove_paths(owner);
}

void leftovers_clear(void)
{
    if (!table)
        return;
    end_children(getpid(), SIGTERM, TERM_TICKS);
    end_children(getpid(), SIGKILL, KILL_TICKS);
    clear_behind(getpid());
}

// ---- the table ----

void leftovers_share(void)
{
    if (table)
        return;
    void *memory =
        mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || atexit(leftovers_clear) != 0)
        fatal(EXIT_MACHINE, "out of memory");
    table = memory;
}

/* A free row, which this process may write. */
static int reserve(_Atomic pid_t *owners, int count, const char *what)
{
    for (int i = 0; i < count; i++) {
        pid_t nobody = 0;
        if (atomic_compare_exchange_strong(&owners[i], &nobody, -getpid()))
            return i;
    }
    fatal(EXIT_BUG, "more than %d %s", count, what);
}

char *leftovers_add_path(const char *path)
{
    if (strlen(path) >= PATH_MAX)
        fatal(EXIT_MACHINE, "cannot write '%s': %s", path, strerror(ENAMETOOLONG));
    leftovers_share();
    int i = reserve(table->path_owners, MAX_PATHS, "temporary files");
    strcpy(table->paths[i], path);
    table->path_owners[i] = getpid();   // not before the path is whole: half of "/tmp/x" is "/tmp"
    return table->paths[i];
}

void leftovers_drop_path(const char *path) { table->path_owners[(path - table->paths[0]) / PATH_MAX] = 0; }

void leftovers_add_child(pid_t child)
{
    leftovers_share();
    int i = reserve(table->child_owners, MAX_CHILDREN, "child processes");
    table->children[i] = child;
    table->child_owners[i] = getpid();
}

void leftovers_drop_child(pid_t child)
{
    for (int i = 0; i < MAX_CHILDREN; i++)
        if (table->children[i] == child && table->child_owners[i] == getpid())
            table->child_owners[i] = 0;
    clear_behind(child);
}
