#include <math.h>
#include <string.h>

#include "explain/explain.h"
#include "explain/kernel_times.h"
#include "explain/tiles.h"
#include "explain/timed_kernels.h"
#include "explain/why.h"

enum { WIDTH = 96 };

/* Words, broken into lines that begin with so many blanks. */
static void print_wrapped(StrBuf *out, int indent, const char *text)
{
    int column = 0;
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (column > 0 && column + 1 + length > WIDTH) {
            strbuf_putc(out, '\n');
            column = 0;
        }
        strbuf_printf(out, "%*s%.*s", column ? 1 : indent, "", length, text);
        column += length + (column ? 1 : indent);
        text += length;
        text += *text == ' ';
    }
    strbuf_putc(out, '\n');
}

static void print_head(StrBuf *out, const Report *report)
{
    const ReportDevice *device = &report->device;
    strbuf_printf(out, "%s on %s", report->name, device->name);
    if (device->title)
        strbuf_printf(out, " (%s)", device->title);
    strbuf_printf(out, ": %d candidate%s kept of %.0f program%s\n", report->count, plural(report->count),
                  report->generated, plural(report->generated));
    strbuf_puts(out, "  reads and writes at least ");
    quantity(out, report->min_bytes, "B");
    strbuf_puts(out, ", does ");
    quantity(out, report->flops, "flop");
    strbuf_printf(out, "\n  %s: candidate %d", report->source_sha256 ? "written" : "ranked only, first",
                  report->emitted + 1);
    if (report->verified)
        strbuf_printf(out, "; proven in %.3g s on %.0f element%s%s", report->verified_seconds,
                      report->verified_elements, plural(report->verified_elements),
                      report->sampled ? " of some of its blocks" : "");
    strbuf_puts(out, "\n\n");
}

// ---- term by term ----

typedef struct Compared {
    const ReportCandidate *candidate[MAX_COMPARED];
    int position[MAX_COMPARED], count;
} Compared;

static double value_of(const Costs *costs, int row)
{
    return row < PART_COUNT                ? costs->part[row]
           : row < PART_COUNT + TERM_COUNT ? costs->term[row - PART_COUNT]
                                           : costs->time;
}

static void print_row(StrBuf *out, const Compared *compared, const char *name, int row)
{
    strbuf_printf(out, "  %-24s", name);
    for (int i = 0; i < compared->count; i++)
        strbuf_printf(out, " %11.2f", value_of(&compared->candidate[i]->costs, row));
    for (int i = 1; i < compared->count; i++)
        strbuf_printf(out, " %+11.2f",
                      value_of(&compared->candidate[i]->costs, row) -
                          value_of(&compared->candidate[0]->costs, row));
    strbuf_putc(out, '\n');
}

static void print_measured(StrBuf *out, const Compared *compared)
{
    bool any = false;
    for (int i = 0; i < compared->count; i++)
        any |= compared->candidate[i]->measured_us > 0;
    if (!any)
        return;
    strbuf_printf(out, "  %-24s", "measured");
    for (int i = 0; i < compared->count; i++)
        if (compared->candidate[i]->measured_us > 0)
            strbuf_printf(out, " %11.2f", compared->candidate[i]->measured_us);
        else
            strbuf_printf(out, " %11s", "-");
    strbuf_putc(out, '\n');
}

static void print_comparison(StrBuf *out, const Report *report)
{
    Compared compared = {0};
    compared.count = why_compared(report, compared.position);
    if (compared.count == 0)
        return;
    strbuf_printf(out, "\n  %-24s", "us of candidate");
    for (int i = 0; i < compared.count; i++) {
        compared.candidate[i] = &report->candidates[compared.position[i]];
        strbuf_printf(out, " %11d", compared.position[i] + 1);
    }
    for (int i = 1; i < compared.count; i++)
        strbuf_printf(out, " %7d - %d", compared.position[i] + 1, compared.position[0] + 1);
    strbuf_putc(out, '\n');
    for (int part = 0; part < PART_COUNT; part++)
        print_row(out, &compared, arena_printf(out->arena, "%s %s", part ? "+" : " ", part_name[part]), part);
    print_row(out, &compared, "= expected", PART_COUNT + TERM_COUNT);
    print_measured(out, &compared);
    strbuf_puts(out, "  each term alone\n");
    for (int term = 0; term < TERM_COUNT; term++)
        print_row(out, &compared, arena_printf(out->arena, "    %s", term_name[term]), PART_COUNT + term);
    strbuf_puts(out, "  in words\n");
    for (int part = 0; part < PART_COUNT; part++)
        strbuf_printf(out, "    %-20s %s\n", part_name[part], part_meaning[part]);
    for (int term = 0; term < TERM_COUNT; term++)
        strbuf_printf(out, "    %-20s %s\n", term_name[term], term_meaning[term]);
}

