// ---- tensor cores of sm_90a (wgmma): a warp group multiplies operands in shared memory asynchronously ----

// Fence: makes the thread's stores to shared memory visible to wgmma and to bulk copies. Synchronise the
// threads afterwards.
DEVICE void show_operands()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

DEVICE void hold_sum(float &c) { asm volatile("" : "+f"(c)::"memory"); }   // compilers move no access to it across this point
DEVICE void hold_sum(i32 &c) { asm volatile("" : "+r"(c)::"memory"); }

#ifdef __CUDA_ARCH__
DEVICE void drop_sum(float &c) { asm volatile("" : "=f"(c)); }   // it takes no register until a product begins it
#else
DEVICE void drop_sum(float &) {}
#endif

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define SM90A(...) asm volatile(__VA_ARGS__)
#elif defined(__CUDA_ARCH__)
#define SM90A(...) __trap()   // in the PTX of sm_90 that nvcc makes, too
#else
#define SM90A(...) (void)0
#endif

// Products are issued in between and closed as a group. A thread must not touch its accumulators from open_products()
// on until wait_products<N>(), which waits for all but the last N groups.
template <class Value, int COUNT> DEVICE void open_products(Value (&c)[COUNT])
{ UNROLL for (int i = 0; i < COUNT; i++) hold_sum(c[i]); SM90A("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void close_products() { SM90A("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N, class Value, int COUNT> DEVICE void wait_products(Value (&c)[COUNT])
{ SM90A("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); UNROLL for (int i = 0; i < COUNT; i++) hold_sum(c[i]); }

// Keeps the compiler from converting halves of accumulators in flight, which serialises products: 19 us instead of 16.8.
#ifdef __CUDA_ARCH__
DEVICE unsigned hold_word(unsigned word) { asm volatile("" : "+r"(word)); return word; }
#else
DEVICE unsigned hold_word(unsigned word) { return word; }
#endif

#if defined(__HIP__)
DEVICE int same_in_warp(int x) { return x; }
#else
DEVICE int same_in_warp(int x) { return __shfl_sync(0xffffffffu, x, 0); }   // visibly uniform for the compiler
#endif

template <class Element, int COLUMNS> struct Product {};   // the element type of a and b, and the columns of c
template <class Element, int COLUMNS> struct Held {};      // the same with a in registers

// A thread's accumulators: asm operands, and their numbers.
#define SUMS_8(f, i) f(c[i]), f(c[i + 1]), f(c[i + 2]), f(c[i + 3]), f(c[i + 4]), f(c[i + 5]), f(c[i + 6]), f(c[i + 7])
#define SUMS_32(f, i) SUMS_8(f, i), SUMS_8(f, i + 8), SUMS_8(f, i + 16), SUMS_8(f, i + 24)
#define TEN(t) "%" t "0, %" t "1, %" t "2, %" t "3, %" t "4, %" t "5, %" t "6, %" t "7, %" t "8, %" t "9, "

// c += a * b over 32 bytes of k, of 64 rows; c = a * b unless it `adds`. TURN: that operand is stored with its rows contiguous
// (16-bit elements only). Warp w of the group has rows w * 16 to w * 16 + 15 of c. Of every 8 columns a lane has c[0] and c[1]
// in row l / 4 from column l % 4 * 2 on, c[2] and c[3] eight rows below.
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<f16, 64>, float (&c)[32], unsigned long long a, unsigned long long b, bool adds = true)
{ SM90A("{ .reg .pred p; setp.ne.b32 p, %36, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
        TEN("") TEN("1") TEN("2") "%30, %31}, %32, %33, p, 1, 1, %34, %35; }"
        : SUMS_32("+f", 0) : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B), "r"((int)adds)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<f16, 96>, float (&c)[48], unsigned long long a, unsigned long long b, bool adds = true)
{ SM90A("{ .reg .pred p; setp.ne.b32 p, %52, 0; wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16 {"
        TEN("") TEN("1") TEN("2") TEN("3") "%40, %41, %42, %43, %44, %45, %46, %47}, %48, %49, p, 1, 1, %50, %51; }"
        : SUMS_32("+f", 0), SUMS_8("+f", 32), SUMS_8("+f", 40)
        : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B), "r"((int)adds)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<f16, 128>, float (&c)[64], unsigned long long a, unsigned long long b, bool adds = true)
{ SM90A("{ .reg .pred p; setp.ne.b32 p, %68, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") "%60, %61, %62, %63}, %64, %65, p, 1, 1, %66, %67; }"
        : SUMS_32("+f", 0), SUMS_32("+f", 32) : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B), "r"((int)adds)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<f16, 160>, float (&c)[80], unsigned long long a, unsigned long long b, bool adds = true)
{ SM90A("{ .reg .pred p; setp.ne.b32 p, %84, 0; wgmma.mma_async.sync.aligned.m64n160k16.f32.f16.f16 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6")
        "%70, %71, %72, %73, %74, %75, %76, %77, %78, %79}, %80, %81, p, 1, 1, %82, %83; }"
        : SUMS_32("+f", 0), SUMS_32("+f", 32), SUMS_8("+f", 64), SUMS_8("+f", 72)
        : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B), "r"((int)adds)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<f16, 192>, float (&c)[96], unsigned long long a, unsigned long long b, bool adds = true)
{ SM90A("{ .reg .pred p; setp.ne.b32 p, %100, 0; wgmma.mma_async.sync.aligned.m64n192k16.f32.f16.f16 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8")
        "%90, %91, %92, %93, %94, %95}, %96, %97, p, 1, 1, %98, %99; }"
        : SUMS_32("+f", 0), SUMS_32("+f", 32), SUMS_32("+f", 64)
        : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B), "r"((int)adds)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<f16, 224>, float (&c)[112], unsigned long long a, unsigned long long b, bool adds = true)
{ SM90A("{ .reg .pred p; setp.ne.b32 p, %116, 0; wgmma.mma_async.sync.aligned.m64n224k16.f32.f16.f16 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8") TEN("9") TEN("10")
        "%110, %111}, %112, %113, p, 1, 1, %114, %115; }"
        : SUMS_32("+f", 0), SUMS_32("+f", 32), SUMS_32("+f", 64), SUMS_8("+f", 96), SUMS_8("+f", 104)
        : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B), "r"((int)adds)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<f16, 256>, float (&c)[128], unsigned long long a, unsigned long long b, bool adds = true)
{ SM90A("{ .reg .pred p; setp.ne.b32 p, %132, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8") TEN("9") TEN("10")
        TEN("11") "%120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, %130, %131; }"
        : SUMS_32("+f", 0), SUMS_32("+f", 32), SUMS_32("+f", 64), SUMS_32("+f", 96)
        : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B), "r"((int)adds)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<bf16, 64>, float (&c)[32], unsigned long long a, unsigned long long b, bool adds = true)
{ SM90A("{ .reg .pred p; setp.ne.b32 p, %36, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
        TEN("") TEN("1") TEN("2") "%30, %31}, %32, %33, p, 1, 1, %34, %35; }"
        : SUMS_32("+f", 0) : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B), "r"((int)adds)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<bf16, 96>, float (&c)[48], unsigned long long a, unsigned long long b, bool adds = true)
{ SM90A("{ .reg .pred p; setp.ne.b32 p, %52, 0; wgmma.mma_async.sync.aligned.m64n96k16.f32.bf16.bf16 {"
        TEN("") TEN("1") TEN("2") TEN("3") "%40, %41, %42, %43, %44, %45, %46, %47}, %48, %49, p, 1, 1, %50, %51; }"
        : SUMS_32("+f", 0), SUMS_8("+f", 32), SUMS_8("+f", 40)
        : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B), "r"((int)adds)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<bf16, 128>, float (&c)[64], unsigned long long a, unsigned long long b, bool adds = true)
{ SM90A("{ .reg .pred p; setp.ne.b32 p, %68, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") "%60, %61, %62, %63}, %64, %65, p, 1, 1, %66, %67; }"
        : SUMS_32("+f", 0), SUMS_32("+f", 32) : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B), "r"((int)adds)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<bf16, 160>, float (&c)[80], unsigned long long a, unsigned long long b, bool adds = true)
{ SM90A("{ .reg .pred p; setp.ne.b32 p, %84, 0; wgmma.mma_async.sync.aligned.m64n160k16.f32.bf16.bf16 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6")
        "%70, %71, %72, %73, %74, %75, %76, %77, %78, %79}, %80, %81, p, 1, 1, %82, %83; }"
        : SUMS_32("+f", 0), SUMS_32("+f", 32), SUMS_8("+f", 64), SUMS_8("+f", 72)
        : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B), "r"((int)adds)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<bf16, 192>, float (&c)[96], unsigned long long a, unsigned long long b, bool adds = true)
{ SM90A("{ .reg .pred p; setp.ne.b32 p, %100, 0; wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8")
        "%90, %91, %92, %93, %94, %95}, %96, %97, p, 1, 1, %98, %99; }"
        : SUMS_32("+f", 0), SUMS_32("+f", 32), SUMS_32("+f", 64)
        : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B), "r"((int)adds)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<bf16, 224>, float (&c)[112], unsigned long long a, unsigned long long b, bool adds = true)
{ SM90A("{ .reg .pred p; setp.ne.b32 p, %116, 0; wgmma.mma_async.sync.aligned.m64n224k16.f32.bf16.bf16 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8") TEN("9") TEN("10")
        "%110, %111}, %112, %113, p, 1, 1, %114, %115; }"
        : SUMS_32("+f", 0), SUMS_32("+f", 32), SUMS_32("+f", 64), SUMS_8("+f", 96), SUMS_8("+f", 104)
        : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B), "r"((int)adds)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<bf16, 256>, float (&c)[128], unsigned long long a, unsigned long long b, bool adds = true)
{ SM90A("{ .reg .pred p; setp.ne.b32 p, %132, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8") TEN("9") TEN("10")
        TEN("11") "%120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, %130, %131; }"
        : SUMS_32("+f", 0), SUMS_32("+f", 32), SUMS_32("+f", 64), SUMS_32("+f", 96)
        : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B), "r"((int)adds)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<f32, 64>, float (&c)[32], unsigned long long a, unsigned long long b)
{ SM90A("wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {" TEN("") TEN("1") TEN("2")
        "%30, %31}, %32, %33, 1, 1, 1;"
        : SUMS_32("+f", 0) : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<f32, 128>, float (&c)[64], unsigned long long a, unsigned long long b)
{ SM90A("wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") "%60, %61, %62, %63}, %64, %65, 1, 1, 1;"
        : SUMS_32("+f", 0), SUMS_32("+f", 32) : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<f32, 192>, float (&c)[96], unsigned long long a, unsigned long long b)
{ SM90A("wgmma.mma_async.sync.aligned.m64n192k8.f32.tf32.tf32 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8")
        "%90, %91, %92, %93, %94, %95}, %96, %97, 1, 1, 1;"
        : SUMS_32("+f", 0), SUMS_32("+f", 32), SUMS_32("+f", 64) : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<f32, 256>, float (&c)[128], unsigned long long a, unsigned long long b)
{ SM90A("wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8") TEN("9") TEN("10")
        TEN("11") "%120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, 1, 1, 1;"
        : SUMS_32("+f", 0), SUMS_32("+f", 32), SUMS_32("+f", 64), SUMS_32("+f", 96)
        : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<i8, 64>, int (&c)[32], unsigned long long a, unsigned long long b)
{ SM90A("wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 {" TEN("") TEN("1") TEN("2") "%30, %31}, %32, %33, 1;"
        : SUMS_32("+r", 0) : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<i8, 128>, int (&c)[64], unsigned long long a, unsigned long long b)
{ SM90A("wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") "%60, %61, %62, %63}, %64, %65, 1;"
        : SUMS_32("+r", 0), SUMS_32("+r", 32) : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<i8, 192>, int (&c)[96], unsigned long long a, unsigned long long b)
{ SM90A("wgmma.mma_async.sync.aligned.m64n192k32.s32.s8.s8 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8")
        "%90, %91, %92, %93, %94, %95}, %96, %97, 1;"
        : SUMS_32("+r", 0), SUMS_32("+r", 32), SUMS_32("+r", 64) : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<i8, 256>, int (&c)[128], unsigned long long a, unsigned long long b)
{ SM90A("wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8") TEN("9") TEN("10")
        TEN("11") "%120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, 1;"
        : SUMS_32("+r", 0), SUMS_32("+r", 32), SUMS_32("+r", 64), SUMS_32("+r", 96)
        : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<u8, 64>, int (&c)[32], unsigned long long a, unsigned long long b)
{ SM90A("wgmma.mma_async.sync.aligned.m64n64k32.s32.u8.u8 {" TEN("") TEN("1") TEN("2") "%30, %31}, %32, %33, 1;"
        : SUMS_32("+r", 0) : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<u8, 128>, int (&c)[64], unsigned long long a, unsigned long long b)
{ SM90A("wgmma.mma_async.sync.aligned.m64n128k32.s32.u8.u8 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") "%60, %61, %62, %63}, %64, %65, 1;"
        : SUMS_32("+r", 0), SUMS_32("+r", 32) : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<u8, 192>, int (&c)[96], unsigned long long a, unsigned long long b)
{ SM90A("wgmma.mma_async.sync.aligned.m64n192k32.s32.u8.u8 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8")
        "%90, %91, %92, %93, %94, %95}, %96, %97, 1;"
        : SUMS_32("+r", 0), SUMS_32("+r", 32), SUMS_32("+r", 64) : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B)); }
template <bool TURN_A, bool TURN_B>
DEVICE void multiply_shared(Product<u8, 256>, int (&c)[128], unsigned long long a, unsigned long long b)
{ SM90A("wgmma.mma_async.sync.aligned.m64n256k32.s32.u8.u8 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8") TEN("9") TEN("10")
        TEN("11") "%120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, 1;"
        : SUMS_32("+r", 0), SUMS_32("+r", 32), SUMS_32("+r", 64), SUMS_32("+r", 96)
        : "l"(a), "l"(b), "n"(TURN_A), "n"(TURN_B)); }

