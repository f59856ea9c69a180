#include <string.h>

#include "base/utf8.h"
#include "explain/page_parts.h"

void page_text(StrBuf *out, const char *text)
{
    static const char *const entity[128] = {
        ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;"};
    const char *end = text + strlen(text);
    for (size_t bytes; text < end; text += bytes) {
        uint32_t code = 0;
        bytes = utf8_shown(text, (size_t)(end - text), &code);
        if (bytes > 1)
            strbuf_printf(out, "&#%u;", code);
        else if (entity[*text & 127])
            strbuf_puts(out, entity[*text & 127]);
        else
            strbuf_putc(out, *text);
        bytes = bytes ? bytes : 1;
    }
}

void svg_begin(StrBuf *out, double height, const char *what)
{
    strbuf_printf(out, "<svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"", PICTURE_WIDTH, height);
    page_text(out, what);
    strbuf_puts(out, "\">\n");
}

void svg_end(StrBuf *out) { strbuf_puts(out, "</svg>\n"); }

void svg_text(StrBuf *out, double x, double y, const char *where, const char *class, const char *words)
{
    strbuf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">", x, y, where, class);
    page_text(out, words);
    strbuf_puts(out, "</text>\n");
}

void svg_box(StrBuf *out, double x, double y, double width, double height, const char *class)
{
    strbuf_printf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"%s\"/>\n", x, y,
                  width, height, class);
}

void svg_line(StrBuf *out, double x1, double y1, double x2, double y2, const char *class)
{
    strbuf_printf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x1, y1, x2,
                  y2, class);
}
