"""What the words SPEC and SPEC:MIXER mean on the command line.

A SPEC is a file, a shipped spec, or standard input; every command that takes one mixer of a spec
takes it behind a colon.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from dsfc.api.pipeline import Compilation, SpecText
    from dsfc.source import Source
    from dsfc.syntax.ast import Spec

STDIN = "-"


class SpecWord(click.types.StringParamType):
    """A SPEC; shells complete it with the names of the shipped specs and with files."""

    name = "spec"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Returns the shipped specs that begin so, then what the shell knows of files."""
        from dsfc.api.locate import spec_names

        names = [name for name in spec_names() if name.startswith(incomplete)]
        return [*map(CompletionItem, names), CompletionItem(incomplete, type="file")]


def spec_files(words: Iterable[str]) -> Iterator[str]:
    """Yields the files that some words mean, each once; a folder is all .dsf files below it.

    The name of a shipped spec means that spec, whatever folders there are.

    Raises:
        DiagnosticError: E-FILE of a folder without any.
    """
    from dsfc.api.locate import spec_names

    seen = set()
    for word in words:
        inside = [word]
        if os.path.isdir(word) and word not in (STDIN, *spec_names()):
            inside = [str(path) for path in sorted(Path(word).rglob("*.dsf"))]
        if not inside:
            from dsfc.diagnostics.file_error import file_error

            raise file_error(word, "no .dsf file in this folder")
        for path in inside:
            if path not in seen:
                seen.add(path)
                yield path


def spec_and_mixer(word: str, mixer: str | None = None) -> tuple[str, str | None]:
    """Returns the SPEC of a word `SPEC` or `SPEC:MIXER`, and the name of the mixer if one is given.

    Args:
        word: as the user wrote it; a file of this very name comes first.
        mixer: what the option `--mixer` names.

    Raises:
        UsageError: word and option name two mixers.
    """
    spec, colon, name = word.rpartition(":")
    if not (colon and spec and name.isidentifier()) or os.path.exists(word):
        return word, mixer
    if mixer not in (None, name):
        raise click.UsageError(f"{word} names the mixer {name}, and --mixer {mixer} another one")
    return spec, name


def mixer_of(word: str, mixer: str | None = None) -> Compilation:
    """Returns the mixer that `SPEC` or `SPEC:MIXER` means.

    Args:
        word: as the user wrote it.
        mixer: what the option `--mixer` names.

    Raises:
        DiagnosticError: E-FILE, E-MIXER, or all mistakes in the writing of the text.
        UsageError: word and option name two mixers.
    """
    spec, name = spec_and_mixer(word, mixer)
    return spec_text(spec).compilation(name)


def spec_text(spec: str) -> SpecText:
    """Returns the parsed text of a SPEC; `-` is standard input, its bases in the current folder.

    Raises:
        DiagnosticError: E-FILE, or all mistakes in the writing of the text.
    """
    from dsfc.api.pipeline import read
    from dsfc.syntax.parse import parse

    return read(spec) if spec != STDIN else with_tree(spec, parse(standard_input()))


def with_tree(spec: str, tree: Spec) -> SpecText:
    """Returns the text of a SPEC with another syntax tree.

    Raises:
        DiagnosticError: E-FILE.
    """
    from dsfc.api.locate import Place, locate
    from dsfc.api.pipeline import SpecText

    return SpecText(Place(Path(STDIN)) if spec == STDIN else locate(spec), tree)


def standard_input() -> Source:
    """Returns the text on standard input, never more than a spec may have.

    Raises:
        DiagnosticError: E-FILE if it is not UTF-8, E-LIMIT if it is too large.
    """
    from dsfc.limits import DEFAULT_LIMITS
    from dsfc.syntax.read import decoded

    return decoded(sys.stdin.buffer.read(DEFAULT_LIMITS.bytes + 1), "<stdin>")
