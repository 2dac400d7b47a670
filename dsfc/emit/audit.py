"""Reads emitted text as an enemy would have written it.

Emitted modules run where specs from strangers were compiled. Every text is parsed again and held
against short lists of what a module may import, which built-in functions it may name, and which
attributes nobody needs for arithmetic. A spec cannot reach any of this (names are identifiers,
texts stand in docstrings and comments); the audit is a second lock: it names a compiler fault
where the first fails. The runtime section holds nothing of a spec: the tests audit it instead.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from dsfc.python_text import parsed

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
        "torch.distributed.device_mesh",
        "torch.distributed.tensor",
        "torch.distributed.tensor.parallel",
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
        *("__all__", "__annotations__", "__init__", "__name__", "__package__", "__post_init__"),
        *("__reduce__", "__repr__", "__version__", "__wrapped__"),
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


class EmissionError(Exception):
    """Emitted text that is not what a backend may write: a fault of the compiler."""


class Runtime(Protocol):
    """A section that a backend puts into modules as it stands, from files of this package."""

    @property
    def text(self) -> str:
        """The section; nothing in it depends on a spec."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names that the section defines; the rest of the text may not define these."""

    @property
    def modules(self) -> frozenset[str]:
        """Modules that the section needs imported; the rest of the text must not name these."""


def audit(text: str, runtime: Runtime | None = None, beside: str | None = None) -> None:
    """Checks emitted text, in one walk over its syntax tree.

    Args:
        text: of a module.
        runtime: a section that is left out, byte for byte.
        beside: a module in the same folder that it may import from; None where there is none.

    Raises:
        EmissionError: it does not parse, imports something unexpected, defines a name twice, or
            names a built-in function or an attribute that it has no use for.
    """
    modules: frozenset[str] = frozenset()
    if runtime is not None and runtime.text in text:
        text, modules = text.replace(runtime.text, "", 1), runtime.modules
    try:
        tree = parsed(text)
    except (SyntaxError, ValueError) as e:
        raise EmissionError(f"the text does not parse: {e}") from e
    _defined_once(tree, () if runtime is None else runtime.names)
    for node in _walked(tree):
        problem = _named(node, modules) if modules else None
        if problem is None and not _is_import_of(node, modules) and not _is_beside(node, beside):
            problem = _problem(node)
        if problem is not None:
            raise EmissionError(f"line {getattr(node, 'lineno', 0)} {problem}")


def _defined_once(tree: ast.Module, taken: Iterable[str]) -> None:
    """Refuses a second function or class of one name: what calls the first would get it."""
    seen = set(taken)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if node.name in seen:
                raise EmissionError(f"line {node.lineno} defines {node.name} again")
            seen.add(node.name)


def _is_import_of(node: ast.AST, modules: frozenset[str]) -> bool:
    """Whether a node imports what the runtime needs, and nothing else."""
    match node:
        case ast.Import():
            return all(a.name in modules and a.asname is None for a in node.names)
        case ast.ImportFrom(module=module, level=0):
            return f"{module}" in modules
    return False


def _is_beside(node: ast.AST, module: str | None) -> bool:
    """Whether a node imports from the module of a name in the same folder, and nothing hidden."""
    if not isinstance(node, ast.ImportFrom) or module is None or node.module != module:
        return False
    return node.level <= 1 and not any(_attribute(a.name) for a in node.names)


def _named(node: ast.AST, modules: frozenset[str]) -> str | None:
    """What is wrong with a name outside of the runtime: it is that of a module of the runtime."""
    if isinstance(node, ast.Name) and node.id in modules | {"Path"}:
        return f"names {node.id}"
    return None


def _walked(tree: ast.AST) -> Iterator[ast.AST]:
    """Yields every node of a tree, breadth first, but for the marks of loads and stores."""
    nodes = [tree]
    for node in nodes:
        # `vars` instead of `ast.iter_child_nodes`: half of the audit's time. It holds the fields,
        # and numbers of lines besides.
        for value in vars(node).values():
            if isinstance(value, list):
                nodes += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                nodes.append(value)
        yield node


def _problem(node: ast.AST) -> str | None:
    """What is wrong with one node, or None; its children are nodes of their own."""
    check = _CHECKS.get(type(node))
    return None if check is None else check(node)


def _call(node: ast.Call) -> str | None:
    """What is wrong with a call: `getattr` and `hasattr` take names that can be read here.

    Of the module's own operators (`_OPS`) any may be looked up with a default.
    """
    match node:
        case ast.Call(ast.Name("getattr"), [ast.Name("_OPS"), _, _], []):
            return None
        case ast.Call(ast.Name("getattr" | "hasattr"), [_, ast.Constant(key), *_]):
            return _attribute(str(key))
        case ast.Call(ast.Name("getattr" | "hasattr" as name), [_, key, *_]):
            return None if isinstance(key, ast.Name) else f"computes a name for {name}"
    return None


def _constant(node: ast.Constant) -> str | None:
    text = node.value
    return f"spells {text}" if isinstance(text, str) and _DUNDER.fullmatch(text) else None


def _import(node: ast.Import) -> str | None:
    return _first(f"imports {a.name}" for a in node.names if a.name not in IMPORTS)


def _import_from(node: ast.ImportFrom) -> str | None:
    if node.level or node.module not in IMPORTS:
        return f"imports {'.' * node.level}{node.module or ''}"
    return _first(_attribute(a.name) for a in node.names)


def _name(node: ast.Name) -> str | None:
    name = node.id
    if hasattr(builtins, name) and name not in BUILTINS and name not in DUNDERS:
        return f"names {name}"
    return f"names {name}" if _hidden(name) else None


def _read(node: ast.Attribute) -> str | None:
    match node:
        case ast.Attribute(ast.Name("tl"), "load"):  # of memory, by kernels
            return None
    return _attribute(node.attr)


def _binding(node: ast.FunctionDef | ast.ClassDef) -> str | None:
    return f"names {node.name}" if _hidden(node.name) else None


def _argument(node: ast.arg | ast.keyword) -> str | None:
    return f"names {node.arg}" if node.arg is not None and _hidden(node.arg) else None


def _refused(node: ast.AST) -> str:
    return f"holds {type(node).__name__}"


_CHECKS: Mapping[type, Callable[[Any], str | None]] = {
    ast.Call: _call,
    ast.Constant: _constant,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.Name: _name,
    ast.Attribute: _read,
    ast.FunctionDef: _binding,
    ast.ClassDef: _binding,
    ast.arg: _argument,
    ast.keyword: _argument,
    **dict.fromkeys(
        (ast.Global, ast.Nonlocal, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await),
        _refused,
    ),
}
"""The check of each type of node that may be wrong; the parser makes no subclasses of them."""


def _attribute(name: str) -> str | None:
    return f"reads {name}" if _hidden(name) or name in ATTRIBUTES else None


def _hidden(name: str) -> bool:
    return name.startswith("__") and name.strip("_") != "" and name not in DUNDERS


def _first(problems: Iterable[str | None]) -> str | None:
    return next((p for p in problems if p is not None), None)
