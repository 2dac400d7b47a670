"""The meaning of a System in double precision: one step at a time, as its nodes say.

Streams and read-outs are evaluated token by token when something asks for them, a stage over the
whole sequence when its first state is read. It is slow on purpose and knows no fast form of
anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsfc.expr.declarations import MapTensor
from dsfc.expr.evaluate import NamedArray, apply_map, canonical, dtype_of
from dsfc.expr.evaluate import evaluate as evaluate_expr
from dsfc.expr.max_plus import LOWEST
from dsfc.expr.over_time import Lag, Past, Run
from dsfc.expr.reserved_names import FIRST, TIME
from dsfc.expr.table import row
from dsfc.expr.tree import Axis, Bound, Expr, Field, LinearMap, Now, Ref
from dsfc.system.ir import (
    Block,
    Cache,
    Cast,
    ComplexPart,
    Direct,
    Factor,
    Gate,
    GuardKind,
    MapOut,
    MaxPlus,
    Post,
    Product,
    Ratio,
    Read,
    ReadOut,
    Stage,
    Stream,
    Sum,
    SumOver,
    System,
    Term,
)

Array = NDArray[Any]
FeatureMap = Callable[[Array], Array]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The values of a System over one sequence.

    Attributes:
        outputs: name → `[L, *axes]`; `[*axes]` for outputs summed over time.
        finals: state, or stream that is a running maximum → its last value `[*axes]`: after the
            last token, before the first for stages that run backwards. The initial value where
            there are no tokens.
        streams: name → `[L, *axes]`, constants `[*axes]`.
        states: state → `[L, *axes]`.
    """

    outputs: Mapping[str, Array]
    finals: Mapping[str, Array]
    streams: Mapping[str, Array]
    states: Mapping[str, Array]


def evaluate(
    system: System,
    inputs: Mapping[str, Array],
    params: Mapping[str, Array],
    sizes: Mapping[str, int],
    initial: Mapping[str, Array] | None = None,
    abstracts: Mapping[str, FeatureMap] | None = None,
) -> Evaluation:
    """Returns all values of a System.

    Args:
        system: what to run.
        inputs: `[L, *axes]` by name, axes in canonical order.
        params: parameters and buffers by name: tensors `[*axes]`, maps `[*each, *target, *source]`.
        sizes: size of every axis by name; copies of axes may be left out.
        initial: state before the first token (after the last, for stages that run backwards)
            `[*axes]`; zero where absent. A running maximum goes by the name of its stream; where it
            is absent, it is 0 beside a state that is given, which has no gauge then, else below
            all numbers.
        abstracts: for each abstract map a function `[..., *source] -> [..., *target]`.
    """
    length = next(iter(inputs.values())).shape[0] if inputs else 0
    return _Run(system, inputs, params, sizes, initial or {}, abstracts or {}, length).all()


