// Any bytes through the device reader: an error or a device that can be printed, never a crash.
//
//   clang -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Isrc tests/fuzz/fuzz_device.c \
//         src/hal/{yaml,device,device_check,device_fields,device_print}.c \
//         src/base/{arena,diag,hash,source,strbuf}.c build/embedded.c \
//         -lyaml -lmd -o fuzz_device && ./fuzz_device corpus devices tests/errors
#include <setjmp.h>
#include <stdint.h>

#include "base/diag.h"
#include "hal/device.h"

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
        const Source *source = source_from_text(arena, "fuzz.yaml", (const char *)data, size);
        StrBuf out = strbuf_new(arena);
        device_print(&out, device_parse(arena, source));
    }
    arena_free(arena);
    return 0;
}
