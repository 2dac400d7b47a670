"""No text is ever turned into a program: what could do it does not occur, but where it is listed.

The sources are read as syntax trees. What counts is which names are used, by whatever way: called,
handed on, imported under another name, taken as an attribute or looked up by a string.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

BARE = {"eval", "exec", "compile", "__import__", "__builtins__", "breakpoint"}
"""Names that Python itself gives; used for anything but a definition of the file's own."""

ATTRIBUTES = {
    *("sympify", "parse_expr", "lambdify", "parse_latex", "parse_mathematica", "from_string"),
    *("popen", "startfile", "posix_spawn", "posix_spawnp", "forkpty"),
    *(f"{kind}{form}" for kind in ("exec", "spawn") for form in ("l", "le", "lp", "lpe")),
    *(f"{kind}{form}" for kind in ("exec", "spawn") for form in ("v", "ve", "vp", "vpe")),
    *("getoutput", "getstatusoutput", "create_subprocess_shell", "subprocess_shell"),
    *("create_subprocess_exec", "exec", "__import__", "__builtins__", "__subclasses__"),
    *("__globals__", "f_globals", "f_builtins", "f_locals", "gi_frame", "tb_frame", "f_back"),
    *("FunctionType", "LambdaType", "CodeType", "attrgetter", "methodcaller", "pickle", "marshal"),
    *("get_type_hints", "import_module", "exec_module", "module_from_spec", "load_module"),
    *("spec_from_file_location", "spec_from_loader", "SourceFileLoader"),
}
"""Used by name, as an attribute of anything, or imported from anywhere."""

OF_MODULES = {"system", "fork", "modules", "reload", "compile", "eval"}
"""Used as an attribute of a module, or imported from one; elsewhere the words are innocent."""

STRINGS = (ATTRIBUTES | BARE) - {"compile", "pickle"}
"""Used as a string, with which an attribute is looked up; words that are left out mean more."""

MODULES = {
    *("builtins", "pickle", "_pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle"),
    *("joblib", "code", "codeop", "runpy", "imp", "importlib", "pkgutil", "zipimport", "pty"),
    *("ctypes", "_ctypes", "cffi", "subprocess", "_posixsubprocess", "multiprocessing", "timeit"),
    *("trace", "pdb", "bdb", "doctest", "profile", "cProfile", "rlcompleter", "yaml", "numexpr"),
    *("webbrowser", "socket", "socketserver", "urllib", "http", "ftplib", "telnetlib", "xmlrpc"),
}
"""Modules that run, load or fetch programs."""

HARMLESS = {"importlib.metadata", "importlib.resources", "importlib.resources.abc"}
"""Parts of them that do not."""

INNOCENT = {("re", "compile"), ("torch", "compile"), ("platform", "system")}
"""What takes no text of a program."""

SWITCHES = {"shell": False, "allow_pickle": False, "eval_str": False, "weights_only": True}
"""Arguments with the only value that they may be given."""

