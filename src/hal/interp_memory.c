#include "hal/interp_memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "hal/interp/interface.h"

enum {
    PAGE = 4096,
    PIECE = INTERP_PIECE_BYTES,
    GUARD = 16 << 20,   // a wrong stride jumps further than a page
    ALIGNMENT = 16,     // what a launcher may demand of an argument
    BESIDE_ALIGNMENT = 256,   // of the workspace, what is prepared, weights
    CANARY = 0xa5,
    MAX_PIECES = 1 << 20   // of a lazy job that are remembered: 256 MiB touched
};

typedef struct Buffer {
    unsigned char *mapping, *first_page, *start;
    int64_t mapping_bytes;
    int64_t bytes, padded_bytes;   // the latter ends at the upper guard
    unsigned char *opened;         // one byte a chunk
} Buffer;

struct InterpMemory {
    const RuntimeJob *job;
    Buffer *buffers;
    int arguments, count;
    RuntimePage *pages;   // shared with the child
    int64_t *page_count;
};

static void *map(int64_t bytes, int protection, int sharing)
{
    void *memory =
        mmap(NULL, (size_t)bytes, protection, sharing | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static int64_t page_span(const Buffer *buffer)
{
    return buffer->mapping_bytes - 2 * (int64_t)GUARD;
}

static bool buffer_map(Buffer *buffer, int64_t bytes, int64_t alignment)
{
    buffer->bytes = bytes;
    buffer->padded_bytes = round_up(bytes, alignment);
    int64_t span = round_up(buffer->padded_bytes, PAGE);
    buffer->mapping_bytes = span + 2 * (int64_t)GUARD;
    buffer->mapping = map(buffer->mapping_bytes, PROT_NONE, MAP_SHARED);
    buffer->opened = map(span / PIECE + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    if (!buffer->mapping || !buffer->opened)
        return false;
    buffer->first_page = buffer->mapping + GUARD;
    buffer->start = buffer->first_page + span - buffer->padded_bytes;
    return true;
}

InterpMemory *interp_memory_map(Arena *arena, const RuntimeJob *job, int arguments, int buffer_count)
{
    InterpMemory *memory = NEW(arena, InterpMemory);
    memory->job = job;
    memory->arguments = arguments;
    memory->count = buffer_count;
    memory->buffers = NEW_ARRAY(arena, Buffer, buffer_count);
    memory->page_count =
        map(PAGE + MAX_PIECES * (int64_t)sizeof(RuntimePage), PROT_READ | PROT_WRITE, MAP_SHARED);
    bool mapped = memory->page_count != NULL;
    if (mapped)
        memory->pages = (RuntimePage *)((char *)memory->page_count + PAGE);
    for (int i = 0; i < buffer_count && mapped; i++)
        mapped = buffer_map(&memory->buffers[i], job->buffer_bytes[i],
                            i >= arguments ? BESIDE_ALIGNMENT : ALIGNMENT);
    if (mapped)
        return memory;
    interp_memory_unmap(memory);
    return NULL;
}

void interp_memory_unmap(InterpMemory *memory)
{
    for (int i = 0; i < memory->count; i++) {
        Buffer *buffer = &memory->buffers[i];
        if (buffer->opened)
            munmap(buffer->opened, (size_t)(page_span(buffer) / PIECE + 1));
        if (buffer->mapping)
            munmap(buffer->mapping, (size_t)buffer->mapping_bytes);
    }
    if (memory->page_count)
        munmap(memory->page_count, PAGE + MAX_PIECES * sizeof(RuntimePage));
}

static void protect(const Buffer *buffer, int protection)
{
    mprotect(buffer->first_page, (size_t)page_span(buffer), protection);
}

void interp_memory_show(const InterpMemory *memory)
{
    for (int i = 0; i < memory->count; i++)
        protect(&memory->buffers[i], PROT_READ);
}

void *interp_memory_buffer(const InterpMemory *memory, int buffer)
{
    return memory->buffers[buffer].start;
}

const RuntimePage *interp_memory_pages(const InterpMemory *memory, int64_t *count)
{
    *count = *memory->page_count;
    return memory->pages;
}

// ---- opening ----

/* The part of [first, first + count) that lies in [low, high); empty: false. */
static bool clip(int64_t *first, int64_t *count, int64_t low, int64_t high)
{
    int64_t last = *first + *count;
    *first = *first > low ? *first : low;
    last = last < high ? last : high;
    *count = last - *first;
    return *count > 0;
}

/* Gives bytes [offset, offset + count) of the buffer their contents; whether any of them may be
 * written. */
static bool fill_tensors(InterpMemory *memory, int index, int64_t offset, int64_t count)
{
    const RuntimeJob *job = memory->job;
    bool writable = false;
    for (int i = 0; i < job->tensor_count; i++) {
        const RuntimeTensor *tensor = &job->tensors[i];
        int64_t first = offset, bytes = count;
        if (tensor->buffer != index ||
            !clip(&first, &bytes, tensor->offset, tensor->offset + tensor->bytes))
            continue;
        bool later = tensor->costly && job->lazy;
        writable |= tensor->written || later;
        unsigned char *target = memory->buffers[index].start + first;
        if (tensor->written || later)
            memset(target, job->poison, (size_t)bytes);
        else
            job->fill(job->context, i, first - tensor->offset, bytes, target);
    }
    return writable;
}

/* Opens chunks [piece, piece + count) of a buffer; whether any of them may be written. Bytes between tensors hold
 * canaries. */
static bool open_pieces(InterpMemory *memory, int index, int64_t piece, int64_t count)
{
    Buffer *buffer = &memory->buffers[index];
    unsigned char *start = buffer->first_page + piece * PIECE;
    int64_t first = start - buffer->start, length = count * PIECE;
    memset(start, CANARY, (size_t)length);
    memset(buffer->opened + piece, 1, (size_t)count);
    clip(&first, &length, 0, buffer->bytes);
    if (memory->job->lazy && *memory->page_count < MAX_PIECES)
        memory->pages[(*memory->page_count)++] = (RuntimePage){index, first, length};
    return fill_tensors(memory, index, first, length);
}

static bool buffer_is_used(const InterpMemory *memory, int index)
{
    for (int i = 0; i < memory->job->tensor_count; i++)
        if (memory->job->tensors[i].buffer == index)
            return true;
    return false;
}

void interp_memory_unlock(InterpMemory *memory)
{
    for (int i = 0; i < memory->count; i++)
        if (memory->buffers[i].bytes > 0 && buffer_is_used(memory, i))
            protect(&memory->buffers[i], PROT_READ | PROT_WRITE);
}

void interp_memory_open_all(InterpMemory *memory)
{
    interp_memory_unlock(memory);
    for (int i = 0; i < memory->count; i++)
        if (memory->buffers[i].bytes > 0 && buffer_is_used(memory, i) &&
            !open_pieces(memory, i, 0, page_span(&memory->buffers[i]) / PIECE))
            protect(&memory->buffers[i], PROT_READ);
}

// ---- calls of a program that was prepared ----

static void poison_tensor(InterpMemory *memory, const RuntimeTensor *tensor)
{
    memset(memory->buffers[tensor->buffer].start + tensor->offset, memory->job->poison, (size_t)tensor->bytes);
}

void interp_memory_seal(InterpMemory *memory)
{
    protect(&memory->buffers[memory->arguments + BUFFER_PREPARED], PROT_READ);
    protect(&memory->buffers[memory->arguments + BUFFER_WEIGHTS], PROT_NONE);
    for (int i = 0; i < memory->job->tensor_count; i++)
        if (memory->job->tensors[i].buffer == memory->arguments + BUFFER_WORKSPACE)
            poison_tensor(memory, &memory->job->tensors[i]);
}

void interp_memory_refill(InterpMemory *memory, RuntimeFill *fill)
{
    const RuntimeJob *job = memory->job;
    for (int i = 0; i < job->tensor_count; i++) {
        const RuntimeTensor *tensor = &job->tensors[i];
        Buffer *buffer = &memory->buffers[tensor->buffer];
        if (tensor->buffer > memory->arguments + BUFFER_WORKSPACE)
            continue;
        if (tensor->written) {
            poison_tensor(memory, tensor);
            continue;
        }
        protect(buffer, PROT_READ | PROT_WRITE);
        fill(job->context, i, 0, tensor->bytes, buffer->start + tensor->offset);
        protect(buffer, PROT_READ);
    }
}

const unsigned char *interp_memory_opened(const InterpMemory *memory, int buffer, unsigned char **first_page)
{
    *first_page = memory->buffers[buffer].first_page;
    return memory->buffers[buffer].opened;
}

// ---- what went wrong ----

static const char *buffer_name(const InterpMemory *memory, int index)
{
    static const char *const beside[] = {
        [BUFFER_WORKSPACE] = "the workspace", [BUFFER_PREPARED] = "what was prepared", [BUFFER_WEIGHTS] = "the weights"};
    if (index >= memory->arguments)
        return beside[index - memory->arguments];
    for (int i = 0; i < memory->job->tensor_count; i++)
        if (memory->job->tensors[i].buffer == index)
            return memory->job->tensors[i].name;
    return "an argument that this launch does not name";
}

static void describe(const InterpMemory *memory, int index, int64_t offset, bool write, char *what,
                     size_t size)
{
    const Buffer *buffer = &memory->buffers[index];
    const char *name = buffer_name(memory, index), *verb = write ? "writes" : "reads";
    if (offset < 0)
        snprintf(what, size, "%s %lld bytes before the start of %s", verb, (long long)-offset,
                 name);
    else if (offset >= buffer->bytes)
        snprintf(what, size, "%s at byte %lld of %s, which has %lld", verb, (long long)offset,
                 name, (long long)buffer->bytes);
    else
        snprintf(what, size, "%s at byte %lld of %s, where it may not", verb, (long long)offset,
                 name);
}

/* The buffer that the address lies in or near; -1: none. */
static int buffer_near(const InterpMemory *memory, const unsigned char *at)
{
    for (int i = 0; i < memory->count; i++) {
        const Buffer *buffer = &memory->buffers[i];
        if (at >= buffer->mapping && at < buffer->mapping + buffer->mapping_bytes)
            return i;
    }
    return -1;
}

bool interp_memory_describe(const InterpMemory *memory, const void *address, bool write, char *what,
                            size_t size)
{
    const unsigned char *at = address;
    int index = buffer_near(memory, at);
    if (index >= 0)
        describe(memory, index, at - memory->buffers[index].start, write, what, size);
    return index >= 0;
}

void interp_memory_open(InterpMemory *memory, const void *address)
{
    int index = buffer_near(memory, address);
    open_pieces(memory, index, ((const unsigned char *)address - memory->buffers[index].first_page) / PIECE,
                1);
}

/* The first byte of [first, last) that is no canary; NULL if there is none, or its chunk was never
 * opened. */
static const unsigned char *broken_canary(const Buffer *buffer, const unsigned char *first,
                                          const unsigned char *last)
{
    for (const unsigned char *at = first; at < last; at++)
        if (buffer->opened[(at - buffer->first_page) / PIECE] && *at != CANARY)
            return at;
    return NULL;
}

bool interp_memory_check(const InterpMemory *memory, char *what, size_t size)
{
    interp_memory_show(memory);   // the weights may be out of reach
    for (int i = 0; i < memory->count; i++) {
        const Buffer *buffer = &memory->buffers[i];
        const unsigned char *end = buffer->start + buffer->bytes;
        const unsigned char *at = broken_canary(buffer, buffer->first_page, buffer->start);
        if (!at)
            at = broken_canary(buffer, end, buffer->start + buffer->padded_bytes);
        if (!at)
            continue;
        describe(memory, i, at - buffer->start, true, what, size);
        return false;
    }
    return true;
}

// ---- memory between guard regions ----

static int64_t guarded_stride(int64_t bytes) { return round_up(bytes, PAGE) + GUARD; }

unsigned char *guarded_map(int64_t bytes, int64_t count, int64_t *stride)
{
    int64_t span = round_up(bytes, PAGE);
    *stride = guarded_stride(bytes);
    unsigned char *mapping = map(count * *stride + GUARD, PROT_NONE, MAP_PRIVATE);
    for (int64_t i = 0; i < count && mapping && span > 0; i++)
        if (mprotect(mapping + GUARD + i * *stride, (size_t)span, PROT_READ | PROT_WRITE) != 0)
            return NULL;
    return mapping ? mapping + GUARD + span - round_up(bytes, ALIGNMENT) : NULL;
}

void guarded_unmap(unsigned char *first, int64_t bytes, int64_t count)
{
    unsigned char *mapping = first + round_up(bytes, ALIGNMENT) - round_up(bytes, PAGE) - GUARD;
    munmap(mapping, (size_t)(count * guarded_stride(bytes) + GUARD));
}
