#include "hal/interp_compile.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/embedded.h"
#include "base/leftovers.h"
#include "base/output.h"
#include "base/strbuf.h"

extern char **environ;

enum { LOG_BYTES = 16 << 10 };   // of a compiler's messages that are looked at

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

#define MACHINE "#include \"twin.h\"\n#include \"handlers.h\"\n#include \"intrinsics.h\"\n"

/* Inputs, what is prepared, outputs and the workspace. */
static void write_call_args(StrBuf *out, const RuntimeSource *source)
{
    for (int i = 0; i < source->arg_count; i++)
        if (source->weight_count && i == source->weight_first)
            strbuf_printf(out, "args[%d], ", source->arg_count + BUFFER_PREPARED);
        else if (i < source->weight_first || i >= source->weight_first + source->weight_count)
            strbuf_printf(out, "args[%d], ", i);
    strbuf_printf(out, "args[%d]", source->arg_count + BUFFER_WORKSPACE);
}

/* NAME_graph, and the launches that it makes nodes of. */
static void write_graph_call(StrBuf *out, const RuntimeSource *source)
{
    strbuf_printf(out,
                  "\nextern \"C\" ROLLERC_EXPORT int call_graph(void **args)\n{\n    void *graph = nullptr;\n"
                  "    const int status = %s_graph(&graph, ",
                  source->name);
    write_call_args(out, source);
    strbuf_puts(out, ");\n    return status ? status : rollerc_interp::run_nodes();\n}\n");
}

/* The program. Only the generated launcher knows how many arguments it takes. */
static const char *program_text(Arena *arena, const RuntimeSource *source)
{
    StrBuf out = strbuf_new(arena);
    strbuf_printf(&out, MACHINE "#define %s" PRELUDE_SUFFIX " rollerc\n#include \"%s.cu\"\n\n", source->name,
                  source->name);
    strbuf_printf(&out,
                  "extern \"C\" ROLLERC_EXPORT int call_launcher(void **args)\n{\n    return %s_launch(",
                  source->name);
    write_call_args(&out, source);
    strbuf_puts(&out, ", nullptr);\n}\n");
    if (source->weight_count)
        strbuf_printf(&out,
                      "extern \"C\" ROLLERC_EXPORT int call_prepare(void **args)\n{\n"
                      "    return %s_prepare(args[%d], args[%d], args[%d], nullptr);\n}\n",
                      source->name, source->arg_count + BUFFER_WEIGHTS, source->arg_count + BUFFER_PREPARED,
                      source->arg_count + BUFFER_WORKSPACE);
    if (source->graph)
        write_graph_call(&out, source);
    return out.text;
}

static bool begins_with(const char *line, const char *end, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(end - line) >= length && memcmp(line, word, length) == 0;
}

/* The text with blank lines for its intrinsics, which intrinsics.h has. */
static StrBuf without_intrinsics(Arena *arena, const RuntimeSource *source)
{
    StrBuf out = strbuf_new(arena);
    bool inside = false;
    const char *end = source->text + source->length;
    for (const char *line = source->text, *next; line < end; line = next) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        next = newline ? newline + 1 : end;
        inside &= !begins_with(line, next, INTRINSICS_END);
        if (inside)
            strbuf_putc(&out, '\n');
        else
            strbuf_write(&out, line, (size_t)(next - line));
        inside |= begins_with(line, next, INTRINSICS_BEGIN);
    }
    return out;
}

static bool write_text(Arena *arena, const char *folder, const char *name, const char *text)
{
    return write_file(arena_printf(arena, "%s/%s", folder, name), text, strlen(text));
}

static bool write_sources(Arena *arena, const char *folder, const RuntimeSource *source)
{
    StrBuf text = without_intrinsics(arena, source);
    return write_embedded(arena, folder, "calls.h") && write_embedded(arena, folder, "twin.h") &&
           write_embedded(arena, folder, "intrinsics.h") && write_embedded(arena, folder, "arithmetic.h") &&
           write_embedded(arena, folder, "handlers.h") &&
           write_text(arena, folder, "program.cpp", program_text(arena, source)) &&
           write_file(arena_printf(arena, "%s/%s.cu", folder, source->name), text.text, text.length);
}

// ---- commands ----

