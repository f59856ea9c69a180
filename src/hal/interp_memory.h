// The buffers of an interpreted program: each between two guard regions, its end as close to the
// upper one as its alignment allows; canaries fill the bytes that are left over.
//
//   guard | canaries | tensor bytes ...................... | < 16 canaries | guard
//         ^ page                                                           ^ page
//
// They are mapped before the child is forked and shared with it. Their chunks ("pieces") are opened: filled with what
// their tensors hold, or poisoned. Most jobs open all of them, and lock tensors that are only read. Lazy ones
// open a chunk when a checked access first touches it. (Faults of locked pages could tell, too, but each
// opened page would be a mapping, of which a process may have some 65,000: a transposed matrix touches more.)
#pragma once
#include "hal/runtime.h"

typedef struct InterpMemory InterpMemory;

/* NULL: there is not enough memory. */
InterpMemory *interp_memory_map(Arena *arena, const RuntimeJob *job, int arguments, int buffer_count);
void interp_memory_unmap(InterpMemory *memory);

/* In the parent, when the child has ended: the buffers can be read. */
void interp_memory_show(const InterpMemory *memory);
void *interp_memory_buffer(const InterpMemory *memory, int buffer);
const RuntimePage *interp_memory_pages(const InterpMemory *memory, int64_t *count);

// In the child.
void interp_memory_open_all(InterpMemory *memory);
/* Between NAME_prepare and a call: what was prepared may only be read, the file of weights not at all, and the
   workspace holds the poison again. */
void interp_memory_seal(InterpMemory *memory);
/* Before a call: inputs are filled, and all that it writes holds the poison. */
void interp_memory_refill(InterpMemory *memory, RuntimeFill *fill);
/* Of a lazy job, instead: makes the buffers accessible, to be opened chunk by chunk. */
void interp_memory_unlock(InterpMemory *memory);
void interp_memory_open(InterpMemory *memory, const void *address);
/* Whether chunk i of the buffer, counted from `first_page`, is open. */
const unsigned char *interp_memory_opened(const InterpMemory *memory, int buffer, unsigned char **first_page);
/* What is wrong with an access there; false: it is near no buffer. */
bool interp_memory_describe(const InterpMemory *memory, const void *address, bool write, char *what,
                            size_t size);
/* False, and what happened: something was written outside a buffer. */
bool interp_memory_check(const InterpMemory *memory, char *what, size_t size);

/* `count` buffers of `bytes` with guard regions on both sides of each, ending at the upper one but for the
   alignment of 16: the first of them, and the distance to the next. NULL: no memory. */
unsigned char *guarded_map(int64_t bytes, int64_t count, int64_t *stride);
void guarded_unmap(unsigned char *first, int64_t bytes, int64_t count);
