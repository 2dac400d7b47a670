"""The bounds on the rounding errors of a module, as text and as JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dsfc.rounding.interpret import Hazard, Place
from dsfc.rounding.units import ASSUMED


@dataclass(frozen=True, slots=True)
class Row:
    """One mode in one dtype.

    Attributes:
        mode: the mode.
        dtype: of inputs, parameters and outputs.
        bound: by how much an output is off, at most, on the domain; None where that is unknown.
        size: the largest absolute value of an exact output that is not ruled out.
        seen: the largest error seen on points of the domain.
        points: how many points were run.
        broken: at how many of them an output was infinite or NaN.
        here: what is certified at the worst point seen, for sums in any order.
        as_run: what is certified there of what this machine computed.
        obstacle: why nothing is certified; "" where something is.
        hazards: what may give infinity or NaN.
        safe: by what the bounds of inputs may be multiplied so that nothing may; None where no
            factor was found, or none is needed.
        sources: lines that round, each with the bound that it gives alone, largest first; of the
            mode with the largest bound.
    """

    mode: str
    dtype: str
    bound: float | None = None
    size: float = 0.0
    seen: float = 0.0
    points: int = 0
    broken: int = 0
    here: float | None = None
    as_run: float | None = None
    obstacle: str = ""
    hazards: tuple[Hazard, ...] = ()
    safe: float | None = None
    sources: tuple[tuple[Place, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The bounds of a mixer, in each mode and dtype.

    Attributes:
        mixer: its name.
        domain: the domain, as the user wrote it.
        length: tokens of the sequences.
        sizes: of the axes.
        weights: which values the parameters have that the domain leaves open.
        rows: one for each mode and dtype.
    """

    mixer: str
    domain: str
    length: int
    sizes: tuple[tuple[str, int], ...]
    weights: str
    rows: tuple[Row, ...]

    @property
    def certified(self) -> bool:
        """Whether every row has a finite bound."""
        return all(_finite(row.bound) for row in self.rows)

    def render(self) -> str:
        """Returns the text: a sentence, a table, where errors come from, and what is assumed."""
        sizes = ", ".join(f"{name} = {k}" for name, k in self.sizes)
        lines = [
            self._sentence(),
            f"  domain     {self.domain}",
            f"  sizes      {sizes}",
            f"  parameters {self.weights}",
            "",
            f"  {'mode':<10} {'dtype':<9} {'bound':>9} {'seen':>9} {'ratio':>8} "
            f"{'here':>9} {'as run':>9}",
        ]
        for r in self.rows:
            ratio = "" if not _finite(r.bound) or not r.seen else _short((r.bound or 0) / r.seen)
            lines.append(
                f"  {r.mode:<10} {r.dtype:<9} {_figure(r.bound):>9} {_short(r.seen):>9} {ratio:>8} "
                f"{_figure(r.here):>9} {_figure(r.as_run):>9}".rstrip()
            )
        lines += [
            "",
            "  bound: certified on all of the domain; seen: the largest error of a search; here:"
            " certified at",
            "  the worst inputs seen, for sums in any order; as run: certified there for what this"
            " machine computed.",
        ]
        lines += self._obstacles() + self._hazards() + self._sources()
        return "\n".join([*lines, "  assumed", *(f"    {text}" for text in ASSUMED), ""])

    def _sentence(self) -> str:
        known: dict[str, list[float | None]] = {}
        for r in self.rows:
            known.setdefault(r.dtype, []).append(r.bound)
        parts = [
            f"{_short(max(b for b in bounds if b is not None))} in {dtype}"
            for dtype, bounds in known.items()
            if all(_finite(b) for b in bounds)
        ]
        unknown = [d for d, bounds in known.items() if not all(_finite(b) for b in bounds)]
        start = f"{self.mixer}: no output is off by more than "
        if not parts:
            return f"{self.mixer}: nothing is certified in all modes"
        more = f"; in {' and '.join(unknown)} not in all modes" if unknown else ""
        return start + " and ".join(parts) + f", in any mode below, on {self.length} tokens{more}"

    def _obstacles(self) -> list[str]:
        return [f"  unknown    {r.mode}, {r.dtype}: {r.obstacle}" for r in self.rows if r.obstacle]

    def _hazards(self) -> list[str]:
        out = []
        for r in self.rows:
            for h in r.hazards[:3]:
                largest = "" if math.isinf(h.size) else f" (up to {_short(h.size)})"
                where = f"line {h.place.line}, `{h.place.text}`"
                out.append(f"  warning    {r.mode}, {r.dtype}: {h.kind}{largest} in {where}")
            if r.hazards and r.safe is not None:
                out.append(f"             ruled out with bounds of inputs times {r.safe:g}")
            elif r.hazards:
                out.append("             not ruled out with smaller bounds of inputs either")
            if r.broken:
                out.append(f"             seen at {r.broken} points: an output was not finite")
        return out

    def _sources(self) -> list[str]:
        known = [r for r in self.rows if r.sources and _finite(r.bound)]
        if not known:
            return []
        out = ["  where the bound comes from"]
        for r in known:
            whole = sum(x for _, x in r.sources) or 1.0
            for place, alone in r.sources[:3]:
                if not _finite(alone):
                    continue
                share = f"{100 * alone / whole:.0f} %"
                out.append(f"    {r.mode}, {r.dtype}: {share:>5} {place.text}")
        return out

    def to_json(self) -> dict[str, Any]:
        """Returns the report for tools; what is not finite is null."""
        return {
            "mixer": self.mixer,
            "domain": self.domain,
            "length": self.length,
            "sizes": dict(self.sizes),
            "parameters": self.weights,
            "rows": [_row(r) for r in self.rows],
            "assumed": list(ASSUMED),
        }


def _row(r: Row) -> dict[str, Any]:
    return {
        "mode": r.mode,
        "dtype": r.dtype,
        "bound": _number(r.bound),
        "size": _number(r.size),
        "seen": r.seen,
        "points": r.points,
        "not finite": r.broken,
        "here": _number(r.here),
        "as run": _number(r.as_run),
        "obstacle": r.obstacle,
        "warnings": [
            {"what": h.kind, "line": h.place.line, "text": h.place.text, "size": _number(h.size)}
            for h in r.hazards
        ],
        "safe factor": r.safe,
        "sources": [{"line": p.line, "text": p.text, "alone": _number(x)} for p, x in r.sources],
    }


def _finite(x: float | None) -> bool:
    return x is not None and math.isfinite(x)


def _number(x: float | None) -> float | None:
    return x if _finite(x) else None


def _short(x: float) -> str:
    """A number, rounded upward to two digits."""
    if x == 0 or not math.isfinite(x):
        return "0" if x == 0 else "none"
    exponent = math.floor(math.log10(abs(x)))
    scaled = math.ceil(x / 10.0**exponent * 10 - 1e-9) / 10
    return f"{scaled * 10.0**exponent:.2g}"


def _figure(x: float | None) -> str:
    return "unknown" if x is None else "none" if not math.isfinite(x) else _short(x)
