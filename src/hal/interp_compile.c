#include "hal/interp_compile.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/embedded.h"
#include "base/output.h"
#include "base/strbuf.h"

extern char **environ;

enum { LOG_BYTES = 2000 };   // of a compiler's messages that are quoted

static bool write_file(const char *path, const char *text, size_t length)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        return false;
    bool written = fwrite(text, 1, length, file) == length;
    return fclose(file) == 0 && written;
}

static bool write_embedded(Arena *arena, const char *folder, const char *name)
{
    const EmbeddedFile *file = embedded_find(arena_printf(arena, "src/hal/interp/%s", name));
    assert(file);
    return write_file(arena_printf(arena, "%s/%s", folder, name), file->text, file->length);
}

/* The one translation unit. Only the generated launcher knows how many arguments it takes. */
static const char *main_text(Arena *arena, const RuntimeSource *source)
{
    StrBuf out = strbuf_new(arena);
    strbuf_puts(&out, "#include \"twin.h\"\n#include \"kernel.cu\"\n#include \"runtime.cpp\"\n\n");
    strbuf_printf(&out, "int call_launcher(void **args)\n{\n    return %s_launch(", source->name);
    for (int i = 0; i < source->arg_count; i++)
        strbuf_printf(&out, "args[%d], ", i);
    strbuf_printf(&out, "args[%d], nullptr);\n}\n", source->arg_count);
    return out.text;
}

static bool write_sources(Arena *arena, const char *folder, const RuntimeSource *source)
{
    const char *text = main_text(arena, source);
    return write_embedded(arena, folder, "interface.h") &&
           write_embedded(arena, folder, "twin.h") &&
           write_embedded(arena, folder, "runtime.cpp") &&
           write_file(arena_printf(arena, "%s/kernel.cu", folder), source->text, source->length) &&
           write_file(arena_printf(arena, "%s/main.cpp", folder), text, strlen(text));
}

/* The exit status of the command, its output in the file `log`; -1: it cannot be run. */
static int run_command(char *const argv[], const char *log)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t child;
    int error = posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    int status;
    if (error != 0)
        return -1;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static const char *read_log(Arena *arena, const char *path)
{
    char text[LOG_BYTES + 1];
    FILE *file = fopen(path, "rb");
    if (!file)
        return "";
    text[fread(text, 1, LOG_BYTES, file)] = '\0';
    fclose(file);
    return arena_strdup(arena, text);
}

/* -O1 gives the smallest sum of compile and run time. Alignment is checked by the compiler, since
   x86 forgives it; wrapping integers are what GPUs do. */
static int run_compiler(Arena *arena, const char *compiler, const char *folder, int warp_size,
                        const char *log)
{
    char *argv[] = {
        arena_strdup(arena, compiler),
        "-x",
        "c++",
        "-std=c++17",
        "-O1",
        "-w",
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
        "-fno-exceptions",
        "-fno-rtti",
        "-fno-strict-aliasing",
        "-fwrapv",
        "-fno-math-errno",
        "-ffp-contract=off",
        "-fsanitize=alignment",
        "-fsanitize-undefined-trap-on-error",
        arena_printf(arena, "-DROLLERC_WARP=%d", warp_size),
        arena_printf(arena, "%s/main.cpp", folder),
        "-o",
        arena_printf(arena, "%s/kernel.so", folder),
        "-lm",
        NULL,
    };
    return run_command(argv, log);
}

RuntimeStatus interp_compile(Arena *arena, const RuntimeSource *source, const char **object,
                             const char **reason)
{
    static const char *const compilers[] = {"c++", "g++", "clang++"};
    const char *folder = temp_dir_make(arena);
    const char *log = arena_printf(arena, "%s/log", folder);
    if (!write_sources(arena, folder, source)) {
        *reason = arena_printf(arena, "cannot write to %s: %s", folder, strerror(errno));
        return RUNTIME_MACHINE;
    }
    for (size_t i = 0; i < sizeof compilers / sizeof *compilers; i++) {
        int status = run_compiler(arena, compilers[i], folder, source->limits.warp_size, log);
        if (status < 0 || status == 127)
            continue;
        *object = arena_printf(arena, "%s/kernel.so", folder);
        if (status == 0)
            return RUNTIME_DONE;
        *reason = arena_printf(arena, "%s ends with status %d:\n%s", compilers[i], status,
                               read_log(arena, log));
        return RUNTIME_WRONG;
    }
    *reason = "there is no C++ compiler: c++, g++ or clang++ must be on the PATH";
    return RUNTIME_MACHINE;
}
