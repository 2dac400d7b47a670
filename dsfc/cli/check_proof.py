"""`dsfc check-proof`: checks certificates by the trusted kernel."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dsfc.cli.colours import coloured
from dsfc.cli.options import mistakes_option
from dsfc.cli.process import bounded
from dsfc.cli.spec import SpecWord

if TYPE_CHECKING:
    from dsfc.diagnostics.report import DiagnosticError
    from dsfc.trusted.claim import Certificate
    from dsfc.trusted.schema import OtherFormat

ACCEPTED, REJECTED = 0, 1


@click.command("check-proof", short_help="Check a certificate of `dsfc equiv`.")
@click.argument("certificate", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("specs", nargs=-1, type=SpecWord(), metavar="[SPEC[:MIXER] SPEC[:MIXER]]")
@click.option(
    "--lean",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the identities of an accepted proof by rows to a new file, as Lean 4 with Mathlib.",
)
@mistakes_option
@click.pass_context
def check_proof(
    ctx: click.Context, certificate: Path, specs: tuple[str, ...], lean: Path | None
) -> None:
    """Check a certificate with the trusted kernel, which imports no part of the prover.

    Derives both systems of the claim again from the definitions beside them, writes them out,
    recomputes every multiplier of an invariant and executes every witness. Prints what was shown,
    with its names, conditions and sizes. Given the two specs, also compares them with the
    definitions in the certificate; without them, the names of the mixers mean nothing.
    With --lean, writes a proof by rows as theorems of Lean 4, whose proofs are identities of
    polynomials. Exit code 1 if the certificate is rejected.
    """
    if len(specs) not in (0, 2):
        raise click.UsageError("give both specs, or none")
    if lean is not None and os.path.lexists(lean):
        raise click.UsageError(f"{lean} exists already")
    with bounded(f"check {certificate}"):
        from dsfc import files
        from dsfc.bounds.certificate import is_bound
        from dsfc.cli.spec import mixer_of
        from dsfc.cli.within import bound_shown
        from dsfc.diagnostics.file_error import file_error
        from dsfc.prover.report import reach
        from dsfc.prover.report import shown as lines_of
        from dsfc.prover.subsumes_report import no_case_sizes
        from dsfc.trusted.check import SIZE_LIMIT, check, read
        from dsfc.trusted.claim import Conditional, ConstantSequence, SeparatingSequences
        from dsfc.trusted.rejected import Rejected
        from dsfc.trusted.schema import OtherFormat

        try:
            data = files.read(certificate, SIZE_LIMIT + 1)
            if len(data) > SIZE_LIMIT:
                raise _too_large(certificate, SIZE_LIMIT)
            text = data.decode()
        except OSError as e:
            raise file_error(certificate, e) from None
        except UnicodeDecodeError:
            raise click.UsageError(f"{certificate} is not text") from None
        try:
            if is_bound(text):
                said, lines, systems = bound_shown(text)
                for word, system in zip(specs, systems, strict=bool(specs)):
                    if mixer_of(word).system != system:
                        raise Rejected(f"the system of the claim is not that of {word}")
                _say(said, lines, specs)
                if lean is not None:
                    click.echo(f"not written: {lean}: it is a bound", err=True)
                ctx.exit(ACCEPTED)
            accepted = check(text)
            claim = accepted.claim
            for word, system in zip(specs, (claim.a, claim.b), strict=bool(specs)):
                if mixer_of(word).system != system:
                    raise Rejected(f"the system of the claim is not that of {word}")
        except OtherFormat as e:
            raise _other_format(certificate, e) from None
        except Rejected as e:
            click.echo(coloured(f"rejected: {e}"))
            ctx.exit(REJECTED)
    shown = read(text)
    if lean is not None:
        _write_lean(lean, shown)
    if isinstance(shown.proof, ConstantSequence | SeparatingSequences):
        said = f"{claim.a.name} is no case of {claim.b.name}, for no parameters of it"
        if claim.locality is not None:
            said += f", its own inputs functions of the token and {claim.locality} before it"
        _say(f"{said}, at {no_case_sizes(shown)}", lines_of(accepted), specs)
        ctx.exit(ACCEPTED)
    kind = "equal outputs" if claim.equal else "different outputs"
    if claim.conditions:
        kind += f" under {len(claim.conditions)} conditions"
    if claim.assumed:
        kind += " where something is assumed"
    if claim.case:
        kind += ", the first a case of the second"
    parts = (f"{claim.a.name} and {claim.b.name}", kind, reach(claim))
    said = ", ".join(part for part in parts if part)
    lines = lines_of(accepted)
    if isinstance(shown.proof, Conditional) and shown.proof.forced:
        what = f"{len(shown.proof.forced)} of the conditions follow from equal outputs"
        varied = ", ".join(name.rpartition(":")[2] for name in shown.proof.varied)
        lines += [f"  forced     {what} for all {varied}, given the others"]
    _say(said, lines, specs)
    ctx.exit(ACCEPTED)


def _write_lean(path: Path, certificate: Certificate) -> None:
    """Writes the identities of a proof to a new file, or says why there are none."""
    from dsfc.cli.output import create
    from dsfc.lean import NotWritten, lean_text

    try:
        create(path, lean_text(certificate))
    except NotWritten as e:
        click.echo(f"not written: {path}: {e}", err=True)
        return
    click.echo(f"written: {path}", err=True)


def _say(said: str, lines: list[str], specs: tuple[str, ...]) -> None:
    """Prints what was shown, and of what."""
    click.echo(coloured(f"accepted: {said}"))
    for line in lines:
        click.echo(line)
    of = f"{' and '.join(specs)}" if specs else "named as in the certificate; give both to compare"
    click.echo(f"  specs      {of}")


def _other_format(certificate: Path, e: OtherFormat) -> DiagnosticError:
    from dsfc.diagnostics.catalogue import CertificateFormat
    from dsfc.diagnostics.report import DiagnosticError
    from dsfc.source import NOWHERE

    problem = CertificateFormat(NOWHERE, path=str(certificate), form=e.found, wanted=e.wanted)
    return DiagnosticError((problem,))


def _too_large(certificate: Path, bound: int) -> DiagnosticError:
    from dsfc.diagnostics.catalogue import Limit
    from dsfc.diagnostics.report import DiagnosticError
    from dsfc.source import Source

    what = "bytes of the certificate"
    nowhere = Source(str(certificate), "").span()
    return DiagnosticError([Limit(nowhere, what=what, size="more", bound=str(bound))])
