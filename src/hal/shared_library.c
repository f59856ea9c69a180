#include "hal/shared_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const folder_variables[] = {"ROLLERC_CUDA_PATH", "CUDA_PATH", "CUDA_HOME"};
static const char *const layouts[] = {"lib64", "lib"};   // toolkit, wheel

enum {
    VARIABLES = sizeof folder_variables / sizeof *folder_variables,
    LAYOUTS = sizeof layouts / sizeof *layouts,
};

static void *open_below(const char *folder, const char *const *names)
{
    char path[PATH_MAX];
    for (int layout = 0; layout < LAYOUTS; layout++)
        for (int i = 0; names[i]; i++) {
            int length = snprintf(path, sizeof path, "%s/%s/%s", folder, layouts[layout], names[i]);
            void *library = length < (int)sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
            if (library)
                return library;
        }
    return NULL;
}

static void *open_first(const char *const *names)
{
    void *library = NULL;
    for (int i = 0; i < VARIABLES && !library; i++) {
        const char *folder = getenv(folder_variables[i]);
        if (folder && *folder)
            library = open_below(folder, names);
    }
    if (!library)
        library = open_below("/usr/local/cuda", names);
    for (int i = 0; names[i] && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static void say_missing(const char *const *names, char *reason, size_t bytes)
{
    int length = snprintf(reason, bytes, "found no");
    for (int i = 0; names[i] && length < (int)bytes; i++)
        length += snprintf(reason + length, bytes - (size_t)length, "%s %s", i ? "," : "", names[i]);
    if (length < (int)bytes)
        snprintf(
            reason + length, bytes - (size_t)length,
            " below $ROLLERC_CUDA_PATH, $CUDA_PATH, $CUDA_HOME or /usr/local/cuda, nor on the linker's path");
}

bool library_open(const char *const *names, const LibrarySymbol *symbols, int count, void *table,
                  char *reason, size_t reason_bytes)
{
    void *library = open_first(names);
    if (!library) {
        say_missing(names, reason, reason_bytes);
        return false;
    }
    for (int i = 0; i < count; i++) {
        void *function = dlsym(library, symbols[i].name);
        if (!function && !symbols[i].optional) {
            snprintf(reason, reason_bytes, "%s has no %s: it is too old", names[0], symbols[i].name);
            return false;
        }
        memcpy((char *)table + symbols[i].offset, &function, sizeof function);
    }
    return true;
}
