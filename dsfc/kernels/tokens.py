"""Kernels of scans that go token by token: elementwise and selective ones, and steps of any.

    h_i = λ_i h_{i-1} + key_i ⊗ value_i        y_i = Σ_keys read_i · h_i

A low-rank part adds left_i ⊗ (Σ_keys right_i · h_{i-1}); a delta rule adds to the value what the
key finds of λ_i h_{i-1}, times its strength.

A program has one row of the batch and a block of channels; its state, over keys and channels,
stays where it is while the tokens pass by, and everything of a token is computed at once: the decay
of its leaves, the state, what is read. A scan without keys reads the state itself.

The gradient goes through the tokens in reverse, span by span: one pass forwards keeps the state
before each span, those within a span are computed again. What it computes of a token is read off
the plan's adjoint: the reversed recurrence, a contraction for each role, and the pairing of both
recurrences for the leaves of log λ.
"""

from __future__ import annotations

from typing import Protocol

from dsfc.expr.tree import Axis, Expr, Field, Ref
from dsfc.kernel_ir.build import KernelBuilder, LoopScope, Tile
from dsfc.kernel_ir.ir import (
    Access,
    Along,
    Argument,
    Int,
    Kernel,
    Position,
    Storage,
    Symbol,
    ceil_div,
    least,
    minus,
    plus,
    times,
)
from dsfc.kernel_ir.ir import Axis as TileAxis
from dsfc.kernels.formula import formula, is_formula
from dsfc.kernels.layout import layout
from dsfc.kernels.operands import NAMES, buffer_of, roles_of
from dsfc.kernels.planes import Kept, Planes, argument, carried, exp, inside, last, load, store
from dsfc.plan.adjoint import LOG_DECAY_BAR
from dsfc.plan.ir import Buffer, Role
from dsfc.plan.scan_ir import Adjoint, Factor, Form, LeafGradient, RoleScan, Scan, ScanDirection


class Knows(Protocol):
    """Whether a target has a primitive."""

    def __call__(self, name: str) -> bool:
        """Returns whether the target has it."""


def has_tokens(scan: Scan, adjoint: Adjoint, knows: Knows) -> bool:
    """Whether a scan has these kernels."""
    if scan.form not in (Form.ELEMENTWISE, Form.SELECTIVE) or len(scan.columns) != 1:
        return False
    if scan.form is Form.ELEMENTWISE:
        return True
    if scan.field is not Field.REAL or scan.decay is None or adjoint.pairing is None:
        return False
    leaves = [x.value for x in adjoint.pairing.leaves]
    blocked = bool(scan.channels or scan.heads) and bool(scan.keys)
    return blocked and all(is_formula(e, knows) for e in (scan.decay.expr, *leaves))


def forward(scan: Scan, arrays: dict[str, Buffer], leaves: dict[str, str], name: str) -> Kernel:
    """Returns the kernel that computes outputs and the last state.

    Args:
        scan: a scan that has these kernels.
        arrays: buffers of the plan by name.
        leaves: leaf of log λ → name of the argument.
        name: of the kernel.
    """
    return _Tokens(scan, arrays, leaves, name).forward()


def step(scan: Scan, arrays: dict[str, Buffer], leaves: dict[str, str], name: str) -> Kernel:
    """Returns the kernel that computes the output of one token and the state after it.

    It reads every entry of the state before it writes that entry, so that the state after the
    token may lie where the one before it did.

    Args:
        scan: any scan of which each axis is one of the operator's.
        arrays: buffers of the plan by name.
        leaves: leaf of log λ → name of the argument.
        name: of the kernel.
    """
    return _Tokens(scan, arrays, leaves, name).step()


def steps(scan: Scan, arrays: dict[str, Buffer], leaves: dict[str, str], name: str) -> Kernel:
    """Returns the kernel that computes outputs and the state after each token, `[L, B, ...]`.

    Args:
        scan: as of `step`, or a scan that has these kernels.
        arrays: buffers of the plan by name.
        leaves: leaf of log λ → name of the argument.
        name: of the kernel.
    """
    return _Tokens(scan, arrays, leaves, name).steps()


def backward(
    scan: Scan, adjoint: Adjoint, arrays: dict[str, Buffer], leaves: dict[str, str], name: str
) -> Kernel:
    """Returns the kernel that computes all gradients.

    What programs share is written by each of them; the caller sums over the dimensions behind time
    (of a constant leaf, behind the batch) that the shared argument lacks.

    Args:
        scan: a scan that has these kernels.
        adjoint: its gradient, derived.
        arrays: buffers of the plan by name.
        leaves: leaf of log λ → name of the argument.
        name: of the kernel.
    """
    return _Tokens(scan, arrays, leaves, name).backward(adjoint)


