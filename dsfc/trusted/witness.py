"""Rule "witness": both definitions are executed at a point, and the outputs are apart there.

The point is made of rational numbers. Where the definitions are rational so are the outputs, and
they are compared exactly; elsewhere both lie in intervals that are shown not to meet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dsfc.expr.declarations import Constraint, MapTensor, Tensor
from dsfc.expr.tree import Axis, Field
from dsfc.system.ir import System
from dsfc.system.known import fixed
from dsfc.trusted.balls import Complex, NotDefined, Real
from dsfc.trusted.claim import Claim, Number, Somewhere, Witness
from dsfc.trusted.comparable import array_names, comparable
from dsfc.trusted.definition import Execution
from dsfc.trusted.rejected import Rejected

LENGTH_LIMIT = 64
"""Tokens of a witness."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Two values that are not equal.

    Attributes:
        a: the output of the first mixer.
        b: that of the second.
    """

    a: Complex
    b: Complex


def check_witness(claim: Claim, proof: Witness) -> Gap:
    """Checks a certificate of difference, and returns the two values.

    Raises:
        Rejected: the values may be equal, do not exist, or the point is not one of the claim.
        Obstacle, ValueError: the claim has no meaning here.
    """
    if claim.equal:
        raise Rejected("a witness shows difference, and equality is claimed")
    if claim.conditions or claim.free or claim.every:
        raise Rejected('rule "witness" has no conditions, and one size of each axis')
    if claim.case:
        raise Rejected("a point says nothing of other values of the second's parameters")
    comparable(claim)
    a, b = execute(claim, proof)
    place = place_of(claim, proof.index)
    if not 0 <= proof.token < proof.length:
        raise Rejected("the token is not one of the sequence")
    gap = Gap(a[proof.token][place], b[proof.token][place])
    if gap.a.meets(gap.b):
        raise Rejected("the outputs may be equal here")
    return gap


def check_somewhere(claim: Claim, point: Somewhere) -> None:
    """Checks that both outputs have values at a point.

    Where a is claimed to be a case of b it is a's output alone: the claim is one about b's output
    wherever a has one.

    Raises:
        Rejected: they have not, or the claim is another one.
        Obstacle: a definition cannot be executed.
    """
    if not claim.equal or (claim.conditions and not claim.case):
        raise Rejected(
            "where the outputs have values is said of equality without conditions, and of cases"
        )
    if not claim.case:
        execute(claim, point)
        return
    try:
        execute_one(claim, point, False)
    except NotDefined as e:
        raise Rejected(f"the first's output has no value here: {e}") from None


def execute(
    claim: Claim, proof: Witness | Somewhere
) -> tuple[list[list[Complex]], list[list[Complex]]]:
    """Returns the outputs of both definitions at the point, token by token.

    Raises:
        Rejected: the outputs do not exist, or the point is not one of the claim.
        Obstacle: a definition cannot be executed.
    """
    try:
        return execute_one(claim, proof, False), execute_one(claim, proof, True)
    except NotDefined as e:
        raise Rejected(f"the outputs have no value here: {e}") from None


def execute_one(claim: Claim, proof: Witness | Somewhere, second: bool) -> list[list[Complex]]:
    """Returns the output of one definition at the point, token by token.

    Raises:
        NotDefined: it may not exist.
        Rejected: the point is not one of the claim.
        Obstacle: the definition cannot be executed.
    """
    if not 1 <= proof.length <= LENGTH_LIMIT:
        raise Rejected(f"a witness has from 1 to {LENGTH_LIMIT} tokens")
    values = dict(proof.values)
    if len(values) != len(proof.values):
        raise Rejected("a name has two values")
    if second:
        return _run(claim, claim.b, array_names(claim, True), proof, values)
    return _run(claim, claim.a, {}, proof, values)


def check_token(claim: Claim, values: Mapping[str, tuple[Number, ...]]) -> None:
    """Checks that a token of a is one of b too, whose ranges of inputs may be smaller.

    Raises:
        Rejected: a value is outside.
    """
    names = dict(claim.names)
    for t in claim.b.inputs:
        entries = values.get(names.get(t.name, t.name), ())
        if not all(in_range(Fraction(p, q), t.constraint) for p, q, _, _ in entries):
            raise Rejected(f"a value of `{t.name}` is not {t.constraint.value}")


def constants_of(
    claim: Claim, system: System, renamed: dict[str, str]
) -> dict[str, tuple[Complex, ...]]:
    """Returns the values of buffers that have one, by name in a."""
    at = Execution(system, dict(claim.sizes), 1, {})
    axes = {t.name: stored_axes(t) for t in system.buffers}
    return {
        renamed.get(name, name): tuple(at.value(value, place) for place in at.places(axes[name]))
        for name, value in fixed(system).items()
    }


def _run(
    claim: Claim,
    system: System,
    renamed: dict[str, str],
    proof: Witness | Somewhere,
    values: dict[str, tuple[Number, ...]],
) -> list[list[Complex]]:
    constants = constants_of(claim, system, renamed)
    arguments = arrays(claim, system, renamed, proof.length, values, constants)
    return Execution(system, dict(claim.sizes), proof.length, arguments).output()


def arrays(
    claim: Claim,
    system: System,
    renamed: dict[str, str],
    length: int,
    values: dict[str, tuple[Number, ...]],
    constants: dict[str, tuple[Complex, ...]],
) -> dict[str, tuple[Complex, ...]]:
    """Returns the entries of all inputs, parameters and buffers of a system.

    Args:
        claim: whose sizes they have.
        system: one of its two.
        renamed: name in the system → name in a.
        length: number of tokens.
        values: name in a → entries as they are stored.
        constants: name in a → entries of buffers that have a fixed value.

    Raises:
        Rejected: a value is missing, superfluous, or none that its declaration allows.
    """
    sizes = dict(claim.sizes)
    arrays_given: dict[str, tuple[Complex, ...]] = {}
    inputs = {t.name for t in system.inputs}
    for t in (*system.inputs, *system.params, *system.buffers):
        same = renamed.get(t.name, t.name)
        if same in constants:
            if same in values:
                raise Rejected(f"`{same}` has a fixed value")
            constraint = t.constraint if isinstance(t, Tensor) else Constraint.NONE
            if not all(_allowed(v.re, constraint) for v in constants[same]):
                raise Rejected(f"the value of `{same}` is not {constraint.value}")
            arrays_given[t.name] = constants[same]
            continue
        if same not in values:
            raise Rejected(f"`{same}` has no value")
        count = length if t.name in inputs else 1
        for axis in stored_axes(t):
            count *= sizes[axis.name]
        if len(values[same]) != count:
            raise Rejected(f"`{same}` has {len(values[same])} entries, not {count}")
        arrays_given[t.name] = tuple(_number(v, t) for v in values[same])
    return arrays_given


def stored_axes(t: Tensor | MapTensor) -> tuple[Axis, ...]:
    """Returns the axes of an array as it is stored."""
    return t.axes if isinstance(t, Tensor) else (*t.map.each, *t.map.target, *t.map.source)


def _number(v: Number, t: Tensor | MapTensor) -> Complex:
    p, q, r, s = v
    if q < 1 or s < 1:
        raise Rejected("a denominator is not positive")
    re, im = Fraction(p, q), Fraction(r, s)
    kind = t.field if isinstance(t, Tensor) else t.map.field
    if im and kind is Field.REAL:
        raise Rejected(f"`{t.name}` is real")
    constraint = t.constraint if isinstance(t, Tensor) else Constraint.NONE
    if not in_range(re, constraint):
        raise Rejected(f"a value of `{t.name}` is not {constraint.value}")
    return Complex(Real(re, re), Real(im, im))


def in_range(x: Fraction, constraint: Constraint) -> bool:
    """Returns whether a number keeps what a declaration promises."""
    match constraint:
        case Constraint.POSITIVE:
            return x > 0
        case Constraint.NONNEG:
            return x >= 0
        case Constraint.UNIT:
            return 0 < x < 1
        case Constraint.NONZERO:
            return x != 0
    return True


def _allowed(x: Real, constraint: Constraint) -> bool:
    """Whether all between bounds is what a buffer may have for a value; a floor may be 0."""
    match constraint:
        case Constraint.POSITIVE:
            return x.low > 0
        case Constraint.NONNEG:
            return x.low >= 0
        case Constraint.UNIT:
            return x.low >= 0 and x.high < 1
        case Constraint.NONZERO:
            return x.low > 0 or x.high < 0
    return True


def place_of(claim: Claim, index: tuple[int, ...]) -> int:
    """Returns which entry of the output an index of a's output axes is.

    Raises:
        Rejected: it is none.
    """
    out = 0
    axes = claim.a.outputs[0].axes
    if len(axes) != len(index):
        raise Rejected("the index does not fit the output")
    for axis, k in zip(axes, index, strict=True):
        size = dict(claim.sizes)[axis.name]
        if not 0 <= k < size:
            raise Rejected("the index does not fit the output")
        out = out * size + k
    return out
