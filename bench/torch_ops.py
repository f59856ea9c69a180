"""What PyTorch runs for the cases whose expression is longer than a line.

`…_eager` is what a user writes; the other function of a pair is one formula for torch.compile, which fuses it, and,
called with float64 tensors, for the reference. Both give the outputs in the order of the program's `output`
statements; an eager one may give fewer (PyTorch keeps them inside).
"""
import torch
import torch.nn.functional as F

EPS = 1e-5
MOMENTUM = 0.1


def wide(x):
    """The type that sums are kept in."""
    return x if x.dtype == torch.float64 else x.float()


def along(c, dims):
    """(C) -> (1, C, 1, 1), or (C) for NHWC: to be used beside a tensor whose other dimensions are `dims`."""
    return c[None, :, None, None] if 1 not in dims else c


def nchw(x):
    """A view of an NHWC tensor as PyTorch's channels_last."""
    return x.permute(0, 3, 1, 2)


def nhwc(outputs):
    """Gives back what `nchw` was applied to: four-dimensional tensors as NHWC."""
    if isinstance(outputs, tuple):
        return tuple(nhwc(x) for x in outputs)
    return outputs.permute(0, 2, 3, 1) if outputs.dim() == 4 else outputs


# ---- rows

def softmax_grad(y, dy):
    y32, dy32 = wide(y), wide(dy)
    return (y32 * (dy32 - (y32 * dy32).sum(-1, keepdim=True))).to(y.dtype)


def causal_softmax(x, scale):
    q, n = x.shape[-2:]
    i = torch.arange(q, device=x.device)[:, None]
    j = torch.arange(n, device=x.device)[None, :]
    return torch.softmax(torch.where(j <= i + (n - q), wide(x) * scale, -torch.inf), -1).to(x.dtype)


def layer_norm(x, gamma, beta):
    x32 = wide(x)
    var, mean = torch.var_mean(x32, -1, correction=0, keepdim=True)
    return ((x32 - mean) * torch.rsqrt(var + EPS) * gamma + beta).to(x.dtype)


def adaptive_layer_norm(x, scale, shift):
    x32 = wide(x)
    var, mean = torch.var_mean(x32, -1, correction=0, keepdim=True)
    return ((x32 - mean) * torch.rsqrt(var + 1e-6) * (1 + wide(scale)[:, None]) + wide(shift)[:, None]).to(x.dtype)


def rms_norm(x, gamma):
    x32 = wide(x)
    return (x32 * torch.rsqrt((x32 * x32).mean(-1, keepdim=True) + EPS) * gamma).to(x.dtype)


# ---- pointwise

def add_relu_eager(x, z):
    t = x + z
    return torch.relu(t), t > 0


def add_relu(x, z):
    t = wide(x) + wide(z)
    return torch.relu(t).to(x.dtype), t > 0


def add_relu_backward(dy, mask):
    """PyTorch gives both branches the same tensor; the program writes two."""
    dx = torch.where(mask, dy, 0)
    return dx, dx.clone()


def gelu_chain(x, z, gamma, beta):
    return (F.gelu(wide(x) * gamma + beta, approximate="tanh") + wide(z)).to(x.dtype)


# ---- batch normalisation; PyTorch has no bit masks, so a mask is a byte an element there

def normalise(x, gamma, beta, rmean, rvar, dims):
    """(normalised x in the wide type, mean, 1 / std, new running mean, new running variance)"""
    x32 = wide(x)
    count = x32.numel() // gamma.numel()
    var, mean = torch.var_mean(x32, dims, correction=0)
    inv = torch.rsqrt(var + EPS)
    t = (x32 - along(mean, dims)) * along(inv * gamma, dims) + along(beta, dims)
    nmean = (1 - MOMENTUM) * rmean + MOMENTUM * mean
    nvar = (1 - MOMENTUM) * rvar + MOMENTUM * var * (count / (count - 1))
    return t, mean, inv, nmean, nvar


