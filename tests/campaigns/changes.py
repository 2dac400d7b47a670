"""Small changes of a module: what they are, and the module's functions with one of them.

A *mutant* is one change in a function: a comparison, an operator, a number, a condition, a
statement left out. Texts (messages, docstrings), annotations and what stands outside of functions
stay.
A *segment* is a run of statements without a branch between them: tests that reach a mutant are
those that reach its segment.
"""

from __future__ import annotations

import ast
import copy
import functools
import importlib
import inspect
import pkgutil
import types
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

NOTE = "__reached__"
"""The name, in a module, of what is called with the segment that is reached."""

_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_BINARY: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.Pow: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change of a module.

    Attributes:
        module: the module's name.
        node: the number of the changed node, in the order of `ast.walk`.
        change: which of the changes of that node.
        segment: the segment that the node stands in, by its first line.
        function: the name of the function around.
        text: the change in words.
        again: how many mutants of the function before this one have the same text.
    """

    module: str
    node: int
    change: int
    segment: int
    function: str
    text: str
    again: int = 0

    @property
    def name(self) -> str:
        """Returns what the change is, without a line, so that it stays the same for long."""
        again = f" ({self.again + 1})" if self.again else ""
        return f"{self.module.partition('.')[2]}.{self.function}: {self.text}{again}"


# --- mutants --------------------------------------------------------------------------------------


def mutants(name: str, tree: ast.Module) -> Iterator[Mutant]:
    """Yields every mutant of a module, in order."""
    inside, quiet, segments = _functions_of(tree), _quiet(tree), _segments(tree)
    known: Counter[tuple[str, str]] = Counter()
    for number, node in enumerate(ast.walk(tree)):
        function = inside.get(node)
        if function is None or node in quiet:
            continue
        for k, (text, _) in enumerate(_changes(node)):
            again = known[function.name, text]
            known[function.name, text] += 1
            yield Mutant(name, number, k, segments[node], function.name, text, again)


_BRANCHES = (ast.If, ast.For, ast.While, ast.With, ast.Match, ast.Try)


def _segments(tree: ast.Module) -> dict[ast.AST, int]:
    """Node → the first line of the segment that the node stands in."""
    out: dict[ast.AST, int] = {}

    def visit(node: ast.AST, segment: int) -> None:
        out[node] = segment
        for _, value in ast.iter_fields(node):
            inner = segment
            for k, child in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(child, ast.stmt) and _begins(value, k):
                    inner = child.lineno
                if isinstance(child, ast.AST):
                    visit(child, inner)

    visit(tree, 0)
    return out


def _begins(statements: list[ast.stmt], k: int) -> bool:
    """Whether a segment begins at statement `k`."""
    return k == 0 or isinstance(statements[k - 1], _BRANCHES)


def _functions_of(tree: ast.Module) -> dict[ast.AST, ast.FunctionDef]:
    """Node → the innermost function that it stands in."""
    out: dict[ast.AST, ast.FunctionDef] = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for statement in function.body:
                out.update(dict.fromkeys(ast.walk(statement), function))
    return out


def _quiet(tree: ast.Module) -> set[ast.AST]:
    """Nodes whose change says nothing: texts of messages, annotations, patterns of `match`."""
    out: set[ast.AST] = set()
    for node in ast.walk(tree):
        held: list[ast.AST] = []
        match node:
            case ast.JoinedStr() | ast.pattern() | ast.Raise() | ast.Assert():
                held = [node]
            case ast.AnnAssign(annotation=a):
                held = [a]
            case ast.FunctionDef():
                held = [node.args, *node.decorator_list, *([node.returns] if node.returns else [])]
            case ast.Call(func=ast.Name(id="cast" | "TypeVar")):
                held = [node]
        for part in held:
            out |= set(ast.walk(part))
    return out


Change = Callable[[Any], ast.AST]


def _changes(node: ast.AST) -> list[tuple[str, Change]]:
    """The changes of one node: what they are, and how a copy of the node is changed."""
    said = ast.unparse(node).partition("\n")[0] if isinstance(node, ast.expr | ast.stmt) else ""
    out: list[tuple[str, Change]] = []
    match node:
        case ast.Compare(ops=ops):
            for k, op in enumerate(ops):
                if type(op) in _COMPARE:
                    new = _COMPARE[type(op)]
                    out.append((f"`{said}` with {new.__name__}", _set_op(k, new)))
        case ast.BoolOp(values=values):
            for k in range(len(values)):
                out.append((f"`{said}` without part {k + 1}", _without_value(k)))
        case ast.UnaryOp(op=ast.Not()):
            out.append((f"`{said}` without `not`", lambda n: n.operand))
        case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
            out.append((f"`{said}` without the minus", lambda n: n.operand))
        case ast.BinOp(op=op, left=left) if type(op) in _BINARY and not _is_text(left):
            new_op = _BINARY[type(op)]
            out.append((f"`{said}` with {new_op.__name__}", lambda n: _with(n, op=new_op())))
        case ast.Constant(value=bool() as value):
            out.append((f"{not value} for {value}", lambda n: ast.Constant(not n.value)))
        case ast.Constant(value=int() as value):
            out.append((f"{value + 1} for {value}", lambda n: ast.Constant(n.value + 1)))
        case ast.IfExp():
            out.append(
                (f"`{said}` the other way", lambda n: _with(n, body=n.orelse, orelse=n.body))
            )
        case ast.If(test=test):
            text = f"if {ast.unparse(test)}"
            out.append((f"`{text}` never", lambda n: _with(n, test=ast.Constant(False))))
            out.append((f"`{text}` always", lambda n: _with(n, test=ast.Constant(True))))
        case ast.Expr(value=ast.Call()):
            out.append((f"without `{said}`", _never))
        case ast.AugAssign():
            out.append((f"without `{said}`", _never))
        case ast.Continue() | ast.Break():
            out.append((f"without `{said}`", _never))
        case ast.Starred(value=value) if isinstance(node.ctx, ast.Load):
            out.append((f"`{said}` left out", lambda n: _with(n, value=ast.Tuple([], ast.Load()))))
    return out


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr | ast.Constant) and not isinstance(
        getattr(node, "value", ""), int | float
    )


def _with(node: Any, **changed: Any) -> Any:
    for name, value in changed.items():
        setattr(node, name, value)
    return node


def _never(n: ast.stmt) -> ast.AST:
    """Leaves a statement out, but keeps its names: the function has the same variables."""
    return ast.If(ast.Constant(False), [n], [])


def _set_op(k: int, new: type[ast.cmpop]) -> Change:
    def change(n: ast.Compare) -> ast.AST:
        n.ops[k] = new()
        return n

    return change


def _without_value(k: int) -> Change:
    def change(n: ast.BoolOp) -> ast.AST:
        del n.values[k]
        return n if len(n.values) > 1 else n.values[0]

    return change


class Changed(ast.NodeTransformer):
    """Puts a mutant in its place, or a note into every segment."""

    def __init__(self, numbers: dict[ast.AST, int], mutant: Mutant | None) -> None:
        self.numbers, self.mutant = numbers, mutant

    def visit(self, node: ast.AST) -> ast.AST:
        number = self.numbers.get(node, -1)
        if self.mutant is not None and number == self.mutant.node:
            _, change = _changes(node)[self.mutant.change]
            return ast.copy_location(change(copy.copy(node)), node)
        return super().visit(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if self.mutant is None and not isinstance(node, ast.Module | ast.ClassDef):
            for name, value in ast.iter_fields(node):
                if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                    setattr(node, name, list(_noted(value)))
        return node


def _noted(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    for k, statement in enumerate(statements):
        if _begins(statements, k):
            call = ast.Call(ast.Name(NOTE, ast.Load()), [ast.Constant(statement.lineno)], [])
            yield ast.copy_location(ast.Expr(call), statement)
        yield statement


# --- changed code ---------------------------------------------------------------------------------


def modules(package: str) -> dict[str, types.ModuleType]:
    """Returns the modules of a package by name."""
    path = importlib.import_module(package).__path__
    names = [m.name for m in pkgutil.iter_modules(path, f"{package}.")]
    return {n: importlib.import_module(n) for n in names}


@functools.cache
def source(module: types.ModuleType) -> str:
    """The text of a module as it is at the start, whoever edits it meanwhile."""
    return inspect.getsource(module)


def holders(module: types.ModuleType) -> list[types.FunctionType]:
    """Functions and methods of a module, without what is wrapped around them."""
    classes = [c for c in vars(module).values() if isinstance(c, type)]
    out: dict[types.FunctionType, None] = {}
    for holder in (module, *classes):
        for value in vars(holder).values():
            registry = getattr(getattr(value, "dispatcher", value), "registry", None)
            cases = registry.values() if isinstance(registry, types.MappingProxyType) else ()
            for each in (value, *cases):
                each = getattr(each, "fget", None) or getattr(each, "func", None) or each
                each = getattr(each, "__func__", each)
                each = inspect.unwrap(each) if callable(each) else each
                if isinstance(each, types.FunctionType) and each.__module__ == module.__name__:
                    out[each] = None
    return list(out)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)


def change(module: types.ModuleType, mutant: Mutant | None) -> bool:
    """Gives the functions of a module the code of the changed text: all who hold them see it.

    Args:
        module: the module.
        mutant: the change; without one, every segment calls `NOTE`.

    Returns:
        Whether any function has other code than before.
    """
    tree = ast.parse(source(module))
    numbers = {node: k for k, node in enumerate(ast.walk(tree))}
    tree = Changed(numbers, mutant).visit(tree)
    whole = compile(ast.fix_missing_locations(tree), str(module.__file__), "exec")
    new = {(c.co_qualname, c.co_firstlineno): c for c in _codes(whole)}
    changed = False
    for function in holders(module):
        own = function.__code__
        other = new.get((own.co_qualname, own.co_firstlineno))
        if other is not None and other.co_freevars == own.co_freevars and other != own:
            function.__code__ = other
            changed = True
    return changed
