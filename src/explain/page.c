#include <math.h>
#include <string.h>

#include "explain/explain.h"
#include "explain/kernel_times.h"
#include "explain/page_parts.h"
#include "explain/tiles.h"
#include "explain/timed_kernels.h"
#include "explain/why.h"

static const char style[] =
    ":root{color-scheme:light "
    "dark;--paper:#fff;--ink:#1c2430;--muted:#5d6878;--line:#d5dbe3;--shade:#8593a6;--empty:#eef1f5;"
    "--sheet:#f7f9fb;--p0:#2563eb;--p1:#8db4f7;--p2:#e8961e;--p3:#8b6fd6;--p4:#9aa5b4;--mark:#d0263b}\n"
    "@media(prefers-color-scheme:dark){:root{--paper:#12161c;--ink:#e4e9f0;--muted:#97a3b3;--line:#333c48;--"
    "shade:#7d8b9e;"
    "--empty:#232a34;--sheet:#1a2029;--p0:#5b93ff;--p1:#2f568f;--p2:#f0a93c;--p3:#a78bfa;--p4:#6b7686;--mark:"
    "#ff6b7a}}\n"
    "*{box-sizing:border-box}body{margin:0 "
    "auto;padding:1rem;max-width:76rem;background:var(--paper);color:var(--ink);"
    "font:16px/1.5 system-ui,sans-serif}h1{font-size:1.5rem;margin:.2rem 0}h2{font-size:1.1rem;margin:0 0 "
    ".4rem}"
    "p{margin:.3rem 0 .8rem;max-width:44rem}.muted{color:var(--muted)}\n"
    "h1,h2,h3,p,li{overflow-wrap:anywhere}h3{font-size:1rem;margin:0 0 .3rem}"
    ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(21rem,100%),1fr));gap:1rem}.charts{"
    "margin-top:1rem}"
    "section{border:1px solid "
    "var(--line);border-radius:.6rem;padding:.8rem;min-width:0;margin-top:1rem}.cards section{margin-top:0}"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem .8rem;margin:.8rem 0 0;font-size:.85rem;"
    "color:var(--muted)}dd{margin:0}\n"
    /* What lies beside a table that scrolls is seen by a shadow on that side: the covers move with the
       table. */
    ".scroll{overflow-x:auto;background:linear-gradient(to right,var(--paper) 40%,transparent) 0 0/3rem 100% "
    "no-repeat local,linear-gradient(to left,var(--paper) 40%,transparent) 100% 0/3rem 100% no-repeat local,"
    "linear-gradient(to right,var(--shade),transparent) 0 0/1.2rem 100% no-repeat scroll,"
    "linear-gradient(to left,var(--shade),transparent) 100% 0/1.2rem 100% no-repeat scroll}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "th,td{text-align:right;padding:.15rem .6rem;border-bottom:1px solid var(--line);white-space:nowrap}"
    "@media(max-width:30rem){th,td{padding:.15rem .3rem;font-size:.85rem}}"
    "th{font-weight:600}td:first-child,th:first-child,.name{text-align:left}tr.sum td{font-weight:600}\n"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--sheet);padding:.6rem;border-radius:."
    "4rem;font-size:.85rem}"
    "code{overflow-wrap:anywhere}svg{display:block;width:100%;max-width:34rem;height:auto}\n"
    "svg text{font:11px system-ui,sans-serif;fill:var(--ink)}svg text.muted{fill:var(--muted)}"
    "svg text.strong{font-weight:600}.part0{fill:var(--p0)}.part1{fill:var(--p1)}.part2{fill:var(--p2)}"
    ".part3{fill:var(--p3)}.part4{fill:var(--p4)}.empty{fill:var(--empty)}.sheet{fill:var(--sheet)}\n"
    ".line{stroke:var(--muted);stroke-width:.4}.grid{stroke:var(--line);stroke-width:.7}"
    ".frame{fill:none;stroke:var(--ink)}.roof{stroke:var(--ink);stroke-width:1.6}.dashed{stroke-dasharray:4 "
    "3;"
    "stroke:var(--muted)}.mark{stroke:var(--mark);stroke-width:2.4}.cut{fill:var(--paper)}.expected{fill:var("
    "--p0)}.measured{fill:var(--mark)}\n";

