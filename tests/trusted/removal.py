"""Takes the kernel's checks out, one at a time, and says which of them no test misses.

    python -P tests/trusted/removal.py [--tier TIER] [--jobs N] [--of FILE ...] [SITE ...]

A site is looked at if its text holds one of `SITE`; all are, if none is given. `--of` says which
tests run: all of the kernel's, if none is named. `--jobs` is how many processes run tests at a
time.

A *site* is one check in `dsfc/trusted`, or in the command that runs it:

- a `raise`, which is taken out;
- in what guards a `raise` or a `return False`, one of several conditions, each of which alone
  refuses, which is made one that never does; the bounds of a chain `a <= x < b` are two;
- a `return False` under a condition, which is taken out;
- in what a predicate returns, one of several conditions that must all hold, which is made true;
- the same in what guards anything else: a law that is used, a step that is left out; but of what
  type a value is, as what follows fails for another one;
- the same in what is named before it stands in one of these.

The tests run once, with every site noting which of them reaches it: those that it refuses in, as
only there anything changes without it. Then, site by site, a process forked off there and then has
the function without the check and runs these tests, those that take least first, until one fails:
nothing is imported, collected or proved again. A check that keeps work bounded is missed by tests
that do not end: a test has a bound on its time, beyond which the next one is asked, and a process
one on its time and memory. Only a test that fails misses a check; a run that ends otherwise says
nothing.

What is printed, as JSON: how many sites there are, and which of them no test reaches ("unreached")
or misses ("survivors"), or whose tests do not end ("endless") or not with a verdict ("broken").
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
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
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

import dsfc.trusted

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COMMAND = "dsfc.cli.check_proof"
LEFT_OUT = ("test_removal.py", "test_campaign.py")
OF_THE_COMMAND = "tests/cli/test_equiv.py"
FAILED, LATE = 1, 3
NO_VERDICT = {
    0: "survivors",
    LATE: "endless",
    -signal.SIGKILL: "endless",
    -signal.SIGXCPU: "endless",
}
"""How a run ends → what that says of a check, where no test failed."""
NOTE = "__reached__"
SECONDS_OF_A_TEST, SECONDS, BYTES = 10, 120, 12 * 2**30


def modules() -> dict[str, types.ModuleType]:
    names = [m.name for m in pkgutil.walk_packages(dsfc.trusted.__path__, "dsfc.trusted.")]
    return {
        n.rpartition(".")[2] if n != COMMAND else "cli": importlib.import_module(n)
        for n in (*names, COMMAND)
    }


@cache
def source(module: types.ModuleType) -> str:
    """The text of a module as it is at the start, whoever edits it meanwhile."""
    return inspect.getsource(module)


# --- sites ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Site:
    """One check.

    Attributes:
        module: where it stands.
        statement: position of the statement, in a walk through the module's tree: tests reach it.
        part: position of a condition in a walk through the statement; None for all of it.
        text: what it is, without a line, so that it stays the same where others come and go.
    """

    module: str
    statement: int
    part: tuple[int, int] | None
    text: str


def sites(name: str, tree: ast.Module) -> Iterator[Site]:
    """The checks of a module, in order."""
    seen: Counter[str] = Counter()

    def site(number: int, part: tuple[int, int] | None, text: str) -> Site:
        seen[text] += 1
        again = f" ({seen[text]})" if seen[text] > 1 else ""
        return Site(name, number, part, f"{name}.{text}{again}")

    inside = _functions_of(tree)
    for number, node in enumerate(ast.walk(tree)):
        function = inside.get(node)
        where = function.name if function else ""
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield site(number, None, f"{where}: {ast.unparse(node)}")
        if isinstance(node, ast.If) and _refuses(node.body[0]):
            refusal = ast.unparse(node.body[0])
            if isinstance(node.body[0], ast.Return):
                yield site(number, None, f"{where}: {refusal} if {ast.unparse(node.test)}")
            for part, text in conditions(node.test, must_hold=False):
                yield site(number, part, f"{where}: {refusal} if {text}")
        if isinstance(node, ast.If) and not _refuses(node.body[0]):
            for part, text in conditions(node.test, must_hold=True):
                if not text.removeprefix("not ").startswith("isinstance("):
                    yield site(number, part, f"{where}: {_head(node.body[0])} if … and {text}")
        if isinstance(node, ast.Return) and function is not None and _is_predicate(function):
            for part, text in conditions(node.value, must_hold=True):
                yield site(number, part, f"{where}: return … and {text}")
        match node:
            case ast.Assign([ast.Name(named)], ast.BoolOp() as value) if function is not None:
                for must_hold in sorted(_used(function, named)):
                    for part, text in conditions(value, must_hold):
                        yield site(number, part, f"{where}: {named} = … {text}")


def _head(node: ast.AST) -> str:
    return ast.unparse(node).partition("\n")[0]


def _used(function: ast.AST, name: str) -> set[bool]:
    """Whether what has a name must hold, or must not, in what guards and what is returned."""
    tests = [
        (node.test, not _refuses(node.body[0])) if isinstance(node, ast.If) else (node.value, True)
        for node in ast.walk(function)
        if isinstance(node, ast.If | ast.Return)
    ]
    return {
        must
        for test, must_hold in tests
        for part, must in operands(test, must_hold)
        if isinstance(part, ast.Name) and part.id == name
    }


def _functions_of(tree: ast.Module) -> dict[ast.AST, ast.FunctionDef]:
    out: dict[ast.AST, ast.FunctionDef] = {}
    for node in ast.walk(tree):  # outer functions come first
        if isinstance(node, ast.FunctionDef):
            out |= dict.fromkeys(ast.walk(node), node)
    return out


def _refuses(node: ast.stmt) -> bool:
    if isinstance(node, ast.Raise):
        return isinstance(node.exc, ast.Call)
    return isinstance(node, ast.Return) and ast.unparse(node) == "return False"


def _is_predicate(function: ast.FunctionDef) -> bool:
    return function.returns is not None and ast.unparse(function.returns) == "bool"


def conditions(test: ast.expr | None, must_hold: bool) -> Iterator[tuple[tuple[int, int], str]]:
    """The conditions of a test of which each alone refuses, and what they are.

    Args:
        test: what is looked at.
        must_hold: whether it refuses where it is false.

    Yields:
        Position of a node in the test and of one of its operands.
    """
    numbers = {id(node): k for k, node in enumerate(ast.walk(test))} if test is not None else {}
    for node, must in operands(test, must_hold):
        match node:
            case ast.BoolOp(op, values) if isinstance(op, ast.And) is must:
                for k, value in enumerate(values):
                    yield (numbers[id(node)], k), ast.unparse(value)
            case ast.Compare(left, _, comparators) if must and len(comparators) > 1:
                ends = [left, *comparators]
                for k, op in enumerate(node.ops):
                    pair = ast.Compare(ends[k], [op], [ends[k + 1]])
                    yield (numbers[id(node)], k), ast.unparse(pair)


def operands(test: ast.expr | None, must_hold: bool) -> Iterator[tuple[ast.expr, bool]]:
    """A test and what it is made of, and whether it refuses where that is false."""
    stack = [(test, must_hold)] if test is not None else []
    while stack:
        node, must = stack.pop()
        yield node, must
        match node:
            case ast.BoolOp(_, values):
                stack += [(v, must) for v in reversed(values)]
            case ast.UnaryOp(ast.Not(), operand):
                stack.append((operand, not must))
            case ast.Call(ast.Name("any" | "all" | "bool"), [ast.GeneratorExp(elt)]):
                stack.append((elt, must))
            case ast.Call(ast.Name("bool"), [arg]):
                stack.append((arg, must))


def without(test: ast.expr, part: tuple[int, int]) -> ast.expr:
    """A test without one of its conditions."""
    test = copy.deepcopy(test)
    number, operand = part
    node = list(ast.walk(test))[number]
    if isinstance(node, ast.BoolOp):
        node.values[operand] = ast.Constant(isinstance(node.op, ast.And))
        return test
    assert isinstance(node, ast.Compare)
    ends = [node.left, *node.comparators]
    rest = [
        ast.Compare(ends[k], [op], [ends[k + 1]]) for k, op in enumerate(node.ops) if k != operand
    ]
    left = rest[0] if len(rest) == 1 else ast.BoolOp(ast.And(), rest)

    class Put(ast.NodeTransformer):
        def visit_Compare(self, found: ast.Compare) -> ast.AST:
            return left if found is node else self.generic_visit(found)

    put: ast.expr = Put().visit(test)
    return put


# --- changed code ---------------------------------------------------------------------------------


class Changed(ast.NodeTransformer):
    """Takes one site out, or notes all of a module."""

    def __init__(self, numbers: dict[ast.AST, int], site: Site | None, noted: set[int]) -> None:
        self.numbers, self.site, self.noted = numbers, site, noted

    def generic_visit(self, node: ast.AST) -> ast.AST:
        guards = isinstance(node, ast.If) and not _refuses(node.body[0])
        out = super().generic_visit(node)
        number = self.numbers.get(node, -1)
        if self.site is not None:
            return _taken_out(node, self.site.part) if number == self.site.statement else out
        if number not in self.noted:
            return out
        note = ast.copy_location(ast.Name(NOTE, ast.Load()), node)
        if isinstance(node, ast.Return):
            node.value = ast.Call(note, [ast.Constant(number), node.value], [])
            return node
        if isinstance(node, ast.If) and guards:
            node.test = ast.Call(note, [ast.Constant(number), node.test], [])
            return node
        call = ast.copy_location(ast.Expr(ast.Call(note, [ast.Constant(number)], [])), node)
        if isinstance(node, ast.If):
            node.body.insert(0, call)
            return node
        return [call, node]  # type: ignore[return-value]  # two for one


def _taken_out(node: ast.AST, part: tuple[int, int] | None) -> ast.AST:
    if isinstance(node, ast.If):
        if part is None:
            node.body[0] = ast.copy_location(ast.Pass(), node.body[0])
        else:
            node.test = without(node.test, part)
        return node
    if isinstance(node, ast.Return | ast.Assign) and part is not None and node.value is not None:
        node.value = without(node.value, part)
        return node
    return ast.copy_location(ast.Pass(), node)


def functions(module: types.ModuleType) -> Iterator[types.FunctionType]:
    """The functions and methods that a module defines, without what is wrapped around them."""
    holders = [module, *(c for c in vars(module).values() if isinstance(c, type))]
    for holder in holders:
        for value in vars(holder).values():
            value = getattr(value, "callback", value)  # a command's
            value = getattr(value, "fget", None) or getattr(value, "func", None) or value
            value = getattr(value, "__func__", value)
            value = inspect.unwrap(value) if callable(value) else value
            if isinstance(value, types.FunctionType) and value.__module__ == module.__name__:
                yield value


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from codes(constant)


def change(module: types.ModuleType, site: Site | None, noted: set[int]) -> None:
    """Gives the functions of a module the code of the changed text: all who hold them see it."""
    tree = ast.parse(source(module))
    numbers = {node: k for k, node in enumerate(ast.walk(tree))}
    tree = Changed(numbers, site, noted).visit(tree)
    whole = compile(ast.fix_missing_locations(tree), str(module.__file__), "exec")
    new = {(c.co_qualname, c.co_firstlineno): c for c in codes(whole)}
    for function in functions(module):
        own = function.__code__
        function.__code__ = new.get((own.co_qualname, own.co_firstlineno), own)


# --- the run --------------------------------------------------------------------------------------


@dataclass(eq=False)
class Removal:
    """A run of the tests in which checks are taken out; a plugin of pytest.

    Attributes:
        parts: a site is looked at if its text holds one of them, or there are none.
        jobs: how many processes run tests at a time.
        found: what is said of the sites.
    """

    parts: list[str]
    jobs: int
    found: dict[str, object] = field(default_factory=dict)
    failed: bool = False
    late: bool = False
    took: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.took[report.nodeid] += report.duration
        self.failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        every = modules()
        trees = {name: ast.parse(source(module)) for name, module in every.items()}
        wanted = [s for name, tree in trees.items() for s in sites(name, tree)
                  if not self.parts or any(p in s.text for p in self.parts)]  # fmt: skip
        reached = self._noted(session.items, every, wanted)
        assert not self.failed, "the tests do not pass as they are"
        asked = [(s, sorted(reached[s.module, s.statement], key=self._cost)) for s in wanted]
        ends: dict[Site, tuple[str, str]] = {
            s: ("unreached", "") for s, tests in asked if not tests
        }
        reachable = [(s, tests) for s, tests in asked if tests]
        for number, (site, status, test) in enumerate(self._ended(reachable), 1):
            ends[site] = NO_VERDICT.get(status, "broken") if status != FAILED else "", test
            if ends[site][0] or number % 50 == 0:
                print(number, len(reachable), *ends[site], site.text, file=sys.stderr, flush=True)
        self.found = {"sites": len(wanted)} | {
            kind: [s.text for s in wanted if ends[s][0] == kind]
            for kind in ("unreached", *sorted({*NO_VERDICT.values(), "broken"}))
        }
        # What fails without a check does not fail with it, in a process of its own.
        missing = {test for _, test in ends.values()}
        (control,) = self._ended([(None, [i for i in session.items if i.nodeid in missing])])
        assert control == (None, 0, ""), f"a test fails in another process: {control}"
        return True

    def _cost(self, item: pytest.Item) -> tuple[float, str]:
        return self.took[item.nodeid], item.nodeid

    def _noted(
        self, items: list[pytest.Item], every: dict[str, types.ModuleType], wanted: list[Site]
    ) -> dict[tuple[str, int], dict[pytest.Item, None]]:
        """(module, statement) → the tests that reach it."""
        reached: dict[tuple[str, int], dict[pytest.Item, None]] = defaultdict(dict)
        at: list[pytest.Item] = []

        def note(name: str) -> Callable[..., object]:
            def reach(number: int, value: object = False) -> object:
                # What holds as it is holds without one of its conditions.
                if not value:
                    reached[name, number].setdefault(at[-1])
                return value

            return reach

        before = {f: f.__code__ for module in every.values() for f in functions(module)}
        for name, module in every.items():
            setattr(module, NOTE, note(name))
            change(module, None, {s.statement for s in wanted if s.module == name})
        for item, after in zip(items, [*items[1:], items[0]], strict=True):
            at.append(item)
            # What tests share stays: the processes that are forked off have it at once.
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        for function, code in before.items():
            function.__code__ = code
        return reached

    def _out_of_time(self, *_: object) -> None:
        self.late = True
        raise TimeoutError

    def _ended(
        self, asked: list[tuple[Site | None, list[pytest.Item]]]
    ) -> Iterator[tuple[Site | None, int, str]]:
        """How processes end, each of which runs tests without a check, and the test that failed."""
        running: dict[int, tuple[Site | None, int]] = {}
        left = iter(asked)
        while True:
            for site, tests in islice(left, self.jobs - len(running)):
                pid, read = self._without(site, tests)
                running[pid] = site, read
            if not running:
                return
            pid, status = os.wait()
            if pid in running:  # else what a test has left
                site, read = running.pop(pid)
                with os.fdopen(read, encoding="utf-8") as said:
                    yield site, os.waitstatus_to_exitcode(status), said.read()

    def _without(self, site: Site | None, tests: list[pytest.Item]) -> tuple[int, int]:
        """Starts a process that runs tests without a check; where it says which of them failed."""
        gc.freeze()  # else the child copies all that its collector visits
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
                resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
                tests[0].config.pluginmanager.unregister(name="terminalreporter")
                silent = os.open(os.devnull, os.O_WRONLY)
                os.dup2(silent, 1)
                os.dup2(silent, 2)
                if site is not None:
                    change(modules()[site.module], site, set())
                status = 0
                signal.signal(signal.SIGVTALRM, self._out_of_time)
                for item, after in zip(tests, [*tests[1:], None], strict=True):
                    self.late = False
                    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS_OF_A_TEST)
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                    if self.late:
                        self.failed, status = False, LATE
                    if self.failed:
                        os.write(write, item.nodeid.encode())
                        os._exit(FAILED)
                os._exit(status)
            os._exit(70)
        os.close(write)
        return child, read


def run(files: list[str], tier: str, parts: list[str], jobs: int) -> dict[str, object]:
    """What is said of the sites, by the tests of some files."""
    os.chdir(ROOT)  # tests are named from here
    removal = Removal(parts, jobs)
    files = files or [
        *sorted(str(p) for p in HERE.rglob("test_*.py") if p.name not in LEFT_OUT), OF_THE_COMMAND
    ]  # fmt: skip
    arguments = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider", "--tier", tier]
    arguments += ["--every-case", *files]
    pytest.main(arguments, [removal])
    return removal.found


def main() -> None:
    asked = argparse.ArgumentParser(usage=__doc__)
    asked.add_argument("--tier", default="fast")
    asked.add_argument("--jobs", type=int, default=1)
    asked.add_argument("--of", nargs="*", default=[])
    asked.add_argument("sites", nargs="*")
    given = asked.parse_args()
    started = time.monotonic()
    with contextlib.redirect_stdout(sys.stderr):
        found = run(given.of, given.tier, given.sites, given.jobs)
    print(f"{time.monotonic() - started:.0f} s", file=sys.stderr)
    print(json.dumps(found, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
