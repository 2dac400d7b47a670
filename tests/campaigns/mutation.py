"""Changes the compiler's passes a little, one place at a time, and asks which change no test sees.

    python tests/campaigns/mutation.py derive [--count 25] [--seed 0] [--out FILE]

The part is one of `derive`, `plan`, `backends` and `check_proof`. A *mutant* is one small change in
a function of it: a comparison, an operator, a number, a condition, a statement left out. Mutants
are drawn by the seed from all there are. The part's tests and the random mixers of the fast tier
run once, with every function noting which test reaches it. Then, mutant by mutant, a process that
is forked off there has the changed function, forgets what was kept, and runs the tests that reach
it, those that take least first, until one fails, each within a bound of processor time. A mutant
that no such test sees *survives*; one that no test reaches survives too. What ends otherwise than
by a failed test (memory, time) is counted apart and is not a kill.

Left out: texts (messages, docstrings), annotations, what stands outside of functions.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import functools
import gc
import importlib
import inspect
import json
import os
import pkgutil
import resource
import signal
import sys
import time
import types
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FIGURES = HERE / "mutation.json"
PARTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "derive": ("dsfc.derive", ("tests/derive", "tests/campaigns")),
    "plan": ("dsfc.plan", ("tests/plan", "tests/campaigns")),
    "backends": ("dsfc.backends.torch", ("tests/backends/torch", "tests/campaigns")),
    "check_proof": ("dsfc.check_proof", ("tests/check_proof",)),
}
"""Part → the package, and the tests that are asked about it."""
_LEFT_OUT = ("test_removal.py", "test_campaign.py")
NOTE = "__reached__"
_READING = ("dsfc.syntax", "dsfc.primitives.table")
"""What is kept here, no part makes."""
FAILED, LATE = 1, 3
SECONDS_OF_A_TEST, SECONDS, BYTES = 10, 60, 12 * 2**30

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
    """One change: the module, the position of its node and of the change at the node, and words."""

    module: str
    node: int
    change: int
    function: str
    text: str

    @property
    def name(self) -> str:
        """Returns what the change is, without a line, so that it stays the same for long."""
        return f"{self.module.partition('.')[2]}.{self.function}: {self.text}"


# --- mutants --------------------------------------------------------------------------------------


def mutants(name: str, tree: ast.Module) -> Iterator[Mutant]:
    """Yields every mutant of a module, in order."""
    inside, quiet = _functions_of(tree), _quiet(tree)
    for number, node in enumerate(ast.walk(tree)):
        function = inside.get(node)
        if function is None or node in quiet:
            continue
        for k, (text, _) in enumerate(_changes(node)):
            yield Mutant(name, number, k, function.name, text)


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
            out.append((f"without `{said}`", lambda n: ast.Pass()))
        case ast.AugAssign():
            out.append((f"without `{said}`", lambda n: ast.Pass()))
        case ast.Continue() | ast.Break():
            out.append((f"without `{said}`", lambda n: ast.Pass()))
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


class _Changed(ast.NodeTransformer):
    """Puts a mutant in its place, or a note into every function."""

    def __init__(self, numbers: dict[ast.AST, int], mutant: Mutant | None) -> None:
        self.numbers, self.mutant = numbers, mutant

    def visit(self, node: ast.AST) -> ast.AST:
        number = self.numbers.get(node, -1)
        if self.mutant is not None and number == self.mutant.node:
            _, change = _changes(node)[self.mutant.change]
            return ast.copy_location(change(copy.copy(node)), node)
        return super().visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        if self.mutant is None:
            call = ast.Call(ast.Name(NOTE, ast.Load()), [ast.Constant(node.lineno)], [])
            node.body.insert(0, ast.copy_location(ast.Expr(call), node.body[0]))
        return node


# --- changed code ---------------------------------------------------------------------------------


def modules(package: str) -> dict[str, types.ModuleType]:
    """Returns the modules of a package by name."""
    path = importlib.import_module(package).__path__
    names = [m.name for m in pkgutil.iter_modules(path, f"{package}.")]
    return {n: importlib.import_module(n) for n in names}


@functools.cache
def _source(module: types.ModuleType) -> str:
    """The text of a module as it is at the start, whoever edits it meanwhile."""
    return inspect.getsource(module)


def _holders(module: types.ModuleType) -> Iterator[types.FunctionType]:
    """Functions and methods of a module, without what is wrapped around them."""
    classes = [c for c in vars(module).values() if isinstance(c, type)]
    for holder in (module, *classes):
        for value in list(vars(holder).values()):
            registry = getattr(value, "registry", None)
            found = list(registry.values()) if isinstance(registry, types.MappingProxyType) else []
            for each in (value, *found):
                each = getattr(each, "fget", None) or getattr(each, "func", None) or each
                each = getattr(each, "__func__", each)
                each = inspect.unwrap(each) if callable(each) else each
                if isinstance(each, types.FunctionType) and each.__module__ == module.__name__:
                    yield each


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)


def change(module: types.ModuleType, mutant: Mutant | None) -> None:
    """Gives the functions of a module the code of the changed text: all who hold them see it."""
    tree = ast.parse(_source(module))
    numbers = {node: k for k, node in enumerate(ast.walk(tree))}
    tree = _Changed(numbers, mutant).visit(tree)
    whole = compile(ast.fix_missing_locations(tree), str(module.__file__), "exec")
    new = {(c.co_qualname, c.co_firstlineno): c for c in _codes(whole)}
    for function in list(_holders(module)):
        own = function.__code__
        made = new.get((own.co_qualname, own.co_firstlineno))
        if made is not None and made.co_freevars == own.co_freevars:
            function.__code__ = made


# --- the run --------------------------------------------------------------------------------------


@dataclass(eq=False)
class Run:
    """A run of a part's tests in which its functions are changed; a plugin of pytest.

    Attributes:
        part: the part.
        count: how many mutants are drawn.
        seed: by what.
        found: mutant → how it ended: `killed`, `survived`, `unreached`, `endless` or `broken`, and
            by which test.
    """

    part: str
    count: int
    seed: int
    found: dict[Mutant, tuple[str, str]] = field(default_factory=dict)
    total: int = 0
    failed: bool = False
    late: bool = False
    took: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.took[report.nodeid] += report.duration
        self.failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        every = modules(PARTS[self.part][0])
        trees = {name: ast.parse(_source(module)) for name, module in every.items()}
        known = [m for name, tree in trees.items() for m in mutants(name, tree)]
        drawn = Random(self.seed).sample(known, min(self.count, len(known)))
        self.total = len(known)
        reached = self._noted(session.items, every)
        assert not self.failed, "the tests do not pass as they are"
        for number, mutant in enumerate(drawn, 1):
            line = _line(trees[mutant.module], mutant)
            tests = sorted(
                reached[mutant.module, line], key=lambda i: (self.took[i.nodeid], i.nodeid)
            )
            self.found[mutant] = self._tried(every, mutant, tests) if tests else ("unreached", "")
            said = f"{number} of {len(drawn)}: {self.found[mutant][0]}: {mutant.name}"
            print(said, file=sys.stderr, flush=True)
        return True

    def _cost(self, item: pytest.Item) -> tuple[float, str]:
        return self.took[item.nodeid], item.nodeid

    def _noted(
        self, items: list[pytest.Item], every: dict[str, types.ModuleType]
    ) -> dict[tuple[str, int], dict[pytest.Item, None]]:
        """(module, line of a function) → the tests that reach it."""
        reached: dict[tuple[str, int], dict[pytest.Item, None]] = defaultdict(dict)
        at: list[pytest.Item] = []

        def note(name: str) -> Callable[[int], None]:
            def reach(line: int) -> None:
                if at:
                    reached[name, line].setdefault(at[-1])

            return reach

        before = {f: f.__code__ for module in every.values() for f in _holders(module)}
        for name, module in every.items():
            setattr(module, NOTE, note(name))
            change(module, None)
        for item in items:
            at.append(item)
            _forget()  # else a later test does not reach what an earlier one has kept
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        for function, code in before.items():
            function.__code__ = code
        return reached

    def _out_of_time(self, *_: object) -> None:
        self.late = True
        raise TimeoutError

    def _tried(
        self, every: dict[str, types.ModuleType], mutant: Mutant, tests: list[pytest.Item]
    ) -> tuple[str, str]:
        """How a process with the mutant ends."""
        gc.freeze()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                self._run(every, mutant, tests, write)
            os._exit(70)
        os.close(write)
        _, status = os.waitpid(child, 0)
        with os.fdopen(read, encoding="utf-8") as said:
            killer = said.read()
        code = os.waitstatus_to_exitcode(status)
        if code == FAILED:
            return "killed", killer
        if code == 0:
            return "survived", ""
        return ("endless" if code in (LATE, -signal.SIGXCPU, -signal.SIGKILL) else "broken"), killer

    def _run(
        self,
        every: dict[str, types.ModuleType],
        mutant: Mutant,
        tests: list[pytest.Item],
        write: int,
    ) -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (2 * SECONDS, 2 * SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        tests[0].config.pluginmanager.unregister(name="terminalreporter")
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        change(every[mutant.module], mutant)
        _forget()
        status, start = 0, time.process_time()
        signal.signal(signal.SIGVTALRM, self._out_of_time)
        for item in tests:
            if time.process_time() - start > SECONDS:
                break
            self.late = False
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS_OF_A_TEST)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            if self.late:
                self.failed, status = False, LATE
            if self.failed:
                os.write(write, item.nodeid.encode())
                os._exit(FAILED)
        os._exit(status)


def _forget() -> None:
    """Empties the caches of passes and tests: what was computed before a change would hide it."""
    for each in gc.get_objects():
        if type(each) is functools._lru_cache_wrapper and each is not _source:
            home = str(getattr(each, "__module__", ""))
            file = getattr(sys.modules.get(home), "__file__", None) or ""
            if str(ROOT) in file and not home.startswith(_READING) and ".venv" not in file:
                each.cache_clear()


def _line(tree: ast.Module, mutant: Mutant) -> int:
    """The line of the function a mutant stands in, as its note says it."""
    node = next(n for k, n in enumerate(ast.walk(tree)) if k == mutant.node)
    return _functions_of(tree)[node].lineno


def run(part: str, count: int, seed: int) -> dict[str, Any]:
    """Returns what became of the mutants of a part that a seed draws.

    Args:
        part: a key of `PARTS`.
        count: how many mutants.
        seed: draws them.
    """
    os.chdir(ROOT)
    started, plugin = time.monotonic(), Run(part, count, seed)
    files = [f"--ignore-glob=*{name}" for name in _LEFT_OUT]
    arguments = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    pytest.main([*arguments, *files, *PARTS[part][1]], [plugin])
    ends = [end for end, _ in plugin.found.values()]
    return {
        "seed": seed,
        "mutants": plugin.total,
        "tried": len(ends),
        "seconds": round(time.monotonic() - started),
        "killed": ends.count("killed"),
        "others": {
            end: sorted(m.name for m, (e, _) in plugin.found.items() if e == end)
            for end in ("survived", "unreached", "endless", "broken")
        },
    }


def main() -> None:
    asked = argparse.ArgumentParser(usage=__doc__)
    asked.add_argument("part", choices=list(PARTS))
    asked.add_argument("--count", type=int, default=25)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--out", type=Path)
    given = asked.parse_args()
    with contextlib.redirect_stdout(sys.stderr):
        found = run(given.part, given.count, given.seed)
    if given.out is not None:
        known = json.loads(given.out.read_text("utf-8")) if given.out.exists() else {}
        known[given.part] = found
        given.out.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(json.dumps(found, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
