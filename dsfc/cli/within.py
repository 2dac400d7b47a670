"""`dsfc equiv --within`: whether two outputs differ by no more than a bound."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dsfc.api.pipeline import Compilation
    from dsfc.system.ir import System

PROVED, REFUTED, UNKNOWN = 0, 4, 5


def bound_of(word: str) -> Fraction:
    """Returns a number such as 1e-6 or 1/1000; nothing is evaluated."""
    try:
        short = len(word) <= 40 and abs(int(word.lower().partition("e")[2] or 0)) <= 300
        number = Fraction(word) if short else Fraction(-1)
    except (ValueError, ZeroDivisionError):
        number = Fraction(-1)
    if number < 0:
        raise click.UsageError(f"--within wants a number such as 1e-6, not {word}")
    return number


def within(
    first: Compilation,
    second: Compilation,
    bound: Fraction,
    domain: str,
    names: tuple[tuple[str, str], ...],
    sizes: dict[str, int],
    explain: bool,
    form: str,
) -> tuple[int, str | None]:
    """Prints the verdict, and returns the exit code and the text of the certificate, if any."""
    from dsfc.api.bound import within as decided
    from dsfc.bounds.certificate import write
    from dsfc.bounds.decide import Undecided, Within
    from dsfc.bounds.report import as_json, report
    from dsfc.bounds.witness import Apart

    try:
        verdict = decided(first, second, bound, domain, names, sizes)
    except ValueError as e:
        raise click.UsageError(f"--within: {e}") from None
    if form == "json":
        import json

        click.echo(json.dumps(as_json(verdict), ensure_ascii=False, indent=2))
    else:
        click.echo(report(verdict, first.name, second.name, explain), nl=False)
    match verdict:
        case Within(chain):
            return PROVED, write(chain)
        case Apart():
            return REFUTED, write(verdict)
        case Undecided():
            return UNKNOWN, None


def bound_shown(text: str) -> tuple[str, list[str], tuple[System, System]]:
    """Returns what a certificate of a bound shows, in a line and further ones, and its mixers.

    Raises:
        Rejected: it shows nothing.
    """
    from dsfc.bounds.certificate import check_text
    from dsfc.bounds.report import number
    from dsfc.bounds.witness import Apart

    shown = check_text(text)
    question = shown.question
    sizes = ", ".join(f"{name} = {k}" for name, k in question.sizes)
    lines = [f"  domain     {question.domain.text}", f"  sizes      {sizes}"]
    if question.names:
        reads = ", ".join(f"{theirs} for {ours}" for ours, theirs in question.names)
        lines.insert(0, f"  names      the second reads {reads}")
    if isinstance(shown, Apart):
        said = f"outputs that differ by more than {number(question.within)} at a point"
    else:
        said = f"outputs that differ by no more than {number(shown.bound)}"
    named = f"{question.a.name} and {question.b.name}, {said}"
    return named, lines, (question.a, question.b)
