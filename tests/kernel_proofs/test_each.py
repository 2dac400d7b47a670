"""Of a kernel that keeps the state after each token, these states are proved, and never wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from changed_kernels import mutants
from proved_kernels import of_backend, scan_of

from dsfc.kernel_ir.interpret import KernelError, interpret, value_of
from dsfc.kernel_ir.ir import Access, Along, Carry, Kernel, Loop, Statement, Store, Symbol, minus
from dsfc.kernel_proofs.prove import Status, prove
from dsfc.kernels.step import steps

SIZES = {"B": 2, "CHANNELS": 3, "BLOCK": 2, "SIZE_h": 2, "SIZE_n": 3, "SIZE_p": 3}


def of_tokens(mixer: str) -> Kernel:
    return of_backend(mixer, 2)[0]


@pytest.mark.parametrize("mixer", ["retnet", "gla", "linear_attn", "deltanet", "rwkv7", "kda"])
def test_states_after_each_token_are_proved(mixer: str) -> None:
    verdict = prove(steps(scan_of(mixer), False), scan_of(mixer))
    assert verdict.status is Status.PROVED and verdict.tokens == 1
    assert "by induction over tokens" in verdict.text and verdict.kernel == "steps"


@pytest.mark.parametrize("mixer", ["rg_lru", "qlstm"])
def test_of_kernels_that_go_token_by_token_too(mixer: str) -> None:
    assert prove(of_tokens(mixer), scan_of(mixer)).status is Status.PROVED


def is_the_same(kernel: Kernel, other: Kernel) -> bool:
    """Whether two kernels write the same numbers, of one token and of some."""
    draw = np.random.default_rng(7)
    for length in (1, 4):
        sizes = {**SIZES, "L": length}
        arguments = {
            a.name: draw.normal(size=[value_of(s, sizes) for s in a.shape])
            for a in kernel.arguments
            if a.access is Access.READ
        }
        arguments = {n: -np.abs(x) / 4 if n == "g" else x / 2 for n, x in arguments.items()}
        want = interpret(kernel, arguments, sizes)
        try:
            got = interpret(other, arguments, sizes)
        except KernelError:
            return False
        if not all(np.allclose(got[n], want[n], 1e-9, 1e-9) for n in want):
            return False
    return True


@pytest.mark.parametrize("mixer", ["rg_lru", pytest.param("retnet", marks=pytest.mark.ci)])
def test_no_changed_kernel_that_computes_something_else_is_proved(mixer: str) -> None:
    kernel = of_tokens("rg_lru") if mixer == "rg_lru" else steps(scan_of(mixer), False)
    wrong = 0
    for what, mutant in mutants(kernel):
        status = prove(mutant, scan_of(mixer)).status
        same = is_the_same(kernel, mutant)
        assert same or status is not Status.PROVED, what
        assert status is not Status.REFUTED
        wrong += not same
    assert wrong >= 40


def loop_of(kernel: Kernel) -> Loop:
    (loop,) = (s for s in kernel.body if isinstance(s, Loop))
    return loop


def with_loop(kernel: Kernel, change: Callable[[Loop], Loop], *behind: Statement) -> Kernel:
    body = tuple(change(s) if isinstance(s, Loop) else s for s in kernel.body)
    return replace(kernel, body=(*body, *behind))


def with_store(kernel: Kernel, change: Callable[[Store], tuple[Statement, ...]]) -> Kernel:
    """The kernel whose store of the states is another one, or several."""

    def changed(loop: Loop) -> Loop:
        body: list[Statement] = []
        for s in loop.body:
            body += change(s) if isinstance(s, Store) and s.argument == "S_each" else (s,)
        return replace(loop, body=tuple(body))

    return with_loop(kernel, changed)


def shifted(store: Store) -> Store:
    """Each state one place earlier, the first behind the others."""
    return replace(store, at=(minus(minus(Symbol("L"), 1), store.at[0]), *store.at[1:]))


def by_itself(store: Store) -> Store:
    *at, block = store.at[1:]
    assert isinstance(block, Along)
    return replace(store, at=(store.at[0], *at, replace(block, start=0)))


FORGED: dict[str, Callable[[Kernel], Kernel]] = {
    "the state before the token": lambda k: with_store(
        k, lambda s: (replace(s, value=loop_of(k).carries[0].name),)
    ),
    "the first state": lambda k: with_store(
        k, lambda s: (replace(s, value=loop_of(k).carries[0].first),)
    ),
    "in another order": lambda k: with_store(k, lambda s: (shifted(s),)),
    "always at the first token": lambda k: with_store(
        k, lambda s: (replace(s, at=(0, *s.at[1:])),)
    ),
    "nowhere": lambda k: with_store(k, lambda _: ()),
    "twice": lambda k: with_store(k, lambda s: (s, s)),
    "each block at the first": lambda k: with_store(k, lambda s: (by_itself(s),)),
    "backwards": lambda k: with_loop(k, lambda x: replace(x, reverse=True)),
    "of one token less": lambda k: with_loop(k, lambda x: replace(x, count=minus(x.count, 1))),
    "carried on from the first": lambda k: with_loop(
        k, lambda x: replace(x, carries=(Carry(*_carried(x, next=x.carries[0].name)),))
    ),
    "behind the loop too": lambda k: with_loop(
        k, lambda x: x, *(replace(_store(k), at=(0, *_store(k).at[1:]), value=_last(k)),)
    ),
    "in another place than the last state": lambda k: replace(
        k, arguments=tuple(replace(a, shape=a.shape[1:]) if a.name == "S_each" else a
                           for a in k.arguments)
    ),
}  # fmt: skip
"""By what is kept: kernels that must not be proved."""


def _carried(loop: Loop, **changes: str) -> tuple[str, str, str, str]:
    carry = replace(loop.carries[0], **changes)
    return carry.name, carry.first, carry.next, carry.last


def _store(kernel: Kernel) -> Store:
    return next(s for s in loop_of(kernel).body if isinstance(s, Store) and s.argument == "S_each")


def _last(kernel: Kernel) -> str:
    return loop_of(kernel).carries[0].last


@pytest.mark.parametrize("what", FORGED)
@pytest.mark.parametrize("mixer", ["rg_lru", "retnet"])
def test_forged_kernels_are_not_proved(mixer: str, what: str) -> None:
    kernel = of_tokens("rg_lru") if mixer == "rg_lru" else steps(scan_of(mixer), False)
    assert prove(FORGED[what](kernel), scan_of(mixer)).status is Status.UNDECIDED


def test_the_kernel_of_one_scan_is_not_that_of_another() -> None:
    kernel = steps(scan_of("retnet"), False)
    for other in ("gla", "linear_attn", "deltanet"):
        assert prove(kernel, scan_of(other)).status is Status.UNDECIDED
