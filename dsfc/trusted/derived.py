"""Whether a system is what its definition says.

Rules look at the derived form, at the definition, or at both, and a claim is about mixers, which
are definitions. In a certificate the two stand side by side and could be two mixers. So, whatever
the rule, the definition is derived again, and the derived form must be the one that comes out. Its
redundant parts are compared too, such as a decay, which repeats what a chain says.
"""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from typing import Any

from dsfc.derive.again import derived_again
from dsfc.expr.tree import Expr
from dsfc.system.ir import FREE, Coupling, System
from dsfc.trusted.claim import Claim
from dsfc.trusted.rejected import Rejected

_NOT_DEFINED = frozenset(("provenance", "span", "flow"))
"""Parts of a derived form that a definition does not hold, and that no rule reads."""


def check_derived(claim: Claim) -> None:
    """Checks that the derived forms of a claim are those of its definitions.

    Raises:
        Rejected: one is not.
        ValueError, LookupError: a system is malformed.
    """
    for system in (claim.a, claim.b):
        if not _is_derived(system):
            raise Rejected(f"the derived form of {system.name} is not that of its definition")


@lru_cache(maxsize=64)
def _is_derived(system: System) -> bool:
    again = derived_again(system)
    return again is not None and _form(again) == _form(system)


def derived_form(system: System) -> System | None:
    """Returns a system that is derived from the definition of one; None where there is none."""
    return derived_again(system)


def _form(system: System) -> object:
    """The parts of a derived form that a definition says."""
    parts = (system.axes, system.streams, system.stages, system.outputs, system.definition)
    return _plain(parts)


def _plain(value: Any) -> Any:  # noqa: ANN401 - any part of a system
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, Coupling):
        return FREE  # how a key depends on a decay is read off a flow
    if isinstance(value, Expr | type) or not dataclasses.is_dataclass(value):
        return value
    names = (f.name for f in dataclasses.fields(value) if f.name not in _NOT_DEFINED)
    return (type(value), *(_plain(getattr(value, n)) for n in names))
