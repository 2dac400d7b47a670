"""`equivalent M`: the mixer and another are one function, under conditions or always.

Inputs and parameters of one name are one. A condition `x == e` puts e in the place of x: of an
input or a parameter, so that what is decided is the statement under the condition; of a definition
in the mixer that has it, and in the other where that has the same one, which serves a proof and no
refutation. Other conditions are assumed, see `assuming`, and a refutation has to satisfy all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from typing import TypeVar

from dsfc.claims.assuming import (
    NOWHERE,
    apart,
    assuming,
    assumptions,
    lengths,
    somewhere,
    stated,
    unused,
)
from dsfc.claims.compare import satisfied
from dsfc.claims.points import Point, Running
from dsfc.claims.verdict import Proved, Refuted, Unknown, Verdict
from dsfc.derive.again import derived_again
from dsfc.expr.build import rewrite, walk
from dsfc.expr.declarations import Constraint, Tensor
from dsfc.expr.statements import Comparison, Relation
from dsfc.expr.tree import Expr, Map, Now, Num, Param, Ref, Time
from dsfc.prover.equivalent import equivalent
from dsfc.prover.report import number_text, reach
from dsfc.prover.verdict import AtSizes, Conditionally, ProvedWhereDefined
from dsfc.prover.verdict import Proved as Equal
from dsfc.prover.verdict import Refuted as Different
from dsfc.system.inline import inliner_of
from dsfc.system.ir import Definition, Stream, System
from dsfc.trusted.balls import NotDefined
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.rules.simplified import of_each_token
from dsfc.trusted.witness import in_range

_ValueT = TypeVar("_ValueT")

NOT_HERE = "a point sets the outputs apart, but not where the conditions hold"


def same(a: System, b: System, when: tuple[Comparison, ...]) -> Verdict:
    """Decides whether two systems are one function.

    Args:
        a: the system whose claim it is; conditions speak of its values.
        b: the other.
        when: conditions.
    """
    left, right = a, b
    rest: tuple[Comparison, ...] = ()
    exact = True
    known = frozenset[str]()
    waiting = when
    while waiting:
        condition, waiting = waiting[0], waiting[1:]
        put = _replacement(left, condition, known)
        if put is None:
            rest = (*rest, condition)
            continue
        name, value = put
        known |= {name}
        exact = exact and _allowed(left, name, value)
        plain = _over_leaves(left, value)
        other = () if plain is None else _other_things(right, plain)
        if _leaf(right, name):
            if plain is None:
                return Unknown(f"what {name} is equal to is not made of inputs and parameters")
            if other:
                return Unknown(f"`{other[0]}` is no input or parameter of {b.name}")
            allowed = _allowed(right, name, plain)
            if isinstance(plain, Num) and not allowed:
                return Unknown(f"what {name} is equal to is not in its range in {b.name}")
            exact = exact and allowed
            right = _put(_with_leaves(right, left, plain), name, plain)
        elif plain is not None and not other and _same_definition(a, b, name):
            right = _put(_with_leaves(right, left, plain), name, plain)
        if any(t.name == name for t in left.params):
            rest, waiting = (_read_as_stream(x, name) for x in (rest, waiting))
        left = _put(left, name, value)
    first = a if left is a else derived_again(left)
    second = b if right is b else derived_again(right)
    if first is None or second is None:
        return Unknown("where the conditions hold there is no derived form")
    assumed = assumptions(rest)
    under = assuming(first, second, assumed) if assumed else None
    verdict = equivalent(first, second) if under is None else under
    if isinstance(verdict, Different) and not _satisfied(left, rest, verdict):
        verdict = apart(first, second, assumed) or NOT_HERE
    if isinstance(verdict, ProvedWhereDefined) and not exact:
        # Its point may be one at which a condition does not hold.
        verdict = verdict.proved
    where = f" where {' and '.join(c.text() for c in when)}" if when else ""
    said = f"equal outputs for equal inputs and parameters{where}"
    if isinstance(verdict, Equal):
        certificate = verdict.certificate
        length = somewhere(certificate, assumed) if assumed else 0
        if length is None:
            return Unknown("; ".join((NOWHERE, *unused(first, rest))))
        return Proved(
            f"{said}, wherever both have values, by {verdict.how} that the kernel accepts, "
            f"{reach(certificate.claim)}{_held(length, rest, when, exact)}",
            certificate,
        )
    if isinstance(verdict, Different):
        whole = replace(verdict, certificate=stated(verdict.certificate, assumed))
        return _refuted(whole, exact, b.name)
    if isinstance(verdict, AtSizes):
        return Unknown(f"{said} are shown {reach(verdict.certificate.claim)}")
    assert not isinstance(verdict, Conditionally)  # nobody asked for conditions
    obstacle = verdict if isinstance(verdict, str) else verdict.obstacle
    return Unknown("; ".join((obstacle, *unused(first, rest))))


def _held(
    length: int, rest: tuple[Comparison, ...], when: tuple[Comparison, ...], exact: bool
) -> str:
    """Where conditions hold, as a clause.

    An input or a parameter can be what a condition puts in its place; a definition is what it is.

    Args:
        length: tokens of a point at which those hold that put nothing in a place; 0 if none does.
        rest: these.
        when: all conditions.
        exact: whether inputs and parameters alone were replaced, by what they can be.
    """
    at = f"at a point of {'1 token' if length == 1 else f'{length} tokens'}"
    told = list[str]()
    if rest:
        kept = f"{_listed(rest)} {'hold' if len(rest) > 1 else 'holds'}"
        told.append(f"{'they hold' if exact else kept} {at}")
    if not exact:
        put = _listed(c for c in when if c not in rest)
        told.append(f"not asked is where {put} can hold")
    return "; ".join(("", *told, *lengths(rest)))


def _listed(conditions: Iterable[Comparison]) -> str:
    return " and ".join(f"`{c.text()}`" for c in conditions)


def _satisfied(left: System, rest: tuple[Comparison, ...], verdict: Different) -> bool:
    """Whether conditions hold at a point that sets the outputs apart."""
    own = {t.name for t in (*left.inputs, *left.params, *left.buffers)}
    point = _point(verdict)
    mine = replace(point, values=tuple((n, v) for n, v in point.values if n in own))
    try:
        return satisfied(Running(left, mine), rest)
    except (NotDefined, Obstacle, KeyError):
        return not rest


def _point(verdict: Different) -> Point:
    witness = verdict.witness
    values = tuple(
        (name, tuple((Fraction(p, q), Fraction(r, s)) for p, q, r, s in entries))
        for name, entries in witness.values
    )
    return Point(verdict.certificate.claim.sizes, witness.length, values)


def _refuted(verdict: Different, exact: bool, other: str) -> Verdict:
    """The refutation at a point at which the conditions hold."""
    if not exact:
        return Unknown("a point sets the outputs apart, with a definition replaced by a condition")
    witness, gap = verdict.witness, verdict.gap
    return Refuted(
        f"at token {witness.token}, entry {list(witness.index)}, y is {number_text(gap.a)}, and "
        f"{number_text(gap.b)} for {other}",
        _point(verdict).text,
        verdict.certificate,
    )


# --- conditions put in ----------------------------------------------------------------------------


def _replacement(
    system: System, condition: Comparison, known: frozenset[str]
) -> tuple[str, Expr] | None:
    """(name, value) of a condition `name == value`; None for any other, or of a known name."""
    if condition.relations != (Relation.EQUAL,) or condition.earlier is not None:
        return None
    for one, other in (condition.operands, condition.operands[::-1]):
        match one:
            case Param(name=name) | Ref(name=name, at=Now(0) | None):
                own = _leaf(system, name) or any(s.name == name for s in system.streams)
                if name in known or not own:
                    continue
                if name not in _reached(system, other) and other.axes <= one.axes:
                    constant = other.time is Time.CONST
                    if constant or isinstance(one, Ref):
                        return name, other
    return None


def _leaf(system: System, name: str) -> bool:
    """Whether a name is an input or a parameter that is a tensor."""
    return any(t.name == name and isinstance(t, Tensor) for t in (*system.inputs, *system.params))


def _names(e: Expr) -> frozenset[str]:
    maps = {x.map.name for x in walk(e) if isinstance(x, Map)}
    return frozenset(maps | {x.name for x in walk(e) if isinstance(x, Param | Ref)})


def _reached(system: System, e: Expr) -> frozenset[str]:
    """The names that a value holds, and those that their definitions hold, at whatever token."""
    definitions = {d.name: d.value for d in system.definition}
    out, stack = set[str](), [e]
    while stack:
        new = _names(stack.pop()) - out
        out |= new
        stack += [definitions[n] for n in new if n in definitions]
    return frozenset(out)


def _other_things(system: System, value: Expr) -> tuple[str, ...]:
    """Names that a value of another system's leaves reads, and that are no leaves of this one."""
    own = {t.name for t in system.buffers} | {d.name for d in system.definition}
    return tuple(sorted(_names(value) & own))


