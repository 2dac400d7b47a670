"""Docstrings of what is public: every argument, result, error, shape and unit.

Public is what `docs/reference/python.md` lists, and what an emitted module offers.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dsfc
from dsfc.api.pipeline import load
from dsfc.diagnostics.catalogue import CODES

ROOT = Path(__file__).parent.parent.parent
LISTED = re.findall(
    r"^\.\. auto(?:function|class|exception):: (\S+)$",
    (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises):\n((?: {4}.*(?:\n|\Z)|\n)+)", re.MULTILINE)
ENTRY = re.compile(r"^ {4}([\w.*, ]+?):((?:.*(?:\n|\Z))(?: {8}.*(?:\n|\Z))*)", re.MULTILINE)
ARRAY = re.compile(r"^(?!Callable).*\b(Tensor(?! \||, \.)|NDArray|Array)\b")
"""A type of values with a shape; the declarations of a spec are in `tuple[Tensor, ...]`."""
NUMBER = re.compile(r"^(int|float)( \| None)?$")
SHAPE = re.compile(r"`\[.*?\]`|\bas (in|for|`)", re.DOTALL)
UNIT = re.compile(
    r"number|how many|count|bytes|seconds|tokens|size|tall|height|mixers|digits|bits|index|"
    r"which|nodes|terms|characters|brackets|problems|value"
)
"""Words by which a docstring says what a number counts, or in what it is measured."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def sections(doc: str) -> dict[str, dict[str, str]]:
    """Each section of a docstring: what it says of each name, and under "" its whole text."""
    out: dict[str, dict[str, str]] = {}
    for title, body in SECTION.findall(doc):
        out[title] = {"": body}
        for names, text in ENTRY.findall(body):
            out[title] |= dict.fromkeys((n.strip(" *") for n in names.split(",")), text)
    return out


