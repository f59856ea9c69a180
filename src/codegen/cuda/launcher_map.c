#include "codegen/cuda/launcher_map.h"

#include <inttypes.h>

/* `{64, 128, 1}`, in front of which a comma stands. */
static void write_integers(StrBuf *out, const int64_t *values, int count)
{
    strbuf_puts(out, ", {");
    for (int i = 0; i < count; i++)
        strbuf_printf(out, "%s%" PRId64, i ? ", " : "", values[i]);
    strbuf_puts(out, "}");
}

static void write_ints(StrBuf *out, const int *values, int count)
{
    int64_t wide[MAX_MAP_RANK];
    for (int i = 0; i < count; i++)
        wide[i] = values[i];
    write_integers(out, wide, count);
}

static void write_pixels(StrBuf *out, const TensorMap *map)
{
    write_ints(out, map->lower, map->pixel_axes);
    write_ints(out, map->upper, map->pixel_axes);
    write_ints(out, map->steps, map->pixel_axes);
    strbuf_printf(out, ", %d", map->box[1]);
}

void launcher_write_map(StrBuf *out, const TensorMap *map, int number, const char *pointer)
{
    strbuf_puts(out, "status = ");
    if (map->pixel_axes)
        strbuf_printf(out, "describe_pixels<%d>", map->rank);
    else
        strbuf_puts(out, "describe_tensor");
    strbuf_printf(out, "(&m%d, %s, %d", number, pointer, map->element_bytes);
    write_integers(out, map->sizes, map->rank);
    write_integers(out, map->strides, map->rank - 1);
    if (map->pixel_axes)
        write_pixels(out, map);
    else
        write_ints(out, map->box, map->rank);
    strbuf_puts(out, map->tf32 ? ", true);\n" : ");\n");
}
