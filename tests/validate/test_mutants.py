"""Every small change of what an emitted module computes is caught by the checks of values."""

from __future__ import annotations

import ast
import re
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest
from mutants import mutants

from dsfc.validate.report import Outcome
from dsfc.validate.run import CHECKS, deterministic_torch, run
from dsfc.validate.surface import SurfaceError, surface

# Changes of one module that no result of it can show, each with the reason.
HARMLESS = {
    "s4d": (
        r"_compose.*: 1:even:2 ",  # Λ is the same at all tokens
        r"_powers.*isqrt",  # how many entries of a table are made
        r"_lags.*: -2 ",  # the same axis counted from the front
        r"_power, .*: wide \* steps",  # of a real log λ, which this module has not
        r"_signal.*: 2 \* length",  # of one of the two transforms; its signals are real
    ),
}
ROOM = 6 << 30
"""Bytes that a mutant may take beside what the process has: some ask for all there is."""

JUDGES = (
    *("definition", "modes", "segments", "extremes", "streaming", "memory", "steps"),
    *("masks", "packs"),
)


def survives(module: ModuleType) -> bool:
    """Whether no check of values notices anything."""
    with deterministic_torch():
        try:
            found = surface(module)
        except SurfaceError:
            return False
        checks = [check for name in JUDGES for check in CHECKS if check.name == name]
        if not all(run(check, found).outcome is Outcome.KEPT for check in checks):
            return False
        # Sequences as short as those of the checks are one block otherwise.
        if hasattr(module, "BLOCK"):
            module.BLOCK = 1
        return all(run(check, found).outcome is Outcome.KEPT for check in checks[:2])


@contextmanager
def bounded() -> Iterator[None]:
    """Lets the process take so much memory and no more."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.full
@pytest.mark.parametrize(
    "name",
    ["normalized_attn", "ssd", "s6", "rg_lru", "linear_attn", "gla", "s4d", "gated_deltanet"],
)
def test_no_mutant_survives(
    name: str, text: Callable[[str], str], imported: Callable[[str], ModuleType]
) -> None:
    assert survives(imported(ast.unparse(ast.parse(text(name))))), "unharmed, it must pass"
    made, alive = 0, []
    with bounded():
        for what, changed in mutants(text(name), name):
            made += 1
            try:
                module = imported(changed)
            except Exception:  # does not even import
                continue
            harmless = any(re.search(pattern, what) for pattern in HARMLESS.get(name, ()))
            if not harmless and survives(module):
                alive.append(what)
    print(f"{name}: {made - len(alive)} of {made} mutants caught")
    assert made > 20
    assert not alive, "\n".join(alive)


def test_mutants_differ_from_the_text_and_from_each_other(text: Callable[[str], str]) -> None:
    made = [changed for _, changed in mutants(text("ssd"), "ssd")]
    assert len(made) == len(set(made)) > 60
