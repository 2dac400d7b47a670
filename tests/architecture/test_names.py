"""Names of values say what the values are, and renamed things keep no second name."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

EMPTY = {"found", "made", "it", "given"}
"""Names that say nothing of a value."""

LEFT = ("backends/", "dsfc/plan/", "dsfc/fused/", "dsfc/kernels/", "dsfc/kernel_ir/")
"""Folders that still have such names."""
MOST = 51
"""How many they have together at most. The number only falls."""


RENAMED = {
    "NoCase": "NotAnInstance",
    "Side": "OneTokenSemantics",
    "Spelled": "GeneratorIndices",
    "Taken": "FusedPlan",
    "cutoff": "small_model_bound",
    "freed": "generalize_inputs",
    "put_in": "substitute_parameters",
    "take_in": "fuse",
    "underway": "current_span",
    "settled": "normalize_times, normal_term or deterministic_torch",
    "sides": "split_by_axes",
    "reread": "redundant_reads",
    "distrust": "disabled_reason",
    "NOTHING": "ZERO",
    "Turn": "Reverse",
    "echo": "WY",
}
"""Old name of a definition or a module → what it is called."""

IDIOMS = re.compile(
    r"What is to be said|The same of |Those that do not\.|There is none\.|is left alone"
    r"|which goes on from here|for an error\.\"|A row of nothing"
)
"""Phrases that leave out the noun or turn the sentence round; CONTRIBUTING says what to write."""

IDIOMATIC = ("dsfc/plan/", "backends/")
"""Folders that still have such phrases."""


def bound_names(tree: ast.AST) -> Iterator[str]:
    """Yields the empty names that a file binds, each once in a scope."""
    scopes = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef,
              ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)  # fmt: skip
    own: set[str] = set()
    pending = list(ast.iter_child_nodes(tree))
    while pending:
        node = pending.pop()
        if isinstance(node, scopes):
            yield from bound_names(node)
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.arg):
            own.add(node.arg)
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            own.add(node.name)
        pending += ast.iter_child_nodes(node)
    if not isinstance(tree, ast.ClassDef):  # a class has attributes, which are read behind a dot
        yield from own & EMPTY


@pytest.mark.ci
def test_local_names_name_values(root: Path) -> None:
    count = Counter[str]()
    for top in ("dsfc", "backends"):
        for file in (root / top).rglob("*.py"):
            names = list(bound_names(ast.parse(file.read_text(encoding="utf-8"))))
            count[file.relative_to(root).as_posix()] += len(names)
    assert {f: n for f, n in count.items() if n and not f.startswith(LEFT)} == {}
    assert count.total() <= MOST


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def f(it): return it", ["it"]),
        ("found = [made for made in x]", ["made", "found"]),
        ("match x:\n case [given]: pass", ["given"]),
        ("x.found = y", []),
    ],
)
def test_an_empty_name_is_seen(text: str, names: list[str]) -> None:
    assert list(bound_names(ast.parse(text))) == names


@pytest.mark.full
def test_renamed_things_keep_no_second_name(root: Path) -> None:
    kept = set[str]()
    for top in ("dsfc", "backends"):
        for file in (root / top).rglob("*.py"):
            name = file.relative_to(root).as_posix()
            tree = ast.parse(file.read_text(encoding="utf-8"))
            defined = {
                n.name
                for n in ast.walk(tree)
                if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            }
            defined |= {t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets
                        if isinstance(t, ast.Name)}  # fmt: skip
            kept |= {f"{name}: {old}" for old in RENAMED if old in defined | {file.stem}}
    assert kept == set()


def test_sentences_have_their_nouns(root: Path) -> None:
    files = [
        *(f for top in ("dsfc", "docs") for f in (root / top).rglob("*") if f.suffix in TEXT),
        *root.glob("*.md"),
    ]
    odd = [
        f"{name}:{number} {line.strip()}"
        for f in files
        if not (name := f.relative_to(root).as_posix()).startswith((*IDIOMATIC, "CHANGELOG"))
        and "_build" not in name
        for number, line in enumerate(f.read_text(encoding="utf-8").splitlines(), 1)
        if IDIOMS.search(line)
    ]
    assert odd == []


TEXT = {".py", ".md", ".dsf"}
