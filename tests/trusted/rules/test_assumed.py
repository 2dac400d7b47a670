"""Certificates of claims that assume something are accepted, and forged ones are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from second_checker.verdict import Silent, second_check

from dsfc.api.decide import claims as claims_of
from dsfc.api.pipeline import read as read_spec
from dsfc.claims.verdict import Proved, Refuted
from dsfc.derive.again import derived_again
from dsfc.expr.build import ONE, ZERO, add, mul, num, rewrite, walk
from dsfc.expr.declarations import Constraint
from dsfc.expr.tree import Bound, Expr, Field, Now, Reduce, Reduction, Ref, Time
from dsfc.lean import NotWritten, lean_text
from dsfc.system.ir import Definition
from dsfc.trusted.check import check, read, write
from dsfc.trusted.claim import Assumption, Certificate, Conditional, Invariant, Somewhere
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.simplified import of_use, simplified

TEXT = """
mixer layer { dims n, p
  input q, k : n;  v : p
  input β
  state S : n × p
}
mixer additive extends layer {
  S = S[i-1] + (β * k) ⊗ v
  y = q · S
}
mixer delta extends layer {
  S = S[i-1] - (β * k) ⊗ (k · S[i-1]) + (β * k) ⊗ v
  y = q · S
  claim equivalent additive when k · k[j] == 0 for j < i
  claim equivalent additive when k · k[j] <= 0 for j < i
}
mixer guarded extends layer {
  S = S[i-1] + k ⊗ v
  y = max(q · S, β)
  claim equivalent linear when q · S >= β
  claim equivalent linear when q · S >= β - 1
}
mixer linear extends layer {
  S = S[i-1] + k ⊗ v
  y = q · S
}
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Certificate]:
    """The certificate of a claim of a mixer, by position."""
    file = tmp_path_factory.mktemp("specs") / "assuming.dsf"
    file.write_text(TEXT, encoding="utf-8")
    spec = read_spec(file)
    known: dict[str, list[Certificate]] = {}

    def certificate(mixer: str, position: int) -> Certificate:
        if mixer not in known:
            verdicts = [x.verdict for x in claims_of(spec.compilation(mixer))]
            assert all(isinstance(v, Proved | Refuted) for v in verdicts)
            known[mixer] = [v.certificate for v in verdicts]
        return known[mixer][position]

    return certificate


def accepted(certificate: Certificate) -> bool:
    try:
        check(write(certificate))
    except Rejected:
        return False
    return True


def assuming(certificate: Certificate, *assumed: Assumption) -> Certificate:
    return replace(certificate, claim=replace(certificate.claim, assumed=assumed))


def at(name: str, certificate: Certificate, when: Now | Bound) -> Ref:
    t = next(t for t in certificate.claim.a.inputs if t.name == name)
    return Ref(name, frozenset(t.axes), t.field, Time.TOKEN, when)


def dotted(one: Expr, other: Expr) -> Expr:
    (axis,) = one.axes
    return Reduce(Reduction.SUM, axis, mul(one, other))


@pytest.mark.parametrize("mixer", ["delta", "guarded"])
@pytest.mark.parametrize("position", [0, 1])
def test_certificates_are_accepted_and_read_again(
    shown: Callable, mixer: str, position: int
) -> None:
    certificate = shown(mixer, position)
    assert read(write(certificate)) == certificate
    assert certificate.claim.assumed
    assert check(write(certificate)).claim == certificate.claim
    assert (check(write(certificate)).gap is not None) == (position == 1)


@pytest.mark.parametrize("mixer", ["delta", "guarded"])
def test_nothing_is_shown_without_what_is_assumed(shown: Callable, mixer: str) -> None:
    assert not accepted(assuming(shown(mixer, 0)))


def test_what_is_assumed_has_to_be_what_the_proof_needs(shown: Callable) -> None:
    certificate = shown("delta", 0)
    (what,) = certificate.claim.assumed
    q, k = (at(x, certificate, Now(0)) for x in "qk")
    k_j = at("k", certificate, Bound(what.earlier))
    assert accepted(assuming(certificate, what))
    assert accepted(assuming(certificate, replace(what, left=dotted(k_j, k))))
    assert accepted(assuming(certificate, replace(what, left=mul(num(-2), what.left))))
    gate = at("beta", certificate, Now(0))  # what is erased is multiplied by it
    assert accepted(assuming(certificate, replace(what, left=mul(gate, what.left))))
    k_before = at("k", certificate, Bound(what.earlier, 1))
    for forged in (
        replace(what, relation="<="),
        replace(what, relation=">="),
        replace(what, relation="!="),
        replace(what, relation="is"),
        replace(what, right=ONE),
        replace(what, earlier=""),
        replace(what, earlier="l"),
        replace(what, own=True),
        replace(what, left=dotted(q, k_j)),
        replace(what, left=dotted(k, k_before)),
        replace(what, left=dotted(k, at("q", certificate, Bound(what.earlier)))),
        replace(what, left=dotted(k, k)),
        replace(what, left=mul(at("beta", certificate, Bound("j", 1)), what.left)),
        replace(what, left=ZERO),
    ):
        assert not accepted(assuming(certificate, forged)), forged


