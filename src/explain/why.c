#include "explain/why.h"

#include <math.h>
#include <string.h>

/* Times that differ by less are printed alike, and nothing is to be said of the difference. */
static const double SAME = 1e-6;
/* Of less difference no part of the time is named: two times would be printed alike. */
static const double LEAST_TOLD_US = 0.01;

void quantity(StrBuf *out, double value, const char *unit)
{
    static const char *const prefix[] = {"n", "u", "m", "", "k", "M", "G", "T", "P"};
    int i = 3;
    for (; value >= 999.5 && i < 8; i++)
        value /= 1000;
    for (; value > 0 && value < 0.9995 && i > 0; i--)
        value *= 1000;
    strbuf_printf(out, value >= 99.95 || value == floor(value) ? "%.0f %s%s" : "%.3g %s%s", value, prefix[i],
                  unit);
}

const char *plural(double count) { return count == 1 ? "" : "s"; }

static const char *launch_name(Arena *arena, const ReportLaunch *launch)
{
    return launch->variant ? arena_printf(arena, "%s %s", launch->family, launch->variant) : launch->family;
}

/* How many of the launches are called so; 0: an earlier one than this is. */
static int count_named(Arena *arena, const ReportCandidate *candidate, int first)
{
    const char *name = launch_name(arena, &candidate->launches[first]);
    int count = 0;
    for (int i = 0; i < candidate->launch_count; i++) {
        bool same_name = strcmp(launch_name(arena, &candidate->launches[i]), name) == 0;
        if (same_name && i < first)
            return 0;
        count += same_name;
    }
    return count;
}

void candidate_name(StrBuf *out, const ReportCandidate *candidate)
{
    bool many = candidate->launch_count > MANY_LAUNCHES;
    for (int i = 0; i < candidate->launch_count; i++) {
        int count = many ? count_named(out->arena, candidate, i) : 1;
        if (count)
            strbuf_puts(out, i ? " + " : "");
        if (count > 1)
            strbuf_printf(out, "%d ", count);
        if (count)
            strbuf_puts(out, launch_name(out->arena, &candidate->launches[i]));
    }
}

Term longest_term(const Costs *costs)
{
    Term longest = TERM_COMPUTE;
    for (Term i = TERM_COMPUTE; i < TERM_COUNT; i++)
        if (costs->term[i] > costs->term[longest])
            longest = i;
    return longest;
}

static bool same(double a, double b) { return fabs(a - b) <= SAME * fmax(a, b); }

int why_compared(const Report *report, int positions[MAX_COMPARED])
{
    int count = 0;
    for (int i = 0; i < report->count && count < MAX_COMPARED; i++) {
        const ReportCandidate *candidate = &report->candidates[i], *first = &report->candidates[positions[0]];
        bool tells = count < 2 || !same(candidate->costs.time, first->costs.time);
        if (!candidate->status && tells)
            positions[count++] = i;
        if (count == 2 && !same(candidate->costs.time, first->costs.time))
            break;
    }
    return count;
}

// ---- of a launch ----

void say_occupancy(StrBuf *out, const Report *report, const ReportLaunch *launch)
{
    double blocks = report_resident(report, launch),
           warps = ceil(launch->threads / report->device.warp_size) * blocks,
           most = floor(report->device.max_threads / report->device.warp_size);
    strbuf_printf(out, "%.0f block%s of %.0f thread%s on an SM, %.0f of its %.0f warps; ", blocks,
                  plural(blocks), launch->threads, plural(launch->threads), warps, most);
    if (strcmp(launch->limiter, "grid") == 0)
        strbuf_puts(out, "the grid has no more blocks");
    else
        strbuf_printf(out, "limited by %s",
                      strcmp(launch->limiter, "blocks") == 0 ? "the SM's limit of blocks" : launch->limiter);
}

