"""Takes the checker's refusals out, one at a time, and says which of them no test misses.

    python -P tests/check_proof/removal.py [--tier TIER] [--of FILE ...] [PART OF A SITE ...]

`--of` says which tests run: all of the checker's, if none is named.

A site is a `raise` in `dsfc/check_proof`, as "module:line". First the tests of the checker run
once, with every site noting the test that reaches it. Then, for each site, a process of its own
replaces the function by one without the `raise` and runs the tests that reached it until one fails.
A check that keeps work bounded is missed by tests that do not end: processes have a bound on their
time. Only a test that fails misses a check; a run that ends otherwise says nothing. What is
printed, as JSON: how many sites there are, and which of them no test reaches ("unreached"), none
misses ("survivors"), or whose tests do not end ("endless") or not with a verdict ("broken").
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import importlib
import inspect
import json
import os
import pkgutil
import resource
import signal
import sys
import tempfile
import types
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import dsfc.check_proof

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LEFT_OUT = ("test_removal.py", "test_campaign.py")
NO_VERDICT = {0: "survivors", -signal.SIGKILL: "endless", -signal.SIGXCPU: "endless"}
"""How a run ends → what that says of a check, where no test failed."""
NOTE = "__reached__"
SECONDS = 120


def modules() -> dict[str, types.ModuleType]:
    found = pkgutil.iter_modules(dsfc.check_proof.__path__)
    return {m.name: importlib.import_module(f"dsfc.check_proof.{m.name}") for m in found}


def sites(name: str, module: types.ModuleType) -> dict[str, str]:
    """Site → its text, of the refusals of a module."""
    source = inspect.getsource(module)
    return {
        f"{name}:{node.lineno}": f"{name}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
    }


class Changed(ast.NodeTransformer):
    """Notes every site, or takes one out."""

    def __init__(self, name: str, without: str | None) -> None:
        self.name, self.without = name, without

    def visit_Raise(self, node: ast.Raise) -> ast.AST | list[ast.AST]:
        site = f"{self.name}:{node.lineno}"
        if self.without is None and isinstance(node.exc, ast.Call):
            call = ast.Expr(ast.Call(ast.Name(NOTE, ast.Load()), [ast.Constant(site)], []))
            return [ast.copy_location(call, node), node]
        return ast.copy_location(ast.Pass(), node) if site == self.without else node


def functions(module: types.ModuleType) -> Iterator[types.FunctionType]:
    """The functions and methods that a module defines, without what is wrapped around them."""
    holders = [module, *(c for c in vars(module).values() if isinstance(c, type))]
    for holder in holders:
        for value in vars(holder).values():
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


def change(name: str, module: types.ModuleType, without: str | None) -> None:
    """Gives the functions of a module the code of the changed text: all who hold them see it."""
    tree = Changed(name, without).visit(ast.parse(inspect.getsource(module)))
    whole = compile(ast.fix_missing_locations(tree), str(module.__file__), "exec")
    new = {(c.co_qualname, c.co_firstlineno): c for c in codes(whole)}
    for function in functions(module):
        own = function.__code__
        function.__code__ = new.get((own.co_qualname, own.co_firstlineno), own)


def in_a_process(work: functools.partial[int], seconds: int) -> int:
    """The exit status of a child that does the work, silently, in seconds of its processor."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            os._exit(work())
        os._exit(70)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def tests(arguments: list[str], tier: str, *plugins: object) -> int:
    return int(pytest.main(["-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider",
                            "--tier", tier, *arguments], plugins))  # fmt: skip


def noting(tier: str, files: list[str], file: str) -> int:
    with open(file, "w", encoding="utf-8") as out:

        def reached(site: str) -> None:
            test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
            out.write(json.dumps([site, test, 0]) + "\n")

        class Timed:
            def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
                if report.when == "call":
                    out.write(json.dumps([None, report.nodeid, report.duration]) + "\n")

        for name, module in modules().items():
            setattr(module, NOTE, reached)
            change(name, module, None)
        return tests(files, tier, Timed())


def survives(site: str, reached: list[str], tier: str) -> int:
    name = site.partition(":")[0]
    change(name, modules()[name], site)
    return tests(reached, tier)


def main(arguments: list[str]) -> None:
    asked = argparse.ArgumentParser(usage=__doc__)
    asked.add_argument("--tier", default="fast")
    asked.add_argument("--of", nargs="*", default=[])
    asked.add_argument("sites", nargs="*")
    given = asked.parse_args(arguments)
    tier, arguments = given.tier, given.sites
    os.chdir(ROOT)  # tests are named from here
    files = given.of or sorted(str(p) for p in HERE.glob("test_*.py") if p.name not in LEFT_OUT)
    every = {s: t for name, module in modules().items() for s, t in sites(name, module).items()}
    by_site: dict[str, dict[str, None]] = {site: {} for site in every}
    took: dict[str, float] = defaultdict(float)
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/reached"
        status = in_a_process(functools.partial(noting, tier, files, file), 3600)
        assert status == 0, f"the tests do not pass as they are: {status}"
        for line in Path(file).read_text(encoding="utf-8").splitlines():
            site, test, seconds = json.loads(line)
            if site is None:
                took[test] = seconds
            elif test:
                by_site[site].setdefault(test)
    wanted = {s: t for s, t in every.items() if not arguments or any(a in t for a in arguments)}
    unreached = [t for s, t in wanted.items() if not by_site[s]]
    print(f"{len(unreached)} of {len(wanted)} are reached by no test", file=sys.stderr, flush=True)
    found: dict[str, list[str]] = {n: [] for n in ("survivors", "endless", "broken")}
    for number, (site, text) in enumerate(wanted.items()):
        # What fails soonest comes first: most tests that reach a site miss it.
        reached = sorted(by_site[site], key=lambda t: (took[t], t))
        if not reached:
            continue
        status = in_a_process(functools.partial(survives, site, reached, tier), SECONDS)
        if status != pytest.ExitCode.TESTS_FAILED:
            found[NO_VERDICT.get(status, "broken")].append(text)
        print(number + 1, len(wanted), status, text, file=sys.stderr, flush=True)
    out = {"sites": len(wanted), "unreached": unreached, **found}
    print(json.dumps(out, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
