"""Summaries of segments: Λ̄ and b̄ of h → Λ̄ h + b̄, from what the operator of a scan takes.

The operator itself gives b̄. Λ̄ is a product or a power of the Λ of tokens, or what the operator
makes of unit vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .convolution import _power, _stopped
from .dense import _dense_power, _dense_stopped
from .numbers import _double


@dataclass(frozen=True)
class _Law:
    """How segments of a recurrence compose: states are multiplied and added in a semiring.

    Attributes:
        product: Λ̄ and a state → Λ̄ h.
        total: the sum of two states.
        zero: what a state is that nothing has reached.
        one: Λ̄ → the Λ̄ of no token.
    """

    product: Callable[[Tensor, Tensor], Tensor]
    total: Callable[[Tensor, Tensor], Tensor]
    zero: float
    one: Callable[[Tensor], Tensor]


def _identities(whole: Tensor) -> Tensor:
    """Returns unit matrices of the shape of Λ̄."""
    return torch.eye(whole.shape[-1], dtype=whole.dtype, device=whole.device).expand_as(whole)


def _mapped(whole: Tensor, state: Tensor) -> Tensor:
    """Returns Λ̄ h of vectors h."""
    return (whole @ state.unsqueeze(-1)).squeeze(-1)


_DIAGONAL = _Law(torch.mul, torch.add, 0.0, torch.ones_like)
_KEYS = _Law(torch.matmul, torch.add, 0.0, _identities)
_FULL = _Law(_mapped, torch.add, 0.0, _identities)
_LARGEST = _Law(torch.add, torch.maximum, -(2.0**101), torch.zeros_like)
_Summary = tuple[_Law, Callable[[Tensor], tuple[Tensor, Tensor]]]
"""A law, and the function from the state before a segment to Λ̄ `[B, ...]` and the state after."""


def _decayed(
    run: Callable[..., Any], *tensors: Any, log: Callable[[], Tensor] | None, options: Any
) -> _Summary:
    """Returns the summary for a diagonal Λ: Λ̄ is the product of the decays of all tokens.

    Args:
        run: the operator; the last of its results is the state after the last token.
        tensors: what it takes ahead of the state.
        log: gives log λ of every token, 0 where it does not count; None for λ = 1.
        options: what the operator takes behind the state.
    """

    def through(S: Tensor) -> tuple[Tensor, Tensor]:
        whole = S.new_ones(S.shape[0]) if log is None else torch.exp(log().sum(1))
        return _spread_out(whole, S), run(*tensors, S, *options)[-1]

    return _DIAGONAL, through


def _spread_out(whole: Tensor, S: Tensor) -> Tensor:
    """Returns Λ̄ of leading axes of a state with as many axes as the state."""
    return whole.reshape(*whole.shape, *(1,) * (S.ndim - whole.ndim))


def _driven_by_none(
    run: Callable[..., Any], *tensors: Any, drive: tuple[int, ...], options: Any
) -> _Summary:
    """Returns the summary for a diagonal Λ that the operator computes: it runs once more.

    Λ̄ is what becomes of a state of ones where nothing drives it.

    Args:
        run: the operator; the second of its results is the state after the last token.
        tensors: what it takes ahead of the state.
        drive: numbers of those without which nothing drives it.
        options: what the operator takes behind the state.
    """

    def through(S: Tensor) -> tuple[Tensor, Tensor]:
        silent = [torch.zeros_like(x) if at in drive else x for at, x in enumerate(tensors)]
        whole = run(*silent, torch.ones_like(S), *options)[1]
        return whole, run(*tensors, S, *options)[1]

    return _DIAGONAL, through


def _rewritten(run: Callable[..., Any], *tensors: Any, value: int, options: Any) -> _Summary:
    """Returns the summary for a Λ that rewrites keys: Λ̄ is what becomes of their unit vectors."""
    *before, v = tensors[: value + 1]
    after = tensors[value + 1 :]

    def through(S: Tensor) -> tuple[Tensor, Tensor]:
        n, p = S.shape[-2:]
        units = torch.eye(n, dtype=S.dtype, device=S.device).expand(*S.shape[:-1], n)
        last = run(*before, F.pad(v, (0, n)), *after, torch.cat((S, units), -1), *options)[1]
        return last[..., p:], last[..., :p]

    return _KEYS, through


def _convolved(
    run: Callable[..., Any], *tensors: Any, lengths: Tensor | None, modes: Any, options: Any
) -> _Summary:
    """Returns the summary for a diagonal Λ of all tokens: Λ̄ is a power of it."""
    q, k, v, g = tensors

    def through(S: Tensor) -> tuple[Tensor, Tensor]:
        whole = _to_the_end(g, v.shape[1], lengths)
        if lengths is None:
            return whole, run(*tensors, S, *options)[1]
        return whole, _stopped(run, q, k, v, g, S, lengths, options[1], modes)

    return _DIAGONAL, through


def _stopping(
    run: Callable[..., Any],
    *tensors: Any,
    log: Callable[[], Tensor],
    lengths: Tensor | None,
    options: Any,
) -> _Summary:
    """As `_convolved`, of an operator that stops where a row ends.

    Args:
        run: the operator; the last of its results is the state after the last token.
        tensors: what it takes ahead of the state, the first of them `[B, L, ...]`.
        log: gives log λ, `[1, C, N]`.
        lengths: `[B]`, how many tokens of each row count; all if None.
        options: what the operator takes behind the state.
    """

    def through(S: Tensor) -> tuple[Tensor, Tensor]:
        whole = _to_the_end(log(), tensors[0].shape[1], lengths)
        return whole, run(*tensors, S, *options)[-1]

    return _DIAGONAL, through


def _to_the_end(g: Tensor, length: int, lengths: Tensor | None) -> Tensor:
    """Returns the power of λ of all tokens that count."""
    if lengths is None:
        return _power(g, torch.tensor(length, device=g.device))
    return _power(g, lengths[:, None, None])


def _mixed(
    run: Callable[..., Any], *tensors: Any, lengths: Tensor | None, modes: Any, options: Any
) -> _Summary:
    """Returns the summary for a full Λ of all tokens: Λ̄ is a power of it."""
    v, a = tensors[-2:]

    def through(S: Tensor) -> tuple[Tensor, Tensor]:
        if lengths is None:
            return _dense_power(a, v.shape[1]), run(*tensors, S, *options)[1]
        step = _double(a)
        whole = _identities(step.expand(S.shape[0], *step.shape[1:]))
        for bit in range(v.shape[1].bit_length()):
            odd = ((lengths >> bit) & 1).bool()[:, None, None, None]
            whole, step = torch.where(odd, step @ whole, whole), step @ step
        last = _dense_stopped(run, (*tensors, S), lengths, options[1], modes)
        return whole.to(a.dtype), last

    return _FULL, through


def _largest(
    run: Callable[..., Any], weight: Tensor, decay: Tensor | None, counts: Tensor | None
) -> _Summary:
    """Returns the summary of a running maximum: Λ̄ is the sum of the logarithms of decays."""
    if counts is not None:
        seen = counts.reshape(*counts.shape, *(1,) * (weight.ndim - 2))
        weight = torch.where(seen, weight, _LARGEST.zero)
        decay = None if decay is None else torch.where(seen, decay, 0)

    def through(S: Tensor) -> tuple[Tensor, Tensor]:
        whole = torch.zeros_like(S) if decay is None else decay.sum(1)
        return whole, run(weight, S, decay)[1]

    return _LARGEST, through
