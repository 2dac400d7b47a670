"""Couplings of drives to decays: the column "coupling" of the table of mixers, on expressions."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dsfc.derive.coupling import coupling_of, coupling_of_flow
from dsfc.derive.decay import decay_of
from dsfc.expr.build import MINUS_ONE, ONE, add, div, mul, neg, num, ones, power, sub
from dsfc.expr.declarations import FlowRule
from dsfc.expr.normal import normalise
from dsfc.expr.tree import Axis, Expr, Field, LinearMap, Map, Now, Param, Prim, Ref, Time
from dsfc.system.ir import FREE, CouplingKind, KeptFlow

D, N, H = Axis(0, "d"), Axis(1, "n"), Axis(2, "h", heads=True)
U = Ref("u", frozenset({D}), Field.REAL, Time.TOKEN, Now(0))


def prim(name: str, *args: Expr) -> Expr:
    kind = Field.COMPLEX if name in ("cplx", "cis") else max(a.field for a in args)
    return Prim(name, args, kind)


def param(name: str, *axes: Axis, kind: Field = Field.REAL) -> Expr:
    return Param(name, frozenset(axes), kind)


def gate(name: str, *target: Axis) -> Expr:
    return Map(LinearMap(name, (), (D,), target or (D,)), U)


a, omega, zeta, log_step = (param(name, D) for name in ("a", "omega", "zeta", "log_Delta"))
step = prim("softplus", add(gate("W_Delta"), param("b_Delta", D)))
b = gate("W_B", N)


def kind(key: Expr, value: Expr, *lefts: Expr) -> CouplingKind:
    return coupling_of(key, decay_of(value), lefts).kind


def test_euler():
    coupling = coupling_of(mul(step, b), decay_of(prim("exp", neg(mul(step, prim("exp", a))))))
    assert coupling.kind is CouplingKind.EULER
    assert coupling.scale is prim("exp", a)


def test_euler_needs_all_factors_that_vary_in_time():
    value = prim("exp", neg(mul(step, prim("softplus", gate("W")), prim("exp", a))))
    assert kind(mul(step, b), value) is CouplingKind.FREE
    assert kind(mul(step, prim("softplus", gate("W")), b), value) is CouplingKind.EULER


def test_euler_of_a_sum_of_decays():
    value = prim("exp", neg(add(mul(step, zeta), mul(step, prim("exp", a)))))
    coupling = coupling_of(mul(step, b), decay_of(value))
    assert coupling.kind is CouplingKind.EULER
    assert normalise(coupling.scale) == normalise(add(zeta, prim("exp", a)))


def test_square_root_is_matched_after_multiplying_out():
    r = prim("sigmoid", gate("W_r"))
    value = prim("exp", mul(num(-8), prim("softplus", zeta), r))
    written = prim("sqrt", sub(ONE, power(value, num(2))))
    factored = prim("sqrt", mul(sub(ONE, value), add(ONE, value)))
    doubled = prim("sqrt", sub(ONE, prim("exp", mul(num(-16), prim("softplus", zeta), r))))
    half = power(sub(ONE, mul(value, value)), num(Fraction(1, 2)))
    for root in (written, factored, doubled, half):
        assert (
            kind(mul(root, prim("sigmoid", gate("W_g"))), value) is CouplingKind.SQRT_ONE_MINUS_SQ
        )


def test_one_minus():
    lower = param("lb")
    value = add(lower, mul(sub(ONE, lower), prim("sigmoid", gate("W_f"))))
    assert kind(sub(ONE, value), value) is CouplingKind.ONE_MINUS
    assert kind(mul(sub(ONE, lower), sub(ONE, prim("sigmoid", gate("W_f")))), value) is (
        CouplingKind.ONE_MINUS
    )


def test_one_minus_of_a_mirrored_sigmoid():
    z = gate("W_z")
    assert kind(prim("sigmoid", z), prim("sigmoid", neg(z))) is CouplingKind.ONE_MINUS
    assert kind(prim("sigmoid", z), sub(ONE, prim("sigmoid", z))) is CouplingKind.ONE_MINUS


def test_zero_order_hold():
    pole = prim("cplx", neg(prim("exp", a)), omega)
    value = prim("exp", mul(prim("exp", log_step), pole))
    coupling = coupling_of(
        mul(div(add(value, MINUS_ONE), pole), param("B", D, N, kind=Field.COMPLEX)), decay_of(value)
    )
    assert coupling.kind is CouplingKind.ZOH
    assert normalise(coupling.scale) == normalise(pole)


def test_zero_order_hold_of_a_selective_step():
    pole = neg(prim("exp", a))
    value = prim("exp", mul(step, pole))
    coupling = coupling_of(mul(div(add(value, MINUS_ONE), pole), b), decay_of(value))
    assert coupling.kind is CouplingKind.ZOH
    assert normalise(coupling.scale) == normalise(pole)


def test_damped_average_is_one_minus_over_its_damping():
    p, alpha = prim("sigmoid", param("delta", D, N)), prim("sigmoid", param("alpha", D, N))
    value = sub(ONE, mul(p, alpha))
    coupling = coupling_of(mul(p, param("beta", D, N)), decay_of(value))
    assert coupling.kind is CouplingKind.ZOH
    # the key holds p = (λ − 1) / scale
    assert normalise(mul(p, coupling.scale)) == normalise(sub(value, ONE))


def test_bilinear():
    pole = prim("cplx", neg(prim("exp", a)), omega)
    delta = prim("exp", log_step)
    resolvent = div(ONE, sub(ONE, mul(num(Fraction(1, 2)), delta, pole)))
    value = sub(mul(num(2), resolvent), ONE)
    coupling = coupling_of(mul(resolvent, delta, param("B", N)), decay_of(value))
    assert coupling.kind is CouplingKind.BILINEAR
    assert coupling.scale is delta


def test_low_rank():
    beta = prim("sigmoid", gate("w_beta", H))
    k = gate("W_K", H, N)
    assert kind(mul(beta, k), ones([H]), neg(mul(beta, k))) is CouplingKind.LOW_RANK
    assert kind(k, ones([H]), neg(mul(beta, k))) is CouplingKind.FREE


def test_free():
    assert kind(prim("sigmoid", gate("W_i")), prim("sigmoid", gate("W_f"))) is CouplingKind.FREE
    assert kind(ones([N]), prim("exp", neg(prim("exp", a)))) is CouplingKind.FREE
    assert kind(b, ONE) is CouplingKind.FREE
    assert coupling_of(b, None) is FREE
    # λ fixed in time and a key that varies: nothing of log λ is left to match
    fixed = prim("exp", neg(mul(prim("softplus", zeta), a)))
    assert kind(mul(step, b), fixed) is CouplingKind.FREE


def test_flows_know_their_coupling():
    delta, diagonal = prim("exp", log_step), neg(prim("exp", a))
    drive = mul(U, param("B", N))
    kinds = {
        rule: coupling_of_flow(KeptFlow(rule, delta, diagonal, (), drive)).kind for rule in FlowRule
    }
    assert kinds == {
        FlowRule.ZOH: CouplingKind.ZOH,
        FlowRule.EULER: CouplingKind.EULER,
        FlowRule.BILINEAR: CouplingKind.BILINEAR,
    }


@given(st.permutations(["one", "step", "b", "gate"]), st.booleans())
def test_order_and_grouping_do_not_matter(order, nested):
    value = prim("exp", neg(mul(step, prim("exp", a))))
    parts = {"one": ones([D]), "step": step, "b": b, "gate": prim("sigmoid", gate("W_g"))}
    args = [parts[name] for name in order]
    key = mul(args[0], mul(*args[1:])) if nested else mul(*args)
    assert kind(key, value) is CouplingKind.EULER
