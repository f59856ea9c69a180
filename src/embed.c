#include "embed.h"

/* In quotes. */
static void write_path(StrBuf *out, const char *path)
{
    for (; *path; path++) {
        if (*path == '"' || *path == '\\')
            strbuf_putc(out, '\\');
        strbuf_putc(out, *path);
    }
}

void embed_write(StrBuf *out, const char *name, const char *file)
{
    strbuf_puts(out, "/* The weights of ");
    strbuf_printf(out, "%s as a part of a program. Assembled in their folder, or with -I of it:\n\n", name);
    strbuf_printf(out,
                  "       extern const unsigned char %s_weights_data[];\n"
                  "       extern const size_t %s_weights_size;\n*/\n"
                  "    .section .rodata\n    .balign 256\n    .globl %s_weights_data\n    .type %s_weights_data, %%object\n"
                  "%s_weights_data:\n    .incbin \"",
                  name, name, name, name, name);
    write_path(out, file);
    strbuf_printf(out,
                  "\"\n.Lend:\n    .size %s_weights_data, .Lend - %s_weights_data\n    .balign 8\n"
                  "    .globl %s_weights_size\n    .type %s_weights_size, %%object\n%s_weights_size:\n"
                  "    .quad .Lend - %s_weights_data\n    .size %s_weights_size, 8\n"
                  "    .section .note.GNU-stack, \"\", %%progbits\n",
                  name, name, name, name, name, name, name);
}
