"""Claims of texts, decided."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dsfc.api.decide import claims as claims_of
from dsfc.api.pipeline import read
from dsfc.claims.verdict import Decided, Verdict

Claims = Callable[..., tuple[Decided, ...]]


@pytest.fixture
def claims(tmp_path: Path) -> Claims:
    """The decided claims of the last mixer of a text."""

    def decided(text: str) -> tuple[Decided, ...]:
        file = tmp_path / "claiming.dsf"
        file.write_text(text, encoding="utf-8")
        spec = read(file)
        return claims_of(spec.compilation(spec.mixers[-1]))

    return decided


@pytest.fixture
def verdict(claims: Claims) -> Callable[[str, str], Verdict]:
    """The verdict on one claim of a mixer, given without it."""

    def decide(mixer: str, claim: str) -> Verdict:
        end = mixer.rindex("}")
        found = claims(f"{mixer[:end]}\n  claim {claim}\n}}\n")
        return found[-1].verdict

    return decide
