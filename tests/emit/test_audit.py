"""The audit refuses what an emitted module has no use for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@pytest.mark.parametrize(
    "line",
    [
        "x = getattr(torch.ops, NAME)",
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


def test_no_evaluator_is_on_the_lists() -> None:
    doors = {"eval", "exec", "compile", "open", "setattr", "delattr", "vars", "globals", "locals"}
    assert not doors & BUILTINS
    assert not {"os", "sys", "subprocess", "importlib", "ctypes", "pickle", "builtins"} & IMPORTS


@given(st.text())
def test_any_text_in_a_docstring_is_harmless(text: str) -> None:
    audit(f"def f():\n    {'Says ' + text!r}\n")


def test_a_null_character_is_refused_and_not_a_crash() -> None:
    with pytest.raises(EmissionError, match="does not parse"):
        audit("x = 1\0")