void say_waves(StrBuf *out, const Report *report, const ReportLaunch *launch)
{
    strbuf_printf(out, "%.2f waves: %.0f block%s", launch->waves, launch->blocks, plural(launch->blocks));
    if (launch->cluster > 1)
        strbuf_printf(out, " in clusters of %.0f", launch->cluster);
    double at_once = launch->blocks_per_sm * report->device.sm_count;
    if (launch->blocks <= at_once)
        strbuf_printf(out, ", of %.0f that would fit at once", at_once);
    else
        strbuf_printf(out, ", %.0f at once", at_once);
    strbuf_printf(out, "; the average SM gets %.0f %% of the blocks of the busiest", 100 * launch->balance);
}

// ---- sentences ----

/* A candidate and what it is called. */
typedef struct Side {
    int number;
    const Costs *costs;
} Side;

/* The term of `slower` that grew most; TERM_COUNT: none grew by half as much as what shows of them, so less
   is hidden. */
static Term grown(const Costs *faster, const Costs *slower)
{
    double most = (slower->part[PART_UNHIDDEN] - faster->part[PART_UNHIDDEN]) / 2;
    Term found = TERM_COUNT;
    for (Term i = TERM_COMPUTE; i < TERM_COUNT; i++)
        if (i != longest_term(slower) && slower->term[i] - faster->term[i] > most) {
            most = slower->term[i] - faster->term[i];
            found = i;
        }
    return found;
}

/* `: 1.57 us in candidate 2, 1.37 us in candidate 1.` */
static void say_both(StrBuf *out, Side slower, double slower_us, Side faster, double faster_us)
{
    strbuf_printf(out, ": %.2f us in candidate %d, %.2f us in candidate %d.", slower_us, slower.number,
                  faster_us, faster.number);
}

static void say_longest(StrBuf *out, Side slower, Side faster)
{
    Term of_slower = longest_term(slower.costs), of_faster = longest_term(faster.costs);
    double slower_us = slower.costs->term[of_slower], faster_us = faster.costs->term[of_faster];
    if (of_slower == of_faster) {
        strbuf_printf(out, "the longest term of both, %s", term_name[of_slower]);
        say_both(out, slower, slower_us, faster, faster_us);
        return;
    }
    strbuf_printf(out, "the longest term: %s with %.2f us in candidate %d, %s with %.2f us in candidate %d.",
                  term_name[of_slower], slower_us, slower.number, term_name[of_faster], faster_us,
                  faster.number);
}

static void say_unhidden(StrBuf *out, Side slower, Side faster)
{
    Term most = grown(faster.costs, slower.costs);
    strbuf_puts(out, "the time of the other terms that the longest does not hide");
    say_both(out, slower, slower.costs->part[PART_UNHIDDEN], faster, faster.costs->part[PART_UNHIDDEN]);
    if (most == TERM_COUNT) {
        strbuf_puts(out, " The other terms are about as long in both; less of them is hidden.");
        return;
    }
    strbuf_printf(out, " Of the others %s differs most", term_name[most]);
    say_both(out, slower, slower.costs->term[most], faster, faster.costs->term[most]);
}

/* What of the slower one takes so much longer. */
static void say_difference(StrBuf *out, Side slower, Side faster)
{
    static const char *const words[PART_COUNT] = {
        [PART_TAIL] = "the last wave of blocks, which leaves a part of the device idle",
        [PART_WAIT] = "waiting for data and at barriers",
        [PART_LAUNCH] = "launching the kernels",
    };
    const double *slow = slower.costs->part, *fast = faster.costs->part;
    Part most = PART_LONGEST;
    for (Part i = PART_LONGEST; i < PART_COUNT; i++)
        if (slow[i] - fast[i] > slow[most] - fast[most])
            most = i;
    if (slow[most] - fast[most] < LEAST_TOLD_US) {
        strbuf_puts(out, " No part of the time stands out.");
        return;
    }
    strbuf_puts(out, " What differs most is ");
    if (most == PART_LONGEST)
        say_longest(out, slower, faster);
    else if (most == PART_UNHIDDEN)
        say_unhidden(out, slower, faster);
    else {
        strbuf_puts(out, words[most]);
        say_both(out, slower, slow[most], faster, fast[most]);
    }
}

