"""Plan → text of a module, and the text → a file."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from importlib.metadata import version
from pathlib import Path

from dsfc import files
from dsfc.diagnostics.catalogue import Overwrite
from dsfc.diagnostics.file_error import file_error
from dsfc.diagnostics.report import DiagnosticError
from dsfc.emit.audit import audit
from dsfc.emit.backend import Backend, Identity, load_backend
from dsfc.emit.names import class_name, file_name, identifier
from dsfc.expr.json import encode
from dsfc.fused.ir import FusedPlan
from dsfc.layer_parts import LayerSignature
from dsfc.papers import Paper
from dsfc.plan.ir import Plan
from dsfc.plan.whole_layer import WholeLayer
from dsfc.source import NOWHERE

_HEAD = """\
# Written by dsfc {version} ({backend} backend{options}) from {source}.
# sha256 of the plan: {plan}
# sha256 of the lines below: {body}
"""
_ORIGIN = re.compile(
    r"\A# Written by dsfc (?P<version>\S+) \((?P<backend>\w+) backend(?P<options>(?:, [a-z ]+)*)\)"
    r" from (?P<source>\S+)\.\n"
    r"# sha256 of the plan: (?P<plan>[0-9a-f]{64})\n"
    r"# sha256 of the lines below: (?P<body>[0-9a-f]{64})\n"
)


class Option(StrEnum):
    """An option of the emission of a module, as the first line of the module spells it."""

    BESIDE = "runtime beside"
    LAYER = "layer"
    CONTEXT_PARALLEL = "context parallel"
    TENSOR_PARALLEL = "tensor parallel"
    FLA = "signature fla"


@dataclass(frozen=True, slots=True)
class RuntimeFile:
    """A file with the runtime that modules in its folder import.

    Attributes:
        name: of the file; it holds a hash of the text.
        text: the whole file.
    """

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ModuleText:
    """An emitted module.

    Attributes:
        mixer: its name; the file is named like it unless the user says otherwise.
        class_name: name of the `nn.Module`.
        text: the whole file.
        identity: what the module says of its origin.
        namespace: of the module's operators; unique to mixer and text.
        runtime: what must stand beside the module; None where the module holds it.
    """

    mixer: str
    class_name: str
    text: str
    identity: Identity
    namespace: str
    runtime: RuntimeFile | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """What the first lines of an emitted file say of where it comes from.

    Attributes:
        version: of dsfc.
        backend: which backend printed it.
        source: file name of the spec.
        plan: sha256 of the plan.
        untouched: whether the rest is as it was written, line endings aside.
        options: what it was asked to be.
    """

    version: str
    backend: str
    source: str
    plan: str
    untouched: bool
    options: frozenset[Option] = frozenset()


def emit(
    fused: FusedPlan,
    backend: str,
    source: str,
    beside: bool = False,
    papers: tuple[Paper, ...] = (),
    whole: WholeLayer | None = None,
    context_parallel: bool = False,
) -> ModuleText:
    """Returns the module of a plan.

    The namespace of its operators holds a hash of the text itself, so that two versions live side
    by side and one text imported twice shares its operators.

    Args:
        fused: the plan, with what the backend's kernels compute besides their recurrences.
        backend: name of the backend.
        source: file name of the spec, for the header.
        beside: whether the runtime is a file of its own, beside the module.
        papers: that the spec names, for the module's docstring.
        whole: the layer that stands beside the mixer, if any.
        context_parallel: whether processes may share a sequence.

    Raises:
        DiagnosticError: E-BACKEND.
        EmissionError: the backend printed what no module may hold.
    """
    target, plan = load_backend(backend), fused.original
    if context_parallel:
        target = target.context_parallel()
    cls, function = _own_names(plan, target)
    rename = identifiers(plan, backend)
    # A file may be called anything, and the name goes into comments.
    called = re.sub(r"[^A-Za-z0-9_.-]", "_", source)[:80] or "_"
    identity = Identity(
        digest(plan), version("dsfc"), called, f"dsfc_{plan.name}_", tuple(map(str, papers))
    )
    body, namespace = target.render(fused, identity, rename, cls, function, beside, whole)
    runtime = RuntimeFile(*target.runtime_file(fused)) if beside else None
    audit(body, target.runtime(fused), None if runtime is None else Path(runtime.name).stem)
    asked = {
        Option.BESIDE: beside,
        Option.LAYER: whole is not None,
        Option.CONTEXT_PARALLEL: context_parallel,
        Option.TENSOR_PARALLEL: whole is not None and whole.heads is not None,
        Option.FLA: whole is not None and whole.signature is LayerSignature.FLA,
    }
    text = head(identity, backend, body, [option for option, yes in asked.items() if yes]) + body
    return ModuleText(plan.name, cls, text, identity, namespace, runtime)


def identifiers(plan: Plan, backend: str) -> Callable[[str], str]:
    """Returns the function that gives the emitted identifier of a name of the spec.

    Args:
        plan: whose module is meant.
        backend: which backend prints it.

    Raises:
        DiagnosticError: E-BACKEND.
    """
    target = load_backend(backend)
    return partial(identifier, reserved=target.reserved.union(_own_names(plan, target)))


def _own_names(plan: Plan, target: Backend) -> tuple[str, str]:
    """The names of the class and of the functional form."""
    cls = class_name(plan.name, target.reserved)
    return cls, identifier(plan.name, target.reserved | {cls})


def digest(plan: Plan) -> str:
    """Returns the sha256 of a plan, by which modules are known and states that were kept.

    Why a mode is legal stays out: to say it better makes no other mixer.
    """
    document = encode(replace(plan, modes=()))
    return _sha256(json.dumps(document, sort_keys=True, separators=(",", ":")))


def head(identity: Identity, backend: str, body: str, options: Iterable[Option] = ()) -> str:
    """Returns the first lines of a module, by which an edit of the rest is told."""
    return _HEAD.format(
        version=identity.version,
        backend=backend,
        options="".join(f", {option}" for option in options),
        source=identity.source,
        plan=identity.spec,
        body=_sha256(body),
    )


def origin(data: bytes) -> Origin | None:
    """Returns where an emitted file comes from; None for any other file."""
    try:
        text = data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None
    said = _ORIGIN.match(text)
    if said is None:
        return None
    try:
        options = frozenset(map(Option, said["options"].split(", ")[1:]))
    except ValueError:  # of another version
        return None
    same = _sha256(text[said.end() :]) == said["body"]
    return Origin(said["version"], said["backend"], said["source"], said["plan"], same, options)


def destination(module: ModuleText, out: str | os.PathLike[str] | None) -> Path:
    """Returns where a module goes: a file, or the file of its name in a folder.

    Args:
        module: the module.
        out: file, folder, or new folder with a slash behind it; None for the current folder.

    Raises:
        DiagnosticError: E-FILE (the folder cannot be made).
    """
    name = file_name(module.mixer)
    if out is None:
        return Path(name)
    try:
        return files.target(out, name)
    except OSError as e:
        raise file_error(os.fspath(out), e) from e


def write(module: ModuleText, path: Path, force: bool = False) -> bool:
    """Writes a module's text, whole or not at all, and the runtime that it needs beside it.

    Replaces a file that dsfc wrote and nobody edited; a file with the same bytes stays as it is.
    The runtime is written first: without the module it does no harm.

    Args:
        module: the module.
        path: where to.
        force: replace whatever regular file stands there.

    Returns:
        whether the module was written.

    Raises:
        DiagnosticError: E-OUTPUT (something else stands there), E-FILE (the system refused).
    """
    texts = {path: module.text}
    if module.runtime is not None:
        if path.name == module.runtime.name:
            raise _overwrite(path, "the runtime of the module has this name")
        texts = {path.with_name(module.runtime.name): module.runtime.text, **texts}
    new = [p for p, text in texts.items() if _differs(p, text.encode(), force)]
    for p in new:
        try:
            files.replace(p, texts[p].encode())
        except OSError as e:
            raise file_error(p, e) from e
    return path in new


def _differs(path: Path, data: bytes, force: bool) -> bool:
    """Whether a file is to be written, which may be; raises a DiagnosticError where it may not."""
    try:
        if path.is_symlink():
            raise _overwrite(path, "it is a symbolic link")
        if not path.exists():
            return True
        there = files.read(path)
        if there == data:
            return False
        reason = None if force else _kept(path, there)
    except OSError as e:
        raise file_error(path, e) from e
    if reason is not None:
        raise _overwrite(path, reason)
    return True


def _kept(path: Path, data: bytes) -> str | None:
    """Why a file with these bytes is not replaced without being told so, or None."""
    if not path.stat().st_mode & stat.S_IWUSR:
        return "it is read-only"
    there = origin(data)
    if there is None or not there.untouched:
        return "it was not written by dsfc, or has been edited since"
    return None


def _overwrite(path: Path, problem: str) -> DiagnosticError:
    return DiagnosticError((Overwrite(NOWHERE, path=str(path), problem=problem),))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
