"""The questions of the page to the compiler in the browser, each a function of JSON values."""

from __future__ import annotations

import json
import math
import re
import tempfile
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsfc.api.locate import shipped_names
from dsfc.api.pipeline import Compilation, read
from dsfc.cli import commands
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.latex import name as latex_name
from dsfc.matrices.convolution import convolution_form
from dsfc.matrices.latex import latex_form
from dsfc.matrices.notation import Latex
from dsfc.report.formulas import mathml
from dsfc.structure.classes import CLASSES
from dsfc.structure.render import bound_text
from dsfc.structure.summary import summary
from dsfc.transform.gauge import eta_gauge

if TYPE_CHECKING:
    from spectrum import Spectrum

Answer = dict[str, Any]

LARGEST_MATRIX = 256
"""Rows of a transition that is not diagonal, above which its eigenvalues are not computed here."""

TOKENS, FEW = 32, 6
"""Tokens of a spectrum: where Λ is diagonal, and where a matrix per token is decomposed."""

_MIXER = re.compile(r"^[^\S\n]*mixer\s+([^\W\d]\w*)", re.MULTILINE)
_HERE = Path(tempfile.mkdtemp())


def answer(question: str) -> str:
    """Answers one question of the page; a fault of the compiler is an answer too.

    Args:
        question: a JSON object: `ask`, the name of a question, and its arguments.

    Returns:
        A JSON object: `value`, or `fault`: the traceback.
    """
    asked = json.loads(question)
    try:
        value = QUESTIONS[asked.pop("ask")](**asked)
    except Exception:
        return json.dumps({"fault": traceback.format_exc()})
    return json.dumps({"value": value}, ensure_ascii=False)


def gallery() -> Answer:
    """Returns the shipped specs: name, title, class of the transition and text."""
    return {"specs": [_shipped(name) for name in shipped_names()]}


def _shipped(name: str) -> Answer:
    """One shipped spec; its class is empty where it has no system, as a base or a modifier."""
    spec = read(name)
    (unit,) = (u for u in spec.spec.units if u.name.text == name)
    title = unit.provenance.text if unit.provenance is not None else name
    kind = "to modify a mixer with" if not spec.mixers else "without a linear state, or a base"
    if spec.mixers:
        with suppress(DiagnosticError):
            kind = spec.compilation().structure.title
    return {"name": name, "title": title, "kind": kind, "text": spec.spec.span.source.text}


@dataclass(frozen=True)
class _Placed:
    """A text as a file of its own folder.

    Attributes:
        file: named like the mixer, as a module says which spec it is of.
        mixer: the one that is meant: the last of the text; None where there is none.
    """

    file: Path
    mixer: str | None


@lru_cache(maxsize=1)
def _placed(text: str) -> _Placed:
    names = _MIXER.findall(text)
    mixer = names[-1] if names else None
    for old in _HERE.iterdir():
        old.unlink()
    file = _HERE / f"{mixer or 'spec'}.dsf"
    file.write_text(text, encoding="utf-8")
    return _Placed(file, mixer)


@lru_cache(maxsize=1)
def _compilation(text: str) -> Compilation:
    return read(_placed(text).file).compilation()


def system(text: str) -> Answer | None:
    """Returns what a mixer is, and its Λ, B, C, D and Φ; None where it has mistakes.

    Args:
        text: the spec.
    """
    try:
        it = _compilation(text)
        derived, kind = it.system, it.structure
    except DiagnosticError:
        return None
    name, *lines = summary(kind, it.mixer.doc).splitlines()
    forms = [_form("", latex_form(derived))]
    if eta_gauge(derived)[0] != derived:
        told = "In the paper’s gauge, where the state is stored divided by its normaliser"
        forms.append(_form(told, latex_form(derived, "paper")))
    return {
        "name": it.name,
        "title": name,
        "lines": [line.strip() for line in lines],
        "class": f"{kind.title}, {kind.label}: {CLASSES[kind.name].form}",
        "forms": forms,
        "phi": convolution_form(derived, "lowered"),
    }


def _form(title: str, latex: str) -> Answer:
    """A LaTeX form as MathML; its first line is a comment that says which axes it is for."""
    comment, _, body = latex.partition("\n")
    per = comment.partition(", for each ")[2]
    told = [title, f"for each {per}" if per else ""]
    return {"title": ", ".join(t for t in told if t), "mathml": mathml(body.strip(), "block")}