ALLOWED = {
    "dsfc/__init__.py": {
        "importlib": "public names are imported when they are first used, from a fixed table",
        "import_module": "the same",
        "globals": "and are kept",
    },
    "dsfc/resource_limits.py": {
        "ctypes": "asks Python for an exception in a thread; no text has a part"
    },
    "dsfc/trusted/schema.py": {"get_type_hints": "reads annotations of this package"},
    "dsfc/expr/json.py": {"get_type_hints": "reads annotations of this package"},
    "dsfc/cli/doctor.py": {"subprocess": "asks torch and Triton by fixed programs"},
    "dsfc/atlas/workers.py": dict.fromkeys(
        ("multiprocessing", "multiprocessing.connection", "multiprocessing.context"),
        "starts this package again, which reads systems as documents",
    ),
    "dsfc/emit/audit.py": {
        "builtins": "the names that an emitted module may not use",
        **dict.fromkeys(
            ("f_globals", "gi_frame", "import_module", "popen", "tb_frame"),
            "a word of the list of what no emitted module may hold",
        ),
    },
    "dsfc/emit/backend.py": {
        "importlib": "a backend is a package of dsfc.backends, whose names are listed first",
        "import_module": "the same",
        "pkgutil": "lists them",
    },
    "dsfc/plan/forms/table.py": {
        "importlib": "the row of a form is in the file of its name, a member of an enumeration",
        "import_module": "the same",
    },
    "backends/torch/forms/table.py": {"importlib": "the same", "import_module": "the same"},
    "dsfc/emit/importing.py": {
        "importlib": "imports an emitted module, which the user asked for",
        "importlib.abc": "the same",
        "importlib.machinery": "the same",
        "importlib.util": "the same",
        "import_module": "the same",
        "SourceFileLoader": "the same",
        "spec_from_file_location": "the same",
        "CodeType": "the same",
        "modules": "asks whether one of them has registered the operators that a text names",
    },
    "dsfc/analysis/data.py": {"load": "reads arrays of numbers; objects are refused"},
    "dsfc/api/trained.py": {"import_module": "the module that the weights are of is run"},
    "dsfc/api/convert.py": {"import_module": "both modules, which were just compiled, are run"},
    "dsfc/api/imported.py": {"import_module": "a module is run, as the user asked for"},
    "dsfc/api/lift.py": {"import_module": "a lifted spec is compiled and run beside the module"},
    "dsfc/layouts/places.py": {"loads": "reads TOML, which is data"},
    "dsfc/layouts/read.py": {"loads": "the same"},
    "dsfc/lift/trace.py": {
        "import_module": "a file `x.py` is run, as the user asked for by `x.py:Name`, and no other"
    },
    "dsfc/api/rounding.py": {"import_module": "a spec is compiled and its module run"},
    "dsfc/api/published.py": {"import_module": "a spec is compiled and its module run"},
    "dsfc/api/validate.py": {"import_module": "the spec's module without a layer is run"},
    "dsfc/emit/names.py": {"builtins": "names that no class or function may take"},
    "dsfc/language_server/check.py": {
        "create_subprocess_exec": "`dsfc check -`, fixed words; the text goes to standard input"
    },
    "dsfc/prover/field.py": {"importlib.util": "asks whether FLINT is installed"},
    "dsfc/programs/program.py": {"modules": "the module that the class of a layer stands in"},
    "dsfc/rounding/interpret.py": {"f_back": "looks for the line of the module that runs"},
    "dsfc/validate/reference.py": {
        "importlib": "the class of a shipped layout map, or of one that the user asked for, is run",
        "import_module": "the same",
        "modules": "packages of kernels are hidden from it",
    },
    "dsfc/validate/compilers.py": {"subprocess": "loads an exported module by a fixed program"},
    "dsfc/validate/torch_surface.py": {
        "importlib.util": "imports a module twice, as users do",
        "exec_module": "the same",
        "module_from_spec": "the same",
        "spec_from_file_location": "the same",
        "modules": "the same",
    },
    "backends/c/runtime/native.py": {
        "ctypes": "starts compiled kernels; their text is the printer's, names are checked",
        "subprocess": "runs the machine's C compiler, without a shell, on that text alone",
    },
    "backends/torch/nodes.py": {"getattr": "a function of math by its name in the primitive table"},
    "backends/triton/gated.py": {"builtins": "names that no kernel may take"},
}
"""Where what is forbidden elsewhere stands, with the reason."""


def sources(root: Path) -> list[Path]:
    return sorted(p for top in ("dsfc", "backends") for p in (root / top).rglob("*.py"))


def findings(text: str) -> list[tuple[int, str]]:
    """Lists line and name of everything in a source that could turn text into a program."""
    tree = ast.parse(text)
    own = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    modules = {
        alias.asname or alias.name.partition(".")[0]
        for n in ast.walk(tree)
        if isinstance(n, ast.Import)
        for alias in n.names
    }
    return [
        (getattr(node, "lineno", 0), name)
        for node in ast.walk(tree)
        for name in _named(node, own, modules)
    ]


