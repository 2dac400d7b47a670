"""`dsfc lift`: a PyTorch module as a spec."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dsfc.cli.options import mistakes_option

if TYPE_CHECKING:
    from dsfc.api.lift import Lifted

_WORD = re.compile(r"(?P<path>.+\.py):(?P<name>[A-Za-z_]\w*)")


def lift_options(command: Any) -> Any:  # noqa: ANN401 - as click has it
    """Adds the options that say how a module is made and called."""
    arguments = click.option(
        "--arg",
        "arguments",
        multiple=True,
        metavar="NAME=VALUE",
        help="Argument of the class or function FILE.py:NAME, such as d_model=16.",
    )
    inputs = click.option(
        "--input",
        "inputs",
        multiple=True,
        metavar="NAME=SHAPE",
        help="Shape of an input of the module FILE.py:NAME, such as q=B,T,4,16.  [default: B,T,d]",
    )
    return arguments(inputs(command))


@click.command(short_help="Turn a PyTorch module into a spec.")
@click.argument("module", metavar="FILE.py:NAME")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="The new spec file, or - to print it.  [default: ./<name of the mixer>.dsf]",
)
@lift_options
@mistakes_option
def lift(
    module: str, out: Path | None, arguments: tuple[str, ...], inputs: tuple[str, ...]
) -> None:
    """Trace a PyTorch module and write a spec of what it computes.

    NAME is a class, a function that makes a module, a module, or a function of tensors. The module
    takes tensors [batch, tokens, …]; a loop over tokens becomes a state. The spec is then compiled
    and compared with the module, forward and backward, in float64 and at several lengths: equality
    is tested, not proved. An operation that a spec cannot express is named with its line.

    The command imports FILE.py, which RUNS it, and runs the module: lift only files that you trust.
    Of the commands that read specs, `equiv` alone does the same, if it is given FILE.py:NAME.
    """
    from dsfc.cli.output import create
    from dsfc.cli.progress import progress

    with progress("starting torch, tracing the module and running both"):
        lifted = run(module, arguments, inputs)
    target = out or Path(f"{lifted.compilation.name}.dsf")
    if str(target) == "-":
        click.echo(lifted.text, nl=False)
    else:
        create(target, lifted.text)
        click.echo(f"written: {target}")
    for line in said(lifted):
        click.echo(f"  {line}", err=str(target) == "-")


def said(lifted: Lifted) -> list[str]:
    """Returns what was tested, and what the parameters of the spec are in the module."""
    out = []
    if lifted.tested is None:
        out.append(f"not tested: {lifted.untested}")
    else:
        lengths = ", ".join(map(str, lifted.tested.lengths))
        out.append(
            f"tested, not proved: outputs of the module and of the spec differ by "
            f"{lifted.tested.values:.1e} at most, gradients by {lifted.tested.gradients:.1e}, "
            f"in float64, with {lengths} tokens"
        )
        out += [f"{name} has no part in the output" for name in lifted.tested.unread]
    out += [f"{name} is {what}" for name, what in lifted.renamed.items() if name != what]
    return out


def is_module(word: str) -> bool:
    """Returns whether a word names a module in a Python file, rather than a spec."""
    return _WORD.fullmatch(word) is not None


def run(word: str, arguments: Sequence[str], inputs: Sequence[str]) -> Lifted:
    """Returns the module that `file.py:Name` means as a spec. This imports the file, which runs it.

    Raises:
        DiagnosticError: E-LIFT or E-FILE.
        UsageError: the word or an option is not of its form, or torch is missing.
    """
    parts = _WORD.fullmatch(word)
    if parts is None:
        raise click.UsageError(f"lift wants FILE.py:NAME, not {word}")
    built = dict(_pair("--arg", a) for a in arguments)
    shapes = {n: s.split(",") for n, s in (_pair("--input", i) for i in inputs)}
    for name, shape in shapes.items():
        if not all(s in ("B", "T") or (s.isascii() and s.isdecimal()) for s in shape):
            raise click.UsageError(f"--input wants {name}=B,T,SIZE,…, not {','.join(shape)}")
    try:
        from dsfc.api.lift import lift as lift_module
    except ImportError as e:
        if e.name != "torch":
            raise
        raise click.UsageError("lift runs the module: install torch first") from None
    return lift_module(
        parts["path"], parts["name"], {n: _literal(v) for n, v in built.items()}, shapes
    )


def _pair(option: str, word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals or not name.isidentifier():
        raise click.UsageError(f"{option} wants NAME=…, not {word}")
    return name, value


def _literal(text: str) -> object:
    """A number, a truth value, None or a tuple as Python writes it; any other text is itself."""
    try:
        value: object = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text
    return value