def module(text: str) -> Answer | None:
    """Returns the PyTorch module; None where this version writes none.

    Args:
        text: the spec.
    """
    try:
        emitted = _compilation(text).module()
    except DiagnosticError:
        return None
    return {"file": f"{emitted.mixer}.py", "text": emitted.text}


def spectra(text: str) -> Answer | None:
    """Returns the eigenvalues of Λ of every state: as a formula, and as pictures at a start.

    Args:
        text: the spec.
    """
    try:
        it = _compilation(text)
        blocks, system = it.structure.blocks, it.system
    except DiagnosticError:
        return None
    notation = Latex()
    states = [
        {
            "state": b.state,
            "bound": bound_text(b.bound),
            "mathml": None
            if b.decay is None
            else mathml(rf"{latex_name('lambda', 'i')} = {notation.expr(b.decay.value)}", "block"),
        }
        for b in blocks
    ]
    diagonal = all(b.cell.diagonal and b.decay is not None for b in blocks)
    tokens = TOKENS if diagonal else FEW
    answer: Answer = {"states": states, "pictures": [], "sizes": {}, "tokens": tokens}
    if not blocks or module(text) is None:
        return answer
    import picture
    import spectrum  # with SymPy, which the first answers need not wait for

    begun = spectrum.start(it, tokens)
    longest = max(begun.sizes[a.name] for s in system.stages for b in s.blocks for a in b.axes)
    if not diagonal and longest > LARGEST_MATRIX:
        return answer
    drawn: list[Answer] = []
    for s in spectrum.spectra(it, begun):
        svg = picture.svg(s.values, "eigenvalues of a transition")
        same = next((d for d in drawn if d["svg"] == svg and d["paper"] == s.paper), None)
        if same is not None:
            same["states"].append(s.state)
        else:
            drawn.append({"states": [s.state], "paper": s.paper, "svg": svg, "said": _said(s)})
    sizes = {d.axis.name: begun.sizes[d.axis.name] for d in system.axes if not d.axis.copy_of}
    return answer | {"pictures": drawn, "sizes": sizes}


def _said(s: Spectrum) -> str:
    """A spectrum in words."""
    moduli = abs(s.values)
    low, high = float(moduli.min()), float(moduli.max())
    when = "the same at every token" if len(s.values) == 1 else "of each token"
    span = f"|λ| = {low:.4g}" if low == high else f"|λ| from {low:.4g} to {high:.4g}"
    from spectrum import memory

    lives = memory(s.values)
    if all(map(math.isinf, lives)):
        return f"{span}, {when}. Nothing is forgotten."
    shown = ", ".join("∞" if math.isinf(life) else f"{life:.3g}" for life in lives)
    kept = f"Half of what is stored is gone after {shown} tokens (5th percentile, median, 95th)."
    return f"{span}, {when}. {kept}"


def check(text: str) -> Answer:
    """Returns all that `dsfc check` says of a text: mistakes, notes and claims.

    Args:
        text: the spec.
    """
    _, said = _run("check", "--format", "json", str(_placed(text).file))
    (spec,) = json.loads(said)["specs"]
    return {"mixers": spec["mixers"], "diagnostics": spec["diagnostics"]}


def equiv(text: str, other: str, conditions: bool) -> Answer:
    """Returns what `dsfc equiv` says of a text and a shipped spec.

    Args:
        text: the spec.
        other: the name of the shipped spec.
        conditions: whether conditions are searched for.
    """
    if other not in shipped_names():
        raise ValueError(f"no shipped spec {other}")
    placed = _placed(text)
    asked = [str(placed.file), other, *(["--conditions"] if conditions else [])]
    code, said = _run("equiv", *asked)
    return {"code": code, "text": said.replace(str(placed.file), placed.file.name)}


def _run(*words: str) -> tuple[int, str]:
    """Runs a command of dsfc here; returns its exit code and what it printed."""
    out = StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        code = commands.main(list(words), prog_name="dsfc", standalone_mode=False)
    return int(code or 0), out.getvalue()


QUESTIONS: Mapping[str, Callable[..., Answer | None]] = {
    "gallery": gallery,
    "system": system,
    "module": module,
    "spectra": spectra,
    "check": check,
    "equiv": equiv,
}