class _Tokens:
    """The kernels of one scan."""

    def __init__(
        self, scan: Scan, arrays: dict[str, Buffer], leaves: dict[str, str], name: str
    ) -> None:
        self._scan = scan
        self._is_complex = scan.field is Field.COMPLEX
        self._arrays = arrays
        self._leaf_names = leaves
        self._layout = layout(scan)
        k = self.k = KernelBuilder(name, f"Token by token: {name} of some channels of one row.")
        self._batch, self._length = k.dynamic("B"), k.dynamic("L")
        self._tiles: dict[Axis, TileAxis] = {
            a: TileAxis(a.name, self._size_name(a)) for a in self._layout.keys
        }
        block = self._layout.block
        self._block_axis = TileAxis("channel" if block is None else block.name, "BLOCK")
        self._channels = k.static("CHANNELS" if block is None else self._size_name(block))
        k.static("BLOCK")
        if block is not None:
            self._tiles[block] = self._block_axis
        for a in (*self._layout.outer, *self._layout.keys):
            k.static(self._size_name(a))
        k.order(*(self._tiles[a] for a in self._layout.keys), self._block_axis)
        self._row = k.grid("row", self._batch)
        self._places: dict[Axis, Symbol] = {
            a: k.grid(f"at_{a.name}", Symbol(self._size_name(a))) for a in self._layout.outer
        }
        self._part = k.grid("part", ceil_div(self._channels, Symbol("BLOCK")))
        self._inputs()

    def forward(self) -> Kernel:
        """Returns the forward kernel."""
        k = self.k
        o, final = self._declare_outputs()
        first = load(k, self._arguments["S"], *self._state_at)
        with k.loop("token", self._length, reverse=False, **carried(S=first)) as loop:
            state = self._advance(loop.counter, self._inside(loop, "S"))
            self._store_output(o, loop.counter, state)
            loop.next(**carried(S=state))
        store(k, final, *self._state_at, value=self._last(loop, "S"))
        return k.kernel()

    def step(self) -> Kernel:
        """Returns the kernel of one token."""
        o, final = self._declare_outputs()
        before = load(self.k, self._arguments["S"], *self._state_at)
        state = self._advance(0, before)
        store(self.k, final, *self._state_at, value=state)
        self._store_output(o, 0, state)
        return self.k.kernel()

    def steps(self) -> Kernel:
        """Returns the kernel of some tokens that keeps the state after each."""
        k = self.k
        o, shape = self._declare_output(), (self._length, *self._state_shape)
        each = self._declare("S_each", shape, Access.WRITE, Storage.WIDE)
        for role in roles_of(self._scan):
            if self._is_fixed(role):  # what no token changes is loaded before the tokens
                self._load(role, 0)
        first = load(k, self._arguments["S"], *self._state_at)
        with k.loop("token", self._length, reverse=False, **carried(S=first)) as loop:
            state = self._advance(loop.counter, self._inside(loop, "S"))
            store(k, each, loop.counter, *self._state_at, value=state)
            self._store_output(o, loop.counter, state)
            loop.next(**carried(S=state))
        return k.kernel()

    def _declare_outputs(self) -> tuple[Argument, Argument]:
        """Declares the output and the last state."""
        o = self._declare_output()
        return o, self._declare("S_last", self._state_shape, Access.WRITE, Storage.WIDE)

    def _declare_output(self) -> Argument:
        return self._declare("o", self._shape(self._value_axes, True), Access.WRITE)

    def _store_output(self, o: Argument, token: Int, state: Planes) -> None:
        """Writes what a token reads of the state after it."""
        look = state if self._scan.read is None else self._looked(Factor.READ, token, state)
        look = Planes(look.real) if self._scan.real else look
        store(self.k, o, *self._at(self._value_axes, token), value=look)

    def backward(self, adjoint: Adjoint) -> Kernel:
        """Returns the backward kernel."""
        k = self.k
        self._arguments["do"] = self._declare("do", self._shape(self._value_axes, True))
        d_last = self._declare("dS_last", self._state_shape, storage=Storage.WIDE)
        self._results = {s.result: self._result(s.result) for s in adjoint.scans}
        for x in _leaves(adjoint):
            self._leaf_result(x.leaf)
        d_first = self._declare("dS", self._state_shape, Access.WRITE, Storage.WIDE)
        spans, span = k.dynamic("SPANS"), k.dynamic("SPAN")
        of_state = (self._state_tiles, self._is_complex)
        starts = Kept(k, spans, {"starts": of_state})
        states = Kept(k, plus(span, 1), {"states": of_state})
        first = load(k, self._arguments["S"], *self._state_at)
        with k.loop("span", spans, reverse=False, **carried(S=first)) as outer:
            starts.store(outer.counter, starts=self._inside(outer, "S"))
            done = least(minus(minus(spans, 1), outer.counter), 1)
            entering = carried(S=self._inside(outer, "S"))
            with k.loop("token", times(done, span), reverse=False, **entering) as inner:
                at = plus(times(outer.counter, span), inner.counter)
                inner.next(**carried(S=self._advance(at, self._inside(inner, "S"))))
            outer.next(**carried(S=self._last(inner, "S")))
        constants = {
            x.leaf: self._zeros(x.leaf) for x in _leaves(adjoint) if self._is_constant(x.leaf)
        }
        sums = {f"d_{self._leaf_names[n]}": tile for n, tile in constants.items()}
        after = carried(dS=load(k, d_last, *self._state_at))
        with k.loop("span", spans, reverse=True, **after, **sums) as outer:
            begin = times(outer.counter, span)
            count = least(span, minus(self._length, begin))
            start = carried(S=starts.load(outer.counter)["starts"])
            with k.loop("token", count, reverse=False, **start) as inner:
                states.store(inner.counter, states=self._inside(inner, "S"))
                now = self._advance(plus(begin, inner.counter), self._inside(inner, "S"))
                inner.next(**carried(S=now))
            states.store(count, states=self._last(inner, "S"))
            mine = {n: outer[n] for n in sums} | carried(dS=self._inside(outer, "dS"))
            with k.loop("token", count, reverse=True, **mine) as inner:
                before = states.load(inner.counter)["states"]
                now = states.load(plus(inner.counter, 1))["states"]
                self._retreat(plus(begin, inner.counter), inner, before, now, adjoint)
            following = carried(dS=self._last(inner, "dS"))
            outer.next(**following, **{n: inner.last(n) for n in sums})
        store(k, d_first, *self._state_at, value=self._last(outer, "dS"))
        for leaf in constants:
            at_leaf = self._result_at(self._arrays[leaf].axes, None)
            value = outer.last(f"d_{self._leaf_names[leaf]}")
            k.store(self._leaf_results[leaf], *at_leaf, value=value)
        return k.kernel()

    # --- one token --------------------------------------------------------------------------------

    def _advance(self, token: Int, before: Planes) -> Planes:
        """Returns the state after a token."""
        kept, drive = self._decayed(before, token), self._load(Factor.VALUE, token)
        if self._scan.delta is not None:
            strength = self._load(Factor.STRENGTH, token)
            drive = drive + strength * self._looked(Factor.KEY, token, kept)
        if self._scan.low_rank is not None:
            looked_up = self._looked(Factor.RIGHT, token, before)
            kept = kept + self._load(Factor.LEFT, token) * looked_up
        if self._scan.key is not None:
            drive = self._load(Factor.KEY, token) * drive
        return kept + drive

    def _looked(self, role: Factor, token: Int, state: Planes) -> Planes:
        """Returns Σ_keys of a role times a state."""
        return (self._load(role, token) * state).map(lambda x: self.k.sum(x, *self._key_tiles))

    def _retreat(
        self, token: Int, loop: LoopScope, before: Planes, now: Planes, adjoint: Adjoint
    ) -> None:
        """Writes the gradients at a token."""
        k = self.k
        bar = self._load(Factor.COTANGENT, token)
        if self._scan.read is not None:
            bar = self._load(Factor.READ, token) * bar
        future = (self._inside(loop, "dS") + bar).named("dS")
        for s in adjoint.scans:
            gradient = self._contraction(s, token, now, future)
            at = self._result_at(self._axes_of(s.result), token)
            store(k, self._results[s.result], *at, value=gradient)
        after = self._decayed(future, token)
        passed = after * before
        following = carried(dS=after)
        for x in _leaves(adjoint):
            gradient = self._leaf_gradient(x, token, passed)
            if self._is_constant(x.leaf):
                name = f"d_{self._leaf_names[x.leaf]}"
                following[name] = loop[name] + gradient.real
            else:
                at = self._result_at(self._arrays[x.leaf].axes, token)
                store(k, self._leaf_results[x.leaf], *at, value=gradient)
        loop.next(**following)

    def _contraction(self, s: RoleScan, token: Int, now: Planes, future: Planes) -> Planes:
        """Returns what a role scan reads of its state at a token."""
        state = future if s.direction is ScanDirection.REVERSE else now
        if s.read is Factor.ONE:
            return state
        wanted = {self._tiles.get(a) for a in self._axes_of(s.result)}
        summed = [a for a in self._state_tiles if a not in wanted]
        return (self._load(s.read, token) * state).map(lambda x: self.k.sum(x, *summed))

    def _decayed(self, state: Planes, token: Int) -> Planes:
        """Returns λ · state; the state itself for λ = 1."""
        if self._scan.decay is None:
            return state
        return exp(self._log_decay(self._scan.decay.expr, token)) * state

    def _log_decay(self, expr: Expr, token: Int) -> Planes:
        if isinstance(expr, Ref):
            return self._leaf(expr.name, token)
        tile = formula(expr, self.k, lambda name: self._leaf(name, token).real, self._tiles)
        return Planes(tile)

    def _leaf_gradient(self, x: LeafGradient, token: Int, passed: Planes) -> Planes:
        """Returns the gradient of a leaf from that of log λ."""
        if self._scan.form is Form.ELEMENTWISE:
            return passed

        def leaf(name: str) -> Tile:
            return passed.real if name == LOG_DECAY_BAR else self._leaf(name, token).real

        return Planes(formula(x.value, self.k, leaf, self._tiles))

    def _leaf(self, name: str, token: Int) -> Planes:
        constant = self._is_constant(name)
        key = (name, -1 if constant else token)
        if key not in self._loaded:
            at = self._at(self._arrays[name].axes, None if constant else token)
            self._loaded[key] = load(self.k, self._arguments[self._leaf_names[name]], *at)
        return self._loaded[key]

    def _inside(self, loop: LoopScope, name: str) -> Planes:
        return inside(loop, name, self._is_complex)

    def _last(self, loop: LoopScope, name: str) -> Planes:
        return last(loop, name, self._is_complex)

    # --- memory -----------------------------------------------------------------------------------

    def _declare(
        self,
        name: str,
        shape: tuple[Int, ...],
        access: Access = Access.READ,
        storage: Storage = Storage.GIVEN,
    ) -> Argument:
        is_real = self._scan.real and name in ("v", "o")
        return argument(self.k, name, shape, self._is_complex and not is_real, access, storage)

    def _inputs(self) -> None:
        """Declares what both directions read."""
        self._arguments: dict[str, Argument] = {
            NAMES[r]: self._declare_role(r) for r in roles_of(self._scan)
        }
        for leaf, name in self._leaf_names.items():
            shape = self._shape(self._arrays[leaf].axes, not self._is_constant(leaf))
            self._arguments[name] = self._declare(name, shape, storage=Storage.WIDE)
        self._arguments["S"] = self._declare("S", self._state_shape, storage=Storage.WIDE)
        self._loaded: dict[tuple[str, Int], Planes] = {}
        self._leaf_results: dict[str, Argument] = {}
        for leaf in self._leaf_names:
            # What no token changes is loaded before the tokens.
            if self._is_constant(leaf):
                self._leaf(leaf, -1)

    def _declare_role(self, role: Factor) -> Argument:
        """Declares what varies over time as the caller has it, and the rest in that of sums."""
        wide = role is Factor.STRENGTH or self._is_fixed(role)
        storage = Storage.WIDE if wide else Storage.GIVEN
        shape = self._shape(self._axes_of(role), not self._is_fixed(role))
        return self._declare(NAMES[role], shape, storage=storage)

    def _result(self, role: Factor) -> Argument:
        """Declares the gradient of a role; what is to be summed keeps all its digits."""
        axes = self._axes_of(role)
        storage = Storage.WIDE if self._apart(axes) else Storage.GIVEN
        name, shape = f"d{NAMES[role]}", self._result_shape(axes)
        return self._declare(name, shape, Access.WRITE, storage)

    def _leaf_result(self, leaf: str) -> None:
        shape = self._result_shape(self._arrays[leaf].axes, not self._is_constant(leaf))
        name = f"d{self._leaf_names[leaf]}"
        self._leaf_results[leaf] = self._declare(name, shape, Access.WRITE, Storage.WIDE)

    def _zeros(self, leaf: str) -> Tile:
        """Zeros over the axes of a constant leaf."""
        tile = self._loaded[leaf, -1].real
        return self.k.where(self.k.less(self.k.index(tile.axes[-1]), 0), tile, 0.0)

    def _load(self, role: Factor, token: Int) -> Planes:
        at_token = None if self._is_fixed(role) else token
        key = (NAMES[role], -1 if at_token is None else at_token)
        if key not in self._loaded:
            at = self._at(self._axes_of(role), at_token)
            self._loaded[key] = load(self.k, self._arguments[NAMES[role]], *at)
        return self._loaded[key]

    def _axes_of(self, role: Factor) -> tuple[Axis, ...]:
        name = buffer_of(self._scan, role)
        return self._arrays[name].axes if name is not None else self._value_axes

    def _is_fixed(self, role: Factor) -> bool:
        """Whether no token changes a role: the key and the read of a convolution."""
        return self._scan.form is Form.CONVOLUTION and role in (Factor.READ, Factor.KEY)

    @property
    def _value_axes(self) -> tuple[Axis, ...]:
        return tuple(sorted((*self._scan.heads, *self._scan.channels)))

    @property
    def _state_axes(self) -> tuple[Axis, ...]:
        return tuple(sorted((*self._scan.heads, *self._scan.keys, *self._scan.channels)))

    @property
    def _state_tiles(self) -> tuple[TileAxis, ...]:
        return (*self._key_tiles, self._block_axis)

    @property
    def _key_tiles(self) -> tuple[TileAxis, ...]:
        return tuple(self._tiles[a] for a in self._layout.keys)

    def _is_constant(self, leaf: str) -> bool:
        return self._arrays[leaf].role is Role.CONSTANT and self._layout.block is not None

    def _size_name(self, a: Axis) -> str:
        return f"SIZE_{a.name}"

    def _sizes(self, axes: tuple[Axis, ...]) -> tuple[Int, ...]:
        if self._layout.block is None:
            return (self._channels,)
        return tuple(Symbol(self._size_name(a)) for a in axes)

    def _shape(self, axes: tuple[Axis, ...], timed: bool) -> tuple[Int, ...]:
        lead = (self._batch, self._length) if timed else (self._batch,)
        return (*lead, *self._sizes(axes))

    def _result_shape(self, axes: tuple[Axis, ...], timed: bool = True) -> tuple[Int, ...]:
        lead = (self._batch, self._length) if timed else (self._batch,)
        return (*lead, *(count for _, count in self._apart(axes)), *self._sizes(axes))

    def _apart(self, axes: tuple[Axis, ...]) -> list[tuple[Int, Int]]:
        """Index and count of the programs that have the same entries of a tensor."""
        block = self._layout.block
        if block is None:
            return []
        apart: list[tuple[Int, Int]] = [
            (self._places[a], Symbol(self._size_name(a)))
            for a in self._layout.outer
            if a not in axes
        ]
        if block not in axes:
            apart.append((self._part, ceil_div(self._channels, Symbol("BLOCK"))))
        return apart

    def _at(self, axes: tuple[Axis, ...], token: Int | None) -> tuple[Position, ...]:
        lead = (self._row,) if token is None else (self._row, token)
        return (*lead, *self._entries(axes))

    def _result_at(self, axes: tuple[Axis, ...], token: Int | None) -> tuple[Position, ...]:
        lead = (self._row,) if token is None else (self._row, token)
        return (*lead, *(index for index, _ in self._apart(axes)), *self._entries(axes))

    def _entries(self, axes: tuple[Axis, ...]) -> tuple[Position, ...]:
        blocks = Along(self._block_axis, times(self._part, Symbol("BLOCK")), self._channels)
        if self._layout.block is None:
            return (blocks,)
        out: list[Position] = []
        for a in axes:
            if a == self._layout.block:
                out.append(blocks)
            elif a in self._places:
                out.append(self._places[a])
            else:
                out.append(self.k.all(self._tiles[a]))
        return tuple(out)

    @property
    def _state_shape(self) -> tuple[Int, ...]:
        return (self._batch, *self._sizes(self._state_axes))

    @property
    def _state_at(self) -> tuple[Position, ...]:
        return (self._row, *self._entries(self._state_axes))


def _leaves(adjoint: Adjoint) -> tuple[LeafGradient, ...]:
    """The gradients of the leaves of log λ; none for λ = 1."""
    return () if adjoint.pairing is None else adjoint.pairing.leaves
