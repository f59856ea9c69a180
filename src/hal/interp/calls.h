// What a program calls in the machine. Both include it: the program is compiled for each kernel, the machine
// is a part of rollerc and exports this (exports.list).
#ifndef ROLLERC_INTERP_CALLS
#define ROLLERC_INTERP_CALLS

#define ROLLERC_EXPORT __attribute__((visibility("default")))

typedef __SIZE_TYPE__ size_t;

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned width = 1, unsigned height = 1, unsigned depth = 1)
        : x(width), y(height), z(depth)
    {
    }
};

typedef enum cudaError { cudaSuccess = 0, cudaErrorInvalidValue = 1 } cudaError_t;
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize,
    cudaFuncAttributeNonPortableClusterSizeAllowed
};

typedef void *cudaStream_t;
namespace rollerc_interp {

struct Place {   // in the source, as a compiler's message would name it
    const char *file;
    int line;
};

// What the current thread sees. The machine changes it, but to the thread it is a constant: compilers that
// know this (twin.h) do not announce that it is read.
struct Here {
    uint3 thread, block;             // indices
    uint3 block_size, grid_size;
    int lane;
    unsigned char *shared_memory;
};

// Operations of a counted program (arithmetic.h).
enum Arithmetic {
    ARITHMETIC_ADD, ARITHMETIC_MULTIPLY, ARITHMETIC_DIVIDE, ARITHMETIC_COMPARE, ARITHMETIC_FUNCTION
};
ROLLERC_EXPORT void count_arithmetic(Arithmetic kind);

ROLLERC_EXPORT void trap(Place place, const char *what);   // what the kernel does is wrong
ROLLERC_EXPORT void barrier(Place place);
ROLLERC_EXPORT void roles_barrier(int expected, Place place);

// The next tile of a persistent block ("turn"); of some blocks of a large launch only the first and the last tile are
// run.
ROLLERC_EXPORT int next_turn(int turn, int turns);
ROLLERC_EXPORT int cluster_rank();
ROLLERC_EXPORT int cluster_size();
ROLLERC_EXPORT void cluster_arrive(Place place);
ROLLERC_EXPORT void cluster_wait(Place place);
ROLLERC_EXPORT void *cluster_map(void *shared, int rank, Place place);
ROLLERC_EXPORT void grid_barrier(Place place);
ROLLERC_EXPORT void wait_for_earlier();   // launches

// All lanes of the warp synchronise; each gets the bits that lane `source` brought. Ballot: bit i is lane i's.
ROLLERC_EXPORT unsigned long long exchange(unsigned long long bits, int source, Place place);
ROLLERC_EXPORT unsigned long long ballot(bool vote, Place place);
ROLLERC_EXPORT void warp_barrier(Place place);

// Tensor cores: all 32 lanes synchronise. Each brings a line of 16 bytes and gets what of four 8 x 8 matrices is
// its; or its parts of three tiles. Which registers hold what: templates/prelude/intrinsics/mma.cuh.
struct alignas(16) MatrixLine {
    unsigned words[4];
};
enum TileElement { TILE_F16, TILE_BF16, TILE_I8, TILE_U8, TILE_F64, TILE_TF32 };
ROLLERC_EXPORT void load_matrices(const MatrixLine *line, bool turned, unsigned *tile, Place place);
ROLLERC_EXPORT void multiply_tiles(TileElement element, bool half, const void *a, const void *b, void *c,
                                   Place place);

// The address of a block's shared memory: a multiple of 16 bytes, which is all that a program may rely on.
enum { SHARED_START = 33 * 16 };

// Those that read shared memory: all 32 lanes bring their sums, and the same product.
// Templates/prelude/wgmma.cuh and intrinsics/wgmma.cuh say which words describe operands and who has which sums.
struct SharedProduct {
    TileElement element;
    int columns;
    unsigned long long a, b;
    bool turn_a, turn_b;

