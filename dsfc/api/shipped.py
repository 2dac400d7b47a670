"""The specs that come with dsfc, each as one line of a list."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from dsfc.api.coverage import Call, Runs, on_targets
from dsfc.api.locate import block_names
from dsfc.api.pipeline import Compilation, read
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.text import text
from dsfc.papers import Paper
from dsfc.syntax import ast


class Kind(StrEnum):
    """The kinds of shipped specs.

    MIXER: it compiles.
    BLOCK: a mixer with what stands around it in a published model; it compiles.
    BASE: mixers extend it; alone it has no output, or leaves a map open.
    MODIFIER: it rewrites a mixer.
    DESCRIBED: it is a mixer that this version does not compile.
    """

    MIXER = "mixer"
    BLOCK = "block"
    BASE = "base"
    MODIFIER = "modifier"
    DESCRIBED = "described"


@dataclass(frozen=True, slots=True)
class Shipped:
    """One shipped spec.

    Attributes:
        name: of the spec.
        title: what it calls itself.
        kind: what it is for.
        structure: the class of its transition, such as `scalar`; empty where it has no system.
        state: how many numbers its state has, as an expression in its axes; empty likewise.
        papers: that it is of, the original first.
        kernels: titles of the targets whose kernels run every scan of it, both ways.
    """

    name: str
    title: str
    kind: Kind
    structure: str = ""
    state: str = ""
    papers: tuple[Paper, ...] = ()
    kernels: tuple[str, ...] = ()


def shipped_line(name: str) -> Shipped:
    """Returns the line of one shipped spec.

    Args:
        name: of the spec.

    Raises:
        DiagnosticError: E-FILE, there is no such spec.
    """
    spec = read(name)
    (unit,) = (u for u in spec.spec.units if u.name.text == name)
    title = unit.provenance.text if unit.provenance is not None else name
    line = partial(Shipped, name, title, papers=shipped_papers(name))
    if not spec.mixers:
        return line(Kind.MODIFIER)
    compilation = spec.compilation()
    try:
        compilation.plan  # noqa: B018 - raises where there is none
    except DiagnosticError as e:
        open_ones = {"E-NO-OUTPUT", "E-UNSUPPORTED"} & {d.code for d in e.diagnostics}
        return line(Kind.BASE if open_ones else Kind.DESCRIBED)
    structure = compilation.structure
    grows = "all tokens" if structure.sums else ""
    fixed = text(structure.state_size) if structure.blocks else ""
    state = " + ".join(x for x in (fixed, grows) if x) or "the last tokens"
    kind = Kind.BLOCK if name in block_names() else Kind.MIXER
    return line(kind, structure=structure.title, state=state, kernels=_kernels(compilation))


def shipped_papers(name: str) -> tuple[Paper, ...]:
    """Returns the papers that a shipped spec is of, whether it compiles or not.

    Args:
        name: of the spec.

    Raises:
        DiagnosticError: E-FILE, there is no such spec.
    """
    return tuple(paper for unit in read(name).spec.units for paper in ast.papers(unit))


def _kernels(compilation: Compilation) -> tuple[str, ...]:
    """Titles of the targets whose kernels run a sequence and its gradient."""
    both = (Call.FORWARD, Call.BACKWARD)
    return tuple(
        t
        for t, c in on_targets(compilation).items()
        if all(c.of(x).runs is Runs.KERNELS for x in both)
    )
