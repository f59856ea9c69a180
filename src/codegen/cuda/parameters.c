#include "codegen/cuda/parameters.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

static void emit_value(StrBuf *out, bool is_bool, int64_t value)
{
    if (is_bool)
        strbuf_puts(out, value ? " = true" : " = false");
    else
        strbuf_printf(out, " = %" PRId64, value);
}

void parameters_emit(StrBuf *out, const char *lead, const char *names, const char *why, const int64_t *values,
                     size_t count)
{
    bool is_bool = strncmp(names, "bool ", 5) == 0;
    strbuf_puts(out, lead);
    for (size_t i = 0; i < count; i++) {
        size_t length = strcspn(names, ",");
        assert((names[length] == ',') == (i + 1 < count));
        strbuf_printf(out, "%.*s", (int)length, names);
        emit_value(out, is_bool, values[i]);
        strbuf_puts(out, i + 1 < count ? "," : ";");
        names += length + 1;
    }
    strbuf_printf(out, "%s%s\n", why ? "   // " : "", why ? why : "");
}

void begin_function(StrBuf *out, const char *why, const char *declaration)
{
    if (why)
        strbuf_printf(out, "\n// %s\n", why);
    strbuf_printf(out, "%s__device__ __forceinline__ %s\n{\n", why ? "" : "\n", declaration);
}
