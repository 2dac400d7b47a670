"""Layers that have no spec, each with the line that says why; nothing here knows of dsfc."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch._higher_order_ops import associative_scan


def backwards(x: torch.Tensor):
    return x.flip(1).cumsum(1)  # refused: flip is no operation that a spec has


def over_all_tokens(x: torch.Tensor):
    return x - x.mean(1, keepdim=True)  # refused: a mean over tokens


def over_the_batch(x: torch.Tensor):
    return x - x.mean(0)  # refused: a mean over the batch


def random(x: torch.Tensor):
    return x * torch.rand_like(x)  # refused: rand_like is no operation that a spec has


class BatchNorm(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.norm = nn.BatchNorm1d(dim)

    def forward(self, x):
        return self.norm(x.mT).mT  # refused: batch_norm is no operation that a spec has


def ordered(x: torch.Tensor):
    best = x.topk(2, dim=-1)  # refused: topk is no operation that a spec has
    return best.values


def along_features(x: torch.Tensor):
    return x.cumsum(-1)  # refused: cumsum along an axis


class TanhRnn(nn.Module):
    def __init__(self, dim=6, hidden=4):
        super().__init__()
        self.hidden = hidden
        self.U = nn.Linear(hidden, hidden)
        self.W = nn.Linear(dim, hidden)

    def forward(self, x):
        h = x.new_zeros(x.size(0), self.hidden)
        out = []
        for t in range(x.size(1)):
            h = torch.tanh(self.U(h) + self.W(x[:, t]))  # refused: `h` is not linear in its past
            out.append(h)
        return torch.stack(out, 1)


class LookAhead(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.conv = nn.Conv1d(dim, dim, 3, padding=1, groups=dim)

    def forward(self, x):
        return self.conv(x.mT).mT  # refused: a convolution reads tokens to come


def chosen_by_values(x: torch.Tensor):
    mask = x > 0  # refused: gt is no operation that a spec has
    return torch.where(mask, x, 0.0)


def every_other_round(x: torch.Tensor):
    s = torch.zeros_like(x[:, 0])
    out = []
    for t in range(x.size(1)):
        s = 0.5 * s + x[:, t]  # refused: the rounds of a loop over tokens differ
        if t % 2:
            s = 0.25 * s
        out.append(s)
    return torch.stack(out, 1)


class StartGiven(nn.Module):
    def forward(self, x, h):
        out = []
        for t in range(x.size(1)):
            h = 0.9 * h + x[:, t]
            out.append(h)
        return torch.stack(out, 1)


class Embedded(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.table = nn.Parameter(torch.randn(32, dim))

    def forward(self, x):
        places = torch.arange(x.size(1)) % 3
        return x + self.table[places]  # refused: index is no operation that a spec has


class LongFilter(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.k = nn.Parameter(torch.randn(dim))

    def forward(self, x):
        n = 2 * x.size(1)
        f = torch.fft.rfft(x, n=n, dim=1)  # refused: fft_rfft is no operation that a spec has
        return torch.fft.irfft(f * self.k, n=n, dim=1)[:, : x.size(1)]


def every_second_token(x: torch.Tensor):
    even = x[:, ::2]  # refused: a step of 2 through a dimension
    return even.repeat_interleave(2, 1)


def rounded(x: torch.Tensor):
    return x * x.round()  # refused: round is no operation that a spec has


def halves(x: torch.Tensor):
    a, b = x.chunk(2, dim=-1)  # refused: a part of the entries of the input x
    return a * b


def three_tokens(x: torch.Tensor):
    s = torch.einsum("bid,bjd,bkd->bijk", x, x, x)  # refused: three tokens meet in one value
    return s.sum((2, 3))


def in_a_circle(x: torch.Tensor):
    return x + x.roll(1, dims=1)  # refused: roll is no operation that a spec has


def in_a_window(x: torch.Tensor):
    n = torch.arange(x.size(1))
    near = (n[:, None] - n[None, :]).abs() < 2
    s = x @ x.mT
    w = s.masked_fill(~near, 0)  # refused: masked_fill by a mask other than of earlier
    return w @ x


class Recurrent(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.rnn = nn.GRU(dim, 4, batch_first=True)

    def forward(self, x):
        return self.rnn(x)[0]  # refused: gru is no operation that a spec has


def joined(x: torch.Tensor):
    return torch.cat([x, x * x], -1)  # refused: values side by side along an axis


def the_last(x: torch.Tensor):
    return x[:, -1]


def later_keys(x: torch.Tensor):
    s = x @ x.mT
    return torch.softmax(s.tril(), -1) @ x  # refused: a softmax of scores that are masked with 0


def by_the_length(x: torch.Tensor):
    return x / x.size(1)


def pairs_as_they_are(x: torch.Tensor):
    return x @ x.mT  # refused: the output is a table of pairs of tokens


def ahead(x: torch.Tensor):
    return F.pad(x[:, 1:], (0, 0, 0, 1))  # refused: a value reads tokens to come


def asks_a_value(x: torch.Tensor):
    if x.sum() > 0:  # refused: torch.export refuses the module
        return x
    return -x


class AssociativeScan(nn.Module):
    def forward(self, x):
        def join(a, b):
            return a + b

        return associative_scan(join, x, dim=1, combine_mode="generic")  # refused: a step of 2