def test_a_sign_has_to_be_known(shown: Callable) -> None:
    certificate = shown("guarded", 0)
    (what,) = certificate.claim.assumed
    assert accepted(assuming(certificate, replace(what, left=mul(num(3), what.left),
                                                  right=mul(num(3), what.right))))  # fmt: skip
    assert (what.left, what.relation) == (at("beta", certificate, Now(0)), "<=")
    assert accepted(assuming(certificate, Assumption(what.right, ">", what.left)))
    for forged in (
        replace(what, relation=">="),
        replace(what, relation="=="),
        Assumption(what.right, "<=", what.left),
        replace(what, left=mul(num(3), what.left)),
        replace(what, left=add(num(-1), what.left)),
        replace(what, earlier="j", own=True),
    ):
        assert not accepted(assuming(certificate, forged)), forged


def test_there_has_to_be_a_point_at_which_it_holds(shown: Callable) -> None:
    for mixer in ("delta", "guarded"):
        certificate = shown(mixer, 0)
        assert not accepted(replace(certificate, proof=replace(certificate.proof, holds=None)))
    certificate = shown("delta", 0)
    point = certificate.proof.holds
    values = dict(point.values)
    one, zero = (1, 1, 0, 1), (0, 1, 0, 1)

    def held(length: int, **changed: tuple) -> bool:
        entries = {**values, **changed}
        proof = replace(certificate.proof, holds=Somewhere(length, tuple(entries.items())))
        return accepted(replace(certificate, proof=proof))

    basis = (one, zero, zero, one)
    plain = {name: (one,) * len(x) for name, x in values.items() if len(x) == 4}
    assert dict(certificate.claim.sizes)["n"] == dict(certificate.claim.sizes)["p"] == 2
    assert held(2, **{**plain, "k": basis, "beta": (one, one)})
    assert not held(2, **{**plain, "beta": (one, one)})  # keys that are not orthogonal
    assert not held(2, **{**plain, "k": (zero,) * 4, "beta": (one, one)})  # the output is 0
    assert not held(2, **{**plain, "k": basis[:2], "beta": (one, one)})
    short = {name: x[:2] for name, x in plain.items()}
    assert not held(1, **{**short, "beta": (one,)})  # nothing is read at an earlier token


def test_the_point_is_one_of_the_other_mixer_too(shown: Callable) -> None:
    certificate = shown("delta", 0)
    claim, point = certificate.claim, certificate.proof.holds
    positive = tuple(
        replace(t, constraint=Constraint.POSITIVE) if t.name == "beta" else t
        for t in claim.b.inputs
    )
    narrower = replace(claim, b=replace(claim.b, inputs=positive))
    one, zero = (1, 1, 0, 1), (0, 1, 0, 1)
    values = {n: (one,) * 4 for n, _ in point.values} | {"k": (one, zero, zero, one)}
    for gate, taken in ((1, True), (-1, False)):
        at_point = Somewhere(2, tuple((values | {"beta": ((gate, 1, 0, 1),) * 2}).items()))
        proof = replace(certificate.proof, holds=at_point)
        assert accepted(replace(certificate, proof=proof, defined=None))
        forged = Certificate(narrower, proof, None)
        assert accepted(forged) is taken


def test_difference_is_shown_where_it_holds(shown: Callable) -> None:
    refuted = shown("delta", 1)
    (orthogonal,) = shown("delta", 0).claim.assumed
    assert accepted(refuted)
    assert not accepted(assuming(refuted, orthogonal))  # true, and not so at that point
    assert accepted(assuming(refuted))  # difference without conditions is shown there as well


def test_systems_are_those_of_the_definitions(shown: Callable) -> None:
    certificate = shown("delta", 0)
    claim = certificate.claim
    simpler = simplified(claim)
    assert simpler.a != claim.a
    assert simpler.b == claim.b
    derived = replace(claim.a, stages=simpler.a.stages, streams=simpler.a.streams)
    assert not accepted(replace(certificate, claim=replace(claim, a=derived)))
    assert accepted(replace(certificate, claim=replace(simpler, assumed=claim.assumed)))


