"""Random mixers: their modules are text as a formatter leaves it, their kernels the definition."""

from __future__ import annotations

import ast
import math
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
import torch
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from random_mixers import FORMS, Mixer
from test_kernels import ROUNDED, ran, small, widened
from torch import Tensor

import dsfc
from dsfc.validate.compare import agree
from dsfc.validate.surface import Sample, surface
from dsfc.validate.values import outcome

Build = Callable[..., ModuleType]
WIDTH = 100
LENGTH = 9
SHARE = settings.default.max_examples
"""Examples that the tier draws for a law. One here is a mixer, compiled and run: few will do."""
ONCE = (Phase.explicit, Phase.generate)
"""What fails is shown as it was drawn: hundreds of smaller ones would take an hour to run."""
FORM = pytest.mark.parametrize("form", FORMS)


def text_of(mixer: Mixer, folder: Path) -> str:
    """The module of a mixer with kernels; no other will do."""
    spec = folder / f"{mixer.name}.dsf"
    spec.write_text(f"mixer {mixer.name} {{\n{mixer.body}\n}}\n", encoding="utf-8")
    text = dsfc.load(spec).module("triton").text
    assume("_declined" in text)
    return text


@pytest.mark.ci
@pytest.mark.share(1, ci=0)
@FORM
def test_text_is_formatted_and_gives_no_name_twice(
    form: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("random")

    @settings(max_examples=max(SHARE // 25, 2), phases=ONCE)
    @given(FORMS[form]())
    def law(mixer: Mixer) -> None:
        text = text_of(mixer, folder)
        path = folder / f"{mixer.name}.py"
        path.write_text(text, encoding="utf-8")
        body = ast.parse(text).body
        names = Counter(n.name for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef))
        assert [n for n, count in names.items() if count > 1] == []
        if find_spec("ruff") is not None:
            assert not formatted(path), mixer.body

    law()


def formatted(path: Path) -> str:
    """What a formatter would change."""
    command = [sys.executable, "-m", "ruff", "format", "--isolated", f"--line-length={WIDTH}"]
    done = subprocess.run([*command, "--diff", path], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


# What a kernel computes of places beyond the end is never stored, but NumPy speaks of it.
@pytest.mark.ci
@pytest.mark.share(1, ci=9)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@FORM
def test_kernels_are_the_definition(form: str, build: Build) -> None:
    """In one call from a state, in two, and where tokens do not count."""
    pytest.importorskip("triton")

    @settings(max_examples=max(SHARE // 50, 2), phases=ONCE)
    @given(
        FORMS[form](),
        st.sampled_from(("from a state", "in two calls", "not all count")),
        st.integers(0, LENGTH),
        st.sampled_from((4, 8, 1 << 20)),
    )
    def law(mixer: Mixer, how: str, cut: int, segment: int) -> None:
        module = build(mixer.name, mixer.body)
        assume(hasattr(module, "TILES"))
        found = surface(module, dict(mixer.sizes))
        counts = {"mask": torch.arange(LENGTH) < torch.tensor([[cut], [LENGTH]])}
        cuts = (cut,) if how == "in two calls" else ()

        def run(sample: Sample, mode: str) -> dict[str, Tensor]:
            if how == "not all count":
                return ran(found, sample, mode, counts)
            return outcome(found, sample, mode, 1, cuts=cuts)

        sample = found.sample(LENGTH, dtype=torch.float32)
        want = run(widened(sample, found), "recurrent")
        assume(all(torch.isfinite(x).all() for x in want.values()))
        # A difference of large numbers, say, is off in the plain loop as well.
        plain = agree(run(sample, "recurrent"), want, math.inf, mixer.body)
        with pytest.MonkeyPatch.context() as patched:
            seen = small(module, patched)
            patched.setattr(module, "SEGMENT", segment)
            agree(run(sample, "auto"), want, max(ROUNDED, 3 * plain), f"{how}, {mixer.body}")
        assert {"forward", "backward"} <= set(seen), mixer.body

    law()
