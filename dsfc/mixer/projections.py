"""A mixer whose linear maps of its input are inputs themselves.

What a layer of PyTorch does to its input, `nn.Linear`s do. A map W that is applied to the only
input u as it stands, at the present token, and to nothing else, becomes an input W_u: the mixer of
W_u = W u is the mixer of u. Maps of earlier tokens or of anything else stay, and so does u where
something else reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dsfc.expr.build import replaced, walk
from dsfc.expr.declarations import MapTensor, Projection, Tensor
from dsfc.expr.reserved_names import FIRST, TIME
from dsfc.expr.tree import Expr, Field, Map, Now, Param, Ref, Time
from dsfc.mixer.ir import Flow, Mixer, StateDecl
from dsfc.mixer.reach import reached


def projected(mixer: Mixer) -> tuple[Mixer, tuple[Projection, ...]]:
    """Returns the mixer with maps of its input as inputs, and what these are maps of.

    Args:
        mixer: any; one of several inputs, or whose input has not one axis, is returned as it is.
    """
    if len(mixer.inputs) != 1 or len(mixer.inputs[0].axes) != 1:
        return mixer, ()
    maps = _maps_of_input(mixer)
    if not maps:
        return mixer, ()
    names = _Names(mixer)
    projections = tuple(Projection(names.of(t, mixer.inputs[0]), t) for t in maps)
    values: dict[Expr, Expr] = {}
    inputs = []
    for p in projections:
        axes = p.map.map.target
        values[_applied(p.map, mixer.inputs[0])] = Ref(
            p.input, frozenset(axes), Field.REAL, Time.TOKEN, Now(0)
        )
        inputs.append(Tensor(p.input, axes, span=p.map.span))
    core = replace(
        mixer,
        inputs=(*mixer.inputs, *inputs),
        definitions=tuple(replace(d, value=replaced(d.value, values)) for d in mixer.definitions),
        states=tuple(_state(s, values) for s in mixer.states),
        claims=(),
    )
    return reached(core), projections


def _maps_of_input(mixer: Mixer) -> list[MapTensor]:
    """Trained real maps that are applied to the input at the present token, and to nothing else."""
    (u,) = mixer.inputs
    used: dict[str, set[Expr]] = {}
    for value in _values(mixer):
        for e in walk(value):
            if isinstance(e, Map):
                used.setdefault(e.map.name, set()).add(e)
            elif isinstance(e, Param):
                used.setdefault(e.name, set()).add(e)
    return [
        t
        for t in mixer.params
        if isinstance(t, MapTensor)
        and not t.map.each
        and t.map.field is Field.REAL
        and used.get(t.name) == {_applied(t, u)}
    ]


def _applied(t: MapTensor, u: Tensor) -> Expr:
    """The map of the input at the present token."""
    return Map(t.map, Ref(u.name, frozenset(u.axes), u.field, Time.TOKEN, Now(0)))


def _values(mixer: Mixer) -> Iterator[Expr]:
    yield from (d.value for d in mixer.definitions)
    for s in mixer.states:
        if s.update is not None:
            yield s.update
        if s.flow is not None:
            yield from (s.flow.drift, s.flow.step)


def _state(state: StateDecl, values: dict[Expr, Expr]) -> StateDecl:
    update, flow = state.update, state.flow
    if update is not None:
        update = replaced(update, values)
    if flow is not None:
        flow = Flow(replaced(flow.drift, values), flow.rule, replaced(flow.step, values))
    return replace(state, update=update, flow=flow)


class _Names:
    """Names of inputs that stand for maps."""

    def __init__(self, mixer: Mixer) -> None:
        self._taken = {t.name for t in (*mixer.inputs, *mixer.params, *mixer.buffers)}
        self._taken |= {a.name for a in mixer.abstracts}
        self._taken |= {d.name for d in mixer.definitions} | {s.name for s in mixer.states}
        self._taken |= {d.axis.name for d in mixer.axes} | {TIME, FIRST}

    def of(self, t: MapTensor, u: Tensor) -> str:
        """Returns a name for the map of an input: `W_u`, `W_u_2`, `W_u_3` and so on."""
        stem = name = f"{t.name}_{u.name}"
        number = 1
        while name in self._taken:
            number += 1
            name = f"{stem}_{number}"
        self._taken.add(name)
        return name