/* `3.1 % more`, of a time beside another one */
static void say_share(StrBuf *out, double us, double of_us, const char *more, const char *less)
{
    double percent = 100 * fabs(us / of_us - 1);
    if (percent < 0.05)
        strbuf_printf(out, "less than 0.1 %% %s", us > of_us ? more : less);
    else
        strbuf_printf(out, "%.1f %% %s", percent, us > of_us ? more : less);
}

/* `, 3.1 % more. What differs most is …`, of a candidate beside the first */
static void say_more(StrBuf *out, Side first, Side other)
{
    bool more = other.costs->time > first.costs->time;
    strbuf_puts(out, ", ");
    say_share(out, other.costs->time, first.costs->time, "more", "less");
    strbuf_puts(out, ".");
    say_difference(out, more ? other : first, more ? first : other);
}

static bool spills(const ReportCandidate *candidate)
{
    bool any = false;
    for (int i = 0; i < candidate->launch_count; i++)
        any |= candidate->launches[i].spills;
    return any;
}

static void say_measured(StrBuf *out, const ReportCandidate *a, const ReportCandidate *b,
                         const int *positions)
{
    strbuf_printf(out,
                  "Candidate %d is the fastest in the measurement: %.2f us, %.2f times the %.2f us that the "
                  "model expected.",
                  positions[0] + 1, a->measured_us, a->measured_us / a->costs.time, a->costs.time);
    if (b && b->measured_us > 0) {
        strbuf_printf(out, " Candidate %d took %.2f us, ", positions[1] + 1, b->measured_us);
        say_share(out, b->measured_us, a->measured_us, "longer", "shorter");
        strbuf_printf(out, "; the model expected %.2f us.", b->costs.time);
    }
    if (a->model_rank == 0)
        strbuf_puts(out, " It is made of the kernels that were the fastest by themselves.");
    if (a->model_rank > 1)
        strbuf_printf(out, " In the model's order candidate %d was number %.0f.", positions[0] + 1,
                      a->model_rank);
}

/* Two candidates of which the model expects the same, and the first one after them of which it does not. */
static void say_equal(StrBuf *out, const Report *report, const int *positions, int count)
{
    Side first = {positions[0] + 1, &report->candidates[positions[0]].costs};
    strbuf_printf(
        out,
        "The model expects %.2f us for candidates %d and %d alike. Of equal times fewer blocks come first, "
        "then more threads, then smaller tiles.",
        first.costs->time, first.number, positions[1] + 1);
    if (count < MAX_COMPARED)
        return;
    Side third = {positions[2] + 1, &report->candidates[positions[2]].costs};
    strbuf_printf(out, " For candidate %d it expects %.2f us", third.number, third.costs->time);
    say_more(out, first, third);
}

void why_first(StrBuf *out, const Report *report)
{
    int positions[MAX_COMPARED], count = why_compared(report, positions);
    if (count == 0) {
        strbuf_printf(out, "All candidates failed; the first one: %s.",
                      report->candidates[0].reason ? report->candidates[0].reason
                                                   : report->candidates[0].status);
        return;
    }
    const ReportCandidate *a = &report->candidates[positions[0]];
    const ReportCandidate *b = count > 1 ? &report->candidates[positions[1]] : NULL;
    if (a->measured_us > 0) {
        say_measured(out, a, b, positions);
        strbuf_puts(out, " ");
    }
    if (!b) {
        strbuf_printf(out, "The model expects %.2f us. There is no other candidate.", a->costs.time);
        return;
    }
    if (spills(b) && !spills(a))
        strbuf_printf(out,
                      "Candidate %d spills registers, and is ranked as if it took twice the time expected. ",
                      positions[1] + 1);
    if (same(a->costs.time, b->costs.time)) {
        say_equal(out, report, positions, count);
        return;
    }
    Side first = {positions[0] + 1, &a->costs}, second = {positions[1] + 1, &b->costs};
    strbuf_printf(out, "The model expects %.2f us for candidate %d and %.2f us for candidate %d",
                  first.costs->time, first.number, second.costs->time, second.number);
    say_more(out, first, second);
}
