"""A ratio over a running maximum is the ratio: its outputs are the same for any m and any R.

What the compiler makes, with m and R as inputs, is the form that the kernel accepts as equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from dsfc.expr.build import mul, rewrite
from dsfc.expr.normal import normalise
from dsfc.expr.polynomial import Polynomial
from dsfc.expr.tree import Expr, Ref
from dsfc.prover.equivalent import equivalent
from dsfc.prover.verdict import AtSizes, Proved, Unknown
from dsfc.structure.running_max import bounds
from dsfc.system.inline import inliner_of
from dsfc.system.ir import Ratio, Read, System
from dsfc.system.traverse import parts, trees
from dsfc.transform.running_max import running_max_gauge

MIXERS = {"mlstm": ("t", "r"), "lln": ("m", "r"), "lnssm": ("m", "r"), "rwkv4": ("m", "c")}
MIXERS |= {"performer": ("m", "r")}
"""Names of the maximum and of the largest exponent in the form that is written out."""


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.ci) if n == "mlstm" else n for n in MIXERS]
)
def test_states_over_any_exponential_give_the_same_outputs(
    name: str, system: Callable[[str, str], System]
) -> None:
    plain, stored = system("running_max", name), system("running_max", f"{name}_any")
    assert isinstance(equivalent(plain, stored), Proved | AtSizes)


def test_a_maximum_in_the_language_is_equal_to_its_own_text_alone(system: Callable) -> None:
    one, turned = system("running_max", "maximum"), system("running_max", "maximum_turned")
    assert isinstance(equivalent(one, one), Proved)
    found = equivalent(one, turned)
    assert isinstance(found, Unknown)
    assert found.obstacle.startswith("a running maximum has a rule only where")


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
