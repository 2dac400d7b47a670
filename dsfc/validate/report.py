"""What a run of the checks found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Outcome(Enum):
    """What became of one check."""

    KEPT = "kept"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Row:
    """One check.

    Attributes:
        name: of the check, such as `gradcheck`.
        promise: what the module promises, one line.
        outcome: whether the promise is kept.
        figure: what was measured, such as `largest relative error 3.1e-15`; where broken, what is
            wrong.
        seconds: how long the check took, in seconds of the clock.
    """

    name: str
    promise: str
    outcome: Outcome
    figure: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Report:
    """All checks of one module.

    Attributes:
        mixer: its name.
        namespace: of its operators, which tells versions apart.
        sizes: of the axes it was run with.
        rows: in the order they ran.
    """

    mixer: str
    namespace: str
    sizes: Mapping[str, int]
    rows: tuple[Row, ...] = field(default=())

    @property
    def kept(self) -> bool:
        """Whether every promise is kept."""
        return all(row.outcome is Outcome.KEPT for row in self.rows)

    @property
    def broken(self) -> tuple[Row, ...]:
        """The rows of promises that are not kept."""
        return tuple(row for row in self.rows if row.outcome is Outcome.BROKEN)

    @property
    def seconds(self) -> float:
        """How long all checks took, in seconds of the clock."""
        return sum(row.seconds for row in self.rows)

    def render(self) -> str:
        """Returns the report as text: a line per check, two where broken, and one that sums up."""
        width = max((len(row.name) for row in self.rows), default=0)
        axes = ", ".join(f"{axis} = {size}" for axis, size in self.sizes.items())
        lines = [f"{self.mixer} ({self.namespace}), {axes}"]
        for row in self.rows:
            start = f"  {row.outcome.value:6}  {row.name:{width}}  {row.seconds:6.1f} s  "
            lines.append(f"{start}{row.figure or row.promise}")
            if row.outcome is Outcome.BROKEN:
                lines.append(f"{'':{len(start)}}promised: {row.promise}")
        kept = len(self.rows) - len(self.broken)
        lines.append(f"{kept} of {len(self.rows)} promises kept, {self.seconds:.0f} s{self._most}")
        return "\n".join(lines) + "\n"

    @property
    def _most(self) -> str:
        """What takes most of the time: the fewest checks that together take half of it."""
        longest = sorted(self.rows, key=lambda row: -row.seconds)
        named: list[str] = []
        left = self.seconds / 2
        for row in longest:
            if left <= 0:
                break
            named.append(f"{row.name} {row.seconds:.1f} s")
            left -= row.seconds
        return f", half of it in {', '.join(named)}" if named else ""

    def to_json(self) -> dict[str, Any]:
        """Returns the report as plain JSON values."""
        return {
            "mixer": self.mixer,
            "namespace": self.namespace,
            "sizes": dict(self.sizes),
            "kept": self.kept,
            "rows": [
                {
                    "name": row.name,
                    "promise": row.promise,
                    "outcome": row.outcome.value,
                    "figure": row.figure,
                    "seconds": round(row.seconds, 3),
                }
                for row in self.rows
            ],
        }
