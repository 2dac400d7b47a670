"""Planes of complex values are their parts, and a scan of pairs is the complex one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dsfc.api.pipeline import Compilation
from dsfc.expr.build import num, prim, walk
from dsfc.expr.evaluate import NamedArray, evaluate
from dsfc.expr.tree import Axis, Expr, Field, Now, Ref, Time
from dsfc.fused.ir import FusedPlan, halves, is_paired, joined, real_imag
from dsfc.fused.prologue import fuse_prologue, has_prologue
from dsfc.fused.real_imag import split_real_imag
from dsfc.plan.flow import reads
from dsfc.plan.ir import Plan, Pointwise
from dsfc.plan.scan_ir import Scan

VALUES = (
    "cplx(u, v) * cplx(v, 2)",
    "(cplx(u, 1) * cis(v))^3 / cplx(3, u)",
    "exp(cplx(-sigmoid(u), v)) / (1 + v^2)",
    "conj(cis(u) * v - cplx(v, 0)) + u",
    "cplx(Re(cis(u)^2) * v, Im(cplx(u, v) * cis(v)))",
    "cis(u) * sqrt(cplx(2, u))",
    "u",
)
"""The last but one holds a function of a complex value: a buffer of its own."""


class At:
    """Numbers of all buffers of a plan that no scan comes before."""

    def __init__(self, plan: Plan) -> None:
        given = np.array([0.3, -1.2, 0.9])
        inputs = enumerate(plan.inputs, 1)
        self.values = {t.name: NamedArray(t.axes, k * given) for k, t in inputs}
        for k in plan.kernels:
            if isinstance(k, Pointwise) and all(n in self.values for n, _ in reads(k)):
                self.values[k.output] = evaluate(k.value, self)  # type: ignore[arg-type]  # no others

    def ref(self, ref: Ref) -> NamedArray:
        """A buffer."""
        return self.values[ref.name]

    def size(self, axis: Axis) -> int:
        """As many as there are numbers."""
        return 3


def scan_of(plan: Plan) -> Scan:
    (scan,) = (k for k in plan.kernels if isinstance(k, Scan))
    return scan


def driven(load: Callable[[str, str], Compilation], value: str) -> Plan:
    body = f"""
      dims d
      input u, v : d
      state h : d complex
      w = {value}
      h = sigmoid(u) * cis(v) * h[i-1] + w
      y = Re(h) + u * Im(h)
    """
    return load(f"driven_{VALUES.index(value)}", body).plan


@pytest.mark.parametrize("value", VALUES)
def test_planes_are_the_parts_of_a_value_and_of_its_decay(
    value: str, load: Callable[[str, str], Compilation]
) -> None:
    plan = driven(load, value)
    paired = split_real_imag(plan, "h")
    (whole,), pair = scan_of(plan).columns, scan_of(paired)
    before, after = At(plan).values, At(paired).values
    leaf = scan_of(plan).decay.leaves[0]
    for name, parts in (
        (whole.value, [c.value for c in pair.columns]),
        (leaf, pair.decay.leaves),
    ):
        re, im = (after[n].data for n in parts)
        np.testing.assert_allclose(re + 1j * im, before[name].data, rtol=1e-14, atol=1e-15)
    opaque = [n for n in after if n.startswith("h_part")]
    assert len(opaque) == ("sqrt" in value)
    assert is_paired(pair) and not is_paired(scan_of(plan))
    assert has_prologue(pair) and not has_prologue(scan_of(plan))


def test_readers_read_planes_and_what_nobody_reads_is_gone(
    load: Callable[[str, str], Compilation],
) -> None:
    plan = driven(load, VALUES[0])
    paired = split_real_imag(plan, "h")
    complex_ones = [b.name for b in paired.arrays if b.field is Field.COMPLEX]
    assert complex_ones == []
    values = [k.value for k in paired.kernels if isinstance(k, Pointwise)]
    assert not any(e.field is Field.COMPLEX for v in values for e in walk(v))
    assert paired.output == plan.output and paired.states == plan.states


def test_a_state_that_is_read_whole_is_joined_behind_the_scan(
    load: Callable[[str, str], Compilation],
) -> None:
    body = """
      dims d
      input u, v : d
      state h : d complex
      h = sigmoid(u) * cis(v) * h[i-1] + u
      y = abs(h) + Re(h)
    """
    plan = load("read_whole", body).plan
    paired = split_real_imag(plan, "h")
    name = scan_of(plan).columns[0].output
    (whole,) = (k for k in paired.kernels if getattr(k, "output", None) == name)
    refs = real_imag(whole.value)
    assert [r.name for r in refs] == [c.output for c in scan_of(paired).columns]


def test_gates_of_pairs_have_two_of_each(load: Callable[[str, str], Compilation]) -> None:
    plan = driven(load, VALUES[0])
    (gates,) = fuse_prologue(FusedPlan(plan, plan), lambda p: p.name != "step").prologues
    for e in (gates.value, gates.decay, gates.log_decay):
        assert len(real_imag(e)) == 2 and all(x.field is Field.REAL for x in real_imag(e))
    bars = {n.name for e in gates.gradients for n in walk(e) if isinstance(n, Ref)}
    assert {"value_bar_re", "value_bar_im", "log_decay_bar_re", "log_decay_bar_im"} <= bars


HEADS = """
      dims heads h = 2, n = 3, p = 5
      input q, k : h × n; v, w : h × p; f, g : h
      state S : h × n × p complex
      a = sigmoid(f) * cis(g)