def _allowed(system: System, name: str, value: Expr) -> bool:
    """Whether a name is an input or a parameter that may have a value wherever it is put in."""
    for t in (*system.inputs, *system.params):
        if t.name == name and isinstance(t, Tensor):
            number = isinstance(value, Num) and in_range(value.value, t.constraint)
            return number or t.constraint is Constraint.NONE
    return False


def _over_leaves(system: System, value: Expr) -> Expr | None:
    """A value with the definitions it reads put in; None if it is not of inputs and parameters.

    Definitions of one name need not be the same in two mixers, and neither need buffers.
    """
    plain = inliner_of(system).of(value)
    leaves = {t.name for t in (*system.inputs, *system.params)}
    return plain if _names(plain) <= leaves else None


def _same_definition(a: System, b: System, name: str) -> bool:
    """Whether both systems have a definition of that name with one value of their leaves."""
    obstacles = []
    for system in (a, b):
        value = next((s.value for s in system.streams if s.name == name), None)
        obstacles.append(_over_leaves(system, value) if isinstance(value, Expr) else None)
    return obstacles[0] is not None and obstacles[0] == obstacles[1]


def _with_leaves(right: System, left: System, value: Expr) -> System:
    """The system with declarations, from the other, of the parameters that a value reads."""
    known = {t.name for t in (*right.inputs, *right.params, *right.buffers)}
    wanted = _names(value) - known
    more = tuple(t for t in left.params if t.name in wanted)
    axes = {d.axis.name for d in right.axes}
    more_axes = tuple(d for d in left.axes if d.axis.name not in axes)
    return replace(right, params=(*right.params, *more), axes=(*right.axes, *more_axes))


