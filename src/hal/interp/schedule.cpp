// Threads as fibers of one process.
//
// A thread runs on the stack of the one that ended before it as long as nobody waits; a kernel without
// barriers switches not at all:
//
//   fiber 0   thread 0 ------ thread 1 ------ thread 2 ...           no barrier: one stack
//
//   fiber 0   thread 0 --| waits               |-- goes on -- end    a barrier: a stack for
//   fiber 1              |-- thread 1 --| waits     |-- ...          each thread that waits
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace rollerc_interp {

// ---- fibers ----

#if defined(__x86_64__)

struct Fiber {
    void *stack_pointer;
    Fiber *next_free;
};

extern "C" void rollerc_interp_swap(void **save, void *resume);
asm(R"(
    .text
    .globl rollerc_interp_swap
    .hidden rollerc_interp_swap
    .type rollerc_interp_swap, @function
rollerc_interp_swap:
    push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp
    ret
    .size rollerc_interp_swap, . - rollerc_interp_swap
)");

static void fiber_swap(Fiber *from, Fiber *to)
{
    rollerc_interp_swap(&from->stack_pointer, to->stack_pointer);
}

static void fiber_prepare(Fiber *fiber, void (*body)())
{
    void **top = static_cast<void **>(host->map_stack(STACK_BYTES));
    *--top = nullptr;                          // `body` then sees the alignment of a called function
    *--top = reinterpret_cast<void *>(body);   // where the swap returns to
    fiber->stack_pointer = top - 6;            // six registers, all zero
}

#else

struct Fiber {
    ucontext_t context;
    Fiber *next_free;
};

static void fiber_swap(Fiber *from, Fiber *to) { swapcontext(&from->context, &to->context); }

static void fiber_prepare(Fiber *fiber, void (*body)())
{
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = static_cast<char *>(host->map_stack(STACK_BYTES)) - STACK_BYTES;
    fiber->context.uc_stack.ss_size = STACK_BYTES;
    fiber->context.uc_link = nullptr;
    makecontext(&fiber->context, body, 0);
}

#endif

Fiber fibers[MAX_THREADS], scheduler;
Fiber *running = &scheduler, *free_fibers;
int fiber_count;

void switch_to(Fiber *to)
{
    Fiber *from = running;
    running = to;
    if (from != to)
        fiber_swap(from, to);
}

// ---- who runs ----

int lowest_bit(unsigned long long mask) { return __builtin_ctzll(mask); }
int highest_bit(unsigned long long mask) { return 63 - __builtin_clzll(mask); }

void make_ready(int warp, LaneMask lanes)
{
    warps[warp].ready |= lanes;
    ready_warps |= 1u << warp;
}

void unready(int warp, int lane)
{
    warps[warp].ready &= ~(LaneMask(1) << lane);
    if (!warps[warp].ready)
        ready_warps &= ~(1u << warp);
}

// Priorities of warps that change rarely, as Burckhardt et al. found best at reaching rare orders (PCT,
// ASPLOS'10); lanes in any order.
namespace {

unsigned long long dice;

unsigned roll(unsigned sides)
{
    dice = hash(dice);
    return static_cast<unsigned>(dice % sides);
}

int most_important_warp()
{
    enum { PICKS_A_CHANGE = 64 };
    if (roll(PICKS_A_CHANGE) == 0)
        warps[roll(static_cast<unsigned>(warp_count))].priority = static_cast<unsigned char>(roll(256));
    int best = lowest_bit(ready_warps);
    for (int w = best + 1; w < warp_count; w++)
        if (ready_warps >> w & 1 && warps[w].priority > warps[best].priority)
            best = w;
    return best;
}

int any_lane(LaneMask ready)
{
    for (unsigned skip = roll(static_cast<unsigned>(__builtin_popcountll(ready))); skip > 0; skip--)
        ready &= ready - 1;
    return lowest_bit(ready);
}

}   // namespace

void draw_priorities(unsigned long long seed)
{
    dice = hash(seed);
    for (int w = 0; w < warp_count; w++)
        warps[w].priority = static_cast<unsigned char>(roll(256));
}

// One warp goes as far as it can, then the next.
Thread *pick()
{
    int warp, lane;
    if (!ready_warps)
        return nullptr;
    switch (host->schedule) {
    case INTERP_LOWEST_FIRST:
        warp = lowest_bit(ready_warps);
        lane = lowest_bit(warps[warp].ready);
        break;
    case INTERP_HIGHEST_FIRST:
        warp = highest_bit(ready_warps);
        lane = highest_bit(warps[warp].ready);
        break;
    default:
        warp = most_important_warp();
        lane = any_lane(warps[warp].ready);
    }
    unready(warp, lane);
    return &threads[warp * WARP + lane];
}

[[noreturn]] void fail_deadlock()
{
    for (int i = 0; i < thread_count; i++)
        if (threads[i].alive) {
            current = &threads[i];
            fail_at(current->place, "deadlock: this thread waits for others that will never come");
        }
    __builtin_unreachable();
}

void finish(Thread *thread)
{
    finish_copies(thread);
    thread->alive = false;
    alive--;
    const Meeting &meeting = warps[thread->warp].meeting;
    if (meeting.arrived)
        fail_at(meeting.place, "a lane ended while the others of its warp meet");
    if (at_barrier)
        fail_at(barrier_place, "a thread ended while others wait at the barrier");
}

// The life of a fiber: a thread, then the next that has not started, and rest until it is needed again.
void work()
{
    for (;;) {
        invocation->call(*invocation);
        finish(current);
        Thread *next = pick();
        if (!next && alive)
            fail_deadlock();
        current = next;
        if (next && !next->fiber) {
            next->fiber = running;
            continue;
        }
        running->next_free = free_fibers;
        free_fibers = running;
        switch_to(next ? next->fiber : &scheduler);
    }
}

void resume(Thread *thread)
{
    current = thread;
    if (!thread->fiber && free_fibers) {
        thread->fiber = free_fibers;
        free_fibers = free_fibers->next_free;
    } else if (!thread->fiber) {
        thread->fiber = &fibers[fiber_count++];
        fiber_prepare(thread->fiber, work);
    }
    switch_to(thread->fiber);
}

void wait_at(Place place)
{
    current->place = place;
    Thread *self = current, *next = pick();
    if (!next)
        fail_deadlock();
    if (next != self)
        resume(next);
}

// A place where another thread may go on, though this one need not wait.
void preempt(Place place)
{
    if (host->schedule != INTERP_PRIORITY)
        return;
    make_ready(current->warp, LaneMask(1) << current->lane);
    wait_at(place);
}

}   // namespace rollerc_interp
