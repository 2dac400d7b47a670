"""Logarithms of decays: the column "log λ" of the table of mixers."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dsfc.derive.decay import decay_of
from dsfc.expr.build import ONE, add, div, mul, neg, num, ones, power, sub
from dsfc.expr.normal import normalise
from dsfc.expr.tree import Axis, Expr, Field, LinearMap, Map, Now, Param, Prim, Ref, Rename, Time
from dsfc.system.ir import Decay, LogForm

D, N, N2, H = Axis(0, "d"), Axis(1, "n"), Axis(2, "n2", copy_of="n"), Axis(3, "h", heads=True)
U = Ref("u", frozenset({D}), Field.REAL, Time.TOKEN, Now(0))


def prim(name: str, *args: Expr) -> Expr:
    kind = Field.COMPLEX if name in ("cplx", "cis") else max(a.field for a in args)
    return Prim(name, args, Field.REAL if name in ("re", "im", "abs") else kind)


def param(name: str, *axes: Axis, kind: Field = Field.REAL) -> Expr:
    return Param(name, frozenset(axes), kind)


def gate(name: str) -> Expr:
    return Map(LinearMap(name, (), (D,), (D,)), U)


a, omega, nu, theta = param("a", D), param("omega", D), param("nu", D), param("theta", D)
log_step = param("log_Delta", D)
step = prim("softplus", add(gate("W_Delta"), param("b_Delta", D)))
flow = prim("cplx", neg(prim("exp", a)), omega)

EXACT = {
    "attention": (ones([H]), num(0), None),
    "s4d": (
        prim("exp", mul(prim("exp", log_step), flow)),
        neg(mul(prim("exp", log_step), prim("exp", a))),
        mul(prim("exp", log_step), omega),
    ),
    "lru": (
        prim("exp", prim("cplx", neg(prim("exp", nu)), prim("exp", theta))),
        neg(prim("exp", nu)),
        prim("exp", theta),
    ),
    "s6": (
        prim("exp", neg(mul(step, prim("exp", a)))),
        neg(mul(step, prim("exp", a))),
        None,
    ),
    "qlstm": (
        prim("sigmoid", gate("W_f")),
        neg(prim("softplus", neg(gate("W_f")))),
        None,
    ),
    "gla": (
        power(prim("sigmoid", gate("W")), num(Fraction(1, 16))),
        mul(num(Fraction(-1, 16)), prim("softplus", neg(gate("W")))),
        None,
    ),
    "minimal gru": (
        sub(ONE, prim("sigmoid", gate("W_z"))),
        neg(prim("softplus", gate("W_z"))),
        None,
    ),
    "gateloop": (
        mul(prim("sigmoid", gate("w_a")), prim("cis", gate("w_b"))),
        neg(prim("softplus", neg(gate("w_a")))),
        gate("w_b"),
    ),
    "kernel product": (
        mul(
            prim("exp", prim("cplx", neg(mul(a, a)), omega)),
            prim("conj", prim("exp", prim("cplx", neg(mul(nu, nu)), theta))),
        ),
        neg(add(mul(a, a), mul(nu, nu))),
        sub(omega, theta),
    ),
    "quotient": (
        div(prim("sigmoid", gate("W")), prim("exp", a)),
        sub(neg(prim("softplus", neg(gate("W")))), a),
        None,
    ),
}

turn, other = prim("cis", theta), prim("cplx", nu, theta)
COMPLEX = {
    "a quotient": (div(turn, prim("exp", flow)), prim("exp", a), sub(theta, omega)),
    "a quotient by a real value": (div(turn, prim("exp", a)), neg(a), theta),
    "a quotient of a real value": (div(prim("exp", a), turn), a, neg(theta)),
    "a power": (power(prim("exp", flow), num(3)), mul(num(-3), prim("exp", a)), mul(num(3), omega)),
    "a power below 0": (power(prim("exp", other), num(-1)), neg(nu), neg(theta)),
    "a conjugate": (prim("conj", prim("exp", other)), nu, neg(theta)),
    "a renamed turn": (
        Rename(N, N2, prim("exp", prim("cplx", param("b", N), param("c", N)))),
        Rename(N, N2, param("b", N)),
        Rename(N, N2, param("c", N)),
    ),
    "an exponential of a sum": (prim("exp", add(a, other)), add(a, nu), theta),
    "an exponential of a product": (
        prim("exp", mul(flow, other, a)),
        add(neg(mul(a, nu, prim("exp", a))), neg(mul(a, omega, theta))),
        sub(mul(a, omega, nu), mul(a, prim("exp", a), theta)),
    ),
    "an exponential of a square": (
        prim("exp", mul(other, other)),
        sub(mul(nu, nu), mul(theta, theta)),
        mul(num(2), nu, theta),
    ),
    "an exponential of a quotient": (prim("exp", div(other, a)), div(nu, a), div(theta, a)),
    "an exponential of a conjugate": (prim("exp", prim("conj", other)), nu, neg(theta)),
    "an exponential of a renamed value": (
        prim("exp", Rename(N, N2, prim("cplx", param("b", N), param("c", N)))),
        Rename(N, N2, param("b", N)),
        Rename(N, N2, param("c", N)),
    ),
    "an exponential of a real value of complex kind": (
        prim("exp", mul(prim("cplx", nu, num(0)), prim("cplx", a, num(0)))),
        mul(nu, a),
        num(0),
    ),
    "an exponential of a quotient without a phase": (
        prim("exp", div(prim("cplx", nu, num(0)), a)),
        div(nu, a),
        num(0),
    ),
    "an exponential of an imaginary value": (prim("exp", prim("cplx", num(0), nu)), num(0), nu),
    "an exponential of a parameter": (
        prim("exp", param("z", D, kind=Field.COMPLEX)),
        prim("re", param("z", D, kind=Field.COMPLEX)),
        prim("im", param("z", D, kind=Field.COMPLEX)),
    ),
}
"""Name → a value with a closed polar form, the logarithm of its modulus, its phase."""

plain = param("z", D, kind=Field.COMPLEX)
OPEN = {
    "a parameter": plain,
    "a sum": add(turn, plain),
    "a product": mul(turn, plain),
    "a quotient of an open value": div(plain, turn),
    "a quotient by an open value": div(turn, plain),
    "a conjugate": prim("conj", plain),
    "a power of an open value": power(plain, num(2)),
    "a root": power(turn, num(Fraction(1, 2))),
    "a renamed value": Rename(N, N2, param("z", N, kind=Field.COMPLEX)),
}
"""Complex values without a polar form."""

lower, keep = param("lb"), prim("sigmoid", gate("W_f"))
LOG_OF = {
    "retnet": (param("gamma", H), prim("log", param("gamma", H))),
    "hgrn2": (
        add(lower, mul(sub(ONE, lower), keep)),
        prim("log", add(lower, mul(sub(ONE, lower), keep))),
    ),
    "mega": (
        sub(ONE, mul(prim("sigmoid", a), prim("sigmoid", nu))),
        prim("log1p", neg(mul(prim("sigmoid", a), prim("sigmoid", nu)))),
    ),
}


@pytest.mark.parametrize("name", EXACT)
def test_closed_logarithms(name):
    value, log, phase = EXACT[name]
    decay = decay_of(value)
    assert decay.form is LogForm.EXACT
    assert normalise(decay.log) == normalise(log)
    assert (decay.phase is None) == (phase is None)
    if phase is not None:
        assert normalise(decay.phase) == normalise(phase)


def rebuilt(decay: Decay) -> Expr:
    """Returns exp(log + i · phase): the value wherever the logarithm is defined."""
    modulus = prim("exp", decay.log)
    return modulus if decay.phase is None else mul(modulus, prim("cis", decay.phase))


@pytest.mark.parametrize("name", ["attention", "s4d", "lru", "s6", "kernel product"])
def test_exp_of_a_closed_logarithm_is_the_decay(name):
    decay = decay_of(EXACT[name][0])
    assert normalise(rebuilt(decay)) == normalise(decay.value)


@pytest.mark.parametrize("name", LOG_OF)
def test_logarithms_of_values(name):
    value, log = LOG_OF[name]
    decay = decay_of(value)
    assert decay.form is LogForm.LOG_OF
    assert decay.phase is None
    assert normalise(decay.log) == normalise(log)


def test_rotation_of_a_buffered_decay_keeps_its_phase():
    decay = decay_of(mul(param("gamma", H), prim("cis", theta)))
    assert decay.form is LogForm.LOG_OF
    assert decay.log is prim("log", param("gamma", H))
    assert decay.phase is theta


def test_a_power_of_an_unsigned_base_is_not_split():
    decay = decay_of(power(a, num(2)))
    assert decay.log is prim("log", power(a, num(2)))


def test_factors_of_unknown_sign_stay_together():
    decay = decay_of(mul(a, nu, prim("exp", omega)))
    assert decay.form is LogForm.LOG_OF
    assert decay.log is add(omega, prim("log", mul(a, nu)))


@pytest.mark.parametrize("name", COMPLEX)
def test_polar_forms_of_complex_values(name):
    value, log, phase = COMPLEX[name]
    decay = decay_of(value)
    assert (decay.value, decay.form) == (value, LogForm.EXACT)
    assert normalise(decay.log) == normalise(log)
    assert normalise(decay.phase) == normalise(phase)


@pytest.mark.parametrize("name", OPEN)
def test_a_complex_value_without_polar_form(name):
    decay = decay_of(OPEN[name])
    assert (decay.form, decay.phase) == (LogForm.LOG_OF, None)
    assert decay.log is prim("log", OPEN[name])


def test_a_modulus_has_a_logarithm_where_its_argument_has_a_polar_form():
    value, log, _ = COMPLEX["an exponential of a product"]
    assert normalise(decay_of(prim("abs", value)).log) == normalise(log)
    assert decay_of(prim("abs", value)).form is LogForm.EXACT
    unsigned = mul(U, prim("cis", U))
    for value in (*OPEN.values(), unsigned):
        decay = decay_of(prim("abs", value))
        assert decay.form is LogForm.LOG_OF
        assert decay.log is prim("log", prim("abs", value))


def test_renamed_axes_go_to_the_leaves():
    value = Rename(N, N2, prim("exp", neg(param("a", N))))
    decay = decay_of(value)
    assert decay.form is LogForm.EXACT
    assert decay.log is neg(Rename(N, N2, param("a", N)))
