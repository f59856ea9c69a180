"""An independent reference for every example: PyTorch in float64, none of it derived from rollerc.

A function per example, of the same name: it takes the inputs (reals already widened to float64, integers and b1 as
int32 and bool) and gives the outputs in the order of the file's `output` statements. Runs on any torch device.
"""
from typing import NamedTuple, Optional

import torch
import torch.nn.functional as F

EPS = 1e-5
MOMENTUM = 0.1


class Expected(NamedTuple):
    value: torch.Tensor                      # float64; bool for b1; integers as they are
    terms: int = 1                           # how many terms the longest sum behind an element has
    margin: Optional[torch.Tensor] = None    # b1 and integers: relative distance to the nearest other answer
    slack: Optional[torch.Tensor] = None     # what intermediates that are rounded to a narrow type may add to the error


def reference(name, inputs):
    """[Expected, …] of one example."""
    wide = [x.double() if x.is_floating_point() else x if x.dtype == torch.bool else x.int() for x in inputs]
    outputs = EXAMPLES[name](*wide)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    return [x if isinstance(x, Expected) else Expected(x) for x in outputs]


EXAMPLES = {}


def example(function):
    EXAMPLES[function.__name__] = function
    return function


def quantised(exact):
    """To the nearest i8."""
    to_tie = ((exact - exact.floor()) - 0.5).abs()         # where rounding to the nearest integer jumps
    return Expected((exact + 0.5).floor().clamp(-128, 127).int(), 1, to_tie / (1 + exact.abs()))


# ---- matrix products

@example
def matmul(A, B):
    return Expected(torch.mm(A, B), A.shape[1])


@example
def matmul_bias_gelu(X, W, b):
    return Expected(F.gelu(torch.addmm(b, X, W)), X.shape[1])


@example
def matmul_batched(A, V):
    return Expected(torch.bmm(A, V), A.shape[2])


@example
def matmul_transposed(A, B):
    return Expected(torch.mm(A.t(), B.t()), A.shape[0])


@example
def matmul_i8(A, W):
    return F.linear(A.double(), W.double()).int()          # exact: far below 2^53


@example
def matmul_bias_relu_add(X, W, b, R):
    return Expected(torch.addmm(b, X, W).relu() + R, X.shape[1])


@example
def matmul_quantised(A, W, s, t):
    return quantised(F.linear(A.double(), W.double()) * s[:, None] * t)


@example
def covariance(X):
    return Expected(torch.cov(X.t()), X.shape[0])


# ---- convolutions

def conv(x, w, terms=None, **how):
    return Expected(F.conv2d(x, w, **how), terms or w[0].numel())


@example
def conv2d_3x3(x, w):
    return conv(x, w, padding=1)


@example
def conv2d_1x1(x, w):
    return conv(x, w[:, :, None, None])


@example
def conv2d_7x7_s2(x, w, b):
    return Expected(F.relu(F.conv2d(x, w, b, stride=2, padding=3)), w[0].numel())


@example
def conv2d_grouped(x, w):
    groups, filters = w.shape[:2]
    y = F.conv2d(x.flatten(1, 2), w.flatten(0, 1), padding=1, groups=groups)
    return Expected(y.unflatten(1, (groups, filters)), w[0, 0].numel())


@example
def conv2d_dilated(x, w):
    return conv(x, w, padding=2, dilation=2)


@example
def conv2d_nhwc(x, w):
    y = F.conv2d(x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2), padding=1)
    return Expected(y.permute(0, 2, 3, 1), w[0].numel())


@example
def conv2d_filter(x, dy):
    x, dy = x.permute(3, 0, 1, 2), dy.permute(3, 0, 1, 2)   # a convolution whose channels are images
    dw = F.conv2d(x, dy, padding=1)
    return Expected(dw.permute(1, 2, 3, 0), dy[0].numel())


@example
def conv2d_s2_data(dy, w):
    n, h, v, _ = dy.shape
    dx = F.conv_transpose2d(dy.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2), stride=2, padding=1, output_padding=1)
    return Expected(dx.permute(0, 2, 3, 1).reshape(n, h, 2, v, 2, -1), w[..., 0].numel())


@example
def depthwise_3x3(x, w):
    return conv(x, w[:, None], padding=1, groups=w.shape[0])


@example
def depthwise_7x7_nhwc(x, w, b):
    y = F.conv2d(x.permute(0, 3, 1, 2), w.permute(2, 0, 1)[:, None], b, padding=3, groups=b.numel())
    return Expected(y.permute(0, 2, 3, 1), w[..., 0].numel())


@example
def depthwise_31x31(x, w):
    return conv(x, w[:, None], padding=15, groups=w.shape[0])


