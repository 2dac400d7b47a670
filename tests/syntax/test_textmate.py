"""The grammar of editors: up to date, and every shipped spec coloured as the parser reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsfc.syntax.grammar import tokens
from dsfc.syntax.textmate import (
    DEFINED,
    FILE,
    FUNCTION,
    NAME,
    SCOPES,
    UNIT_NAME,
    UNITS,
    textmate,
    textmate_text,
)

ROOT = Path(__file__).parents[2]
SPECS = sorted((ROOT / "specs").glob("*.dsf"))


def coloured(text: str) -> Iterator[tuple[str, str, int]]:
    """Scope, text and offset of each coloured piece, line by line as an editor finds them."""
    rules = [(re.compile(it["match"]), it) for it in textmate()["patterns"]]
    start = 0
    for line in text.splitlines(keepends=True):
        at = 0
        while at < len(line):
            found = [(rule.search(line, at), it) for rule, it in rules]
            hits = [(hit.start(), k) for k, (hit, _) in enumerate(found) if hit and hit.end() > at]
            if not hits:
                break
            hit, rule = found[min(hits)[1]]
            assert hit is not None
            captures = {int(k): it["name"] for k, it in rule.get("captures", {}).items()}
            for group, scope in (captures or {0: rule["name"]}).items():
                yield scope, hit.group(group), start + hit.start(group)
            at = hit.end()
        start += len(line)


def test_the_file_is_up_to_date() -> None:
    text = (ROOT / "grammar" / FILE).read_text(encoding="utf-8")
    assert text == textmate_text(), "run python -m dsfc.syntax.textmate"
    assert json.loads(text)["scopeName"] == "source.dsf"


@pytest.mark.parametrize("path", SPECS, ids=lambda it: it.stem)
def test_every_token_of_every_spec_has_the_scope_of_its_kind(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    scopes = {at: (scope.removesuffix(".dsf"), piece) for scope, piece, at in coloured(text)}
    names = {UNIT_NAME, FUNCTION, DEFINED, NAME}
    for token in tokens(text):
        if token.type in ("LBRACE", "RBRACE", "LPAR", "RPAR", "LSQB", "RSQB") or token[0] == "\n":
            continue
        scope, piece = scopes[token.start_pos]
        assert piece == token.rstrip("\n")
        if token.type == "NAME":
            assert scope in names
        else:
            assert scope == (SCOPES | UNITS)[token.type]


def test_names_are_told_apart_by_what_stands_around_them() -> None:
    text = (
        'mixer m "P, eq. 1" extends qkv { z = q\n'
        "  use short_conv on q  # q = f(x)\n"
        "  param b_η : h = 0\n"
        "  f(x) = exp(-x)\n"
        "  x' = a * x by zoh(Δ)\n"
        "  y = sum[j ≤ i](q · k[j]) (*) statement\n"
        "}\n"
    )
    scopes = [(scope.removesuffix(".dsf"), piece) for scope, piece, _ in coloured(text)]
    found: dict[str, set[str]] = {}
    for scope, piece in scopes:
        found.setdefault(scope, set()).add(piece)
    assert found[UNIT_NAME] == {"m", "qkv", "short_conv"}
    assert found[DEFINED] == {"z", "x", "y"}
    assert found[FUNCTION] == {"f", "exp", "zoh", "sum"}
    assert {"h", "b_η", "k", "j", "statement"} <= found[NAME]
    assert found[SCOPES["COMMENT"]] == {"# q = f(x)"}
    assert ("keyword.operator", "(*)") in scopes and ("keyword.operator", "⊗") not in scopes