// The same with a in registers: four matrices as of load_matrices(). They must not be changed until it was waited for.
template <bool TURN_B> DEVICE void multiply_held(Held<f16, 64>, float (&c)[32], const unsigned (&a)[4], unsigned long long b)
{ SM90A("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" TEN("") TEN("1") TEN("2")
        "%30, %31}, {%32, %33, %34, %35}, %36, 1, 1, 1, %37;"
        : SUMS_32("+f", 0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(TURN_B)); }
template <bool TURN_B> DEVICE void multiply_held(Held<f16, 128>, float (&c)[64], const unsigned (&a)[4], unsigned long long b)
{ SM90A("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") "%60, %61, %62, %63}, {%64, %65, %66, %67}, %68, 1, 1, 1, %69;"
        : SUMS_32("+f", 0), SUMS_32("+f", 32) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(TURN_B)); }
template <bool TURN_B> DEVICE void multiply_held(Held<f16, 192>, float (&c)[96], const unsigned (&a)[4], unsigned long long b)
{ SM90A("wgmma.mma_async.sync.aligned.m64n192k16.f32.f16.f16 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8")
        "%90, %91, %92, %93, %94, %95}, {%96, %97, %98, %99}, %100, 1, 1, 1, %101;"
        : SUMS_32("+f", 0), SUMS_32("+f", 32), SUMS_32("+f", 64)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(TURN_B)); }
