"""Every definition is reached from a command, a public name or a backend, or is listed here.

The walk follows names: from the roots to the definitions whose names they read, through imports,
and on from there. A method is reached where any attribute of its name is read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pytest

from dsfc.emit.backend import backend_names

Symbol = tuple[str, str]
"""A module and a name that it defines; a module alone has the name ""."""

JUDGES = {
    "dsfc.mixer.evaluate": "the meaning of a mixer, run literally: tests hold every stage to it",
    "dsfc.plan.evaluate_adjoint": "the meaning of a plan's gradient: tests hold adjoints to it",
    "dsfc.diagnostics.catalogue": "`examples`: tests raise each code by the spec on its page",
    "dsfc.backends.triton.cost.devices": "times of kernels on known GPUs, which benchmarks read",
}
"""Modules with definitions that no command reaches, and what they are for."""

INLINED = ("dsfc.backends.shared.runtime", "dsfc.backends.c.runtime")
"""Packages that are read as text and stand in emitted modules."""

BY_ATTRIBUTE = (
    "dsfc.backends.triton.matrix: kernels",
    "dsfc.backends.triton.phases: kernels",
)
"""Definitions that are read off a module which is a value: `form.kernels`."""

_RUNS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_STILL = {"dataclass", "cache", "contextmanager", "lru_cache", "final", "runtime_checkable"}
"""Decorators that register nothing anywhere."""


@dataclass
class Module:
    """A source file: its definitions and what its names stand for."""

    name: str
    file: Path

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.file.read_text(encoding="utf-8"))

    @cached_property
    def imports(self) -> dict[str, Symbol]:
        """Name → the symbol that an import, anywhere in the file, binds to it."""
        found: dict[str, Symbol] = {}
        above = self.name.split(".")[: None if self.file.name == "__init__.py" else -1]
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found |= {a.asname or a.name.split(".")[0]: (a.name, "") for a in node.names}
            elif isinstance(node, ast.ImportFrom):
                base = above[: len(above) - node.level + 1] if node.level else []
                home = ".".join([*base, *([node.module] if node.module else [])])
                found |= {a.asname or a.name: (home, a.name) for a in node.names}
        return found

    @cached_property
    def definitions(self) -> dict[str, list[ast.stmt]]:
        """Name → the statements at the top of the file that define it."""
        found: dict[str, list[ast.stmt]] = {}
        for node in self.tree.body:
            for name in defined(node):
                found.setdefault(name, []).append(node)
        return found

    @property
    def run_at_import(self) -> Iterator[ast.stmt]:
        """Statements that run when the file is imported and define nothing."""
        for node in self.tree.body:
            registered = isinstance(node, _RUNS) and any(
                decorator(d) not in _STILL for d in node.decorator_list
            )
            if registered or not (isinstance(node, _RUNS) or any(True for _ in defined(node))):
                yield node


def decorator(node: ast.expr) -> str:
    """Returns the last name of a decorator."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def defined(node: ast.stmt) -> Iterator[str]:
    """Yields the names that a statement at the top of a file defines."""
    if isinstance(node, _RUNS):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name))
    elif isinstance(node, ast.If | ast.Try):
        yield from (name for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt)
                    for name in defined(n))  # fmt: skip


@dataclass
class Project:
    """All modules, and the symbols reached so far."""

    modules: dict[str, Module]
    reached: set[Symbol] = field(default_factory=set)

    def reach(self, roots: list[Symbol]) -> None:
        """Follows names from the roots on."""
        pending = list(roots)
        while pending:
            symbol = pending.pop()
            if symbol in self.reached:
                continue
            self.reached.add(symbol)
            pending += self.behind(*symbol)

    def behind(self, home: str, name: str) -> Iterator[Symbol]:
        """Yields the symbols that one symbol reads."""
        if f"{home}.{name}" in self.modules:
            yield f"{home}.{name}", ""
        if home not in self.modules:
            return
        module = self.modules[home]
        yield home, ""
        if not name:
            yield home.rpartition(".")[0], ""
            for node in module.run_at_import:
                yield from self.read_by(module, node)
        elif name in module.definitions:
            for node in module.definitions[name]:
                yield from self.read_by(module, node)
        elif name in module.imports:
            yield module.imports[name]

    def read_by(self, module: Module, node: ast.AST) -> Iterator[Symbol]:
        """Yields the symbols that a statement of a module names."""
        for n in ast.walk(node):
            if isinstance(n, ast.Name):
                if n.id in module.definitions:
                    yield module.name, n.id
                elif n.id in module.imports:
                    yield module.imports[n.id]
            elif isinstance(n, ast.Attribute):
                yield from self._dotted(module, n)
            elif isinstance(n, ast.Constant) and isinstance(n.value, str):
                yield n.value, ""
                yield from re.findall(r"from (dsfc[\w.]+) import (\w+)", n.value)
            elif isinstance(n, ast.Tuple) and len(n.elts) == 2:
                match n.elts:
                    case [ast.Constant(str(home)), ast.Constant(str(name))]:
                        yield home, name

    def _dotted(self, module: Module, node: ast.Attribute) -> Iterator[Symbol]:
        names, at = [node.attr], node.value
        while isinstance(at, ast.Attribute):
            names.append(at.attr)
            at = at.value
        if not isinstance(at, ast.Name) or at.id not in module.imports:
            return
        home = ".".join(n for n in module.imports[at.id] if n)
        for name in reversed(names):
            if f"{home}.{name}" not in self.modules:
                yield home, name
                return
            home = f"{home}.{name}"

    def unreached(self) -> Iterator[Symbol]:
        """Yields what no root reaches."""
        for module in self.modules.values():
            for name in module.definitions:
                if (module.name, name) not in self.reached and not name.startswith("__"):
                    if name == "_":  # a case by type, which runs at import
                        continue
                    yield module.name, name