static void begin_section(StrBuf *out, const char *heading, const char *title)
{
    strbuf_printf(out, "<section><%s>", heading);
    page_text(out, title);
    strbuf_printf(out, "</%s>\n", heading);
}

static void end_section(StrBuf *out) { strbuf_puts(out, "</section>\n"); }

static void paragraph(StrBuf *out, const char *class, const char *text)
{
    strbuf_printf(out, "<p%s%s%s>", *class ? " class=\"" : "", class, *class ? "\"" : "");
    page_text(out, text);
    strbuf_puts(out, "</p>\n");
}

// ---- why ----

static void cell(StrBuf *out, const char *tag, const char *text)
{
    strbuf_printf(out, "<%s>", tag);
    page_text(out, text);
    strbuf_printf(out, "</%s>", tag);
}

static void time_row(StrBuf *out, const char *class, const char *name, const double *us, int count)
{
    strbuf_printf(out, "<tr%s%s%s>", *class ? " class=\"" : "", class, *class ? "\"" : "");
    cell(out, "td", name);
    for (int i = 0; i < count; i++)
        cell(out, "td", us[i] < 0 ? "-" : arena_printf(out->arena, "%.2f", us[i]));
    for (int i = 1; i < count; i++)
        cell(out, "td", us[i] < 0 || us[0] < 0 ? "-" : arena_printf(out->arena, "%+.2f", us[i] - us[0]));
    strbuf_puts(out, "</tr>\n");
}

static void comparison_head(StrBuf *out, const int *positions, int count)
{
    strbuf_puts(out, "<tr>");
    cell(out, "th", "us of candidate");
    for (int i = 0; i < count; i++)
        cell(out, "th", arena_printf(out->arena, "%d", positions[i] + 1));
    for (int i = 1; i < count; i++)
        cell(out, "th", arena_printf(out->arena, "%d - %d", positions[i] + 1, positions[0] + 1));
    strbuf_puts(out, "</tr>\n");
}

static void comparison(StrBuf *out, const Report *report)
{
    int positions[MAX_COMPARED], count = why_compared(report, positions);
    const ReportCandidate *compared[MAX_COMPARED];
    double us[MAX_COMPARED];
    for (int i = 0; i < count; i++)
        compared[i] = &report->candidates[positions[i]];
#define ROW(class, name, value)                                                                              \
    do {                                                                                                     \
        for (int i = 0; i < count; i++)                                                                      \
            us[i] = compared[i]->value;                                                                      \
        time_row(out, class, name, us, count);                                                               \
    } while (0)
    strbuf_puts(out, "<div class=\"scroll\"><table>\n");
    comparison_head(out, positions, count);
    for (Part part = 0; part < PART_COUNT; part++)
        ROW("", part_name[part], costs.part[part]);
    ROW("sum", "expected", costs.time);
    if (report->gpu)
        ROW("sum", "measured", measured_us > 0 ? compared[i]->measured_us : -1);
    strbuf_printf(out, "<tr class=\"muted\"><td colspan=\"%d\">each term alone:</td></tr>\n", 2 * count);
    for (Term term = 0; term < TERM_COUNT; term++)
        ROW("muted", term_name[term], costs.term[term]);
    strbuf_puts(out, "</table></div>\n");
#undef ROW
}

static void meaning(StrBuf *out, const char *word, const char *words)
{
    strbuf_puts(out, "<dt>");
    page_text(out, word);
    strbuf_puts(out, "</dt><dd>");
    page_text(out, words);
    strbuf_puts(out, "</dd>\n");
}

/* The legend of the comparison's rows and of the charts' bars. */
static void meanings(StrBuf *out)
{
    strbuf_puts(out, "<dl>\n");
    for (Part part = 0; part < PART_COUNT; part++)
        meaning(out, part_name[part], part_meaning[part]);
    for (Term term = 0; term < TERM_COUNT; term++)
        meaning(out, term_name[term], term_meaning[term]);
    strbuf_puts(out, "</dl>\n");
}

// ---- a launch ----

