"""What the search in progress has tried, for the message of whoever ends it from outside."""

from __future__ import annotations

_steps: list[str] = []


def begins(step: str) -> None:
    """Declares that what comes now is a step, said as a noun: "a linear invariant"."""
    _steps.append(step)


def tried() -> tuple[str, ...]:
    """Returns the steps begun since the last `clear`, in their order, each once."""
    return tuple(dict.fromkeys(_steps))


def unheard(*known: object) -> None:
    """Takes no note of what a search has found so far: the listener of whoever gives none."""


def clear() -> None:
    """Forgets all steps, so that new work reports none of older work."""
    _steps.clear()
