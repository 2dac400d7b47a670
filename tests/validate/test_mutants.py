"""Every small change of what an emitted module computes is caught by the checks of values."""

from __future__ import annotations

import ast
import re
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, ModuleType

import pytest
from mutants import COMPUTING, Mutant, own_mutants, reached, runtime_mutants
from unusual_specs import COMPILED, PAIRS, STEPPED

from dsfc.validate.report import Outcome
from dsfc.validate.run import CHECKS, deterministic_torch, run
from dsfc.validate.surface import SurfaceError, surface

OWN = (
    *("normalized_attn", "ssd", "s6", "rg_lru", "linear_attn", "gla", "s4d", "gated_deltanet"),
    *("kda", "rwkv7", "s4"),
)
"""Mixers whose modules are mutated in their own part."""

INLINE = {
    "running_maximum": "dims d\n input u : d\n param a : d\n state m : d\n"
    "m = max(m[i-1] + tanh(a), u); y = m * u",
    "rewrite_along_another_key": COMPILED["rewrite_along_another_key"],
    "rewrite_of_a_ratio": COMPILED["rewrite_of_a_ratio"],
    "keys_complex_per_key": COMPILED["keys_complex_per_key"],
    "feedback_of_parameters": "dims d\n input u : d\n param a, b : d\n state s, t : d\n"
    "s = tanh(a) * s[i-1] + sigmoid(u) * t[i-1] + u; t = tanh(b) * t[i-1] + u * s[i-1]; y = s * t",
    "uneven_chains": STEPPED["uneven_chains"],
    "sums_before_and_after": PAIRS["sums_before_and_after"],
    "parameters_in_pairs": PAIRS["parameters_in_pairs"],
}
WITH_RUNTIME = (
    *INLINE,
    *("softmax", "taylor_softmax", "dlr_bidirectional", "lln"),
    *("gateloop", "mega_ema", "deltanet", "gla_block"),
    *OWN,
)
"""Mixers that reach all functions of the runtime between them, the most particular ones first."""

# Changes that no result can show, each with the reason.
HARMLESS = (
    # A row and a column of what has one entry there are the same.
    r"^_forward_recurrent: decay = torch.exp\(g\).mT.unsqueeze\(-1\): -1 ",
    r"^_forward_recurrent: e = r.mT.unsqueeze\(-1\) \* .*: -1 ",
    # The summed matrix is diagonal: its rows have the sums of its columns.
    r"^s4: x_transition_9 = .*x_transition_8.sum\(dim=-2\).*: -2 ",
    r"^_straddle: size = pairs.shape\[-1\]: -1 ",  # a square
    # The definition calls them too; `test_shared_runtime.py` and `test_parameters.py` judge them.
    # (An imaginary diagonal of a Hermitian matrix is not read: `tril()` changes nothing.)
    r"^_(exprel|legs_frequency|legs_low_rank): ",
    # How much is computed at once, or one entry of a table more than is read.
    r"^_blocks: (length, numbers|size) = ",
    r"^_dense_powers: while .*: length - 1 ",
    r"^_(dense_transformed|powers): size = ",
    r"^_width: ",
    r"^_pulled_back: step = ",
    # The keys have length one: no gradient passes along them.
    r"^_backward_chunked: .*, pair.tril\(-1\): pair.tril\(-1\) ",
)
ROOM = 6 << 30
"""Bytes that a mutant may take beside what the process has: some ask for all there is."""

JUDGES = (
    *("definition", "modes", "masks", "packs"),
    *("segments", "extremes", "streaming", "memory", "steps", "meta"),
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
def entered(module: ModuleType) -> Iterator[set[str]]:
    """Collects the names of a module's functions that are called meanwhile."""
    names: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename == module.__file__:
            names.add(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        yield names
    finally:
        sys.setprofile(None)


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


def alive(mutants: Iterator[Mutant], survived: Callable[[Mutant], bool]) -> tuple[list[str], int]:
    """Returns the mutants that nothing notices, and how many there are."""
    found, made = [], 0
    with bounded():
        for mutant in mutants:
            made += 1
            if any(re.search(pattern, mutant.what) for pattern in HARMLESS):
                continue
            if survived(mutant):
                found.append(mutant.what)
    return found, made


@pytest.mark.full
@pytest.mark.parametrize("name", OWN)
def test_no_mutant_of_a_mixers_own_part_survives(
    name: str, text: Callable[..., str], imported: Callable[[str], ModuleType]
) -> None:
    whole = text(name)
    assert survives(imported(ast.unparse(ast.parse(whole)))), "unharmed, it must pass"

    def survived(mutant: Mutant) -> bool:
        try:
            module = imported(mutant.of(whole))
        except Exception:  # it does not even import
            return False
        return survives(module)

    found, made = alive(own_mutants(whole), survived)
    print(f"{name}: {made - len(found)} of {made} mutants caught")
    assert made > 20
    assert not found, "\n".join(found)


@pytest.mark.full
@pytest.mark.parametrize("file", COMPUTING)
def test_no_mutant_of_the_runtime_survives(
    file: str, text: Callable[..., str], imported: Callable[[str], ModuleType]
) -> None:
    """A mixer's checks notice it, of those mixers whose modules enter the function."""
    whole = {name: text(name, INLINE.get(name)) for name in WITH_RUNTIME}
    reaching = {name: set(reached(whole[name])) for name in WITH_RUNTIME}

    def survived(mutant: Mutant) -> bool:
        for name, functions in reaching.items():
            if mutant.function not in functions:
                continue
            try:
                module = imported(mutant.of(whole[name]))
            except Exception:  # it does not even import
                return False
            with entered(module) as names:
                if not survives(module):
                    return False
            functions.intersection_update(names)  # it reaches the others and enters none
        return True

    found, made = alive(runtime_mutants(file), survived)
    print(f"{file}: {made - len(found)} of {made} mutants caught")
    assert not found, "\n".join(found)


@pytest.mark.ci
def test_mutants_differ_from_the_text_and_from_each_other(text: Callable[[str], str]) -> None:
    made = [mutant.of(text("ssd")) for mutant in own_mutants(text("ssd"))]
    assert len({text("ssd"), *made}) == len(made) + 1 > 60
