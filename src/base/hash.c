#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <sha256.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(HASH_DIGITS + 1 == SHA256_DIGEST_STRING_LENGTH, "a digest is 64 digits and their end");

char *hash_of(Arena *arena, const char *bytes, size_t length)
{
    char *digits = arena_alloc(arena, HASH_DIGITS + 1);
    return SHA256Data((const uint8_t *)bytes, length, digits);
}

/* A pipe would wait for a writer, and what is read from it is gone. */
static FILE *open_file(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *file = fd >= 0 && fstat(fd, &status) == 0 && !S_ISFIFO(status.st_mode) ? fdopen(fd, "rb") : NULL;
    if (fd >= 0 && !file) {
        close(fd);
        errno = EINVAL;
    }
    return file;
}

char *hash_of_file(Arena *arena, const char *path)
{
    FILE *file = open_file(path);
    if (!file)
        return NULL;
    SHA256_CTX state;
    SHA256Init(&state);
    char piece[16384];
    for (size_t got; (got = fread(piece, 1, sizeof piece, file)) > 0;)
        SHA256Update(&state, (const uint8_t *)piece, got);
    bool whole = !ferror(file);
    fclose(file);
    return whole ? SHA256End(&state, arena_alloc(arena, HASH_DIGITS + 1)) : NULL;
}
