"""Emitted modules keep every promise that `dsfc verify` checks, tier by tier."""

from __future__ import annotations

from types import ModuleType

import pytest
from emitted import KINDS, SOON, compiled, one_per_class

from dsfc.validate.report import Outcome
from dsfc.validate.run import CHECKS, Check, run
from dsfc.validate.surface import Surface, surface

VALUES = (
    "definition",
    "modes",
    "segments",
    "past",
    "steps",
    "causality",
    "layouts",
    "rows",
    "fused",
    "masks",
    "packs",
    "extremes",
    "wide sums",
    "dtypes",
    "autocast",
    "streaming",
    "memory",
    "owned memory",
    "forward mode",
    "meta",
    "flops",
    "copies",
    "complaints",
)
ORACLES = ("modes",)
"""`test_oracles.py` asks the same of every spec: this runs with every test on one, in CI on few."""
LONG = ("opcheck", "export", "streaming long", "dynamic", "compile")
FEW = ("normalized_attn", "s6", "rg_lru", "s4d", "deltanet")
"""Of each class of gates, a complex convolution, a transition that is not diagonal."""
NATIVE = {"inductor": "normalized_attn", "package": "s4d"}
"""Checks that a C++ compiler works for: of a scan of matrices, of a complex convolution."""
BY_NAME = {check.name: check for check in CHECKS}


def tiered(check: Check, name: str) -> tuple[pytest.MarkDecorator, ...]:
    """Values of some always, of all in CI; there too, PyTorch's machinery of some or few."""
    if check.name in VALUES and check.name not in ORACLES:
        return () if name in SOON else (pytest.mark.ci,)
    if name not in KINDS:
        return (pytest.mark.full,)
    if check.name in ORACLES:
        return () if name == FEW[0] else (pytest.mark.ci,)
    if check.name in LONG and name not in FEW:
        return (pytest.mark.full,)
    if check.name in NATIVE and name != NATIVE[check.name]:
        return (pytest.mark.full,)
    return (pytest.mark.ci,)


CASES = [
    pytest.param(name, check.name, marks=tiered(check, name), id=f"{name}-{check.name}")
    for name in compiled()
    for check in CHECKS
]


@pytest.fixture(scope="module")
def surfaces() -> dict[str, Surface]:
    return {}


@pytest.mark.share(40, ci=83)
@pytest.mark.parametrize(("name", "promise"), CASES)
def test_a_promise_is_kept(
    name: str, promise: str, module: ModuleType, surfaces: dict[str, Surface]
) -> None:
    if name not in surfaces:
        surfaces[name] = surface(module)
    row = run(BY_NAME[promise], surfaces[name])
    assert row.outcome is Outcome.KEPT, row.figure


@pytest.mark.ci
def test_there_is_one_spec_of_each_class_that_compiles() -> None:
    first = ("normalized_attn", "s6", "rg_lru", "linear_attn")
    later = ("gla", "s4d", "lnssm", "rwkv4", "short_convolution", "deltanet")
    assert one_per_class() == first + later
