"""`dsfc info`: what an emitted module says of itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from dsfc.cli.colours import heading
from dsfc.cli.options import format_option


@dataclass(frozen=True, slots=True)
class Module:
    """What an emitted file says of itself.

    Attributes:
        file: its path, as the user gave it.
        title: name and title of the mixer.
        dsfc: version that wrote it.
        backend: which backend printed it.
        options: what it was asked to be besides: `layer`, `context parallel`, `tensor parallel`,
            `runtime beside`.
        source: file name of the spec.
        edited: whether anything below its first lines was changed.
        spec: what it calls its spec: the beginning of the hash of the plan.
        plan: the whole hash.
        namespace: of its operators, below `torch.ops`.
        names: what it exports.
        modes: its modes.
        chunk: tokens of a chunk; None where it has none.
    """

    file: str
    title: str
    dsfc: str
    backend: str
    options: tuple[str, ...]
    source: str
    edited: bool
    spec: str
    plan: str
    namespace: str
    names: tuple[str, ...]
    modes: tuple[str, ...]
    chunk: int | None


@click.command(short_help="Describe an emitted module.")
@click.argument("modules", nargs=-1, required=True, metavar="MODULE...")
@format_option("the description")
def info(modules: tuple[str, ...], form: str) -> None:
    """Describe emitted modules: their origin, whether they were edited, their modes.

    A MODULE is read, not run: it may come from anywhere, and PyTorch is not needed.
    """
    read_modules = [read_module(Path(module)) for module in modules]
    if form == "json":
        import json

        body = {"format": 1, "modules": [asdict(module) for module in read_modules]}
        click.echo(json.dumps(body, ensure_ascii=False, indent=2))
        return
    for module in read_modules:
        for line in _human(module):
            click.echo(line)


def read_module(path: Path) -> Module:
    """Returns what an emitted file says of itself; it is read, not run.

    Raises:
        DiagnosticError: E-FILE, where dsfc did not write it.
    """
    from dsfc import files
    from dsfc.diagnostics.file_error import file_error
    from dsfc.emit.module import origin
    from dsfc.python_text import parsed

    try:
        data = files.read(path)
    except OSError as e:
        raise file_error(path, e) from None
    except ValueError:  # a null character in the path
        raise file_error(path, "no such file") from None
    said = origin(data)
    if said is None:
        raise file_error(path, "it is not a module that dsfc wrote")
    try:
        tree = parsed(data)
        values = dict(_literals(tree))
        chunk = values.get("CHUNK")
        return Module(
            file=str(path),
            title=(ast.get_docstring(tree) or "").partition("\n")[0].rstrip("."),
            dsfc=said.version,
            backend=said.backend,
            options=tuple(sorted(said.options)),
            source=said.source,
            edited=not said.untouched,
            spec=str(values["SPEC"]),
            plan=said.plan,
            namespace=str(values["NAMESPACE"]),
            names=_words(values["__all__"]),
            modes=_words(values["MODES"]),
            chunk=chunk if isinstance(chunk, int) else None,
        )
    except (SyntaxError, ValueError, KeyError, RecursionError):
        raise file_error(path, "it was edited and can no longer be read") from None


def _literals(tree: ast.Module) -> Iterator[tuple[str, object]]:
    """The names at the top of a module that stand for literals."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                yield node.targets[0].id, ast.literal_eval(node.value)
            except ValueError:
                continue


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("no list of words")
    return tuple(map(str, value))


def _human(module: Module) -> Iterator[str]:
    from dsfc.diagnostics.render import printable

    colour, edited = ("yellow", "edited since") if module.edited else ("green", "untouched")
    printed = ", ".join((f"{module.backend} backend", *module.options))
    origin = f"dsfc {module.dsfc}, {printed}, from {module.source}"
    chunk = "" if module.chunk is None else f"; chunks of {module.chunk} tokens"
    yield f"{heading(printable(module.file))}: {printable(module.title)}"
    yield f"  origin     {printable(origin)}; {click.style(edited, fg=colour)}"
    yield f"  exports    {printable(', '.join(module.names))}"
    yield f"  modes      {printable(', '.join(module.modes) + chunk)}"
    yield f"  spec       {printable(module.spec)}"
    yield f"  operators  {printable(f'torch.ops.{module.namespace}')}"
