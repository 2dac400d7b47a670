"""A ratio over a running maximum is the ratio: its outputs are the same for any m and any R.

What the compiler makes, with m and R as inputs, is the form that the kernel accepts as equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.expr.build import mul, rewrite
from dsfc.expr.normal import normalise
from dsfc.expr.polynomial import Polynomial
from dsfc.expr.tree import Expr, Ref
from dsfc.prover.equivalent import equivalent
from dsfc.prover.subsumes import kinds
from dsfc.prover.verdict import AtSizes, Proved, ProvedWhereDefined, Refuted, Unknown
from dsfc.source import Source
from dsfc.structure.running_max import bounds
from dsfc.syntax.parse import parse
from dsfc.system.inline import inliner_of
from dsfc.system.ir import Ratio, Read, System
from dsfc.system.traverse import parts, trees
from dsfc.transform.running_max import running_max_gauge
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Conditional, Invariant
from dsfc.trusted.rejected import Rejected

MIXERS = {"mlstm": ("t", "r"), "lln": ("m", "r"), "lnssm": ("m", "r"), "rwkv4": ("m", "c")}
MIXERS |= {"performer": ("m", "r")}
"""Names of the maximum and of the largest exponent in the form that is written out."""


@pytest.mark.share(4, ci=0)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.ci) if n == "mlstm" else n for n in MIXERS]
)
def test_states_over_any_exponential_give_the_same_outputs(
    name: str, system: Callable[[str, str], System]
) -> None:
    plain, stored = system("running_max", name), system("running_max", f"{name}_any")
    assert isinstance(equivalent(plain, stored), Proved | AtSizes)


@pytest.mark.ci
def test_a_maximum_that_the_output_shows_is_equal_to_its_own_text_alone(system: Callable) -> None:
    one, turned = system("running_max", "maximum"), system("running_max", "maximum_turned")
    assert isinstance(equivalent(one, one), Proved)
    assert isinstance(equivalent(one, turned), Unknown)


SHAPE = "dims h\n  input u, w, x : h\n  "
STORED = SHAPE + (
    "state m, S : h\n  m = max({m})\n  S = exp(m[i-1] - m) * S[i-1] + exp(x - m) * u\n  y = {y}"
)
PLAIN = SHAPE + "y = sum[j ≤ i](exp(x[j]) * u[j])"
GATED = "dims heads h = 2, n, p\n  input q, k : h × n; v : h × p; a, b : h\n  "
GUARDED = GATED + (
    "state C : h × n × p;  z : h × n;  m : h\n  m = max({m}, a)\n"
    "  f = exp(m[i-1] - m) * sigmoid(b)\n"
    "  C = f * C[i-1] + exp(a - m) * k ⊗ v\n  z = f * z[i-1] + exp(a - m) * k\n"
    "  y = (q · C) / max(abs(q · z), {guard})"
)
UNGUARDED = GATED + (
    "state C : h × n × p;  z : h × n\n  C = sigmoid(b) * C[i-1] + exp(a) * k ⊗ v\n"
    "  z = sigmoid(b) * z[i-1] + exp(a) * k\n  y = (q · C) / max(abs(q · z), 1)"
)
MAXIMUM = SHAPE + "state m : h\n  m = max(m[i-1], w)\n  "
PAIRS = "sum[h]({0})^2 - sum[h](({0})^2) + u"
DECAYED, UNDECAYED = "m[i-1] - softplus(-b)", "m[i-1]"


def of(text: str) -> System:
    mixer = parse(Source("m.dsf", f"mixer m {{ {text}\n}}\n"))
    return SpecText(Place(Path("m.dsf")), mixer).compilation().system


@pytest.mark.share(4)
@pytest.mark.parametrize(
    "a, b, verdict",
    [
        (STORED.format(m="m[i-1], w", y="S * exp(m)"), PLAIN, Proved),
        (STORED.format(m="m[i-1], x", y="S * exp(m)"), PLAIN, Proved),
        # Two maxima that go by one name are two values.
        (
            STORED.format(m="m[i-1], w", y="S * exp(m)"),
            STORED.format(m="m[i-1], 2 * w", y="S * exp(m)"),
            Proved,
        ),
        (
            STORED.format(m="m[i-1], w", y="S"),
            STORED.format(m="m[i-1], 2 * w", y="S"),
            Refuted,
        ),
        (STORED.format(m="m[i-1], w", y="S"), PLAIN, Refuted),
        (STORED.format(m="m[i-1], w", y="S * exp(m[i-1])"), PLAIN, Refuted),
        # Before the first token it is no 0.
        (
            SHAPE + "state m : h\n  m = max(m[i-1], w)\n  y = first * m[i-1] + u",
            SHAPE + "y = u",
            Refuted,
        ),
        (
            SHAPE + "state m : h\n  m = max(m[i-1], w)\n  y = first * exp(m[i-1]) + u",
            SHAPE + "y = u",
            Unknown,
        ),
        # Equal at one entry alone.
        (
            STORED.format(m="m[i-1], w", y=PAIRS.format("S * exp(m)")),
            SHAPE + "y = u",
            Refuted,
        ),
        (
            STORED.format(m="m[i-1], w", y=PAIRS.format("S * exp(m)")),
            SHAPE + "state S : h\n  S = S[i-1] + exp(x) * u\n  y = " + PAIRS.format("S"),
            Proved,
        ),
        # A maximum without a value leaves the output without one.
        (STORED.format(m="m[i-1], log(w)", y="S * exp(m)"), PLAIN, ProvedWhereDefined),
        (STORED.format(m="m[i-1], log(-exp(w))", y="S * exp(m)"), PLAIN, Unknown),
        (GUARDED.format(m=DECAYED, guard="1"), UNGUARDED, Refuted),
        (GUARDED.format(m=DECAYED, guard="exp(-m)"), UNGUARDED, AtSizes),
        (
            GUARDED.format(m=DECAYED, guard="exp(-m)"),
            GUARDED.format(m=UNDECAYED, guard="exp(-m)"),
            AtSizes,
        ),
        (GUARDED.format(m=DECAYED, guard="exp(m)"), UNGUARDED, Refuted),
    ],
)
def test_a_published_form_is_the_plain_one_whatever_its_maximum(
    a: str, b: str, verdict: type
) -> None:
    for left, right in ((a, b), (b, a)):
        found = equivalent(of(left), of(right))
        assert isinstance(found, verdict), found
        if not isinstance(found, Unknown):
            check(write(found.certificate))


@pytest.mark.ci
def test_a_maximum_is_no_slot_and_no_value_that_a_condition_gives() -> None:
    stored = of(STORED.format(m="m[i-1], w", y="S"))
    assert isinstance(equivalent(stored, of(PLAIN), conditions=True), Refuted)
    assert isinstance(kinds(of(PLAIN), stored).forth, Unknown)
    proof = Conditional(Invariant((), False), None, ())
    with pytest.raises(Rejected, match="a state is a running maximum, of which this rule says"):
        check(write(Certificate(Claim(of(PLAIN), stored, (), (("h", 1),), case=True), proof)))


@pytest.mark.parametrize("name", MIXERS)
def test_the_compiler_makes_the_form_that_is_proved(
    name: str, system: Callable[[str, str], System]
) -> None:
    plain = system("running_max", name)
    stored, _ = running_max_gauge(plain, bounds(plain), free=True)
    maximum, largest = (t.name for t in stored.inputs[len(plain.inputs) :])
    written = dict(zip((maximum, largest), MIXERS[name], strict=True))

    def renamed(e: Expr) -> Expr | None:
        if isinstance(e, Ref) and e.name in written:
            return Ref(written[e.name], e.over, e.kind, e.when, e.at)
        return None

    made = [(where, normalise(rewrite(e, renamed))) for where, e in coefficients(stored)]
    want = [
        (where, normalise(e)) for where, e in coefficients(system("running_max", f"{name}_any"))
    ]
    assert made == want and all(isinstance(p, Polynomial) for _, p in made)


def coefficients(system: System) -> Iterator[tuple[object, Expr]]:
    """What a System computes with, definitions put in: of updates, reads and guards."""
    inline = inliner_of(system).of
    for b in system.blocks:
        (factor,) = b.chain
        yield from (
            ((b.state, t.source, t.lag), inline(mul(t.left, t.right))) for t in factor.terms
        )
        yield from (((b.state, "drive"), inline(mul(d.key, d.stream))) for d in factor.drives)
    for node in (p for tree in trees(system) for p in parts(tree)):
        if isinstance(node, Ratio) and node.guard.constant is not None:
            yield node.guard.kind, inline(node.guard.constant)
        if isinstance(node, Read):
            for t in node.terms:
                yield (t.source, t.lag, t.over), inline(mul(t.left, t.right))
            if node.direct is not None:
                yield "direct", inline(node.direct)
