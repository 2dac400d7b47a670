"""Putting two systems side by side: what of them is one array, and whether they can be compared."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dsfc.expr.declarations import AbstractMap, Constraint, MapTensor, Tensor
from dsfc.expr.reserved_names import FIRST
from dsfc.expr.tree import Axis, Expr, Field, argument_names
from dsfc.system.ir import System
from dsfc.system.known import fixed, promises
from dsfc.trusted.claim import Claim
from dsfc.trusted.closed import closed
from dsfc.trusted.generalize_inputs import common_names, system_of

LARGEST = 256
"""No size of a claim is larger; what is beyond is shown for all sizes or not at all."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


def comparable(claim: Claim) -> None:
    """Raises a ValueError that says why two systems cannot be put side by side."""
    sizes = dict(claim.sizes)
    if any(type(k) is not int or not 1 <= k <= LARGEST for k in sizes.values()):
        raise ValueError(f"a size is not an integer from 1 to {LARGEST}")
    for system in (claim.a, claim.b):
        _well_formed(system, sizes)
    renamed = dict(claim.names)
    if len(renamed) != len(claim.names):
        raise ValueError("two names are identified with one")
    own = _declared(claim.b)
    for name in renamed:
        if name not in own:
            raise ValueError(f"`{name}` is no input or parameter of the second mixer")
    if len({renamed.get(name, name) for name in own}) != len(own):
        raise ValueError("two names are identified with one")
    theirs = _declared(claim.a)
    # That a is no case of b is said of all values of b's parameters, whatever they are called.
    alone = not claim.equal and claim.case
    if claim.locality is not None and not (alone and 0 <= claim.locality < 64):
        raise ValueError(
            "how far back slots read is said where a is no case of b; it is not far, nor negative"
        )
    for name, shape in own.items():
        if alone and _role(claim.b, name) != "input":
            continue
        same = renamed.get(name, name)
        if same in theirs and _kind(theirs[same]) != _kind(shape):
            raise ValueError(
                f"`{same}` does not have the same axes, or not the same field, in both"
            )
        if same in theirs and _role(claim.a, same) != _role(claim.b, name):
            raise ValueError(f"`{same}` is an input of one and none of the other")
        if same not in theirs and same != name:
            raise ValueError(f"`{same}` is no input or parameter of the first mixer")
    maps = {m.name: m for m in claim.a.abstracts}
    for m in claim.b.abstracts:
        if m.name in maps and _ends(maps[m.name]) != _ends(m):
            raise ValueError(f"`{m.name}` does not take and give the same axes in both")
    outputs = [system.outputs[0] for system in (claim.a, claim.b)]
    shapes = [tuple(sizes[a.name] for a in o.axes) for o in outputs]
    axes = [tuple(a.name for a in o.axes) for o in outputs]
    if axes[0] != axes[1] and 1 not in (len(axes[0]), len(axes[1])):
        raise ValueError(f"the outputs have axes {axes[0]} and {axes[1]}")
    if _count(shapes[0]) != _count(shapes[1]):
        raise ValueError(f"the outputs have shapes {shapes[0]} and {shapes[1]}")
    if outputs[0].field is not outputs[1].field:
        raise ValueError("one output is complex")


def _ends(m: AbstractMap) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the axes that an abstract map takes and gives."""
    return tuple(a.name for a in m.source), tuple(a.name for a in m.target)


def _count(shape: tuple[int, ...]) -> int:
    out = 1
    for k in shape:
        out *= k
    return out


def _well_formed(system: System, sizes: Mapping[str, int]) -> None:
    names = [t.name for t in (*system.inputs, *system.params, *system.buffers)]
    names += [s.name for s in system.streams] + [b.state for b in system.blocks]
    names += [a.name for a in system.abstracts]
    if len(set(names)) != len(names):
        raise ValueError("two values of a system have one name")
    # What is accepted is printed by the names of both: a line break in one would say more.
    if not _IDENTIFIER.fullmatch(system.name):
        raise ValueError(f"`{system.name}` is not a name")
    for name in (*names, *(d.axis.name for d in system.axes)):
        if not _IDENTIFIER.fullmatch(name) or name == FIRST:
            raise ValueError(f"`{name}` is not a name")
    for d in system.axes:
        if d.axis.name not in sizes:
            raise ValueError(f"no size is given for `{d.axis.name}`")
        if d.axis.copy_of is not None and sizes.get(d.axis.copy_of) != sizes[d.axis.name]:
            raise ValueError(f"`{d.axis.name}` has another size than what it is a copy of")
    if len({d.axis.name for d in system.axes}) != len(system.axes):
        raise ValueError("two axes have one name")
    if not system.inputs:
        raise ValueError("a system has no input")
    if len(system.outputs) != 1 or system.outputs[0].over_time:
        raise ValueError("a system has not one output per token")
    closed(system)


def _declared(system: System) -> dict[str, Tensor | MapTensor]:
    return {t.name: t for t in (*system.inputs, *system.params, *system.buffers)}


def unlike(claim: Claim) -> frozenset[str]:
    """Returns what b has another array of than a has by that name.

    A buffer with a fixed value is an array of its own: none that may have other values, and none
    that has another. Two with one value are one array.
    """
    names, a, b = dict(claim.names), fixed(claim.a), fixed(claim.b)
    theirs = _declared(claim.a)
    shared = {
        name: same for name in _declared(claim.b) if (same := names.get(name, name)) in theirs
    }
    return frozenset(n for n, same in shared.items() if not _alike(a.get(same), b.get(n)))


OTHER = "b:"
"""Starts the names of b's arrays that a has another of."""


