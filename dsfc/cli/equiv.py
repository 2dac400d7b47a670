"""`dsfc equiv`: whether two mixers are one function."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dsfc.cli.colours import coloured
from dsfc.cli.lift import is_module, lift_options, run, said
from dsfc.cli.options import format_option, sizes_of, timeout_option
from dsfc.cli.process import bounded, clear_line
from dsfc.cli.spec import SpecWord, mixer_of
from dsfc.cli.usage import examples
from dsfc.cli.within import bound_of
from dsfc.cli.within import within as bound_verdict

if TYPE_CHECKING:
    from dsfc.api.pipeline import Compilation
    from dsfc.prover.subsumes import Kinds
    from dsfc.prover.verdict import Refuted

PROVED, REFUTED, UNKNOWN, CONDITIONALLY, AT_SIZES = 0, 4, 5, 6, 7


@click.command(
    cls=examples(
        ("dsfc equiv rwkv5 rwkv6", "proved, refuted by a point, or unknown and why"),
        ("dsfc equiv ssd gla --conditions", "when two mixers are one function"),
        ("dsfc equiv mine.dsf:a mine.dsf:b", "two mixers of one file"),
        ("dsfc equiv a.dsf b.dsf --within 1e-6", "whether outputs differ by no more"),
    ),
    short_help="Decide whether two mixers are the same function.",
)
@click.argument("a", type=SpecWord(), metavar="SPEC[:MIXER]|FILE.py:NAME")
@click.argument("b", type=SpecWord(), metavar="SPEC[:MIXER]|FILE.py:NAME")
@click.option(
    "--map",
    "renamed",
    multiple=True,
    metavar="THEIRS=OURS",
    help="Identify an input or parameter of the second mixer with one of the first; those of equal "
    "names are one anyway.",
)
@click.option(
    "--size",
    "sizes",
    multiple=True,
    metavar="AXIS=SIZE,…",
    help="Compare at these sizes only, such as h=4,n=64.",
)
@click.option(
    "--within",
    metavar="BOUND",
    help="Ask instead whether no entry of the outputs differs by more than this, such as 1e-6.",
)
@click.option(
    "--for",
    "domain",
    default="",
    metavar="BOUNDS",
    help='With --within: where inputs and parameters lie, such as "abs(u) <= 2, L <= 4096".',
)
@click.option(
    "--conditions",
    is_flag=True,
    help="If they are not equal in general, search for conditions under which they are.",
)
@click.option(
    "--explain",
    is_flag=True,
    help="Print also the statement, the rows of the invariant and what shows each further verdict.",
)
@click.option(
    "--certificate",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the certificate to a new file, for `dsfc check-proof`.",
)
@click.option(
    "--case-certificate",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the certificate that the first is, or is not, a case of the second to a new file.",
)
@click.option(
    "--replay",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a refutation to a new file, as a program that needs Python alone.",
)
@timeout_option
@lift_options
@format_option("the verdict")
@click.pass_context
def equiv(
    ctx: click.Context,
    a: str,
    b: str,
    renamed: tuple[str, ...],
    sizes: tuple[str, ...],
    within: str | None,
    domain: str,
    conditions: bool,
    explain: bool,
    certificate: Path | None,
    case_certificate: Path | None,
    replay: Path | None,
    arguments: tuple[str, ...],
    inputs: tuple[str, ...],
    form: str,
) -> None:
    """Decide whether two mixers give equal outputs for equal inputs and equal parameters.

    The first line is the verdict: proved, refuted or unknown. A proof holds for every length, all
    inputs, all values of the parameters and all sizes of the axes, wherever both outputs have
    values; the trusted kernel accepted it. A refutation is a point at which both definitions were
    executed with exact arithmetic; it is printed while the lines below it are still computed.
    Unknown names the obstacle. A proof for some sizes of an axis alone says for which: those of
    --size, else those that the specs declare, else small ones; larger ones were tried for a
    refutation. With --conditions, mixers that are not equal in general may be proved equal under
    conditions on parameters, or on values inside both.

    Where equality is not proved, further lines answer other statements. SUB says whether one mixer
    is a case of the other: whatever values its parameters have, some values of the other's give the
    same output. ISO says whether each is a case of the other. --explain prints what shows them.

    --within asks another question: whether no entry of the outputs differs by more than a bound,
    for all inputs, parameters and lengths that --for allows, at the sizes of --size and those
    declared. A proof is a chain of inequalities, a refutation a point of the domain.

    FILE.py:NAME is a PyTorch module, which is lifted into a spec first, as `dsfc lift` does. That
    imports the file and so RUNS it; a spec is never run. The verdict is about the lifted spec; that
    the spec is the module is tested, not proved.

    If time is up before all was examined, the verdict is what was decided until then, and the last
    line says what was not examined.

    Exit codes: 0 proved for all sizes; 4 refuted; 5 unknown; 6 proved under conditions, or where
    both outputs have values while somewhere only one has; 7 proved for some sizes alone; 1 mistakes
    in a spec.
    """
    pairs = tuple(pair(word) for word in renamed)
    asked = sizes_of(sizes)
    bound = None if within is None else bound_of(within)
    if bound is None and domain:
        raise click.UsageError("--for belongs to --within")
    if bound is not None and (conditions or case_certificate or replay):
        raise click.UsageError("--within goes with --for, --map, --size, --explain, --certificate")
    if (arguments or inputs) and not (is_module(a) or is_module(b)):
        raise click.UsageError("--arg and --input are for FILE.py:NAME")
    for path in (certificate, case_certificate, replay):
        if path is not None and os.path.lexists(path):
            raise click.UsageError(f"{path} exists already")
    modules = {word: lifted(word, arguments, inputs) for word in (a, b) if is_module(word)}
    asking = Asking(form, explain, conditions, (certificate, case_certificate, replay))
    known: list[Callable[[], int]] = []

    def heard(kinds: Kinds, *answers: str) -> None:
        known.append(lambda: asking.answered(kinds, *answers))
        asking.tell_refuted(kinds, *answers)

    def salvage() -> int | None:
        return known[-1]() if known else None

    with bounded(f"compare {a} and {b}", salvage=salvage):
        from dsfc import current_span
        from dsfc.api.decide import equivalent
        from dsfc.prover.sizes import check_given

        first, second = (modules[w] if w in modules else mixer_of(w) for w in (a, b))
        if bound is not None:
            names = identified(pairs, first, second)
            code, text = bound_verdict(first, second, bound, domain, names, asked, explain, form)
            if certificate is not None:
                _keep(certificate, text, "nothing is shown")
            ctx.exit(code)
        with current_span.entered(first.mixer.span):
            try:
                check_given(first.system, second.system, asked)
            except ValueError as e:
                raise click.UsageError(f"--size: {e}") from None
            same = identified(pairs, first, second)
            answers = (first.name, second.name)
            kinds = equivalent(
                first, second, same, conditions, asked,
                lambda kinds: heard(kinds, *answers),
            )  # fmt: skip
    ctx.exit(asking.answered(kinds, first.name, second.name))


@dataclass(frozen=True, slots=True)
class Asking:
    """How an answer is to be given.

    Attributes:
        form: of what is printed.
        explain: whether the rows of a proof are.
        conditions: whether conditions were asked for.
        files: where to write the certificate, that of the case, and the replay.
        told: the refutation, once it is printed.
    """

    form: str
    explain: bool
    conditions: bool
    files: tuple[Path | None, Path | None, Path | None]
    told: list[Refuted] = field(default_factory=list)

    def tell_refuted(self, kinds: Kinds, first: str, second: str) -> None:
        """Prints a refutation while cases are still looked for, which takes longer."""
        from dsfc.prover.verdict import Refuted

        final = self.form == "human" and not self.conditions
        if final and isinstance(kinds.equal, Refuted) and not self.told:
            self.told.append(kinds.equal)
            self._say(kinds, first, second)

    def _say(self, kinds: Kinds, first: str, second: str) -> None:
        """Prints the verdict on equality for people."""
        from dsfc.prover.condition_rules import layers
        from dsfc.prover.report import report

        said = layers(kinds)
        text = report(kinds.equal, first, second, self.explain, self.conditions, said)
        clear_line()
        click.echo(coloured(text), nl=False)
        sys.stdout.flush()

    def answered(self, kinds: Kinds, first: str, second: str) -> int:
        """Prints and writes an answer about two mixers; returns the exit code."""
        from dsfc.prover.report import as_json
        from dsfc.prover.subsumes_report import kinds_json, kinds_report
        from dsfc.prover.verdict import (
            AtSizes,
            Conditionally,
            Proved,
            ProvedWhereDefined,
            Refuted,
        )

        verdict = kinds.equal
        if self.form == "json":
            import json

            document = as_json(verdict) | kinds_json(kinds)
            click.echo(json.dumps(document, ensure_ascii=False, indent=2))
        else:
            if not self.told:
                self._say(kinds, first, second)
            cases = kinds_report(kinds, first, second)
            click.echo(coloured(cases if self.explain else _headlines(cases)), nl=False)
        self._write(kinds, first, second)
        codes = {Proved: PROVED, Refuted: REFUTED, Conditionally: CONDITIONALLY,
                 ProvedWhereDefined: CONDITIONALLY, AtSizes: AT_SIZES}  # fmt: skip
        return codes.get(type(verdict), UNKNOWN)

    def _write(self, kinds: Kinds, first: str, second: str) -> None:
        from dsfc.prover.replay import script
        from dsfc.prover.verdict import Conditionally, Instance, NotAnInstance, Refuted, Unknown
        from dsfc.trusted.check import write
        from dsfc.trusted.entries import Obstacle

        verdict, (certificate, case_certificate, replay) = kinds.equal, self.files
        if certificate is not None:
            text = None if isinstance(verdict, Unknown) else write(verdict.certificate)
            _keep(certificate, text, "nothing is shown")
        if case_certificate is not None:
            case = kinds.forth if isinstance(kinds.forth, Instance | NotAnInstance) else None
            text = None if case is None else write(case.certificate)
            _keep(case_certificate, text, "nothing is shown of cases beside the verdict")
        refuted = verdict.otherwise if isinstance(verdict, Conditionally) else verdict
        if replay is not None:
            try:
                text = None
                if isinstance(refuted, Refuted):
                    text = script(refuted, first, second)
                _keep(replay, text, "there is no point to run")
            except Obstacle as e:
                _keep(replay, None, str(e))


def _headlines(report: str) -> str:
    """The lines of a report that state verdicts and their sizes, and where the others are."""
    lines = report.splitlines()
    kept = [line for line in lines if not line.startswith(" ") or line.startswith("  sizes ")]
    more = len(kept) < len(lines)
    return "".join(f"{line}\n" for line in (*kept, *["--explain prints what shows this"] * more))


def pair(word: str) -> tuple[str, str]:
    """The names that `THEIRS=OURS` identifies."""
    theirs, equals, ours = word.partition("=")
    if not theirs or not equals or not ours:
        raise click.UsageError(f"--map wants THEIRS=OURS, not {word}")
    return theirs, ours


def identified(
    pairs: tuple[tuple[str, str], ...], first: Compilation, second: Compilation
) -> tuple[tuple[str, str], ...]:
    """The names that `--map` identifies, in ASCII; an error where a mixer has no such name."""
    from dsfc.syntax.letters import fold

    names = tuple((fold(theirs), fold(ours)) for theirs, ours in pairs)
    for name, owner in (side for each in names for side in zip(each, (second, first), strict=True)):
        system = owner.system
        known = [t.name for t in (*system.inputs, *system.params, *system.buffers)]
        if name not in known:
            has = ", ".join(known)
            raise click.UsageError(
                f"--map: {owner.name} has no input, parameter or buffer {name}; it has {has}"
            )
    return names


def lifted(word: str, arguments: tuple[str, ...], inputs: tuple[str, ...]) -> Compilation:
    """The module that `file.py:Name` means, as a mixer; what was tested goes to standard error."""
    built = run(word, arguments, inputs)
    click.echo(f"lifted: {word}", err=True)
    for line in said(built):
        click.echo(f"  {line}", err=True)
    return built.compilation


def _keep(path: Path, text: str | None, why: str = "") -> None:
    """Writes a new file and says so, or why there is nothing to write."""
    from dsfc.cli.output import create

    if text is None:
        click.echo(f"not written: {path}: {why}", err=True)
        return
    create(path, text)
    click.echo(f"written: {path}", err=True)
