"""Rules of functions that PyTorch may run in several ways: each is taken as one operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dsfc.rounding import attention, functions, products
from dsfc.rounding.enclosure import Enclosure, UnknownError, computed, each
from dsfc.rounding.operators import multiplied
from dsfc.rounding.rules import Rule, Seen, dtype_of, known
from dsfc.rounding.units import unit


def attended(
    seen: Seen,
    q: Any,  # noqa: ANN401 - as `scaled_dot_product_attention` takes them
    k: Any,  # noqa: ANN401
    v: Any,  # noqa: ANN401
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    **options: Any,  # noqa: ANN401
) -> Enclosure:
    """Returns PyTorch's fused attention, whichever kernel runs it."""
    if dropout_p or any(options.values()):
        raise UnknownError("no rule for attention with dropout or shared heads")
    if attn_mask is not None and attn_mask.dtype is not torch.bool:
        raise UnknownError("no rule for attention with weights in its mask")
    dtype = dtype_of(q, k, v)
    q, k, v = (known(x, dtype) for x in (q, k, v))
    turned = each(lambda part: part.transpose(-1, -2), k)
    inner = torch.promote_types(dtype, torch.float32)
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    dots = seen.rounds(products.product(q, turned, inner))
    score = multiplied(seen, dots, factor)
    a, b, e = score.parts
    # Factors may be put in front of queries and keys, which rounds up to four times more.
    error = e + computed(score) * 6 * unit(inner)
    rows, keys = score.shape[-2:]
    seen_keys = torch.ones(rows, keys, dtype=torch.bool)
    if is_causal:
        seen_keys = seen_keys.tril()
    if attn_mask is not None:
        seen_keys = seen_keys & attn_mask
    shape = (*torch.broadcast_shapes(score.shape[:-2], v.shape[:-2]), rows, keys)
    scores = Enclosure((a, b, error), inner)
    return seen.rounds(attention.mean(scores, seen_keys.expand(shape), v, dtype))


def normalized(
    seen: Seen,
    x: Any,  # noqa: ANN401 - as `normalize` takes it
    p: float = 2.0,
    dim: int = 1,
    eps: float = 1e-12,
    out: None = None,
) -> Enclosure:
    """Returns PyTorch's `normalize`: x over its length, or over a floor."""
    if p != 2 or out is not None or not isinstance(dim, int) or x.dtype.is_complex:
        raise UnknownError("no rule for this norm")
    x = known(x, x.dtype)
    squares = computed(x) ** 2 * x.shape[dim]
    return seen.rounds(functions.normalized(x, dim, eps, x.dtype), squares)


WHOLE: dict[Callable[..., Any], Rule] = {
    torch.nn.functional.scaled_dot_product_attention: attended,
    torch.nn.functional.normalize: normalized,
}
"""Rules of functions that PyTorch may run in several ways."""