def _named(node: ast.AST, own: set[str], modules: set[str]) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Load()) if name in BARE - own or name in ATTRIBUTES - own:
            yield name
        case ast.Constant(value=str(word)) if word in STRINGS:
            yield word
        case ast.Attribute(attr=name) if name in ATTRIBUTES:
            yield name
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if (
            owner in modules and name in OF_MODULES and (owner, name) not in INNOCENT
        ):
            yield name
        case ast.Import(names=names):
            yield from (a.name for a in names if _forbidden(a.name))
        case ast.ImportFrom(module=str(module), names=names, level=0):
            whole = [f"{module}.{a.name}" for a in names]
            if _forbidden(module) and not HARMLESS.issuperset(whole):
                yield module
            yield from (a.name for a in names if a.name in ATTRIBUTES | BARE | OF_MODULES)
            if module in ("jinja2", "string") and any(a.name == "Template" for a in names):
                yield "Template"
        case ast.Call():
            yield from _called(node, modules)


def _forbidden(module: str) -> bool:
    return module not in HARMLESS and module.partition(".")[0] in MODULES


def _called(call: ast.Call, modules: set[str]) -> Iterator[str]:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    last = call.func.attr if isinstance(call.func, ast.Attribute) else name
    for keyword in call.keywords:
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if keyword.arg in SWITCHES and value is not SWITCHES[keyword.arg]:
            yield keyword.arg
    if last == "load" and _is_torch_or_numpy(call.func):
        if not any(k.arg == "weights_only" for k in call.keywords):
            yield "load"
    if last == "loads" and not (
        isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "json"
    ):
        yield "loads"
    if name in ("getattr", "setattr", "vars") and call.args:
        owner = call.args[0]
        named = len(call.args) > 1 and isinstance(call.args[1], ast.Constant)
        if isinstance(owner, ast.Name) and owner.id in modules and not named:
            yield name
    if name in ("globals", "locals") or (name == "vars" and not call.args):
        yield name


def _is_torch_or_numpy(function: ast.expr) -> bool:
    return ast.unparse(function) in ("torch.load", "np.load", "numpy.load")


@pytest.mark.ci
def test_what_is_forbidden_occurs_exactly_where_it_is_listed(root: Path) -> None:
    occurrences = [
        (path.relative_to(root).as_posix(), line, name)
        for path in sources(root)
        for line, name in findings(path.read_text(encoding="utf-8"))
    ]
    unlisted = [f"{f}:{line} {n}" for f, line, n in occurrences if n not in ALLOWED.get(f, {})]
    assert unlisted == []
    listed = {(file, name) for file, names in ALLOWED.items() for name in names}
    assert sorted(listed - {(file, name) for file, _, name in occurrences}) == []


def test_templates_do_not_evaluate_either(root: Path) -> None:
    words = (
        "eval(",
        "exec(",
        "__import__",
        "__builtins__",
        "pickle",
        "subprocess",
        "os.",
        "importlib",
    )
    assert [
        f"{path.relative_to(root)} {word}"
        for path in sorted((root / "backends").rglob("*.j2"))
        for word in words
        if word in path.read_text(encoding="utf-8").replace(".eval()", "")
    ] == []