// ---- a launch ----

static void print_roofline(StrBuf *out, const Report *report, const ReportLaunch *launch)
{
    double us = launch->costs.time, gb_s = launch->dram_bytes / us / 1e3;
    strbuf_puts(out, "  roofline    moves ");
    quantity(out, launch->dram_bytes, "B");
    strbuf_printf(out, " through DRAM in %.2f us: %.0f GB/s, %.0f %% of the device's %.0f\n", us, gb_s,
                  100 * gb_s / report->device.dram_gb_s, report->device.dram_gb_s);
    if (!launch_has_roofline(launch))
        return;
    double intensity = launch->flops / launch->dram_bytes, roof = intensity * report->device.dram_gb_s;
    bool by_memory = roof < launch->peak_gflop_s;
    roof = fmin(roof, launch->peak_gflop_s);
    strbuf_printf(
        out, "              at %.3g flop a byte %s%s at most %.0f Gflop/s; expected: %.0f, %.0f %% of that\n",
        intensity, by_memory ? "DRAM allows" : launch->unit, by_memory ? "" : " does", roof,
        launch->flops / us / 1e3, 100 * launch->flops / us / 1e3 / roof);
}

static void print_room(StrBuf *out, const ReportLaunch *launch)
{
    const char *between = "              blocks that an SM has room for:";
    for (Resource i = 0; i < RESOURCE_COUNT; i++)
        if (launch->room[i] >= 0) {
            strbuf_printf(out, "%s %.0f by its %s", between, launch->room[i],
                          i == RESOURCE_BLOCKS ? "limit" : resource_name[i]);
            between = ",";
        }
    strbuf_putc(out, '\n');
}

static void print_occupancy(StrBuf *out, const Report *report, const ReportLaunch *launch)
{
    strbuf_puts(out, "  occupancy   ");
    say_occupancy(out, report, launch);
    strbuf_putc(out, '\n');
    print_room(out, launch);
    strbuf_printf(out, "              %.0f register%s a thread (%s)%s, ", launch->registers,
                  plural(launch->registers), launch->compiled ? "compiled" : "estimated",
                  launch->spills ? ", some of them spilled" : "");
    if (launch->block_shared_bytes > 0)
        quantity(out, launch->block_shared_bytes, "B");
    strbuf_printf(out, "%s shared memory a block\n", launch->block_shared_bytes > 0 ? " of" : "no");
}

static void print_launch(StrBuf *out, const Report *report, const ReportLaunch *launch)
{
    strbuf_printf(out, "\nKernel %s: %s%s%s, bound by %s\n", launch->kernel, launch->family,
                  launch->variant ? " " : "", launch->variant ? launch->variant : "", launch->bound_by);
    print_roofline(out, report, launch);
    print_occupancy(out, report, launch);
    strbuf_puts(out, "  grid        ");
    say_waves(out, report, launch);
    if (launch->supersteps > 0)
        strbuf_printf(out, "\n  supersteps  %.0f: the units exchange what they need (above, DRAM), meet, and compute in their own "
                           "memory (shared memory)", launch->supersteps);
    strbuf_puts(out, "\n  tiles\n");
    tiles_print(out, launch, "    ");
}

// ---- where a program of several launches spends its time ----

static void print_times(StrBuf *out, const KernelTimes *list, double time_us)
{
    strbuf_puts(
        out, "\nKernels of candidate 1 by time; of limit: the part of it that the longest term takes alone\n"
             "           us    share of limit launches  bound by, kernel, what it makes\n");
    for (int i = 0; i < list->count; i++) {
        const KernelTime *kernel = &list->kernels[i];
        strbuf_printf(out, "  %11.2f %6.1f %% %6.0f %% %8d  %s, %s", kernel->time_us,
                      100 * kernel->time_us / time_us, 100 * kernel_share_of_limit(kernel), kernel->launches,
                      kernel->first->bound_by, kernel->first->kernel);
        const char *makes = kernel_makes(out->arena, kernel);
        strbuf_printf(out, "%s%s\n", *makes ? ", " : "", makes);
    }
}

// ---- what was timed of it ----

