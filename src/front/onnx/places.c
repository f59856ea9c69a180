// Indices of elements as text.
#include <inttypes.h>

#include "front/onnx/map.h"

const char *affine(const Map *m, int64_t factor, char letter, int64_t offset)
{
    const char *index = factor == 1 ? fmt(m, "%c", letter) : fmt(m, "%" PRId64 "*%c", factor, letter);
    if (factor < 0)
        return factor == -1 ? fmt(m, "%" PRId64 " - %c", offset, letter)
                            : fmt(m, "%" PRId64 " - %" PRId64 "*%c", offset, -factor, letter);
    return offset == 0
               ? index
               : fmt(m, "%s %c %" PRId64, index, offset < 0 ? '-' : '+', offset < 0 ? -offset : offset);
}

void add_place(StrBuf *places, const char *place)
{
    strbuf_printf(places, "%s%s", places->length ? ", " : "", place);
}

const char *select_range(const Map *m, const char *index, const int64_t *ends, const char *const *elements,
                         int count)
{
    if (count == 1)
        return elements[0];
    int half = count / 2;
    return fmt(m, "select(%s < %" PRId64 ", %s, %s)", index, ends[half - 1],
               select_range(m, index, ends, elements, half),
               select_range(m, index, ends + half, elements + half, count - half));
}
