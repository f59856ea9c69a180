// What a run wrote against the reference.
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/strbuf.h"
#include "prove/verify_parts.h"

enum { LOOKUP_WORK = 30 };              // of the reference for one element, before any arithmetic
static const double CHECK_WORK = 3e6;   // of the reference for what a sampled launch wrote

static void print_index(StrBuf *out, const Tensor *stored, int64_t element)
{
    const Tensor *tensor = tensor_shown(stored);
    int64_t stride = tensor_elements(tensor);
    strbuf_puts(out, tensor->name);
    for (int d = 0; d < tensor->rank; d++) {
        stride /= tensor->shape[d];
        strbuf_printf(out, "%s%lld", d == 0 ? "[" : ", ", (long long)(element / stride));
        element %= stride;
    }
    strbuf_puts(out, tensor->rank > 0 ? "]" : "");
}

void verify_wrong(Proof *proof, const char *text)
{
    StrBuf out = strbuf_new(proof->arena);
    strbuf_puts(&out, text);
    strbuf_printf(&out, " (%s, %s, seed %llu", input_kind_name[proof->kind], proof->pass->name,
                  (unsigned long long)proof->options->seed);
    if (proof->launch)
        strbuf_printf(&out, ", some blocks of %s alone", proof->launch->entry);
    strbuf_puts(&out, ")");
    proof->report->status = VERIFY_WRONG;
    proof->report->message = out.text;
}

static void wrong_element(Proof *proof, const Tensor *tensor, int64_t element, double seen, Value expected)
{
    StrBuf out = strbuf_new(proof->arena);
    print_index(&out, tensor, element);
    strbuf_puts(&out, " is ");
    strbuf_double(&out, seen);
    strbuf_puts(&out, ", expected ");
    strbuf_double(&out, expected.real);
    if (expected.bound > 0) {
        strbuf_puts(&out, " within ");
        strbuf_double(&out, expected.bound);
    }
    verify_wrong(proof, out.text);
}

/* Judges some elements; `memory` holds the whole tensor. Stops at the first that is wrong. */
static void compare(Proof *proof, const Tensor *tensor, const void *memory, const int64_t *elements,
                    int64_t count)
{
    Value expected[VERIFY_BATCH];
    verify_reference(proof, tensor, elements, count, expected);
    proof->report->elements += count;
    for (int64_t i = 0; i < count && !proof->report->message; i++) {
        double seen = dtype_load(tensor->dtype, memory, elements[i]);
        if (!isfinite(expected[i].bound))
            proof->report->unjudged++;
        else if (!element_allowed(tensor->dtype, memory, elements[i], expected[i]))
            wrong_element(proof, tensor, elements[i], seen, expected[i]);
    }
}

static void compare_all(Proof *proof, const Tensor *tensor, const void *memory)
{
    int64_t elements[VERIFY_BATCH], all = tensor_elements(tensor);
    for (int64_t first = 0; first < all && !proof->report->message; first += VERIFY_BATCH) {
        int64_t end = all - first < VERIFY_BATCH ? all : first + VERIFY_BATCH, count = 0;
        for (int64_t e = first; e < end; e++)
            if (tensor_has(tensor, e))
                elements[count++] = e;
        compare(proof, tensor, memory, elements, count);
    }
}

/* The bits behind the last element of a b1 tensor are zero, but for bytes that a launch alone has not
   written. */
static void compare_tail(Proof *proof, const Tensor *tensor, const void *memory)
{
    const unsigned char *bytes = memory;
    int64_t count = tensor_elements(tensor);
    if (tensor->dtype != DTYPE_B1)
        return;
    for (int64_t bit = count; bit < round_up(count, 32); bit++) {
        unsigned byte = bytes[bit / 8];
        if (!(byte >> bit % 8 & 1) || (proof->launch && byte == proof->pass->poison))
            continue;
        StrBuf out = strbuf_new(proof->arena);
        strbuf_printf(&out, "the padding bits of %s are not zero", tensor_shown(tensor)->name);
        verify_wrong(proof, out.text);
        return;
    }
}

void verify_compare_whole(Proof *proof, const RuntimeResult *result)
{
    const Program *program = proof->kernel->program;
    for (int i = 0; i < program->output_count && !proof->report->message; i++) {
        const Tensor *tensor = program->outputs[i];
        const void *memory = result->buffers[program->input_count + i];
        compare_all(proof, tensor, memory);
        if (!proof->report->message)
            compare_tail(proof, tensor, memory);
    }
}

