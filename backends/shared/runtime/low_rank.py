"""States that each token rewrites: the WY form of a chunk's product of transitions.

Token I of a chunk takes e_I = b_I · S_{I-1} from the state and writes a_I ⊗ e_I. All e of a chunk
solve one unit triangular system: e = w · S + u, S the state that enters the chunk.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .chunks import _decays_around, _decays_between, _entering
from .keyed import _corners, _early, _halves, _late, _levels, _since, _until


def _solved(pairs: Tensor, x: Tensor, y: Tensor, *, upper: bool) -> tuple[Tensor, ...]:
    """Solves (1 - pairs) z = x and y, pairs strictly triangular."""
    sides = torch.cat((x, y), -1)
    solved = torch.linalg.solve_triangular(-pairs, sides, upper=upper, unitriangular=True)
    parts: tuple[Tensor, ...] = solved.split((x.shape[-1], y.shape[-1]), -1)
    return parts


def _move(a_tail: Tensor, w: Tensor, whole: Tensor) -> Tensor:
    """Returns the transition of a chunk, `[..., n, n]`."""
    move = a_tail.mT @ w
    move.diagonal(dim1=-2, dim2=-1).add_(whole.squeeze(-1))
    return move


def _compose_matrices(move: Tensor, drive: Tensor) -> Tensor:
    """Returns h_i = move_i h_{i-1} + drive_i along the first axis, as `_compose` does."""
    if len(drive) < 2:
        return drive
    even = len(drive) // 2 * 2
    pairs = drive[1:even:2] + move[1:even:2] @ drive[0:even:2]
    states = torch.empty_like(drive)
    states[0] = drive[0]
    states[1::2] = _compose_matrices(move[1:even:2] @ move[0:even:2], pairs)
    states[2::2] = drive[2::2] + move[2::2] @ states[1:-1:2]
    return states


def _carry_matrices(
    move: Tensor, drive: Tensor, S: Tensor, mode: str, *, reverse: bool = False
) -> tuple[Tensor, Tensor]:
    """Returns the states that enter the N chunks, stacked along axis 2, and the one that leaves.

    Args:
        move: the transition of each chunk, N along axis 2.
        drive: what each chunk adds to the state, N along axis 2; overwritten.
        S: the state that enters the first chunk (in reverse, the last).
        mode: `scan` composes all chunks in log N rounds, any other takes one after the other.
        reverse: whether to go from the last chunk to the first.
    """
    states, order = [S], slice(None, None, -1 if reverse else None)
    steps = list(zip(move.unbind(2), drive.unbind(2), strict=True))[order]
    if mode == "scan":
        moves, drives = (torch.stack(x) for x in zip(*steps, strict=True))
        drives[0] += moves[0] @ S
        states += _compose_matrices(moves, drives).unbind()
    else:
        for move_n, drive_n in steps:
            states.append(drive_n.add_(move_n @ states[-1]))
    return _entering(states, reverse)


def _reach(g: Tensor) -> tuple[Tensor, ...]:
    """Returns the decays of a chunk, ready to be multiplied with pairs or vectors of tokens.

    Returns:
        pair: from J to I, `[..., I, J]`, 0 for J > I.
        before: from J to I, I left out, 0 for J ≥ I.
        head: from the start through I.
        early: from the start to I, I left out.
        tail: from I, left out, to the end.
        whole: over the chunk.
    """
    pair, (head, tail) = _decays_between(g), _decays_around(g)
    before, early = F.pad(pair[..., :-1, :], (0, 0, 1, 0)), F.pad(head, (0, 0, 1, -1), value=1.0)
    return pair, before, head, early, tail, head[..., -1:, :]


def _reach_undecayed(x: Tensor) -> tuple[Tensor, ...]:
    """Returns what `_reach` gives where nothing decays: which pairs of a chunk meet, and ones."""
    pair, one = x.new_ones(x.shape[-2], x.shape[-2]).tril_(), x.new_ones(1, 1)
    return pair, pair.tril(-1), one, one, one, one


def _wy(
    k: Tensor, v: Tensor, a: Tensor, b: Tensor, before: Tensor, early: Tensor
) -> tuple[Tensor, ...]:
    """Returns the WY form of a chunk: e = w · S + u, what its tokens take from its state S.

    Token I takes b · state, to which earlier tokens J have added k ⊗ v and a ⊗ e: with the pairs
    b_k and b_a, (1 - b_a) e = b · S + b_k v.

    Returns:
        b_k, b_a: Σ_n b_I k_J, Σ_n b_I a_J, decayed, `[..., I, J]`, 0 for J ≥ I.
        w, u: `[..., C, n]`, `[..., C, p]`.
    """
    b_k, b_a = (b @ k.mT).mul_(before), (b @ a.mT).mul_(before)
    return b_k, b_a, *_solved(b_a, b * early, b_k @ v, upper=False)


# Two reads and two keys a token, where decays differ by key.


def _interleaved(x: Tensor, y: Tensor) -> Tensor:
    """Puts two vectors of each token one behind the other: `[..., C, m]` to `[..., 2 C, m]`."""
    return torch.stack((x, y), -2).flatten(-3, -2)


def _tokens(x: Tensor) -> Tensor:
    """The two vectors of each token: a view `[..., C, 2, m]`."""
    out: Tensor = x.unflatten(-2, (-1, 2))
    return out


def _advanced(x: Tensor) -> Tensor:
    """Gives each token what the next one has, `[..., C, m]`; 0 for the last."""
    return F.pad(x[..., 1:, :], (0, 0, 0, 1))


def _delayed(x: Tensor, first: Tensor | None = None) -> Tensor:
    """Gives each token what the one before has, and the first one `[..., 1, m]`, or 0."""
    x = x[..., :-1, :]
    return F.pad(x, (0, 0, 1, 0)) if first is None else torch.cat((first, x), -2)


def _own_pairs(pairs: Tensor) -> Tensor:
    """The pairs of a token with itself: a view `[..., 2, 2, C]`."""
    out: Tensor = pairs.unflatten(-1, (-1, 2)).unflatten(-3, (-1, 2)).diagonal(dim1=-4, dim2=-2)
    return out


def _scores_of_two(reads: Tensor, keys: Tensor, g: Tensor) -> tuple[Tensor, ...]:
    """Returns Σ_n read_I key_J · decay from J to I inside each chunk, 0 for J > I.

    Args:
        reads: two of each token, `[..., 2 C, n]`.
        keys: two of each token.
        g: log of the decay, `[..., C, n]`.

    Returns:
        scores: those, `[..., 2 C, 2 C]`.
        heads: `[..., 2 C, n]`, reads times the decay from the start of the chunk through I.
        tails: `[..., 2 C, n]`, keys times that from I, left out, to its end.
        whole: `[..., n, 1]`, the decay over the chunk.
    """
    decay = g.exp()
    heads, tails = reads * decay.repeat_interleave(2, -2), keys.clone()
    scores = reads.new_zeros(*reads.shape[:-1], reads.shape[-2])
    own = _tokens(reads) @ _tokens(keys).mT
    _own_pairs(scores).copy_(own.movedim(-3, -1))
    for late, early in _levels(heads, tails, g, decay):
        _corners(scores, late.shape[-2]).copy_((late @ early.mT).movedim(-3, -1))
    return scores, heads, tails, g.sum(-2).exp().unsqueeze(-1)


def _wy_of_two(
    scores: Tensor, heads: Tensor, b: Tensor, v: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns the WY form of a chunk, as `_wy` does, from the scores of both reads and keys.

    The state before a token is that after the one before.

    Returns:
        b_a: Σ_n b_I a_J, decayed, `[..., I, J]`, 0 for J ≥ I.
        b_early: `[..., C, n]`, b times the decay from the start of the chunk to I, left out.
        w, u: `[..., C, n]`, `[..., C, p]`.
    """
    later = _delayed(scores[..., 1::2, :])
    b_early = _delayed(heads[..., 1::2, :], b[..., :1, :])
    b_k, b_a = later[..., 0::2], later[..., 1::2]
    w, u = _solved(b_a, b_early, b_k @ v, upper=False)
    return b_a, b_early, w, u


