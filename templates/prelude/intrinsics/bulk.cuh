// ---- bulk tensor copies of sm_90 (TMA): one thread starts the copy of a box, an mbarrier in shared memory counts its bytes ----

struct alignas(64) TensorMap { unsigned char opaque[128]; };   // a tensor and the box of a copy, zeros out of bounds

// A phase of a barrier in shared memory completes when so many threads have arrived and the bytes were copied that an arrival
// expects. mbarrier_wait(barrier, n % 2) waits for phase n, counted from 0; a waiter may be at most one phase behind.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
DEVICE void mbarrier_init(unsigned long long *barrier, int arrivals)
{ asm volatile("mbarrier.init.shared::cta.b64 [%0], %1; fence.mbarrier_init.release.cluster;"
               : : "r"(shared_address(barrier)), "r"(arrivals) : "memory"); }
DEVICE void mbarrier_expect(unsigned long long *barrier, int bytes)
{ asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               : : "r"(shared_address(barrier)), "r"(bytes) : "memory"); }
DEVICE void mbarrier_arrive(unsigned long long *barrier)
{ asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(shared_address(barrier)) : "memory"); }
// Arrives at the same barrier of another block of the cluster. It releases a stage that tensor cores have read and
// whose product was waited for. It does not order the thread's own stores to shared memory: a release at cluster
// scope would double the time of a step.
DEVICE void mbarrier_arrive_at(unsigned long long *barrier, int rank)
{
    asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [there]; }"
                 : : "r"(shared_address(barrier)), "r"(rank) : "memory");
}
DEVICE void mbarrier_wait(unsigned long long *barrier, unsigned parity)
{
    for (unsigned ended = 0; !ended;)   // in PTX it is a divergent path for the compiler, which serialises products around it
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(ended) : "r"(shared_address(barrier)), "r"(parity) : "memory");
}
DEVICE void prefetch_map(const TensorMap *map) { asm volatile("prefetch.tensormap [%0];" : : "l"(map) : "memory"); }
DEVICE void copy_box(void *target, const TensorMap *map, int x, int y, int z, unsigned long long *barrier)
{ asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
               : : "r"(shared_address(target)), "l"(map), "r"(x), "r"(y), "r"(z), "r"(shared_address(barrier)) : "memory"); }
// Copies the box that begins at an element, for a tensor of any rank.
template <int RANK> DEVICE void copy_box_at(void *target, const TensorMap *map, const int (&at)[RANK], unsigned long long *barrier)
{
    const unsigned to = shared_address(target), full = shared_address(barrier);
    if constexpr (RANK == 1)
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];"
                     : : "r"(to), "l"(map), "r"(at[0]), "r"(full) : "memory");
    else if constexpr (RANK == 2)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     : : "r"(to), "l"(map), "r"(at[0]), "r"(at[1]), "r"(full) : "memory");
    else if constexpr (RANK == 3)
        copy_box(target, map, at[0], at[1], at[2], barrier);
    else if constexpr (RANK == 4)
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];"
                     : : "r"(to), "l"(map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(full) : "memory");
    else
        asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3, %4, %5, %6}], [%7];"
                     : : "r"(to), "l"(map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]), "r"(full) : "memory");
}
// Multicast: copies the box to the same offset in each block of the cluster whose bit is set, and completes the same
// barrier of each. ptxas warns of it in the sm_90 PTX that nvcc makes beside sm_90a; that PTX is never run.
DEVICE void copy_box_to(unsigned blocks, void *target, const TensorMap *map, int x, int y, int z, unsigned long long *barrier)
{
    SM90A("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
          "[%0], [%1, {%2, %3, %4}], [%5], %6;"
          : : "r"(shared_address(target)), "l"(map), "r"(x), "r"(y), "r"(z), "r"(shared_address(barrier)),
              "h"(static_cast<unsigned short>(blocks)) : "memory");
}
// With a map in im2col mode: copies a run of consecutive pixels that begins at `at` (channel, one to three spatial
// axes from the innermost one on, image), each shifted by `offset`. Pixels that the shift moves out of the image are
// filled with zeros.
template <int AXES>
DEVICE void copy_pixels(void *target, const TensorMap *map, const int (&at)[AXES + 2], const int (&offset)[AXES],
                        unsigned long long *barrier)
{
    static_assert(AXES >= 1 && AXES <= 3, "tensors have up to five dimensions");
    unsigned short away[3] = {};
    for (int i = 0; i < AXES; i++)
        away[i] = static_cast<unsigned short>(offset[i]);
    if (AXES == 1)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3, %4}], [%5], {%6};"
                     :
                     : "r"(shared_address(target)), "l"(map), "r"(at[0]), "r"(at[1]), "r"(at[AXES + 1]),
                       "r"(shared_address(barrier)), "h"(away[0])
                     : "memory");
    if (AXES == 2)
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};"
                     :
                     : "r"(shared_address(target)), "l"(map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[AXES + 1]),
                       "r"(shared_address(barrier)), "h"(away[0]), "h"(away[1])
                     : "memory");
    if (AXES == 3)
        asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3, %4, %5, %6}], [%7], {%8, %9, %10};"
                     :
                     : "r"(shared_address(target)), "l"(map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[AXES]),
                       "r"(at[AXES + 1]), "r"(shared_address(barrier)), "h"(away[0]), "h"(away[1]), "h"(away[2])
                     : "memory");
}
#else
template <int AXES> DEVICE void copy_pixels(void *, const TensorMap *, const int (&)[AXES + 2], const int (&)[AXES], unsigned long long *) {}
DEVICE void mbarrier_init(unsigned long long *, int) {}
DEVICE void mbarrier_expect(unsigned long long *, int) {}
DEVICE void mbarrier_arrive(unsigned long long *) {}
DEVICE void mbarrier_arrive_at(unsigned long long *, int) {}
DEVICE void mbarrier_wait(unsigned long long *, unsigned) {}
DEVICE void prefetch_map(const TensorMap *) {}
DEVICE void copy_box(void *, const TensorMap *, int, int, int, unsigned long long *) {}
DEVICE void copy_box_to(unsigned, void *, const TensorMap *, int, int, int, unsigned long long *) {}
template <int RANK> DEVICE void copy_box_at(void *, const TensorMap *, const int (&)[RANK], unsigned long long *) {}
#endif

// Reallocates registers between warp groups, in multiples of 8: producers release registers that consumers take.
template <int N> DEVICE void give_registers()
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) && defined(__CUDACC_RDC__)
#warning "-rdc=true takes setmaxnreg away, and this kernel may spill registers: compile its file without"
#endif
{ SM90A("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }
template <int N> DEVICE void take_registers() { SM90A("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }
