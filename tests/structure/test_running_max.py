"""Which ratios are stored over a running maximum, and that nothing else of them changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dsfc
from dsfc.api.pipeline import Compilation
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.json import decode, encode
from dsfc.expr.max_plus import LOWEST
from dsfc.matrices.latex import latex_form
from dsfc.mixer import sample
from dsfc.mixer.sample import small_sizes
from dsfc.structure.classify import classify
from dsfc.structure.ir import BoundKind
from dsfc.structure.running_max import bounds, stabilised
from dsfc.system.evaluate import evaluate
from dsfc.system.index_form import equations
from dsfc.system.ir import GaugeKind, MaxPlus, Stream, System
from dsfc.system.verify import SystemInvariantError, verify
from dsfc.transform.adjoint import adjoint
from dsfc.transform.running_max import running_max_gauge

SPECS = sorted(p.stem for p in (Path(dsfc.__file__).parent.parent / "specs").glob("*.dsf"))
MIXERS = ("lln", "lnssm", "lnssm_block", "mlstm", "performer", "rwkv4")


@pytest.fixture(scope="module", params=MIXERS)
def spec(request: pytest.FixtureRequest) -> Compilation:
    return dsfc.load(request.param)


def drawn(spec: Compilation, length: int = 5) -> tuple[dict, dict, dict]:
    sizes = small_sizes(spec.mixer)
    made = sample(spec.mixer, sizes, 0, length)
    return dict(made.inputs), dict(made.params), sizes


def maximum(system: System) -> Stream:
    (found,) = (s for s in system.streams if isinstance(s.value, MaxPlus))
    return found


@pytest.mark.ci
def test_those_without_a_bound_are_and_no_others() -> None:
    found = []
    for name in SPECS:
        try:
            spec = dsfc.load(name)
            if spec.computed is not spec.system:
                found.append(name)
        except DiagnosticError:
            continue
    assert tuple(found) == MIXERS


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("exp(k)", True),
        ("exp(k) * (1 + k^2)", True),
        ("1 / exp(k)", True),
        ("exp(k)^2", True),
        ("sqrt(exp(k))", True),
        ("exp(k)^(-1/2) * (1 + k^2)", True),
        ("exp(-k^2)^2", False),
        ("exp(-k^2)", False),
        ("exp(tanh(k))", False),
        ("exp(-softplus(k))", False),
        ("sigmoid(k)", False),
        ("k", False),
    ],
)
def test_an_exponent_that_varies_and_has_no_upper_bound(
    key: str, found: bool, tmp_path: Path
) -> None:
    body = f"""mixer any {{
  dims d, n
  input k, q : n
        v : d
  w = {key}
  S = sum[j ≤ i](w[j] ⊗ v[j])
  z = sum[j ≤ i](w[j])
  y = (q · S) / (q · z)
}}
"""
    path = tmp_path / "any.dsf"
    path.write_text(body, encoding="utf-8")
    system = dsfc.load(path).system
    assert (stabilised(system) is not system) is found


@pytest.mark.parametrize(
    ("decay", "found"),
    [
        ("sigmoid(a)", True),
        ("1 / (1 + a^2)", True),
        ("sigmoid(a) / 2 + 1/4", True),
        ("tanh(a)", False),
        ("max(a, 0)", False),
        ("1 - first", False),
    ],
)
def test_a_decay_that_may_be_0_or_less_has_no_maximum(
    decay: str, found: bool, tmp_path: Path
) -> None:
    path = tmp_path / "signed.dsf"
    body = """mixer signed {{
  dims d
  input u, a, b : d
  state s, t : d
  s = ({decay}) * s[i-1] + exp(b) * u
  t = ({decay}) * t[i-1] + exp(b)
  y = s / t{rest}
}}
"""
    # An input that nothing reads is none.
    text = body.format(decay=decay, rest="" if "(a" in decay or "a^" in decay else " + a")
    path.write_text(text, encoding="utf-8")
    system = dsfc.load(path).system
    assert (stabilised(system) is not system) is found


@pytest.mark.parametrize(
    "rest",
    [
        "y = (q · S) / (q · z) + q · S",  # read outside of a ratio too
        "y = (q · S) / (1 + (q · z)^2)",  # what divides is no read
        "y = (q · S) / (q · w)",  # no exponential weight
        "y = (q · S) / (q · x)",  # another decay
    ],
)
def test_states_that_one_maximum_does_not_scale_are_left_alone(rest: str, tmp_path: Path) -> None:
    path = tmp_path / "other.dsf"
    body = """mixer other {
  dims d, n
  input k, q : n
        v : d
  state S : n × d
        z, w, x : n
  S = S[i-1] + exp(k) ⊗ v
  z = z[i-1] + exp(k)
  w = w[i-1] + k^2
  x = 1/2 * x[i-1] + exp(k)
"""
    used = {"z": "z", "w": "w", "x": "x"}
    lines = body.split("\n")
    kept = [n for n in used if f"· {n})" in rest]
    lines = [x for x in lines if not any(x.startswith(f"  {n} =") for n in used if n not in kept)]
    text = "\n".join(lines).replace("z, w, x : n", f"{', '.join(kept)} : n")
    path.write_text(f"{text}  {rest}\n}}\n", encoding="utf-8")
    system = dsfc.load(path).system
    assert stabilised(system) is system


def test_the_system_is_well_formed_and_is_written_and_read(spec: Compilation) -> None:
    made = spec.computed
    verify(made)
    assert decode(encode(made), System) == made
    name = maximum(made).name
    assert f"{name}[i-1]" in equations(made) and r"\operatorname{max}" in latex_form(made)
    assert {b.gauge.kind for b in made.blocks} == {GaugeKind.RUNNING_MAX}
    assert {b.bound.kind for b in classify(made).blocks} == {BoundKind.AT_MOST_ONE}


def test_a_maximum_inside_a_read_out_is_no_system(spec: Compilation) -> None:
    made = spec.computed
    (out,) = made.outputs
    with pytest.raises(SystemInvariantError, match="I11"):
        verify(replace(made, outputs=(replace(out, value=maximum(made).value),)))


def test_it_gives_the_same_outputs_from_any_state_and_across_cuts(spec: Compilation) -> None:
    inputs, params, sizes = drawn(spec)
    plain, made = spec.system, spec.computed
    rng = np.random.default_rng(0)
    start = {b.state: 1 + rng.random([sizes[a.name] for a in b.axes]) for b in plain.blocks}
    for initial in ({}, start):
        want = evaluate(plain, inputs, params, sizes, initial)
        got = evaluate(made, inputs, params, sizes, initial)
        np.testing.assert_allclose(got.outputs["y"], want.outputs["y"], rtol=1e-12, atol=1e-12)
        top = maximum(made)
        for b in made.blocks:
            places = tuple(slice(None) if a in top.axes else None for a in b.axes)
            found = got.finals[b.state] * np.exp(got.finals[top.name])[places]
            np.testing.assert_allclose(found, want.finals[b.state], rtol=1e-11, atol=1e-14)
    if "[i-1]" in equations(plain).split("stage")[0]:
        return  # a value of the token before is no state of the System
    head = evaluate(made, {n: x[:2] for n, x in inputs.items()}, params, sizes)
    tail = evaluate(made, {n: x[2:] for n, x in inputs.items()}, params, sizes, head.finals)
    whole = evaluate(made, inputs, params, sizes).outputs["y"]
    np.testing.assert_allclose(tail.outputs["y"], whole[2:], rtol=1e-12)


def test_its_outputs_do_not_depend_on_the_maximum(spec: Compilation) -> None:
    inputs, params, sizes = drawn(spec)
    plain = spec.system
    free, _ = running_max_gauge(plain, bounds(plain), free=True)
    verify(free)
    rng = np.random.default_rng(1)
    drawn_too = {
        t.name: rng.normal(size=(5, *(sizes[a.name] for a in t.axes)))
        for t in free.inputs
        if t.name not in inputs
    }
    assert len(drawn_too) == 2
    want = evaluate(plain, inputs, params, sizes).outputs["y"]
    got = evaluate(free, inputs | drawn_too, params, sizes).outputs["y"]
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12)


@pytest.mark.share(2)
def test_its_adjoint_is_that_of_the_plain_system(spec: Compilation) -> None:
    inputs, params, sizes = drawn(spec)
    back, record = adjoint(spec.system, [*inputs, *params])
    stored, _ = adjoint(spec.computed, [*inputs, *params])
    verify(stored)
    rng = np.random.default_rng(2)
    seed = {
        "y_bar": rng.normal(size=evaluate(spec.system, inputs, params, sizes).outputs["y"].shape)
    }
    want = evaluate(back, inputs | seed, params, sizes).outputs
    got = evaluate(stored, inputs | seed, params, sizes).outputs
    assert set(got) == set(want)
    for name, value in want.items():
        scale = 1e-11 * max(1.0, float(np.abs(value).max()))
        np.testing.assert_allclose(got[name], value, rtol=1e-9, atol=scale)
    assert record.renamed("y") == "y_bar"


def test_it_is_finite_where_the_plain_system_is_not(spec: Compilation) -> None:
    inputs, params, sizes = drawn(spec)
    inputs = {n: 1e4 * x for n, x in inputs.items()}
    params = {n: 1e4 * x if n in ("g_q", "g_k") else x for n, x in params.items()}
    with np.errstate(all="ignore"):
        plain = evaluate(spec.system, inputs, params, sizes).outputs["y"]
        got = evaluate(spec.computed, inputs, params, sizes).outputs["y"]
    assert not np.isfinite(plain).all() and np.isfinite(got).all()


def test_before_the_first_token_nothing_weighs_anything() -> None:
    spec = dsfc.load("lln")
    inputs, params, sizes = drawn(spec, 0)
    assert (evaluate(spec.computed, inputs, params, sizes).finals["S_max"] == LOWEST).all()