static void tile_paragraph(StrBuf *out, const ReportLaunch *launch)
{
    StrBuf text = strbuf_new(out->arena), steps = strbuf_new(out->arena);
    strbuf_puts(&text, "The problem is ");
    tile_sizes(&text, launch, TILE_PROBLEM);
    strbuf_puts(&text, "; a block takes ");
    tile_sizes(&text, launch, TILE_BLOCK);
    tile_steps(&steps, launch, TILE_PROBLEM);
    strbuf_printf(&text, "%s%s; %s ", steps.length ? ", " : "", steps.length ? steps.text : "",
                  tile_holder(out->arena, launch));
    tile_sizes(&text, launch, TILE_THREAD);
    strbuf_puts(&text, " at a time. One tile of each is filled.");
    paragraph(out, "", text.text);
}

static void tile_card(StrBuf *out, const ReportLaunch *launch)
{
    begin_section(out, "h3", "Tiles");
    tile_paragraph(out, launch);
    draw_tiles(out, launch);
    end_section(out);
}

static void rate_card(StrBuf *out, const ReportLaunch *launch)
{
    begin_section(out, "h3", "How busy");
    paragraph(out, "",
              arena_printf(out->arena,
                           "For what share of its %.2f us each resource is needed. It is bound by %s.",
                           launch->costs.time, launch->bound_by));
    chart_rates(out, launch);
    end_section(out);
}

static void occupancy_card(StrBuf *out, const Report *report, const ReportLaunch *launch)
{
    StrBuf text = strbuf_new(out->arena), waves = strbuf_new(out->arena);
    begin_section(out, "h3", "Occupancy");
    say_occupancy(&text, report, launch);
    strbuf_printf(&text, ". %.0f register%s a thread%s.", launch->registers, plural(launch->registers),
                  launch->spills ? ", some of them spilled" : "");
    paragraph(out, "", text.text);
    draw_occupancy(out, report, launch);
    paragraph(
        out, "muted",
        "Above, the places of an SM for warps: blocks in turn dark and light. Below, how many blocks there "
        "is room for by each resource.");
    say_waves(&waves, report, launch);
    strbuf_puts(&waves, ".");
    paragraph(out, "", waves.text);
    draw_waves(out, launch);
    end_section(out);
}

/* A row of its own for each kernel, as many as there are. */
static void launch_section(StrBuf *out, const Report *report, const ReportLaunch *launch)
{
    const char *variant = launch->variant ? launch->variant : "";
    begin_section(out, "h2",
                  arena_printf(out->arena, "Kernel %s: %s%s%s", launch->kernel, launch->family,
                               *variant ? " " : "", variant));
    strbuf_puts(out, "<div class=\"cards\">\n");
    tile_card(out, launch);
    rate_card(out, launch);
    occupancy_card(out, report, launch);
    strbuf_puts(out, "</div>\n");
    end_section(out);
}

// ---- where a program of several launches spends its time ----

static void kernel_row(StrBuf *out, const KernelTime *kernel, double time_us)
{
    Arena *arena = out->arena;
    strbuf_puts(out, "<tr>");
    cell(out, "td", arena_printf(arena, "%.2f", kernel->time_us));
    cell(out, "td", arena_printf(arena, "%.1f %%", 100 * kernel->time_us / time_us));
    cell(out, "td", arena_printf(arena, "%.0f %%", 100 * kernel_share_of_limit(kernel)));
    cell(out, "td", arena_printf(arena, "%d", kernel->launches));
    const char *const words[] = {kernel->first->bound_by, kernel->first->kernel, kernel_makes(arena, kernel)};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        strbuf_puts(out, "<td class=\"name\">");
        page_text(out, words[i]);
        strbuf_puts(out, "</td>");
    }
    strbuf_puts(out, "</tr>\n");
}

