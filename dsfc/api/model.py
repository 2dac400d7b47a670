"""Whole models: from specs to a folder that the library transformers loads."""

from __future__ import annotations

from pathlib import Path

from dsfc import files
from dsfc.api.pipeline import Compilation
from dsfc.diagnostics.catalogue import Overwrite
from dsfc.diagnostics.file_error import file_error
from dsfc.diagnostics.report import DiagnosticError
from dsfc.emit.module import ModuleText, write
from dsfc.model.build import Folder
from dsfc.plan.next_token import require_next_token
from dsfc.source import NOWHERE


def causal_module(compilation: Compilation, backend: str = "torch") -> ModuleText:
    """Returns the module of a mixer, with a layer that mixes one token after another.

    Args:
        compilation: of the mixer.
        backend: which backend prints it.

    Raises:
        DiagnosticError: E-STEP, it reads tokens to come; E-LAYER, no layer stands around it;
            E-BACKEND.
    """
    hint = "a language model generates token by token; compile --layer makes a layer alone"
    require_next_token(compilation.plan, compilation.system, compilation.mixer.span, hint)
    return compilation.module(backend, layer=True)


def write_folder(model: Folder, path: Path, force: bool = False) -> tuple[Path, ...]:
    """Writes the files of a model into a folder, which is made, and returns their paths.

    A file that stands there with the same bytes stays as it is.

    Args:
        model: the files.
        path: of the folder.
        force: replace files that stand there.

    Raises:
        DiagnosticError: E-OUTPUT, another file has a name of the model's; E-FILE.
    """
    texts = {path / name: text.encode() for name, text in model.texts.items()}
    try:
        path.mkdir(parents=True, exist_ok=True)
        new = [p for p, data in texts.items() if not p.exists() or files.read(p) != data]
        in_the_way = [p for p in new if p.exists() or p.is_symlink()]
    except OSError as e:
        raise file_error(e.filename or path, e) from e
    if in_the_way and not force:
        problem = "it exists and is another"
        raise DiagnosticError(
            tuple(Overwrite(NOWHERE, path=str(p), problem=problem) for p in in_the_way)
        )
    modules = {path / name: module for name, module in model.modules.items()}
    for p, module in modules.items():
        write(module, p, force)
    for p in new:
        try:
            files.replace(p, texts[p])
        except OSError as e:
            raise file_error(p, e) from e
    return (*texts, *modules)