template <bool TURN_B> DEVICE void multiply_held(Held<f16, 256>, float (&c)[128], const unsigned (&a)[4], unsigned long long b)
{ SM90A("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8") TEN("9") TEN("10")
        TEN("11") "%120, %121, %122, %123, %124, %125, %126, %127}, {%128, %129, %130, %131}, %132, 1, 1, 1, %133;"
        : SUMS_32("+f", 0), SUMS_32("+f", 32), SUMS_32("+f", 64), SUMS_32("+f", 96)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(TURN_B)); }
template <bool TURN_B> DEVICE void multiply_held(Held<bf16, 64>, float (&c)[32], const unsigned (&a)[4], unsigned long long b)
{ SM90A("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" TEN("") TEN("1") TEN("2")
        "%30, %31}, {%32, %33, %34, %35}, %36, 1, 1, 1, %37;"
        : SUMS_32("+f", 0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(TURN_B)); }
template <bool TURN_B> DEVICE void multiply_held(Held<bf16, 128>, float (&c)[64], const unsigned (&a)[4], unsigned long long b)
{ SM90A("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") "%60, %61, %62, %63}, {%64, %65, %66, %67}, %68, 1, 1, 1, %69;"
        : SUMS_32("+f", 0), SUMS_32("+f", 32) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(TURN_B)); }
template <bool TURN_B> DEVICE void multiply_held(Held<bf16, 192>, float (&c)[96], const unsigned (&a)[4], unsigned long long b)
{ SM90A("wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8")
        "%90, %91, %92, %93, %94, %95}, {%96, %97, %98, %99}, %100, 1, 1, 1, %101;"
        : SUMS_32("+f", 0), SUMS_32("+f", 32), SUMS_32("+f", 64)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(TURN_B)); }
template <bool TURN_B> DEVICE void multiply_held(Held<bf16, 256>, float (&c)[128], const unsigned (&a)[4], unsigned long long b)
{ SM90A("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
        TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8") TEN("9") TEN("10")
        TEN("11") "%120, %121, %122, %123, %124, %125, %126, %127}, {%128, %129, %130, %131}, %132, 1, 1, 1, %133;"
        : SUMS_32("+f", 0), SUMS_32("+f", 32), SUMS_32("+f", 64), SUMS_32("+f", 96)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(TURN_B)); }