static void times_section(StrBuf *out, const KernelTimes *list, double time_us)
{
    begin_section(out, "h2", "Kernels of candidate 1 by time");
    strbuf_puts(
        out,
        "<p class=\"muted\">Of limit: the part of the time that the longest term takes alone.</p>\n<div "
        "class=\"scroll\"><table>\n<tr><th>us</th><th>share</th><th>of limit</th><th>launches</th>"
        "<th class=\"name\">bound by</th><th class=\"name\">kernel</th><th class=\"name\">makes</th></tr>\n");
    for (int i = 0; i < list->count; i++)
        kernel_row(out, &list->kernels[i], time_us);
    strbuf_puts(out, "</table></div>\n");
    end_section(out);
}

static void timed_row(StrBuf *out, const TimedKernel *timed)
{
    Arena *arena = out->arena;
    const ReportCandidate *best = &timed->kernel->candidates[0];
    StrBuf how = strbuf_new(arena);
    candidate_name(&how, best);
    strbuf_puts(out, "<tr>");
    cell(out, "td", arena_printf(arena, "%.2f", timed->call_us));
    cell(out, "td", arena_printf(arena, "%.0f", timed->kernel->times));
    cell(out, "td", arena_printf(arena, "%.2f", best->measured_us));
    cell(out, "td", arena_printf(arena, "%.2f", best->measured_us / best->costs.time));
    cell(out, "td", timed->model_us > 0 ? arena_printf(arena, "%.2f", timed->model_us) : "failed");
    cell(out, "td", arena_printf(arena, "%.0f of %d", best->model_rank, timed->kernel->count));
    const char *const words[] = {timed->kernel->makes, how.text, longest_launch(best)->bound_by};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        strbuf_puts(out, "<td class=\"name\">");
        page_text(out, words[i]);
        strbuf_puts(out, "</td>");
    }
    strbuf_puts(out, "</tr>\n");
}

static void timed_section(StrBuf *out, const Report *report)
{
    const TimedKernel *list = timed_kernels(out->arena, report);
    begin_section(out, "h2", "Different kernels of the program, timed by themselves");
    strbuf_puts(out, "<p class=\"muted\">Ratio: measured over expected. Model's: what its first choice took.</p>\n<div "
                     "class=\"scroll\"><table>\n<tr><th>us a call</th><th>times</th><th>us of one</th><th>ratio</th><th>model's</th>"
                     "<th>place</th><th class=\"name\">makes</th><th class=\"name\">how</th><th class=\"name\">bound by</th></tr>\n");
    for (int i = 0; i < report->kernel_count; i++)
        timed_row(out, &list[i]);
    strbuf_puts(out, "</table></div>\n");
    end_section(out);
}

// ---- all candidates ----

static void candidate_row(StrBuf *out, const ReportCandidate *candidate, int position)
{
    Arena *arena = out->arena;
    bool measured = candidate->measured_us > 0;
    StrBuf name = strbuf_new(arena);
    candidate_name(&name, candidate);
    strbuf_puts(out, "<tr>");
    cell(out, "td", arena_printf(arena, "%d", position + 1));
    cell(out, "td", arena_printf(arena, "%.0f", candidate->model_rank));
    cell(out, "td", arena_printf(arena, "%.2f", candidate->costs.time));
    cell(out, "td", measured ? arena_printf(arena, "%.2f", candidate->measured_us) : "-");
    cell(out, "td",
         measured ? arena_printf(arena, "%.2f", candidate->measured_us / candidate->costs.time) : "-");
    strbuf_puts(out, "<td class=\"name\">");
    page_text(out, name.text);
    strbuf_puts(out, "</td><td class=\"name\">");
    page_text(out, candidate->status ? arena_printf(arena, "%s: %s", candidate->status,
                                                    candidate->reason ? candidate->reason : "")
                                     : longest_launch(candidate)->bound_by);
    strbuf_puts(out, "</td></tr>\n");
}

static void candidate_table(StrBuf *out, const Report *report)
{
    strbuf_puts(
        out, "<p class=\"muted\">Model: place in the model's order. Ratio: measured over expected. Bound by: "
             "of the kernel "
             "that takes longest.</p>\n<div "
             "class=\"scroll\"><table>\n<tr><th>#</th><th>model</th><th>expected us</th><th>measured us</th>"
             "<th>ratio</th><th class=\"name\">kernels</th><th class=\"name\">bound by</th></tr>\n");
    for (int i = 0; i < report->count; i++)
        candidate_row(out, &report->candidates[i], i);
    strbuf_puts(out, "</table></div>\n");
}

