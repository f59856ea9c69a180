#include "front/onnx/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"

Mapped mapped_open(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status = {0};
    if (file < 0 || fstat(file, &status) != 0)
        fatal(EXIT_INPUT, "cannot read '%s': %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        fatal(EXIT_INPUT, "cannot read '%s': it is no regular file", path);
    Mapped mapped = {"", (size_t)status.st_size};
    if (mapped.length) {
        void *bytes = mmap(NULL, mapped.length, PROT_READ, MAP_PRIVATE, file, 0);
        if (bytes == MAP_FAILED)
            fatal(errno == ENOMEM ? EXIT_MACHINE : EXIT_INPUT, "cannot read '%s': %s", path, strerror(errno));
        mapped.bytes = bytes;
    }
    close(file);
    return mapped;
}

void mapped_close(Mapped file)
{
    if (file.length)
        munmap((void *)file.bytes, file.length);
}

/* Where the path leads, links followed; the folder of `model` with a '/' behind it. */
static bool lies_below(const char *model, const char *path)
{
    char folder[PATH_MAX], resolved[PATH_MAX], *real_model = realpath(model, folder);
    char *slash = real_model ? strrchr(folder, '/') : NULL;
    if (!slash || !realpath(path, resolved))
        return false;
    return strncmp(folder, resolved, (size_t)(slash - folder) + 1) == 0;
}

Mapped mapped_external(Arena *arena, const char *model, const char *tensor, const char *location,
                       int64_t offset, int64_t length)
{
    const char *slash = strrchr(model, '/');
    const char *path = arena_printf(arena, "%.*s%s", slash ? (int)(slash + 1 - model) : 0, model, location);
    if (!*location || *location == '/')
        fatal(EXIT_INPUT, "tensor '%s' lies in '%s', which is not below the model's folder", tensor,
              location);
    if (access(path, R_OK) != 0)
        fatal(EXIT_INPUT, "tensor '%s' lies in '%s', which cannot be read: %s", tensor, path,
              strerror(errno));
    if (!lies_below(model, path))
        fatal(EXIT_INPUT, "tensor '%s' lies in '%s', which is not below the model's folder", tensor,
              location);
    Mapped file = mapped_open(path);
    if (offset < 0 || (uint64_t)offset > file.length ||
        (length >= 0 && (uint64_t)length > file.length - (uint64_t)offset))
        fatal(EXIT_INPUT, "tensor '%s' reaches beyond the end of '%s', which has %zu bytes", tensor, path,
              file.length);
    return (Mapped){(const char *)file.bytes + offset,
                    length < 0 ? file.length - (size_t)offset : (size_t)length};
}
