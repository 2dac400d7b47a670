"""`dsfc check-proof`: the independent checker of certificates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dsfc.cli.options import mistakes_option
from dsfc.cli.process import bounded
from dsfc.cli.spec import SpecWord

if TYPE_CHECKING:
    from dsfc.check_proof.schema import OtherFormat
    from dsfc.diagnostics.report import DiagnosticError

ACCEPTED, REJECTED = 0, 1


@click.command("check-proof", short_help="Check a certificate of `dsfc equiv`.")
@click.argument("certificate", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("specs", nargs=-1, type=SpecWord(), metavar="[SPEC[:MIXER] SPEC[:MIXER]]")
@mistakes_option
@click.pass_context
def check_proof(ctx: click.Context, certificate: Path, specs: tuple[str, ...]) -> None:
    """Check a certificate with a checker that shares nothing with the prover.

    It writes both systems of the claim out again, recomputes every multiplier of an invariant and
    executes every witness. Given the two specs, it also derives their systems again and compares
    them with those of the claim; without, it is the systems in the certificate that are spoken of.
    Exit code 1 if the certificate is rejected.
    """
    if len(specs) not in (0, 2):
        raise click.UsageError("give both specs, or none")
    with bounded(f"check {certificate}"):
        from dsfc import files
        from dsfc.check_proof.check import check, read
        from dsfc.check_proof.claim import ConstantWord, Words
        from dsfc.check_proof.rejected import Rejected
        from dsfc.check_proof.schema import OtherFormat
        from dsfc.cli.equiv import mixer
        from dsfc.diagnostics.file_error import file_error
        from dsfc.proof.report import reach
        from dsfc.proof.within_report import no_case_sizes

        try:
            text = files.read(certificate).decode()
        except OSError as e:
            raise file_error(certificate, e) from None
        except UnicodeDecodeError:
            raise click.UsageError(f"{certificate} is not text") from None
        try:
            claim = check(text).claim
            for word, system in zip(specs, (claim.a, claim.b), strict=bool(specs)):
                if mixer(word).system != system:
                    raise Rejected(f"the system of the claim is not that of {word}")
        except OtherFormat as e:
            raise _other_format(certificate, e) from None
        except Rejected as e:
            click.echo(f"rejected: {e}")
            ctx.exit(REJECTED)
    shown = read(text)
    if isinstance(shown.proof, ConstantWord | Words):
        said = f"{claim.a.name} is no case of {claim.b.name}, for no parameters of it"
        if claim.locality is not None:
            said += f", its own inputs functions of the token and {claim.locality} before it"
        click.echo(f"accepted: {said}, at {no_case_sizes(shown)}")
        ctx.exit(ACCEPTED)
    kind = "equal outputs" if claim.equal else "different outputs"
    if claim.conditions:
        kind += f" under {len(claim.conditions)} conditions"
        kind += ", the first a case of the second" if claim.case else ""
    click.echo(f"accepted: {claim.a.name} and {claim.b.name}, {kind}, {reach(claim)}")
    ctx.exit(ACCEPTED)


def _other_format(certificate: Path, e: OtherFormat) -> DiagnosticError:
    from dsfc.diagnostics.catalogue import CertificateFormat
    from dsfc.diagnostics.report import DiagnosticError
    from dsfc.source import NOWHERE

    problem = CertificateFormat(NOWHERE, path=str(certificate), form=e.found, wanted=e.wanted)
    return DiagnosticError((problem,))
