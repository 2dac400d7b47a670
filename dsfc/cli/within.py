"""`dsfc equiv --within`: whether two outputs differ by no more than a bound."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dsfc.api.pipeline import Compilation

PROVED, REFUTED, UNKNOWN = 0, 4, 5


class BoundWord(click.ParamType[Fraction]):
    """A positive number such as 1e-6 or 1/1000."""

    name = "bound"

    def convert(
        self, value: str | Fraction, param: click.Parameter | None, ctx: click.Context | None
    ) -> Fraction:
        """Reads the number; nothing is evaluated."""
        if isinstance(value, Fraction):
            return value
        try:
            short = len(value) <= 40 and abs(int(value.lower().partition("e")[2] or 0)) <= 300
            number = Fraction(value) if short else Fraction(-1)
        except (ValueError, ZeroDivisionError):
            number = Fraction(-1)
        if number < 0:
            self.fail(f"{value} is no number such as 1e-6", param, ctx)
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


def bound_shown(text: str, specs: tuple[str, ...]) -> tuple[str, list[str]]:
    """Returns what a certificate of a bound shows, in a line and further ones.

    Raises:
        Rejected: it shows nothing, or its mixers are not those of the specs.
    """
    from dsfc.bounds.certificate import check_text
    from dsfc.bounds.report import number
    from dsfc.bounds.witness import Apart
    from dsfc.cli.equiv import mixer
    from dsfc.trusted.rejected import Rejected

    shown = check_text(text)
    question = shown.question
    for word, system in zip(specs, (question.a, question.b), strict=bool(specs)):
        if mixer(word).system != system:
            raise Rejected(f"the system of the claim is not that of {word}")
    sizes = ", ".join(f"{name} = {k}" for name, k in question.sizes)
    lines = [f"  domain     {question.domain.text}", f"  sizes      {sizes}"]
    said = f"{question.a.name} and {question.b.name}, outputs that differ by "
    if isinstance(shown, Apart):
        return f"{said}more than {number(question.within)} at a point", lines
    return f"{said}no more than {number(shown.bound)}", lines
