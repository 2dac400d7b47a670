"""Processes that share a sequence give what one process gives: outputs, states, gradients.

Every process is one of `context_process.py`. One start serves many mixers, since it takes longer
than all that they compute.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from dsfc.backends.torch.context import crossing
from processes import PROCESS, TRAINING, run
from unusual_specs import EARLIER_TOKENS, STEPPED

import dsfc
from dsfc.validate.surface import surface

SPECS = Path(__file__).parents[3] / "specs"

# Numbers of a summary, per sequence, by sizes that the checks draw: Λ̄ and b̄.
KINDS: Mapping[str, str | None] = {
    "normalized_attn": "1 + h * n * p",
    "linear_attn": None,
    "retnet": "h + h * n * p",
    "gla": "h * n + h * n * p",
    "s6": "2 * d * n",
    "ssd": None,
    "deltanet": "h * n * n + h * n * p",
    "gated_deltanet": "h * n * n + h * n * p",
    "kda": None,
    "rwkv7": None,
    "rg_lru": None,
    "lru": "4 * n",
    "mlstm": None,
    "h3": None,
}
# Of what has no finite state, and of what runs backwards.
REFUSED = ("dlr_bidirectional", "softmax")
# Small mixers: what no scan runs goes from each process to the next, and so do declared maxima.
BY_HAND: Mapping[str, str] = {
    "feedback_of_gates": STEPPED["feedback_of_gates"],
    "feedback_of_complex_states": STEPPED["feedback_of_complex_states"],
    "may_be_negative": STEPPED["may_be_negative"],
    "several_lags": EARLIER_TOKENS["several_lags"],
    "filter_and_lag": EARLIER_TOKENS["filter_and_lag"],
    "two_stages": """
      dims d
      input u : d
      state s, t : d
      s = 1/2 * s[i-1] + u
      t = sigmoid(s) * t[i-1] + s[i-1] * u
      y = t[i-1] + s""",
    "declared_maximum": """
      dims d
      input u, a : d
      state m : d
      m = max(u, m[i-1] + a)
      y = u * m""",
    "maximum_and_states": """
      dims heads h, n, p
      input q, k : h × n;  v : h × p;  a, b : h
      state C : h × n × p;  z : h × n;  m : h
      l = -softplus(-b)
      m = max(l + m[i-1], a)
      f = exp(l + m[i-1] - m)
      C = f * C[i-1] + exp(a - m) * k ⊗ v
      z = f * z[i-1] + exp(a - m) * k
      y = (q · C) / max(abs(q · z), exp(-m))""",
}


def made(name: str, folder: Path, backend: str = "torch") -> str:
    """The path of a spec's module whose sequences processes may share."""
    spec = SPECS / f"{name}.dsf"
    if name in BY_HAND:
        spec = folder / f"{name}.dsf"
        spec.write_text(f"mixer {name} {{\n{BY_HAND[name]}\n}}\n", encoding="utf-8")
    out = f"{folder}/"
    return str(dsfc.compile(spec, backend, out, runtime="beside", context_parallel=True))


@pytest.mark.full
@pytest.mark.parametrize("backend", ["torch", "c", "triton"])
def test_segments_of_each_class_are_the_whole_sequence(backend: str, tmp_path: Path) -> None:
    run(PROCESS, [(made(name, tmp_path, backend), size) for name, size in KINDS.items()], tmp_path)


@pytest.mark.full
def test_what_has_no_summary_goes_from_process_to_process(tmp_path: Path) -> None:
    run(PROCESS, [(made(name, tmp_path), None) for name in BY_HAND], tmp_path)


@pytest.mark.ci
def test_beside_ddp_and_fsdp2_a_step_is_that_of_one_process(tmp_path: Path, tier: str) -> None:
    names = ("gated_deltanet", "gla") if tier == "full" else ("gated_deltanet",)
    run(TRAINING, [made(name, tmp_path) for name in names], tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("backend", ["torch", "all"])
def test_segments_of_every_finite_spec_are_the_whole_sequence(backend: str, tmp_path: Path) -> None:
    names = [name for name in sorted(path.stem for path in SPECS.glob("*.dsf")) if _compiles(name)]
    rest = [name for name in names if name not in {*KINDS, *REFUSED}]
    assert len(rest) > 20
    run(PROCESS, [(made(name, tmp_path, backend), None) for name in rest], tmp_path)


def _compiles(name: str) -> bool:
    try:
        dsfc.load(SPECS / f"{name}.dsf").module()
    except dsfc.DiagnosticError:
        return False
    return True


@pytest.mark.share(2)
@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_state_to_hand_on_is_refused(name: str, tmp_path: Path) -> None:
    about = surface(dsfc.import_module(made(name, tmp_path)))
    sample = about.sample(5, state=False)
    reason = {"dlr_bidirectional": "a state runs backwards", "softmax": "the mixer has no finite"}
    with pytest.raises(ValueError, match=f"no group: {reason[name]}"):
        sample.layer(**sample.inputs, group=object())
    assert torch.equal(sample.layer(**sample.inputs), sample.layer(**sample.inputs, group=None))
    assert f"across ranks: {reason[name]}" in sample.layer.explain(5)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gla", "S: a summary of each segment, h → Λ̄ h + b̄, with Λ̄ the product of all λ"),
        ("deltanet", "S: a summary of each segment, h → Λ̄ h + b̄, with Λ̄ a matrix over the keys"),
        ("lru", "x: a summary of each segment, h → Λ̄ h + b̄, with Λ̄ a power of λ"),
        ("h3", "k_past: the last values of each segment"),
        ("mlstm", "C_max: a summary, m → max(m + Σ log λ, m̄)"),
    ],
)
def test_what_crosses_is_said(name: str, said: str) -> None:
    assert any(line.startswith(said) for line in crossing(dsfc.load(SPECS / f"{name}.dsf").plan))
