"""What a transform did, beside the System it returns."""

from __future__ import annotations

from dataclasses import dataclass

from dsfc.system.ir import Step


@dataclass(frozen=True, slots=True)
class Record:
    """The account of a transform.

    Attributes:
        rule: name of the transform.
        steps: what was done, in order.
        names: pairs (name before, name after): of states and streams the transform replaced.
    """

    rule: str
    steps: tuple[Step, ...] = ()
    names: tuple[tuple[str, str], ...] = ()

    def renamed(self, name: str) -> str | None:
        """Returns what a name became, None when it has no counterpart."""
        return dict(self.names).get(name)
