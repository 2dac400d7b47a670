"""All codes: one class each, whose docstring is its page.

A page says what the code means and has two specs, one that raises it and one that does not, in
fenced blocks
`dsf wrong` and `dsf right`; tests run them. The classes stand in one module per theme and are used
from here.
"""

from __future__ import annotations

import inspect
import re
from types import MappingProxyType

from dsfc.diagnostics.claim_codes import ClaimForm, ClaimNote, ClaimOpen, ClaimRefuted
from dsfc.diagnostics.declaration_codes import (
    AxisTwice,
    Constant,
    Declaration,
    Initialiser,
    NoOutput,
    Size,
    Stalled,
    UnknownAxis,
)
from dsfc.diagnostics.name_codes import (
    Arguments,
    BadUse,
    Base,
    Capture,
    ComplexValue,
    NameClash,
    Order,
    Timeless,
    UnknownName,
    Unread,
)
from dsfc.diagnostics.report import Diagnostic
from dsfc.diagnostics.shape_codes import (
    Juxtaposition,
    ShapeAdd,
    ShapeDiv,
    ShapeDot,
    ShapeMap,
    ShapeMul,
    ShapeOuter,
    ShapeState,
    ShapeSum,
    WideOutput,
)
from dsfc.diagnostics.syntax_codes import BadPaper, Character, Keyword, Limit, SyntaxProblem
from dsfc.diagnostics.time_codes import (
    CacheNote,
    FlowRule,
    Future,
    IdleIndex,
    Lag,
    LagPower,
    MaxPlus,
    NonlinearState,
    NoUpdate,
    Recursion,
    StateNow,
)
from dsfc.diagnostics.tool_codes import (
    CertificateFormat,
    Conversion,
    FileProblem,
    LayoutProblem,
    NoExport,
    NoLayer,
    NoReport,
    NoStep,
    NoTensorParallel,
    NotLifted,
    Overwrite,
    RecurrentOnly,
    UnknownBackend,
    Unsupported,
    WhichMixer,
)

_CLASSES: tuple[type[Diagnostic], ...] = (
    SyntaxProblem, Character, Keyword, Limit, BadPaper,
    UnknownAxis, AxisTwice, NameClash, UnknownName, Base, Size, Order, Capture, Timeless, BadUse,
    Arguments, ComplexValue, Unread, Declaration, Initialiser, Constant, NoOutput, Stalled,
    ShapeAdd, ShapeMul, ShapeOuter, ShapeDot, ShapeMap, Juxtaposition, ShapeSum, ShapeDiv,
    ShapeState, WideOutput, Recursion, StateNow, Future, Lag, NoUpdate, NonlinearState, MaxPlus,
    LagPower, FlowRule, CacheNote, IdleIndex, ClaimForm, ClaimRefuted, ClaimNote, ClaimOpen,
    Unsupported, RecurrentOnly, NoStep, FileProblem, Overwrite, UnknownBackend, WhichMixer,
    Conversion, LayoutProblem, CertificateFormat, NotLifted, NoReport, NoLayer, NoTensorParallel,
    NoExport,
)  # fmt: skip

CODES: MappingProxyType[str, type[Diagnostic]] = MappingProxyType(
    {cls.code: cls for cls in _CLASSES}
)
"""Code to class, by theme."""

_BLOCK = re.compile(r"^```(dsf|console) (wrong|right)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def explain(code: str) -> str:
    """The page of a code: meaning, a spec that raises it, the same spec put right.

    Args:
        code: such as `E-SHAPE-ADD`; case does not matter.

    Raises:
        KeyError: if there is no such code.
    """
    diagnostic_class = CODES[code.upper()]
    return f"{diagnostic_class.code}: {inspect.getdoc(diagnostic_class)}"


def examples(code: str, language: str = "dsf") -> tuple[str, str] | None:
    """Returns what raises a code and the same put right, as its page has it; None if it has not.

    Args:
        code: such as `E-SHAPE-ADD`; case does not matter.
        language: "dsf" for specs, "console" for the commands of the codes that are about no spec.
    """
    blocks = {
        which: text for form, which, text in _BLOCK.findall(explain(code)) if form == language
    }
    return (blocks["wrong"], blocks["right"]) if blocks else None


__all__ = [
    "CODES",
    "Arguments",
    "AxisTwice",
    "BadPaper",
    "BadUse",
    "Base",
    "CacheNote",
    "Capture",
    "CertificateFormat",
    "Character",
    "ClaimForm",
    "ClaimNote",
    "ClaimOpen",
    "ClaimRefuted",
    "ComplexValue",
    "Constant",
    "Conversion",
    "Declaration",
    "FileProblem",
    "FlowRule",
    "Future",
    "IdleIndex",
    "Initialiser",
    "Juxtaposition",
    "Keyword",
    "Lag",
    "LagPower",
    "LayoutProblem",
    "Limit",
    "MaxPlus",
    "NameClash",
    "NoExport",
    "NoLayer",
    "NoOutput",
    "NoReport",
    "NoStep",
    "NoTensorParallel",
    "NoUpdate",
    "NonlinearState",
    "NotLifted",
    "Order",
    "Overwrite",
    "RecurrentOnly",
    "Recursion",
    "ShapeAdd",
    "ShapeDiv",
    "ShapeDot",
    "ShapeMap",
    "ShapeMul",
    "ShapeOuter",
    "ShapeState",
    "ShapeSum",
    "Size",
    "Stalled",
    "StateNow",
    "SyntaxProblem",
    "Timeless",
    "UnknownAxis",
    "UnknownBackend",
    "UnknownName",
    "Unread",
    "Unsupported",
    "WhichMixer",
    "WideOutput",
    "examples",
    "explain",
]
