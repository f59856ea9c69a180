// Any bytes as an ONNX model: an error, or a program and its weights, which the language takes or refuses; never a
// crash. run_onnx_fuzz.py builds it and runs it on seeds.
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/diag.h"
#include "front/lower.h"
#include "front/onnx/onnx.h"
#include "front/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LONGEST_TEXT = 1 << 20 };

static void leave(int exit_code, const char *message, void *context)
{
    (void)message;
    if (exit_code != EXIT_INPUT && exit_code != EXIT_USAGE)   // of bytes, and of names that are bound and not there
        abort();
    longjmp(*(jmp_buf *)context, 1);
}

static uint8_t sum_of(const char *bytes, size_t length)
{
    uint8_t sum = 0;
    for (size_t i = 0; i < length; i++)
        sum = (uint8_t)(sum + (uint8_t)bytes[i]);
    return sum;
}

static void import(Arena *arena, const uint8_t *data, size_t size)
{
    static volatile uint8_t read;
    static const OnnxBinding bindings[] = {{"N", "2"}, {"batch", "3"}};
    const OnnxOptions options = {.bindings = bindings,
                                 .binding_count = size % 3 == 0 ? 2 : 0,
                                 .precision = size % 2 ? DTYPE_F16 : DTYPE_F32,
                                 .io_precision = size % 5 == 0 ? DTYPE_BF16 : DTYPE_F32,
                                 .layout = size % 7 < 3 ? ONNX_LAYOUT_NHWC : ONNX_LAYOUT_AUTO};
    OnnxProgram program = onnx_import_bytes(arena, "fuzz.onnx", data, size, &options);
    read = sum_of(file_parts_join(arena, onnx_weights(arena, &program)), program.weight_bytes);   // all of them are there
    if (program.length < LONGEST_TEXT)
        lower(arena,
              parse(arena, lex(arena, source_from_text(arena, "fuzz.te", program.text, program.length))),
              NULL, 0);
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
