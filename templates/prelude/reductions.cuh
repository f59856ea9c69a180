// ---- reductions ----

template <class T> struct Range {
    DEVICE T lowest() { return Integer<T>::LOW; }
    DEVICE T highest() { return Integer<T>::HIGH; }
};
template <> struct Range<float> {
    DEVICE float lowest() { return -infinity<float>(); }
    DEVICE float highest() { return infinity<float>(); }
};
template <> struct Range<double> {
    DEVICE double lowest() { return -infinity<double>(); }
    DEVICE double highest() { return infinity<double>(); }
};

struct Sum {
    template <class T> DEVICE T identity() { return 0; }
    template <class T> DEVICE T combine(T a, T b) { return op_add(a, b); }
};

struct Prod {
    template <class T> DEVICE T identity() { return 1; }
    template <class T> DEVICE T combine(T a, T b) { return op_mul(a, b); }
};

struct Max {
    template <class T> DEVICE T identity() { return Range<T>::lowest(); }
    template <class T> DEVICE T combine(T a, T b) { return op_max(a, b); }
};

struct Min {
    template <class T> DEVICE T identity() { return Range<T>::highest(); }
    template <class T> DEVICE T combine(T a, T b) { return op_min(a, b); }
};

// N values, a power of two, as a tree: 0+4 1+5 2+6 3+7, then their sums.
template <class Reduction, class T, int N> DEVICE T reduce_vector(T (&x)[N])
{
    static_assert((N & (N - 1)) == 0, "halves");
    UNROLL for (int half = N / 2; half > 0; half /= 2)
        UNROLL for (int i = 0; i < half; i++)
            x[i] = Reduction::combine(x[i], x[i + half]);
    return x[0];
}

// The maximum of a row and the sum of exp(x - maximum), both so far, and N elements more (Milakov and Gimelshein,
// "Online normalizer calculation for softmax", 2018). As long as all are -inf, exp(x) is 0 and so is the sum.
template <int N> DEVICE void add_exponentials(float &maximum, float &sum, const float (&x)[N])
{
    float terms[N];
    UNROLL for (int i = 0; i < N; i++)
        terms[i] = x[i];
    const float grown = op_max(maximum, reduce_vector<Max>(terms));
    const float base = grown == -infinity<float>() ? 0.0f : grown;
    UNROLL for (int i = 0; i < N; i++)
        terms[i] = op_exp(op_sub(x[i], base));
    sum = op_add(op_mul(sum, op_exp(op_sub(maximum, base))), reduce_vector<Sum>(terms));
    maximum = grown;
}

// Every lane of a group of `width` neighbours gets the group's result. Four lanes:
//
//   mask 2    0+2  1+3  2+0  3+1
//   mask 1    (0+2)+(1+3)  …       each lane adds its partner's half
template <class Reduction, class T> DEVICE T warp_reduce(T value, int width = WARP)
{
    for (int mask = width / 2; mask > 0; mask /= 2)
        value = Reduction::combine(value, warp_shuffle_xor(value, mask, width));
    return value;
}
