"""Well-formedness of a mixer: what every stage after this one may rely on."""

from __future__ import annotations

from collections.abc import Iterator

from dsfc.expr.build import walk
from dsfc.expr.declarations import MapTensor
from dsfc.expr.graph import components, reachable
from dsfc.expr.over_time import Lag, Past, Run
from dsfc.expr.reserved_names import FIRST, TIME
from dsfc.expr.tree import (
    Abstract,
    Axis,
    Bound,
    Draw,
    Expr,
    Field,
    Fir,
    LinearMap,
    Map,
    Now,
    Param,
    Ref,
    Time,
    children,
)
from dsfc.mixer.axes import size_axes, used_axes
from dsfc.mixer.ir import Mixer, StateDecl
from dsfc.mixer.reads import mentions, mixer_reads
from dsfc.mixer.times import at_lag, is_lag


class MixerError(AssertionError):
    """A mixer that no spec can mean: a fault of the program, not of its user."""


def verify(mixer: Mixer) -> None:
    """Checks the invariants of a typed mixer.

    Names are unique; every name read exists and has the type it is read with; expressions have
    the axes of what they define; definitions stand after what they read, and only states read
    their own past; indices of sums are bound where they are used; lags are distances.

    Raises:
        MixerError: naming the value that is wrong and why.
    """
    for check in (_check_axes, _check_names, _check_values, _check_order, _check_reached):
        for problem in check(mixer):
            raise MixerError(f"mixer `{mixer.name}`: {problem}")


def _check_axes(mixer: Mixer) -> Iterator[str]:
    axes = [d.axis for d in mixer.axes]
    if axes != sorted(set(axes)) or len({a.name for a in axes}) != len(axes):
        yield f"axes {axes} are not in canonical order, each once"
    missing = used_axes(mixer) - set(axes)
    if missing:
        yield f"axes {sorted(missing)} are used but not listed"
    for dim in mixer.axes:
        if not set(size_axes(dim)) <= set(axes):
            yield f"the size of `{dim.axis}` needs an axis that is not listed"
    for tensor in (*mixer.inputs, *mixer.params, *mixer.buffers):
        groups = (
            (tensor.map.each, tensor.map.source, tensor.map.target)
            if isinstance(tensor, MapTensor)
            else (tensor.axes,)
        )
        if any(list(group) != sorted(set(group)) for group in groups):
            yield f"axes of `{tensor.name}` are not in canonical order"
    for state in mixer.states:
        if list(state.axes) != sorted(set(state.axes)):
            yield f"axes of `{state.name}` are not in canonical order"


def _all_names(mixer: Mixer) -> list[str]:
    groups = (
        mixer.inputs,
        mixer.params,
        mixer.buffers,
        mixer.abstracts,
        mixer.definitions,
        mixer.states,
    )
    return [item.name for group in groups for item in group]


def _check_names(mixer: Mixer) -> Iterator[str]:
    names = _all_names(mixer)
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        yield f"names {twice} stand for two things"
    clash = set(names) & ({d.axis.name for d in mixer.axes} | {TIME, FIRST})
    if clash:
        yield f"names {sorted(clash)} are axes or reserved"
    if mixer.definition(mixer.output) is None and mixer.state(mixer.output) is None:
        yield f"the output `{mixer.output}` is not defined"


def _check_values(mixer: Mixer) -> Iterator[str]:
    known = _Known(mixer)
    for definition in mixer.definitions:
        yield from known.problems(definition.name, definition.value)
        if definition.value.time is Time.PAIR:
            yield f"`{definition.name}` depends on a summed token outside its sum"
    for state in mixer.states:
        yield from _check_state(state, known)
    output = mixer.definition(mixer.output)
    kind = output.value.field if output is not None else Field.REAL
    if kind is Field.COMPLEX:
        yield "the output is complex"
    for tensor in (*mixer.params, *mixer.buffers):
        if tensor.init is not None and any(
            isinstance(n, Ref | Param | Map) for n in walk(tensor.init.value)
        ):
            yield f"the initialiser of `{tensor.name}` reads another name"


def _check_state(state: StateDecl, known: _Known) -> Iterator[str]:
    if (state.update is None) == (state.flow is None):
        yield f"state `{state.name}` has not exactly one of update and flow"
        return
    value = state.update if state.flow is None else state.flow.drift
    assert value is not None
    yield from known.problems(state.name, value)
    if value.axes != frozenset(state.axes) or value.field > state.field:
        yield f"the update of `{state.name}` has another type than the state"
    if state.flow is not None:
        yield from known.problems(state.name, state.flow.step)
        if not state.flow.step.axes <= frozenset(state.axes):
            yield f"the step of `{state.name}` has axes the state lacks"


