"""`dsfc compile`: specs to modules."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dsfc.cli.options import mistakes_option, require_parallel_option
from dsfc.cli.process import bounded
from dsfc.cli.spec import SpecWord, spec_and_mixer
from dsfc.emit import RUNTIMES
from dsfc.layer_parts import LayerSignature

if TYPE_CHECKING:
    from dsfc.api.pipeline import Compilation


@click.command("compile", short_help="Compile specs to modules.")
@click.argument("specs", nargs=-1, required=True, type=SpecWord(), metavar="SPEC[:MIXER]...")
@click.option(
    "-o",
    "--out",
    help="File to write, folder to write into (a new one with a slash behind it), or - for standard"
    " output. [default: ./<mixer>.py]",
)
@click.option("--mixer", metavar="NAME", help="Name of the mixer, if the spec has several.")
@click.option("--backend", default="torch", show_default=True, help="The backend of the module.")
@click.option(
    "--runtime",
    type=click.Choice(RUNTIMES),
    default="inside",
    show_default=True,
    help="Where the functions stand that all modules share: in each module, or in one file of"
    " their folder.",
)
@click.option(
    "--layer",
    is_flag=True,
    help="Write a layer of a model beside the mixer: [B, L, d] to [B, L, d].",
)
@click.option(
    "--signature",
    type=click.Choice([s.value for s in LayerSignature]),
    default=LayerSignature.DSFC.value,
    show_default=True,
    help="How the layer is called (with --layer): as its mixer, or besides as layers of"
    " flash-linear-attention are, with its cache.",
)
@click.option(
    "--context-parallel",
    is_flag=True,
    help="Let processes share a sequence: each mixes a segment, and states cross between them.",
)
@click.option(
    "--tensor-parallel",
    is_flag=True,
    help="Let processes share out the heads of the layer (with --layer).",
)
@click.option("--force", is_flag=True, help="Replace a file that dsfc did not write.")
@require_parallel_option
@mistakes_option
@click.pass_context
def compile_command(
    ctx: click.Context,
    specs: tuple[str, ...],
    out: str | None,
    mixer: str | None,
    backend: str,
    runtime: str,
    layer: bool,
    signature: str,
    context_parallel: bool,
    tensor_parallel: bool,
    force: bool,
    require_parallel: bool,
) -> None:
    """Compile specs to modules and print the path of each.

    Replaces a file that dsfc wrote and nobody edited; any other file needs --force. Files are
    written whole or not at all.
    """
    from dsfc.api.coverage import coverage, notes
    from dsfc.api.pipeline import load
    from dsfc.cli.failure import Mistakes
    from dsfc.diagnostics.report import DiagnosticError
    from dsfc.emit.module import ModuleText, destination, write

    to_stdout = out == "-"
    if tensor_parallel and not layer:
        raise click.UsageError("--tensor-parallel goes with --layer")
    if signature == LayerSignature.FLA and (context_parallel or not layer):
        raise click.UsageError("--signature fla goes with --layer, without --context-parallel")
    if to_stdout and runtime == "beside":
        raise click.UsageError("--runtime beside needs a folder; -o is standard output")
    if len(specs) > 1:
        if mixer is not None:
            raise click.UsageError("--mixer goes with one spec")
        if not (out is None or to_stdout or out.endswith("/") or os.path.isdir(out)):
            raise click.UsageError(f"-o is a folder for several specs; for a new one write {out}/")
    modules: list[tuple[ModuleText, Path]] = []
    mistakes = Mistakes()
    for word in specs:
        try:
            with bounded(f"compile {word}"):
                spec, chosen = spec_and_mixer(word, mixer)
                compilation = load(spec, chosen)
                if require_parallel and (slow := compilation.recurrent_only) is not None:
                    raise DiagnosticError((slow,))
                module = compilation.module(
                    backend, runtime, layer, context_parallel, tensor_parallel, signature
                )
                without = notes(coverage(compilation, backend))
        except DiagnosticError as e:
            mistakes.add(e.diagnostics)
        else:
            modules.append((module, destination(module, out)))
            for note in without:
                click.echo(f"note: {compilation.name}: --backend {backend} has {note}", err=True)
            if chosen is None and (others := _left_out(compilation)):
                said = f"{spec} also defines {', '.join(others)}; choose by {spec}:NAME"
                click.echo(f"note: only {compilation.name} is compiled; {said}", err=True)
    _distinct([] if to_stdout else [path for _, path in modules])
    for module, path in modules:
        if to_stdout:
            click.echo(module.text, nl=False)
            continue
        try:
            write(module, path, force)
        except DiagnosticError as e:
            mistakes.add(e.diagnostics)
        else:
            click.echo(path)
    ctx.exit(mistakes.end())


def _left_out(compilation: Compilation) -> list[str]:
    """The mixers of the text of a mixer that are neither it nor what it extends."""
    from dsfc.syntax.ast import MixerUnit

    units = [unit for unit in compilation.spec.units if isinstance(unit, MixerUnit)]
    bases = {unit.name.text: None if unit.base is None else unit.base.text for unit in units}
    used: str | None = compilation.name
    while used is not None:
        used = bases.pop(used, None)
    return list(bases)


def _distinct(paths: list[Path]) -> None:
    twice = [path for path in paths if paths.count(path) > 1]
    if twice:
        raise click.UsageError(f"two of the specs would be written to {twice[0]}")
