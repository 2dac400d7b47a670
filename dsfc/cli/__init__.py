"""The command line, one module per command.

Exit codes: 0 ok, 1 diagnostics (or a module that does not keep its promises), 2 wrong usage,
3 a fault of dsfc itself; `equiv` gives 4 for refuted and 5 for unknown, as `rounding` does.
Commands import what they need when they run: `dsfc --help` is fast.
"""

from __future__ import annotations

import errno
import sys
from typing import Any

import click

from dsfc.cli.atlas import atlas
from dsfc.cli.check import check
from dsfc.cli.check_proof import check_proof
from dsfc.cli.compare import compare
from dsfc.cli.compile import compile_command
from dsfc.cli.completion import completion
from dsfc.cli.convert import convert
from dsfc.cli.doctor import doctor
from dsfc.cli.equiv import equiv
from dsfc.cli.explain import explain
from dsfc.cli.export import export
from dsfc.cli.fmt import fmt
from dsfc.cli.info import info
from dsfc.cli.lift import lift
from dsfc.cli.list import list_command
from dsfc.cli.lsp import lsp
from dsfc.cli.model import model
from dsfc.cli.new import new
from dsfc.cli.process import Process
from dsfc.cli.report import report
from dsfc.cli.rounding import rounding
from dsfc.cli.show import show
from dsfc.cli.usage import WIDEST, WrongUsage
from dsfc.cli.verify import verify

INTERRUPTED = 130  # 128 + SIGINT, as shells count


EXAMPLES = (
    ("dsfc new mine", "a spec to start from, mine.dsf"),
    ("dsfc check mine.dsf", "all its mistakes, or what its mixers are"),
    ("dsfc show gla", "a summary of a shipped mixer and its matrices Λ, B, C, D"),
    ("dsfc compile gla", "writes gla.py, which needs torch alone"),
    ("dsfc equiv ssd gla --conditions", "when two mixers are one function"),
)
"""The examples at the end of the help: a command, and what it does."""


class Commands(click.Group):
    """All commands, with one place where what they raise becomes an exit code."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the options in front of the command; nothing at all asks for help."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise WrongUsage(error) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands in groups, in the order of the work."""
        width = max(len(name) for name in self.commands)
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(n.ljust(width), self.commands[n].get_short_help_str(80)) for n in names]
                )

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes examples, and what a SPEC is."""
        with formatter.section("Examples"):
            formatter.write_dl(EXAMPLES, col_max=WIDEST)
        super().format_epilog(ctx, formatter)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as in click
        """Runs a command; diagnostics give exit code 1, anything unforeseen 3."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise WrongUsage(error) from None
        except (click.exceptions.Exit, click.ClickException, click.Abort):
            raise
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise  # the reader of a pipe went away; click ends quietly
            from dsfc.cli.failure import report as told

            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                from dsfc.diagnostics.file_error import file_error

                # Files that cannot be written are told where they are written.
                error = file_error(error.filename or "standard output", error)
            ctx.exit(told(error))


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"dsfc {version('dsfc')}")
        ctx.exit()


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="A SPEC is a .dsf file, or the bare name of a shipped spec such as s6. SPEC:MIXER "
    "is one mixer of a file that defines several.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Print the version and exit.",
)
@click.pass_context
def commands(ctx: click.Context) -> None:
    """A compiler for sequence mixers: from a definition to a PyTorch module."""
    import os

    # https://no-color.org: any value but the empty one turns colours off, pipes do so anyway.
    if os.environ.get("NO_COLOR"):
        ctx.color = False


_GROUPS: dict[str, tuple[click.Command, ...]] = {
    "Mixers": (list_command, new, lift),
    "Specs": (check, fmt, show, explain, lsp),
    "Reports": (report, compare),
    "Modules": (compile_command, model, verify, rounding, info, convert, export),
    "Proofs": (equiv, check_proof, atlas),
    "Machine and shell": (doctor, completion),
}
for _members in _GROUPS.values():
    for _command in _members:
        commands.add_command(_command)

GROUPS = {title: tuple(c.name or "" for c in members) for title, members in _GROUPS.items()}
"""Title of a group → names of its commands, as the help lists them."""


def main() -> int:
    """Runs the command line of this process; returns only where click does not exit itself."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show Λ gets \u039b; no output is lost to an encoding error.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    commands(prog_name="dsfc", obj=Process(own=True))
    return 0