// ---- the page ----

static void head(StrBuf *out, const Report *report)
{
    const char *device = report->device.title ? report->device.title : report->device.name;
    strbuf_puts(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"ascii\">"
                     "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>");
    page_text(out, arena_printf(out->arena, "%s on %s", report->name, report->device.name));
    strbuf_printf(out, "</title>\n<style>\n%s</style></head>\n<body>\n<h1>", style);
    page_text(out, arena_printf(out->arena, "%s on %s", report->name, device));
    strbuf_puts(out, "</h1>\n");
    StrBuf facts = strbuf_new(out->arena);
    strbuf_puts(&facts, "Reads and writes at least ");
    quantity(&facts, report->min_bytes, "B");
    strbuf_puts(&facts, ", does ");
    quantity(&facts, report->flops, "flop");
    strbuf_printf(&facts, "; %d candidate%s kept of %.0f program%s", report->count, plural(report->count),
                  report->generated, plural(report->generated));
    if (report->gpu)
        strbuf_printf(&facts, ", measured on %s", report->gpu);
    paragraph(out, "muted", facts.text);
}

static void reproduction(StrBuf *out, const Report *report)
{
    begin_section(out, "h2", "The expression");
    strbuf_puts(out, "<pre>");
    page_text(out, report->expr);
    strbuf_puts(out, "</pre>\n");
    StrBuf written = strbuf_new(out->arena);
    strbuf_printf(&written, "rollerc %s %s candidate %d", report->version,
                  report->source_sha256 ? "wrote" : "ranks only, first", report->emitted + 1);
    if (report->verified)
        strbuf_printf(&written, ", proven in %.3g s on %.0f element%s%s", report->verified_seconds,
                      report->verified_elements, plural(report->verified_elements),
                      report->sampled ? " of some of its blocks" : "");
    strbuf_puts(&written, report->source_sha256 ? ". SHA-256 of the file:" : "");
    paragraph(out, "muted", written.text);
    if (report->source_sha256) {
        strbuf_puts(out, "<p><code>");
        page_text(out, report->source_sha256);
        strbuf_puts(out, "</code></p>\n");
    }
    end_section(out);
}

static void why_section(StrBuf *out, const Report *report)
{
    StrBuf why = strbuf_new(out->arena), name = strbuf_new(out->arena);
    why_first(&why, report);
    candidate_name(&name, &report->candidates[0]);
    begin_section(out, "h2", arena_printf(out->arena, "Why candidate 1 is first: %s", name.text));
    paragraph(out, "", why.text);
    comparison(out, report);
    meanings(out);
    end_section(out);
}

static void chart_cards(StrBuf *out, const Report *report)
{
    const ReportCandidate *first = &report->candidates[0];
    bool computes = false;
    for (int i = 0; i < first->launch_count; i++)
        computes |= launch_has_roofline(&first->launches[i]);
    strbuf_puts(out, "<div class=\"cards charts\">\n");
    begin_section(out, "h2", "Time of each candidate");
    chart_times(out, report);
    end_section(out);
    if (computes) {
        begin_section(out, "h2", "Roofline of candidate 1");
        chart_roofline(out, report);
        end_section(out);
    }
    strbuf_puts(out, "</div>\n");
}

char *explain_page(Arena *arena, const Report *report)
{
    StrBuf buffer = strbuf_new(arena), *out = &buffer;
    head(out, report);
    why_section(out, report);
    chart_cards(out, report);
    const ReportCandidate *first = &report->candidates[0];
    KernelTimes times = kernel_times(arena, first);
    if (first->launch_count > 1)
        times_section(out, &times, first->costs.time);
    if (report->kernel_count)
        timed_section(out, report);
    for (int i = 0; i < first->launch_count; i++)
        if (kernel_times_begins(&times, &first->launches[i]))
            launch_section(out, report, &first->launches[i]);
    begin_section(out, "h2", "All candidates");
    candidate_table(out, report);
    end_section(out);
    reproduction(out, report);
    strbuf_puts(out, "</body></html>\n");
    return out->text;
}
