"""Rule "constant-sequence": no parameters of b make a a case of it, by one token repeated for ever.

On a constant sequence the increments of both outputs are sums Σ w λ^l over the bases λ of the
states, from some token on (`dsfc.trusted.rules.steady`). Powers of different bases other than 0 are
linearly independent, so equal outputs have equal parts Σ w λ^l, base by base. Checked are:

1. at a point of a's parameters and one token, each base of a is 0, or is *foreign*: shown to lie
   outside the ranges of all bases of b, for all values of b's parameters and inputs and all sizes;
   or is one of the *others*, known to bounds;
2. with E the shift by a token and a factor for each of the others, the product Π (E - λ) applied to
   the increments of a's output, its definition executed, is not 0 at one token. The product takes
   the others' parts away, so a foreign base has a part that is not 0;
3. the product over all bases of a may be 0 there, as it must: the definition goes on as its states.

b has no such part, whatever its parameters are, so its output is another from some token on. What
can be said of coupled states of a is in `dsfc.trusted.rules.recurrence`.

Larger sizes of a contain the point: where each summed index of an axis is carried
(`dsfc.trusted.small_model_bound`), no formula holds the size and no norm runs along the axis,
entries of carriers with further indices are put to 0, the others made like those that are there,
and the output is the same.
"""

from __future__ import annotations

from dsfc.expr.declarations import Constraint
from dsfc.expr.tree import Expr, Prim, Reduce, Reduction, Size, children
from dsfc.system.known import fixed
from dsfc.trusted.balls import Complex, NotDefined, real
from dsfc.trusted.claim import Claim, ConstantSequence, Number
from dsfc.trusted.comparable import comparable
from dsfc.trusted.definition import Execution
from dsfc.trusted.generalize_inputs import expressions
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.recurrence import check_recurrence
from dsfc.trusted.rules.regions import Region
from dsfc.trusted.rules.steady import Steady, steady
from dsfc.trusted.small_model_bound import small_model_bound
from dsfc.trusted.witness import LENGTH_LIMIT, arrays, check_token, constants_of, place_of

COMPLEX_ZERO = Complex(real(0), real(0))


def check_constant_sequence(claim: Claim, proof: ConstantSequence) -> None:
    """Checks a certificate that a is no case of b.

    Raises:
        Rejected: a check failed.
        Obstacle, ValueError: the claim has no meaning here, or one of the systems has no bases.
    """
    if claim.equal or not claim.case:
        raise Rejected("it is shown that a is no case of b, and something else is claimed")
    if claim.conditions or claim.free:
        raise Rejected('rule "constant-sequence" has no conditions')
    if claim.locality is not None:
        raise Rejected("constant sequences say the same of all functions of the last tokens")
    comparable(claim)
    if not set(claim.every) <= set(own_axes(claim)):
        raise Rejected("all sizes are claimed of an axis that is not b's own")
    try:
        if proof.recurrence:
            check_recurrence(claim, proof)
        else:
            _check_bases(claim, proof)
    except NotDefined as e:
        raise Rejected(f"the output has no value here: {e}") from None
    if not set(proof.larger) <= set(growing_axes(claim)):
        raise Rejected("larger sizes are claimed of an axis that has something of its own there")


def _check_bases(claim: Claim, proof: ConstantSequence) -> None:
    word = RepeatedToken(claim, proof.values)
    parts = word.parts(proof.token)
    rest = word.parts(proof.token, every=True)
    if not word.foreign:
        raise Rejected("every base of a may be one of b")
    if parts[place_of(claim, proof.index)].meets(COMPLEX_ZERO):
        raise Rejected("what the foreign bases give may be 0 here")
    if not all(part.meets(COMPLEX_ZERO) for part in rest):
        raise Rejected("the definition of a does not go on as its states do")
    if proof.always and not always_apart(claim):
        raise Rejected("for other parameters of a its bases may be those of b")


def own_axes(claim: Claim) -> tuple[str, ...]:
    """Returns the axes of b that are none of its inputs; the claim is one about all their sizes."""
    input_axes = {axis.name for t in claim.b.inputs for axis in t.axes}
    return tuple(d.axis.name for d in claim.b.axes if d.axis.name not in input_axes)


def growing_axes(claim: Claim) -> tuple[str, ...]:
    """Returns the axes of a at whose larger sizes a can do what it does at these."""
    names = {d.axis.name for d in claim.a.axes if d.axis.copy_of is None}
    sizes = tuple((name, size) for name, size in claim.sizes if name in names)
    if len(names) != len(claim.a.axes):
        return ()
    counts = small_model_bound(Claim(claim.a, claim.a, (), sizes), False, numbers=True)
    if any(isinstance(count, str) for count in counts.values()):
        return ()
    if fixed(claim.a):
        return ()
    held = _sizes_in((claim.a.streams, claim.a.stages, claim.a.outputs, claim.a.definition))
    return () if held else tuple(sorted(names))


