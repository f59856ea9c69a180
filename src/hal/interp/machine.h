// What the parts of the machine share: the block that runs, its warps and threads.
//
//   schedule.cpp   fibers, and which thread runs next
//   meet.cpp       barriers, shuffles and ballots
//   copies.cpp     asynchronous copies
//   shadow.cpp     what is known of each 4 bytes of memory: races, uninitialised reads, traffic
//   launch.cpp     grids, blocks and the way in
//
// They are one translation unit, compiled without instrumentation. The first thing that is wrong ends the process
// (host->fail): what follows would prove nothing.
namespace rollerc_interp {

using rollerc::LaneMask;
using rollerc::WARP;

enum {
    MAX_THREADS = 1024,         // a block, on every GPU
    MAX_WARPS = 32,
    MAX_KERNELS = 64,           // launches of one program that raise their shared memory limit
    STACK_BYTES = 256 << 10
};

struct Meeting {                // of a warp's lanes at a shuffle or ballot
    LaneMask arrived;
    Place place;
    unsigned long long bits[WARP];
    int source[WARP];           // -1: a ballot; -2: warp_sync
};

struct Warp {
    LaneMask lanes, ready;      // that exist; that can run
    unsigned epoch;             // counts its warp_sync()s
    unsigned char priority;
    Meeting meeting;
};

Thread *current;
uint3 block_index;
dim3 block_size, grid_size;
unsigned char *shared_memory;

InterpHost *host;
const Invocation *invocation;
Thread threads[MAX_THREADS];
Warp warps[MAX_WARPS];
unsigned ready_warps;           // bit i: warp i has a ready lane
int thread_count, warp_count, alive, at_barrier;
Place barrier_place;
unsigned epoch = 1;             // counts barriers, blocks and launches: what lies in one epoch is not ordered
unsigned block_epoch, launch_epoch;   // with which the current ones began
size_t shared_bytes;

[[noreturn]] void fail_at(Place place, const char *what)
{
    host->file = place.file;
    host->line = place.line;
    host->fail("%s", what);
    __builtin_unreachable();
}

unsigned long long hash(unsigned long long x)   // splitmix64
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

// schedule.cpp
void preempt(Place place);
// copies.cpp
void finish_copies(Thread *thread);
// shadow.cpp: accesses of the machine for a thread
void note_access(void *address, int bytes, bool write);
void note_flight(void *shared, bool under_way);
void note_clear(void *memory, size_t count);
void forget_shared();
void start_traffic();

}   // namespace rollerc_interp
