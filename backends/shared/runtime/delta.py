"""States of which each token rewrites what its key finds: the delta rule in chunks.

Token I of a chunk finds f_I = k_I · λ_I S_{I-1} and writes k_I ⊗ e_I, e_I = v_I + r_I f_I. All e of
a chunk solve one unit triangular system: e = w · S + u, S the state that enters the chunk.
"""

from __future__ import annotations

from torch import Tensor

from .keyed import _corners, _early, _halves, _late, _since, _until
from .low_rank import _solved


def _written(k_k: Tensor, k_head: Tensor, v: Tensor, r: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns what the tokens of a chunk write, e = w · S + u: (1 - r k_k) e = v + r k_head · S.

    Args:
        k_k: Σ_n k_I k_J, decayed, `[..., I, J]`; what is not below the diagonal becomes 0.
        k_head: `[..., C, n]`, k times the decay from the start of the chunk through I.
        v: `[..., C, p]`.
        r: `[..., C]`.

    Returns:
        k_k: that below the diagonal.
        w, u: `[..., C, n]`, `[..., C, p]`.
    """
    k_k, r = k_k.tril_(-1), r.unsqueeze(-1)
    w, u = _solved(r * k_k, r * k_head, v, upper=False)
    return k_k, w, u


def _gradients_of_written(k_k: Tensor, k_tail: Tensor, x: Tensor, r: Tensor) -> tuple[Tensor, ...]:
    """Solves (1 - r k_k)ᵀ z = k_tail and x: z · dS + z' is the gradient of what is written."""
    return _solved((r.unsqueeze(-1) * k_k).mT, k_tail, x, upper=True)


def _delta_gradients(
    reads: Tensor,
    k: Tensor,
    e: Tensor,
    cotangents: Tensor,
    past: Tensor,
    future: Tensor,
    g: Tensor,
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Returns the gradients of q, k and log decays of a chunk, where decays differ by key.

    Args:
        reads: q and k, `[2, ..., C, n]`; the second reads what is written before its token.
        k: `[..., C, n]`.
        e: what is written, `[..., C, p]`.
        cotangents: of what both reads give, `[2, ..., C, p]`.
        past: the state that enters the chunk, `[..., n, p]`.
        future: the gradient of the one that leaves.
        g: log of the decay, `[..., C, n]`.
    """
    halves, head, tail = _halves(g)
    d_reads, d_key = cotangents @ past.mT * head, e @ future.mT * tail
    across = (past * future).sum(-1) * g.sum(-2).exp()
    dg = _until((reads * d_reads).sum(0)) + _since(k * d_key) + across.unsqueeze(-2)
    pairs = cotangents @ e.mT
    own = pairs[0].diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
    d_reads[0] += own * k
    d_key += own * reads[0]
    for to, since in halves:
        size = to.shape[-2]
        late, early = _late(reads, size), _early(k, size)
        met = _corners(pairs, size).movedim(-1, -3)
        step = met @ (early * since) * to
        _late(d_reads, size).add_(step)
        _late(dg, size).add_(_until((late * step).sum(0)))
        step = (met.mT @ (late * to)).sum(0) * since
        _early(d_key, size).add_(step)
        _early(dg, size).add_(_since(early * step))
    return (d_reads[0], d_key + d_reads[1]), dg
