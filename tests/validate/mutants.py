"""Small changes of an emitted text, one at a time, wherever it computes.

Each mutant changes one operator, number, mask or order in one function. The reference, and what
chooses and prices modes, are left alone: the reference is the judge, the others decide no value.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files

from dsfc.backends.shared.section import FILES, section

COMPUTING = tuple(x for x in FILES if x not in ("checks", "states", "operators"))
"""Files of the runtime that compute values."""

LEFT_ALONE = re.compile(r"reference|_mode|_\w*_flops|_reference\w*")
SWAPS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one function.

    Attributes:
        what: function, line, what was changed in it and how.
        function: name of the function.
        before, after: its text, unharmed and changed.
    """

    what: str
    function: str
    before: str
    after: str

    def of(self, text: str) -> str:
        """Returns the text of a module with this function changed."""
        assert text.count(self.before) == 1
        return text.replace(self.before, self.after)


def own_mutants(text: str) -> Iterator[Mutant]:
    """Yields the mutants of what a module has for its own mixer."""
    runtime = set(section().names)
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name not in runtime:
            yield from _of_function(text, node)


def runtime_mutants(file: str) -> Iterator[Mutant]:
    """Yields the mutants of a file of the runtime, which every module holds."""
    text = (files("dsfc.backends.shared.runtime") / f"{file}.py").read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            yield from _of_function(text, node)


def reached(text: str) -> frozenset[str]:
    """Returns the functions of the runtime that a module's own part may call."""
    runtime = set(section().names)
    reads = {
        getattr(node, "name", f"line {node.lineno}"): {
            n.id for n in ast.walk(node) if isinstance(n, ast.Name)
        }
        for node in ast.parse(text).body
    }
    called = {name for name in reads if name not in runtime}
    waiting = list(called)
    while waiting:
        new = (reads[waiting.pop()] & reads.keys()) - called
        called |= new
        waiting += new
    return frozenset(called & runtime)


def _of_function(text: str, function: ast.FunctionDef) -> Iterator[Mutant]:
    if LEFT_ALONE.fullmatch(function.name):
        return
    before = ast.get_source_segment(text, function)
    assert before is not None
    lines = text.splitlines()
    for number, node in enumerate(ast.walk(function)):
        for label, change in changes(node):
            twin = copy.deepcopy(function)
            change(next(n for i, n in enumerate(ast.walk(twin)) if i == number))
            twin.decorator_list = []  # they stand before the text of the function
            shown = ast.unparse(node).splitlines()[0]
            line = lines[getattr(node, "lineno", function.lineno) - 1].strip()
            what = f"{function.name}: {line}: {shown} ({label})"
            yield Mutant(what, function.name, before, ast.unparse(twin))


def changes(node: ast.AST) -> Iterator[tuple[str, Callable[[ast.AST], object]]]:
    """The changes of one node."""
    match node:
        case ast.BinOp(op=op) if type(op) in SWAPS:
            yield "another operator", lambda n: setattr(n, "op", SWAPS[type(n.op)]())
        case ast.AugAssign(op=op) if type(op) in SWAPS:
            yield "another operator", lambda n: setattr(n, "op", SWAPS[type(n.op)]())
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            # Without the minus it may be the same axis, counted from the front.
            other = value - 1 if value > 1 else value + 1
            yield f"-{other}", lambda n: setattr(n.operand, "value", other)
        case ast.UnaryOp(op=ast.USub()):
            yield "without the minus", lambda n: setattr(n, "op", ast.UAdd())
        case ast.Call(func=ast.Attribute(attr="tril"), args=[]):
            yield "less", lambda n: n.args.append(ast.Constant(-1))
        case ast.Call(func=ast.Attribute(attr="tril"), args=[_]):
            yield "more", lambda n: n.args.clear()
        case ast.Call(func=ast.Attribute(attr="exp" | "flip" | "exp_" as name)):
            yield f"without {name}", lambda n: setattr(n.func, "attr", "clone") or n.args.clear()
        case ast.keyword(arg="reverse", value=ast.Constant(True)):
            yield "forwards", lambda n: setattr(n, "value", ast.Constant(False))
        case ast.Slice(step=ast.UnaryOp(op=ast.USub())):
            yield "not reversed", lambda n: setattr(n, "step", None)
        case ast.Slice(lower=ast.Constant(1)):
            yield "from 0", lambda n: setattr(n, "lower", ast.Constant(0))
