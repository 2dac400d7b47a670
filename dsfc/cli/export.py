"""`dsfc export`: layers as programs that run without their module."""

from __future__ import annotations

from pathlib import Path

import click

from dsfc.cli.options import mistakes_option, sizes_of
from dsfc.cli.progress import progress
from dsfc.cli.spec import SpecWord, spec_and_mixer


@click.command(short_help="Write a layer as a program for PyTorch or ONNX.")
@click.argument("target", type=SpecWord(), metavar="MODULE|SPEC[:MIXER]")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, dir_okay=False), required=True,
    help="The file to write: .onnx for onnx, .pt2 for others.",
)  # fmt: skip
@click.option(
    "--to",
    type=click.Choice(("torch", "aoti", "onnx")),
    default="torch",
    show_default=True,
    help="For torch.export.load, as machine code for PyTorch, or for ONNX.",
)
@click.option(
    "--operator",
    type=click.Choice(("linear_attention",)),
    help="ONNX's own operator in place of the loop, where a proof says that it is that.",
)
@click.option("--step", is_flag=True, help="One token, with the state before and after.")
@click.option(
    "--size",
    "sizes",
    multiple=True,
    metavar="AXIS=SIZE,…",
    help="Sizes of axes of the layer, such as d=64,h=2.",
)
@click.option(
    "--weights",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A state_dict of the layer, saved by torch; nothing in it is executed.",
)
@click.option("--mixer", metavar="NAME", help="Name of the mixer, if the spec has several.")
@mistakes_option
def export(
    target: str,
    out: Path,
    to: str,
    operator: str | None,
    step: bool,
    sizes: tuple[str, ...],
    weights: Path | None,
    mixer: str | None,
) -> None:
    """Write a layer as a program that runs without its module and without dsfc.

    The batch and the length stay open. The program is run beside the layer first, and nothing is
    written unless both give the same numbers. A module is a program, and this command runs it.
    """
    if operator is not None and to != "onnx":
        raise click.UsageError("--operator is one of ONNX: add --to onnx")
    chosen = sizes_of(sizes)
    target, mixer = spec_and_mixer(target, mixer)
    try:
        from dsfc.api.export import export_file
    except ImportError as e:
        if e.name != "torch":
            raise
        raise click.UsageError("export runs the module: install torch first") from None
    with progress("tracing the layer, then running both"):
        done = export_file(
            target, out, chosen, weights=weights, mixer=mixer, to=to, step=step, operator=operator
        )
    click.echo(done.path)
    click.echo(f"  takes {', '.join(done.inputs)}; gives {', '.join(done.outputs)}")
    if done.parts:
        click.echo(f"  of {', '.join(done.parts)} the last axis is the real and imaginary parts")
    click.echo(f"  differs from the layer by {done.error:.1e} at most")
