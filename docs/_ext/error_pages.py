"""The pages of the codes: a spec that raises one, what is said of it, and the spec put right."""

from __future__ import annotations

import re
from pathlib import Path

from dsfc.api.check import checked
from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.diagnostics.catalogue import CODES, explain
from dsfc.diagnostics.render import render_all
from dsfc.diagnostics.report import Diagnostic, DiagnosticError, Stage
from dsfc.source import Source
from dsfc.syntax.parse import parse

_NAMED = {
    Stage.PARSE: "Writing",
    Stage.CHECK: "Meaning",
    Stage.COMPILE: "Compiling",
    Stage.TOOL: "The tools around",
}
_WRONG = re.compile(r"^```(dsf|console) wrong\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"\{(\w+)\}")


def said(code: str, text: str) -> tuple[Diagnostic, ...]:
    """Returns what is said of a spec by the first command that can report a code.

    Args:
        code: of an error that compiling finds, or `check --strict`; of a note, `check`.
        text: the spec.
    """
    try:
        spec = SpecText(Place(Path("page.dsf"), shipped=True), parse(Source("page.dsf", text)))
        if CODES[code].stage is Stage.COMPILE:
            for name in spec.mixers:
                _ = spec.compilation(name).plan
        return checked(spec, "page.dsf", strict=code.startswith("E-")).diagnostics
    except DiagnosticError as e:
        return e.diagnostics


def index() -> str:
    """Returns the codes by what finds them, each a link to its page."""
    parts = []
    for stage, title in _NAMED.items():
        codes = [code for code, kind in CODES.items() if kind.stage is stage]
        links = ", ".join(f"[{code}](#{code.lower()})" for code in codes)
        parts.append(f"**{title}**: {links}.\n")
    return "\n".join(parts)


def page(code: str) -> str:
    """Returns the page of a code as Markdown, without its heading.

    Args:
        code: such as `E-NAME`.
    """
    text = explain(code).removeprefix(f"{code}: ")
    wrong = _WRONG.search(text)
    if wrong is None:
        return text
    if wrong[1] == "dsf":
        found = said(code, wrong[2])
        what = render_all([d for d in found if d.code == code])
    else:
        template = _FIELD.sub("<\\1>", CODES[code].template)
        what = f"{code}: {template}"
    shown = f"{text[: wrong.end()]}\n\ndsfc says:\n\n```text\n{what}\n```{text[wrong.end() :]}"
    return re.sub(r"^```(dsf|console) (wrong|right)$", r"```\1", shown, flags=re.MULTILINE)
