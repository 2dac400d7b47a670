"""Complex scans whose kernels are those of a real one, in the frame that turns with their phases.

What modules run in front of these kernels and behind them, and why, is in
`backends/shared/runtime/rotating_frame.py`. Outside of the operators nothing changes.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

from dsfc.expr.build import prim
from dsfc.expr.tree import Field
from dsfc.plan.scan_ir import Form, LogDecay

from .layout import wrapped
from .skeletons import Skeleton

FORMS = (Form.MATRIX, Form.KEYED)
"""Forms of scans that a rotating frame makes real: a state is driven, and turned by λ alone."""

_RUN = {"forward": "_run_in_frame", "backward": "_pull_in_frame"}


def has_frame(s: Skeleton) -> bool:
    """Whether a scan is a real one in a rotating frame."""
    decays = s.scan.decay is not None and not s.scan.powers
    return s.scan.form in FORMS and decays and s.real_to_real


def in_frame(s: Skeleton) -> Skeleton:
    """Returns the real scan of both planes: twice as many keys, and each head has its own."""
    assert s.scan.decay is not None
    size = LogDecay(prim("re", s.scan.decay.expr), s.scan.decay.leaves)
    scan = replace(s.scan, decay=size, field=Field.REAL)
    suffix = f"_planes{s.suffix}"
    return replace(s, scan=scan, suffix=suffix, shared=False, real_to_real=False)


def run_in_frame(s: Skeleton, direction: str, start: str) -> list[str]:
    """Statements that run a pass of a scan in its frame.

    Args:
        s: the scan.
        direction: `forward` or `backward`.
        start: name of the function that starts the kernels of the real scan.
    """
    cotangents = ["do", "dS"] if direction == "backward" else []
    items = [start, *s.leaves, *cotangents]
    return [wrapped(f"return {_RUN[direction]}", items, "", "    ")]


def runtime_text() -> str:
    """Returns the text of what a runtime section holds for such scans."""
    folder = files("dsfc.backends.shared.runtime")
    return (folder / "rotating_frame.py").read_text(encoding="utf-8")
