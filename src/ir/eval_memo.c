// Elements that were computed before. A tensor of ordinary size has a table of pages; the pages of
// a huge one are kept in a hash table, so that a few elements of 2^40 cost a few pages, and are all
// forgotten when they have become too many.
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "ir/eval_parts.h"

struct Page {
    int64_t number;   // offset / PAGE_CELLS
    uint64_t known;   // bit i: cells[i] is there
    Cell cells[PAGE_CELLS];
};

enum {
    TABLE_ELEMENTS = 1 << 24,   // the table itself is then 2 MB
    HASHED_PAGES = 1 << 16,     // 68 MB
    FIRST_SLOTS = 1 << 8,
};

static void *take(int64_t count, size_t size)
{
    void *memory = calloc((size_t)count, size);
    if (!memory)
        fatal(EXIT_MACHINE, "out of memory in the reference evaluator");
    return memory;
}

Memo memo_new(int64_t elements)
{
    Memo memo = {.hashed = elements > TABLE_ELEMENTS};
    memo.slots = memo.hashed ? FIRST_SLOTS : ceil_div(elements, PAGE_CELLS);
    memo.pages = take(memo.slots, sizeof(Page *));
    return memo;
}

static void forget_pages(Memo *memo)
{
    for (int64_t i = 0; i < memo->slots; i++) {
        free(memo->pages[i]);
        memo->pages[i] = NULL;
    }
    memo->used = 0;
}

void memo_free(Memo *memo)
{
    forget_pages(memo);
    free(memo->pages);
    *memo = (Memo){.slots = 0};
}

void memo_trim(Memo *memo)
{
    if (memo->hashed && memo->used >= HASHED_PAGES)
        forget_pages(memo);
}

/* The slot of the page, or the free one where it belongs; `slots` is a power of two and never full.
   */
static Page **hashed_slot(const Memo *memo, int64_t number)
{
    uint64_t hash = (uint64_t)number * 0x9e3779b97f4a7c15u;
    int64_t mask = memo->slots - 1, slot = (int64_t)(hash >> 32) & mask;
    while (memo->pages[slot] && memo->pages[slot]->number != number)
        slot = (slot + 1) & mask;
    return &memo->pages[slot];
}

static inline Page **page_slot(const Memo *memo, int64_t number)
{
    return memo->hashed ? hashed_slot(memo, number) : &memo->pages[number];
}

static void grow(Memo *memo)
{
    Memo larger = {.slots = memo->slots * 2, .used = memo->used, .hashed = true};
    larger.pages = take(larger.slots, sizeof(Page *));
    for (int64_t i = 0; i < memo->slots; i++)
        if (memo->pages[i])
            *hashed_slot(&larger, memo->pages[i]->number) = memo->pages[i];
    free(memo->pages);
    *memo = larger;
}

static Page *page_make(Memo *memo, int64_t number)
{
    if (memo->hashed && memo->used * 2 >= memo->slots)
        grow(memo);
    Page **slot = page_slot(memo, number);
    if (!*slot) {
        *slot = take(1, sizeof(Page));
        (*slot)->number = number;
        memo->used++;
    }
    return *slot;
}

int memo_copy(Memo *memo, const int64_t *offsets, int count, Cell *cells)
{
    const Page *page = NULL;
    for (int i = 0; i < count; i++) {
        int64_t offset = offsets[i];
        if (offset < 0)
            continue;
        if (!page || page->number != offset / PAGE_CELLS)
            page = *page_slot(memo, offset / PAGE_CELLS);
        if (!page || !(page->known >> offset % PAGE_CELLS & 1))
            return i;
        cells[i] = page->cells[offset % PAGE_CELLS];
    }
    return count;
}

int memo_claim(Memo *memo, const int64_t *offsets, int count, int64_t *wanted)
{
    int found = 0;
    for (int i = 0; i < count; i++) {
        if (offsets[i] < 0)
            continue;
        Page *page = page_make(memo, offsets[i] / PAGE_CELLS);
        uint64_t bit = (uint64_t)1 << offsets[i] % PAGE_CELLS;
        if (!(page->known & bit))
            wanted[found++] = offsets[i];
        page->known |= bit;
    }
    return found;
}

void memo_put(Memo *memo, const int64_t *offsets, int count, const Cell *cells)
{
    for (int i = 0; i < count; i++)
        (*page_slot(memo, offsets[i] / PAGE_CELLS))->cells[offsets[i] % PAGE_CELLS] = cells[i];
}
