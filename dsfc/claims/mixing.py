"""`row_stochastic`: every output is a convex combination of the values seen so far.

With the values v taken for free inputs, y_i = Σ_{j ≤ i} w_ij v_j with w_ij ≥ 0 and Σ_j w_ij = 1,
wherever y has a value. Then y_i lies in the convex hull of v_0 … v_i (mixers.md T4). Two ways:

- *the definition*: y is a quotient. The numerator is linear in v with weights that are not negative
  by their ranges, and with 1 in the place of v it has the normal form of the denominator.
- *the system*: reads, drives and transitions are not negative by their ranges and the states of
  the numerator are linear in v; that the weights sum to 1 is the statement y = 1 for v = 1, which
  the prover closes and the trusted kernel accepts.

It is refuted by an executed point, v free, where an output leaves the values seen so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dsfc.claims.compare import facts, satisfied
from dsfc.claims.points import Failed, Running, search, shown
from dsfc.claims.verdict import Proved, Refuted, Unknown, Verdict
from dsfc.derive.again import derived_again
from dsfc.expr.build import mul, ones, rewrite, walk
from dsfc.expr.declarations import Tensor
from dsfc.expr.interval import Interval
from dsfc.expr.normal import canonical, normalise
from dsfc.expr.over_time import Past
from dsfc.expr.over_time import Relation as PastRelation
from dsfc.expr.statements import Comparison
from dsfc.expr.tree import Add, Axis, Bound, Div, Expr, Field, Mul, Now, Reduce, Reduction, Ref
from dsfc.prover.equivalent import equivalent
from dsfc.prover.report import reach
from dsfc.prover.verdict import AtSizes
from dsfc.prover.verdict import Proved as Equal
from dsfc.structure.bounds import Ranges, constraints_of, nonzero_of
from dsfc.structure.ir import Structure
from dsfc.system.ir import (
    Block,
    Definition,
    Direct,
    Gate,
    Output,
    Ratio,
    Read,
    ReadOut,
    Sum,
    System,
)
from dsfc.trusted.balls import Complex
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.rules.simplified import of_each_token

VALUES = "v"
"""What the values are called where a claim does not name them."""


def row_stochastic(
    system: System, structure: Structure, when: tuple[Comparison, ...], values: str | None
) -> Verdict:
    """Decides whether outputs are convex combinations of the values seen so far.

    Args:
        system: the derived system.
        structure: of the system.
        when: conditions.
        values: name of the values; `v` if None.
    """
    name = values or VALUES
    definition = next((d for d in system.definition if d.name == name and not d.update), None)
    if definition is None:
        is_input = any(t.name == name for t in system.inputs)
        if not is_input:
            return Unknown(f"there are no values `{name}`; `row_stochastic(x)` names them")
    whole = _defined(system, name)
    if isinstance(whole, str):
        summed = _summed(system, structure, when, name)
        if isinstance(summed, Proved):
            return summed
        obstacle = f"{whole}; {summed}"
    else:
        return whole
    free = _freed(system, name)
    if free is None:
        return Unknown(obstacle)
    witness = search(free, lambda run: _outside(run, free, name, when))
    if isinstance(witness, Failed):
        return Refuted(witness.how, witness.point.text)
    return Unknown(f"{obstacle}; {witness}")


# --- the definition -------------------------------------------------------------------------------


def _defined(system: System, values: str) -> Proved | str:
    """A proof from the definition of y, or what stands in the way."""
    definitions = {d.name: d for d in system.definition if not d.update}
    output = definitions.get(system.outputs[0].name)
    if output is None:
        return "y has no definition of its own"
    y = _unfolded(output.value, definitions, values)
    if not isinstance(y, Div):
        return "the definition of y is no quotient"
    weights = _Weights(system, definitions, values)
    if not weights.linear(y.num):
        return "the numerator is not linear in the values with weights of one sign"
    if weights.mentioned(y.den):
        return "the denominator depends on the values"
    above, below = (canonical(_summands(_without(e, values))) for e in (y.num, y.den))
    if normalise(above) != normalise(below):
        return "with 1 for the values the numerator is not the denominator by its form"
    return Proved("weights are not negative by their ranges, and sum to the denominator")


def _unfolded(e: Expr, definitions: Mapping[str, Definition], values: str) -> Expr:
    """A value with the definitions of its token that hold sums over the past put in."""

    def put(part: Expr) -> Expr | None:
        if isinstance(part, Ref) and part.at in (Now(0), None) and part.name in definitions:
            definition = definitions[part.name]
            holds = any(isinstance(x, Past) for x in walk(definition.value))
            if part.name != values and holds:
                return _unfolded(definition.value, definitions, values)
        return None

    return rewrite(e, put)


def _without(e: Expr, values: str) -> Expr:
    """The expression with 1 in the place of the values."""

    def put(part: Expr) -> Expr | None:
        if isinstance(part, Ref) and part.name == values:
            return ones(part.axes)
        return None

    return rewrite(e, put)


def _summands(e: Expr) -> Expr:
    """Sums over the past with their summands in normal form, and one name for their index."""

    def put(part: Expr) -> Expr | None:
        if not isinstance(part, Past) or part.outer is not None:
            return None

        def renamed(x: Expr) -> Expr | None:
            if isinstance(x, Ref) and isinstance(x.at, Bound) and x.at.var == part.var:
                return Ref(x.name, x.over, x.kind, x.when, Bound("j", x.at.lag))
            return None

        return Past("j", part.relation, canonical(rewrite(part.body, renamed)), None, part.lag)

    return rewrite(e, put)


class _Weights:
    """Signs of the parts of a definition."""

    def __init__(self, system: System, definitions: Mapping[str, Definition], values: str) -> None:
        self.values = values
        self.depends = _dependants(system, values)
        known = constraints_of(system)
        nonzero = nonzero_of(system)
        for name, d in definitions.items():
            if d.field is Field.REAL:
                # What is read before the first token is 0.
                known[name] = Ranges(known, nonzero).of(d.value).hull(Interval(0.0, 0.0))
        self.ranges = Ranges(known, nonzero)

    def mentioned(self, e: Expr) -> bool:
        """Whether the values have a say in an expression."""
        return any(isinstance(x, Ref) and x.name in self.depends for x in walk(e))

    def nonneg(self, e: Expr) -> bool:
        """Whether an expression is at least 0, and the values have no say in it."""
        if self.mentioned(e):
            return False
        if isinstance(e, Past):
            return self.nonneg(e.body)
        return e.field is Field.REAL and self.ranges.of(e).low >= 0

    def linear(self, e: Expr) -> bool:
        """Whether an expression is Σ w v with w ≥ 0, each channel of its own values."""
        match e:
            case Ref(name=name, at=Now(0) | Bound(lag=0)) if name == self.values:
                return True
            case Add(args):
                return all(self.linear(a) for a in args)
            case Mul(args):
                mentioning = [a for a in args if self.mentioned(a)]
                rest = [a for a in args if a not in mentioning]
                if len(mentioning) != 1 or not self.linear(mentioning[0]):
                    return False
                return all(self.nonneg(a) for a in rest) or self.nonneg(mul(*rest))
            case Div(numerator, denominator):
                return self.linear(numerator) and self.nonneg(denominator)
            case Past(relation=PastRelation.UP_TO | PastRelation.BEFORE, body=body):
                return self.linear(body)
            case Reduce(how=Reduction.SUM, axis=axis, arg=arg):
                own = {a for x in walk(arg) if isinstance(x, Ref) and x.name == self.values
                       for a in x.axes}  # fmt: skip
                return axis not in own and self.linear(arg)
        return False


def _dependants(system: System, values: str) -> frozenset[str]:
    """The values, and the definitions and states that read them."""
    out = {values}
    while True:
        more = {
            d.name
            for d in system.definition
            if d.name not in out
            and any(isinstance(x, Ref) and x.name in out for x in walk(d.value))
        }
        if not more:
            return frozenset(out)
        out |= more


# --- the system -----------------------------------------------------------------------------------


def _summed(
    system: System, structure: Structure, when: tuple[Comparison, ...], values: str
) -> Proved | str:
    """A proof from signs and the closure of y = 1 for v = 1, or what stands in the way."""
    signs = _Signs(system, structure, when, values)
    if not signs.mixes(system.outputs[0].value):
        return "the system's reads, drives and transitions are not known to be of one sign"
    filled, one = derived_again(_filled(system, values)), derived_again(_one(system))
    verdict = equivalent(filled, one) if filled and one else None
    if isinstance(verdict, AtSizes):
        return f"that y = 1 for values 1 is proved {reach(verdict.certificate.claim)}"
    if not isinstance(verdict, Equal):
        return "that y = 1 for values 1 is not proved"
    claim = verdict.certificate.claim
    return Proved(
        f"no weight is negative by its range, and y = 1 for values 1 by {verdict.how} that the "
        f"kernel accepts, {reach(claim)}",
        verdict.certificate,
    )


def _filled(system: System, values: str) -> System:
    """The system, and its definition, with 1 for the values."""
    return replace(
        system,
        streams=tuple(
            replace(s, value=ones(frozenset(s.axes))) if s.name == values else s
            for s in system.streams
        ),
        definition=tuple(
            replace(d, value=of_each_token(ones(frozenset(d.axes)))) if d.name == values else d
            for d in system.definition
        ),
    )


def _one(system: System) -> System:
    """The system with the same inputs whose output is 1."""
    out = system.outputs[0]
    one = ones(frozenset(out.axes))
    return replace(
        system,
        params=(),
        buffers=(),
        abstracts=(),
        streams=(),
        stages=(),
        outputs=(Output(out.name, Direct(one), out.axes),),
        definition=(Definition(out.name, one, out.axes, Field.REAL),),
        claims=(),
        derivation=(),
    )


class _Signs:
    """Signs of the parts of a system whose state entries are weights times values, or weights."""

    def __init__(
        self,
        system: System,
        structure: Structure,
        when: tuple[Comparison, ...],
        values: str,
    ) -> None:
        self.values = values
        self.known = facts(system, structure, when)
        self.streams = {s.name: s.value for s in system.streams}
        self.depends = _dependants(system, values)
        self.blocks = {b.state: b for b in system.blocks}
        self.linear = {b.state for b in system.blocks if self._block(b, drives_values=True)}
        self.free = {b.state for b in system.blocks if self._block(b, drives_values=False)}

    def mixes(self, r: ReadOut) -> bool:
        """Whether a read-out is Σ w v with w ≥ 0."""
        match r:
            case Ratio(num, den):
                return self.mixes(num) and self._nonneg_read(den)
            case Read(terms, direct):
                reads = all(
                    t.source in self.linear
                    and t.matrix is None
                    and t.after is None
                    and self._nonneg(t.left)
                    and self._nonneg(t.right)
                    and not t.over & self._value_axes()
                    for t in terms
                )
                return reads and (direct is None or self._times_values(direct))
            case Gate(factor, arg):
                return self._nonneg(factor) and self.mixes(arg)
            case Sum(args):
                return all(self.mixes(a) for a in args)
        return False

    def _nonneg_read(self, r: ReadOut) -> bool:
        """Whether a read-out without values is at least 0."""
        match r:
            case Direct(value):
                return self._nonneg(value)
            case Read(terms, direct):
                reads = all(
                    t.source in self.free
                    and t.matrix is None
                    and t.after is None
                    and self._nonneg(t.left)
                    and self._nonneg(t.right)
                    for t in terms
                )
                return reads and (direct is None or self._nonneg(direct))
            case Gate(factor, arg):
                return self._nonneg(factor) and self._nonneg_read(arg)
            case Sum(args):
                return all(self._nonneg_read(a) for a in args)
        return False

    def _block(self, block: Block, drives_values: bool) -> bool:
        """Whether transitions are not negative and every drive is of one kind."""
        for factor in block.chain:
            for t in factor.terms:
                own = t.source == block.state and t.matrix is None and t.after is None
                signs = self._nonneg(t.left) and self._nonneg(t.right)
                if not own or not signs or (drives_values and t.over & self._value_axes()):
                    return False
            for d in factor.drives:
                whole = mul(d.key, d.stream)
                if not (self._times_values(whole) if drives_values else self._nonneg(whole)):
                    return False
        return True

    def _value_axes(self) -> frozenset[Axis]:
        value = self.streams.get(self.values)
        return value.axes if isinstance(value, Expr) else frozenset()

    def _nonneg(self, e: Expr) -> bool:
        if any(isinstance(x, Ref) and x.name in self.depends for x in walk(e)):
            return False
        if any(isinstance(x, Ref) and not isinstance(self.streams.get(x.name, e), Expr)
               for x in walk(e)):  # fmt: skip
            return False
        return e.field is Field.REAL and self.known.ranges.of(self.known.value(e)).low >= 0

    def _times_values(self, e: Expr) -> bool:
        """Whether an expression is w v with w ≥ 0, of this token."""
        args = e.args if isinstance(e, Mul) else (e,)
        values = [a for a in args if isinstance(a, Ref) and a.name == self.values]
        rest = [a for a in args if a not in values]
        if len(values) != 1 or args.count(values[0]) != 1:
            return False
        return values[0].at == Now(0) and (not rest or self._nonneg(mul(*rest)))


# --- points ---------------------------------------------------------------------------------------


def _freed(system: System, values: str) -> System | None:
    """The system's definition with the values as an input; None where they are one or none."""
    definition = next((d for d in system.definition if d.name == values), None)
    if definition is None or definition.update:
        return system if any(t.name == values for t in system.inputs) else None
    if not any(isinstance(x, Ref) for x in walk(definition.value)):
        return None
    return replace(
        system,
        inputs=(*system.inputs, Tensor(values, definition.axes, definition.field)),
        streams=tuple(s for s in system.streams if s.name != values),
        definition=tuple(d for d in system.definition if d.name != values),
    )


