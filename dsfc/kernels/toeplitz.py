"""Kernels of convolutions for GPUs: all of a scan but its values is the same at every token.

    h_i = λ h_{i-1} + k v_i        y_i = Σ_n q h_i        of each channel by itself

A program has one channel and some rows of the batch, the columns of all its products. Inside
a chunk of T tokens the outputs are the product of the values and a Toeplitz matrix, whose entry
(s, s + l) is K_l = Σ_n q λ^l k; what came before is a state H, carried from chunk to chunk:

    y_t = Σ_s v_s K_(t-s) + Σ_n q H λ^(t+1)        H' = λ^T H + k Σ_s v_s λ^(T-1-s)

A program makes the matrix and the powers of λ itself, once: nothing with keys and channels lies in
memory but constants and states. Values lie there channel by channel, in chunks, PAD zeros before
the first token. The first state enters behind these, so that the first chunk reads it by powers of
its own, and all chunks are whole.

Each power is computed by itself: no error grows with the tokens. Of λ are given log |λ|, finite,
and the phase in two parts, the first of so few digits that its multiples are exact.

The gradient goes through the chunks in reverse, from the state that enters each one: the first of
each span of chunks is kept, the others are computed again. How outputs and values agree at each lag
is summed up over all chunks, and becomes a part of the gradients of q, k and λ at the end.

References: Gu et al. 2022 (S4D, section 3.3); Gupta, Mehta and Berant 2022 (DLR, eq. 7).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from dsfc.kernel_ir.build import KernelBuilder, LoopScope
from dsfc.kernel_ir.ir import Access, Int, Kernel, least, minus, plus, times
from dsfc.kernels.convolution import constants
from dsfc.kernels.operands import NAMES
from dsfc.kernels.planes import Kept, Planes, carried, inside, last
from dsfc.kernels.toeplitz_channel import KEYS, ROWS, Entry, ToeplitzChannel
from dsfc.plan.scan_ir import Adjoint, Scan

TURN_BITS = 14
"""Digits of a phase's first part behind the point: with 3 before it, 64 times it fits float32."""


def forward(scan: Scan, has_complex_values: bool, name: str = "forward") -> Kernel:
    """Returns the kernel that computes outputs and the last state.

    Args:
        scan: a convolution.
        has_complex_values: whether values are complex, and outputs with them.
        name: of the kernel.
    """
    k = KernelBuilder(name, "Outputs of one channel of a convolution, of some rows.")
    channel = ToeplitzChannel(k, scan, has_complex_values)
    channel.declare_values("o", Access.WRITE)
    channel.declare_state("S_last", Access.WRITE)
    is_complex = channel.is_complex

    # One table after the other: registers do not hold many at once.
    first, state = channel.first(), channel.state("S")
    outer = channel.read(first, state)
    every = channel.every()
    rest, matrix = channel.rest(every), channel.matrix(every)
    value = channel.values("v", 0)
    channel.store_values("o", 0, (channel.inner(matrix, value) + outer).named("y"))
    state = channel.advance(first.whole, rest, value, state)
    with k.loop("chunk", minus(channel.chunks, 1), reverse=False, **carried(H=state)) as loop:
        at, state = plus(loop.counter, 1), inside(loop, "H", is_complex)
        value = channel.values("v", at)
        out = channel.inner(matrix, value) + channel.read(every, state)
        channel.store_values("o", at, out.named("y"))
        loop.next(**carried(H=channel.advance(every.whole, rest, value, state)))
    channel.store_state("S_last", last(loop, "H", is_complex))
    return k.kernel()


def backward(
    scan: Scan, adjoint: Adjoint, has_complex_values: bool, name: str = "backward"
) -> Kernel:
    """Returns the kernel that computes all gradients; the caller conjugates what is given.

    The gradients of constants have an axis of parts of the batch behind that of groups, and the
    caller sums over it.

    Args:
        scan: a convolution.
        adjoint: its gradient, derived.
        has_complex_values: whether values are complex, and outputs with them.
        name: of the kernel.
    """
    return _Backward(scan, adjoint, has_complex_values, name).kernel()


