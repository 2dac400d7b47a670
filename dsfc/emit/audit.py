"""Reads emitted text as an enemy would have written it.

Emitted modules run where specs from strangers were compiled. Every text is parsed again and held
against short lists of what a module may import, which built-in functions it may name, and which
attributes nobody needs for arithmetic. A spec cannot reach any of this (names are identifiers,
texts stand in docstrings and comments); the audit is the second lock, and it names a compiler fault
where the first one fails.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable
from threading import Lock
from typing import TypeGuard

IMPORTS = frozenset(
    {
        "__future__",
        "collections.abc",
        "dataclasses",
        "functools",
        "logging",
        "math",
        "threading",
        "torch",
        "torch.library",
        "torch.nn",
        "torch.nn.functional",
        "torch.serialization",
        "torch.utils",
        "torch.utils.flop_counter",
        "triton",
        "triton.language",
        "typing",
        "warnings",
    }
)
"""Modules that emitted text may import, or import from."""

BUILTINS = frozenset(
    {
        "Exception", "FutureWarning", "ImportError", "IndexError", "KeyError",
        "NotImplementedError", "RuntimeError", "RuntimeWarning", "TypeError", "UserWarning",
        "ValueError",
        "abs", "all", "any", "bool", "classmethod", "dict", "divmod", "enumerate", "float",
        "frozenset", "getattr", "hasattr", "int", "isinstance", "iter", "len", "list", "map", "max",
        "min", "next", "object", "pow", "property", "range", "repr", "reversed", "round", "set",
        "slice", "sorted", "staticmethod", "str", "sum", "super", "tuple", "type", "zip",
    }
)  # fmt: skip
"""Built-in names that emitted text may use; no evaluator, no file, no way to set or list names."""

DUNDERS = frozenset(
    {
        *("__all__", "__annotations__", "__init__", "__name__", "__post_init__", "__repr__"),
        *("__reduce__", "__version__", "__wrapped__"),
    }
)
"""Names with two leading underscores that emitted text may define or read."""

ATTRIBUTES = frozenset(
    {"_C", "classes", "cpp_extension", "ctypes", "f_globals", "gi_frame", "hub", "import_module"}
    | {"load", "load_library", "loads", "load_inline", "open", "os", "popen"}
    | {"subprocess", "sys", "system", "tb_frame"}
)
"""Attributes that emitted text may not read: doors from torch to files, code and the system."""

_DUNDER = re.compile(r"__\w+__")
_NODES = (ast.Global, ast.Nonlocal, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)


class EmissionError(Exception):
    """Emitted text that is not what a backend may write: a fault of the compiler."""


_PARSER = Lock()
"""CPython 3.11 counts the depth of the tree it makes in one place for all threads (gh-106905)."""


def parsed(text: str | bytes) -> ast.Module:
    """Returns the tree of a Python text; one thread at a time.

    Raises:
        SyntaxError: the text is no Python.
        ValueError: it holds a null byte.
    """
    with _PARSER:
        return ast.parse(text)


def audit(text: str) -> None:
    """Checks emitted text.

    Raises:
        EmissionError: it does not parse, imports something unexpected, or names a built-in
            function or an attribute that it has no use for.
    """
    try:
        tree = parsed(text)
    except (SyntaxError, ValueError) as e:
        raise EmissionError(f"the text does not parse: {e}") from e
    lookups = {id(node.func) for node in ast.walk(tree) if _is_lookup(node)}
    for node in ast.walk(tree):
        problem = None if id(node) in lookups else _problem(node)
        if problem is not None:
            raise EmissionError(f"line {getattr(node, 'lineno', 0)} {problem}")


def _is_lookup(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether a node is `getattr(x, "name", default)` of an attribute that may be read.

    Of the module's own operators (`_OPS`) any may be looked up.
    """
    match node:
        case ast.Call(ast.Name("getattr"), [ast.Name("_OPS"), _, _], []):
            return True
        case ast.Call(ast.Name("getattr"), [_, ast.Constant(str(name)), _], []):
            return _attribute(name) is None
    return False


def _problem(node: ast.AST) -> str | None:
    """What is wrong with one node, or None."""
    match node:
        case ast.Call(ast.Name("getattr" | "hasattr" as name), [_, key, *_]):
            if isinstance(key, ast.Constant):
                return _attribute(str(key.value))
            return None if isinstance(key, ast.Name) else f"computes a name for {name}"
        case ast.Constant(str(text)):
            return f"spells {text}" if _DUNDER.fullmatch(text) else None
        case ast.Import(names):
            return _first(f"imports {a.name}" for a in names if a.name not in IMPORTS)
        case ast.ImportFrom(module, names, level):
            if level or module not in IMPORTS:
                return f"imports {'.' * level}{module or ''}"
            return _first(_attribute(a.name) for a in names)
        case ast.Name(name):
            if hasattr(builtins, name) and name not in BUILTINS and name not in DUNDERS:
                return f"names {name}"
            return f"names {name}" if _hidden(name) else None
        case ast.Attribute(ast.Name("tl"), "load"):  # of memory, by kernels
            return None
        case ast.Attribute(_, name):
            return _attribute(name)
        case ast.FunctionDef(name) | ast.ClassDef(name) | ast.arg(name) | ast.keyword(name):
            return f"names {name}" if name is not None and _hidden(name) else None
        case _ if isinstance(node, _NODES):
            return f"holds {type(node).__name__}"
    return None


def _attribute(name: str) -> str | None:
    return f"reads {name}" if _hidden(name) or name in ATTRIBUTES else None


def _hidden(name: str) -> bool:
    return name.startswith("__") and name.strip("_") != "" and name not in DUNDERS


def _first(problems: Iterable[str | None]) -> str | None:
    return next((p for p in problems if p is not None), None)