def _outside(run: Running, system: System, values: str, when: tuple[Comparison, ...]) -> str | None:
    """An output that is above or below all values seen so far."""
    if not satisfied(run, when):
        return None
    axes = next(t.axes for t in system.inputs if t.name == values)
    out = system.outputs[0].axes
    if not set(axes) <= set(out):
        return None
    supplied = run.given[values]
    each = len(supplied) // run.length
    if system.outputs[0].name not in run.definitions:
        raise Obstacle("y has no definition of its own")
    for token in range(run.length):
        for value, at in zip(run.outputs(token), run.places(out), strict=True):
            if value is None:
                continue
            place = 0
            for a in axes:
                place = place * run.sizes[a.name] + at[a]
            seen = [supplied[t * each + place] for t in range(token + 1)]
            if _beyond(value, seen):
                shown_values = ", ".join(shown(v) for v in seen)
                where = ", ".join(f"{a.name} = {j}" for a, j in at.items())
                at_text = f" at {where}" if where else ""
                return (
                    f"y of token {token}{at_text} is {shown(value)}, and the values seen so far "
                    f"are {shown_values}"
                )
    return None


def _beyond(value: Complex, seen: list[Complex]) -> bool:
    above = all(value.re.low > v.re.high for v in seen)
    return above or all(value.re.high < v.re.low for v in seen)
