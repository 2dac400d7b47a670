"""A kernel is uniform where each iteration and each program do one thing to their parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from proved_kernels import by_tokens, changed, gradient_in_chunks, in_chunks, scan_of

from dsfc.kernel_ir.ir import (
    Access,
    Along,
    Argument,
    Compare,
    Index,
    Kernel,
    Let,
    Load,
    Loop,
    Operation,
    Position,
    Store,
    Symbol,
    minus,
    plus,
)
from dsfc.kernel_proofs.exact import Undecided
from dsfc.kernel_proofs.uniform import uniform
from dsfc.kernels.step import step

CHUNK = 4
KERNEL, _ = in_chunks("gla", CHUNK)


def test_a_kernel_of_chunks_divides_time_heads_and_channels() -> None:
    shape = uniform(KERNEL)
    assert (shape.time, shape.chunk, shape.loops) == ("L", CHUNK, True)
    assert shape.parts == {"P": "PT"}
    assert shape.any_size == {"B", "H", "P"}
    assert set(shape.wholes) == {"N"}


def test_a_kernel_of_tokens_has_nothing_that_meets() -> None:
    shape = uniform(by_tokens("rg_lru")[0])
    assert (shape.chunk, shape.loops) == (1, True)
    assert shape.any_size == {"B", "CHANNELS"}


def test_a_kernel_of_one_token_has_no_loop() -> None:
    shape = uniform(step(scan_of("gla"), False))
    assert (shape.time, shape.chunk, shape.loops) == ("L", 1, False)


def loop_of(kernel: Kernel) -> Loop:
    (loop,) = (s for s in kernel.body if isinstance(s, Loop))
    return loop


def with_loop(function: Callable[[Loop], Loop]) -> Kernel:
    body = tuple(function(s) if isinstance(s, Loop) else s for s in KERNEL.body)
    return replace(KERNEL, body=body)


def at_time(function: Callable[[Along], Position], argument: str = "v") -> Kernel:
    def load(e: Operation) -> Operation:
        if isinstance(e, Load) and e.argument == argument:
            row, time, *rest = e.at
            assert isinstance(time, Along)
            return replace(e, at=(row, function(time), *rest))
        return e

    return changed(KERNEL, load)


def with_let(operation: Operation) -> Kernel:
    extra = Let("extra", operation)
    return with_loop(lambda s: replace(s, body=(extra, *s.body)))


def last_elsewhere() -> Kernel:
    *body, store = KERNEL.body
    assert isinstance(store, Store)
    row, head, *rest = store.at
    return replace(KERNEL, body=(*body, replace(store, at=(head, row, *rest))))


def carried_twice() -> Kernel:
    (carry,) = loop_of(KERNEL).carries
    other = replace(carry, name="again", last="again_last")
    return with_loop(lambda s: replace(s, carries=(carry, other)))


(_TOKENS, *_) = KERNEL.order
_COUNTER = Symbol(loop_of(KERNEL).counter)

NOT_UNIFORM: dict[str, tuple[Kernel, str]] = {
    "a gradient": (gradient_in_chunks("gla", CHUNK)[0], "more than one loop"),
    "a loop back in time": (
        with_loop(lambda s: replace(s, reverse=True)),
        "goes back in time",
    ),
    "a chunk too few": (
        with_loop(lambda s: replace(s, count=minus(s.count, 1))),
        "does not run once for each chunk",
    ),
    "the next token": (
        at_time(lambda p: replace(p, start=plus(p.start, 1))),
        "tokens other than those of its iteration",
    ),
    "a bound before the end": (
        at_time(lambda p: replace(p, bound=minus(p.bound, 1))),
        "tokens other than those of its iteration",
    ),
    "no bound of its own": (
        at_time(lambda p: replace(p, bound=plus(p.start, CHUNK))),
        "tokens other than those of its iteration",
    ),
    "the first chunk": (
        at_time(lambda p: replace(p, start=0)),
        "tokens other than those of its iteration",
    ),
    "the last state elsewhere": (last_elsewhere(), "in several ways"),
    "two carried tiles": (carried_twice(), "more than one tile"),
    "a place in the sequence": (
        with_let(Index(_TOKENS, _COUNTER)),
        "not the same everywhere",
    ),
    "a comparison with the length": (
        with_let(Compare("<", "extra", Symbol("L"))),
        "not the same everywhere",
    ),
    "scratch memory": (
        replace(
            KERNEL,
            arguments=(*KERNEL.arguments, Argument("kept", (Symbol("N"),), Access.SCRATCH)),
        ),
        "scratch memory",
    ),
}


@pytest.mark.parametrize("what", NOT_UNIFORM)
def test_a_kernel_is_not_uniform(what: str) -> None:
    kernel, why = NOT_UNIFORM[what]
    with pytest.raises(Undecided, match=why):
        uniform(kernel)


def test_the_first_state_may_be_read_by_the_first_iteration_alone() -> None:
    (carry,) = loop_of(KERNEL).carries
    (first,) = (s for s in KERNEL.body if isinstance(s, Let) and s.name == carry.first)
    again = with_let(first.operation)
    with pytest.raises(Undecided, match="reads the first state after its first iteration"):
        uniform(again)
