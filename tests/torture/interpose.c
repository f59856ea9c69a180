// Fails the N-th allocation or the N-th file operation of the program it is preloaded into.
//
//   TORTURE_REPORT=FILE           counters go here (mapped, so they survive any kind of end)
//   TORTURE_ALLOC=N               fail allocation number N, from 1; 0: only count
//   TORTURE_ALLOC_FROM=1          … and every later one
//   TORTURE_IO=CALL:N:HOW         CALL is open, write, fsync, rename, close or any; HOW is an errno's number,
//                                 "short" (half of the bytes are written) or "exit" (the process ends there)
//
// Child processes are not tortured: the preload is taken out of the environment at the start.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { IO_OPEN, IO_WRITE, IO_FSYNC, IO_RENAME, IO_CLOSE, IO_KINDS };
static const char *const io_name[IO_KINDS] = {"open", "write", "fsync", "rename", "close"};

/* As tests/torture/torture.py reads it. */
typedef struct Report {
    int64_t allocations, injected, io[IO_KINDS];
} Report;

static Report unmapped;
static Report *report = &unmapped;
static int64_t fail_allocation;
static bool fail_from;
static bool armed;

static int io_kind = -1;   // IO_KINDS: any
static int64_t io_number;
static int io_errno;
static bool io_short, io_exit;

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);

static void read_io_order(const char *order)
{
    char call[16], how[16];
    long number;
    if (!order || sscanf(order, "%15[a-z]:%ld:%15s", call, &number, how) != 3)
        return;
    io_kind = IO_KINDS;
    for (int kind = 0; kind < IO_KINDS; kind++)
        if (strcmp(call, io_name[kind]) == 0)
            io_kind = kind;
    io_number = number;
    io_short = strcmp(how, "short") == 0;
    io_exit = strcmp(how, "exit") == 0;
    io_errno = atoi(how);
}

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv("TORTURE_REPORT"), *number = getenv("TORTURE_ALLOC");
    int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR, 0) : -1;
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return;
    report = map;
    fail_allocation = number ? atol(number) : 0;
    fail_from = getenv("TORTURE_ALLOC_FROM") != NULL;
    read_io_order(getenv("TORTURE_IO"));
    unsetenv("LD_PRELOAD");
    armed = true;
}

// ---- memory ----

static bool allocation_fails(void)
{
    if (!armed)
        return false;
    int64_t number = ++report->allocations;
    if (!fail_allocation || number < fail_allocation || (number > fail_allocation && !fail_from))
        return false;
    report->injected++;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return allocation_fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return allocation_fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    return allocation_fails() ? NULL : __libc_realloc(memory, size);
}

// ---- files ----

static bool io_fails(int kind)
{
    if (!armed)
        return false;
    int64_t number = ++report->io[kind];
    if (io_kind == IO_KINDS) {
        number = 0;
        for (int i = 0; i < IO_KINDS; i++)
            number += report->io[i];
    } else if (io_kind != kind) {
        return false;
    }
    if (number != io_number)
        return false;
    report->injected++;
    if (io_exit)
        _exit(99);
    errno = io_errno;
    return true;
}

#define REAL(name, type) ((type)dlsym(RTLD_NEXT, name))

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    return io_fails(IO_OPEN) ? -1 : REAL("open", int (*)(const char *, int, ...))(path, flags, mode);
}

int mkostemp(char *path, int flags)
{
    return io_fails(IO_OPEN) ? -1 : REAL("mkostemp", int (*)(char *, int))(path, flags);
}

ssize_t write(int fd, const void *bytes, size_t length)
{
    if (fd != STDERR_FILENO && io_fails(IO_WRITE)) {
        if (!io_short)
            return -1;
        length = length > 1 ? length / 2 : length;
    }
    return REAL("write", ssize_t (*)(int, const void *, size_t))(fd, bytes, length);
}

int fsync(int fd)
{
    return io_fails(IO_FSYNC) ? -1 : REAL("fsync", int (*)(int))(fd);
}

int rename(const char *from, const char *to)
{
    return io_fails(IO_RENAME) ? -1 : REAL("rename", int (*)(const char *, const char *))(from, to);
}

/* As the kernel does it: the descriptor is gone even when the call fails. */
int close(int fd)
{
    bool fails = io_fails(IO_CLOSE);
    int error = errno;
    int result = REAL("close", int (*)(int))(fd);
    errno = error;
    return fails ? -1 : result;
}