def raised(nodes: list[ast.stmt]) -> set[str]:
    """Names of the classes that statements raise themselves, those of inner functions left out."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            found.add(ast.unparse(node.exc.func).rsplit(".", 1)[-1])
        waiting += ast.iter_child_nodes(node)
    return {name for name in found if name[0].isupper()}


def of_arguments(node: Function, said: dict[str, str]) -> Iterator[str]:
    """What is wrong with what a docstring says of arguments."""
    a = node.args
    every = [*a.posonlyargs, *a.args, *a.kwonlyargs, *(x for x in (a.vararg, a.kwarg) if x)]
    taken = {x.arg: x.annotation for x in every if x.arg not in ("self", "cls")}
    if set(taken) != set(said) - {""}:
        yield f"arguments {sorted(taken)}, said {sorted(set(said) - {''})}"
    for name, annotation in taken.items():
        yield from of_value(name, annotation, said.get(name, ""))


def of_value(name: str, annotation: ast.expr | None, said: str) -> Iterator[str]:
    """What is wrong with what a docstring says of a value of that type."""
    kind = "" if annotation is None else ast.unparse(annotation)
    if ARRAY.search(kind) and not SHAPE.search(said):
        yield f"{name} has no shape"
    if NUMBER.match(kind) and not (UNIT.search(said) or SHAPE.search(said)):
        yield f"{name} has no unit"


def of_function(node: Function) -> Iterator[str]:
    """What is wrong with the docstring of a function or method."""
    doc = ast.get_docstring(node)
    if doc is None:
        yield "no docstring"
        return
    said = sections(doc)
    yield from of_arguments(node, said.get("Args", {}))
    result = "" if node.returns is None else ast.unparse(node.returns)
    first = doc.split("\n\n")[0]
    value = said.get("Returns", {}).get("", first)
    named = "Returns" in said or re.search(r"\b([Rr]eturns|[Yy]ields|Draws|Names)\b", first)
    read = any("property" in ast.unparse(d) for d in node.decorator_list)
    if result not in ("", "None") and not (named or read):
        yield "does not say what it returns"
    if ARRAY.search(result) and not (SHAPE.search(value) or "never" in value):
        yield "the result has no shape"
    if (read or named) and NUMBER.match(result) and not UNIT.search(value):
        yield "the result has no unit"
    for name in sorted(raised(node.body) - set(said.get("Raises", {}))):
        yield f"raises {name}"


def of_class(node: ast.ClassDef) -> Iterator[str]:
    """What is wrong with the docstrings of a class and of what is public in it."""
    doc = ast.get_docstring(node)
    if doc is None:
        yield "no docstring"
        return
    said = sections(doc)
    held = said.get("Attributes", {})
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            name, kind = item.target.id, ast.unparse(item.annotation)
            if name.startswith("_") or kind.startswith("ClassVar"):
                continue
            if name not in held:
                yield f"field {name}"
            yield from of_value(name, item.annotation, held.get(name, ""))
        elif isinstance(item, Function) and item.name == "__init__":
            own = ast.get_docstring(item)
            about = sections(own).get("Args", {}) if own else said.get("Args", {})
            yield from of_arguments(item, about or said.get("Args", {}))
            for name in sorted(raised(item.body) - set(said.get("Raises", {}))):
                yield f"raises {name}"
        elif isinstance(item, Function) and not item.name.startswith("_"):
            yield from (f"{item.name}: {problem}" for problem in of_function(item))


def problems(node: ast.stmt) -> list[str]:
    """What is wrong with the docstrings of a public statement."""
    if isinstance(node, Function):
        return list(of_function(node))
    return list(of_class(node)) if isinstance(node, ast.ClassDef) else []


def found(name: str) -> Any:
    """The object of a dotted name."""
    home, _, last = name.rpartition(".")
    return getattr(importlib.import_module(home), last)


def parsed(text: str) -> ast.stmt:
    """The first statement of a text."""
    return ast.parse(textwrap.dedent(text)).body[0]


@pytest.mark.parametrize("name", LISTED)
def test_a_public_name_is_documented(name: str) -> None:
    assert problems(parsed(inspect.getsource(found(name)))) == []


def test_the_page_lists_what_the_package_offers() -> None:
    offered = {f"dsfc.{name}" for name in dsfc.__all__ if not name.startswith("__")}
    assert offered == {name for name in LISTED if name.count(".") == 1}


def test_what_a_public_function_returns_is_public() -> None:
    public = {id(found(name)) for name in LISTED}
    for name in LISTED:
        value = found(name)
        if inspect.isfunction(value):
            kind = str(value.__annotations__.get("return"))
            result = getattr(inspect.getmodule(value), kind, None)
            if inspect.isclass(result) and result.__module__.startswith("dsfc."):
                assert id(result) in public, (name, kind)


INSIDE = ("journey.md", "kernel_ir.md", "kernel_proofs.md")
"""Pages on how the compiler works, which call its stages."""


def test_what_pages_import_is_public() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    pages = [p for p in pages if "_build" not in p.parts and p.name not in INSIDE]
    text = "\n".join(p.read_text(encoding="utf-8") for p in pages)
    used = {f"{a}.{b}" for a, b in re.findall(r"from (dsfc[\w.]*) import (\w+)", text)}
    used |= {m for m in re.findall(r"\bdsfc\.(?:\w+\.)*\w+(?=\()", text)}
    assert len(used) > 5
    assert used - set(LISTED) == set()


EMITTED = ("ssd", "softmax", "dlr_bidirectional", "s4d")
"""A mixer with a state, one that keeps tokens, one without steps, one with complex parameters."""


@pytest.mark.share(2)
@pytest.mark.parametrize("name", EMITTED)
def test_an_emitted_module_is_documented(name: str) -> None:
    tree = ast.parse(load(name).module().text)
    assert ast.get_docstring(tree)
    bad = {
        node.name: problems(node)
        for node in tree.body
        if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_")
    }
    assert len(bad) == (5 if name == "dlr_bidirectional" else 6)
    assert {k: v for k, v in bad.items() if v} == {}


def docstrings() -> Iterator[tuple[str, ast.AST, str]]:
    """Place, node and text of every docstring of the compiler and of its backends."""
    for path in sorted(p for top in ("dsfc", "backends") for p in (ROOT / top).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, Function | ast.ClassDef | ast.Module):
                text = ast.get_docstring(node)
                if text:
                    where = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"
                    yield where, node, text


@pytest.mark.ci
def test_no_docstring_speaks_of_what_is_not_there() -> None:
    stale = []
    for where, node, text in docstrings():
        said = sections(text)
        if isinstance(node, Function) and "Args" in said:
            stale += [f"{where} {p}" for p in of_arguments(node, said["Args"]) if "said" in p]
        codes = set(re.findall(r"\b[EN]-[A-Z]+(?:-[A-Z]+)*\b", text))
        stale += [f"{where} {code}" for code in sorted(codes - set(CODES))]
    assert stale == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("def f(a):\n    pass", "no docstring"),
        ("def f(a) -> None:\n    '''Does.'''", "arguments ['a'], said []"),
        (
            "def f() -> None:\n    '''Does.\n\n    Args:\n        a: x.\n    '''",
            "arguments [], said ['a']",
        ),
        (
            "def f(a: Tensor) -> None:\n    '''Does.\n\n    Args:\n        a: x.\n    '''",
            "a has no shape",
        ),
        (
            "def f(a: int) -> None:\n    '''Does.\n\n    Args:\n        a: x.\n    '''",
            "a has no unit",
        ),
        ("def f() -> str:\n    '''Does.'''", "does not say what it returns"),
        ("def f() -> Tensor:\n    '''Returns y.'''", "the result has no shape"),
        ("def f():\n    '''Does.'''\n    raise ValueError('no')", "raises ValueError"),
        ("class C:\n    '''One.'''\n    a: str", "field a"),
        ("class C:\n    '''One.'''\n    def f(self) -> str:\n        pass", "f: no docstring"),
    ],
)
def test_what_is_missing_is_seen(text: str, wrong: str) -> None:
    assert wrong in problems(parsed(text))


def test_what_is_whole_passes() -> None:
    text = '''
    def f(a: Tensor, n: int) -> Tensor:
        """Returns it twice.

        Args:
            a: `[B, L]`.
            n: how many.

        Returns:
            `[n, B, L]`.

        Raises:
            ValueError: n is not positive.
        """
        raise ValueError(n)
    '''
    assert problems(parsed(text)) == []
