// ---- reductions ----

DEVICE int lowest(int) { return -2147483647 - 1; }
DEVICE long long lowest(long long) { return -9223372036854775807LL - 1; }
DEVICE float lowest(float) { return __uint_as_float(0xff800000u); }   // NVRTC knows no INFINITY
DEVICE double lowest(double) { return -infinity<double>(); }

DEVICE int highest(int) { return 2147483647; }
DEVICE long long highest(long long) { return 9223372036854775807LL; }
DEVICE float highest(float) { return infinity<float>(); }
DEVICE double highest(double) { return infinity<double>(); }

struct Sum {
    template <class T> DEVICE T identity() { return 0; }
    template <class T> DEVICE T combine(T a, T b) { return op_add(a, b); }
};

struct Prod {
    template <class T> DEVICE T identity() { return 1; }
    template <class T> DEVICE T combine(T a, T b) { return op_mul(a, b); }
};

struct Max {
    template <class T> DEVICE T identity() { return lowest(T()); }
    template <class T> DEVICE T combine(T a, T b) { return op_max(a, b); }
};

struct Min {
    template <class T> DEVICE T identity() { return highest(T()); }
    template <class T> DEVICE T combine(T a, T b) { return op_min(a, b); }
};

// Reduces N values, a power of two, as a tree: 0+4 1+5 2+6 3+7, then their sums.
template <class Reduction, class T, int N> DEVICE T reduce_vector(T (&x)[N])
{
    UNROLL for (int half = N / 2; half > 0; half /= 2)
        UNROLL for (int i = 0; i < half; i++)
            x[i] = Reduction::combine(x[i], x[i + half]);
    return x[0];
}

// Updates a row's running maximum and sum of exp(x - maximum) by N elements (Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018). While all elements are -inf, exp(x) and the sum are 0. EXP is
// op_exp or a sufficient approximation.
template <float EXP(float), int N> DEVICE void add_exponentials(float &maximum, float &sum, const float (&x)[N])
{
    float terms[N];
    UNROLL for (int i = 0; i < N; i++)
        terms[i] = x[i];
    const float grown = op_max(maximum, reduce_vector<Max>(terms));
    const float base = grown == -infinity<float>() ? 0.0f : grown;
    UNROLL for (int i = 0; i < N; i++)
        terms[i] = EXP(op_sub(x[i], base));
    sum = op_add(op_mul(sum, EXP(op_sub(maximum, base))), reduce_vector<Sum>(terms));
    maximum = grown;
}

// Moments of values: their count, their sum and the sum of squared distances from their mean (Chan, Golub and
// LeVeque). The mean of equal values is exact.
DEVICE float mean_of(float sum, int count) { return divide_by(sum, static_cast<float>(count)); }
DEVICE double mean_of(double sum, int count) { return sum / count; }

// The increase of the squared distances when the mean is replaced by another centre: count * sq(sum / count -
// centre)
template <class T> DEVICE T around_centre(T sum, int count, T centre)
{
    return count > 0 ? static_cast<T>(count) * op_sq(mean_of(sum, count) - centre) : 0;
}

// Their increase when two sets are merged: count * others / (count + others) * sq(sum / count - other_mean)
template <class T> DEVICE T around_both(T sum, int count, T other_mean, int others)
{
    if (count == 0 || others == 0)
        return 0;
    const T one = static_cast<T>(count), other = static_cast<T>(others), away = sum - one * other_mean;
    return away * (other / (one * (one + other))) * away;
}

// Adds the elements x[first] to x[end - 1] to the moments.
template <class T, int N>
DEVICE void add_values(T &sum, T &distances, int &count, const T (&x)[N], int first = 0, int end = N)
{
    T terms[N];
    UNROLL for (int i = 0; i < N; i++)
        terms[i] = i >= first && i < end ? x[i] : 0;
    const int others = end - first;
    const T other_sum = reduce_vector<Sum>(terms), mean = other_sum / static_cast<T>(others);
    UNROLL for (int i = 0; i < N; i++)
        terms[i] = i >= first && i < end ? op_sq(x[i] - mean) : 0;
    distances += reduce_vector<Sum>(terms) + around_both(sum, count, mean, others);
    sum += other_sum;
    count += others;
}

// Reduces across groups of `width` lanes; every lane gets the result. Of four lanes: 0+2, then (0+2)+(1+3).
template <class Reduction, class T> DEVICE T warp_reduce(T value, int width = WARP)
{
    for (int mask = width / 2; mask > 0; mask /= 2)
        value = Reduction::combine(value, warp_shuffle_xor(value, mask, width));
    return value;
}
