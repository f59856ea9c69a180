"""The fixed programs of the differential tests: for each family, what it is there for.

{T} is the element type. `axes` says which tile axis of the family's kernels each param runs along (as the ranking names
them), and the value it has while the others vary.
"""
import collections

Program = collections.namedtuple("Program", "name family types axes text")

REAL = ("f32", "f16", "bf16", "f64")
NUMBERS = REAL + ("i32", "i8")
HALVES = ("f16", "bf16")
SHORT = HALVES + ("f32",)   # f32 as tf32
MULTIPLIED = HALVES + ("f32", "f64", "i8", "u8")   # by tensor cores
STORED = NUMBERS + ("u8",)   # what is moved in whole bytes

PROGRAMS = [
    Program("chain", "elementwise", REAL, {"M": ("point", 5), "N": ("point", 48)}, """
        input a[M, N] : {T}  input b[N] : {T}
        y[i, j] = relu(a[i, j] * 2 + b[j])
        output y : {T}"""),
    Program("transpose", "elementwise", NUMBERS, {"M": ("point", 7), "N": ("point", 40)}, """
        input a[M, N] : {T}
        y[j, i] = a[i, j]
        output y"""),
    Program("mask", "elementwise", NUMBERS, {"M": ("point", 3), "N": ("point", 70)}, """
        input a[M, N] : {T}  input b[M, N] : {T}
        m[i, j] = a[i, j] > b[i, j]
        y[i, j] = select(m[i, j], a[i, j], b[i, j])
        output m : b1  output y"""),
    Program("reversed", "elementwise", NUMBERS + ("b1",), {"M": ("point", 6), "N": ("point", 33)}, """
        input a[M, 2 * N] : {T}
        y[i:M, j:N] = a[M - 1 - i, 2 * j + 1]
        output y"""),

    Program("rows", "reduce", NUMBERS, {"M": ("output", 5), "N": ("reduced", 100)}, """
        input x[M, N] : {T}
        y[i] = sum[j](x[i, j])
        output y"""),
    Program("columns", "reduce", NUMBERS, {"M": ("reduced", 70), "N": ("output", 33)}, """
        input x[M, N] : {T}
        y[j] = max[i](x[i, j])
        output y"""),
    Program("everything", "reduce", NUMBERS, {"M": ("reduced", 9), "N": ("reduced", 130)}, """
        input x[M, N] : {T}
        y[] = min[i, j](x[i, j])
        output y"""),
    Program("softmax", "reduce", REAL, {"M": ("output", 5), "N": ("reduced", 80)}, """
        input x[M, N] : {T}
        m[i] = max[j](x[i, j])
        e[i, j] = exp(x[i, j] - m[i])
        s[i] = sum[j](e[i, j])
        y[i, j] = e[i, j] / s[i]
        output y : {T}"""),
    Program("product", "reduce", REAL, {"M": ("output", 4), "N": ("reduced", 23)}, """
        input x[M, N] : {T}  input b[M] : {T}
        p[i] = prod[j](1 + 0.125 * x[i, j])
        y[i] = p[i] + b[i]
        output y : {T}"""),

    Program("row_softmax", "rowwise", REAL, {"M": ("row", 5), "N": ("column", 80)}, """
        input x[M, N] : {T}
        m[i] = max[j](x[i, j])
        e[i, j] = exp(x[i, j] - m[i])
        s[i] = sum[j](e[i, j])
        y[i, j] = e[i, j] / s[i]
        output y : {T}"""),
    Program("row_causal", "rowwise", REAL, {"M": ("row", 6), "N": ("column", 81)}, """
        input x[M, N] : {T}  input b[M] : {T}
        t[i, j] = select(j <= 9 * i + 1, x[i, j] * 0.5 + b[i], -inf)
        m[i] = max[j](t[i, j])
        s[i] = sum[j](exp(t[i, j] - m[i]))
        l[i] = m[i] + log(s[i])
        y[i, j] = exp(t[i, j] - l[i])
        output l : f32  output y : {T}"""),
    Program("row_weights", "rowwise", REAL, {"M": ("row", 4), "N": ("column", 77)}, """
        input x[M, N] : {T}  input g[N] : f32  input k[M, N] : b1
        mean[i] = sum[j](x[i, j]) / N
        var[i] = sum[j](sq(x[i, j] - mean[i])) / N
        y[i, j] = select(k[i, j], (x[i, j] - mean[i]) * rsqrt(var[i] + 1e-5) * g[j], 0)
        output mean : f32  output y : {T}"""),
    Program("row_affine", "rowwise", REAL, {"M": ("row", 4), "N": ("column", 81)}, """
        input x[M, N] : {T}  input g[N] : f32  input b[N] : f32
        t[i, j] = x[i, j] * g[j] + b[j]
        s[i] = sum[j](t[i, j])
        m[i] = max[j](t[i, j])
        y[i, j] = (t[i, j] - 0.001 * s[i]) / (abs(m[i]) + 1)
        output y : {T}  output s"""),
    Program("row_slope", "rowwise", REAL, {"M": ("row", 4), "N": ("column", 79)}, """
        input x[M, N] : {T}
        t[i, j] = x[i, j] + 0.0009765625 * j
        mean[i] = sum[j](t[i, j]) / N
        var[i] = sum[j](sq(t[i, j] - mean[i])) / N
        y[i, j] = (t[i, j] - mean[i]) * rsqrt(var[i] + 1e-5)
        output y : {T}  output mean  output var"""),
    Program("row_specials", "rowwise", ("f32", "f16"), {"M": ("row", 9)}, """
        input x[M, 2600] : {T}
        p[i, j] = select(i == 1 && j == 7, inf, select(i == 2, -inf, x[i, j]))
        t[i, j] = select(i == 3 && j > 2000, sqrt(0 - 1 - sq(x[i, j])), select(i == 4 && j < 2500, -inf, p[i, j] * select(i == 5, 1000, 1)))
        m[i] = max[j](t[i, j])
        e[i, j] = exp(t[i, j] - m[i])
        s[i] = sum[j](e[i, j])
        y[i, j] = e[i, j] / s[i]
        output y : {T}"""),
    Program("row_long", "rowwise", REAL, {"M": ("row", 2)}, """
        input x[M, 5003] : {T}  input y[M, 5003] : {T}
        s[i] = sum[j](x[i, j] * y[i, j])
        z[i, j] = y[i, j] * (x[i, j] - s[i])
        output z : {T}"""),

    Program("max_pool", "window", NUMBERS, {"M": ("down", 5), "N": ("along", 37)}, """
        input x[M, 2 * N + 1] : {T}
        y[i, h:N] = max[r:3](x[i, 2 * h + r])
        output y"""),
    Program("padded_sum", "window", REAL, {"M": ("down", 4), "N": ("along", 41)}, """
        input x[M, N] : {T}
        y[i:M, h:N] = sum[r:3, s:3](pad(x[i + r - 1, h + s - 1], 0)) / 9
        output y : {T}"""),
    Program("depthwise", "window", REAL, {"M": ("outer", 5), "N": ("along", 19)}, """
        input x[2, M, 12, 2 * N] : {T}  input w[M, 3, 3] : {T}
        y[n, c, h:6, v:N] = sum[r, s](pad(x[n, c, 2 * h + r - 1, 2 * v + s - 1], 0) * w[c, r, s])
        output y : {T}"""),
    Program("whole_columns", "window", REAL, {"M": ("outer", 40), "N": ("along", 11)}, """
        input x[3, M, 11, N] : {T}  input w[M, 5, 5] : {T}  input b[M] : {T}
        t[n, c, h:11, v:N] = sum[r, s](pad(x[n, c, h + r - 2, v + s - 2], 0) * w[c, r, s])
        y[n, c, h, v] = max(t[n, c, h, v] + b[c], 0)
        output y : {T}"""),
    Program("last_pool", "window", NUMBERS, {"M": ("down", 9), "N": ("along", 6)}, """
        input x[7, M, N] : {T}
        y[h:5, v:M, c:N] = max[r:3, s:3](pad(x[h + r, v + s - 1, c], 0))
        output y"""),
    Program("dilated", "window", REAL, {"M": ("down", 3), "N": ("along", 35)}, """
        input x[M, N + 8] : {T}  input w[M, 5] : {T}
        y[c, h:N] = relu(sum[r](x[c, h + 2 * r] * w[c, r]))
        output y : {T}"""),

    Program("filter", "depthwise", REAL, {"M": ("channel", 5), "N": ("along", 19)}, """
        input x[3, M, 11, N] : {T}  input w[M, 9, 7] : {T}  input b[M] : {T}  input z[3, M, 11, N] : {T}
        t[n, c, h:11, v:N] = sum[r, s](pad(x[n, c, h + r - 4, v + s - 3], 0) * w[c, r, s])
        y[n, c, h, v] = max(t[n, c, h, v] + b[c], 0) + z[n, c, h, v]
        output y : {T}"""),
    Program("filter_strided", "depthwise", REAL, {"M": ("batch", 3), "N": ("along", 21)}, """
        input x[M, 3, 17, 2 * N + 1] : {T}  input w[3, 2, 4, 5] : {T}
        y[n, c, m, h:8, v:N] = sum[r, s](pad(x[n, c, 2 * h + 3 * r - 5, 2 * v + s - 1], 0) * w[c, m, r, s])
        output y : {T}"""),
    Program("filter_channels", "depthwise", REAL, {"M": ("channel", 16), "N": ("along", 13)}, """
        input x[2, 9, N, M] : {T}  input w[5, 8, M] : {T}
        y[n, h:9, v:N, c] = sum[r, s](pad(x[n, h + r - 2, v + s - 4, c], 0) * w[r, s, c])
        output y : {T}"""),
    Program("filter_turned", "depthwise", REAL, {"M": ("down", 10), "N": ("along", 14)}, """
        input dy[2, 6, M, N] : {T}  input w[6, 7, 31] : {T}
        dx[n, c, h:M, v:N] = sum[r, s](pad(dy[n, c, h - r + 3, v - s + 15], 0) * w[c, r, s])
        output dx : {T}"""),
    Program("filter_row", "depthwise", REAL, {"M": ("batch", 7), "N": ("along", 300)}, """
        input x[M, 4, N + 4] : {T}  input w[4, 9] : {T}
        y[n, c, v:N] = sum[s](pad(x[n, c, v + 2 * s - 2], 0) * w[c, s])
        output y : {T}"""),
    Program("filters_beside", "depthwise", REAL, {"M": ("channel", 5), "N": ("along", 19)}, """
        input x[3, M, 11, N] : {T}  input w[M, 9, 7] : {T}  input u[M, 4, 3] : f32  input k[M, 3, 2] : bf16
        input z[3, M, 11, N] : {T}
        s[n, c, h:11, v:N] : {T} = sum[r, q](pad(x[n, c, h + r - 4, v + q - 3], 0) * w[c, r, q])
        t[n, c, h:11, v:N] = sum[r, q](pad(x[n, c, h + r - 1, v + 2 * q - 2], 0) * u[c, r, q])
        p[n, c, h:11, v:N] = sum[r, q](pad(x[n, c, h + 3 * r - 1, v - q + 5], 0) * k[c, r, q])
        y[n, c, h, v] = max(s[n, c, h, v] * t[n, c, h, v] - p[n, c, h, v], 0) + z[n, c, h, v]
        output y : {T}  output t : f32"""),
    Program("filters_beside_strided", "depthwise", REAL, {"M": ("batch", 3), "N": ("along", 21)}, """
        input x[M, 3, 17, 2 * N + 1] : {T}  input w[3, 2, 4, 5] : {T}  input u[3, 2, 3, 2] : {T}
        s[n, c, m, h:8, v:N] = sum[r, q](pad(x[n, c, 2 * h + 3 * r - 5, 2 * v + q - 1], 0) * w[c, m, r, q])
        t[n, c, m, h:8, v:N] = sum[r, q](pad(x[n, c, 2 * h + r + 1, 2 * v + q + 1], 0) * u[c, m, r, q])
        y[n, c, m, h, v] = s[n, c, m, h, v] - t[n, c, m, h, v]
        output y : {T}"""),
    Program("filters_beside_channels", "depthwise", REAL, {"M": ("channel", 16), "N": ("along", 13)}, """
        input x[2, 9, N, M] : {T}  input w[5, 8, M] : {T}  input u[7, 2, M] : {T}
        s[n, h:9, v:N, c] = sum[r, q](pad(x[n, h + r - 2, v + q - 4, c], 0) * w[r, q, c])
        t[n, h:9, v:N, c] = sum[r, q](pad(x[n, h + r - 3, v + q, c], 0) * u[r, q, c])
        y[n, h, v, c] = s[n, h, v, c] + 2 * t[n, h, v, c]
        output y : {T}"""),
    Program("strip", "strip", REAL, {"M": ("channel", 5), "N": ("along", 19)}, """
        input x[3, M, 21, N] : {T}  input w[M, 5, 3] : {T}  input b[M] : {T}  input z[3, M, 21, N] : {T}
        t[n, c, h:21, v:N] = sum[r, s](pad(x[n, c, h + r - 2, v + s - 1], 0) * w[c, r, s])
        y[n, c, h, v] = max(t[n, c, h, v] + b[c], 0) + z[n, c, h, v]
        output y : {T}"""),
    Program("strip_strided", "strip", REAL, {"M": ("batch", 3), "N": ("along", 12)}, """
        input x[M, 3, 41, 2 * N] : {T}  input w[3, 2, 4, 3] : {T}
        y[n, c, m, h:18, v:N] = sum[r, s](pad(x[n, c, 2 * h + 3 * r - 5, 2 * v + s - 1], 0) * w[c, m, r, s])
        output y : {T}"""),
    Program("strip_channels", "strip", REAL, {"M": ("channel", 16), "N": ("along", 13)}, """
        input x[2, 17, N, M] : {T}  input w[3, 4, M] : {T}  input b[M] : {T}
        t[n, h:17, v:N, c] = sum[r, s](pad(x[n, h + r - 1, v + s - 2, c], 0) * w[r, s, c])
        y[n, h, v, c] = t[n, h, v, c] + b[c]
        output y : {T}"""),
    Program("filter_gradient", "filter_direct", REAL, {"M": ("image", 3), "N": ("column", 19), "K": ("tap along", 5)}, """
        input x[M, 2, 9, N] : {T}  input d[M, 2, 9, N] : {T}
        dw[c, r:3, s:K] = sum[n, h, v](d[n, c, h, v] * pad(x[n, c, h + r - 1, v + s - 2], 0))
        output dw : f32"""),
    Program("filter_gradient_apart", "filter_direct", REAL, {"M": ("image", 3), "N": ("column", 9), "K": ("tap along", 5)}, """
        input x[M, 2, 13, 2 * N + 3] : {T}  input d[M, 2, 6, N] : {T}
        dw[c, r:3, s:K] = sum[n, h, v](d[n, c, h, v] * pad(x[n, c, 2 * h + 3 * r - 2, 2 * v + s - 2], 0))
        output dw : f32"""),
    Program("filter_gradient_lines", "filter_direct", REAL, {"M": ("row", 9), "N": ("column", 19), "K": ("tap along", 5)}, """
        input x[3, M, N, 2] : {T}  input d[3, M, N, 2] : {T}
        dw[s:K, c] = sum[n, h, v](d[n, h, v, c] * pad(x[n, h, v + 2 * s - 3, c], 0))
        output dw : f32"""),
    Program("filter_strip", "filter_strip", REAL, {"M": ("image", 5), "N": ("column", 24), "K": ("tap along", 5)}, """
        input x[M, 3, 17, N] : {T}  input d[M, 3, 19, N] : {T}  input b[3] : f32
        t[c, r:3, s:K] = sum[n, h, v](d[n, c, h, v] * pad(x[n, c, h + r - 1, v + s - 2], 0))
        dw[c, r, s] = t[c, r, s] + b[c]
        output dw : f32"""),
    Program("filter_strip_strided", "filter_strip", REAL, {"M": ("image", 3), "N": ("column", 10), "K": ("tap down", 3)}, """
        input x[M, 2, 41, 2 * N] : {T}  input d[M, 2, 21, N] : {T}
        dw[c, r:K, s:4] = sum[n, h, v](d[n, c, h, v] * pad(x[n, c, 2 * h + 3 * r - 2, 2 * v + s - 1], 0))
        output dw : f32"""),
    Program("filter_strip_channels", "filter_strip", REAL, {"M": ("image", 9), "N": ("channel", 40)}, """
        input x[M, 17, 11, N] : {T}  input d[M, 17, 10, N] : {T}
        dw[r:3, s:4, c] = sum[n, h, v](d[n, h, v, c] * pad(x[n, h + r - 2, v + 2 * s - 3, c], 0))
        output dw : f32"""),
    Program("filter_gradient_16", "filter_gemm", SHORT, {"M": ("image", 5), "N": ("column", 24), "K": ("tap down", 3)}, """
        input x[2, M, 20, N] : {T}  input d[2, M, 16, N] : {T}  input w[2, K, 5] : f32
        dw[c, r:K, s:5] = sum[n, h, v](d[c, n, h, v] * pad(x[c, n, h + r, v + s - 1], 0))
        u[c, r, s] = w[c, r, s] - 0.125 * dw[c, r, s]
        output u : f32"""),
    Program("filter_gradient_last", "filter_gemm", SHORT, {"M": ("image", 5), "N": ("column", 24), "K": ("tap down", 3)}, """
        input x[M, 20, N, 2] : {T}  input d[M, 18, N, 2] : {T}
        dw[r:K, s:5, c] = sum[n, h, v](d[n, h, v, c] * pad(x[n, h + r, v + s - 2, c], 0))
        output dw : f32"""),
    Program("filter_groups", "filter_groups", HALVES, {"M": ("channel", 4), "N": ("tap along", 13), "K": ("along", 3)}, """
        input x[3, 11, N, M, 16] : {T}  input d[3, 11, N, M, 8] : {T}
        dw[g, f, r:3, s:K, c] = sum[n, h, v](d[n, h, v, g, f] * pad(x[n, h + r - 1, v + s - 1, g, c], 0))
        u[g, f, r, s, c] = 1 - 0.125 * dw[g, f, r, s, c]
        output u : {T}"""),
    Program("filter_groups_apart", "filter_groups", HALVES, {"M": ("channel", 3), "N": ("tap along", 40)}, """
        input x[5, 43, 2 * N, M, 8] : {T}  input d[5, 21, N, M, 24] : {T}
        dw[g, f, r:2, s:4, c] = sum[n, h, v](d[n, h, v, g, f] * pad(x[n, 2*h + 3*r - 1, 2*v + s - 2, g, c], 0))
        output dw : f32"""),
    Program("filter_groups_lines", "filter_groups", HALVES, {"M": ("tap along", 301), "K": ("along", 5)}, """
        input x[9, M + 2 * K, 8] : {T}  input d[9, M, 8] : {T}
        dw[f, s:K, c] = sum[n, v](d[n, v, f] * x[n, v + 2*s, c])
        output dw : f32"""),
    Program("filter_groups_wide", "filter_groups", HALVES, {"M": ("tap along", 21)}, """
        input x[3, M + 8, 2, 48] : {T}  input d[3, M, 2, 64] : {T}
        dw[g, f, s:9, c] = sum[n, v](d[n, v, g, f] * x[n, v + s, g, c])
        output dw : f32"""),
    Program("filter_groups_planes", "filter_groups", HALVES, {"M": ("channel", 4), "N": ("tap along", 12)}, """
        input x[3, M, 8, 21, 2 * N] : {T}  input d[3, M, 16, 10, N] : {T}
        dw[g, f, c, r:3, s:3] = sum[n, h, v](d[n, g, f, h, v] * pad(x[n, g, c, 2*h + r - 1, 2*v + s - 1], 0))
        output dw : f32"""),
    Program("filter_wide", "filter_wide", HALVES, {"M": ("tap along", 13), "K": ("along", 3)}, """
        input x[4, 7, M, 2, 64] : {T}  input d[4, 7, M, 2, 72] : {T}
        dw[g, f, r:3, s:K, c] = sum[n, h, v](d[n, h, v, g, f] * pad(x[n, h + r - 1, v + s - 1, g, c], 0))
        u[g, f, r, s, c] = 1 - 0.125 * dw[g, f, r, s, c]
        output u : {T}"""),
    Program("filter_wide_strided", "filter_wide", HALVES, {"M": ("tap along", 24), "K": ("along", 3)}, """
        input x[2, 40, 2 * M, 96] : {T}  input d[2, 20, M, 64] : {T}
        dw[f, c, r:2, s:K] = sum[n, h, v](d[n, h, v, f] * pad(x[n, 2*h + 2*r - 1, 2*v + s - 1, c], 0))
        output dw : f32"""),

    Program("matmul", "matmul", NUMBERS, {"M": ("m", 33), "N": ("n", 40), "K": ("k", 19)}, """
        input A[M, K] : {T}  input B[K, N] : {T}
        C[i, j] = sum[k](A[i, k] * B[k, j])
        output C"""),
    Program("matmul_transposed", "matmul", REAL, {"M": ("m", 35), "N": ("n", 34), "K": ("k", 17)}, """
        input A[K, M] : {T}  input B[N, K] : {T}  input b[N] : {T}  input z[M, N] : {T}
        c[i, j] = sum[k](A[k, i] * B[j, k])
        y[i, j] = relu(c[i, j] + b[j] + z[i, j])
        output y : {T}"""),
    Program("matmul_shared", "matmul", NUMBERS, {"M": ("m", 34), "N": ("n", 33), "K": ("k", 18)}, """
        input A[M, K] : {T}  input B[N, K] : {T}  input s[N] : {T}
        C[i, j] = sum[k](-A[i, k] * 3 * (B[j, k] * s[j]))
        output C"""),
    Program("matmul_batched", "matmul", REAL, {"M": ("m", 20), "N": ("n", 24), "K": ("k", 33)}, """
        input A[3, M, K] : {T}  input B[3, K, N] : {T}
        C[b, i, j] = sum[k](A[b, i, k] * B[b, k, j])
        output C : {T}"""),
    Program("matmul_of_parts", "matmul", REAL, {"M": ("m", 33), "N": ("n", 30), "K": ("k", 17)}, """
        param P = 8 * floor((M + 11) / 8)  param Q = 4 * floor((N + 7) / 4)
        input A[K, P] : {T}  input B[K, Q] : {T}
        C[i:M, j:N] = sum[k](A[k, i] * B[k, j])
        output C : {T}"""),
    Program("matmul_small", "matmul", REAL, {"M": ("m", 7), "N": ("n", 8), "K": ("k", 9)}, """
        input A[37, M, K] : {T}  input B[37, N, K] : {T}  input z[N] : {T}
        C[b, i, j] = sum[k](A[b, i, k] * B[b, j, k])
        y[b, i, j] = C[b, i, j] + z[j]
        output y : {T}"""),

    Program("gemm", "gemm", MULTIPLIED, {"M": ("m", 33), "N": ("n", 40), "K": ("k", 24)}, """
        input A[M, K] : {T}  input B[K, N] : {T}
        C[i, j] = sum[k](A[i, k] * B[k, j])
        output C"""),
    Program("gemm_transposed", "gemm", MULTIPLIED, {"M": ("m", 40), "N": ("n", 34), "K": ("k", 17)}, """
        input A[K, M] : {T}  input B[N, K] : {T}  input b[N] : {T}
        c[i, j] = sum[k](A[k, i] * B[j, k])
        y[i, j] = relu(c[i, j] + b[j])
        output y : {T}"""),
    Program("gemm_shared", "gemm", MULTIPLIED, {"M": ("m", 34), "N": ("n", 40), "K": ("k", 18)}, """
        input A[M, K] : {T}  input B[N, K] : {T}  input s[M] : {T}
        C[i, j] = sum[k](s[i] * A[i, k] * (-3 * B[j, k]))
        output C"""),
    Program("gemm_batched", "gemm", MULTIPLIED, {"M": ("m", 20), "N": ("n", 24), "K": ("k", 40)}, """
        input A[3, M, K] : {T}  input B[3, N, K] : {T}  input z[3, N, M] : {T}
        C[b, i, j] = sum[k](A[b, i, k] * B[b, j, k])
        y[b, j, i] = C[b, i, j] + z[b, j, i]
        output y : {T}"""),
    Program("gemm_small", "gemm", MULTIPLIED, {"M": ("m", 10), "N": ("n", 16), "K": ("k", 9)}, """
        input A[21, M, K] : {T}  input B[21, K, N] : {T}
        C[b, i, j] = sum[k](A[b, i, k] * B[b, k, j])
        output C"""),
    Program("gemm_pixels", "gemm", MULTIPLIED, {"M": ("n", 18), "N": ("m", 9)}, """
        input x[2, 5, N, 8] : {T}  input w[M, 3, 3, 8] : {T}
        y[n, h:5, v:N, f] = sum[r, s, c](pad(x[n, h + r - 1, v + s - 1, c], 0) * w[f, r, s, c])
        output y : {T}"""),
    Program("gemm_conv", "gemm", MULTIPLIED, {"M": ("m", 18)}, """
        input x[2, 5, 7, 9] : {T}  input w[M, 5, 3, 3] : {T}
        y[n, f, h:7, v:9] = sum[c, r, s](pad(x[n, c, h + r - 1, v + s - 1], 0) * w[f, c, r, s])
        output y : {T}"""),
    Program("gemm_rows", "gemm", HALVES, {"M": ("m", 33), "N": ("n", 160), "K": ("k", 37)}, """
        input x[K, 8 * M] : {T}  input w[K, 8 * N] : {T}  input n[8 * N] : f32  input r[8 * M] : f32
        l[i, j] = sum[k](x[k, i] * w[k, j])
        t[i, j] = n[j] + r[i] - 2 * l[i, j]
        m[i] = min[j](t[i, j])
        a[i] = max[j](select(t[i, j] == m[i], j, -1))
        s[i] = sum[j](t[i, j])
        output a  output s"""),
    Program("bulk", "bulk", HALVES, {"M": ("m", 64), "K": ("k", 24)}, """
        input A[M, 8 * K] : {T}  input B[8 * K, 72] : {T}
        C[i, j] = sum[k](A[i, k] * B[k, j])
        output C : {T}"""),
    Program("bulk_rows", "bulk", HALVES, {"M": ("m", 64), "N": ("n", 160), "K": ("k", 9)}, """
        input x[2, M, 8 * K] : {T}  input w[2, N, 8 * K] : {T}  input n[N] : f32
        l[b, i, j] = sum[k](x[b, i, k] * w[b, j, k])
        t[b, i, j] = l[b, i, j] * 0.25 - n[j]
        m[b, i] = max[j](t[b, i, j])
        z[b, i] = sum[j](exp(t[b, i, j] - m[b, i]))
        a[b, i] = min[j](select(t[b, i, j] == m[b, i], j, N))
        output z  output m  output a"""),
    Program("bulk_turned", "bulk", HALVES, {"M": ("m", 9), "N": ("n", 64), "K": ("k", 13)}, """
        input A[3, 8 * K, 8 * M] : {T}  input B[N, 3, 8 * K] : {T}  input bias[N] : {T}
        c[b, i, j] = sum[k](A[b, k, i] * B[j, b, k])
        y[b, i, j] = relu(c[b, i, j] + bias[j])
        output y : {T}"""),
    Program("bulk_along_k", "bulk", ("i8", "u8", "f32"), {"M": ("m", 64), "N": ("n", 72), "K": ("k", 9)}, """
        input A[M, 16 * K] : {T}  input B[3, N, 16 * K] : {T}  input bias[N] : {T}
        c[b, i, j] = sum[k](A[i, k] * B[b, j, k])
        y[b, i, j] = max(c[b, i, j] + bias[j], 0)
        output y"""),
    Program("bulk_shifted", "bulk", HALVES, {"M": ("m", 64), "N": ("n", 72), "K": ("k", 9)}, """
        input A[2, M, 8 * K] : {T}  input B[N, 8 * K] : {T}
        C[b, i, j] = sum[k](A[b, i, k] * B[j, k])
        output C : {T}"""),
    Program("bulk_turns", "bulk", HALVES, {"M": ("m", 3401), "N": ("n", 160)}, """
        input A[M, 40] : {T}  input B[40, 8 * N] : {T}  input z[M, 8 * N] : {T}
        C[i, j] = sum[k](A[i, k] * B[k, j])
        y[i, j] = C[i, j] + z[i, j]
        output y : {T}  output C : f32"""),
    Program("bulk_parts", "bulk", ("i8", "u8", "f32"), {"M": ("m", 64), "N": ("n", 72), "K": ("k", 9)}, """
        input A[M, 16 * K + 16] : {T}  input B[3, N, 16 * K] : {T}  input bias[N] : {T}
        c[b, i, j] = sum[k](A[i, k + 16] * B[b, j, k])
        y[b, i, j] = max(c[b, i, j] + bias[j], 0)
        output y"""),
    Program("bulk_pixels", "bulk", HALVES, {"M": ("n", 18), "N": ("m", 9)}, """
        input x[2, 5, N, 8] : {T}  input w[M, 3, 3, 8] : {T}
        y[n, h:5, v:N, f] = sum[r, s, c](pad(x[n, h + r - 1, v + s - 1, c], 0) * w[f, r, s, c])
        output y : {T}"""),
    Program("bulk_pixels_apart", "bulk", HALVES, {"M": ("n", 9), "N": ("m", 18), "K": ("k", 9)}, """
        input x[3, 12, 2 * N, 8 * K] : {T}  input w[3, 2, 8 * K, 8 * M] : {T}  input z[3, 6, N, 8 * M] : {T}  input b[8 * M] : f32
        t[n, h:6, v:N, f] = sum[c, r, s](pad(x[n, 2 * h - 2 * r + 3, 2 * v + 3 * s - 2, c], 0) * w[r, s, c, f])
        y[n, h, v, f] = relu(t[n, h, v, f] + z[n, h, v, f] + b[f])
        output y : {T}"""),
    Program("bulk_boxes_of_pixels", "bulk", HALVES, {"M": ("n", 18), "N": ("m", 9)}, """
        input x[4, 5, N, 72] : {T}  input w[M, 3, 2, 3, 72] : {T}  input z[4, M] : {T}
        t[d:4, h:5, v:N, f] = sum[q, r, s, c](pad(x[d + q - 1, h + r, v + s - 2, c], 0) * w[f, q, r, s, c])
        y[d, h, v, f] = t[d, h, v, f] * z[d, f]
        output t : {T}  output y : f32"""),
    Program("bulk_pixels_of_groups", "bulk", HALVES, {"M": ("n", 18), "N": ("m", 9)}, """
        input x[2, 5, N, 3, 64] : {T}  input w[3, M, 3, 3, 64] : {T}
        y[n, h:5, v:N, g, f] = sum[r, s, c](pad(x[n, h + r - 1, v + s - 1, g, c], 0) * w[g, f, r, s, c])
        output y : {T}"""),
    Program("bulk_gradient_of_groups", "bulk", HALVES, {"M": ("n", 3), "N": ("m", 9)}, """
        input dy[2, 5, N, 3, 64] : {T}  input w[3, 64, 3, 3, 8 * M] : {T}
        dx[n, h:5, v:N, g, c] = sum[r, s, f](pad(dy[n, h - r + 1, v - s + 1, g, f], 0) * w[g, f, r, s, c])
        output dx : {T}"""),
    Program("bulk_planes", "bulk", HALVES, {"M": ("m", 9), "N": ("n", 18)}, """
        input x[2, 5, N, 8] : {T}  input w[M, 3, 3, 8] : {T}  input z[2, M, 5, N] : {T}  input b[M] : f32
        t[n, f, h:5, v:N] = sum[r, s, c](pad(x[n, h + r - 1, v + s - 1, c], 0) * w[f, r, s, c])
        y[n, f, h, v] = relu(t[n, f, h, v] + z[n, f, h, v] + b[f])
        output y : {T}"""),
    Program("bulk_planes_apart", "bulk", HALVES, {"M": ("m", 9), "N": ("n", 18), "K": ("k", 9)}, """
        input x[3, 12, 2 * N, 8 * K] : {T}  input w[3, 2, 8 * K, 8 * M] : {T}
        y[n, f, h:6, v:N] = sum[c, r, s](pad(x[n, 2 * h - 2 * r + 3, 2 * v + 3 * s - 2, c], 0) * w[r, s, c, f])
        output y : {T}"""),
    Program("bulk_planes_of_boxes", "bulk", HALVES, {"M": ("m", 18), "N": ("n", 9)}, """
        input x[4, 6, N, 72] : {T}  input w[M, 3, 2, 72] : {T}
        y[f, d:4, h:5, v:N] = sum[q, r, c](pad(x[d + q - 1, h + r, v, c], 0) * w[f, q, r, c])
        output y : f32"""),
    Program("bulk_lines_of_planes", "bulk", HALVES, {"M": ("m", 9), "N": ("n", 18), "K": ("k", 9)}, """
        input x[3, 8 * K, 2, 8 * N] : {T}  input w[8 * K, 8 * M] : {T}  input z[3, 8 * M, 2, 8 * N] : {T}
        t[n, f, h, v] = sum[c](x[n, c, h, v] * w[c, f])
        y[n, f, h, v] = t[n, f, h, v] + z[n, f, h, v]
        output y : {T}"""),
    Program("bulk_pixels_of_lines", "bulk", ("i8", "u8", "f32"), {"M": ("n", 72), "N": ("m", 130)}, """
        input x[2, N, 32] : {T}  input w[M, 5, 32] : {T}
        y[n, v:N, f] = sum[s, c](pad(x[n, v + s - 2, c], 0) * w[f, s, c])
        output y"""),
    Program("bulk_filter", "bulk", HALVES, {"M": ("n", 9), "N": ("m", 18)}, """
        input x[3, 12, 2 * N, 64] : {T}  input d[3, 6, N, 8 * M] : {T}  input b[8 * M] : f32
        t[f, r:3, s:2, c] = sum[v, h, n](d[n, h, v, f] * pad(x[n, 2 * h + r - 1, 2 * v + 3 * s - 2, c], 0))
        y[f, r, s, c] = t[f, r, s, c] * b[f]
        output y : {T}"""),
    Program("bulk_filter_turned", "bulk", HALVES, {"M": ("n", 9), "N": ("m", 18)}, """
        input x[2, 3, 4, N, 128] : {T}  input d[2, 3, 4, N, 8 * M] : {T}
        y[q:3, r:1, s:3, c, f] = sum[n, t, h, v](d[n, t, h, v, f] * pad(x[n, t + 1 - q, h + r, v + s - 1, c], 0))
        output y : f32"""),
    Program("bulk_filter_of_groups", "bulk", HALVES, {"M": ("n", 9), "N": ("m", 18)}, """
        input x[2, 3, 4, N, 3, 64] : {T}  input d[2, 3, 4, N, 3, 8 * M] : {T}
        y[g, f, q:3, r:1, s:3, c] = sum[n, t, h, v](d[n, t, h, v, g, f] * pad(x[n, t + 1 - q, h + r, v + s - 1, g, c], 0))
        output y : {T}"""),
    Program("bulk_phases", "bulk", HALVES, {"M": ("n", 9), "N": ("m", 18)}, """
        input d[3, 5, N, 8 * M] : {T}  input w[8 * M, 3, 5, 72] : {T}  input z[72] : f32
        t[n, h:5, a:2, v:N, b:3, c] = sum[p:2, q:2, f](pad(d[n, h + p, v + q - 1, f], 0) * pad(w[f, a - 2*p + 1, b - 3*q + 3, c], 0))
        y[n, h, a, v, b, c] = t[n, h, a, v, b, c] + z[c]
        output y : {T}"""),
    Program("bulk_phases_of_groups", "bulk", HALVES, {"M": ("batch", 3), "N": ("m", 18)}, """
        input d[2, 3, N, M, 64] : {T}  input w[M, 64, 3, 3, 72] : {T}
        y[n, h:3, a:2, v:N, b:2, g, c] = sum[p:2, q:2, f](pad(d[n, h + p, v + q, g, f], 0) * pad(w[g, f, a - 2*p + 1, b - 2*q + 1, c], 0))
        output y : {T}"""),
    Program("gemm_phases", "gemm", HALVES, {"M": ("n", 3), "N": ("m", 18)}, """
        input d[16, N, 64] : {T}  input w[64, 5, 16 * M] : {T}
        y[n, v:N, a:2, c] = sum[p:3, f](pad(d[n, v + p - 1, f], 0) * pad(w[f, 5 - a - 2*p, c], 0))
        output y : {T}"""),
    Program("gemm_planes_of_phases", "gemm", HALVES, {"M": ("n", 5), "N": ("m", 18)}, """
        input d[3, 24, 4, N] : {T}  input w[24, M, 2, 2] : {T}
        x[n, c, h:4, a:2, v:N, b:2] = sum[f](d[n, f, h, v] * w[f, c, a, b])
        output x : {T}"""),
    Program("bulk_phases_turned", "bulk", HALVES, {"M": ("n", 9), "N": ("m", 18)}, """
        input d[2, 4, N, 8 * M] : {T}  input w[128, 1, 3, 8 * M] : {T}
        y[n, h:4, a:2, v:N, b:2, c] = sum[q:2, f](pad(d[n, h, v + q, f], 0) * pad(w[c, a, b - 2*q + 1, f], 0))
        output y : f32"""),
    Program("bulk_phases_of_columns", "bulk", HALVES, {"M": ("n", 2), "N": ("m", 18)}, """
        input d[3, 5, N, 72] : {T}  input w[3, 2, 32 * M, 2, 72] : {T}
        y[n, h:5, a:2, v:N, c, b] = sum[p:2, q:2, f](pad(d[n, h + p, v + q, f], 0) * pad(w[a - 2*p + 1, q, c, b, f], 0))
        output y : {T}"""),
    Program("bulk_planes_of_phases", "bulk", HALVES, {"M": ("n", 9), "N": ("m", 18)}, """
        input d[3, 8 * M, 4, 2 * N] : {T}  input w[8 * M, 10, 2, 2] : {T}
        x[n, c, h:4, a:2, v:2 * N, b:2] = sum[f](d[n, f, h, v] * w[f, c, a, b])
        output x : {T}"""),
    Program("bulk_pixels_apart_in_planes", "bulk", HALVES, {"M": ("n", 9), "N": ("m", 18)}, """
        input x[3, 72, 8, 6 * N] : {T}  input w[8 * M, 72] : {T}
        y[n, f, h:4, v:2 * N] = sum[c](x[n, c, 2*h + 1, 3*v] * w[f, c])
        output y : {T}"""),
    Program("bulk_first_of_phases", "bulk", HALVES, {"M": ("n", 9), "N": ("m", 18)}, """
        input d[3, 72, 4, 2 * N] : {T}  input w[72, 8 * M, 1, 1] : {T}
        x[n, c, h:4, a:2, v:2 * N, b:3] = sum[f](d[n, f, h, v] * pad(w[f, c, a, b], 0))
        output x : {T}"""),
    Program("bulk_pixels_of_parts", "bulk", HALVES, {"M": ("n", 18), "N": ("m", 9)}, """
        input x[2, 5, N, 16] : {T}  input w[M, 3, 3, 8] : {T}
        y[n, h:5, v:N, f] = sum[r, s, c:8](pad(x[n, h + r - 1, v + s - 1, c + 8], 0) * w[f, r, s, c])
        output y : {T}"""),
    Program("toeplitz", "toeplitz", SHORT, {"M": ("image", 5), "N": ("row", 18)}, """
        input x[M, 2, N, 24] : {T}  input w[2, 9, 9] : {T}  input b[2] : f32
        t[n, c, h:N, v:24] = sum[r, s](pad(x[n, c, h + r - 4, v + s - 4], 0) * w[c, r, s])
        y[n, c, h, v] = relu(t[n, c, h, v] + b[c])
        output y : {T}"""),
    Program("toeplitz_turned", "toeplitz", SHORT, {"M": ("image", 3), "N": ("column", 70)}, """
        input dy[M, 3, 9, N] : {T}  input w[3, 12, 5] : {T}
        dx[n, c, h:13, v:N] = sum[r, s](pad(dy[n, c, h - r + 6, v - s + 2], 0) * w[c, r, s])
        output dx : f32"""),
    Program("toeplitz_beside", "toeplitz", SHORT, {"M": ("image", 5), "N": ("column", 18)}, """
        input x[M, 3, 19, N + 3] : {T}  input w[3, 6, 5] : {T}
        y[n, c, h:20, v:N] = sum[r, s](pad(x[n, c, h + r - 2, v + s - 3], 0) * w[c, r, s])
        output y : {T}"""),
    Program("toeplitz_wide", "toeplitz", SHORT, {"M": ("image", 5), "N": ("row", 18)}, """
        input x[M, 2, N, 32] : {T}  input w[2, 3, 13] : {T}
        y[n, c, h:N, v:32] = sum[r, s](pad(x[n, c, h + r - 1, v + s - 6], 0) * w[c, r, s])
        output y : {T}"""),
    Program("toeplitz_lines", "toeplitz", SHORT, {"M": ("image", 17), "N": ("column", 33)}, """
        input x[M, 3, N + 8] : {T}  input w[3, 2, 9] : {T}
        y[n, c, m, v:N] = sum[s](x[n, c, v + s] * w[c, m, s])
        output y : {T}"""),
    Program("pairs", "pairs", HALVES, {"M": ("image", 5), "N": ("row", 18)}, """
        input x[M, N, 20, 40] : {T}  input w[5, 5, 40] : {T}  input b[40] : f32
        t[n, h:N, v:20, c] = sum[r, s](pad(x[n, h + r - 2, v + s - 2, c], 0) * w[r, s, c])
        y[n, h, v, c] = relu(t[n, h, v, c] + b[c])
        output y : {T}"""),
    Program("pairs_turned", "pairs", HALVES, {"M": ("image", 3), "N": ("column", 70)}, """
        input dy[M, 13, N, 24] : {T}  input w[7, 4, 24] : {T}
        dx[n, h:14, v:N, c] = sum[r, s](pad(dy[n, h - r + 4, v - s + 1, c], 0) * w[r, s, c])
        output dx : f32"""),
    Program("pairs_beside", "pairs", HALVES, {"M": ("image", 5), "N": ("column", 18)}, """
        input x[M, 19, N + 3, 2, 16] : {T}  input w[2, 16, 9, 9] : {T}
        y[n, h:20, v:N, g, c] = sum[r, s](pad(x[n, h + r - 2, v + s - 3, g, c], 0) * w[g, c, r, s])
        output y : {T}"""),
    Program("pairs_apart", "pairs", HALVES, {"M": ("image", 17), "N": ("column", 9)}, """
        input x[M, 8, N, 32] : {T}  input w[32, 3, 2] : {T}
        y[n, c, h:8, v:N] = sum[r, s](pad(x[n, h + r - 1, v + s, c], 0) * w[c, r, s])
        output y : {T}"""),
    Program("pairs_lines", "pairs", HALVES, {"M": ("image", 9), "N": ("column", 65)}, """
        input x[M, N + 8, 48] : {T}  input w[9, 48] : {T}
        y[n, v:N, c] = sum[s](x[n, v + s, c] * w[s, c])
        output y : {T}"""),
    Program("narrow", "narrow", HALVES, {"M": ("multiplier", 12), "N": ("along", 20)}, """
        input x[2, 13, 2 * N, 3] : {T}  input w[M, 5, 7, 3] : {T}  input b[M] : f32
        t[n, h:7, v:N, f] = sum[r, s, c](pad(x[n, 2*h + r - 2, 2*v + s - 3, c], 0) * w[f, r, s, c])
        y[n, h, v, f] = relu(t[n, h, v, f] + b[f])
        output y : {T}"""),
    Program("narrow_odd", "narrow", HALVES, {"M": ("batch", 2), "N": ("along", 11)}, """
        input x[M, 9, N, 5] : {T}  input w[9, 3, 2, 5] : {T}
        y[n, h:9, v:N, f] = sum[r, s, c](pad(x[n, h + r - 1, v + s - 1, c], 0) * w[f, r, s, c])
        output y : {T}"""),
    Program("narrow_lines", "narrow", HALVES, {"M": ("multiplier", 70), "N": ("along", 200)}, """
        input x[2, N + 4, 1] : {T}  input w[M, 5] : {T}
        y[n, v:N, f] = sum[s](x[n, v + s, 0] * w[f, s])
        output y : f32"""),
    Program("narrow_groups", "narrow", HALVES, {"M": ("channel", 8), "N": ("along", 14)}, """
        input x[2, 11, N, M, 8] : {T}  input w[M, 8, 3, 3, 8] : {T}
        y[n, h:11, v:N, g, f] = sum[r, s, c](pad(x[n, h + r - 1, v + s - 1, g, c], 0) * w[g, f, r, s, c])
        output y : {T}"""),
    Program("narrow_groups_of_two", "narrow", HALVES, {"M": ("channel", 12), "N": ("along", 9)}, """
        input x[1, 10, 2 * N, M, 2] : {T}  input w[M, 2, 3, 3, 2] : {T}
        y[n, h:4, v:N, g, f] = sum[r, s, c](pad(x[n, 2*h + 2*r - 1, 2*v + 2*s - 1, g, c], 0) * w[g, f, r, s, c])
        output y : {T}"""),
    Program("narrow_gradient", "narrow", HALVES, {"M": ("channel", 5), "N": ("along", 9)}, """
        input dy[2, 12, N, M, 8] : {T}  input w[M, 8, 3, 3, 16] : {T}
        dx[n, h:12, v:N, g, c] = sum[r, s, f](pad(dy[n, h - r + 1, v - s + 1, g, f], 0) * w[g, f, r, s, c])
        output dx : {T}"""),
    Program("narrow_volume", "narrow", HALVES, {"M": ("channel", 3), "N": ("along", 9)}, """
        input x[2, 5, 6, N, M, 8] : {T}  input w[M, 10, 2, 3, 3, 8] : {T}
        y[n, d:3, h:6, v:N, g, f] = sum[t, r, s, c](pad(x[n, 2*d + 2*t - 1, h + r - 1, v + s - 1, g, c], 0) * w[g, f, t, r, s, c])
        output y : {T}"""),
    Program("narrow_planes", "narrow", HALVES, {"M": ("channel", 3), "N": ("along", 12)}, """
        input x[2, M, 8, 9, N] : {T}  input w[M, 8, 8, 3, 3] : {T}  input z[2, M, 8, 9, N] : {T}
        t[n, g, f, h:9, v:N] = sum[r, s, c](pad(x[n, g, c, h + r - 1, v + s - 1], 0) * w[g, f, c, r, s])
        y[n, g, f, h, v] = relu(t[n, g, f, h, v] + z[n, g, f, h, v])
        output y : {T}"""),
    Program("narrow_planes_of_four", "narrow", HALVES, {"M": ("channel", 6), "N": ("along", 14)}, """
        input x[2, M, 4, 12, 2 * N] : {T}  input w[M, 4, 4, 3, 3] : {T}
        y[n, g, f, h:5, v:N] = sum[r, s, c](pad(x[n, g, c, 2*h + 2*r - 1, 2*v + s - 1], 0) * w[g, f, c, r, s])
        output y : {T}"""),
    Program("convolution", "matmul", REAL, {"M": ("m", 9), "N": ("n", 20), "K": ("k", 4)}, """
        input x[K, N, 6] : {T}  input w[M, K, 3, 3] : {T}
        y[f, h:N, v:6] = sum[k, r, s](pad(x[k, h + r - 1, v + s - 1], 0) * w[f, k, r, s])
        output y : {T}"""),
    Program("convolution_by_taps", "matmul", REAL, {"M": ("m", 9), "N": ("n", 20)}, """
        input x[48, N, 6] : {T}  input w[M, 48, 3, 3] : {T}
        y[f, h:N, v:6] = sum[k, r, s](pad(x[k, h + r - 1, v + s - 1], 0) * w[f, k, r, s])
        output y : {T}"""),
    Program("convolution_last", "matmul", REAL, {"M": ("n", 12), "N": ("m", 21)}, """
        input x[N, 6, 24] : {T}  input w[M, 3, 3, 24] : {T}
        y[h:N, v:6, f] = sum[r, s, k](pad(x[h + 2 * r - 2, v + s - 1, k], 0) * w[f, r, s, k])
        output y : {T}"""),
    Program("convolution_phases", "matmul", REAL, {"M": ("m", 9), "N": ("n", 18)}, """
        input d[2, 32, 5, N] : {T}  input w[32, 8 * M, 3, 2] : {T}
        x[n, c, h:5, a:2, v:N, b:3] = sum[p:2, q:2, f](
            pad(d[n, f, h + p, v + q], 0) * pad(w[f, c, a - 2*p + 1, b - 3*q], 0))
        output x : {T}"""),
    Program("phases_of_channels", "matmul", REAL, {"M": ("m", 9), "N": ("n", 7)}, """
        input d[2, 37, N, 5] : {T}  input w[37, 8 * M, 5, 5] : {T}
        x[n, c, h:N, a:2, v:7, b:2] = sum[f, p:3, q:3](
            pad(d[n, f, h - p, v - q], 0) * pad(w[f, c, 2*p + a, 2*q + b], 0))
        output x : {T}"""),

    Program("skinny", "skinny", NUMBERS, {"N": ("n", 40), "K": ("k", 72)}, """
        input A[3, K] : {T}  input B[K, N] : {T}
        C[i, j] = sum[k](A[i, k] * B[k, j])
        output C"""),
    Program("skinny_transposed", "skinny", REAL, {"M": ("m", 6), "N": ("n", 34), "K": ("k", 136)}, """
        input A[K, M] : {T}  input B[2, N, K] : {T}  input b[M] : {T}
        c[g, j, i] = sum[k](A[k, i] * B[g, j, k])
        y[g, j, i] = relu(c[g, j, i] + b[i])
        output y : {T}"""),
    Program("skinny_vector", "skinny", REAL, {"N": ("n", 33), "K": ("k", 104)}, """
        input A[N, K] : {T}  input x[2, K] : {T}  input r[2, N] : f32
        c[b, i] = sum[k](A[i, k] * x[b, k])
        y[b, i] = c[b, i] + r[b, i]
        output y : f32  output c : {T}"""),

    Program("row_norm", "rowwise", REAL, {"M": ("row", 3), "N": ("column", 72)}, """
        input x[M, N] : {T}  input gamma[N] : {T}  input beta[N] : {T}
        mean[i] = sum[j](x[i, j]) / N
        var[i]  = sum[j](sq(x[i, j] - mean[i])) / N
        inv[i]  = rsqrt(var[i] + 1e-5)
        y[i, j] = (x[i, j] - mean[i]) * inv[i] * gamma[j] + beta[j]
        output y : {T}  output mean  output inv"""),
    Program("row_mask", "rowwise", REAL, {"M": ("row", 7), "N": ("column", 40)}, """
        input x[M, N] : {T}  input k[M, N] : b1
        t[i, j] = select(k[i, j] && j <= 8 * i, x[i, j] * 0.125, -1e4)
        m[i] = max[j](t[i, j])
        s[i] = sum[j](exp(t[i, j] - m[i]))
        y[i, j] = t[i, j] - m[i] - log(s[i])
        output y : {T}  output m"""),
    Program("row_range", "rowwise", NUMBERS, {"M": ("row", 6), "N": ("column", 50)}, """
        input x[M, N] : {T}  input b[M] : {T}
        low[i]  = min[j](x[i, j])
        high[i] = max[j](x[i, j])
        y[i, j] = (x[i, j] - low[i]) * 2 + high[i] - b[i]
        output y  output low"""),
    Program("inner_axes", "rowwise", NUMBERS, {"M": ("row", 5), "N": ("column", 18)}, """
        input x[2, M, N, 3] : {T}
        s[p, i] = max[j, k](x[p, i, j, k])
        y[p, i, j, k] = x[p, i, j, k] - s[p, i]
        output y"""),

    Program("turned", "permute", STORED, {"M": ("columns", 40), "N": ("rows", 36)}, """
        input x[M, N] : {T}
        y[j, i] = x[i, j]
        output y"""),
    Program("turned_inside", "permute", STORED, {"P": ("outer", 4), "M": ("columns", 24), "N": ("rows", 33)}, """
        input x[P, M, N] : {T}
        y[p, j, i] = x[p, i, j]
        output y"""),
    Program("turned_far", "permute", STORED, {"P": ("columns", 34), "M": ("outer", 3), "N": ("rows", 35)}, """
        input x[P, M, N] : {T}
        y[k, j, i] = x[i, j, k]
        output y"""),
    Program("several_axes", "permute", REAL, {"M": ("columns", 6), "N": ("rows", 8)}, """
        input x[M, 3, 5, N] : {T}
        y[l, j, i, k] = x[i, j, k, l]
        output y"""),
    Program("turned_and_scaled", "permute", REAL, {"M": ("columns", 32), "N": ("rows", 40)}, """
        input x[3, M, N] : {T}  input b[M] : {T}  input z[3, N, M] : {T}
        y[p, j, i] = relu(x[p, i, j]) * b[i] - z[p, j, i]
        output y : {T}"""),

    Program("batch_norm", "rowwise", REAL, {"M": ("row", 3), "N": ("column", 40)}, """
        input x[2, M, N] : {T}  input z[2, M, N] : {T}  input g[M] : {T}  input r[M] : {T}
        mean[c] = sum[n, j](x[n, c, j]) / (2*N)
        var[c] = sum[n, j](sq(x[n, c, j] - mean[c])) / (2*N)
        t[n, c, j] = (x[n, c, j] - mean[c]) * rsqrt(var[c] + 0.001) * g[c] + z[n, c, j]
        y[n, c, j] = relu(t[n, c, j])
        nvar[c] = 0.9 * r[c] + 0.1 * var[c]
        output y : {T}  output mean : {T}  output nvar : {T}"""),
    Program("normalised_bits", "rowwise", REAL, {"M": ("row", 3), "N": ("column", 12)}, """
        input x[2, M, 8*N] : {T}
        mean[c] = sum[n, j](x[n, c, j]) / (16*N)
        t[n, c, j] = x[n, c, j] - mean[c]
        m[n, c, j] = t[n, c, j] > 0
        y[n, c, j] = select(m[n, c, j], t[n, c, j], 0)
        output m : b1  output y : {T}"""),
    Program("norm_gradient", "rowwise", REAL, {"M": ("row", 3), "N": ("column", 40)}, """
        input dy[2, M, N] : {T}  input m[2, M, N] : b1  input x[2, M, N] : {T}  input mean[M] : {T}
        dz[n, c, j] = select(m[n, c, j], dy[n, c, j], 0)
        d[n, c, j] = x[n, c, j] - mean[c]
        b[c] = sum[n, j](dz[n, c, j])
        g[c] = sum[n, j](dz[n, c, j] * d[n, c, j])
        dx[n, c, j] = dz[n, c, j] - (b[c] + d[n, c, j] * g[c]) / (2*N)
        output dx : {T}  output dz : {T}  output b : {T}  output g : {T}"""),

    Program("channels_last", "channelwise", REAL, {"M": ("position", 70), "N": ("channel", 32)}, """
        input x[M, N] : {T}  input z[M, N] : {T}  input g[N] : {T}
        mean[c] = sum[i](x[i, c]) / M
        var[c] = sum[i](sq(x[i, c] - mean[c])) / M
        t[i, c] = (x[i, c] - mean[c]) * rsqrt(var[c] + 0.001) * g[c] + z[i, c]
        m[i, c] = t[i, c] > 0
        y[i, c] = select(m[i, c], t[i, c], 0)
        output y : {T}  output m : b1  output mean : {T}"""),
    Program("column_statistics", "channelwise", REAL, {"M": ("position", 70), "N": ("channel", 32)}, """
        input x[M, N] : {T}
        mean[c] = sum[i](x[i, c] + 2) / M
        var[c] = sum[i](sq(x[i, c] + 2 - mean[c])) / M
        output mean  output var"""),
    Program("column_gradient", "channelwise", REAL, {"M": ("position", 400), "N": ("channel", 32)}, """
        input dy[3, M, N] : {T}  input k[3, M, N] : b1  input x[3, M, N] : {T}  input mean[N] : {T}
        dz[n, i, c] = select(k[n, i, c], dy[n, i, c], 0)
        d[n, i, c] = x[n, i, c] - mean[c]
        b[c] = sum[n, i](dz[n, i, c])
        g[c] = sum[n, i](dz[n, i, c] * d[n, i, c])
        dx[n, i, c] = dz[n, i, c] - (b[c] + d[n, i, c] * g[c]) / (3*M)
        output dx : {T}  output dz : {T}  output b : {T}  output g : {T}"""),
    Program("columns_of_several_results", "channelwise", REAL, {"M": ("position", 2500), "N": ("channel", 40)}, """
        input x[2, M, N] : {T}  input g[N] : {T}
        mean[b, c] = sum[i](x[b, i, c]) / M
        var[b, c] = sum[i](sq(x[b, i, c] - mean[b, c])) / M
        top[b, c] = max[i](x[b, i, c])
        y[b, i, c] = (x[b, i, c] - mean[b, c]) * rsqrt(var[b, c] + 0.001) * g[c] - top[b, c]
        rest[b, c] = sum[i](y[b, i, c])
        z[b, i, c] = y[b, i, c] - rest[b, c] / M
        output z : {T}  output mean : {T}  output var"""),
    Program("column_softmax", "channelwise", REAL, {"M": ("position", 70), "N": ("channel", 33)}, """
        input x[3, M, N] : {T}
        m[b, j] = max[i](x[b, i, j])
        e[b, i, j] = exp(x[b, i, j] - m[b, j])
        s[b, j] = sum[i](e[b, i, j])
        y[b, i, j] = e[b, i, j] / s[b, j]
        output y : {T}"""),

    Program("attention", "attention", HALVES, {"M": ("row", 17), "N": ("column", 40)}, """
        input q[3, M, 24] : {T}  input k[3, N, 24] : {T}  input v[3, N, 40] : {T}
        s[b, i, j] = sum[d](q[b, i, d] * k[b, j, d] * 0.25)
        m[b, i] = max[j](s[b, i, j])
        e[b, i, j] = exp(s[b, i, j] - m[b, i])
        z[b, i] = sum[j](e[b, i, j])
        p[b, i, j] : {T} = e[b, i, j] / z[b, i]
        y[b, i, n] = sum[j](p[b, i, j] * v[b, j, n])
        l[b, i] = m[b, i] + log(z[b, i])
        output y : {T}  output l : f32"""),
    Program("attention_masked", "attention", HALVES, {"M": ("row", 18), "N": ("column", 35)}, """
        input q[M, 2, 3, 16] : {T}  input k[N, 2, 16] : {T}  input v[N, 2, 24] : {T}  input bias[6, M, N] : f32
        s[g, h, i, j] = sum[d](q[i, g, h, d] * k[j, g, d])
        t[g, h, i, j] = select(j <= i + 2 && i - j < 30, tanh(s[g, h, i, j] / 4) * 4 + bias[3*g + h, i, j], -inf)
        m[g, h, i] = max[j](t[g, h, i, j])
        e[g, h, i, j] : {T} = exp(t[g, h, i, j] - m[g, h, i])
        z[g, h, i] = sum[j](e[g, h, i, j])
        a[i, g, h, n] = sum[j](e[g, h, i, j] * v[j, g, n])
        y[i, g, h, n] = a[i, g, h, n] / z[g, h, i]
        output y : {T}"""),
    Program("attention_bulk", "attention_bulk", HALVES, {"M": ("row", 130), "N": ("column", 70)}, """
        input q[2, M, 72] : {T}  input k[2, N, 72] : {T}  input v[2, N, 64] : {T}  input bias[N] : f32
        s[b, i, j] = sum[d](q[b, i, d] * k[b, j, d])
        t[b, i, j] = s[b, i, j] * 0.125 + bias[j]
        m[b, i] = max[j](t[b, i, j])
        e[b, i, j] = exp(t[b, i, j] - m[b, i])
        z[b, i] = sum[j](e[b, i, j])
        p[b, i, j] : {T} = e[b, i, j] / z[b, i]
        y[b, i, n] = sum[j](p[b, i, j] * v[b, j, n])
        output y : {T}  output m : f32"""),
    Program("attention_bulk_parts", "attention_bulk", HALVES, {"M": ("row", 66), "N": ("column", 70)}, """
        input q[2, M, 24] : {T}  input k[2, N, 24] : {T}  input v[2, N, 40] : {T}
        s[b, i, j] = sum[d](q[b, i, d] * k[b, j, d])
        m[b, i] = max[j](s[b, i, j])
        e[b, i, j] = exp(s[b, i, j] - m[b, i])
        z[b, i] = sum[j](e[b, i, j])
        p[b, i, j] = e[b, i, j] / z[b, i]
        y[b, i, n] = sum[j](p[b, i, j] * v[b, j, n])
        output y : {T}"""),
    Program("attention_bulk_heads", "attention_bulk", HALVES, {"M": ("row", 131), "N": ("column", 150)}, """
        input q[M, 4, 64] : {T}  input k[N, 2, 64] : {T}  input v[2, N, 40] : {T}
        s[g, h:2, i, j] = sum[d](q[i, 2*g + h, d] * k[j, g, d])
        t[g, h:2, i, j] = select(j <= i + 9, s[g, h, i, j] * 0.125, -inf)
        m[g, h, i] = max[j](t[g, h, i, j])
        e[g, h, i, j] = exp(t[g, h, i, j] - m[g, h, i])
        z[g, h, i] = sum[j](e[g, h, i, j])
        p[g, h, i, j] : {T} = e[g, h, i, j] / z[g, h, i]
        y[i, g, h, n] = sum[j](p[g, h, i, j] * v[g, j, n])
        output y : {T}"""),
    Program("argmax", "loopnest", NUMBERS, {"M": ("point", 9), "N": ("step", 30)}, """
        input x[M, N] : {T}
        m[i] = max[j](x[i, j])
        y[i] = min[j](select(x[i, j] == m[i], j, N))
        output y : i32"""),
    Program("bits", "loopnest", REAL, {"M": ("point", 70), "N": ("step", 12)}, """
        input x[M, N] : {T}  input m[M, N] : b1
        t[i] = sum[j](select(m[i, j], x[i, j], 0))
        y[i] = t[i] > 0
        output y : b1"""),
    Program("generic_matmul", "loopnest", NUMBERS, {"M": ("point", 9), "N": ("step", 13)}, """
        input A[M, N] : {T}  input B[N, M] : {T}
        C[i, j] = sum[k](A[i, k] * B[k, j])
        output C"""),
]


TENSOR_CORES = ("gemm", "bulk", "toeplitz", "filter_gemm")


def options_of(program, dtype):
    """Without which the family is none of the program's."""
    return ["--math=tf32"] if program.family in TENSOR_CORES and dtype == "f32" else []


def source(program, dtype, sizes):
    """The text of a .te file."""
    params = "".join(f"param {name} = {value}\n" for name, value in sizes.items())
    lines = program.text.replace("{T}", dtype).strip().split("\n")
    return params + "\n".join(line.strip() for line in lines) + "\n"
