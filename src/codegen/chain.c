#include "codegen/chain.h"

#include <string.h>

#include "base/diag.h"
#include "base/strbuf.h"

/* Every tensor and every launch's own memory has a place of its own in the workspace. */
static bool is_same_memory(const LaunchArg *a, const LaunchArg *b)
{
    return a->workspace_offset == b->workspace_offset && (a->workspace_offset >= 0 || a->tensor == b->tensor);
}

static bool touches(const Launch *launch, const LaunchArg *arg)
{
    for (int i = 0; i < launch->arg_count; i++)
        if ((launch->args[i].written || arg->written) && is_same_memory(&launch->args[i], arg))
            return true;
    return false;
}

/* Whether one of the two reads or writes what the other writes. */
static bool are_ordered(const Launch *a, const Launch *b)
{
    for (int i = 0; i < b->arg_count; i++)
        if (touches(a, &b->args[i]))
            return true;
    return false;
}

/* All blocks of a cooperative launch are resident before any goes on: they have nothing to gain from coming one
   by one, and the programming guide says nothing of the two together. */
static bool may_be_early(const Launch *before, const Launch *launch)
{
    return !before->cooperative && !launch->cooperative;
}

/* A launch lets the next one begin before it waits itself, so the third one may begin while the first one runs:
   who waits at its end must have nothing to do with any of those before it. */
static bool touches_earlier(const Launch *launches, int index)
{
    for (int k = 0; k < index; k++)
        if (are_ordered(&launches[k], &launches[index]))
            return true;
    return false;
}

void chain_launches(Launch *launches, int count)
{
    for (int k = 1; k < count; k++) {
        Launch *launch = &launches[k];
        launch->early = launches[k - 1].lets_begin = may_be_early(&launches[k - 1], launch);
        launch->waits_last = launch->early && !touches_earlier(launches, k);
    }
}

/* Lines that are cited keep their numbers. */
static void write_line(StrBuf *out, bool joined, const char *code, const char *why)
{
    if (joined)
        strbuf_printf(out, " %s", code);
    else
        strbuf_printf(out, "\n    %s   // %s", code, why);
}

const char *chain_body(const TemplateStore *store, const Template *template, const Launch *launch)
{
    static const char first[] = "    const Tensors t = TENSORS;";   // of every template's kernel
    const char *found = strstr(template->body, first);
    if (!launch->early && !launch->lets_begin)
        return template->body;
    if (!found)
        fatal(store->folder ? EXIT_INPUT : EXIT_BUG, "'%s' lacks '%s'", template->path, first);
    StrBuf out = strbuf_new(store->arena);
    found += strlen(first);
    strbuf_write(&out, template->body, (size_t)(found - template->body));
    bool joined = store->line_directives;
    if (launch->lets_begin)
        write_line(&out, joined, "let_next_begin();", "blocks of the next launch come as these end");
    if (launch->waits_last)
        write_line(&out, joined, "const WaitsAtItsEnd end;", "for the earlier launches: nothing here is theirs");
    else if (launch->early)
        write_line(&out, joined, "wait_for_earlier();", "launches, whose results are read here");
    strbuf_puts(&out, found);
    return out.text;
}