def _sizes_in(value: object) -> set[str]:
    """The axes whose sizes stand in formulas as numbers, or are summed or averaged over freely.

    So are those that a norm runs along: further entries make it larger, whatever is 0 of its value.
    """
    out: set[str] = set()
    stack, seen = list(expressions(value)), set[Expr]()
    while stack:
        e = stack.pop()
        if e in seen:
            continue
        seen.add(e)
        if isinstance(e, Size):
            out.add(e.axis.name)
        if isinstance(e, Reduce) and (e.how is not Reduction.SUM or e.axis not in e.arg.axes):
            out.add(e.axis.name)
        if isinstance(e, Prim) and e.axis is not None:
            out.add(e.axis.name)
        stack += children(e)
    return out


def regions(claim: Claim) -> tuple[Region, ...]:
    """Returns where the bases of b lie, for all its parameters, inputs and sizes."""
    return tuple(base.region for base in steady(claim.b, dict(claim.sizes)).bases)


def always_apart(claim: Claim) -> bool:
    """Returns whether a and b have no base other than 0 in common, whatever both parameters are.

    Tokens of a must be tokens of b: else a may do at others what is seen of it.
    """
    names = dict(claim.names)
    ranges = {names.get(t.name, t.name): t.constraint for t in claim.b.inputs}
    for t in claim.a.inputs:
        if ranges.get(t.name, Constraint.NONE) not in (Constraint.NONE, t.constraint):
            return False
    theirs = regions(claim)
    ours = steady(claim.a, dict(claim.sizes)).bases
    return all(base.region.disjoint(other) for base in ours for other in theirs)


class RepeatedToken:
    """System a at a point, one token repeated.

    Args:
        claim: whose a it is.
        values: name → entries, of inputs one token.

    Attributes:
        foreign: bases of a that are outside the ranges of b's, each once.
        others: bases that may be one of b's.

    Raises:
        Rejected: the values are none of a.
        NotDefined: a base has no value.
    """

    def __init__(self, claim: Claim, values: tuple[tuple[str, tuple[Number, ...]], ...]) -> None:
        """Computes the bases of a."""
        self.claim = claim
        self.values = dict(values)
        if len(self.values) != len(values):
            raise Rejected("a name has two values")
        sizes = dict(claim.sizes)
        self.steady: Steady = steady(claim.a, sizes)
        self.constants = constants_of(claim, claim.a, {})
        once = arrays(claim, claim.a, {}, 1, self.values, self.constants)
        if self.values.keys() - once.keys():
            raise Rejected("a value is given of nothing that a has")
        check_token(claim, self.values)
        at_once = Execution(claim.a, sizes, 1, once)
        theirs = regions(claim)
        self.foreign: tuple[Complex, ...] = ()
        self.others: tuple[Complex, ...] = ()
        for base in self.steady.bases:
            for at in at_once.places(base.axes):
                self._take(at_once.value(base.value, at), theirs)

    def _take(self, value: Complex, theirs: tuple[Region, ...]) -> None:
        if value == COMPLEX_ZERO:
            return
        # The real part of an output has the conjugates of bases too.
        twins = (value,) if value.is_real else (value, Complex(value.re, -value.im))
        if all(region.excludes(value) for region in theirs):
            self.foreign = (*self.foreign, *(v for v in twins if v not in self.foreign))
            return
        for v in twins:
            # Two entries of one base have one part: exact bases are taken once.
            if not (v.re.exact and v.im.exact and v in self.others):
                self.others = (*self.others, v)

    @property
    def first(self) -> int:
        """The first token at which the increments are sums of powers."""
        return self.steady.window + 2

    def parts(self, token: int, every: bool = False) -> list[Complex]:
        """Returns Π (E - λ) over the others, applied to the increments of the output at a token.

        Args:
            token: the token.
            every: whether the product is over the foreign bases too.

        Raises:
            Rejected: the token is one of the first, or the sequence too long.
            NotDefined: the output has no value.
        """
        factors = (*self.others, *self.foreign) if every else self.others
        length = token + len(factors) + 1
        if token < self.first or length > LENGTH_LIMIT:
            raise Rejected("the token is none at which increments are sums of powers")
        outputs = self._outputs(length)
        increments = [_minus(outputs[k], outputs[k - 1]) for k in range(token, length)]
        for base in factors:
            scaled = [[base * x for x in s] for s in increments]
            increments = [_minus(increments[k + 1], scaled[k]) for k in range(len(increments) - 1)]
        return increments[0]

    def _outputs(self, length: int) -> list[list[Complex]]:
        a = self.claim.a
        inputs = {t.name for t in a.inputs}
        repeated = {name: v * length if name in inputs else v for name, v in self.values.items()}
        arguments = arrays(self.claim, a, {}, length, repeated, self.constants)
        return Execution(a, dict(self.claim.sizes), length, arguments).output()


def _minus(a: list[Complex], b: list[Complex]) -> list[Complex]:
    return [x - y for x, y in zip(a, b, strict=True)]
