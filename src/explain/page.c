#include <math.h>
#include <string.h>

#include "explain/explain.h"
#include "explain/page_parts.h"
#include "explain/tiles.h"
#include "explain/why.h"

static const char style[] =
    ":root{color-scheme:light dark;--paper:#fff;--ink:#1c2430;--muted:#5d6878;--line:#d5dbe3;--empty:#eef1f5;"
    "--sheet:#f7f9fb;--p0:#2563eb;--p1:#8db4f7;--p2:#e8961e;--p3:#8b6fd6;--p4:#9aa5b4;--mark:#d0263b}\n"
    "@media(prefers-color-scheme:dark){:root{--paper:#12161c;--ink:#e4e9f0;--muted:#97a3b3;--line:#333c48;"
    "--empty:#232a34;--sheet:#1a2029;--p0:#5b93ff;--p1:#2f568f;--p2:#f0a93c;--p3:#a78bfa;--p4:#6b7686;--mark:"
    "#ff6b7a}}\n"
    "*{box-sizing:border-box}body{margin:0 "
    "auto;padding:1rem;max-width:76rem;background:var(--paper);color:var(--ink);"
    "font:16px/1.5 system-ui,sans-serif}h1{font-size:1.5rem;margin:.2rem 0}h2{font-size:1.1rem;margin:0 0 "
    ".4rem}"
    "p{margin:.3rem 0 .8rem;max-width:44rem}.muted{color:var(--muted)}\n"
    ".all{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(22rem,100%),1fr));gap:1rem;margin-"
    "top:1rem}"
    "section{border:1px solid "
    "var(--line);border-radius:.6rem;padding:.8rem;min-width:0}.wide{grid-column:1/-1}\n"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "th,td{text-align:right;padding:.15rem .6rem;border-bottom:1px solid var(--line);white-space:nowrap}"
    "th{font-weight:600}td:first-child,th:first-child,.name{text-align:left}tr.sum td{font-weight:600}\n"
    "pre{overflow-x:auto;background:var(--sheet);padding:.6rem;border-radius:.4rem;font-size:.85rem}"
    "code{overflow-wrap:anywhere}svg{display:block;width:100%;max-width:34rem;height:auto}\n"
    "svg text{font:11px system-ui,sans-serif;fill:var(--ink)}svg text.muted{fill:var(--muted)}"
    "svg text.strong{font-weight:600}.part0{fill:var(--p0)}.part1{fill:var(--p1)}.part2{fill:var(--p2)}"
    ".part3{fill:var(--p3)}.part4{fill:var(--p4)}.empty{fill:var(--empty)}.sheet{fill:var(--sheet)}\n"
    ".line{stroke:var(--muted);stroke-width:.4}.grid{stroke:var(--line);stroke-width:.7}"
    ".frame{fill:none;stroke:var(--ink)}.roof{stroke:var(--ink);stroke-width:1.6}.dashed{stroke-dasharray:4 "
    "3;"
    "stroke:var(--muted)}.mark{stroke:var(--mark);stroke-width:2.4}.cut{fill:var(--paper)}.expected{fill:var("
    "--p0)}.measured{fill:var(--mark)}\n";

static void begin_section(StrBuf *out, const char *class, const char *title)
{
    strbuf_printf(out, "<section%s%s%s><h2>", *class ? " class=\"" : "", class, *class ? "\"" : "");
    page_text(out, title);
    strbuf_puts(out, "</h2>\n");
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
    cell(out, "th", "us");
    for (int i = 0; i < count; i++)
        cell(out, "th", arena_printf(out->arena, "number %d", positions[i] + 1));
    for (int i = 1; i < count; i++)
        cell(out, "th", arena_printf(out->arena, "%d less 1", positions[i] + 1));
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
    for (Term term = 0; term < TERM_COUNT; term++)
        ROW("muted", arena_printf(out->arena, "%s alone", term_name[term]), costs.term[term]);
    strbuf_puts(out, "</table></div>\n");
#undef ROW
}

// ---- a launch ----

static void tile_paragraph(StrBuf *out, const ReportLaunch *launch)
{
    StrBuf text = strbuf_new(out->arena), steps = strbuf_new(out->arena);
    tile_sizes(&text, launch, TILE_PROBLEM);
    strbuf_puts(&text, "; a block does ");
    tile_sizes(&text, launch, TILE_BLOCK);
    tile_steps(&steps, launch, TILE_PROBLEM);
    strbuf_printf(&text, "%s%s; %s ", steps.length ? ", " : "", steps.length ? steps.text : "",
                  tile_holder(out->arena, launch));
    tile_sizes(&text, launch, TILE_THREAD);
    strbuf_puts(&text, " at a time.");
    paragraph(out, "", text.text);
}

