"""The version of certificates: it changes with every type that a certificate can hold.

A certificate is read by the annotations of the values it holds. What a field that is new or gone
would mean in an older document nobody says, so no older document is read: its proof can be found
again. The number is raised by hand where the meaning of a field changes and its type does not, such
as the names of generators; the rest is computed from the types.
"""

from __future__ import annotations

import dataclasses
import re
from enum import Enum
from functools import cache
from hashlib import blake2b
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from dsfc.expr import over_time, tree
from dsfc.expr.tree import Expr
from dsfc.source import Span
from dsfc.trusted.claim import Certificate
from dsfc.trusted.rejected import Rejected

MEANING = 4
"""Raised where the meaning of a field changes and its type does not."""

_FORMAT = re.compile(r"dsfc-proof/(\d+)(\.[0-9a-f]{8})?")


class OtherFormat(Rejected):
    """The certificate is of another version of dsfc.

    Attributes:
        found: its format.
        wanted: the format that is read.
    """

    def __init__(self, form_found: str) -> None:
        """Says both."""
        self.found, self.wanted = form_found, form()
        super().__init__(f"the format is {form_found}, and {self.wanted} is read")


@cache
def form() -> str:
    """Returns the format of certificates: "dsfc-proof/4.", and a digest of the types."""
    lines = "\n".join(_lines())
    return f"dsfc-proof/{MEANING}.{blake2b(lines.encode(), digest_size=4).hexdigest()}"


def check_form(form_found: object) -> None:
    """Checks the format of a document.

    Raises:
        OtherFormat: it is one of certificates, and another.
        Rejected: it is none of certificates.
    """
    if form_found == form():
        return
    if isinstance(form_found, str) and _FORMAT.fullmatch(form_found):
        raise OtherFormat(form_found)
    raise Rejected(f"the format is not {form()}")


def _lines() -> list[str]:
    """One line for each type that can be reached, in the order of their names."""
    nodes = [c for module in (tree, over_time) for c in vars(module).values()
             if isinstance(c, type) and issubclass(c, Expr) and c is not Expr]  # fmt: skip
    waiting: list[type] = [Certificate, *nodes]
    lines: dict[str, str] = {}
    while waiting:
        cls = waiting.pop()
        name = cls.__name__
        if name in lines:
            continue
        if issubclass(cls, Enum):
            lines[name] = f"{name}: {' '.join(cls.__members__)}"
            continue
        hints = _written(cls)
        lines[name] = f"{name}: {' '.join(f'{n}={_text(h)}' for n, h in hints.items())}"
        waiting += [c for hint in hints.values() for c in _classes(hint)]
    return [lines[name] for name in sorted(lines)]


def _written(cls: Any) -> dict[str, Any]:  # noqa: ANN401 - a dataclass
    """The fields of a dataclass that stand in a document, with their annotations."""
    if not dataclasses.is_dataclass(cls):
        return {}
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls)
            if f.init and hints[f.name] != Span | None}  # fmt: skip


def _classes(hint: Any) -> list[type]:  # noqa: ANN401 - an annotation
    """The classes that an annotation names."""
    if args := get_args(hint):
        return [c for a in args for c in _classes(a)]
    return [hint] if isinstance(hint, type) else []


def _text(hint: Any) -> str:  # noqa: ANN401 - an annotation
    """An annotation, by names of classes alone."""
    args = get_args(hint)
    if not args:
        return hint.__name__ if isinstance(hint, type) else repr(hint)
    origin: Any = get_origin(hint)
    head = "one" if origin in (Union, UnionType) else origin.__name__
    return f"{head}[{','.join(map(_text, args))}]"