def test_other_parts_of_a_claim_are_refused_beside_it(shown: Callable) -> None:
    certificate = shown("delta", 0)
    claim = certificate.claim
    for forged in (
        replace(claim, names=(("q", "k"), ("k", "q"))),
        replace(claim, case=True),
        replace(claim, free=True),
        replace(claim, apart=("n",)),
        replace(claim, equal=False),
        replace(claim, functions=(("f", (), ()),)),
    ):
        assert not accepted(replace(certificate, claim=forged))
    conditional = Conditional(Invariant((), False), None, ())
    for proof in (conditional, certificate.proof.proof):
        assert not accepted(replace(certificate, proof=proof))


def test_definitions_that_are_made_of_themselves_are_refused(shown: Callable) -> None:
    certificate = shown("delta", 0)
    one, other = (Ref(x, frozenset(), Field.REAL, Time.TOKEN, Now(0)) for x in ("x1", "x2"))
    more = (
        Definition("x1", mul(num(2), other), (), Field.REAL),
        Definition("x2", mul(num(2), one), (), Field.REAL),
    )
    a = certificate.claim.a
    forged = replace(certificate.claim, a=replace(a, definition=(*a.definition, *more)))
    assert not accepted(replace(certificate, claim=forged))


def test_names_are_read_as_they_are_declared(shown: Callable) -> None:
    certificate = shown("delta", 0)
    (what,) = certificate.claim.assumed
    axes = frozenset(a for t in certificate.claim.a.inputs for a in t.axes)
    for left in (
        Ref("k", axes, Field.REAL, Time.TOKEN, Now(0)),
        Ref("k", frozenset(), Field.REAL, Time.TOKEN, Now(0)),
        Ref("nowhere", frozenset(), Field.REAL, Time.TOKEN, Now(0)),
    ):
        more = Assumption(mul(ZERO, left) if left.name == "k" else left, "!=", left)
        assert not accepted(assuming(certificate, what, more))


def test_tokens_to_come_are_not_read(shown: Callable) -> None:
    certificate = shown("delta", 0)
    (what,) = certificate.claim.assumed

    def ahead(e: Expr) -> Expr | None:
        if isinstance(e, Ref) and isinstance(e.at, Bound):
            return replace(e, at=Bound(e.at.var, -1))
        return None

    assert not accepted(assuming(certificate, replace(what, left=rewrite(what.left, ahead))))


def test_what_has_tokens_is_not_read_as_a_constant(shown: Callable) -> None:
    certificate = shown("delta", 0)
    (what,) = certificate.claim.assumed
    beta = at("beta", certificate, Now(0))
    constant = replace(beta, at=None, when=Time.CONST)
    for e, taken in ((beta, True), (constant, False), (replace(beta, when=Time.STATE), False)):
        more = Assumption(e, "==", e)
        assert accepted(assuming(certificate, what, more)) is taken


def test_an_index_outside_a_sum_is_not_the_one_that_is_summed(shown: Callable) -> None:
    # q[j] Σ_n k k[j] = 0 says nothing of Σ_n k k[j] q[j].
    certificate = shown("delta", 0)
    claim = certificate.claim
    (what,) = claim.assumed
    q_before, k_before = (at(x, certificate, Now(1)) for x in "qk")
    q_j, k_j = (at(x, certificate, Bound(what.earlier)) for x in "qk")
    k = at("k", certificate, Now(0))
    factor = dotted(k, mul(q_before, k_before))
    definition = tuple(
        replace(d, value=mul(factor, d.value)) if d.name == "y" else d for d in claim.a.definition
    )
    system = derived_again(replace(claim.a, definition=definition))
    for left, stays in ((mul(q_j, dotted(k, k_j)), True), (dotted(k, mul(q_j, k_j)), False)):
        assumed = (replace(what, left=left),)
        simpler = simplified(replace(claim, a=system, b=system, assumed=assumed)).a
        output = next(d.value for d in simpler.definition if d.name == "y")
        assert (q_before in walk(output)) is stays


def test_a_value_that_would_have_more_axes_is_not_put_in(shown: Callable) -> None:
    system = shown("delta", 0).claim.a
    scalar, vector = (at(x, shown("delta", 0), Now(0)) for x in ("beta", "k"))
    assert not of_use(system, Assumption(scalar, "==", add(vector, ONE)))
    assert of_use(system, Assumption(vector, "==", add(scalar, ONE)))


def test_other_readers_do_not_take_it_for_equality(shown: Callable) -> None:
    certificate = shown("delta", 0)
    with pytest.raises(Silent, match="assumed"):
        second_check(write(certificate))
    with pytest.raises(NotWritten):
        lean_text(certificate)