static void launch_sections(StrBuf *out, const Report *report, const ReportLaunch *launch)
{
    Arena *arena = out->arena;
    double warps = ceil(launch->threads / report->device.warp_size) * report_resident(report, launch);
    begin_section(out, "", arena_printf(arena, "%s: tiles", launch->kernel));
    tile_paragraph(out, launch);
    draw_tiles(out, launch);
    end_section(out);
    begin_section(out, "", arena_printf(arena, "%s: how busy", launch->kernel));
    paragraph(out, "",
              arena_printf(arena, "Share of its %.2f us for which each is needed; bound by %s.",
                           launch->costs.time, launch->bound_by));
    chart_rates(out, launch);
    end_section(out);
    begin_section(out, "", arena_printf(arena, "%s: occupancy", launch->kernel));
    bool grid = strcmp(launch->limiter, "grid") == 0;
    paragraph(
        out, "",
        arena_printf(
            arena,
            "%.0f of %.0f warps of an SM, in %.0f blocks of %.0f threads; %s. %.0f registers a thread%s.",
            warps, floor(report->device.max_threads / report->device.warp_size),
            report_resident(report, launch), launch->threads,
            grid ? "there are no more blocks" : arena_printf(arena, "limited by %s", launch->limiter),
            launch->registers, launch->spills ? ", some of them spilled" : ""));
    draw_occupancy(out, report, launch);
    paragraph(out, "",
              arena_printf(arena, "%.2f waves: %.0f blocks, %.0f at once.", launch->waves, launch->blocks,
                           launch->blocks_per_sm * report->device.sm_count));
    draw_waves(out, launch);
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
                                     : candidate->launches[0].bound_by);
    strbuf_puts(out, "</td></tr>\n");
}

static void candidate_table(StrBuf *out, const Report *report)
{
    strbuf_puts(
        out,
        "<div class=\"scroll\"><table>\n<tr><th>#</th><th>model</th><th>expected us</th><th>measured us</th>"
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
    quantity(&facts, report->min_bytes, "B");
    strbuf_puts(&facts, " at least, ");
    quantity(&facts, report->flops, "flop");
    strbuf_printf(&facts, "; %d candidates kept of %.0f programs", report->count, report->generated);
    if (report->gpu)
        strbuf_printf(&facts, ", measured on %s", report->gpu);
    paragraph(out, "muted", facts.text);
}

static void reproduction(StrBuf *out, const Report *report)
{
    begin_section(out, "wide", "The expression");
    strbuf_puts(out, "<pre>");
    page_text(out, report->expr);
    strbuf_puts(out, "</pre>\n");
    StrBuf written = strbuf_new(out->arena);
    strbuf_printf(&written, "rollerc %s wrote candidate %d", report->version, report->emitted + 1);
    if (report->verified)
        strbuf_printf(&written, ", proven in %.3g s on %.0f elements%s", report->verified_seconds,
                      report->verified_elements, report->sampled ? " of some blocks" : "");
    strbuf_puts(&written, "; SHA-256 of the file:");
    paragraph(out, "muted", written.text);
    strbuf_puts(out, "<p><code>");
    page_text(out, report->source_sha256);
    strbuf_puts(out, "</code></p>\n");
    end_section(out);
}

char *explain_page(Arena *arena, const Report *report)
{
    StrBuf buffer = strbuf_new(arena), *out = &buffer, why = strbuf_new(arena), name = strbuf_new(arena);
    const ReportCandidate *first = &report->candidates[0];
    head(out, report);
    why_first(&why, report);
    candidate_name(&name, first);
    strbuf_puts(out, "<div class=\"all\">\n");
    begin_section(out, "wide", arena_printf(arena, "Why number 1 is first: %s", name.text));
    paragraph(out, "", why.text);
    comparison(out, report);
    end_section(out);
    begin_section(out, "", "Time of each candidate");
    chart_times(out, report);
    end_section(out);
    bool computes = false;
    for (int i = 0; i < first->launch_count; i++)
        computes |= launch_has_roofline(&first->launches[i]);
    if (computes) {
        begin_section(out, "", "Roofline");
        chart_roofline(out, report);
        end_section(out);
    }
    for (int i = 0; i < first->launch_count; i++)
        launch_sections(out, report, &first->launches[i]);
    begin_section(out, "wide", "All candidates");
    candidate_table(out, report);
    end_section(out);
    reproduction(out, report);
    strbuf_puts(out, "</div>\n</body></html>\n");
    return out->text;
}