PLANTS = {
    "a call": "eval('1')",
    "handed on": "f = eval\nf('1')",
    "handed to another": "list(map(exec, texts))",
    "imported": "from sympy import lambdify as f",
    "an attribute": "import sympy\nsympy.sympify('1')",
    "a program": "exec(text)",
    "compiled": "compile(text, 'f', 'exec')",
    "of builtins": "import builtins\nbuiltins.compile(text, 'f', 'single')",
    "of builtins by another name": "import builtins as b\nb.print(text)",
    "from builtins": "from builtins import print as f",
    "getattr of builtins": "import builtins\ngetattr(builtins, 'ev' + 'al')('1')",
    "getattr by string": "getattr(it, 'eval')('1')",
    "getattr of a module": "import math\ngetattr(math, name)(1)",
    "the dictionary of builtins": "__builtins__['print'](1)",
    "vars of builtins": "f = vars(it)['exec']",
    "globals": "globals()[name](1)",
    "of a function's globals": "(lambda: 0).__globals__['x']",
    "of subclasses": "().__class__.__base__.__subclasses__()",
    "of a frame": "import sys\nsys._getframe().f_back.f_globals",
    "of modules": "import sys\nsys.modules['os']",
    "an import by name": "__import__(name)",
    "importlib": "import importlib\nimportlib.import_module(name)",
    "importlib, a part": "from importlib.util import spec_from_loader as f",
    "os.system": "import os\nos.system(text)",
    "os.system, imported": "from os import system as f\nf(text)",
    "os.popen": "import os\nos.popen(text)",
    "os.execv": "import os\nos.execv(path, words)",
    "os.spawn": "import os\nos.spawnlp(0, path)",
    "os.posix_spawn": "import os\nos.posix_spawn(path, words, {})",
    "a shell": "run(text, shell=True)",
    "a shell, perhaps": "run(text, shell=shell)",
    "subprocess": "import subprocess\nsubprocess.run([text])",
    "subprocess, imported": "from subprocess import run",
    "getoutput": "f = sub.getoutput",
    "a shell of asyncio": "import asyncio\nasyncio.create_subprocess_shell(text)",
    "a process of asyncio": "import asyncio\nasyncio.create_subprocess_exec(text)",
    "multiprocessing": "import multiprocessing",
    "pickle": "import pickle\npickle.loads(data)",
    "pickle, imported": "from pickle import loads as f",
    "pickle of another": "torch.serialization.pickle.Unpickler(file)",
    "loads of anything": "it.loads(data)",
    "marshal": "import marshal",
    "shelve": "import shelve",
    "dill": "import dill as json",
    "torch.load": "import torch\ntorch.load(file)",
    "torch.load of anything": "import torch\ntorch.load(file, weights_only=False)",
    "numpy.load": "import numpy as np\nnp.load(file, allow_pickle=True)",
    "annotations": "import inspect\ninspect.get_annotations(it, eval_str=True)",
    "type hints": "import typing\ntyping.get_type_hints(it)",
    "code objects": "import types\ntypes.FunctionType(code, {})",
    "templates": "environment.from_string(text)",
    "templates, imported": "from jinja2 import Template",
    "runpy": "import runpy",
    "code": "from code import interact",
    "ctypes": "import ctypes\nctypes.CDLL(name)",
    "a loader": "spec.loader.exec_module(module)",
    "attrgetter": "from operator import attrgetter",
    "methodcaller": "import operator\noperator.methodcaller(name)(it)",
    "a debugger": "breakpoint()",
    "eval of a module": "import pandas\npandas.eval(text)",
    "sockets": "import socket",
    "fetching": "from urllib.request import urlopen",
    "in a function of a class": "class A:\n  def f(self):\n    return [exec for _ in self]",
    "as a default": "def f(run=eval): ...",
    "as a decorator": "@eval\ndef f(): ...",
    "under a name of torch": "import pandas as pd\npd.eval('1')",
}


@pytest.mark.parametrize("text", PLANTS.values(), ids=PLANTS)
def test_the_scan_finds(text: str) -> None:
    assert findings(text)


@pytest.mark.parametrize(
    "text",
    [
        "layer.eval()",
        "import re\nre.compile(text)",
        "import torch\ntorch.compile(layer)",
        "import ast\nast.literal_eval(text)",
        "def compile(x): ...\ncompile(1)",
        "import json\njson.loads(text)",
        "getattr(value, field.name)",
        "import os\ngetattr(os, 'O_NONBLOCK', 0)",
        "from importlib.metadata import version",
        "from importlib import resources",
        "import torch\ntorch.load(file, weights_only=True)",
        "system = it.name",
        "'the eval of a layer'",
    ],
)
def test_innocent_words_are_not_found(text: str) -> None:
    assert findings(text) == []
