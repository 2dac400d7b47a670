"""Takes the checker's refusals out, one at a time, and says which of them no test misses.

    python -P tests/check_proof/removal.py [--tier TIER] [--of FILE ...] [PART OF A SITE ...]

`--of` says which tests run: all of the checker's, if none is named.

A site is a `raise` in `dsfc/check_proof`, as "module:line". First the tests of the checker run
once, with every site noting the test that reaches it. Then, for each site, a process of its own
replaces the function by one without the `raise` and runs the tests that reached it until one fails.
A check that keeps work bounded is missed by tests that do not end: processes have a bound on their
time. What is printed, as JSON: {"sites": how many, "unreached": [...], "survivors": [...],
"endless": [...]}, by text.
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
from collections.abc import Iterator
from pathlib import Path

import pytest

import dsfc.check_proof

HERE = Path(__file__).parent
LEFT_OUT = ("test_removal.py", "test_campaign.py")
FIRST_TRIED = "test_reasons.py"
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


def tests(arguments: list[str], tier: str) -> int:
    return int(pytest.main(["-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider",
                            "--tier", tier, *arguments]))  # fmt: skip


def noting(tier: str, files: list[str], file: str) -> int:
    with open(file, "w", encoding="utf-8") as out:

        def reached(site: str) -> None:
            test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
            out.write(json.dumps([site, test]) + "\n")

        for name, module in modules().items():
            setattr(module, NOTE, reached)
            change(name, module, None)
        return tests(files, tier)


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
    files = given.of or sorted(str(p) for p in HERE.glob("test_*.py") if p.name not in LEFT_OUT)
    every = {s: t for name, module in modules().items() for s, t in sites(name, module).items()}
    by_site: dict[str, dict[str, None]] = {site: {} for site in every}
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/reached"
        status = in_a_process(functools.partial(noting, tier, files, file), 3600)
        assert status == 0, f"the tests do not pass as they are: {status}"
        for line in Path(file).read_text(encoding="utf-8").splitlines():
            site, test = json.loads(line)
            if test:
                by_site[site].setdefault(test)
    wanted = {s: t for s, t in every.items() if not arguments or any(a in t for a in arguments)}
    unreached = [t for s, t in wanted.items() if not by_site[s]]
    print(f"{len(unreached)} of {len(wanted)} are reached by no test", file=sys.stderr, flush=True)
    survivors, endless = [], []
    for number, (site, text) in enumerate(wanted.items()):
        # Tests of reasons end at once; what reaches a site in passing is tried last.
        reached = sorted(by_site[site], key=lambda t: (FIRST_TRIED not in t, "[" in t, t))
        if not reached:
            continue
        status = in_a_process(functools.partial(survives, site, reached, tier), SECONDS)
        survivors += [text] * (status == 0)
        endless += [text] * (status in (-signal.SIGKILL, -signal.SIGXCPU))
        print(number + 1, len(wanted), status, text, file=sys.stderr, flush=True)
    print(json.dumps({"sites": len(wanted), "unreached": unreached, "survivors": survivors,
                      "endless": endless}, ensure_ascii=False, indent=1))  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