@pytest.fixture(scope="module")
def project(root: Path) -> Project:
    """The project with all that its commands, public names and backends reach."""
    modules = {}
    for top in ("dsfc", "backends"):
        for file in (root / top).rglob("*.py"):
            parts = file.relative_to(root).with_suffix("").parts
            parts = ("dsfc", *parts) if top == "backends" else parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            modules[name] = Module(name, file)
    whole = Project(modules)
    page = (root / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    public = re.findall(r"auto(?:function|class|exception|data):: (dsfc[\w.]+)\.(\w+)", page)
    commands = [(m, "") for m in modules if m.startswith("dsfc.cli")]
    backends = [(f"dsfc.backends.{b}", "BACKEND") for b in backend_names()]
    rows = [(m, "ROW") for m in modules if re.search(r"\.forms\.\w+$", m)]
    names = [("dsfc", "_HOMES"), ("dsfc", "__getattr__"), ("dsfc.cli", "main")]
    names.append(("dsfc.syntax.pygments_lexer", "DsfLexer"))  # by its entry point
    whole.reach([*commands, *backends, *public, *rows, *names, ("dsfc.__main__", "")])
    return whole


@pytest.mark.ci
def test_every_definition_is_reached_or_listed(project: Project) -> None:
    left = {
        f"{home}: {name}"
        for home, name in project.unreached()
        if not home.startswith(INLINED) and home not in JUDGES
    }
    assert left == set(BY_ATTRIBUTE)


@pytest.mark.ci
def test_what_is_listed_is_not_reached(project: Project) -> None:
    assert set(JUDGES) <= {home for home, _ in project.unreached()}


def test_what_nothing_reads_is_seen(tmp_path: Path) -> None:
    texts = {
        "a": "from b import used\ndef main(): return used()",
        "b": "def used(): return KEPT\ndef unread(): return used()\nKEPT = 1",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    whole = Project({n: Module(n, tmp_path / f"{n}.py") for n in texts})
    whole.reach([("a", "main")])
    assert list(whole.unreached()) == [("b", "unread")]


@pytest.mark.ci
def test_every_attribute_of_a_class_is_read_somewhere(project: Project, root: Path) -> None:
    """Enumerations are closed lists, and methods with underscores are called by others."""
    read = {
        n.attr if isinstance(n, ast.Attribute) else n.value
        for m in project.modules.values()
        for n in ast.walk(m.tree)
        if isinstance(n, ast.Attribute)
        or (isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.isidentifier())
    }
    read |= {k for m in project.modules.values() for n in ast.walk(m.tree)
             if isinstance(n, ast.MatchClass) for k in n.kwd_attrs}  # fmt: skip
    for template in (root / "backends").rglob("*.j2"):
        read |= set(re.findall(r"\.(\w+)", template.read_text(encoding="utf-8")))
    left = set()
    for m in project.modules.values():
        if m.name.startswith(INLINED) or m.name in JUDGES:
            continue
        for cls in (n for n in ast.walk(m.tree) if isinstance(n, ast.ClassDef)):
            methods = (n for n in cls.body if isinstance(n, ast.FunctionDef))
            left |= {
                f"{m.name}.{cls.name}.{n.name}"
                for n in methods
                if n.name not in read and not n.name.startswith("_") and n.name not in CALLED
            }
    assert left == set()


CALLED = {
    "get_code": "Python's import system",
    "find_spec": "Python's import system",
    "show": "click",
    "shell_complete": "click",
    "convert": "click",
    "format_commands": "click",
    "format_epilog": "click",
    "fdiff": "SymPy",
    "explicit": "a user, of SymPy matrices",
    "to_networkx": "a user, of a plan",
}
"""Methods that others call, and who."""
