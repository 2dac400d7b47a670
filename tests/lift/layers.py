"""Layers as researchers write them, for tests of lifting; nothing here knows of dsfc."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch._higher_order_ops import scan


class LinearAttention(nn.Module):
    def __init__(self, d_model=12, heads=3):
        super().__init__()
        self.heads = heads
        self.W_q = nn.Linear(d_model, d_model, bias=False)
        self.W_k = nn.Linear(d_model, d_model, bias=False)
        self.W_v = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x):
        b, t, _ = x.shape
        q = self.W_q(x).view(b, t, self.heads, -1)
        k = self.W_k(x).view(b, t, self.heads, -1)
        v = self.W_v(x).view(b, t, self.heads, -1)
        kv = torch.einsum("bthn,bthp->bthnp", k, v).cumsum(dim=1)
        out = torch.einsum("bthn,bthnp->bthp", q, kv)
        return out.reshape(b, t, -1)


class NormalisedAttention(nn.Module):
    def __init__(self, d_model=12, heads=3):
        super().__init__()
        self.heads = heads
        self.W_q = nn.Linear(d_model, d_model, bias=False)
        self.W_k = nn.Linear(d_model, d_model, bias=False)
        self.W_v = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = [
            w(x).reshape(b, t, self.heads, d // self.heads).transpose(1, 2)
            for w in (self.W_q, self.W_k, self.W_v)
        ]
        q = F.elu(q) + 1
        k = F.elu(k) + 1
        kv = (k.unsqueeze(-1) * v.unsqueeze(-2)).cumsum(2)
        z = k.cumsum(2)
        num = (q.unsqueeze(-2) @ kv).squeeze(-2)
        den = (q * z).sum(-1, keepdim=True)
        return (num / den).transpose(1, 2).flatten(2)


class CausalSoftmax(nn.Module):
    def __init__(self, d_model=12, heads=3):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = q.view(B, T, self.heads, -1).transpose(1, 2)
        k = k.view(B, T, self.heads, -1).transpose(1, 2)
        v = v.view(B, T, self.heads, -1).transpose(1, 2)
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        mask = torch.tril(torch.ones(T, T, device=x.device))
        scores = scores.masked_fill(mask == 0, float("-inf"))
        weights = F.softmax(scores, dim=-1)
        o = (weights @ v).transpose(1, 2).contiguous().view(B, T, C)
        return self.out(o)


class SdpaAttention(nn.Module):
    def __init__(self, d_model=12, heads=3):
        super().__init__()
        self.heads = heads
        self.W_Q = nn.Linear(d_model, d_model, bias=False)
        self.W_K = nn.Linear(d_model, d_model, bias=False)
        self.W_V = nn.Linear(d_model, d_model, bias=False)

    def forward(self, u):
        B, T, C = u.shape
        q = self.W_Q(u).view(B, T, self.heads, -1).transpose(1, 2)
        k = self.W_K(u).view(B, T, self.heads, -1).transpose(1, 2)
        v = self.W_V(u).view(B, T, self.heads, -1).transpose(1, 2)
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return o.transpose(1, 2).reshape(B, T, C)


class BufferMaskAttention(nn.Module):
    def __init__(self, d_model=8, max_len=64):
        super().__init__()
        self.key = nn.Linear(d_model, 6, bias=False)
        self.query = nn.Linear(d_model, 6, bias=False)
        self.value = nn.Linear(d_model, 10, bias=False)
        self.register_buffer(
            "bias", torch.tril(torch.ones(max_len, max_len)).view(1, max_len, max_len)
        )

    def forward(self, x):
        T = x.size(1)
        att = self.query(x) @ self.key(x).mT * 6**-0.5
        att = att.masked_fill(self.bias[:, :T, :T] == 0, float("-inf"))
        return att.softmax(-1) @ self.value(x)


class RetNetParallel(nn.Module):
    def __init__(self, d_model=12, heads=3):
        super().__init__()
        self.heads = heads
        self.W_Q = nn.Linear(d_model, d_model, bias=False)
        self.W_K = nn.Linear(d_model, d_model, bias=False)
        self.W_V = nn.Linear(d_model, d_model, bias=False)
        self.register_buffer("gamma", 1 - 2.0 ** (-5 - torch.arange(heads)))

    def forward(self, x):
        B, T, _ = x.shape
        q = self.W_Q(x).view(B, T, self.heads, -1).transpose(1, 2)
        k = self.W_K(x).view(B, T, self.heads, -1).transpose(1, 2)
        v = self.W_V(x).view(B, T, self.heads, -1).transpose(1, 2)
        n = torch.arange(T)
        lag = (n[:, None] - n[None, :]).clamp(min=0)
        D = torch.tril(self.gamma[:, None, None] ** lag)
        s = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5 * D
        return (s @ v).transpose(1, 2).flatten(2)


class GatedLinearAttention(nn.Module):
    def __init__(self, d_model=12, heads=3, rank=5):
        super().__init__()
        self.heads = heads
        self.q_proj = nn.Linear(d_model, d_model, bias=False)
        self.k_proj = nn.Linear(d_model, d_model, bias=False)
        self.v_proj = nn.Linear(d_model, d_model, bias=False)
        self.gk_proj = nn.Sequential(nn.Linear(d_model, rank, bias=False), nn.Linear(rank, d_model))

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (f(x).view(B, T, self.heads, -1) for f in (self.q_proj, self.k_proj, self.v_proj))
        g = torch.sigmoid(self.gk_proj(x)).view(B, T, self.heads, -1) ** (1 / 16)
        S = x.new_zeros(B, self.heads, q.shape[-1], v.shape[-1])
        outs = []
        for t in range(T):
            S = g[:, t].unsqueeze(-1) * S + k[:, t].unsqueeze(-1) * v[:, t].unsqueeze(-2)
            outs.append(torch.einsum("bhn,bhnp->bhp", q[:, t], S))
        return torch.stack(outs, dim=1).reshape(B, T, D) * q.shape[-1] ** -0.5


class GatedDeltaNet(nn.Module):
    def __init__(self, d_model=12, heads=3):
        super().__init__()
        self.heads = heads
        self.W_q = nn.Linear(d_model, d_model, bias=False)
        self.W_k = nn.Linear(d_model, d_model, bias=False)
        self.W_v = nn.Linear(d_model, d_model, bias=False)
        self.b_proj = nn.Linear(d_model, heads, bias=False)
        self.a_proj = nn.Linear(d_model, heads, bias=False)
        self.A_log = nn.Parameter(torch.randn(heads))
        self.dt_bias = nn.Parameter(torch.randn(heads))

    def forward(self, x):
        B, T, _ = x.shape
        q = F.normalize(F.silu(self.W_q(x)).view(B, T, self.heads, -1), dim=-1)
        k = F.normalize(F.silu(self.W_k(x)).view(B, T, self.heads, -1), dim=-1)
        v = self.W_v(x).view(B, T, self.heads, -1)
        beta = self.b_proj(x).sigmoid()
        alpha = torch.exp(-self.A_log.exp() * F.softplus(self.a_proj(x) + self.dt_bias))
        S = torch.zeros(B, self.heads, q.size(-1), v.size(-1), dtype=x.dtype)
        o = torch.empty_like(v)
        for t in range(T):
            S = S * alpha[:, t, :, None, None]
            pred = (S * k[:, t, :, :, None]).sum(-2)
            delta = (v[:, t] - pred) * beta[:, t, :, None]
            S = S + k[:, t, :, :, None] * delta[:, :, None, :]
            o[:, t] = (S * q[:, t, :, :, None]).sum(-2)
        return (o * q.size(-1) ** -0.5).flatten(2)


class SelectiveScan(nn.Module):
    def __init__(self, d_inner=12, d_state=5, dt_rank=3):
        super().__init__()
        self.d_inner, self.d_state, self.dt_rank = d_inner, d_state, dt_rank
        self.x_proj = nn.Linear(d_inner, dt_rank + 2 * d_state, bias=False)
        self.dt_proj = nn.Linear(dt_rank, d_inner)
        self.A_log = nn.Parameter(
            torch.log(torch.arange(1, d_state + 1).double()).repeat(d_inner, 1)
        )
        self.D = nn.Parameter(torch.ones(d_inner))

    def forward(self, u):
        A = -torch.exp(self.A_log)
        dt, B, C = self.x_proj(u).split([self.dt_rank, self.d_state, self.d_state], dim=-1)
        delta = F.softplus(self.dt_proj(dt))
        deltaA = torch.exp(torch.einsum("bld,dn->bldn", delta, A))
        deltaB_u = torch.einsum("bld,bln,bld->bldn", delta, B, u)
        x = torch.zeros(u.size(0), self.d_inner, self.d_state, dtype=u.dtype)
        ys = []
        for i in range(u.size(1)):
            x = deltaA[:, i] * x + deltaB_u[:, i]
            ys.append(torch.einsum("bdn,bn->bd", x, C[:, i, :]))
        y = torch.stack(ys, dim=1)
        return y + u * self.D


class MinGRU(nn.Module):
    def __init__(self, dim=8, hidden=10):
        super().__init__()
        self.to_z = nn.Linear(dim, hidden)
        self.to_h = nn.Linear(dim, hidden)

    def forward(self, x):
        z = torch.sigmoid(self.to_z(x))
        h_tilde = self.to_h(x)
        h = torch.zeros_like(z[:, 0])
        hs = []
        for z_t, c_t in zip(z.unbind(1), h_tilde.unbind(1), strict=True):
            h = (1 - z_t) * h + z_t * c_t
            hs.append(h)
        return torch.stack(hs, 1)


class HGRN(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.i_proj = nn.Linear(dim, dim, bias=False)
        self.f_proj = nn.Linear(dim, dim, bias=False)
        self.g_proj = nn.Linear(dim, dim, bias=False)
        self.lower_bound = nn.Parameter(torch.rand(dim))

    def forward(self, x):
        lb = self.lower_bound.sigmoid()
        f = lb + (1 - lb) * torch.sigmoid(self.f_proj(x))
        i = F.silu(self.i_proj(x)) * (1 - f)
        h = None
        out = []
        for t in range(x.shape[1]):
            h = i[:, t] if h is None else f[:, t] * h + i[:, t]
            out.append(h.unsqueeze(1))
        return torch.cat(out, dim=1) * F.silu(self.g_proj(x))


class ShortConv(nn.Module):
    def __init__(self, dim=8, kernel=4):
        super().__init__()
        self.conv = nn.Conv1d(dim, dim, kernel, groups=dim, padding=kernel - 1)

    def forward(self, x):
        T = x.shape[1]
        return F.silu(self.conv(x.transpose(1, 2))[..., :T].transpose(1, 2))


class PaddedConv(nn.Module):
    def __init__(self, dim=6, out=9, kernel=3):
        super().__init__()
        self.kernel = kernel
        self.weight = nn.Parameter(torch.randn(out, dim, kernel))
        self.bias = nn.Parameter(torch.randn(out))

    def forward(self, x):
        x = F.pad(x.mT, (self.kernel - 1, 0))
        return F.conv1d(x, self.weight, self.bias).mT


class Ema(nn.Module):
    def __init__(self, dim=8, n=3):
        super().__init__()
        self.delta = nn.Parameter(torch.randn(dim, n))
        self.alpha = nn.Parameter(torch.randn(dim, n))
        self.beta = nn.Parameter(torch.randn(dim, n))
        self.gamma = nn.Parameter(torch.randn(dim, n))
        self.omega = nn.Parameter(torch.randn(dim))

    def forward(self, x):
        p = torch.sigmoid(self.delta)
        q = 1 - p * torch.sigmoid(self.alpha)
        h = 0
        ys = []
        for t in range(x.size(1)):
            h = q * h + p * self.beta * x[:, t, :, None]
            ys.append((h * self.gamma).sum(-1))
        y = torch.stack(ys, 1) * 3**-0.5
        return F.silu(y + x * self.omega)


class Lru(nn.Module):
    def __init__(self, d_model=6, d_state=5):
        super().__init__()
        self.nu = nn.Parameter(torch.randn(d_state))
        self.theta = nn.Parameter(torch.randn(d_state))
        self.gamma = nn.Parameter(torch.randn(d_state))
        self.B_re = nn.Parameter(torch.randn(d_state, d_model))
        self.B_im = nn.Parameter(torch.randn(d_state, d_model))
        self.C_re = nn.Parameter(torch.randn(d_model, d_state))
        self.C_im = nn.Parameter(torch.randn(d_model, d_state))
        self.D = nn.Parameter(torch.randn(d_model))

    def forward(self, u):
        lam = torch.exp(torch.complex(-self.nu.exp(), self.theta.exp()))
        Bu = u.to(torch.complex128) @ torch.complex(self.B_re, self.B_im).T * self.gamma.exp()
        C = torch.complex(self.C_re, self.C_im)
        x = torch.zeros(u.shape[0], lam.shape[0], dtype=Bu.dtype)
        states = []
        for t in range(u.shape[1]):
            x = lam * x + Bu[:, t]
            states.append(x)
        h = torch.stack(states, 1)
        return (h @ C.T).real + self.D * u


class Mlp(nn.Module):
    def __init__(self, dim=8, hidden=20):
        super().__init__()
        self.norm = nn.RMSNorm(dim, eps=1e-6)
        self.w1 = nn.Linear(dim, hidden)
        self.w2 = nn.Linear(dim, hidden)
        self.w3 = nn.Linear(hidden, dim)

    def forward(self, x):
        h = self.norm(x)
        return x + self.w3(F.silu(self.w1(h)) * self.w2(h))


class LayerNormGate(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.ln = nn.LayerNorm(dim)
        self.gate = nn.Linear(dim, dim)

    def forward(self, x):
        return F.gelu(self.ln(x)) * torch.tanh(self.gate(x))


class TokenShift(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.mu = nn.Parameter(torch.rand(dim))
        self.W = nn.Linear(dim, 6, bias=False)

    def forward(self, x):
        prev = F.pad(x, (0, 0, 1, -1))
        last = torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], dim=1)
        return self.W(x * self.mu + prev * (1 - self.mu)) + self.W(last)


class Ssd(nn.Module):
    """Mamba-2 in its quadratic form, with the segment sum of its paper."""

    def __init__(self, d_model=12, heads=3, d_state=4):
        super().__init__()
        self.heads = heads
        self.x_proj = nn.Linear(d_model, d_model, bias=False)
        self.B_proj = nn.Linear(d_model, d_state, bias=False)
        self.C_proj = nn.Linear(d_model, d_state, bias=False)
        self.dt_proj = nn.Linear(d_model, heads)
        self.A_log = nn.Parameter(torch.randn(heads))

    def forward(self, u):
        b, t, _ = u.shape
        x = self.x_proj(u).view(b, t, self.heads, -1)
        B, C = self.B_proj(u), self.C_proj(u)
        dt = F.softplus(self.dt_proj(u))
        a = -self.A_log.exp() * dt
        cs = a.cumsum(1).transpose(1, 2)
        seg = cs.unsqueeze(-1) - cs.unsqueeze(-2)
        mask = torch.ones(t, t, dtype=torch.bool).tril()
        L = seg.masked_fill(~mask, -torch.inf).exp()
        y = torch.einsum("bin,bjn,bhij,bjh,bjhp->bihp", C, B, L, dt, x)
        return y.flatten(2)


class LinearRnn(nn.Module):
    def __init__(self, dim=5, state=4):
        super().__init__()
        self.A = nn.Parameter(torch.randn(state, state) / 3)
        self.B = nn.Linear(dim, state)
        self.C = nn.Linear(state, dim)
        self.h0 = nn.Parameter(torch.randn(state))

    def forward(self, x):
        h = self.h0.expand(x.size(0), -1)
        out = []
        for t in range(x.size(1)):
            out.append(self.C(h))
            h = h @ self.A.T + self.B(x[:, t])
        return torch.stack(out, 1)


class RunningMean(nn.Module):
    def forward(self, x):
        count = torch.arange(1, x.size(1) + 1).view(1, -1, 1)
        return x.cumsum(1) / count


class Bidirectional(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.q = nn.Linear(dim, 4, bias=False)
        self.k = nn.Linear(dim, 4, bias=False)
        self.v = nn.Linear(dim, 3, bias=False)

    def forward(self, x):
        w = torch.softmax(self.q(x) @ self.k(x).transpose(1, 2), dim=-1)
        return w @ self.v(x)


class Alibi(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.q = nn.Linear(dim, 4, bias=False)
        self.k = nn.Linear(dim, 4, bias=False)
        self.v = nn.Linear(dim, 3, bias=False)
        self.slope = nn.Parameter(torch.rand(()))

    def forward(self, x):
        T = x.size(1)
        pos = torch.arange(T)
        bias = (pos[None, :] - pos[:, None]) * self.slope
        causal = torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
        s = self.q(x) @ self.k(x).transpose(1, 2) + bias + causal
        return torch.softmax(s, dim=-1) @ self.v(x)


class Scanned(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.gate = nn.Linear(dim, dim)

    def forward(self, x):
        f = torch.sigmoid(self.gate(x))

        def step(h, now):
            f_t, x_t = now
            h = f_t * h + (1 - f_t) * x_t
            return h, h * x_t

        _, out = scan(step, torch.zeros_like(x[:, 0]), (f, x), dim=1)
        return out


def decayed_sum(k: torch.Tensor, v: torch.Tensor, g: torch.Tensor):
    state = torch.zeros(k.shape[0], k.shape[2], k.shape[3], v.shape[3])
    out = []
    for t in range(k.shape[1]):
        state = g[:, t, :, None, None].sigmoid() * state + k[:, t, :, :, None] * v[:, t, :, None, :]
        out.append(state.sum(-2))
    return torch.stack(out, 1)
