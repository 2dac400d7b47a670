"""Diagnostics as SARIF 2.1.0, which code hosts and editors read (OASIS, 27 March 2020)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dsfc.diagnostics.catalogue import CODES, explain
from dsfc.diagnostics.report import Diagnostic, Severity
from dsfc.source import NOWHERE, Span

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.NOTE: "note"}


def to_sarif(diagnostics: Iterable[Diagnostic]) -> str:
    """One run of dsfc as a SARIF log; lines and columns count from 1, columns in code points."""
    listed = tuple(diagnostics)
    codes = sorted({item.code for item in listed})
    driver = {
        "name": "dsfc",
        "version": version("dsfc"),
        "rules": [_rule(code) for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(item, codes.index(item.code)) for item in listed],
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, ensure_ascii=False, indent=2)


def _rule(code: str) -> dict[str, Any]:
    page = explain(code).removeprefix(f"{code}: ")
    return {
        "id": code,
        "shortDescription": {"text": page.partition("\n")[0]},
        "help": {"text": page},
        "defaultConfiguration": {"level": _LEVELS[CODES[code].severity]},
    }


def _result(item: Diagnostic, rule: int) -> dict[str, Any]:
    more = [("expected", item.expected), ("found", item.found), ("help", item.hint)]
    notes = [f"{name}: {text}" for name, text in more if text]
    result: dict[str, Any] = {
        "ruleId": item.code,
        "ruleIndex": rule,
        "level": _LEVELS[item.severity],
        "message": {"text": "\n".join([item.message, *notes])},
        "locations": [{"physicalLocation": _place(item.span)}] if item.span != NOWHERE else [],
    }
    if item.labels:
        result["relatedLocations"] = [
            {"physicalLocation": _place(label.span), "message": {"text": label.text}}
            for label in item.labels
        ]
    return result


def _place(span: Span) -> dict[str, Any]:
    path = Path(span.source.name)
    uri = path.as_uri() if path.is_absolute() else path.as_posix()
    place: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if span.source.text:
        (line, column), (last, end) = map(span.source.position, (span.start, span.end))
        place["region"] = {
            "startLine": line, "startColumn": column, "endLine": last, "endColumn": end,
        }  # fmt: skip
    return place