    bool operator==(const SharedProduct &other) const
    {
        return element == other.element && columns == other.columns && a == other.a && b == other.b &&
               turn_a == other.turn_a && turn_b == other.turn_b;
    }
};
ROLLERC_EXPORT void show_operands(Place place);
ROLLERC_EXPORT void open_products(Place place);
ROLLERC_EXPORT void multiply_shared(const SharedProduct &what, void *sums, Place place);
ROLLERC_EXPORT void multiply_held(const SharedProduct &what, const unsigned *held, void *sums, Place place);   // a is a lane's: four words
ROLLERC_EXPORT void close_products(Place place);
ROLLERC_EXPORT void wait_products(unsigned groups, Place place);   // all but the last `groups` are done

// A box of a tensor that bulk copies bring: the twin of a tensor map, in place of its 128 bytes. Lines of 128
// bytes along the first dimension, which is contiguous in memory. In im2col mode a line is a pixel of an
// image (channels, axes from the innermost one on, image), and pixels follow each other between two corners.
enum { TENSOR_BOX_RANK = 5, TENSOR_BOX_AXES = 3, TENSOR_BOX_MAGIC = 0x7e4507 };
struct TensorBox {
    unsigned magic;
    signed char rank, element_bytes, pixel_axes;   // what lies behind the rank is 1, of strides 0; 0 axes: boxes
    bool tf32;                                     // floats, which the copy rounds to tf32
    const unsigned char *start;
    long long sizes[TENSOR_BOX_RANK], strides[TENSOR_BOX_RANK - 1];   // elements; bytes from one to the next, of all but the first
    int lower[TENSOR_BOX_AXES], upper[TENSOR_BOX_AXES];
    short steps[TENSOR_BOX_AXES], box[TENSOR_BOX_RANK];   // elements; or channels, pixels, and zeros
};

// Where a copy begins, as the instruction says it.
struct BoxPlace {
    int rank, pixel_axes;              // as of the tensor's map
    int at[TENSOR_BOX_RANK];           // the first element, or pixel
    int offset[TENSOR_BOX_AXES];       // from each pixel to what is copied
};
// They fill it in, of boxes and of pixels.
ROLLERC_EXPORT cudaError_t encode_boxes(void *map, const void *start, int rank, int element_bytes, bool tf32,
                                        const unsigned long long *sizes, const unsigned long long *strides, const unsigned *box);
ROLLERC_EXPORT cudaError_t encode_pixels(void *map, const void *start, int rank, int element_bytes, bool tf32,
                                         const unsigned long long *sizes, const unsigned long long *strides, const int *lower,
                                         const int *upper, const unsigned *steps, unsigned pixels);
ROLLERC_EXPORT void mbarrier_init(void *barrier, int arrivals, Place place);
ROLLERC_EXPORT void mbarrier_expect(void *barrier, int bytes, Place place);   // and arrives
ROLLERC_EXPORT void mbarrier_arrive(void *barrier, int rank, Place place);    // at that block's of the cluster
ROLLERC_EXPORT void mbarrier_wait(void *barrier, unsigned parity, Place place);
ROLLERC_EXPORT void bulk_copy(void *target, const void *map, const BoxPlace &from, void *barrier,
                              unsigned blocks_of_cluster, Place place);

ROLLERC_EXPORT void async_copy(void *shared, const void *global, int bytes, Place place);   // 4, 8 or 16
ROLLERC_EXPORT void async_commit(Place place);
ROLLERC_EXPORT void async_wait(unsigned groups, Place place);   // all but the last `groups` have landed

// ---- for the launcher ----

// A kernel with its arguments, to be called once a thread.
struct Invocation {
    void (*call)(const Invocation &invocation);
    void *kernel;
    void **args;
};

struct LaunchShape {
    dim3 grid, block;
    size_t shared;
    dim3 cluster;
    bool cooperative;
    bool early;                      // may begin before those in front of it have ended
};

ROLLERC_EXPORT cudaError_t launch(const Invocation &invocation, const LaunchShape &shape);
// A launch of a graph, behind those whose numbers stand in `after`, which -1 ends; the sizes of its arguments end with
// 0. They are run by run_nodes().
ROLLERC_EXPORT cudaError_t add_node(int number, const int *after, const Invocation &invocation, const size_t *sizes,
                                    const LaunchShape &shape);
ROLLERC_EXPORT cudaError_t run_nodes();
ROLLERC_EXPORT cudaError_t allow(void *kernel, cudaFuncAttribute attribute, int value);
ROLLERC_EXPORT cudaError_t settle();   // all launches so far have ended
ROLLERC_EXPORT cudaError_t copy(void *to, const void *from, size_t bytes);

}   // namespace rollerc_interp

#endif