def array_names(claim: Claim, second: bool) -> dict[str, str]:
    """Returns names in one system → what generators call them; those left out stand for themselves.

    Two arrays have two names: what is known of one is not known of the other.
    """
    names = common_names(claim, second)
    return names | {n: OTHER + names.get(n, n) for n in unlike(claim)} if second else names


def _alike(a: object, b: object) -> bool:
    """Whether two expressions are the same up to the positions of their axes."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Axis) and isinstance(b, Axis):
        return a.name == b.name
    if isinstance(a, Expr):
        names = argument_names(type(a))
        return all(_alike(getattr(a, n), getattr(b, n)) for n in names)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_alike(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, frozenset) and isinstance(b, frozenset):
        return sorted(map(repr, a)) == sorted(map(repr, b))
    return a == b


def _role(system: System, name: str) -> str:
    return "input" if any(t.name == name for t in system.inputs) else "parameter or buffer"


def _kind(t: Tensor | MapTensor) -> object:
    """What must agree for one name to be one array: its axes, as it is stored, and its field."""
    if isinstance(t, Tensor):
        return "tensor", tuple(a.name for a in t.axes), t.field
    m = t.map
    parts = (m.each, m.target, m.source)
    return "map", tuple(tuple(a.name for a in axes) for axes in parts), m.field


def positive(claim: Claim) -> frozenset[str]:
    """Names of generators of what one declares positive; the claim is about its range."""
    return _promised(claim, Constraint.POSITIVE) | units(claim)


def _promised(claim: Claim, what: Constraint) -> frozenset[str]:
    return frozenset(
        names.get(name, name)
        for names, system in ((array_names(claim, k), system_of(claim, k)) for k in (False, True))
        for name, promise in promises(system).items()
        if promise is what
    )


def nonneg(claim: Claim) -> frozenset[str]:
    """Names of generators of what one declares at least 0."""
    return _promised(claim, Constraint.NONNEG) | positive(claim)


def units(claim: Claim) -> frozenset[str]:
    """Names of generators of what one declares in (0, 1)."""
    return _promised(claim, Constraint.UNIT)


def nonzero(claim: Claim) -> frozenset[str]:
    """Returns common names of what a declares other than 0, and is."""
    names = common_names(claim, False)
    return frozenset(
        names.get(name, name)
        for name, promise in promises(system_of(claim, False)).items()
        if promise in (Constraint.NONZERO, Constraint.UNIT)
    )


def never_zero_arrays(claim: Claim) -> frozenset[str]:
    """Returns common names of what is other than 0 in a, or b alone has and a claim leaves free.

    Of what is free some values do, and those that are not 0 are enough.
    """
    own = {**own_parameters(claim), **slots(claim)}
    solved = {c.solved.partition("[")[0] for c in claim.conditions}
    return nonzero(claim) | (own.keys() - solved)


def real_arrays(claim: Claim) -> frozenset[str]:
    """Returns common names of b's inputs and parameters that are real."""
    names, system = array_names(claim, True), system_of(claim, True)
    return frozenset(
        names.get(t.name, t.name)
        for t in (*system.inputs, *system.params)
        if (t.field if isinstance(t, Tensor) else t.map.field) is Field.REAL
    )


def side_names(claim: Claim) -> frozenset[str]:
    """Returns the common names of inputs, parameters and buffers of both."""
    return frozenset(
        array_names(claim, k).get(name, name)
        for k in (False, True)
        for name in _declared(system_of(claim, k))
    )


def own_parameters(claim: Claim) -> Mapping[str, Constraint]:
    """Returns the parameters of b that a does not have, by common name, with their ranges."""
    return _own(claim, system_of(claim, True).params)


def slots(claim: Claim) -> Mapping[str, Constraint]:
    """Returns the inputs of b that a does not have, by common name, with their ranges."""
    return {} if claim.free else _own(claim, claim.b.inputs)


def _own(claim: Claim, tensors: tuple[Tensor | MapTensor, ...]) -> Mapping[str, Constraint]:
    names = array_names(claim, True)
    theirs = {common_names(claim, False).get(t, t) for t in _declared(system_of(claim, False))}
    out = {}
    for t in tensors:
        same = names.get(t.name, t.name)
        if same not in theirs:
            out[same] = t.constraint if isinstance(t, Tensor) else Constraint.NONE
    return out


_WITHIN = {
    Constraint.UNIT: {Constraint.POSITIVE, Constraint.NONNEG, Constraint.NONZERO},
    Constraint.POSITIVE: {Constraint.NONNEG, Constraint.NONZERO},
}
"""Ranges → the larger ones that hold them; each holds itself, and all are in `NONE`."""


def ranges(claim: Claim) -> dict[str, tuple[Constraint, Constraint]]:
    """Returns arrays that a and b declare in different ranges: common name → both promises.

    A buffer with a fixed value is left out: it has that value in both, or they are two arrays.
    """
    names, values = array_names(claim, True), fixed(claim.b)
    theirs = {common_names(claim, False).get(n, n): c for n, c in promises(claim.a).items()}
    declared = {names.get(n, n): (theirs.get(names.get(n, n), c), c)
             for n, c in promises(claim.b).items() if n not in values}  # fmt: skip
    return {name: pair for name, pair in declared.items() if pair[0] is not pair[1]}


def narrower(claim: Claim) -> str | None:
    """Returns what both have and b has in a smaller range than a."""
    for name, (small, large) in ranges(claim).items():
        if large not in (Constraint.NONE, *_WITHIN.get(small, ())):
            return name
    return None