def bn_relu_eager(x, gamma, beta, rmean, rvar):
    return F.relu(F.batch_norm(x, rmean, rvar, gamma, beta, True, MOMENTUM, EPS), inplace=True)


def bn_relu(x, gamma, beta, rmean, rvar, dims):
    t, *statistics = normalise(x, gamma, beta, rmean, rvar, dims)
    return torch.relu(t).to(x.dtype), *statistics


def bn_add_relu_eager(x, z, gamma, beta, rmean, rvar):
    y = F.relu(F.batch_norm(x, rmean, rvar, gamma, beta, True, MOMENTUM, EPS).add_(z), inplace=True)
    return y, y > 0


def bn_add_relu(x, z, gamma, beta, rmean, rvar, dims):
    t, *statistics = normalise(x, gamma, beta, rmean, rvar, dims)
    t = t + wide(z)
    return torch.relu(t).to(x.dtype), t > 0, *statistics


def bn_backward_eager(dy, mask, x, mean, inv, gamma):
    dz = torch.where(mask, dy, 0)
    dx, dgamma, dbeta = torch.ops.aten.native_batch_norm_backward(
        dz, x, gamma, None, None, mean, inv, True, EPS, [True, True, True])
    return dx, dz, dgamma, dbeta


def bn_backward(dy, mask, x, mean, inv, gamma, dims):
    dz = torch.where(mask, wide(dy), 0)
    xhat = (wide(x) - along(mean, dims)) * along(inv, dims)
    dbeta, dgamma = dz.sum(dims), (dz * xhat).sum(dims)
    count = x.numel() // gamma.numel()
    dx = along(gamma * inv, dims) * (dz - (along(dbeta, dims) + xhat * along(dgamma, dims)) / count)
    return dx.to(x.dtype), dz.to(dy.dtype), dgamma, dbeta


def bn_inference(x, gamma, beta, rmean, rvar):
    dims = (0, 2, 3)
    scale = gamma * torch.rsqrt(rvar + EPS)
    return ((wide(x) - along(rmean, dims)) * along(scale, dims) + along(beta, dims)).to(x.dtype)


# ---- depthwise convolutions of odd squares, padded as for outputs as large as the image; NCHW, filters (C, K, K)