"""


def columns_of(load: Callable[[str, str], Compilation], name: str, lines: str) -> Scan:
    plan = load(name, f"{HEADS}{lines}").plan
    paired = split_real_imag(plan, scan_of(plan).name)
    assert paired.output == plan.output and paired.states == plan.states
    return scan_of(paired)


def test_a_matrix_scan_of_real_keys_has_a_column_for_each_plane(
    load: Callable[[str, str], Compilation],
) -> None:
    text = "S = a * S[i-1] + k ⊗ {}\ny = {}"
    real = columns_of(load, "of_a_real_value", text.format("v", "Re(q · S)"))
    assert [c.value for c in real.columns] == ["v", None] and real.real
    assert is_paired(real) and not has_prologue(real)
    assert real.decay is not None
    assert real.decay.leaves == ("S_log_decay_re", "S_log_decay_im")
    both = columns_of(load, "both_read", text.format("v", "Re(q · S) + Im(q · S)"))
    assert both.columns == real.columns and not both.real
    pair = columns_of(load, "of_a_pair", text.format("cplx(v, w)", "Re(q · S)"))
    assert None not in [c.value for c in pair.columns] and len(pair.columns) == 2


def test_real_planes_stand_in_front_of_all_imaginary_ones(
    load: Callable[[str, str], Compilation],
) -> None:
    lines = """
      state z : h × n complex
      S = a * S[i-1] + k ⊗ cplx(v, w)
      z = a * z[i-1] + k
      y = Re(q · S) + Re(q · z) * v
    """
    scan = columns_of(load, "several", lines)
    assert [c.state for c in scan.columns] == ["S", "z", "S", "z"]
    first, second = halves(scan)
    assert (*first.columns, *second.columns) == scan.columns
    # The imaginary plane of the constant 1 is a constant too, which the other's is not.
    assert first.columns[1].value is None and second.columns[1].value is not None


def test_complex_keys_keep_a_matrix_scan_as_it_is(
    load: Callable[[str, str], Compilation],
) -> None:
    plan = load("keys", f"{HEADS}S = a * S[i-1] + (cplx(k, q)) ⊗ v\ny = Re(q · S)").plan
    assert split_real_imag(plan, "S") is plan


def test_the_plan_of_a_real_scan_is_itself(plan_of: Callable[[str], Plan]) -> None:
    plan = plan_of("rg_lru")
    assert split_real_imag(plan, "h") is plan


def test_planes_are_joined_again() -> None:
    x: Expr = Ref("x", frozenset(), Field.REAL, Time.TOKEN, Now())
    assert joined(real_imag(x)) is x
    z = prim("cplx", x, num(1))
    assert joined(real_imag(z)) == z