/* What is written at once, at least, in bytes: parts of a word of b1 may belong to several blocks. */
static int64_t unit_of(const Tensor *tensor)
{
    return tensor->dtype == DTYPE_B1 ? 1 : dtype_info[tensor->dtype].bits / 8;
}

/* Bytes that still hold the poison are taken as not written. What a kernel writes may look like it, above all
   eight bits that are alike: real inputs and whole ones are run with different poisons. */
static bool is_poisoned(const unsigned char *memory, int64_t bytes, int poison)
{
    for (int64_t i = 0; i < bytes; i++)
        if (memory[i] != poison)
            return false;
    return true;
}

/* Where a page and a written tensor overlap: bytes [low, high) of the tensor. */
typedef struct Overlap {
    const Tensor *tensor;
    const unsigned char *memory;   // of the tensor
    int64_t low, high;
} Overlap;

static bool overlap(const Proof *proof, const RuntimeResult *result, const RuntimePage *page, int index,
                    Overlap *both)
{
    const RuntimeTensor *tensor = &proof->tensors[index];
    int64_t low = page->offset > tensor->offset ? page->offset : tensor->offset;
    int64_t page_end = page->offset + page->bytes, end = tensor->offset + tensor->bytes;
    int64_t high = page_end < end ? page_end : end;
    if (tensor->buffer != page->buffer || !tensor->written || low >= high)
        return false;
    const unsigned char *memory = (unsigned char *)result->buffers[page->buffer] + tensor->offset;
    *both = (Overlap){proof->sources[index], memory, low - tensor->offset, high - tensor->offset};
    return true;
}

/* The elements of an overlap that were written, every `step`-th of all that are found; `found`
 * counts on. */
static void compare_overlap(Proof *proof, const Overlap *both, int64_t step, int64_t *found)
{
    int64_t unit = unit_of(both->tensor);
    int64_t elements[VERIFY_BATCH], count = 0, all = tensor_elements(both->tensor);
    for (int64_t at = both->low; at < both->high && !proof->report->message; at += unit) {
        if (is_poisoned(both->memory + at, unit, proof->pass->poison))
            continue;
        int64_t first = verify_elements_in(both->tensor, at),
                last = verify_elements_in(both->tensor, at + unit);
        for (int64_t e = first; e < last && e < all; e++) {
            if ((*found)++ % step != 0)
                continue;
            elements[count++] = e;
            if (count == VERIFY_BATCH) {
                compare(proof, both->tensor, both->memory, elements, count);
                count = 0;
            }
        }
    }
    if (!proof->report->message)
        compare(proof, both->tensor, both->memory, elements, count);
    if (both->high == tensor_bytes(both->tensor) && !proof->report->message)
        compare_tail(proof, both->tensor, both->memory);
}

static int64_t count_written(const Proof *proof, const Overlap *both)
{
    int64_t unit = unit_of(both->tensor), count = 0;
    for (int64_t at = both->low; at < both->high; at += unit)
        count += !is_poisoned(both->memory + at, unit, proof->pass->poison);
    return count * (verify_elements_in(both->tensor, unit));
}

/* What the launch wrote: all of it, or where the reference would take too long, elements at equal
 * distances. */
void verify_compare_pages(Proof *proof, const RuntimeResult *result)
{
    Overlap both;
    for (int i = 0; i < proof->tensor_count && !proof->report->message; i++) {
        int64_t written = 0, found = 0;
        if (!proof->sources[i])
            continue;   // a whole buffer
        for (int64_t p = 0; p < result->page_count; p++)
            if (overlap(proof, result, &result->pages[p], i, &both))
                written += count_written(proof, &both);
        double share = (double)written / (double)tensor_elements(proof->sources[i]);   // of rows too
        double work =
            (double)written * LOOKUP_WORK + share * verify_judge_work(proof, proof->sources[i], true);
        int64_t step = work > CHECK_WORK ? (int64_t)(work / CHECK_WORK) + 1 : 1;
        while (greatest_common_divisor(step, tensor_elements(proof->sources[i])) > 1)
            step++;   // elements at other distances are of some positions along inner dimensions only
        step = step < written ? step : written > 1 ? written - 1 : 1;   // the first and the last at least
        for (int64_t p = 0; p < result->page_count && !proof->report->message; p++)
            if (overlap(proof, result, &result->pages[p], i, &both))
                compare_overlap(proof, &both, step, &found);
    }
}
