"""The audit refuses what an emitted module has no use for."""

from __future__ import annotations

import ast

import pytest
from dsfc.backends.shared.section import section
from hypothesis import given
from hypothesis import strategies as st

from dsfc.emit import audit as audit_module
from dsfc.emit.audit import BUILTINS, IMPORTS, EmissionError, audit

MODULE = '''"""A module."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn


class Mixer(nn.Module):
    """__import__("os") in a docstring is only text."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(d))

    def forward(self, u: Tensor) -> Tensor:
        if u.shape[-1] != len(self.w):
            raise ValueError(f"{u.shape[-1]} entries")
        return torch.exp(u * self.w) / math.sqrt(2)
'''


def test_a_plain_module_passes() -> None:
    audit(MODULE)


@pytest.mark.parametrize(
    "line",
    [
        "import os",
        "import torch.hub",
        "import torch, os",
        "from os import system",
        "from . import sibling",
        "from .. import torch",
        "from torch import hub",
        "from torch.utils import cpp_extension",
        "x = eval('1')",
        "x = exec",
        "x = compile('1', 'f', 'eval')",
        "x = open('f')",
        "x = getattr(torch, 'load')",
        "x = getattr(torch, 'lo' + 'ad')",
        "x = getattr(torch, '__dict__')",
        "x = getattr(torch, 'load', None)",
        "x = getattr(torch, a + b, None)",
        "x = getattr(_OPS, a + b)",
        "x = hasattr(torch, '__dict__')",
        "@torch.compile(__mode=1)\ndef f(): pass",
        "class __A: pass",
        "x = '__class__'",
        "async def f():\n    await x",
        "key = '__dict__'\nx = getattr(torch, key)",
        "x = globals()",
        "setattr(torch, 'x', 1)",
        "x = __import__('os')",
        "x = __builtins__",
        "x = ().__class__.__bases__",
        "x = torch.load('f')",
        "x = torch.hub",
        "x = torch.utils.cpp_extension",
        "x = torch.ops.load_library('f')",
        "x = torch._C",
        "x = f'{().__class__}'",
        "def f(__x): pass",
        "def __getattr__(name): pass",
        "async def f(): pass",
        "def f():\n    global x",
        "x = breakpoint()",
        "x = (1",
        "x = '\\ud800' +",
    ],
)
def test_what_is_refused(line: str) -> None:
    with pytest.raises(EmissionError):
        audit(f"{MODULE}\n\n{line}\n")


PLACES = (
    "x = {}", "x = [a for a in b if {}]", "x = {{k: {} for k in b}}", "x = lambda a=({}): a",
    "@({})\ndef f(): pass", "def f(a: {} = 1): pass", "def f(*, a=({})): pass",
    "def f() -> ({}): pass", "class A(metaclass={}): pass", 'x = f"{{a:{{{}}}}}"', "x = a[b:{}]",
    "match a:\n    case 1 if {}: pass", "with {} as a: pass", "try:\n    pass\nexcept {}: pass",
    "while a:\n    pass\nelse:\n    {}", "x = f(*a, **{})", "x = (y := {})", "assert a, {}",
    "del a[{}]", "x: int = {}", "x += {}", "def f():\n    yield from {}", "raise a from {}",
)  # fmt: skip
"""Every kind of place that an expression may stand in."""

REFUSED = ("eval", "torch.hub", "__builtins__", "getattr(torch, 'load')", "hasattr(a, b + 'c')")


@pytest.mark.parametrize("place", PLACES)
def test_an_expression_is_refused_wherever_it_stands(place: str) -> None:
    audit(f"{MODULE}\n{place.format('a')}\n")
    for expression in REFUSED:
        with pytest.raises(EmissionError, match=r"^line \d+ (names|reads|computes)"):
            audit(f"{MODULE}\n{place.format(expression)}\n")


def test_the_walk_leaves_out_nothing_but_loads_and_stores() -> None:
    text = "\n".join((MODULE, *(place.format("a.b(c)") for place in PLACES)))
    tree = ast.parse(text)
    every = [node for node in ast.walk(tree) if not isinstance(node, ast.expr_context)]
    assert list(audit_module._walked(tree)) == every
    assert len(every) > 250


@pytest.mark.parametrize(
    "line",
    [
        "x = getattr(torch.ops, NAME)",
        "x = getattr(_OPS, a + b, None)",
        "x = getattr(torch, 'compile', None)",
        "x = hasattr(torch, 'compile')",
        "def f(*_, **__): pass",
        "x = tl.load(p)",
    ],
)
def test_what_is_let_through(line: str) -> None:
    audit(f"{MODULE}\n\n{line}\n")


def test_the_message_names_the_line() -> None:
    with pytest.raises(EmissionError, match="line 3 names eval"):
        audit("a = 1\nb = 2\nc = eval(a)\n")


@pytest.mark.parametrize("again", ["def f(x):\n    return x\n", "class f:\n    pass\n"])
def test_a_name_that_is_defined_twice_is_refused(again: str) -> None:
    with pytest.raises(EmissionError, match=r"^line 5 defines f again$"):
        audit(f"def f():\n    return 1\n\n\n{again}")


def test_a_name_of_the_runtime_is_not_defined_again() -> None:
    with pytest.raises(EmissionError, match=r"^line 1 defines _fits again$"):
        audit("def _fits():\n    return 1\n", section())


def test_no_evaluator_is_on_the_lists() -> None:
    doors = {"eval", "exec", "compile", "open", "setattr", "delattr", "vars", "globals", "locals"}
    assert not doors & BUILTINS
    assert not {"os", "sys", "subprocess", "importlib", "ctypes", "pickle", "builtins"} & IMPORTS


@pytest.mark.ci
@given(st.text())
def test_any_text_in_a_docstring_is_harmless(text: str) -> None:
    audit(f"def f():\n    {'Says ' + text!r}\n")


def test_a_null_character_is_refused_and_not_a_crash() -> None:
    with pytest.raises(EmissionError, match="does not parse"):
        audit("x = 1\0")
