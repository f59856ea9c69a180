// The main() of a kernel's file (--with-test): checks the kernel against plain loops on the host, and times it. The file ends
// with the parts that its main() uses.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <vector>

namespace plain {

using f16 = __half;
using bf16 = __nv_bfloat16;
using b1 = unsigned;   // 32 to a word

template <class T> double get(const T *p, long long i) { return p[i]; }
inline double get(const f16 *p, long long i) { return __half2float(p[i]); }
inline double get(const bf16 *p, long long i) { return __bfloat162float(p[i]); }
inline double get(const b1 *p, long long i) { return p[i / 32] >> i % 32 & 1u; }

template <class T> void set(T *p, long long i, double value)   // whole numbers from -8 to 8, or 0 to 16
{
    p[i] = static_cast<T>(T(0.5) != T(0) ? value : 4 * value + (T(-1) < T(0) ? 0 : 8));
}
inline void set(f16 *p, long long i, double value) { p[i] = __double2half(value); }
inline void set(bf16 *p, long long i, double value) { p[i] = __double2bfloat16(value); }
inline void set(b1 *p, long long i, double value) { p[i / 32] |= (value > 0 ? 1u : 0u) << i % 32; }

template <class T> double rounded(double value)
{
    T as[1];
    set(as, 0, value);
    return get(as, 0);
}

template <class T> T square(T a) { return a * a; }
template <class T> T larger(T a, T b) { return a > b || a != a ? a : b; }
template <class T> T smaller(T a, T b) { return a < b || a != a ? a : b; }

// Reductions over all values of an index.
template <class T, class F> T sum_of(long long count, F term)
{
    T total = 0;
    for (long long i = 0; i < count; i++)
        total = total + term(i);
    return total;
}
template <class T, class F> T product_of(long long count, F term)
{
    T total = 1;
    for (long long i = 0; i < count; i++)
        total = total * term(i);
    return total;
}
template <class T, class F> T largest_of(long long count, F term)
{
    T total = term(0);
    for (long long i = 1; i < count; i++)
        total = larger<T>(total, term(i));
    return total;
}
template <class T, class F> T smallest_of(long long count, F term)
{
    T total = term(0);
    for (long long i = 1; i < count; i++)
        total = smaller<T>(total, term(i));
    return total;
}

inline bool inside(long long index, long long size) { return index >= 0 && index < size; }
inline long long remainder(long long a, long long b) { return b == 0 || b == -1 ? 0 : a % b; }
inline long long quotient(long long a, long long b) { return b == 0 ? 0 : a / b; }
inline long long whole(double a, double low, double high)   // truncates, saturates to the range of the type
{
    return a != a ? 0 : static_cast<long long>(fmax(low, fmin(high, a)));
}

// Pseudo-random numbers: scattered over the whole range.
inline long long scattered(long long i) { return static_cast<long long>((i + 1) * 0x9e3779b97f4a7c15ull >> 20); }

// A tensor on the host and on the device. Inputs are multiples of 1/64 from -2 to 2.
template <class T> struct Tensor {
    std::vector<T> here;
    T *there = nullptr;

    Tensor(long long count, long long words, bool input) : here(words)
    {
        for (long long i = 0; input && i < count; i++)
            set(here.data(), i, static_cast<double>(scattered(i) % 256) / 64 - 2);
        cudaMalloc(&there, words * sizeof(T));
        cudaMemcpy(there, here.data(), words * sizeof(T), cudaMemcpyHostToDevice);
    }
    double operator()(long long i) const { return get(here.data(), i); }
};

// A weight, which is also copied to its offset in the file of weights.
template <class T> struct Weight : Tensor<T> {
    Weight(long long count, long long words, char *place) : Tensor<T>(count, words, true)
    {
        cudaMemcpy(place, this->here.data(), words * sizeof(T), cudaMemcpyHostToDevice);
    }
};

// Caches the last value of a definition: loops around it use the same value again.
template <class F> struct Kept {
    F compute;
    double value;
    long long last[17];

    template <class... I> double operator()(I... at)
    {
        const long long now[] = {at..., 0};
        if (memcmp(now, last, sizeof now) != 0) {
            value = compute(at...);
            memcpy(last, now, sizeof now);
        }
        return value;
    }
};
template <class F> Kept<F> keep(F compute) { return {compute, 0, {-1}}; }

inline bool ran(int status)
{
    if (status == 0)
        status = static_cast<int>(cudaDeviceSynchronize());
    if (status != 0)
        printf("it does not run: %s\n", cudaGetErrorString(static_cast<cudaError_t>(status)));
    return status == 0;
}

// Checks as many elements as two seconds allow. `share`: the error allowed for reals, relative to the largest value; 0: values
// are equal, but for one in a hundred, which the rounding of compared values may change.
template <class T, class F> bool check(const char *name, Tensor<T> &found, long long count, double share, F wanted)
{
    cudaMemcpy(found.here.data(), found.there, found.here.size() * sizeof(T), cudaMemcpyDeviceToHost);
    const auto start = std::chrono::steady_clock::now();
    double error = 0, largest = 0;
    long long seen = 0, others = 0;
    for (; seen < count && (seen < 2 || std::chrono::steady_clock::now() - start < std::chrono::seconds(2)); seen++) {
        const long long i = seen == 0 ? count - 1 : scattered(seen) % count;
        const double is = found(i), should = wanted(i);
        const bool both = std::isfinite(is) && std::isfinite(should), same = is == should || (is != is && should != should);
        error = same ? error : both ? fmax(error, fabs(is - should)) : INFINITY;
        largest = std::isfinite(should) ? fmax(largest, fabs(should)) : largest;
        others += !same;
    }
    const bool right = share > 0 ? error <= share * largest : others * 100 <= seen;
    printf("%s: %s, off by up to %.3g of %.3g, in %lld of %lld elements\n", name, right ? "right" : "WRONG", error, largest,
           seen, count);
    return right;
}

template <class F> void time_it(const char *name, F run, double bytes, double operations)
{
    cudaEvent_t start, stop;
    cudaEventCreate(&start), cudaEventCreate(&stop);
    for (int i = 0; i < 60; i++) {
        if (i == 10)
            cudaEventRecord(start);
        run();
    }
    cudaEventRecord(stop);
    cudaEventSynchronize(stop);
    float ms = 0;
    cudaEventElapsedTime(&ms, start, stop);
    const double us = ms * 1e3 / 50;
    printf("%s: %.2f us, %.0f GB/s, %.0f GFLOP/s\n", name, us, bytes / us / 1e3, operations / us / 1e3);
}

}   // namespace plain
