// ---- thread block clusters ----

// Blocks of a cluster access each other's shared memory, cluster_map(part, rank)[0], between two cluster_sync() of all
// their threads: when all have started, and before any ends. Without clusters, a cluster is one block.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
DEVICE int cluster_rank()
{
    int rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
DEVICE int cluster_size()
{
    int blocks;
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
    return blocks;
}
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.aligned;" ::: "memory"); }
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }
DEVICE void cluster_sync() { asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory"); }
// Before the end. It orders no accesses, so that no store is waited for: an instruction before it must have used
// every value that was read from another block.
DEVICE void cluster_leave()
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
}
template <class T> DEVICE T *cluster_map(T *shared, int rank)
{ T *there; asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(shared), "r"(rank)); return there; }
#else
DEVICE int cluster_rank() { return 0; }
DEVICE int cluster_size() { return 1; }
DEVICE void cluster_arrive() {}
DEVICE void cluster_wait() { block_sync(); }
DEVICE void cluster_sync() { block_sync(); }
DEVICE void cluster_leave() {}
template <class T> DEVICE T *cluster_map(T *shared, int) { return shared; }
#endif

// Synchronises the grid of a cooperative launch. The driver keeps a word for each cooperative launch, 4 bytes
// into its workspace (cooperative_groups/details/driver_abi.h of the toolkit). Each barrier adds 2^31 to it
// in all, so its highest bit flips when the last block arrives:
//
//   block 0 adds 2^31 - (blocks - 1), every other block 1
#if defined(__HIP__)
DEVICE void grid_sync() { block_sync(); }   // no device of this dialect has cooperative launches: a grid is one block
#else
DEVICE void grid_sync()
{
    block_sync();
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
        unsigned high, low;
        asm("mov.u32 %0, %%envreg1;" : "=r"(high));
        asm("mov.u32 %0, %%envreg2;" : "=r"(low));
        unsigned *word = reinterpret_cast<unsigned *>(static_cast<unsigned long long>(high) << 32 | low) + 1;
        const bool first = blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0;
        const unsigned others = gridDim.x * gridDim.y * gridDim.z - 1;
        __threadfence();
        const unsigned before = atomicAdd(word, first ? 0x80000000u - others : 1u);
        while (!((before ^ *static_cast<volatile unsigned *>(word)) & 0x80000000u)) {
        }
        __threadfence();
    }
    block_sync();
}
#endif
