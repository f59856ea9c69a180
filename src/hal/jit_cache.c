#include "hal/jit_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/hash.h"
#include "base/output.h"
#include "base/path.h"
#include "base/strbuf.h"

// ---- the folder ----

/* Whatever the umask, nobody else may write to what is made here. */
static void make_folder(Arena *arena, const char *folder)
{
    mode_t before = umask(0);
    umask(before | S_IWGRP | S_IWOTH);
    bool made = path_make_folders(arena, folder);
    umask(before);
    if (!made)
        fatal(EXIT_MACHINE, "cannot make the cache '%s': %s", folder, strerror(errno));
}

/* Nobody else can put code there. What `holds` the folder of the entries may be the system's, such as /tmp,
   if names in it belong to those who gave them. */
static bool is_own(const char *folder, bool holds)
{
    struct stat status;
    if (stat(folder, &status) != 0)
        fatal(EXIT_MACHINE, "cannot use the cache '%s': %s", folder, strerror(errno));
    bool mine = status.st_uid == geteuid() || (holds && status.st_uid == 0);
    bool closed = !(status.st_mode & (S_IWGRP | S_IWOTH)) || (holds && status.st_mode & S_ISVTX);
    if (!mine)
        diag_warning((Loc){0},
                     "the cache '%s' belongs to another user, who could put any code there: it is not "
                     "used. Take a folder of your own",
                     folder);
    else if (!closed)
        diag_warning((Loc){0},
                     "others may write to the cache '%s', and could put any code there: it is not used. "
                     "chmod go-w",
                     folder);
    return mine && closed;
}

JitCache *jit_cache_open(Arena *arena, const char *folder, int64_t max_bytes)
{
    JitCache *cache = NEW(arena, JitCache);
    *cache = (JitCache){arena_printf(arena, "%s/nvrtc", folder), max_bytes};
    make_folder(arena, cache->folder);
    return is_own(folder, true) && is_own(cache->folder, false) ? cache : NULL;
}

static const char *path_of(Arena *arena, const JitCache *cache, const char *key)
{
    return arena_printf(arena, "%s/%s", cache->folder, key);
}

// ---- one entry: MARK, the hash of the rest, the rest: key, compiler, three lengths, all registers or not; log, PTX,
// cubin ----

static const char mark[] = "rollerc machine code 2\n";

enum {
    HEAD_BYTES = sizeof mark - 1 + HASH_DIGITS + 1,
    MAX_ENTRY_BYTES = 64 << 20,   // more than the parts of one may have in sum
};

static char *head_of(Arena *arena, const char *body, size_t length)
{
    return arena_printf(arena, "%s%s\n", mark, hash_of(arena, body, length));
}

void jit_cache_store(const JitCache *cache, const char *key, const JitResult *result)
{
    Arena *arena = arena_new();
    StrBuf body = strbuf_new(arena), entry = strbuf_new(arena);
    strbuf_printf(&body, "%s\n%s\n%zu %zu %zu %d\n", key, result->compiler, strlen(result->log),
                  result->ptx_length, result->cubin_length, result->all_registers);
    strbuf_puts(&body, result->log);
    strbuf_write(&body, result->ptx, result->ptx_length);
    strbuf_write(&body, (const char *)result->cubin, result->cubin_length);
    strbuf_puts(&entry, head_of(arena, body.text, body.length));
    strbuf_write(&entry, body.text, body.length);
    output_try_write(path_of(arena, cache, key), entry.text, entry.length);
    arena_free(arena);
}

/* NULL: it cannot be read, or is no file: a pipe would wait for a writer. One that is read counts as used
   now. */
static char *read_entry(Arena *arena, const char *path, size_t *length)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    char *text = NULL;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= MAX_ENTRY_BYTES) {
        *length = (size_t)status.st_size;
        text = arena_alloc(arena, *length + 1);
        size_t got = 0;
        for (ssize_t more; got < *length && (more = read(fd, text + got, *length - got)) > 0;)
            got += (size_t)more;
        *length = got;
        futimens(fd, NULL);
    }
    close(fd);
    return text;
}

/* What follows the hash, if all of it is as it was written under this key. */
static const char *checked_body(Arena *arena, const char *text, size_t length, const char *key)
{
    if (length < HEAD_BYTES + HASH_DIGITS)
        return NULL;
    const char *body = text + HEAD_BYTES;
    bool whole = memcmp(text, head_of(arena, body, length - HEAD_BYTES), HEAD_BYTES) == 0;
    return whole && memcmp(body, key, HASH_DIGITS) == 0 ? body : NULL;
}