def _put(system: System, name: str, value: Expr) -> System:
    """The system with a value in the place of an input, a parameter or a definition."""
    for stream in system.streams:
        if stream.name == name:
            streams = tuple(
                replace(s, value=value) if s.name == name else s for s in system.streams
            )
            written = value if stream.constant else of_each_token(value)
            definition = tuple(
                replace(d, value=written) if d.name == name else d for d in system.definition
            )
            return replace(system, streams=streams, definition=definition)
    tensor = next(t for t in (*system.inputs, *system.params) if t.name == name)
    assert isinstance(tensor, Tensor)
    constant = tensor in system.params
    stream = Stream(name, value, tensor.axes, tensor.field, constant)
    written = value if constant else of_each_token(value)
    buffer = replace(
        system,
        inputs=tuple(t for t in system.inputs if t is not tensor),
        params=tuple(t for t in system.params if t is not tensor),
        streams=(stream, *system.streams),
        definition=(Definition(name, written, tensor.axes, tensor.field), *system.definition),
    )
    return _read_as_stream(buffer, name) if constant else buffer


def _read_as_stream(whole: _ValueT, name: str) -> _ValueT:
    """A system or a condition with a parameter read as a constant stream of that name."""

    def rule(e: Expr) -> Expr | None:
        if isinstance(e, Param) and e.name == name:
            return Ref(name, e.over, e.kind, Time.CONST, None)
        return None

    def go(value: _ValueT) -> _ValueT:
        if isinstance(value, Expr):
            return rewrite(value, rule)  # type: ignore[return-value]  # of its own kind
        if isinstance(value, tuple):
            return tuple(go(v) for v in value)  # type: ignore[return-value]  # as above
        if is_dataclass(value) and not isinstance(value, type):
            rebuilt = {f.name: go(getattr(value, f.name)) for f in fields(value) if f.init}
            return replace(value, **rebuilt)
        return value

    return go(whole)