class _Run:
    def __init__(
        self,
        system: System,
        inputs: Mapping[str, Array],
        params: Mapping[str, Array],
        sizes: Mapping[str, int],
        initial: Mapping[str, Array],
        abstracts: Mapping[str, FeatureMap],
        length: int,
    ) -> None:
        self.system = system
        self.length = length
        self.sizes = dict(sizes)
        for d in system.axes:
            if d.axis.name not in self.sizes and d.axis.copy_of is not None:
                self.sizes[d.axis.name] = self.sizes[d.axis.copy_of]
        self.abstracts = abstracts
        stored = (*system.params, *system.buffers)
        self.maps = {t.name: np.asarray(params[t.name]) for t in stored if isinstance(t, MapTensor)}
        self.tensors = {
            t.name: NamedArray(t.axes, np.asarray(params[t.name]))
            for t in stored
            if not isinstance(t, MapTensor)
        }
        self.inputs = {
            t.name: [NamedArray(t.axes, np.asarray(inputs[t.name])[k]) for k in range(length)]
            for t in system.inputs
        }
        self.initial = initial
        self.streams = {s.name: s for s in system.streams}
        self.stage_of = {b.state: s for s in system.stages for b in s.blocks}
        self.blocks = {b.state: b for b in system.blocks}
        self.states: dict[str, dict[int, NamedArray]] = {}
        self._tokens: dict[tuple[str, int], NamedArray] = {}
        self._constants: dict[str, NamedArray] = {}
        self._known: dict[int, dict[Expr, NamedArray]] = {}

    def size(self, axis: Axis) -> int:
        return self.sizes[axis.name]

    def all(self) -> Evaluation:
        # In their order, so that a chain of definitions of any length is no chain of calls.
        for s in self.system.streams:
            self._stream_array(s)
        for stage in self.system.stages:
            self.run(stage)
        outputs = {}
        for o in self.system.outputs:
            shape = [self.sizes[a.name] for a in o.axes]
            out = np.zeros((self.length, *shape), dtype_of(o.field))
            # The gradient of a matrix has the matrix's axes: targets before sources.
            order = canonical(o.axes)
            stored = [order.index(a) for a in o.axes]
            for k in range(self.length):
                value = self.read(o.value, k).expand(order, self.size)
                out[k] = np.transpose(value.data, stored)
            outputs[o.name] = out.sum(axis=0) if o.over_time else out
        return Evaluation(
            outputs,
            {name: self._final(name) for name in self.blocks} | self._last_maxima(),
            {name: self._stream_array(s) for name, s in self.streams.items()},
            {name: self._stacked(b.axes, b.field, self.states[name])
             for name, b in self.blocks.items()},
        )  # fmt: skip

    def _stacked(self, axes: tuple[Axis, ...], kind: Field, at: Mapping[int, NamedArray]) -> Array:
        out = np.zeros((self.length, *(self.sizes[a.name] for a in axes)), dtype_of(kind))
        for k in range(self.length):
            out[k] = at[k].data
        return out

    def _stream_array(self, s: Stream) -> Array:
        if s.constant:
            return self.constant(s.name).data
        return self._stacked(
            s.axes, s.field, {k: self.token(s.name, k) for k in range(self.length)}
        )

    def _final(self, name: str) -> Array:
        backward = self.stage_of[name].direction < 0
        end = 0 if backward else self.length - 1
        return self.states[name][end].data if self.length else self.start(self.blocks[name]).data

    # --- streams ----------------------------------------------------------------------------------

    def _last_maxima(self) -> dict[str, Array]:
        """The last value of each running maximum; the one before the first where none is."""
        last = self.length - 1
        maxima = {s.name: s for s in self.streams.values() if isinstance(s.value, MaxPlus)}
        return {
            n: (self.token(n, last) if last >= 0 else self.before(s)).data
            for n, s in maxima.items()
        }

    def before(self, s: Stream) -> NamedArray:
        """A running maximum before the first token."""
        shape = [self.sizes[a.name] for a in s.axes]
        assert isinstance(s.value, MaxPlus)
        beside = self.initial and not s.value.declared
        value = self.initial.get(s.name, 0.0 if beside else LOWEST)
        return NamedArray(s.axes, np.zeros(shape) + value)

    def _run_maximum(self, s: Stream, value: MaxPlus) -> None:
        """Runs m_i = max(m_{i-1} + log λ_i, log w_i) over the sequence, once."""
        held = self.before(s)
        for token in range(self.length):
            moved = _joined(np.add, held, self.value(value.log_decay, token))
            held = _joined(np.maximum, moved, self.value(value.log_weight, token))
            held = self._typed(held, s.axes, s.field)
            self._tokens[s.name, token] = held

    def constant(self, name: str) -> NamedArray:
        """The value of a stream without time."""
        if name not in self._constants:
            s = self.streams[name]
            if not isinstance(s.value, Expr):
                raise TypeError(f"the constant stream {name} reads states")
            value = evaluate_expr(s.value, _Moment(self, 0))
            self._constants[name] = self._typed(value, s.axes, s.field)
        return self._constants[name]

    def token(self, name: str, token: int) -> NamedArray:
        """The value of an input or stream at a token of the sequence."""
        if name in self.inputs:
            return self.inputs[name][token]
        key = (name, token)
        if key not in self._tokens:
            s = self.streams[name]
            if isinstance(s.value, MaxPlus):
                self._run_maximum(s, s.value)
                return self._tokens[key]
            value = (
                self.value(s.value, token)
                if isinstance(s.value, Expr)
                else self.read(s.value, token)
            )
            self._tokens[key] = self._typed(value, s.axes, s.field)
        return self._tokens[key]

    def _typed(self, value: NamedArray, axes: tuple[Axis, ...], kind: Field) -> NamedArray:
        full = value.expand(axes, self.size)
        if kind is Field.REAL and np.iscomplexobj(full.data):
            raise TypeError("a complex value stands where a real one is declared")
        return NamedArray(axes, full.data.astype(dtype_of(kind)))

    def value(self, e: Expr, token: int) -> NamedArray:
        """The value of an expression at a token."""
        known = self._known.setdefault(token, {})
        return evaluate_expr(e, _Moment(self, token), known)

    # --- stages -----------------------------------------------------------------------------------

    def start(self, block: Block) -> NamedArray:
        """The state before its first token."""
        shape = [self.sizes[a.name] for a in block.axes]
        data = np.zeros(shape, dtype_of(block.field))
        if block.state in self.initial:
            data = data + self.initial[block.state]
        return NamedArray(block.axes, data)

    def run(self, stage: Stage) -> None:
        """Runs a stage over the sequence, once."""
        if stage.blocks[0].state in self.states:
            return
        for b in stage.blocks:
            self.states[b.state] = {}
        current = {b.state: self.start(b) for b in stage.blocks}
        tokens = range(self.length)
        for token in tokens if stage.direction > 0 else reversed(tokens):
            for position in range(max(len(b.chain) for b in stage.blocks)):
                current = {
                    b.state: self._factor(b, b.chain[position], current, token)
                    if position < len(b.chain)
                    else current[b.state]
                    for b in stage.blocks
                }
            for name, value in current.items():
                self.states[name][token] = value

    def _factor(
        self, block: Block, factor: Factor, values: Mapping[str, NamedArray], token: int
    ) -> NamedArray:
        """Σ terms(values) + Σ drives at a token."""
        total = np.zeros([self.sizes[a.name] for a in block.axes], dtype_of(block.field))
        for t in factor.terms:
            total = (
                total + self.apply(t, values[t.source], token).expand(block.axes, self.size).data
            )
        for d in factor.drives:
            drive = self._times(self.value(d.key, token), self.value(d.stream, token))
            total = total + drive.expand(block.axes, self.size).data
        return NamedArray(block.axes, total)

    def apply(self, t: Term, value: NamedArray, token: int) -> NamedArray:
        """after(left · Σ_over(right · matrix(value)))."""
        if t.matrix is not None:
            value = apply_map(t.matrix, self.maps[t.matrix.name], value, self.size)
        value = self._times(self.value(t.right, token), value)
        for axis in sorted(t.over):
            value = self._total(axis, value)
        value = self._times(self.value(t.left, token), value)
        if t.after is not None:
            value = apply_map(t.after, self.maps[t.after.name], value, self.size)
        return value

    def _times(self, a: NamedArray, b: NamedArray) -> NamedArray:
        return _joined(np.multiply, a, b)

    def _total(self, axis: Axis, value: NamedArray) -> NamedArray:
        if axis not in value.axes:
            value = value.expand(canonical({*value.axes, axis}), self.size)
        at = value.axes.index(axis)
        return NamedArray(value.axes[:at] + value.axes[at + 1 :], value.data.sum(axis=at))

    def state(self, name: str, token: int) -> NamedArray:
        """The value of a state; its initial value one step before the first token, 0 beyond."""
        stage = self.stage_of[name]
        self.run(stage)
        if 0 <= token < self.length:
            return self.states[name][token]
        block = self.blocks[name]
        if token == (-1 if stage.direction > 0 else self.length):
            return self.start(block)
        shape = [self.sizes[a.name] for a in block.axes]
        return NamedArray(block.axes, np.zeros(shape, dtype_of(block.field)))

    # --- read-outs --------------------------------------------------------------------------------

    def read(self, r: ReadOut, token: int) -> NamedArray:
        """The value of a read-out at a token."""
        match r:
            case Read(terms, direct):
                parts = [self.apply(t, self.state(t.source, token - t.lag), token) for t in terms]
                if direct is not None:
                    parts.append(self.value(direct, token))
                return _sum(parts)
            case Direct(value):
                return self.value(value, token)
            case Cache(past):
                return self.value(past, token)
            case MaxPlus():
                raise TypeError("a running maximum stands by itself in a stream")
            case Gate(factor, arg):
                return self._times(self.value(factor, token), self.read(arg, token))
            case Product(args):
                values = [self.read(a, token) for a in args]
                return values[0] if len(values) == 1 else _joined(np.multiply, *values)
            case Sum(args):
                return _sum([self.read(a, token) for a in args])
            case Ratio(num, den, guard):
                below = self.read(den, token)
                if guard.kind is not GuardKind.NONE and guard.constant is not None:
                    constant = self.value(guard.constant, token)
                    if guard.kind is GuardKind.ADD:
                        below = _joined(np.add, below, constant)
                    else:
                        size = NamedArray(below.axes, np.abs(below.data))
                        below = _joined(np.maximum, size, constant)
                return _joined(np.divide, self.read(num, token), below)
            case Cast(part, arg):
                inner = self.read(arg, token)
                data = inner.data.real if part is ComplexPart.RE else inner.data.imag
                return NamedArray(inner.axes, data)
            case MapOut(map, arg):
                return apply_map(map, self.maps[map.name], self.read(arg, token), self.size)
            case Post(name, args, axis):
                return self._post(name, [self.read(a, token) for a in args], axis)
            case SumOver(axis, arg):
                return self._total(axis, self.read(arg, token))

    def _post(self, name: str, args: list[NamedArray], axis: Axis | None) -> NamedArray:
        function = row(name).value
        if axis is None:
            return _joined(function, *args)
        x = args[0].expand(canonical({*args[0].axes, axis}), self.size)
        data = function(x.data, axis=x.axes.index(axis) - len(x.axes))
        return NamedArray(x.axes, np.asarray(data))