def depthwise(x, w, stride=1):
    return F.conv2d(x, w[:, None], stride=stride, padding=w.shape[-1] // 2, groups=len(w))


def depthwise_cudnn(x, w, stride=1):
    both = [w.shape[-1] // 2] * 2
    return torch.cudnn_convolution(x, w[:, None], both, [stride] * 2, [1, 1], len(w), True, False, False)


def branches(x, w, u, large, small, bias, convolve=depthwise):
    """A large filter and a small one beside it, each with its scale."""
    a, b = convolve(x, w), convolve(x, u)
    return F.relu(large[:, None, None] * a + small[:, None, None] * b + bias[:, None, None])


def depthwise_gradient(x, w, dy, which, stride=1):
    """`which`: 0: for x, 1: for w. The tensor that is not asked for tells a shape only."""
    both, strides, wanted = [w.shape[-1] // 2] * 2, [stride] * 2, [which == 0, which == 1, False]
    found = torch.ops.aten.convolution_backward(dy, x, w[:, None], None, strides, both, [1, 1], False, [0, 0], len(w), wanted)
    return found[0] if which == 0 else found[1][:, 0]


def spectrum(x, size):
    return torch.fft.rfft2(x, (size, size))


def lags(product, size, first, count):
    """Of a spectrum: what lies at `first` and behind it, round the end."""
    return torch.fft.irfft2(product, (size, size)).roll((-first, -first), (-2, -1))[..., :count, :count].contiguous()


def spectral_size(h, k):
    return 1 << (h + k - 2).bit_length()


def depthwise_spectral(x, w):
    """The three by FFT: no sum over taps or pixels takes part in the reference, and float64 is as fast as it is exact."""
    h, k = x.shape[-1], w.shape[-1]
    size = spectral_size(h, k)
    return lags(spectrum(x, size) * spectrum(w, size).conj(), size, -(k // 2), h)


def depthwise_data_spectral(dy, w):
    h, k = dy.shape[-1], w.shape[-1]
    size = spectral_size(h, k)
    return lags(spectrum(dy, size) * spectrum(w, size), size, k // 2, h)


def depthwise_filter_spectral(x, dy, k):
    size = spectral_size(x.shape[-1], k)
    return lags((spectrum(dy, size).conj() * spectrum(x, size)).sum(0), size, -(k // 2), k)


# ---- convolutions in every direction: bench/convolutions.py

def image_view(conv, x):
    """(N, C, positions), as PyTorch has it, of an image in the case's layout."""
    count = len(conv["size"])
    if conv["layout"] == "NCHW":
        return x.flatten(1, -1 - count)
    return x.flatten(1 + count).movedim(-1, 1)


def filter_view(conv, w):
    """(filters of all groups, C of one, taps)."""
    filters, channels, taps = conv["groups"] * conv["filters"], conv["channels"], conv["taps"]
    if conv["layout"] == "NCHW":
        return w.reshape(filters, channels, *taps)
    return w.reshape(filters, *taps, channels).movedim(-1, 1)


def without_benchmark(x):
    """Of float64, where nobody waits for the fastest."""
    torch.backends.cudnn.benchmark = x.dtype != torch.float64


def shape_only(shape, like):
    """Of what is not read, elements in the order of those of `like`."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    form = formats.get(len(shape), torch.contiguous_format) if not like.is_contiguous() else torch.contiguous_format
    return torch.empty(shape, dtype=like.dtype, device=like.device, memory_format=form)


def dims_of(conv):
    count = len(conv["size"])
    return ([conv["stride"]] * count, [conv["pad"]] * count, [conv["dilation"]] * count, False, [0] * count, conv["groups"])


def back(conv, y):
    return y if conv["layout"] == "NCHW" else y.movedim(1, -1)


def joined(conv, x, w, b, z):
    """cuDNN has one kernel for a convolution, a bias, a residual and ReLU, though not of float64."""
    x, w, z, dims = image_view(conv, x), filter_view(conv, w), image_view(conv, z), dims_of(conv)
    if x.dtype == torch.float64:
        return back(conv, torch.relu(torch.ops.aten.convolution(x, w, b, *dims) + z))
    return back(conv, torch.cudnn_convolution_add_relu(x, w, z, 1.0, b, *dims[:3], conv["groups"]))


def convolution(conv, x=None, dy=None, w=None, b=None, z=None):
    """What is not given is what is computed: the output, or the gradient of the image or of the filter."""
    without_benchmark(w if x is None else x)
    if z is not None:
        return joined(conv, x, w, b, z)
    if dy is None:
        return back(conv, torch.ops.aten.convolution(image_view(conv, x), filter_view(conv, w), None, *dims_of(conv)))
    dy, mask = image_view(conv, dy), [x is None, w is None, False]
    if x is None:
        w = filter_view(conv, w)
        x = shape_only((conv["images"], conv["groups"] * conv["channels"], *conv["size"]), dy)
    else:
        x = image_view(conv, x)
        w = shape_only((conv["groups"] * conv["filters"], conv["channels"], *conv["taps"]), dy)
    return back(conv, torch.ops.aten.convolution_backward(dy, x, w, None, *dims_of(conv), mask)[0 if mask[0] else 1])


# ---- others

def cross_entropy_eager(x, label):
    return F.cross_entropy(x.float(), label.clamp_min(-1).long(), ignore_index=-1, reduction="none")


def cross_entropy(x, label):
    x32 = wide(x)
    at_label = x32.gather(1, label.clamp_min(0).long()[:, None])[:, 0]
    return torch.where(label < 0, 0, torch.logsumexp(x32, 1) - at_label)


def quantise(x):
    scale = wide(x).abs().amax(1) / 127
    return torch.floor(wide(x) / scale[:, None] + 0.5).to(torch.int8), scale


def lstm_cell(g, c):
    enter, forget, cell, leave = g.unbind(1)
    cn = torch.sigmoid(forget) * c + torch.sigmoid(enter) * torch.tanh(cell)
    return cn, torch.sigmoid(leave) * torch.tanh(cn)


# ---- attention

def window_mask(rows, columns, width):
    """What flex_attention is told of the blocks that it may pass over."""
    from torch.nn.attention.flex_attention import create_block_mask
    return create_block_mask(lambda b, h, i, j: (j <= i) & (i - j < width), None, None, rows, columns)


def score_terms(kind, s, bias, limit):
    """Scores of all rows and columns, as the program has them."""
    i = torch.arange(s.shape[-2], device=s.device)[:, None]
    j = torch.arange(s.shape[-1], device=s.device)[None, :]
    return {"plain": lambda: s, "bias": lambda: s + bias, "soft cap": lambda: limit * torch.tanh(s / limit),
            "causal": lambda: torch.where(j <= i, s, -torch.inf),
            "window": lambda: torch.where((j <= i) & (i - j < limit), s, -torch.inf)}[kind]()


def reference_attention(kind, q, k, v, bias, limit):
    """Head by head: a tensor of all scores in float64 would not fit."""
    out = torch.empty_like(q)
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            of_k = h * k.shape[1] // q.shape[1]
            s = q[b, h] @ k[b, of_k].T * q.shape[-1] ** -0.5
            out[b, h] = torch.softmax(score_terms(kind, s, bias[h] if bias is not None else None, limit), -1) @ v[b, of_k]
    return out


def flex(kind, q, k, v, bias, mask, limit):
    from torch.nn.attention.flex_attention import flex_attention
    terms = {"bias": lambda s, b, h, i, j: s + bias[h, i, j], "soft cap": lambda s, b, h, i, j: limit * torch.tanh(s / limit)}
    return flex_attention(q, k, v, score_mod=terms.get(kind), block_mask=mask, enable_gqa=q.shape[1] != k.shape[1])


def attention(how, kind, q, k, v, bias=None, mask=None, limit=None):
    """By one of PyTorch's back ends, flex_attention, or, with float64, as it is defined; `limit`: columns of a window, a cap of scores.
    Heads of a group have a dimension of their own."""
    shape, k_heads = q.shape, k.shape[1]
    q = q.reshape(shape[0], -1, *shape[-2:])
    if how == "reference":
        return reference_attention(kind, q, k, v, bias, limit).reshape(shape)
    if how == "flex":
        return flex(kind, q, k, v, bias, mask, limit)
    if kind in ("window", "soft cap"):
        raise ValueError("has no such argument")
    from torch.nn.attention import SDPBackend, sdpa_kernel
    backend = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
               "efficient": SDPBackend.EFFICIENT_ATTENTION}[how]
    with sdpa_kernel(backend):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias[None] if kind == "bias" else None, is_causal=kind == "causal",
                                              enable_gqa=k_heads != q.shape[1])


def bert(x, heads, count, tensors):
    """Layers of so many tensors each, in the order of attention.py."""
    def split(y):
        return y.unflatten(2, (heads, -1)).transpose(1, 2)
    for n in range(0, len(tensors), count):
        wq, wk, wv, wo, w1, w2, bq, bk, bv, bo, b1, b2, gamma1, gamma2, beta1, beta2 = tensors[n:n + count]
        y = F.scaled_dot_product_attention(split(x @ wq + bq), split(x @ wk + bk), split(x @ wv + bv))
        x = F.layer_norm(y.transpose(1, 2).flatten(2) @ wo + bo + x, x.shape[-1:], gamma1, beta1, 1e-12)
        x = F.layer_norm(F.gelu(x @ w1 + b1) @ w2 + b2 + x, x.shape[-1:], gamma2, beta2, 1e-12)
    return x