static bool is_replaced(const char *variable)
{
    static const char *const replaced[] = {"LC_ALL=", "LANGUAGE=", "TMPDIR="};
    for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++)
        if (strncmp(variable, replaced[i], strlen(replaced[i])) == 0)
            return true;
    return false;
}

/* Ours, but in the language of the machine: messages of compilers are quoted. Their own temporary files go
   with the folder, whatever ends them. */
static char **environment(Arena *arena, const char *folder)
{
    int count = 0, kept = 0;
    while (environ[count])
        count++;
    char **copy = NEW_ARRAY(arena, char *, count + 3);
    for (int i = 0; i < count; i++)
        if (!is_replaced(environ[i]))
            copy[kept++] = environ[i];
    copy[kept++] = arena_strdup(arena, "LC_ALL=C");
    copy[kept] = arena_printf(arena, "TMPDIR=%s", folder);
    return copy;
}

/* Starts a command, in a group of its own, with its output in the folder's file `log`; false: it cannot be
   started. */
static bool start_command(Arena *arena, const char *folder, char *const argv[], const char *log, pid_t *child)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, arena_printf(arena, "%s/%s", folder, log),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    int error = posix_spawnp(child, argv[0], &actions, &attributes, argv, environment(arena, folder));
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error == 0)
        leftovers_add_child(*child);
    return error == 0;
}