def _joined(function: Callable[..., Any], *values: NamedArray) -> NamedArray:
    """A function of one or more values, elementwise; one of two folds over more."""
    out = values[0]
    if len(values) == 1:
        return NamedArray(out.axes, np.asarray(function(out.data)))
    for v in values[1:]:
        axes = canonical({*out.axes, *v.axes})
        out = NamedArray(axes, np.asarray(function(out.over(axes), v.over(axes))))
    return out


def _sum(values: list[NamedArray]) -> NamedArray:
    return values[0] if len(values) == 1 else _joined(np.add, *values)


@dataclass(frozen=True, slots=True)
class _Moment:
    """The leaves of an expression at one token.

    Attributes:
        run: all values.
        token: the present token i.
        bound: tokens of the indices bound by enclosing sums (of caches).
    """

    run: _Run
    token: int
    bound: Mapping[str, int] = field(default_factory=dict)

    def size(self, axis: Axis) -> int:
        """Size of an axis."""
        return self.run.sizes[axis.name]

    def param(self, name: str) -> NamedArray:
        """A parameter or buffer."""
        return self.run.tensors[name]

    def matrix(self, map: LinearMap) -> Array:
        """The stored array of a map."""
        return self.run.maps[map.name]

    def ref(self, ref: Ref) -> NamedArray:
        """A named value; zero outside the sequence, which a constant does not have."""
        if ref.at is None:
            return self.run.constant(ref.name)
        token = self._instant(ref.at)
        inside = 0 <= token < self.run.length
        if ref.name == FIRST:
            return NamedArray((), np.asarray(1.0 if token == 0 and inside else 0.0))
        if inside:
            return self.run.token(ref.name, token)
        held = self.run.streams.get(ref.name)
        maximum = held is not None and isinstance(held.value, MaxPlus) and token < 0
        if held is not None and maximum and token == -1:
            return self.run.before(held)
        axes = canonical(ref.over)
        shape = [self.run.sizes[a.name] for a in axes]
        return NamedArray(axes, np.full(shape, LOWEST if maximum else 0.0, dtype_of(ref.kind)))

    def abstract(self, name: str, value: NamedArray) -> NamedArray:
        """An abstract map, called with the axes it takes at the end."""
        function = next(a for a in self.run.system.abstracts if a.name == name)
        kept = tuple(a for a in value.axes if a not in function.source)
        order = [value.axes.index(a) for a in (*kept, *function.source)]
        data = np.asarray(self.run.abstracts[name](np.transpose(value.data, order)))
        result_axes = (*kept, *function.target)
        axes = canonical(result_axes)
        return NamedArray(axes, np.transpose(data, [result_axes.index(a) for a in axes]))

    def node(self, expr: Expr) -> NamedArray:
        """What stands in caches only: sums over time, lags, running products."""
        match expr:
            case Past():
                return self._past(expr)
            case Lag(terms, constant):
                clock = {TIME: self.token, **self.bound}
                value = sum(c * clock[v] for v, c in terms) + constant
                return NamedArray((), np.asarray(float(value)))
            case Run(var, low, high, arg):
                axes = canonical(expr.axes)
                product = np.ones([self.size(a) for a in axes], dtype_of(expr.field))
                for token in range(self._instant(low) + 1, self._instant(high) + 1):
                    product = product * evaluate_expr(arg, self._within(var, token)).data
                return NamedArray(axes, product)
        raise TypeError(f"{type(expr).__name__} has no place in a System")

    def _instant(self, at: Now | Bound) -> int:
        return (self.token if isinstance(at, Now) else self.bound[at.var]) - at.lag

    def _within(self, var: str, token: int) -> _Moment:
        return _Moment(self.run, self.token, {**self.bound, var: token})

    def _past(self, expr: Past) -> NamedArray:
        outer = self.token if expr.outer is None else self.bound[expr.outer]
        axes = canonical(expr.axes)
        total = np.zeros([self.size(a) for a in axes], dtype_of(expr.field))
        for token in expr.relation.tokens(outer - expr.lag, self.run.length):
            total = total + evaluate_expr(expr.body, self._within(expr.var, token)).data
        return NamedArray(axes, total)
