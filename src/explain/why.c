#include "explain/why.h"

#include <math.h>

/* Times that differ by less are printed alike, and nothing is to be said of the difference. */
static const double SAME = 1e-6;

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

void candidate_name(StrBuf *out, const ReportCandidate *candidate)
{
    for (int i = 0; i < candidate->launch_count; i++) {
        const ReportLaunch *launch = &candidate->launches[i];
        strbuf_printf(out, "%s%s", i ? " + " : "", launch->family);
        if (launch->variant)
            strbuf_printf(out, " %s", launch->variant);
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

// ---- sentences ----

/* The term of `other` that grew most; NULL: none grew by half as much as what shows of them, so less is
   hidden. */
static const char *grown(const Costs *costs, const Costs *other)
{
    double most = (other->part[PART_UNHIDDEN] - costs->part[PART_UNHIDDEN]) / 2;
    const char *name = NULL;
    for (Term i = TERM_COMPUTE; i < TERM_COUNT; i++)
        if (i != longest_term(other) && other->term[i] - costs->term[i] > most) {
            most = other->term[i] - costs->term[i];
            name = term_name[i];
        }
    return name;
}

static void say_longest(StrBuf *out, const Costs *a, const Costs *b)
{
    Term first = longest_term(a), second = longest_term(b);
    if (first == second)
        strbuf_printf(out, "its %s alone takes %.2f us instead of %.2f", term_name[second], b->term[second],
                      a->term[first]);
    else
        strbuf_printf(out, "its longest term is %s with %.2f us, where that of the first is %s with %.2f",
                      term_name[second], b->term[second], term_name[first], a->term[first]);
}

/* What of `b` takes so much longer than of `a`. */
static void say_difference(StrBuf *out, const Costs *a, const Costs *b)
{
    Part most = PART_LONGEST;
    for (Part i = PART_LONGEST; i < PART_COUNT; i++)
        if (b->part[i] - a->part[i] > b->part[most] - a->part[most])
            most = i;
    switch (most) {
    case PART_LONGEST: say_longest(out, a, b); return;
    case PART_UNHIDDEN:
        strbuf_printf(out, "%.2f us instead of %.2f show of the terms beside the longest", b->part[most],
                      a->part[most]);
        if (grown(a, b))
            strbuf_printf(out, ", of which that of %s grew most", grown(a, b));
        else
            strbuf_puts(out, ", since less of them is hidden");
        return;
    case PART_TAIL: strbuf_puts(out, "its last blocks run alone"); break;
    case PART_WAIT: strbuf_puts(out, "its threads wait longer for data and each other"); break;
    case PART_LAUNCH: strbuf_puts(out, "it has more launches"); break;
    case PART_COUNT: break;
    }
    strbuf_printf(out, ": %.2f us instead of %.2f", b->part[most], a->part[most]);
}

/* `, 3.1 % more: its dram alone takes …`, of a candidate beside the first */
static void say_more(StrBuf *out, const Costs *first, const Costs *other)
{
    bool more = other->time > first->time;
    strbuf_printf(out, ", %.1f %% %s: ", 100 * fabs(other->time / first->time - 1), more ? "more" : "less");
    if (more) {
        say_difference(out, first, other);
    } else {
        strbuf_puts(out, "of the first, ");
        say_difference(out, other, first);
    }
    strbuf_puts(out, ".");
}

static bool spills(const ReportCandidate *candidate)
{
    bool any = false;
    for (int i = 0; i < candidate->launch_count; i++)
        any |= candidate->launches[i].spills;
    return any;
}

static void say_measured(StrBuf *out, const ReportCandidate *a, const ReportCandidate *b)
{
    strbuf_printf(out,
                  "It is the fastest by measurement: %.2f us, %.2f times what the model expected (%.2f).",
                  a->measured_us, a->measured_us / a->costs.time, a->costs.time);
    if (b && b->measured_us > 0)
        strbuf_printf(out, " The second took %.2f us, %.1f %% longer; expected were %.2f.", b->measured_us,
                      100 * (b->measured_us / a->measured_us - 1), b->costs.time);
    if (a->model_rank > 1)
        strbuf_printf(out, " In the model's order it was number %.0f.", a->model_rank);
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
        say_measured(out, a, b);
        strbuf_puts(out, b ? " " : "");
    }
    if (!b) {
        strbuf_puts(out, "There is no other candidate.");
        return;
    }
    if (spills(b) && !spills(a))
        strbuf_puts(out, "The second spills registers, and counts as twice as slow as the model says. ");
    if (!same(a->costs.time, b->costs.time)) {
        strbuf_printf(out, "The model expects %.2f us of it and %.2f of the second", a->costs.time,
                      b->costs.time);
        say_more(out, &a->costs, &b->costs);
        return;
    }
    strbuf_printf(out,
                  "The model expects %.2f us of the second, too; of equal times fewer blocks come first, "
                  "then more threads, then smaller tiles.",
                  a->costs.time);
    if (count < 3)
        return;
    const ReportCandidate *c = &report->candidates[positions[2]];
    strbuf_printf(out, " Of number %d it expects %.2f", positions[2] + 1, c->costs.time);
    say_more(out, &a->costs, &c->costs);
}
