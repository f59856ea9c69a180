// Any bytes as a ranking: an error or an explanation, never a crash. What was read of a refused one is not given back, as a
// program that ends does not.
//
//   clang -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Isrc -I/usr/include/cjson tests/fuzz/fuzz_ranking.c \
//         src/explain/*.c src/base/*.c build/embedded.c \
//         -lcjson -lmd -lm -o fuzz_ranking && ASAN_OPTIONS=detect_leaks=0 ./fuzz_ranking corpus rankings
#include <setjmp.h>
#include <stdint.h>

#include "base/diag.h"
#include "explain/explain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void leave(int exit_code, const char *message, void *context)
{
    (void)exit_code;
    (void)message;
    longjmp(*(jmp_buf *)context, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new();
    jmp_buf error;
    diag_configure((DiagOptions){.quiet = true, .on_fatal = leave, .context = &error});
    if (!setjmp(error)) {
        const Source *source = source_from_text(arena, "fuzz.json", (const char *)data, size);
        const Report *report = report_read(arena, source);
        explain_text(arena, report);
        explain_page(arena, report);
    }
    arena_free(arena);
    return 0;
}
