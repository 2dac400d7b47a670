"""No attribute that a layer has anyway is free for a spec's names."""

from __future__ import annotations

import ast

import torch
from dsfc.backends.shared.section import section
from dsfc.backends.torch.imports import imports
from dsfc.backends.torch.reserved_names import RESERVED


def test_attributes_of_every_layer_are_reserved() -> None:
    assert {name for name in dir(torch.nn.Module()) if not name.startswith("_")} <= RESERVED


def test_names_that_imports_bind_are_reserved() -> None:
    named = section().named | {"functools", "partial", "threading", "warnings"}
    tree = ast.parse("\n".join(imports(named, ())))
    bound = {a.asname or a.name for n in ast.walk(tree) for a in getattr(n, "names", ())}
    assert {"partial", "functools", "Iterator", "F"} <= bound <= RESERVED
