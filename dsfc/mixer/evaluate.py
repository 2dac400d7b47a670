"""The meaning of the language in double precision: recursion over time and double loops.

Nothing here is derived or rearranged: a sum over the past is a loop over tokens, a running product
a loop inside it, a flow is discretised at every token from the drift as written. It is the
yardstick for everything downstream, and slow on purpose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsfc.expr.declarations import FlowRule, MapTensor
from dsfc.expr.evaluate import NamedArray, canonical, dtype_of
from dsfc.expr.evaluate import evaluate as evaluate_expr
from dsfc.expr.graph import components
from dsfc.expr.max_plus import LOWEST
from dsfc.expr.over_time import Lag, Past, Relation, Run
from dsfc.expr.reserved_names import FIRST, TIME
from dsfc.expr.table import row
from dsfc.expr.tree import Axis, Bound, Expr, Field, LinearMap, Now, Ref, Time
from dsfc.mixer.ir import Flow, Mixer, StateDecl
from dsfc.mixer.reads import Lags, Read, mixer_reads

Array = NDArray[Any]
FeatureMap = Callable[[Array], Array]


def _scalar(value: float) -> NamedArray:
    return NamedArray((), np.asarray(value))


def evaluate(
    mixer: Mixer,
    inputs: Mapping[str, Array],
    params: Mapping[str, Array],
    sizes: Mapping[str, int],
    abstracts: Mapping[str, FeatureMap] | None = None,
    initial: Mapping[str, Array] | None = None,
) -> dict[str, Array]:
    """Returns the output and every definition and state, run literally.

    Args:
        mixer: what to run.
        inputs: `[L, *axes]` by name, in canonical order of axes.
        params: parameters and buffers by name: tensors `[*axes]`, maps `[*each, *target, *source]`.
        sizes: size of every axis by name, as `dsfc.mixer.sizes` gives it.
        abstracts: for each abstract map a function `[..., *source] -> [..., *target]`.
        initial: states before the first token (after the last, for backward states) `[*axes]`;
            where absent zero, and `LOWEST` of running maxima.

    Returns:
        `[L, *axes]` by name; definitions that do not depend on time are `[*axes]`.
    """
    length = next(iter(inputs.values())).shape[0] if inputs else 0
    run = _Run(mixer, inputs, params, sizes, abstracts or {}, initial or {}, length)
    return run.everything()


class _Run:
    """All values of one mixer over one sequence; value k of a name is its value at token k."""

    def __init__(
        self,
        mixer: Mixer,
        inputs: Mapping[str, Array],
        params: Mapping[str, Array],
        sizes: Mapping[str, int],
        abstracts: Mapping[str, FeatureMap],
        initial: Mapping[str, Array],
        length: int,
    ) -> None:
        self.mixer = mixer
        self.length = length
        self.sizes = sizes
        self.abstracts = abstracts
        self.tensors = self._named(params)
        self.maps = {
            t.name: np.asarray(params[t.name])
            for t in (*mixer.params, *mixer.buffers)
            if isinstance(t, MapTensor)
        }
        self.states = {s.name: s for s in mixer.states}
        self.definitions = {d.name: d for d in mixer.definitions}
        self.initial = {
            s.name: NamedArray(s.axes, np.asarray(initial[s.name]))
            for s in mixer.states
            if s.name in initial
        }
        self.values: dict[str, dict[int, NamedArray]] = {}
        for t in mixer.inputs:
            data = np.asarray(inputs[t.name])
            self.values[t.name] = {k: NamedArray(t.axes, data[k]) for k in range(length)}

    def _named(self, params: Mapping[str, Array]) -> dict[str, NamedArray]:
        return {
            t.name: NamedArray(t.axes, np.asarray(params[t.name]))
            for t in (*self.mixer.params, *self.mixer.buffers)
            if not isinstance(t, MapTensor)
        }

    def everything(self) -> dict[str, Array]:
        """Runs the components of the mixer one after the other, each over all tokens."""
        graph = mixer_reads(self.mixer)
        edges = {name: sorted({r.name for r in readings}) for name, readings in graph.items()}
        for part in components(edges):
            backward = any(n in self.states and self.states[n].backward for n in part)
            tokens = range(self.length - 1, -1, -1) if backward else range(self.length)
            self.values.update((name, {}) for name in part)
            order = _at_one_token(part, graph)
            for token in tokens:
                for name in order:
                    self.at(name, token)
        return {name: self._stacked(name) for name in edges}

    def _stacked(self, name: str) -> Array:
        if name in self.states:
            axes, kind = self.states[name].axes, self.states[name].field
        else:
            value = self.definitions[name].value
            axes, kind = canonical(value.axes), value.field
            if value.time is Time.CONST:
                return self._constant(name).data
        shape = (self.length, *(self.sizes[a.name] for a in axes))
        out = np.zeros(shape, dtype_of(kind))
        for token, array in self.values[name].items():
            out[token] = array.data
        return out

    def _constant(self, name: str) -> NamedArray:
        return evaluate_expr(self.definitions[name].value, _Moment(self, 0))

    def at(self, name: str, token: int) -> NamedArray:
        """The value of a name at a token of the sequence."""
        known = self.values[name]
        if token not in known:
            if name in self.definitions:
                known[token] = evaluate_expr(self.definitions[name].value, _Moment(self, token))
            else:
                known[token] = self._updated(self.states[name], token)
        return known[token]

    def _updated(self, state: StateDecl, token: int) -> NamedArray:
        moment = _Moment(self, token)
        if state.flow is not None:
            return _discretised(state, state.flow, moment)
        assert state.update is not None
        value = evaluate_expr(state.update, moment).expand(state.axes, moment.size)
        return NamedArray(state.axes, value.data.astype(dtype_of(state.field)))

    def outside(self, name: str, token: int, axes: tuple[Axis, ...], kind: Field) -> NamedArray:
        """The value of a name outside the sequence: 0, but for the initial value of a state.

        A running maximum is `LOWEST` before the sequence.
        """
        state = self.states.get(name)
        if state is not None and name in self.initial:
            start = self.length if state.backward else -1
            if token == start:
                return self.initial[name]
        below = state is not None and state.maximum and token < 0
        shape = [self.sizes[a.name] for a in axes]
        return NamedArray(axes, np.full(shape, LOWEST if below else 0.0, dtype_of(kind)))


def _at_one_token(part: tuple[str, ...], graph: Mapping[str, frozenset[Read]]) -> tuple[str, ...]:
    """The names of a stage so that each stands after those it reads at the same token."""
    now = Lags(0, 0)
    edges = {n: sorted(r.name for r in graph[n] if r.name in part and r.lags == now) for n in part}
    return tuple(name for group in components(edges) for name in group)


@dataclass(frozen=True, slots=True)
class _Moment:
    """The leaves of an expression at one token.

    Attributes:
        run: all values.
        token: the present token i.
        bound: tokens of the indices bound by enclosing sums.
        present: values that stand for a name at the present token (the state of a flow).
    """

    run: _Run
    token: int
    bound: Mapping[str, int] = field(default_factory=dict)
    present: Mapping[str, NamedArray] = field(default_factory=dict)

    def size(self, axis: Axis) -> int:
        """Size of an axis."""
        return self.run.sizes[axis.name]

    def param(self, name: str) -> NamedArray:
        """A parameter or buffer."""
        return self.run.tensors[name]

    def matrix(self, map: LinearMap) -> Array:
        """The stored array of a map."""
        return self.run.maps[map.name]

    def instant(self, at: Now | Bound) -> int:
        """The token of a time index."""
        return (self.token if isinstance(at, Now) else self.bound[at.var]) - at.lag

    def ref(self, ref: Ref) -> NamedArray:
        """A named value; zero outside the sequence, which a constant does not have."""
        axes = canonical(ref.over)
        if ref.at is None:
            return self.run._constant(ref.name)
        if ref.name in self.present and ref.at == Now(0):
            return self.present[ref.name]
        token = self.instant(ref.at)
        inside = 0 <= token < self.run.length
        if ref.name == FIRST:
            return _scalar(1.0 if token == 0 and inside else 0.0)
        if not inside:
            return self.run.outside(ref.name, token, axes, ref.kind)
        return self.run.at(ref.name, token)

    def abstract(self, name: str, value: NamedArray) -> NamedArray:
        """An abstract map, called with the axes it takes at the end."""
        function = next(a for a in self.run.mixer.abstracts if a.name == name)
        kept = tuple(a for a in value.axes if a not in function.source)
        order = [value.axes.index(a) for a in (*kept, *function.source)]
        data = np.asarray(self.run.abstracts[name](np.transpose(value.data, order)))
        result_axes = (*kept, *function.target)
        axes = canonical(result_axes)
        return NamedArray(axes, np.transpose(data, [result_axes.index(a) for a in axes]))

    def node(self, expr: Expr) -> NamedArray:
        """A sum over time, a running product or a lag."""
        match expr:
            case Past():
                return self._past(expr)
            case Run():
                return self._run(expr)
            case Lag():
                clock = {TIME: self.token, **self.bound}
                total = sum(c * clock[v] for v, c in expr.terms) + expr.constant
                return _scalar(float(total))
            case _:
                raise TypeError(f"{type(expr).__name__} has no value")

    def _within(self, var: str, token: int) -> _Moment:
        return _Moment(self.run, self.token, {**self.bound, var: token}, self.present)

    def _past(self, past: Past) -> NamedArray:
        outer = self.token if past.outer is None else self.bound[past.outer]
        tokens = _tokens(past.relation, outer - past.lag, self.run.length)
        total = self._filled(past, 0.0)
        for token in tokens:
            total = total + evaluate_expr(past.body, self._within(past.var, token)).data
        return NamedArray(canonical(past.axes), np.asarray(total))

    def _run(self, run: Run) -> NamedArray:
        low, high = self.instant(run.low), self.instant(run.high)
        product = self._filled(run, 1.0)
        for token in range(low + 1, high + 1):
            product = product * evaluate_expr(run.arg, self._within(run.var, token)).data
        return NamedArray(canonical(run.axes), np.asarray(product))

    def _filled(self, expr: Expr, value: float) -> Array:
        shape = [self.size(a) for a in canonical(expr.axes)]
        return np.full(shape, value, dtype_of(expr.field))


def _tokens(relation: Relation, outer: int, length: int) -> range:
    """Tokens of the sequence that stand in a relation to `outer`.

    Written here again: the meaning of a mixer shares no code with that of its System.
    """
    match relation:
        case Relation.UP_TO:
            return range(0, min(outer + 1, length))
        case Relation.BEFORE:
            return range(0, min(outer, length))
        case Relation.FROM:
            return range(max(outer, 0), length)
        case Relation.AFTER:
            return range(max(outer + 1, 0), length)


# --- flows ----------------------------------------------------------------------------------------


def _discretised(state: StateDecl, flow: Flow, moment: _Moment) -> NamedArray:
    """One step of x' = A x + b, with A and b found by evaluating the drift on unit vectors.

    With M = Δ A: zoh gives e^M x + φ(M) Δ b, φ(M) = (e^M - 1) / M; euler e^M x + Δ b; bilinear
    (1 - M/2)⁻¹ ((1 + M/2) x + Δ b).
    """
    shape = tuple(moment.size(a) for a in state.axes)
    kind = dtype_of(state.field)
    before = moment.ref(
        Ref(state.name, frozenset(state.axes), state.field, Time.STATE,
            Now(-1 if state.backward else 1))
    )  # fmt: skip
    matrix, offset = _affine(state, flow.drift, moment, shape, kind)
    step = evaluate_expr(flow.step, moment).expand(state.axes, moment.size).data.reshape(-1)
    matrix, offset = step[:, None] * matrix, step * offset
    x = before.data.astype(kind).reshape(-1)
    if flow.rule is FlowRule.BILINEAR:
        eye = np.eye(len(x))
        after = np.linalg.solve(eye - matrix / 2, (eye + matrix / 2) @ x + offset)
    else:
        exponent = np.diag(matrix)
        scale = row("exprel").value(exponent) if flow.rule is FlowRule.ZOH else 1.0
        after = np.exp(exponent) * x + scale * offset
    return NamedArray(state.axes, after.reshape(shape))


def _affine(
    state: StateDecl, drift: Expr, moment: _Moment, shape: tuple[int, ...], kind: type[Any]
) -> tuple[Array, Array]:
    """The matrix and the offset of the drift as a function of the state, flattened."""

    def at(flat: Array) -> Array:
        held = {state.name: NamedArray(state.axes, flat.reshape(shape))}
        there = _Moment(moment.run, moment.token, moment.bound, held)
        value = evaluate_expr(drift, there).expand(state.axes, moment.size)
        return value.data.astype(kind).reshape(-1)

    size = math.prod(shape)
    offset = at(np.zeros(size, kind))
    columns = [at(unit) - offset for unit in np.eye(size, dtype=kind)]
    return np.stack(columns, axis=1), offset
