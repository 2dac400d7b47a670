"""What is additive along keys: sums over keys that meet neither each other nor a key."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dsfc.kernel_ir.build import KernelBuilder, Tile
from dsfc.kernel_ir.ir import Access, Axis, Kernel, Part, Triangle
from dsfc.kernel_proofs.exact import Undecided
from dsfc.kernel_proofs.slices import check_additive

N, T, S, P = Axis("n", "N"), Axis("t", 4), Axis("s", 4), Axis("p", 3)
LOWER = Triangle(T, S, Part.STRICTLY_LOWER)

Compute = Callable[[KernelBuilder, Tile, Tile, Tile], Tile]


def kernel_of(compute: Compute) -> Kernel:
    """A kernel of q[t, n], k[t, n] and v[t, p]."""
    k = KernelBuilder("sums", "Some sums over keys.")
    n = k.static("N")
    at_keys = (k.all(T), k.all(N))
    given = [k.load(k.argument(name, (4, n)), *at_keys) for name in ("q", "k")]
    v = k.load(k.argument("v", (4, 3)), k.all(T), k.all(P))
    value = compute(k, *given, v)
    axes = [a for a in (T, S, N, P) if a in value.type.axes]
    shape = tuple(n if a == N else int(a.size) for a in axes)
    o = k.argument("o", shape, Access.WRITE)
    k.store(o, *(k.all(a) for a in axes), value=value)
    return k.kernel()


def pairs(k: KernelBuilder, q: Tile, keys: Tile) -> Tile:
    return k.dot(q, k.rename(keys, T, S), N, out=LOWER)


ADDITIVE: dict[str, Compute] = {
    "what each key has": lambda k, q, y, v: q * y + q,
    "a sum over keys": lambda k, q, y, v: k.sum(q * y, N),
    "a product of keys": lambda k, q, y, v: pairs(k, q, y),
    "a sum of sums": lambda k, q, y, v: k.sum(q, N) - k.sum(y, N),
    "a sum times what is free": lambda k, q, y, v: k.sum(q, N) * v,
    "sums over tokens of sums": lambda k, q, y, v: k.dot(pairs(k, q, y), k.rename(v, T, S), S),
    "a function of each key": lambda k, q, y, v: k.sum(k.map("tanh", q) * y, N),
    "running products of keys": lambda k, q, y, v: k.cumulate("product", q, T),
    "what a system is solved for": lambda k, q, y, v: (
        k.dot(k.inverse_unit(pairs(k, q, y), T, S), k.rename(v, T, S), S) * k.sum(q, N)
    ),
}
NOT_ADDITIVE: dict[str, Compute] = {
    "a product of sums": lambda k, q, y, v: k.sum(q, N) * k.sum(y, N),
    "a square of a sum": lambda k, q, y, v: (lambda s: s * s)(k.sum(q, N)),
    "a sum that meets keys": lambda k, q, y, v: q * k.sum(y, N),
    "a sum added to keys": lambda k, q, y, v: q + k.sum(y, N),
    "a function of a sum": lambda k, q, y, v: k.map("tanh", k.sum(q, N)),
    "a running product of sums": lambda k, q, y, v: k.cumulate("product", k.sum(q, N), T),
    "a product over keys": lambda k, q, y, v: k.product(q, N),
    "a running sum over keys": lambda k, q, y, v: k.cumulate("sum", q, N),
    "a product of matrices of sums": lambda k, q, y, v: k.dot(
        pairs(k, q, y), k.rename(k.sum(q, N), T, S), S
    ),
    "an inverse": lambda k, q, y, v: k.inverse_unit(pairs(k, q, y), T, S),
    "twice an inverse": lambda k, q, y, v: k.inverse_unit(pairs(k, q, y), T, S) * 2.0,
}


@pytest.mark.parametrize("what", ADDITIVE)
def test_a_kernel_is_additive(what: str) -> None:
    check_additive(kernel_of(ADDITIVE[what]), N)


@pytest.mark.parametrize("what", NOT_ADDITIVE)
def test_a_kernel_is_not_additive(what: str) -> None:
    with pytest.raises(Undecided):
        check_additive(kernel_of(NOT_ADDITIVE[what]), N)
