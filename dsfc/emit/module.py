"""Plan → text of a module, and the text → a file."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tempfile
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

from dsfc.diagnostics.catalogue import FileProblem, Overwrite
from dsfc.diagnostics.report import DiagnosticError
from dsfc.emit.audit import audit
from dsfc.emit.backend import Identity, load_backend
from dsfc.emit.names import class_name, file_name, identifier
from dsfc.plan.ir import Plan
from dsfc.plan.json import to_json
from dsfc.source import NOWHERE

PLACEHOLDER = "0" * 8
_ORIGIN = re.compile(r"\A# Written by dsfc \S+ \(\w+ backend\); sha256 of what follows: (\w{64})\n")


@dataclass(frozen=True, slots=True)
class ModuleText:
    """An emitted module.

    Attributes:
        mixer: its name; the file is named like it unless the user says otherwise.
        class_name: name of the `nn.Module`.
        text: the whole file.
        identity: what the module says of its origin.
    """

    mixer: str
    class_name: str
    text: str
    identity: Identity


def emit(plan: Plan, backend: str, source: str) -> ModuleText:
    """Returns the module of a plan.

    The namespace of its operators holds a hash of the text itself, so that two versions live side
    by side and one text imported twice shares its operators.

    Args:
        plan: the plan.
        backend: name of the backend.
        source: file name of the spec, for the header.

    Raises:
        DiagnosticError: E-BACKEND.
    """
    target = load_backend(backend)
    spec = hashlib.sha256(_canonical(plan)).hexdigest()
    cls = class_name(plan.name, target.reserved)
    rename = partial(identifier, reserved=target.reserved | {cls})
    stem = f"dsfc_{plan.name}_"
    dsfc_version = version("dsfc")
    draft = target.render(
        plan, Identity(spec, dsfc_version, stem + PLACEHOLDER, source), rename, cls
    )
    content = hashlib.sha256(draft.encode()).hexdigest()[:8]
    identity = Identity(spec, dsfc_version, stem + content, source)
    body = target.render(plan, identity, rename, cls)
    audit(body)
    return ModuleText(plan.name, cls, origin_line(body, backend, dsfc_version) + body, identity)


def origin_line(body: str, backend: str, dsfc_version: str) -> str:
    """Returns the first line of a module, by which an edit of what follows it is told."""
    digest = hashlib.sha256(body.encode()).hexdigest()
    return (
        f"# Written by dsfc {dsfc_version} ({backend} backend); sha256 of what follows: {digest}\n"
    )


def destination(module: ModuleText, out: Path | None) -> Path:
    """Returns where a module goes: a file, or the file of its name in a folder.

    Args:
        module: the module.
        out: file or existing folder; None for the current folder.
    """
    if out is None:
        return Path(file_name(module.mixer))
    return out / file_name(module.mixer) if out.is_dir() else out


def write(module: ModuleText, path: Path, force: bool = False) -> bool:
    """Writes a module's text, whole or not at all.

    A file that dsfc wrote and nobody edited is replaced; one with the same bytes is left alone.

    Args:
        module: the module.
        path: where to.
        force: replace whatever regular file stands there.

    Returns:
        whether anything was written.

    Raises:
        DiagnosticError: E-OUTPUT (something else stands there), E-FILE (the system refused).
    """
    data = module.text.encode()
    try:
        if path.is_symlink():
            raise _overwrite(path, "it is a symbolic link")
        if path.exists():
            if not path.is_file():  # a device or a pipe: reading it may never end
                raise _unwritable(path, "it is not a regular file")
            if path.read_bytes() == data:
                return False
            reason = None if force else _kept(path)
            if reason is not None:
                raise _overwrite(path, reason)
        _replace(path, data)
    except OSError as e:
        raise _unwritable(path, e.strerror or str(e)) from e
    return True


def _kept(path: Path) -> str | None:
    """Why a file is not replaced without being told so, or None."""
    if not path.stat().st_mode & stat.S_IWUSR:
        return "it is read-only"
    if not untouched(path.read_bytes()):
        return "it was not written by dsfc, or has been edited since"
    return None


def untouched(data: bytes) -> bool:
    """Returns whether bytes are an emitted module as it was written, line endings aside."""
    try:
        text = data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        return False
    head = _ORIGIN.match(text)
    if head is None:
        return False
    return hashlib.sha256(text[head.end() :].encode()).hexdigest() == head[1]


def _replace(path: Path, data: bytes) -> None:
    # In the same folder, so that the rename is atomic.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(data)
            f.flush()
            os.fsync(f.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _overwrite(path: Path, problem: str) -> DiagnosticError:
    return DiagnosticError((Overwrite(NOWHERE, path=str(path), problem=problem),))


def _unwritable(path: Path, problem: str) -> DiagnosticError:
    return DiagnosticError((FileProblem(NOWHERE, path=str(path), problem=problem),))


def _canonical(plan: Plan) -> bytes:
    return json.dumps(to_json(plan), sort_keys=True, separators=(",", ":")).encode()
