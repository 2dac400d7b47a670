"""`dsfc model`: specs to a language model for the library transformers."""

from __future__ import annotations

from pathlib import Path

import click

from dsfc.cli.options import mistakes_option, sizes_of
from dsfc.cli.process import bounded
from dsfc.cli.spec import SpecWord, mixer_of


@click.command("model", short_help="Write a language model for transformers.")
@click.argument("specs", nargs=-1, required=True, type=SpecWord(), metavar="SPEC[:MIXER]...")
@click.option(
    "-o",
    "--out",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write into.",
)
@click.option(
    "--pattern",
    metavar="MIXER,…",
    help="Layers of the blocks in order, repeated until there are enough: gla,gla,softmax."
    "  [default: each mixer once]",
)
@click.option("--blocks", type=click.IntRange(1), default=12, show_default=True, help="Blocks.")
@click.option(
    "--width", type=click.IntRange(1), default=768, show_default=True, help="Channels of a token."
)
@click.option(
    "--vocabulary",
    type=click.IntRange(1),
    default=32000,
    show_default=True,
    help="How many different tokens there are.",
)
@click.option(
    "--size",
    "sizes",
    multiple=True,
    metavar="AXIS=SIZE,…",
    help="Sizes of all layers that have them, such as h=8,n=16.  [default: the spec's, else 16]",
)
@click.option("--backend", default="torch", show_default=True, help="The backend of the modules.")
@click.option("--force", is_flag=True, help="Replace files of the folder.")
@mistakes_option
@click.pass_context
def model(
    ctx: click.Context,
    specs: tuple[str, ...],
    out: Path,
    pattern: str | None,
    blocks: int,
    width: int,
    vocabulary: int,
    sizes: tuple[str, ...],
    backend: str,
    force: bool,
) -> None:
    """Write a causal language model around mixers, and print the paths of its files.

    The folder holds a module of each mixer, a configuration, the model, its README and a program
    that trains it; `AutoModelForCausalLM` of transformers loads it with `trust_remote_code=True`,
    without dsfc. Each block is a norm, a mixer's layer, a norm and a gated MLP; embeddings and head
    share their weights. All sizes stand in `config.json`, and may be changed there.
    """
    from dsfc.api.model import causal_module, write_folder
    from dsfc.cli.failure import Mistakes
    from dsfc.diagnostics.report import DiagnosticError
    from dsfc.model.build import folder, part
    from dsfc.model.ir import Model

    chosen, mistakes, parts = sizes_of(sizes), Mistakes(), []
    for word in specs:
        try:
            with bounded(f"model {word}"):
                parts.append(part(causal_module(mixer_of(word), backend), chosen))
        except DiagnosticError as e:
            mistakes.add(e.diagnostics)
    if code := mistakes.end():
        ctx.exit(code)
    names = [p.name for p in parts]
    if twice := next((n for n in names if names.count(n) > 1), None):
        raise click.UsageError(f"two of the specs define a mixer {twice}")
    order = names if pattern is None else [n.strip() for n in pattern.split(",")]
    if missing := next((n for n in order if n not in names), None):
        raise click.UsageError(f"--pattern names {missing}, and the specs are {', '.join(names)}")
    if idle := next((n for n in names if n not in order), None):
        raise click.UsageError(f"--pattern leaves {idle} out, which is one of the specs")
    if unknown := next((n for n in chosen if not any(n in p.sizes for p in parts)), None):
        raise click.UsageError(f"--size gives {unknown}, which no layer has")
    whole = Model(tuple(parts), tuple(order), width, blocks, vocabulary)
    for path in write_folder(folder(whole), out, force):
        click.echo(path)
