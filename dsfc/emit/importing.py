"""Imports emitted modules by path, any number of versions side by side.

The name in `sys.modules` is made of the file's path and its bytes: the same file gives the same
module object again, an edited one gives a second module and leaves the first alone. Nothing is
cached on disk. `importlib.reload`, `copy` and `pickle` work as for any other module.

PyTorch keeps the first operators of a name, and an edited file names the operators of the file it
was made of. So of two texts that name the same ones, the second registers its own: NAMESPACE is
another one there.

A module may import its runtime from a file beside it, whose name holds a hash of its text. That
file is found though its folder is not on Python's path.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from dsfc import files

_PREFIX = "dsfc_emitted_"
_RUNTIME = re.compile(rb"^    from (dsfc_runtime_[0-9a-f]{12}) import ", re.MULTILINE)
_NAMESPACE = re.compile(rb"^NAMESPACE = ['\"](\w+)['\"]", re.MULTILINE)


def import_module(path: str | os.PathLike[str]) -> ModuleType:
    """Returns the module of an emitted file. Importing runs the file, as `import` does.

    Args:
        path: the `.py` file that `dsfc.compile` wrote.

    Raises:
        ImportError: there is no such file, or it is a spec that is to be compiled first, or its
            runtime is not beside it.
        Exception: whatever the file itself raises, torch missing for example.
    """
    file = Path(path).resolve()
    if file.suffix != ".py":
        hint = "; compile it first" if file.suffix == ".dsf" else ""
        raise ImportError(f"{file} is not an emitted module{hint}", path=str(file))
    try:
        content = files.read(file)
    except OSError as e:
        raise ImportError(f"{file}: {e.strerror or e}", path=str(file)) from e
    digest = hashlib.sha256(str(file).encode("utf-8", "surrogatepass") + b"\0" + content)
    stem = re.sub(r"\W", "_", file.stem)  # a dot would make a package of it
    name = f"{_PREFIX}{stem}_{digest.hexdigest()[:16]}"
    _FINDER.files[name] = file
    if (runtime := _RUNTIME.search(content)) is not None:
        shared = runtime[1].decode()
        beside = file.with_name(f"{shared}.py")
        if not beside.is_file():
            problem = f"its runtime {beside.name} is not beside it; compile it again"
            raise ImportError(f"{file}: {problem}", path=str(beside))
        _FINDER.files.setdefault(shared, beside)
    if _FINDER not in sys.meta_path:
        sys.meta_path.append(_FINDER)
    return importlib.import_module(name)


class _Loader(SourceFileLoader):
    """Compiles the source every time: a byte-code cache goes by a clock of whole seconds."""

    def get_code(self, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        return self.source_to_code(_with_its_own_operators(self.get_data(path)), path)


_OWNERS: dict[bytes, str] = {}
"""The text that registered each namespace of operators first, by its hash."""


def _with_its_own_operators(content: bytes) -> bytes:
    """Renames the namespace of a text if another text, or a plain import, has it already."""
    namespace = _NAMESPACE.search(content)
    if namespace is None:
        return content
    name, digest = namespace[1], hashlib.sha256(content).hexdigest()
    if name not in _OWNERS and not _is_imported(name.decode()):
        _OWNERS[name] = digest
    if _OWNERS.get(name) == digest:
        return content
    return re.sub(rb"\b" + name + rb"\b", name + b"_" + digest[:8].encode(), content)


def _is_imported(namespace: str) -> bool:
    """Whether a module that `import` found has this namespace: of which text, nobody can say."""
    known = [vars(m) for m in list(sys.modules.values()) if isinstance(m, ModuleType)]
    return any(names.get("NAMESPACE") == namespace for names in known)


class _Finder(MetaPathFinder):
    """Finds what `import_module` was asked for, so that it can be found again by its name."""

    def __init__(self) -> None:
        self.files: dict[str, Path] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = self.files.get(fullname)
        if file is None:
            return None
        return spec_from_file_location(fullname, file, loader=_Loader(fullname, str(file)))


_FINDER = _Finder()