def _keys_gradients(
    reads: Tensor,
    keys: Tensor,
    values: Tensor,
    cotangents: Tensor,
    past: Tensor,
    future: Tensor,
    g: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the gradients of reads, keys and log decays of a chunk.

    Args:
        reads: two of each token, `[..., 2 C, n]`.
        keys: so too; each adds key ⊗ value to the state.
        values: so too, `[..., 2 C, p]`.
        cotangents: of what each read gives, `[..., 2 C, p]`.
        past: the state that enters the chunk, `[..., n, p]`.
        future: the gradient of the one that leaves.
        g: log of the decay, `[..., C, n]`.
    """
    halves, head, tail = _halves(g)
    d_reads = cotangents @ past.mT * head.repeat_interleave(2, -2)
    d_keys = values @ future.mT * tail.repeat_interleave(2, -2)
    left, right = (_tokens(x).sum(-2) for x in (reads * d_reads, keys * d_keys))
    across = (past * future).sum(-1) * g.sum(-2).exp()
    dg = _until(left) + _since(right) + across.unsqueeze(-2)
    pairs = cotangents @ values.mT
    own = _own_pairs(pairs).movedim(-1, -3)
    _tokens(d_reads).add_(own @ _tokens(keys))
    _tokens(d_keys).add_(own.mT @ _tokens(reads))
    for to, since in halves:
        size = to.shape[-2]
        to, since = (x.repeat_interleave(2, -2) for x in (to, since))
        late, early = _late(reads, 2 * size), _early(keys, 2 * size)
        met = _corners(pairs, 2 * size).movedim(-1, -3)
        step = met @ (early * since) * to
        _late(d_reads, 2 * size).add_(step)
        passed = _until(_tokens(late * step).sum(-2))
        _late(dg, size).add_(passed)
        step = met.mT @ (late * to) * since
        _early(d_keys, 2 * size).add_(step)
        passed = _since(_tokens(early * step).sum(-2))
        _early(dg, size).add_(passed)
    return d_reads, d_keys, dg
