"""Parameters of the second mixer that are its own, their conjugates, and what is not accepted."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

import dsfc
from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.prover.condition_polynomials import condition
from dsfc.prover.subsumes import subsumes
from dsfc.prover.verdict import Instance
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.alpha_rename import alpha_rename, own_names
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Condition, Conditional, Invariant
from dsfc.trusted.closed import closed
from dsfc.trusted.polynomial import constant, generator
from dsfc.trusted.rejected import Rejected


@pytest.fixture(scope="module")
def block(system: Callable) -> Certificate:
    """A rotation as a complex mode."""
    found = subsumes(system("dense", "rotation_block"), system("dense", "modes"), conditions=True)
    assert isinstance(found, Instance)
    return found.certificate


@pytest.fixture(scope="module")
def real(system: Callable) -> Certificate:
    """Real modes as complex ones; both are called λ and w."""
    found = subsumes(system("dense", "converse_state"), system("dense", "modes"), conditions=True)
    assert isinstance(found, Instance)
    return found.certificate


def rejected(certificate: Certificate) -> str:
    with pytest.raises(Rejected) as caught:
        check(write(certificate))
    return str(caught.value)


def claiming(c: Certificate, **changed) -> Certificate:
    return dataclasses.replace(c, claim=dataclasses.replace(c.claim, **changed))


def mixer(body: str) -> System:
    text = Source("m.dsf", f"mixer m {body}\n")
    return SpecText(Place(Path("m.dsf")), parse(text)).compilation("m").system


@pytest.mark.ci
def test_a_conjugate_has_the_conjugate_value(block: Certificate) -> None:
    check(write(block))
    assert not any(c.solved.startswith("~") for c in block.claim.conditions)
    turned = tuple(
        Condition(tuple((m, -k if ("i", 1) in m else k) for m, k in c.polynomial), c.solved)
        if c.solved == "lambda[0]" else c
        for c in block.claim.conditions
    )  # fmt: skip
    assert turned != block.claim.conditions
    rejected(claiming(block, conditions=turned))
    for k, c in enumerate(block.claim.conditions):
        rest = (*block.claim.conditions[:k], *block.claim.conditions[k + 1 :])
        assert rejected(claiming(block, conditions=rest)), c.solved


@pytest.mark.parametrize("solved, wrong", [
    ("z[]", "the outputs differ at one of the first tokens"),
    ("~z[]", "the outputs differ at one of the first tokens"),
])  # fmt: skip
def test_no_number_is_i_times_a_real_one_and_its_conjugate_too(solved: str, wrong: str) -> None:
    """|z|² would be - x²."""
    a = mixer("{\n input v\n param x\n y = -1 * x * x * v\n}")
    b = mixer("{\n input v\n param z complex\n y = Re(z * conj(z)) * v\n}")
    terms = ((((solved, 1),), 1), ((("i", 1), ("x[]", 1)), -1))
    given = Condition(tuple(sorted(terms)), solved)
    claim = Claim(a, b, (), (), case=True, conditions=(given,))
    proof = Conditional(Invariant((), False), None, ())
    assert rejected(Certificate(claim, proof)) == wrong


def test_a_conjugate_has_no_value_without_what_it_is_the_conjugate_of() -> None:
    """(z + conj(z)) / 2 + i (z - conj(z)) / 2 would be x for z = 0 and for z = x."""
    a = mixer("{\n input v\n param x\n y = x * v\n}")
    b = mixer("{\n input v\n param z complex\n y = Re(cplx(1, -1) * z) * v\n}")
    made = condition(
        generator("~z[]") * (constant(1) + generator("i")) + constant(-2) * generator("x[]")
        + generator("z[]") * (constant(1) + -generator("i")), "~z[]",
    )  # fmt: skip
    claim = Claim(a, b, (), (), case=True, conditions=(made,))
    proof = Conditional(Invariant((), False), None, ())
    assert rejected(Certificate(claim, proof)) == (
        "a condition is one on ~z[], which is not b's alone"
    )


def test_what_is_told_apart_is_said(real: Certificate) -> None:
    check(write(real))
    assert real.claim.apart
    assert rejected(claiming(real, apart=()))
    assert "no case of b is claimed" in rejected(claiming(real, case=False))
    assert "no case of b is claimed" in rejected(claiming(real, equal=False))


def test_all_of_b_goes_by_the_new_names(real: Certificate) -> None:
    b = alpha_rename(real.claim).b
    assert [t.name for t in b.params] == ["lambda_", "w_"]
    assert [d.axis.name for d in b.axes] == ["n_"]
    assert "Param(name='w'" not in repr(b) and "n})" not in repr(b)
    assert alpha_rename(dataclasses.replace(real.claim, apart=())).b is real.claim.b


def test_an_axis_where_both_meet_keeps_its_name() -> None:
    """And so does what is identified; a name that is taken is not taken again."""
    a = mixer("{ dims n, m\n input v : n\n param w : n;  x, w_ : m\n y = w * v * sum[m](x * w_)\n}")
    b = mixer("{ dims n, m\n input v : n\n param w : n;  x : m\n y = w * v * sum[m](x)\n}")
    claim = Claim(a, b, (), (("m", 1), ("n", 1)), case=True)
    assert own_names(claim) == {"w": "w__", "x": "x_", "m": "m_"}
    assert own_names(dataclasses.replace(claim, names=(("x", "x"),))) == {"w": "w__", "m": "m_"}


def test_the_sizes_of_what_is_told_apart_are_its_own(real: Certificate) -> None:
    sizes = tuple((name, k + (name == "n_")) for name, k in real.claim.sizes)
    assert rejected(claiming(real, sizes=sizes))


def test_what_is_put_side_by_side_keeps_its_name() -> None:
    """Axes of inputs, buffers and outputs, what is identified, and what a has not."""
    first = mixer("""{ dims n, p, d, h
 input u : d
 param w : n; k, m, z : h; g : p
 y = sum[d](u) * w * sum[h](k * m * z) * sum[p](g)
}""")
    second = mixer("""{ dims n, p, d, h, r
 input u : d
 buffer g : p = ones[p]
 param w : n; k, m, more : h; own : r
 y = sum[d](u) * w * sum[h](k * m * more) * sum[p](g) * sum[r](own)
}""")
    at = Claim(first, second, (("m", "z"),), (), case=True)
    assert own_names(at) == {"w": "w_", "k": "k_", "h": "h_"}
    # A name that is taken is not given, by either of the two.
    taken = mixer("{ dims n\n input u\n param w, w_, w__ : n\n y = u * sum[n](w * w_ * w__)\n}")
    less = mixer("{ dims n\n input u\n param w : n\n n_ = w * u\n y = sum[n](n_ + tanh(n_))\n}")
    assert own_names(Claim(taken, less, (), ())) == {"w": "w___", "n": "n__"}
    buffer = mixer(
        "{ dims n\n input u\n buffer w_ : n = 2\n param w, n_ : n\n y = u * sum[n](w * w_ * n_)\n}"
    )
    assert own_names(Claim(buffer, less, (), ())) == {"w": "w__", "n": "n__"}
    own = mixer("{ dims n\n input u\n param w_ : n\n y = u * sum[n](w_)\n}")
    assert own_names(Claim(buffer, own, (), ())) == {"w_": "w__", "n": "n__"}
    every = own_names(Claim(taken, taken, (), ()))
    assert len(set(every.values())) == len(every) == 4 and not set(every) & set(every.values())


@pytest.mark.parametrize("name", ["gla", "lru", "s6"])
def test_what_is_told_apart_has_its_new_name_throughout(name: str) -> None:
    of = dsfc.load(name).system
    claim = Claim(of, of, (), (), case=True)
    own = own_names(claim)
    told = alpha_rename(dataclasses.replace(claim, apart=tuple(own)))
    assert own and told.a is of and not told.apart
    closed(told.b)
    for part in (lambda s: s.params, lambda s: [d.axis for d in s.axes], lambda s: s.inputs):
        assert [x.name for x in part(told.b)] == [own.get(x.name, x.name) for x in part(of)]
    one = next(iter(own))
    some = alpha_rename(dataclasses.replace(claim, apart=(one,))).b
    closed(some)
    names = {x.name for x in (*some.params, *(d.axis for d in some.axes))}
    assert own[one] in names and one not in names and not names & {own[n] for n in own if n != one}