class _Backward:
    """The backward kernel of one scan."""

    def __init__(self, scan: Scan, adjoint: Adjoint, has_complex_values: bool, name: str) -> None:
        k = self._k = KernelBuilder(name, "Gradients of one channel of a convolution.")
        channel = self._channel = ToeplitzChannel(k, scan, has_complex_values)
        self._constants = constants(adjoint)
        self._span, self._spans = k.dynamic("SPAN"), k.dynamic("SPANS")
        channel.declare_values("do")
        channel.declare_state("dS_last")
        for name in (*(f"d{NAMES[factor]}" for factor in self._constants), "dg"):
            channel.declare_sum(name)
        channel.declare_values("dv", Access.WRITE)
        channel.declare_state("dS", Access.WRITE)
        self._every = channel.every()
        self._rest = channel.rest(self._every)
        self._matrix = channel.matrix(self._every, back=True)

    def kernel(self) -> Kernel:
        """Returns the kernel."""
        k, channel = self._k, self._channel
        tile = ((KEYS, ROWS), channel.is_complex)
        starts, states = Kept(k, self._spans, {"start": tile}), Kept(k, self._span, {"state": tile})
        value, state = channel.values("v", 0), channel.state("S")
        state = channel.advance(channel.whole_of_first(), self._rest, value, state)
        with k.loop("span", self._spans, reverse=False, **carried(H=state)) as loop:
            start = self._inside(loop, "H")
            starts.store(loop.counter, start=start)
            loop.next(**carried(H=self._through(loop.counter, start)))
        sums = channel.zeros(self._constants) | {"dS": channel.state("dS_last")}
        with k.loop("span", self._spans, reverse=True, **carried(**sums)) as loop:
            self._through(loop.counter, starts.load(loop.counter)["start"], states)
            known = {name: self._inside(loop, name) for name in sums}
            with self._chunks(loop.counter, known, reverse=True) as (inner, at):
                known = {name: self._inside(inner, name) for name in sums}
                state = states.load(inner.counter)["state"]
                inner.next(**carried(**self._more(at, self._every, state, known)))
            loop.next(**carried(**{name: self._last(inner, name) for name in sums}))
        known = {name: self._last(loop, name) for name in sums}
        # Tables are made once more, so that no registers hold these all the time.
        known = self._more(0, channel.first(), channel.state("S"), known)
        channel.store_state("dS", known["dS"])
        for name, total in channel.totals(channel.every(), self._constants, known).items():
            channel.store_sum(name, total)
        return k.kernel()

    def _through(self, span: Int, state: Planes, states: Kept | None = None) -> Planes:
        """Returns the state that leaves a span; keeps those that enter its chunks."""
        with self._chunks(span, {"H": state}) as (loop, at):
            state = self._inside(loop, "H")
            if states is not None:
                states.store(loop.counter, state=state)
            value = self._channel.values("v", at)
            following = self._channel.advance(self._every.whole, self._rest, value, state)
            loop.next(**carried(H=following))
        return self._last(loop, "H")

    def _more(
        self, at: Int, entry: Entry, state: Planes, known: Mapping[str, Planes]
    ) -> dict[str, Planes]:
        """Stores the gradients of a chunk's values; returns the sums with what it adds to them."""
        channel = self._channel
        value, bar = channel.values("v", at), channel.values("do", at)
        gradient = channel.value_gradient(self._matrix, self._rest, bar, known["dS"])
        channel.store_values("dv", at, gradient)
        terms = {**known, "value": value, "bar": bar, "state": state}
        return channel.more(entry, self._rest, self._constants, terms)

    @contextmanager
    def _chunks(
        self, span: Int, first: Mapping[str, Planes], reverse: bool = False
    ) -> Iterator[tuple[LoopScope, Int]]:
        """Loops over the chunks of a span; the first of all chunks is of none."""
        before = times(span, self._span)
        count = least(self._span, minus(minus(self._channel.chunks, 1), before))
        with self._k.loop("chunk", count, reverse=reverse, **carried(**first)) as loop:
            yield loop, plus(plus(before, loop.counter), 1)

    def _inside(self, loop: LoopScope, name: str) -> Planes:
        return inside(loop, name, self._has_planes(name))

    def _last(self, loop: LoopScope, name: str) -> Planes:
        return last(loop, name, self._has_planes(name))

    def _has_planes(self, name: str) -> bool:
        return self._channel.is_wide if name == "pairs" else self._channel.is_complex