/* Its exit status, as a shell would say it. */
static int wait_for_command(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    leftovers_drop_child(child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static const char *read_log(Arena *arena, const char *folder, const char *log)
{
    char text[LOG_BYTES + 1];
    FILE *file = fopen(arena_printf(arena, "%s/%s", folder, log), "rb");
    if (!file)
        return "";
    text[fread(text, 1, LOG_BYTES, file)] = '\0';
    fclose(file);
    return arena_strdup(arena, text);
}

// ---- objects, compiled side by side ----

typedef struct Build {
    RuntimeBuild build;
    const char *name, *log;
    const char *flags[5];
} Build;

/* A check that fails ends the program, and that is all: what is called instead, which says which check it was and
   where, costs the compiler a quarter of its time, and lines a tenth. They are compiled where something failed. */
typedef enum Failure { FAILURE_TRAPS, FAILURE_HAS_LINES, FAILURE_SPEAKS } Failure;
static const char *const FAILURES[][3] = {
    [FAILURE_TRAPS] = {"-fsanitize-undefined-trap-on-error", "-g0"},
    [FAILURE_HAS_LINES] = {"-fsanitize-undefined-trap-on-error", "-g1"},   // the code is the same
    [FAILURE_SPEAKS] = {"-DROLLERC_HANDLERS", "-g1"},
};

/* -O1 gives the smallest sum of compile and run time, unless that is long. Alignment is checked by the compiler, since
   x86 forgives it. In the plain build integers wrap as they do on GPUs; in the checked one an overflow of signed ones,
   which only indices are made of, is an error, so is an index past the end of an array, and every access is announced
   (-fsanitize=thread; the machine answers, not libtsan). */
#define CHECKED_FLAGS                                                                                       \
    "-fsanitize=thread,alignment,signed-integer-overflow,bounds", "-fno-sanitize-recover=all"
static const Build BUILDS[] = {
    {RUNTIME_PLAIN,
     "plain",
     "plain.log",
     {"-fwrapv", "-fsanitize=alignment", "-fno-sanitize-recover=all", NULL}},
    {RUNTIME_CHECKED,
     "checked",
     "checked.log",
     {CHECKED_FLAGS, NULL}},
    {RUNTIME_COUNTED, "counted", "counted.log", {CHECKED_FLAGS, "-DROLLERC_COUNTED", NULL}},
    {RUNTIME_SYNTAX, "syntax", "syntax.log", {"-fsyntax-only", NULL}},
};
enum { BUILD_COUNT = sizeof BUILDS / sizeof *BUILDS };

/* Most kernels take longer to compile than to run. Passes of GCC that spare them little are left out: a fifth of its
   time. As a pragma the same flags would be those of each function, and cost a third of that. */
static const char *const SPARED[] = {
    "-fno-forward-propagate", "-fno-if-conversion", "-fno-if-conversion2", "-fno-move-loop-invariants", "-fno-dse",
    "-fno-compare-elim", "-fno-combine-stack-adjustments", "-fno-cprop-registers", "-fno-reorder-blocks",
    "-fno-split-wide-types", "-fno-shrink-wrap", "-fno-rerun-cse-after-loop", "-fno-guess-branch-probability",
    "-fno-tree-dominator-opts", "-fira-algorithm=priority", "--param=max-combine-insns=2",
    "--param=tsan-instrument-func-entry-exit=0",   // calls that the machine ignores
    NULL};

static int add_args(Arena *arena, char **argv, int count, const char *const *more)
{
    for (int i = 0; more[i]; i++)
        argv[count++] = arena_strdup(arena, more[i]);
    return count;
}

static bool start_build(Arena *arena, const InterpObjects *objects, const RuntimeSource *source, const Build *build,
                        Failure failure, pid_t *child)
{
    enum { MAX_ARGS = 64 };
    static const char *const common[] = {
        "-x", "c++", "-std=c++17", "-w", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-exceptions",
        "-fno-rtti", "-fno-strict-aliasing", "-fno-math-errno", "-ffp-contract=off", NULL};
    char *argv[MAX_ARGS] = {arena_strdup(arena, objects->compiler)};
    int count = add_args(arena, argv, 1, common);
    argv[count++] = arena_strdup(arena, source->runs_long ? "-O2" : "-O1");
    if (objects->spares)
        count = add_args(arena, argv, count, SPARED);
    count = add_args(arena, argv, count, build->flags);
    count = add_args(arena, argv, count, FAILURES[failure]);
    argv[count++] = arena_printf(arena, "-DROLLERC_WARP=%d", source->limits.warp_size);
    argv[count++] = arena_printf(arena, "%s/program.cpp", objects->folder);
    argv[count++] = "-o";
    argv[count++] = arena_printf(arena, "%s/%s.so", objects->folder, build->name);
    argv[count++] = "-nodefaultlibs";   // no libtsan, no libubsan; libm brings libc
    argv[count++] = "-lm";
    argv[count++] = "-lgcc";
    return start_command(arena, objects->folder, argv, build->log, child);
}

/* The status of the first build that fails, 0 if none does; -1: the compiler cannot be run. */
static int run_builds(Arena *arena, const InterpObjects *objects, const RuntimeSource *source, Failure failure,
                      const Build **failed)
{
    pid_t children[BUILD_COUNT];
    bool started[BUILD_COUNT] = {false};
    int result = 0;
    for (int i = 0; i < BUILD_COUNT && result == 0; i++)
        if (source->builds & BUILDS[i].build) {
            started[i] = start_build(arena, objects, source, &BUILDS[i], failure, &children[i]);
            result = started[i] ? 0 : -1;
        }
    for (int i = 0; i < BUILD_COUNT; i++) {
        int status = started[i] ? wait_for_command(children[i]) : 0;
        if (status != 0 && result == 0) {
            result = status;
            *failed = &BUILDS[i];
        }
    }
    return result == 127 ? -1 : result;
}

/* Compilers say where a text is wrong: "kernel.cu:12:5: error: …". They say something else, or nothing, when
   they are killed or lack memory, space or a header: "fatal error: …", "ld: …", "collect2: error: …". */
static bool names_a_line(const char *log)
{
    static const char mark[] = ": error: ";
    for (const char *at = log; (at = strstr(at, mark)); at += strlen(mark)) {
        const char *number = at;
        while (number > log && isdigit((unsigned char)number[-1]))
            number--;
        if (number < at && number > log && number[-1] == ':')
            return true;
    }
    return false;
}

/* The same without the kernel. */
static bool compiles_the_machine(Arena *arena, const InterpObjects *objects, const RuntimeSource *source)
{
    const Build *failed;
    return write_text(arena, objects->folder, "program.cpp", MACHINE) &&
           run_builds(arena, objects, source, FAILURE_TRAPS, &failed) == 0;
}

/* Whether the text or the machine is why the compiler ends with `status`. */
static RuntimeStatus judge(Arena *arena, const InterpObjects *objects, const RuntimeSource *source, int status, const char *log,
                           const char **reason)
{
    *reason = *log ? arena_printf(arena, "%s ends with status %d:\n%s", objects->compiler, status, log)
                   : arena_printf(arena, "%s ends with status %d and without a word; is there space in %s?",
                                  objects->compiler, status, objects->folder);
    bool refused = names_a_line(log) && compiles_the_machine(arena, objects, source);
    return refused ? RUNTIME_WRONG : RUNTIME_MACHINE;
}

/* Its status, as of run_builds(). A compiler that does not know a flag says so, and names no line. */
static int try_compiler(Arena *arena, const RuntimeSource *source, InterpObjects *objects, const char **log)
{
    const Build *failed = NULL;
    for (objects->spares = !source->runs_long;; objects->spares = false) {
        int status = run_builds(arena, objects, source, FAILURE_TRAPS, &failed);
        *log = status > 0 ? read_log(arena, objects->folder, failed->log) : "";
        if (status != 1 || !objects->spares || names_a_line(*log))
            return status;
    }
}

RuntimeStatus interp_compile(Arena *arena, const RuntimeSource *source, InterpObjects *objects,
                             const char **reason)
{
    static const char *const compilers[] = {"c++", "g++", "clang++"};
    const char *folder = temp_dir_make(arena);
    if (!write_sources(arena, folder, source)) {
        *reason = arena_printf(arena, "cannot write to %s: %s", folder, strerror(errno));
        return RUNTIME_MACHINE;
    }
    *objects = (InterpObjects){
        .folder = folder,
        .plain = arena_printf(arena, "%s/plain.so", folder),
        .checked = arena_printf(arena, "%s/%s.so", folder, source->builds & RUNTIME_COUNTED ? "counted" : "checked"),
    };
    for (size_t i = 0; i < sizeof compilers / sizeof *compilers; i++) {
        const char *log;
        objects->compiler = compilers[i];
        int status = try_compiler(arena, source, objects, &log);
        if (status == 0)
            return RUNTIME_DONE;
        if (status > 0)
            return judge(arena, objects, source, status, log, reason);
    }
    *reason = "there is no C++ compiler: c++, g++ or clang++ must be on the PATH";
    return RUNTIME_MACHINE;
}

static bool compile_again(Arena *arena, const RuntimeSource *source, InterpObjects *objects, Failure failure)
{
    const Build *failed;
    objects->has_lines = run_builds(arena, objects, source, failure, &failed) == 0;
    return objects->has_lines;
}

bool interp_compile_speaking(Arena *arena, const RuntimeSource *source, InterpObjects *objects)
{
    return compile_again(arena, source, objects, FAILURE_SPEAKS);
}

// ---- lines ----

#define PRELUDE_SYMBOL "_ZN7rollerc"   // how the names of functions in namespace rollerc begin

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* addr2line names the innermost of inlined functions first, each by a line with its name and one with its
   place; those of the prelude, all in namespace rollerc, are passed over. */
const char *interp_source_line(Arena *arena, const RuntimeSource *source, InterpObjects *objects, unsigned pc)
{
    RuntimeSource checked = *source;
    checked.builds &= ~(unsigned)RUNTIME_PLAIN;
    if (!objects->has_lines && !compile_again(arena, &checked, objects, FAILURE_HAS_LINES))
        return NULL;
    static const char log[] = "line.log";
    char *argv[] = {"addr2line", "-i", "-f", "-e", arena_strdup(arena, objects->checked),
                    arena_printf(arena, "0x%x", pc - 1), NULL};   // the call before the return address
    pid_t child;
    if (!start_command(arena, objects->folder, argv, log, &child) || wait_for_command(child) != 0)
        return NULL;
    char *text = arena_strdup(arena, read_log(arena, objects->folder, log)), *rest;
    const char *found = NULL;
    for (char *name = strtok_r(text, "\n", &rest), *line; name; name = strtok_r(NULL, "\n", &rest)) {
        line = strtok_r(NULL, "\n", &rest);
        if (!line || line[0] == '?')
            continue;
        line[strcspn(line, " ")] = '\0';   // " (discriminator 2)"
        found = base_name(line);
        if (strncmp(name, PRELUDE_SYMBOL, strlen(PRELUDE_SYMBOL)) != 0)
            break;
    }
    return found;
}