@example
def depthwise_31x31_data(dy, w):
    dx = F.conv_transpose2d(dy, w[:, None], padding=15, groups=w.shape[0])
    return Expected(dx, w[0].numel())


@example
def depthwise_31x31_filter(x, dy):
    """Channels and images change places: the gradient is the filter of one long sum for each channel."""
    n, c, h, w = x.shape
    dw = F.conv2d(x.transpose(0, 1).reshape(1, c * n, h, w), dy.transpose(0, 1).reshape(c * n, 1, h, w), padding=15, groups=c * n)
    return Expected(dw.view(c, n, 31, 31).sum(1), dy[:, 0].numel())


def branches(x, w, u, large, small, bias):
    a = F.conv2d(x, w[:, None], padding=15, groups=w.shape[0])
    b = F.conv2d(x, u[:, None], padding=2, groups=w.shape[0])
    y = torch.relu(large[:, None, None] * a + small[:, None, None] * b + bias[:, None, None])
    return Expected(y, w[0].numel())


@example
def depthwise_31x31_branch(x, w, u, large, small, bias):
    return branches(x, w, u, large, small, bias)


@example
def depthwise_31x31_merged(x, w, u, large, small, bias):
    return branches(x, w, u, large, small, bias)


@example
def depthwise_3x3_s2_filter(x, dy):
    n, c, h, v = dy.shape
    rows = x.transpose(0, 1).reshape(1, c * n, 2 * h, 2 * v)
    dw = F.conv2d(rows, dy.transpose(0, 1).reshape(c * n, 1, h, v), padding=1, dilation=2, groups=c * n)
    return Expected(dw[..., :3, :3].reshape(c, n, 3, 3).sum(1), n * h * v)


@example
def depthwise_3x3_s2_data(dy, w):
    n, c, h, v = dy.shape
    dx = F.conv_transpose2d(dy, w[:, None], stride=2, padding=1, output_padding=1, groups=c)
    return Expected(dx.view(n, c, h, 2, v, 2), w[0].numel())


# ---- permutations

@example
def permute_0213(x):
    return x.permute(0, 2, 1, 3)


@example
def permute_021(x):
    return x.permute(0, 2, 1)


@example
def permute_210(x):
    return x.permute(2, 1, 0)


@example
def permute_nchw_nhwc(x):
    return x.permute(0, 2, 3, 1)


# ---- softmax and its relatives

@example
def softmax(x):
    return Expected(torch.softmax(x, -1), x.shape[-1])


@example
def log_softmax(x):
    return Expected(torch.log_softmax(x, -1), x.shape[-1])


@example
def softmax_grad(y, dy):
    return Expected(torch._softmax_backward_data(dy, y, -1, torch.float64), y.shape[-1])


