// Asynchronous copies, each as late as it may be.
//
// A copy lands when its thread waits for it and not before; until then its target holds NaNs, so that a wait or a
// barrier that is missing shows in the values.
namespace rollerc_interp {

struct Copy {
    unsigned char *target;
    const unsigned char *source;
    int bytes;
    unsigned group;             // it belongs to its thread's commit of this number
    Copy *next;                 // of the same thread, or of the free ones
};

namespace {

enum { MAX_COPIES = 1 << 18 };   // 16 blocks of a cluster that fill their 227 KB by 16 bytes have 232,448 under way
Copy copies[MAX_COPIES], *free_copies;
int copy_count;

Copy *take_copy(Place place)
{
    Copy *copy = free_copies;
    if (copy)
        free_copies = copy->next;
    else if (copy_count < MAX_COPIES)
        copy = &copies[copy_count++];
    else
        fail_at(place, "more asynchronous copies are under way than the interpreter can hold");
    return copy;
}

void land(Thread *thread)
{
    Copy *copy = thread->first_copy;
    __builtin_memcpy(copy->target, copy->source, static_cast<size_t>(copy->bytes));
    note_flight(copy->target, copy->bytes, false);
    note_access(copy->target, copy->bytes, true);
    count_shared(-copy->bytes, true);   // it was counted when the copy began
    thread->first_copy = copy->next;
    copy->next = free_copies;
    free_copies = copy;
}

}   // namespace

void async_copy(void *shared, const void *global, int bytes, Place place)
{
    if ((reinterpret_cast<size_t>(shared) | reinterpret_cast<size_t>(global)) % static_cast<size_t>(bytes) != 0)
        fail_at(place, "an asynchronous copy from or to an address that is not aligned to its bytes");
    Thread *self = current;
    Copy *copy = take_copy(place);
    *copy = {static_cast<unsigned char *>(shared), static_cast<const unsigned char *>(global), bytes, self->copy_groups, nullptr};
    (self->first_copy ? self->last_copy->next : self->first_copy) = copy;
    self->last_copy = copy;
    host->file = place.file;
    host->line = place.line;
    note_access(const_cast<void *>(global), bytes, false);
    note_access(shared, bytes, true);
    static_cast<const volatile unsigned char *>(global)[0];   // a source that is nowhere faults here
    static_cast<const volatile unsigned char *>(global)[bytes - 1];
    __builtin_memset(shared, 0xff, static_cast<size_t>(bytes));
    note_flight(shared, bytes, true);
    host->file = nullptr;
    preempt(place);
}

void async_commit(Place place)
{
    current->copy_groups++;
    preempt(place);
}

void async_wait(unsigned groups, Place place)
{
    Thread *self = current;
    host->file = place.file;
    host->line = place.line;
    while (self->first_copy && self->copy_groups - self->first_copy->group > groups)
        land(self);
    count_wait(self->first_copy ? self->copy_groups - self->first_copy->group : 0);
    host->file = nullptr;
    preempt(place);
}

void finish_copies(Thread *thread)
{
    if (thread->first_copy)
        host->fail("the thread ends before its asynchronous copies have landed");
    thread->copy_groups = 0;
}

}   // namespace rollerc_interp
