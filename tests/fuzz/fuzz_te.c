// Any bytes through lex, parse and lower: an error or a program, never a crash.
//
//   clang -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Isrc tests/fuzz/fuzz_te.c \
//         src/front/*.c src/ir/{tensor_op,print}.c src/base/{arena,diag,source,strbuf}.c \
//         -lm -o fuzz_te && ./fuzz_te corpus examples
#include <setjmp.h>
#include <stdint.h>

#include "base/diag.h"
#include "front/lower.h"
#include "front/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void leave(int exit_code, const char *message, void *context)
{
    (void)exit_code;
    (void)message;
    longjmp(*(jmp_buf *)context, 1);
}

static void compile_front(Arena *arena, const char *text, size_t size)
{
    const Source *source = source_from_text(arena, "fuzz.te", text, size);
    const Token *tokens = lex(arena, source);
    StrBuf out = strbuf_new(arena);
    tokens_print(&out, tokens);
    const Ast *ast = parse(arena, tokens);
    ast_print(&out, ast);
    program_print(&out, lower(arena, ast, NULL, 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new();
    jmp_buf error;
    diag_configure((DiagOptions){.quiet = true, .on_fatal = leave, .context = &error});
    if (!setjmp(error))
        compile_front(arena, (const char *)data, size);
    arena_free(arena);
    return 0;
}
