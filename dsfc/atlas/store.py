"""Answers kept by what they are answers to, so that a second run asks nothing again.

The key of an answer is the hash of both systems, of the question and of the prover's own text: an
answer of another prover, or about another spec, is not found. One file per answer, written whole or
not at all, with a hash of its key and itself beside it; a file that is not as it was written is no
answer. The folder belongs to the user alone, and nothing in it is executed.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from contextlib import suppress
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from dsfc import files
from dsfc.expr.json import encode
from dsfc.system.ir import System

Document = dict[str, Any]
"""What is kept, as JSON."""

_PROVER = ("prover", "trusted", "trusted.rules", "expr", "system", "derive")
"""Packages whose text decides an answer, and what of it is kept."""


class NotPrivate(Exception):
    """The folder is not the user's alone; the text says why."""


@lru_cache(maxsize=1)
def prover() -> str:
    """Returns the hash of the prover's text."""
    digest = hashlib.sha256()
    for package in _PROVER:
        folder = resources.files(f"dsfc.{package}")
        for file in sorted(folder.iterdir(), key=lambda f: f.name):
            if file.name.endswith(".py"):
                digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    digest.update(resources.files("dsfc.atlas").joinpath("questions.py").read_bytes())
    return digest.hexdigest()


def fingerprint(system: System) -> str:
    """Returns the hash of a system; comments and layout of its spec have no part in it."""
    text = json.dumps(encode(system), ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def default_folder() -> Path:
    """Returns the folder of the user's caches."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "dsfc" / "atlas"


class Store:
    """Answers in a folder."""

    def __init__(self, folder: Path) -> None:
        """Makes the folder, readable by its owner alone.

        Raises:
            NotPrivate: it belongs to somebody else, others may write to it, or it cannot be made.
        """
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = folder.stat()
        except OSError as e:
            raise NotPrivate(f"{folder}: {e.strerror or e}") from None
        if hasattr(os, "getuid") and status.st_uid != os.getuid():
            raise NotPrivate(f"{folder} belongs to another user")
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise NotPrivate(f"{folder} can be written by others")
        self._folder = folder

    def key(self, question: str, a: str, b: str) -> str:
        """Returns the key of a question about two systems, given their fingerprints."""
        return hashlib.sha256("\0".join((prover(), question, a, b)).encode()).hexdigest()

    def get(self, key: str) -> Document | None:
        """Returns an answer, None where there is none that can be read."""
        try:
            kept = json.loads(files.read(self._folder / f"{key}.json"))
            answer: Document = kept["answer"]
            whole: bool = kept["sha256"] == _digest(key, answer)
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return None
        return answer if whole else None

    def put(self, key: str, answer: Document) -> None:
        """Keeps an answer; a disk that is full loses it and nothing else."""
        text = _text({"answer": answer, "sha256": _digest(key, answer)})
        with suppress(OSError):
            files.replace(self._folder / f"{key}.json", text.encode(), 0o600)


def _text(document: Document) -> str:
    return json.dumps(document, ensure_ascii=False, sort_keys=True)


def _digest(key: str, answer: Document) -> str:
    """The hash of a key and its answer: it shows damage, and keeps no forger out."""
    return hashlib.sha256(f"{key}\n{_text(answer)}".encode()).hexdigest()
