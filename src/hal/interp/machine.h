// What the parts of the machine share: a team of blocks that run concurrently (a cluster, or a cooperative grid), their
// warps and threads.
//
//   schedule.cpp   fibers, and which thread runs next
//   meet.cpp       barriers, shuffles and ballots
//   copies.cpp     asynchronous copies
//   tiles.cpp      tensor cores
//   products.cpp   those that read shared memory
//   bulk.cpp       copies of boxes, and the barriers that count their bytes
//   shadow.cpp     what is known of memory: races, uninitialised reads, traffic
//   earlier.cpp    launches that begin before those before them have ended
//   counts.cpp     what single blocks do, to be compared with schedules
//   launch.cpp     grids, teams of blocks and the way in
//   graph.cpp      launches in another order than the stream's
//
// They are a part of rollerc and run in a child of it. The first thing that is wrong ends the process
// (host->fail): what follows would prove nothing.
#include "calls.h"
#include "hal/launch.h"
#include "interface.h"

namespace rollerc_interp {

using LaneMask = unsigned long long;   // bit i: lane i

enum {
    MAX_LANES = 64,                 // a warp; AMD's
    MAX_THREADS = 1024,             // a block, on every GPU
    MAX_TEAM_THREADS = 1 << 18,     // 132 SMs hold 270,336
    MAX_TEAM_BLOCKS = 1 << 13,
    MAX_TEAM_WARPS = 1 << 14,       // of blocks of 33 threads there are 7943, with two warps each
    MAX_KERNELS = 4096,             // launches of one program that ask for more shared memory or larger clusters
    MAX_BULK_BARRIERS = 64,         // of a block
    STACK_BYTES = 256 << 10
};

struct Block;
struct Fiber;
struct Copy;
struct Product;
struct Sums;
struct BulkCopy;
struct BulkBarrier;
struct Thread {
    uint3 index;
    int number, lane, warp;       // within the block
    Block *block;
    bool alive;
    bool waits_for_cluster;
    bool waited_for_earlier;      // launches
    unsigned arrivals, waits;     // at barriers of its cluster, that it has made; equal outside of them
    Fiber *fiber;                 // its stack; none before it starts
    Place place;                  // where it waits
    unsigned long long result;    // of the last exchange
    Copy *first_copy, *last_copy; // asynchronous, in flight
    unsigned copy_groups;         // that were committed
    unsigned shown;               // how often it has called show_operands()
    BulkBarrier *waits_for;       // null: for none
};

struct Meeting {                    // of a warp's lanes at a shuffle or ballot
    LaneMask arrived;
    Place place;
    unsigned long long bits[MAX_LANES];
    int source[MAX_LANES];              // -1: a ballot; -2: warp_sync; -3: see together()
};

struct Warp {
    LaneMask lanes, ready;          // that exist; that can run
    unsigned epoch;                 // counts its warp_sync()s
    Meeting meeting;
    Product *first_product, *last_product;   // in flight
    Sums *sums;                     // to which they are added
    unsigned product_groups;        // that were closed
    bool products_open;             // sums were handed over since the last wait
    unsigned long long products;    // a hash of all there were
};

struct Gathering {                  // of threads at a barrier
    int arrived;
    Place place;
};

struct Cluster {
    Block *blocks;                  // by rank
    int alive;                      // threads
    Gathering barrier;
    unsigned barriers;              // at which all have arrived
};

struct BulkBarrier {              // of 8 bytes of shared memory
    long long at;                 // there
    int expected, missing;        // arrivals of each phase, and what this one still lacks
    long long bytes;              // that it lacks; below 0: they were sent before they were expected
    unsigned phases;              // that are over
    int waiting;                  // threads
    BulkCopy *first, *last;       // in flight
};

struct Block {
    uint3 index;
    Thread *threads;
    Warp *warps;
    Cluster *cluster;
    int rank;                       // in it
    unsigned ready_warps;           // bit i: warp i has a ready lane
    int alive;                      // threads
    Gathering barrier, roles;       // of all threads: at one place, at any
    unsigned epoch;                 // of its last barrier, or of its start
    unsigned char *shared;
    InterpCounts *counts;           // null: not a counted block
    int bulk_count;
    BulkBarrier bulk[MAX_BULK_BARRIERS];
    unsigned touched, touched_pc;   // others of the cluster accessed `shared`: 1 + their arrivals then; 0: none did
};

Thread *current;
ROLLERC_EXPORT Here here;           // of it
dim3 block_size, grid_size;

InterpHost *host;
const Invocation *invocation;
Thread threads[MAX_TEAM_THREADS];   // block by block
Warp warps[MAX_TEAM_WARPS];
Block blocks[MAX_TEAM_BLOCKS];      // cluster by cluster
Cluster clusters[MAX_TEAM_BLOCKS];
int thread_count, warp_count;       // of a block
int warp_size;
int team_blocks, cluster_blocks;    // of the team; of a cluster
dim3 cluster_shape;
bool cooperative;
bool early;                   // the launch may begin before those in front of it have ended
int alive;                          // threads of the team
Gathering grid_gathering;
size_t shared_bytes;                // of a block

// Counts barriers of blocks and grids, teams and launches: what lies in one epoch is not ordered by them.
unsigned epoch = 1;
unsigned grid_epoch, team_epoch, launch_epoch;   // with which the current ones began
unsigned settled_epoch;                         // up to which launches were waited for by the host

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

Warp &warp_of(const Thread *thread) { return thread->block->warps[thread->warp]; }

// What the host makes of the program's memory may recurse too deep for the stack of a thread.
struct Errand {
    void (*run)(const Errand &errand);
    const InterpRegion *region;
    long long offset;
    int bytes;
};

// schedule.cpp
void preempt(Place place);
void run_on_deep_stack(const Errand &errand);
// meet.cpp: the last of the warp's lanes to arrive does the work on what each has brought, by lane.
using Work = void (*)(void *const *brought);
void together(void *brought, Work work, Place place);
// copies.cpp
void finish_copies(Thread *thread);
// products.cpp
void finish_products(const Block &block);
// bulk.cpp
void finish_bulk(const Block &block);
// counts.cpp
void start_counts(Block *block);
void count_shared(int bytes, bool write);
void count_sectors(const InterpRegion *region, long long at, int bytes, bool write);
void count_meeting();
void count_barrier(long long InterpCounts::*scope);
void count_wait(unsigned pending);
void count_arithmetic_of(const Block *block);   // from now on
void count_tensor_products(int multiply_adds);
void count_copying_warp();
void count_turn();                 // a wait at a barrier in shared memory
void count_received(const Block *block);   // sectors that are read are its from now on; null: the current thread's block's
// shadow.cpp: accesses of the machine for a thread
bool is_known(const InterpRegion *region, long long byte);   // was written
void note_access(void *address, int bytes, bool write);
void note_copied(unsigned char *to, long long bytes);
void note_flight(void *shared, int bytes, bool under_way);
void note_received(const Block *block, unsigned char *global, int bytes);   // read for that block
void note_box(void *shared, bool under_way);   // 16 bytes that a bulk copy brings
void note_operand(void *shared);   // 16 bytes that a tensor core reads
void note_end(const Block &block);
void forget_shared();
void start_traffic();
// earlier.cpp
void note_earlier();   // of the launch that begins
bool has_waited();     // for what the stream did before it
bool is_too_early(const unsigned char *at);   // to touch that tensor

}   // namespace rollerc_interp