@example
def masked_softmax(x):
    future = torch.ones(x.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
    return Expected(torch.softmax((x / 8).masked_fill(future, -torch.inf), -1), x.shape[-1])


@example
def attention_mask(x, mask):
    return Expected(torch.softmax(x + mask[:, None, None], -1), x.shape[-1])


def attend(v, scores, share_type):
    """softmax(scores) v, of [.., T, D], the error that shares of that type may make, each off by a unit in the last place, and the
    logarithm of each row's sum."""
    total = torch.logsumexp(scores, -1)
    shares = torch.exp(scores - total[..., None])
    return shares @ v, torch.finfo(share_type).eps * (shares @ v.abs()), total


@example
def attention(q, k, v):
    y, slack, _ = attend(v, q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, torch.float16)
    return Expected(y, k.shape[-2] + q.shape[-1], slack=slack)


@example
def attention_decoding(q, k, v):
    y, slack, _ = attend(v, q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, torch.float16)
    return Expected(y, k.shape[-2] + q.shape[-1], slack=slack)


@example
def attention_causal(q, k, v, slope):
    q, k, v = q.permute(0, 2, 3, 1, 4), k.permute(0, 2, 1, 3)[:, :, None], v.permute(0, 2, 1, 3)[:, :, None]
    at = torch.arange(q.shape[-2], device=q.device)
    scores = q @ k.transpose(-1, -2) * 0.125 + slope[:, :, None, None] * (at - at[:, None])
    y, slack, total = attend(v, scores.masked_fill(at > at[:, None], -torch.inf), torch.bfloat16)
    terms = k.shape[-2] + q.shape[-1]
    return [Expected(y.permute(0, 3, 1, 2, 4), terms, slack=slack.permute(0, 3, 1, 2, 4)), Expected(total, terms)]


@example
def cross_entropy(x, label):
    target = torch.where(label < 0, -1, label).long()
    return Expected(F.cross_entropy(x, target, reduction="none", ignore_index=-1), x.shape[-1])


# ---- normalisation

@example
def layer_norm(x, gamma, beta):
    return Expected(F.layer_norm(x, gamma.shape, gamma, beta, EPS), x.shape[-1])


@example
def adaptive_layer_norm(x, scale, shift):
    return Expected(F.layer_norm(x, x.shape[-1:], eps=1e-6) * (1 + scale[:, None]) + shift[:, None], x.shape[-1])


@example
def rms_norm(x, gamma):
    return Expected(F.rms_norm(x, gamma.shape, gamma, EPS), x.shape[-1])


@example
def bn_inference(x, gamma, beta, rmean, rvar):
    return F.batch_norm(x, rmean, rvar.abs(), gamma, beta, False, MOMENTUM, EPS)


def bn_training(x, gamma, beta, rmean, rvar):
    """y, mean, inv; updates rmean and rvar in place."""
    return torch.native_batch_norm(x, gamma, beta, rmean, rvar, True, MOMENTUM, EPS)


@example
def bn_relu_training(x, gamma, beta):
    y, mean, inv = bn_training(x, gamma, beta, torch.zeros_like(gamma), torch.ones_like(gamma))
    return [Expected(t, x.numel() // gamma.numel()) for t in (F.relu(y), mean, inv)]


@example
def bn_add_relu_mask(x, z, gamma, beta, rmean, rvar):
    nmean, nvar = rmean.clone(), rvar.clone()
    y, mean, inv = bn_training(x, gamma, beta, nmean, nvar)
    t, terms = y + z, x.numel() // gamma.numel()
    outputs = [Expected(v, terms) for v in (F.relu(t), mean, inv, nmean, nvar)]
    return outputs[:1] + [Expected(t > 0, terms, t.abs())] + outputs[1:]


@example
def bn_backward_mask(dy, mask, x, mean, inv, gamma):
    dz = dy.masked_fill(~mask, 0)
    dx, dgamma, dbeta = torch.ops.aten.native_batch_norm_backward(
        dz, x, gamma, None, None, mean, inv, True, EPS, [True, True, True])
    terms = x.numel() // gamma.numel()
    return [Expected(dx, terms), Expected(dz), Expected(dgamma, terms), Expected(dbeta, terms)]


def channels_first(*tensors):
    return [t.permute(0, 3, 1, 2) for t in tensors]


def channels_last(outputs):
    """Values and margins of images, the channels moved to the end."""
    def move(field):
        is_image = isinstance(field, torch.Tensor) and field.dim() == 4
        return field.permute(0, 2, 3, 1) if is_image else field
    return [Expected(*map(move, output)) for output in outputs]


@example
def bn_add_relu_mask_nhwc(x, z, *channels):
    return channels_last(bn_add_relu_mask(*channels_first(x, z), *channels))


@example
def bn_backward_mask_nhwc(dy, mask, x, *channels):
    return channels_last(bn_backward_mask(*channels_first(dy, mask, x), *channels))


@example
def group_norm(x, gamma, beta):
    n, g, c, h, w = x.shape
    y = F.group_norm(x.reshape(n, g * c, h, w), g, gamma.flatten(), beta.flatten(), EPS)
    return Expected(y.reshape(x.shape), c * h * w)


@example
def instance_norm(x, gamma, beta):
    y = F.instance_norm(x, weight=gamma, bias=beta, eps=EPS)
    return Expected(F.relu(y), x.shape[2] * x.shape[3])


# ---- reductions and pooling

@example
def reduce_rows(x):
    return Expected(x.sum(1), x.shape[1])


@example
def reduce_columns(x):
    return Expected(x.sum(0), x.shape[0])


@example
def reduce_all(x):
    return Expected(torch.linalg.vector_norm(x), x.numel())


@example
def argmax(x):
    return x.max(dim=1, keepdim=True).values.eq(x).int().argmax(dim=1).int()   # the first one, if there are several


@example
def max_pool(x):
    return F.max_pool2d(x, 3, stride=2, padding=1)


@example
def avg_pool(x):
    return Expected(F.avg_pool2d(x, 2), 4)


# ---- pointwise

@example
def relu(x):
    return F.relu(x)


@example
def elementwise_chain(x, z, gamma, beta):
    return F.gelu(torch.addcmul(beta, x, gamma), approximate="tanh") + z


@example
def lstm_cell(g, c):
    enter, forget, cell, leave = g.unbind(1)
    cn = torch.sigmoid(forget) * c + torch.sigmoid(enter) * torch.tanh(cell)
    return [cn, torch.sigmoid(leave) * torch.tanh(cn)]


@example
def mask_compare(x, t):
    return x > t                                           # f32 against f32: no rounding, so no margin


@example
def quantise_i8(x):
    scale = x.abs().amax(1) / 127
    return [quantised(x / scale[:, None]), scale]