static void print_timed_kernel(StrBuf *out, const TimedKernel *timed, double total_us)
{
    const ReportCandidate *best = &timed->kernel->candidates[0];
    strbuf_printf(out, "  %11.2f %6.1f %% %6.0f %11.2f %8.2f ", timed->call_us,
                  100 * timed->call_us / total_us, timed->kernel->times, best->measured_us,
                  best->measured_us / best->costs.time);
    if (timed->model_us > 0)
        strbuf_printf(out, "%11.2f", timed->model_us);
    else
        strbuf_printf(out, "%11s", "failed");
    strbuf_printf(out, " %4.0f of %d  %s: ", best->model_rank, timed->kernel->count, timed->kernel->makes);
    candidate_name(out, best);
    strbuf_printf(out, ", bound by %s", longest_launch(best)->bound_by);
    if (timed->failed)
        strbuf_printf(out, "; %d failed", timed->failed);
    strbuf_putc(out, '\n');
}

static void print_timed(StrBuf *out, const Report *report)
{
    const TimedKernel *list = timed_kernels(out->arena, report);
    double total_us = 0;
    for (int i = 0; i < report->kernel_count; i++)
        total_us += list[i].call_us;
    strbuf_puts(out, "\nDifferent kernels of the program, timed by themselves. Ratio: measured over expected; model's: what its first choice took\n"
                     "    us a call    share  times   us of one    ratio     model's    place  what it makes, how\n");
    for (int i = 0; i < report->kernel_count; i++)
        print_timed_kernel(out, &list[i], total_us);
}

// ---- all of them ----

/* In a line of its own where the names of the launches leave it no room. */
static void print_longest(StrBuf *out, const ReportCandidate *candidate, size_t line)
{
    enum { MOST_COLUMNS = 160, NAMES_AT = 47 };
    const ReportLaunch *launch = longest_launch(candidate);
    const char *what = arena_printf(out->arena, "%.0f thread%s a block, bound by %s", launch->threads,
                                    plural(launch->threads), launch->bound_by);
    bool full = out->length - line + strlen("; the longest: ") + strlen(what) > MOST_COLUMNS;
    if (candidate->launch_count == 1)
        strbuf_printf(out, ", %s", what);
    else if (full)
        strbuf_printf(out, ";\n%*sthe longest: %s", NAMES_AT, "", what);
    else
        strbuf_printf(out, "; the longest: %s", what);
}

static void print_candidate(StrBuf *out, const Report *report, int position)
{
    const ReportCandidate *candidate = &report->candidates[position];
    size_t line = out->length;
    strbuf_printf(out, "  %3d %6.0f %11.2f ", position + 1, candidate->model_rank, candidate->costs.time);
    if (candidate->measured_us > 0)
        strbuf_printf(out, "%11.2f %8.2f  ", candidate->measured_us,
                      candidate->measured_us / candidate->costs.time);
    else
        strbuf_printf(out, "%11s %8s  ", "-", "-");
    candidate_name(out, candidate);
    print_longest(out, candidate, line);
    if (candidate->status)
        strbuf_printf(out, "; %s: %s", candidate->status, candidate->reason ? candidate->reason : "");
    strbuf_putc(out, '\n');
}

char *explain_text(Arena *arena, const Report *report)
{
    StrBuf buffer = strbuf_new(arena), *out = &buffer, why = strbuf_new(arena);
    print_head(out, report);
    why_first(&why, report);
    strbuf_puts(out, "Why candidate 1 is first: ");
    candidate_name(out, &report->candidates[0]);
    strbuf_putc(out, '\n');
    print_wrapped(out, 2, why.text);
    print_comparison(out, report);
    KernelTimes times = kernel_times(arena, &report->candidates[0]);
    if (report->candidates[0].launch_count > 1)
        print_times(out, &times, report->candidates[0].costs.time);
    if (report->kernel_count)
        print_timed(out, report);
    for (int i = 0; i < report->candidates[0].launch_count; i++)
        if (kernel_times_begins(&times, &report->candidates[0].launches[i]))
            print_launch(out, report, &report->candidates[0].launches[i]);
    strbuf_printf(out, "\nCandidates%s%s. Model: place in the model's order; ratio: measured over expected\n",
                  report->gpu ? ", measured on " : "", report->gpu ? report->gpu : "");
    strbuf_puts(out, "    #  model expected us measured us    ratio  kernels\n");
    for (int i = 0; i < report->count; i++)
        print_candidate(out, report, i);
    return out->text;
}