/* What the line of the lengths says. */
typedef struct Lengths {
    size_t log, ptx, cubin;
    int all_registers;
} Lengths;

/* The parts, which come behind two lines. NULL: they are not as long as it says there, though the hash is
   right: another program wrote them. */
static const char *find_parts(const char *body, const char *end, Lengths *lengths)
{
    const char *compiler = body + HASH_DIGITS + 1, *line = memchr(compiler, '\n', (size_t)(end - compiler));
    const char *parts = line ? memchr(line + 1, '\n', (size_t)(end - line - 1)) : NULL;
    if (!parts || sscanf(line + 1, "%zu %zu %zu %d\n", &lengths->log, &lengths->ptx, &lengths->cubin,
                         &lengths->all_registers) != 4)
        return NULL;
    size_t rest = (size_t)(end - ++parts);
    bool whole = lengths->log <= rest && lengths->ptx <= rest && lengths->cubin <= rest &&
                 lengths->log + lengths->ptx + lengths->cubin == rest;
    return whole ? parts : NULL;
}

bool jit_cache_load(Arena *arena, const JitCache *cache, const char *key, JitResult *result)
{
    size_t length;
    Lengths lengths;
    const char *text = read_entry(arena, path_of(arena, cache, key), &length);
    const char *body = text ? checked_body(arena, text, length, key) : NULL;
    const char *parts = body ? find_parts(body, text + length, &lengths) : NULL;
    if (!parts)
        return false;
    const char *compiler = body + HASH_DIGITS + 1;
    *result = (JitResult){
        .status = JIT_DONE,
        .compiler = arena_strndup(arena, compiler, strcspn(compiler, "\n")),
        .log = arena_strndup(arena, parts, lengths.log),
        .ptx = arena_strndup(arena, parts + lengths.log, lengths.ptx),
        .ptx_length = lengths.ptx,
        .cubin = (const unsigned char *)parts + lengths.log + lengths.ptx,
        .cubin_length = lengths.cubin,
        .all_registers = lengths.all_registers != 0,
    };
    result->kernel_count = jit_read_log(arena, result->log, &result->kernels);
    return true;
}

// ---- the size of all ----

typedef struct CacheEntry {
    char *name;
    struct timespec used;
    int64_t bytes;
} CacheEntry;

typedef struct Listing {
    CacheEntry *entries;
    int count, capacity;
    int64_t bytes;
} Listing;

static void add_entry(Arena *arena, Listing *list, const char *name, const struct stat *status)
{
    if (list->count == list->capacity) {
        CacheEntry *larger = NEW_ARRAY(arena, CacheEntry, 2 * list->capacity + 64);
        for (int i = 0; i < list->count; i++)
            larger[i] = list->entries[i];
        list->entries = larger;
        list->capacity = 2 * list->capacity + 64;
    }
    list->entries[list->count++] = (CacheEntry){arena_strdup(arena, name), status->st_mtim, status->st_size};
    list->bytes += status->st_size;
}

static int by_use(const void *left, const void *right)
{
    const CacheEntry *a = left, *b = right;
    if (a->used.tv_sec != b->used.tv_sec)
        return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
    return a->used.tv_nsec < b->used.tv_nsec ? -1 : a->used.tv_nsec > b->used.tv_nsec;
}

/* What a writer that was killed has left ages like an entry, and goes like one. */
void jit_cache_trim(const JitCache *cache)
{
    DIR *folder = opendir(cache->folder);
    if (!folder)
        return;
    Arena *arena = arena_new();
    Listing list = {0};
    for (const struct dirent *found; (found = readdir(folder));) {
        struct stat status;
        if (fstatat(dirfd(folder), found->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(status.st_mode))
            add_entry(arena, &list, found->d_name, &status);
    }
    if (list.bytes > cache->max_bytes)
        qsort(list.entries, (size_t)list.count, sizeof *list.entries, by_use);
    for (int i = 0; i < list.count && list.bytes > cache->max_bytes; i++) {
        unlinkat(dirfd(folder), list.entries[i].name, 0);   // another process may have been first
        list.bytes -= list.entries[i].bytes;
    }
    arena_free(arena);
    closedir(folder);
}
