"""Each scan of a module has kernels in C, or runs as in torch."""

from __future__ import annotations

from pathlib import Path

import pytest
from dsfc.backends.c.skeletons import NativeSkeleton, kernels, scans_with_kernels, skeletons
from dsfc.backends.torch.operators import skeletons as torch_skeletons

import dsfc


def test_a_scan_without_kernels_runs_as_in_torch_beside_others_in_c() -> None:
    fused = dsfc.load("taylor_softmax").fused("c")
    parts = skeletons(fused)
    assert [isinstance(s, NativeSkeleton) for s in parts] == [True, True, False, True]
    assert parts[2] == torch_skeletons(fused.original)[2]
    named = [s.scan.name for s in torch_skeletons(fused.original)]
    assert [*scans_with_kernels(fused)] == [named[0], named[1], named[3]]


def test_kernels_are_those_of_the_scans_that_have_some_forward_first() -> None:
    names = [k.name for k in kernels(dsfc.load("taylor_softmax").fused("c"))]
    assert len(names) == len(set(names)) == 10
    kinds = [name.partition("_")[0] for name in names]
    # The scan over products of keys goes chunk by chunk; the others run one token as they run all.
    ways = ["forward", "backward"]
    assert kinds == [*ways, "steps", *ways, "step", "steps", *ways, "steps"]


SPEC = """\
mixer alike {{
  dims d, n, p
  input u : d
  param v, w : d -> p
        a, b, c : d -> n
  state S, {other} : n × p complex
  S = exp(cplx(-abs(c u), b u)) * S[i-1] + (a u) ⊗ (v u)
  {other} = exp(cplx(-abs(a u), c u)) * {other}[i-1] + (a u) ⊗ (w u)
  y = Re((b u) · S) + Re((b u) · {other})
}}
"""


@pytest.mark.share(4)
@pytest.mark.parametrize("first", ["native", "launch", "planes", "recurrent"])
@pytest.mark.parametrize("backend", ["c", "all"])
def test_a_state_may_be_called_like_a_part_of_a_function_of_another(
    first: str, backend: str, tmp_path: Path
) -> None:
    """A module that defines a name twice is refused."""
    spec = tmp_path / "alike.dsf"
    spec.write_text(SPEC.format(other=f"{first}_S"), encoding="utf-8")
    loaded = dsfc.load(spec)
    assert len(scans_with_kernels(loaded.fused("c"))) == 2
    assert loaded.module(backend).text