class _Known:
    """The types of a mixer's names."""

    def __init__(self, mixer: Mixer) -> None:
        self._streams: dict[str, tuple[frozenset[Axis], Field, Time]] = {
            FIRST: (frozenset(), Field.REAL, Time.TOKEN)
        }
        self._params: dict[str, tuple[frozenset[Axis], Field]] = {}
        self._maps: dict[str, LinearMap] = {}
        self._abstracts = {a.name: (a.source, a.target) for a in mixer.abstracts}
        for tensor in mixer.inputs:
            self._streams[tensor.name] = (frozenset(tensor.axes), tensor.field, Time.TOKEN)
        for held in (*mixer.params, *mixer.buffers):
            if isinstance(held, MapTensor):
                self._maps[held.name] = held.map
            else:
                self._params[held.name] = (frozenset(held.axes), held.field)
        for state in mixer.states:
            self._streams[state.name] = (frozenset(state.axes), state.field, Time.STATE)
        for d in mixer.definitions:
            self._streams[d.name] = (d.value.axes, d.value.field, d.value.time)

    def problems(self, owner: str, value: Expr) -> Iterator[str]:
        """Yields what is wrong inside the value of `owner`."""
        for node in walk(value):
            problem = self._problem(node)
            if problem is not None:
                yield f"in `{owner}`: {problem}"
        yield from (f"in `{owner}`: {p}" for p in _unbound(value, frozenset()))

    def _problem(self, node: Expr) -> str | None:
        match node:
            case Ref():
                return self._ref(node)
            case Param():
                right = self._params.get(node.name) == (node.over, node.kind)
                return None if right else f"`{node.name}` is not a tensor of that type"
            case Map():
                right = self._maps.get(node.map.name) == node.map
                return None if right else f"`{node.map.name}` is not that map"
            case Abstract():
                right = self._abstracts.get(node.name) == (node.source, node.target)
                return None if right else f"`{node.name}` is not that abstract map"
            case Fir() if not isinstance(node.arg, Ref) or not isinstance(node.arg.at, Now):
                return "the argument of a filter is not a name at the present token"
            case Fir() if node.axis not in node.weight.axes or node.axis in node.arg.axes:
                return f"a filter along `{node.axis}` has the axis in the wrong operand"
            case Lag() if not is_lag(node) or {abs(c) for _, c in node.terms} != {1}:
                return "a time scalar is not the distance of two tokens"
            case Run() if at_lag(node.low, 0) == at_lag(node.high, 0):
                return "a product runs over a window of tokens, not between two indices"
            case Draw():
                return "a draw outside an initialiser"
            case _:
                return None

    def _ref(self, node: Ref) -> str | None:
        if self._streams.get(node.name) != (node.over, node.kind, node.when):
            return f"`{node.name}` is not a stream of that type"
        if (node.at is None) != (node.when is Time.CONST):
            return f"`{node.name}` is read at a time it does not have, or without one"
        return None


def _unbound(expr: Expr, bound: frozenset[str]) -> Iterator[str]:
    """Time indices that no enclosing sum binds; each distinct node once per set of bound ones."""
    stack, seen = [(expr, bound)], set()
    while stack:
        node, inside = stack.pop()
        if (node, inside) in seen:
            continue
        seen.add((node, inside))
        used: set[str] = set()
        match node:
            case Ref() if isinstance(node.at, Bound):
                used = {node.at.var}
            case Lag():
                used = {var for var, _ in node.terms} - {TIME}
            case Run():
                used = {at.var for at in (node.low, node.high) if isinstance(at, Bound)}
            case Past() if node.outer is not None:
                used = {node.outer}
            case _:
                pass
        if used - inside:
            yield f"the index {sorted(used - inside)} is bound by no sum"
        if isinstance(node, Past | Run):
            if node.var in inside:
                yield f"the index `{node.var}` is bound twice"
            inside = inside | {node.var}
        stack.extend((child, inside) for child in children(node))


def _check_order(mixer: Mixer) -> Iterator[str]:
    graph = mixer_reads(mixer)
    seen: set[str] = set()
    names = {d.name for d in mixer.definitions}
    for definition in mixer.definitions:
        late = {r.name for r in graph[definition.name]} & names - seen
        if late:
            yield f"`{definition.name}` stands before {sorted(late)}, which it reads"
        seen.add(definition.name)
    edges = {name: sorted({r.name for r in readings}) for name, readings in graph.items()}
    backward = {s.name: s.backward for s in mixer.states}
    for part in components(edges):
        ways = {backward[name] for name in part if name in backward}
        if len(ways) > 1:
            yield f"states among {list(part)} read each other and run different ways"
            continue
        turn = ways == {True}
        now = {
            n: [r.name for r in graph[n] if (-r.lags.most if turn else r.lags.least) <= 0]
            for n in part
        }
        for circle in components(now):
            if len(circle) > 1 or circle[0] in now[circle[0]]:
                yield f"{list(circle)} depend on their own present value"


def _check_reached(mixer: Mixer) -> Iterator[str]:
    names = set(_all_names(mixer))
    edges = mentions(mixer)
    lost = names - reachable(edges, [mixer.output])
    # The only input says how many tokens there are, reached or not.
    lost -= {t.name for t in mixer.inputs} if len(mixer.inputs) == 1 else set()
    if lost:
        yield f"the output does not reach {sorted(lost)}"
