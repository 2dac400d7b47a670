"""Kernels of convolutions: all of a scan but its values is the same at every token.

    h_i = λ h_{i-1} + k v_i        y_i = Σ_n q h_i        of each channel by itself

A program has one channel and some rows of the batch. Inside a chunk of T tokens the outputs are
products with one Toeplitz matrix, whose entry (s, s + l) is K_l = Σ_n q λ^l k; what came before is
a state H:

    y_t = Σ_s v_s K_(t-s) + Σ_n q H λ^(t+1)        H' = λ^T H + k Σ_s v_s λ^(T-1-s)

The powers of λ are given, each computed by itself: no error grows with the tokens. The tokens that
fill no chunk come first, with tables that end earlier. The gradient goes through the chunks in
reverse, from the state that enters each one; what it multiplies is read off the plan's adjoint,
role by role. How outputs and values agree at each lag is summed up over all chunks, and becomes a
part of the gradients of q, k and λ at the end.

A program has some channels and some rows of the batch. Channels lie side by side in memory, so it
turns the values of one span of chunks, and then takes its channels one by one: all chunks of a span
are the rows of the same products, and only the states go from chunk to chunk.

References: Gu et al. 2022 (S4D, section 3.3); Gupta, Mehta and Berant 2022 (DLR, eq. 7).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from dsfc.expr.tree import Field
from dsfc.kernel_ir.build import KernelBuilder, LoopScope
from dsfc.kernel_ir.ir import (
    Access,
    Along,
    Argument,
    Axis,
    Int,
    Kernel,
    Storage,
    Symbol,
    ceil_div,
    floor_div,
    least,
    minus,
    plus,
    times,
)
from dsfc.kernels.channel import Channel, Layout, Rows, Stretch, Turned
from dsfc.kernels.operands import NAMES
from dsfc.kernels.planes import (
    Kept,
    Planes,
    argument,
    carried,
    inside,
    last,
    load,
    plane_names,
    store,
    zeros,
)
from dsfc.plan.scan_ir import Adjoint, Factor, Form, RoleScan, Scan

_T = Symbol("T")

CHUNK = 32
"""Tokens of a chunk that callers ask for: more cost more inside than they save outside."""

MOST_KEYS = 64
"""Numbers of a state, beyond which a spectrum takes less time than these kernels."""

ROWS = 32
"""Rows of the batch, times chunks of a span: as many as a cache holds of some channels."""


def has_convolution(scan: Scan) -> bool:
    """Whether a scan has these kernels."""
    return scan.form is Form.CONVOLUTION


def forward(scan: Scan, has_complex_values: bool, name: str = "forward") -> Kernel:
    """Returns the kernel that computes outputs and the last state.

    Args:
        scan: a convolution.
        has_complex_values: whether values are complex, and outputs with them.
        name: of the kernel.
    """
    return _Convolution(scan, has_complex_values, name, False).forward()


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
    return _Convolution(scan, has_complex_values, name, True).backward(adjoint)


def constants(adjoint: Adjoint) -> dict[Factor, RoleScan]:
    """Returns the factors that are the same at every token and have a gradient, with its scan."""
    return {s.result: s for s in adjoint.scans if s.result is not Factor.VALUE}


class _Convolution:
    """The kernels of one scan."""

    def __init__(self, scan: Scan, has_complex_values: bool, name: str, back: bool) -> None:
        self._is_complex, self._is_wide = scan.field is Field.COMPLEX, has_complex_values
        k = self._k = KernelBuilder(name, f"A convolution of each channel: {name} of some rows.")
        groups, batch, self._length, channels = (k.dynamic(size) for size in "GBLC")
        sizes = ("BT", "SPAN", "R", "CT", "N", "T")
        self._bt, self._span, self._r, self._ct, n, tile = (k.static(size) for size in sizes)
        parts = ceil_div(batch, self._bt)
        group, part = k.grid("group", groups), k.grid("part", parts)
        first = times(k.grid("block", ceil_div(channels, self._ct)), self._ct)
        first_row = times(part, self._bt)
        of = self._of = Layout(
            k,
            has_complex_values,
            back,
            batch=Axis("b", "BT"),
            rows=Axis("r", "R"),
            tokens=Axis("s", "T"),
            keys=Axis("n", "N"),
            later=Axis("t", "T"),
            group=group,
            part=part,
            row=Along(Axis("b", "BT"), first_row, batch),
            first_channel=first,
        )
        self._channel_axis = Axis("c", "CT")
        k.order(of.batch, of.rows, of.tokens, of.keys, of.later, self._channel_axis)
        self._block = Along(self._channel_axis, first, channels)
        self._channels = least(self._ct, minus(channels, first))
        self._first_row, self._rows = first_row, least(self._bt, minus(batch, first_row))
        self._count = floor_div(self._length, tile)
        self._head = minus(self._length, times(self._count, tile))
        self._spans = ceil_div(self._count, self._span)
        self._shared = (groups, parts, channels, n)
        self._values = (groups, batch, self._length, channels)
        self._states = (groups, batch, channels, n)
        constants = (groups, channels, n)
        for constant in "qk":
            self._declare(constant, constants)
        self._declare_values("v")
        for table in ("look", "past", *(["powers"] if back else [])):
            self._declare(table, (*constants, plus(tile, 1)))
        self._declare("S", self._states)
        self._state = ((of.batch, of.keys), self._is_complex)

    # --- kernels ----------------------------------------------------------------------------------

    def forward(self) -> Kernel:
        """Returns the forward kernel."""
        k, of = self._k, self._of
        self._declare_values("o", Access.WRITE)
        self._declare("S_last", self._states, Access.WRITE)
        now = Kept(k, self._ct, {"H": self._state})
        matrices = self._matrices()
        with self._each_channel() as loop:
            channel = Channel(of, loop.counter)
            channel.store_matrix(matrices)
            with self._head_loop(H=channel.load_state("S")) as inner:
                state, head = self._inside(inner, "H"), channel.stretch(self._head)
                value = channel.values("v", self._head)
                output = channel.output(channel.matrix(matrices), head, value, state)
                channel.store_values("o", self._head, output)
                writes = channel.writes(head, value)
                inner.next(**carried(H=channel.advance(head, state, writes)))
            now.store(loop.counter, H=self._last(inner, "H"))
        values, outputs = (self._turned(name) for name in "vo")
        states, written = (self._by_row(name) for name in ("state", "writes"))
        with k.loop("span", self._spans) as span:
            self._turn(span.counter, "v", values)
            with self._each_channel() as loop:
                channel, value = Channel(of, loop.counter), values.load(loop.counter)
                whole = channel.stretch(_T)
                written.store(channel.writes(whole, value))
                self._go(span.counter, channel, whole, now, states, written)
                matrix = channel.matrix(matrices)
                output = channel.output(matrix, whole, value, states.load())
                outputs.store(loop.counter, output)
            self._turn_back(span.counter, outputs, "o")
        with self._each_channel() as loop:
            Channel(of, loop.counter).store_state("S_last", now.load(loop.counter)["H"])
        return k.kernel()

    def backward(self, adjoint: Adjoint) -> Kernel:
        """Returns the backward kernel."""
        k, of = self._k, self._of
        self._declare_values("do")
        for name in ("steps", "lags"):
            of.arguments[name] = k.argument(name, (plus(_T, 1),), storage=Storage.WIDE)
        self._declare("dS_last", self._states)
        constant = constants(adjoint)
        names = [*(f"d{NAMES[factor]}" for factor in constant), "dg"]
        for name in names:
            self._declare(name, self._shared, Access.WRITE)
        self._declare_values("dv", Access.WRITE)
        self._declare("dS", self._states, Access.WRITE)
        constant_axes: tuple[Axis, ...] = (of.keys,)
        numbers = dict.fromkeys(names, (constant_axes, self._is_complex))
        numbers["pairs"] = ((of.tokens, of.later), self._is_wide)
        sums, matrices = Kept(k, self._ct, numbers), self._matrices()
        now, future = (Kept(k, self._ct, {n: self._state}) for n in ("H", "dS"))
        starts = Kept(k, times(self._spans, self._ct), {"start": self._state})
        values, bars, gradients = (self._turned(name) for name in ("v", "do", "dv"))
        written, read, states, futures = (
            self._by_row(name) for name in ("writes", "reads", "state", "future")
        )
        with self._each_channel() as loop:
            channel = Channel(of, loop.counter)
            channel.store_matrix(matrices)
            sums.store(loop.counter, **{n: zeros(k, *x) for n, x in numbers.items()})
            future.store(loop.counter, dS=channel.load_state("dS_last"))
            with self._head_loop(H=channel.load_state("S")) as inner:
                head = channel.stretch(self._head)
                writes = channel.writes(head, channel.values("v", self._head))
                state = channel.advance(head, self._inside(inner, "H"), writes)
                inner.next(**carried(H=state))
            now.store(loop.counter, H=self._last(inner, "H"))
        with k.loop("span", self._spans) as span:
            self._turn(span.counter, "v", values)
            with self._each_channel() as loop:
                channel = Channel(of, loop.counter)
                start = now.load(loop.counter)["H"]
                starts.store(self._place(span.counter, loop.counter), start=start)
                whole = channel.stretch(_T)
                written.store(channel.writes(whole, values.load(loop.counter)))
                self._go(span.counter, channel, whole, now, states, written)
        with k.loop("span", self._spans, reverse=True) as span:
            self._turn(span.counter, "v", values)
            self._turn(span.counter, "do", bars)
            with self._each_channel() as loop:
                channel = Channel(of, loop.counter, constant)
                whole = channel.stretch(_T)
                slopes = channel.slopes(whole)
                value, bar = (x.load(loop.counter) for x in (values, bars))
                written.store(channel.writes(whole, value))
                read.store(channel.reads(slopes, bar))
                start = starts.load(self._place(span.counter, loop.counter))["start"]
                now.store(loop.counter, H=start)
                self._go(span.counter, channel, whole, now, states, written)
                self._go_back(span.counter, channel, whole, future, futures, read)
                terms = {
                    "value": value,
                    "bar": bar,
                    "writes": written.load(),
                    "reads": read.load(),
                    "state": states.load(),
                    "future": futures.load(),
                }
                matrix = channel.matrix(matrices)
                gradient = channel.value_gradient(matrix, whole, bar, terms["future"])
                gradients.store(loop.counter, gradient)
                known = sums.load(loop.counter)
                more = channel.gradients(whole, slopes, of.rows, terms)
                sums.store(loop.counter, **{n: known[n] + more[n] for n in numbers})
            self._turn_back(span.counter, gradients, "dv")
        with self._each_channel() as loop:
            channel = Channel(of, loop.counter, constant)
            first = sums.load(loop.counter) | future.load(loop.counter)
            with self._head_loop(**first) as inner:
                known = {name: self._inside(inner, name) for name in first}
                head = channel.stretch(self._head)
                slopes = channel.slopes(head)
                value, bar = (channel.values(name, self._head) for name in ("v", "do"))
                terms = {
                    "value": value,
                    "bar": bar,
                    "writes": channel.writes(head, value),
                    "reads": channel.reads(slopes, bar),
                    "state": channel.load_state("S"),
                    "future": known["dS"],
                }
                matrix = channel.matrix(matrices)
                gradient = channel.value_gradient(matrix, head, bar, known["dS"])
                channel.store_values("dv", self._head, gradient)
                more = channel.gradients(head, slopes, of.batch, terms)
                following = {n: known[n] + more[n] for n in numbers}
                following["dS"] = channel.retreat(head, known["dS"], terms["reads"])
                inner.next(**carried(**following))
            last = {name: self._last(inner, name) for name in first}
            channel.store_state("dS", last["dS"])
            channel.store_sums(last)
        return k.kernel()

    # --- states, from chunk to chunk --------------------------------------------------------------

    def _go(
        self, span: Int, channel: Channel, whole: Stretch, now: Kept, states: Rows, written: Rows
    ) -> None:
        """Goes through the chunks of a span: keeps the state before each, and that behind all."""
        count, at = self._chunks(span), channel.at
        with self._k.loop("chunk", count, reverse=False, **carried(**now.load(at))) as loop:
            state = self._inside(loop, "H")
            states.store_chunk(loop.counter, state)
            following = channel.advance(whole, state, written.load_chunk(loop.counter))
            loop.next(**carried(H=following))
        self._rest(count, states)
        now.store(at, H=self._last(loop, "H"))

    def _go_back(
        self, span: Int, channel: Channel, whole: Stretch, now: Kept, futures: Rows, read: Rows
    ) -> None:
        """Goes through the chunks of a span from the last one: keeps the gradient behind each."""
        count, at = self._chunks(span), channel.at
        with self._k.loop("chunk", count, reverse=True, **carried(**now.load(at))) as loop:
            future = self._inside(loop, "dS")
            futures.store_chunk(loop.counter, future)
            before = channel.retreat(whole, future, read.load_chunk(loop.counter))
            loop.next(**carried(dS=before))
        self._rest(count, futures)
        now.store(at, dS=self._last(loop, "dS"))

    def _rest(self, count: Int, states: Rows) -> None:
        """Where the last span has fewer chunks, there are no states."""
        zero = zeros(self._k, *self._state)
        with self._k.loop("none", minus(self._span, count)) as loop:
            states.store_chunk(plus(count, loop.counter), zero)

    def _chunks(self, span: Int) -> Int:
        """How many chunks a span has."""
        return least(self._span, minus(self._count, times(span, self._span)))

    # --- values, turned so that each channel has its own ------------------------------------------

    def _turned(self, name: str) -> Turned:
        """Declares memory for the values of a span, channel by channel."""
        turned = Turned(self._of, name, self._ct)
        if self._of.arguments[name].access is Access.READ:
            with self._each_channel() as loop:  # rows of the batch that are not there stay 0
                turned.store(loop.counter, turned.zeros)
        return turned

    def _turn(self, span: Int, name: str, memory: Turned) -> None:
        """Loads the values of a span, tokens by channels, and writes them channel by channel."""
        tokens = self._of.tokens
        with self._each_chunk(span) as (start, row, at):
            place = (self._of.group, row, Along(tokens, start, self._length), self._block)
            value = load(self._k, self._of.arguments[name], *place)
            memory.store_row(self._k.all(self._channel_axis), at, value)

    def _turn_back(self, span: Int, memory: Turned, name: str) -> None:
        """Writes the values of a span, tokens by channels."""
        with self._each_chunk(span) as (start, row, at):
            there = Along(self._channel_axis, 0, self._channels)
            along = Along(self._of.tokens, start, self._length)
            place = (self._of.group, row, along, self._block)
            store(self._k, self._of.arguments[name], *place, value=memory.load_row(there, at))

    @contextmanager
    def _each_chunk(self, span: Int) -> Iterator[tuple[Int, Int, Int]]:
        """Loops over rows and chunks: the first token, the row of the batch, the row of tiles."""
        with self._k.loop("row", self._rows) as row, self._k.loop("chunk", self._span) as chunk:
            at_chunk = plus(times(span, self._span), chunk.counter)
            start = plus(self._head, times(at_chunk, _T))
            at = plus(times(chunk.counter, self._bt), row.counter)
            yield start, plus(self._first_row, row.counter), at

    # --- memory -----------------------------------------------------------------------------------

    def _declare(self, name: str, shape: tuple[Int, ...], access: Access = Access.READ) -> None:
        """Declares what has the field of the state, and its precision."""
        self._of.arguments[name] = argument(
            self._k, name, shape, self._is_complex, access, Storage.WIDE
        )

    def _declare_values(self, name: str, access: Access = Access.READ) -> None:
        self._of.arguments[name] = argument(self._k, name, self._values, self._is_wide, access)

    def _matrices(self) -> list[Argument]:
        """Declares memory for the Toeplitz matrix of each channel, one for each plane."""
        names = plane_names("toeplitz", self._is_wide)
        shape = (self._ct, _T, _T)
        return [self._k.argument(n, shape, Access.SCRATCH, Storage.WIDE) for n in names]

    def _by_row(self, name: str) -> Rows:
        return Rows(self._of, name, self._is_complex)

    def _place(self, span: Int, channel: Int) -> Int:
        return plus(times(span, self._ct), channel)

    # --- loops ------------------------------------------------------------------------------------

    def _each_channel(self) -> AbstractContextManager[LoopScope]:
        return self._k.loop("channel", self._channels)

    def _head_loop(self, **numbers: Planes) -> AbstractContextManager[LoopScope]:
        """A loop over the tokens that fill no chunk, all at once: it runs once, or never."""
        return self._k.loop("head", least(self._head, 1), reverse=False, **carried(**numbers))

    def _inside(self, loop: LoopScope, name: str) -> Planes:
        return inside(loop, name, self._has_planes(name))

    def _last(self, loop: LoopScope, name: str) -> Planes:
        return last(loop, name, self._has_planes(name))

    def _has_planes(self, name: str) -> bool:
        return self._is_wide if name == "pairs" else self._is_complex
