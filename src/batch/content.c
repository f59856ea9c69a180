#include "batch/content.h"

#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/embedded.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "hal/jit.h"

/* This one file holds templates, device files and the compiler itself. */
static const char *program_hash(Arena *arena)
{
    static char kept[HASH_DIGITS + 1];
    if (!kept[0]) {
        const char *hash = hash_of_file(arena, "/proc/self/exe");
        if (!hash)
            fatal(EXIT_MACHINE, "cannot read '/proc/self/exe', which is rollerc itself");
        strcpy(kept, hash);
    }
    return kept;
}

const char **inputs_of(Arena *arena, const Entry *entry)
{
    static const char prefix[] = "templates/";
    int most = 3, count = 0;
    for (const EmbeddedFile *file = embedded_files; file->path; file++)
        most++;
    const char **inputs = NEW_ARRAY(arena, const char *, most);
    inputs[count++] = entry->expr;
    if (entry->device_file)
        inputs[count++] = entry->device_file;
    for (const EmbeddedFile *file = embedded_files; file->path && entry->templates; file++) {
        if (strncmp(file->path, prefix, sizeof prefix - 1) != 0)
            continue;
        const char *path = arena_printf(arena, "%s/%s", entry->templates, file->path + sizeof prefix - 1);
        if (access(path, R_OK) == 0)
            inputs[count++] = path;
    }
    return inputs;
}

const char *content_of(Arena *arena, const Entry *entry)
{
    StrBuf content = strbuf_new(arena);
    strbuf_printf(&content, "%s\n", program_hash(arena));
    for (int i = 0; i < entry->word_count; i++)
        strbuf_printf(&content, "%zu %s\n", strlen(entry->words[i]), entry->words[i]);
    for (const char **input = inputs_of(arena, entry); *input; input++) {
        const char *hash = hash_of_file(arena, *input);
        strbuf_printf(&content, "%s\n", hash ? hash : "unreadable");
    }
    if (entry->machine_code && jit_compiler())
        strbuf_puts(&content, jit_compiler());
    return hash_of(arena, content.text, content.length);
}
