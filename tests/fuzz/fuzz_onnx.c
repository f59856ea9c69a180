// Any bytes as a model: an error or a program that lowers, never a crash.
#include <setjmp.h>
#include <stdint.h>

#include "base/diag.h"
#include "front/lower.h"
#include "front/onnx/onnx.h"
#include "front/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void leave(int exit_code, const char *message, void *context)
{
    (void)message;
    (void)exit_code;
    longjmp(*(jmp_buf *)context, 1);
}

static void import(Arena *arena, const uint8_t *data, size_t size)
{
    OnnxProgram program = onnx_import_bytes(arena, "fuzz.onnx", data, size, NULL, 0);
    const Source *source = source_from_text(arena, "fuzz.te", program.text, program.length);
    lower(arena, parse(arena, lex(arena, source)), NULL, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new();
    jmp_buf error;
    diag_configure((DiagOptions){.quiet = true, .on_fatal = leave, .context = &error});
    if (!setjmp(error))
        import(arena, data, size);
    arena_free(arena);
    return 0;
}
