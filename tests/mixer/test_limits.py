"""Bounds of a mixer bite before the clock does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dsfc.diagnostics.report import DiagnosticError
from dsfc.limits import DEFAULT_LIMITS
from dsfc.mixer.ir import Mixer


def chain(length: int) -> str:
    """A mixer of as many definitions, each of the one before, beside an input, an axis and y."""
    lines = "\n".join(f"a{k + 1} = a{k} + u" for k in range(length - 1))
    return f"mixer m {{\ndims d\ninput u : d\na0 = u\n{lines}\ny = a{length - 1}\n}}"


def test_a_mixer_uses_a_bounded_number_of_names(mixer_of: Callable[..., Mixer]) -> None:
    mixer = mixer_of(chain(DEFAULT_LIMITS.names - 3))
    assert len(mixer.definitions) >= DEFAULT_LIMITS.names - 3
    with pytest.raises(DiagnosticError) as refused:
        mixer_of(chain(DEFAULT_LIMITS.names + 1))
    (limit,) = refused.value.diagnostics
    assert limit.code == "E-LIMIT" and limit.span.text == "m"
    assert "number of names in a mixer" in limit.message and "at most 512" in limit.message
