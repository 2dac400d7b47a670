"""Runs kernels in C: compiles their text with the machine's compiler, once, and starts them.

The text of this file stands in emitted modules as it is; it needs the standard library and torch.

What is compiled lies in a folder that only its owner may write (`XDG_CACHE_HOME/dsfc`, or
`~/.cache/dsfc`), under a hash of the text, the flags, the compiler with its version, and the
processor. A library is written beside its place and moved there, so that several processes may
compile the same at once, and it is loaded only if its own hash is the one written down with it.
Nothing is compiled where the environment says `DSFC_C=0`.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import logging
import os
import platform
import shutil
import stat
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

_LOG = logging.getLogger("dsfc")
_COMPILERS = ("gcc", "clang", "cc")
_FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-fno-math-errno", "-fno-trapping-math", "-w")
# gcc's -O3 takes four times as long, and the kernels run a twentieth faster.
_GCC_FLAGS = ("-ftree-vectorize", "-fvect-cost-model=dynamic")
# Tried in order: the first that compiles is taken.
_WISHES = (("-march=native", "-fopenmp"), ("-march=native",), ("-fopenmp",), ())
_GIVEN = {torch.float16: "HALF_", torch.bfloat16: "BRAIN_"}
_SECONDS = 120


class _NoCompiler(Exception):
    """Why kernels in C do not run."""


@functools.cache
def _compiler() -> tuple[str, str]:
    """Returns the path of the compiler and what it says of its version.

    `CC` names another one than gcc, clang or cc.

    Raises:
        _NoCompiler: there is none, or it does not answer.
    """
    names = (os.environ["CC"],) if os.environ.get("CC") else _COMPILERS
    path = next((p for p in map(shutil.which, names) if p), None)
    if path is None:
        raise _NoCompiler(f"there is no C compiler ({', '.join(names)})")
    run = _run([path, "--version"])
    return path, run.stdout.split("\n", 1)[0]


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError) as e:
        raise _NoCompiler(f"{command[0]} does not run: {e}") from e


@functools.cache
def _processor() -> str:
    """Returns what tells this processor from one that has other instructions."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        lines = []
    wanted = ("model name", "flags", "Features", "CPU part")
    kept = sorted({line for line in lines if line.startswith(wanted)})
    return "\n".join([platform.machine(), platform.system(), *kept])


def _folder() -> Path:
    """Returns the folder of compiled kernels, which it makes.

    Raises:
        _NoCompiler: it cannot be made, or others may write there.
    """
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(base) / "dsfc"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        there = folder.lstat()
    except OSError as e:
        raise _NoCompiler(f"no folder for compiled kernels: {e}") from e
    others = stat.S_IWGRP | stat.S_IWOTH
    if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.getuid() or there.st_mode & others:
        raise _NoCompiler(f"others may write to {folder}: kernels compiled there are not trusted")
    return folder


def _library(text: str, defines: tuple[str, ...]) -> ctypes.CDLL:
    """Returns the library of a C text, compiled if it is not kept.

    Args:
        text: the whole text.
        defines: macros, as NAME=VALUE.

    Raises:
        _NoCompiler: it cannot be compiled or kept.
    """
    path, version = _compiler()
    flags = (*_FLAGS, *(_GCC_FLAGS if "clang" not in version else ()))
    parts = (text, *defines, *flags, path, version, _processor())
    name = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    folder = _folder()
    kept, proof = folder / f"{name}.so", folder / f"{name}.sha256"
    if not _is_whole(kept, proof):
        _LOG.info("compiling a kernel with %s into %s", path, folder)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".") as made:
            source, built = Path(made) / "kernel.c", Path(made) / "kernel.so"
            source.write_text(text, encoding="utf-8")
            _compile(path, [*flags, *(f"-D{d}" for d in defines)], source, built)
            sum_file = Path(made) / "sum"
            sum_file.write_text(_digest(built), encoding="utf-8")
            os.replace(built, kept)
            os.replace(sum_file, proof)
    try:
        return ctypes.CDLL(str(kept))
    except OSError as e:
        raise _NoCompiler(f"the compiled kernel does not load: {e}") from e


def _compile(path: str, flags: list[str], source: Path, built: Path) -> None:
    said = ""
    for wish in _WISHES:
        run = _run([path, *flags, *wish, str(source), "-o", str(built), "-lm"])
        if run.returncode == 0:
            return
        lines = run.stderr.strip().split("\n")
        said = said or next((x for x in lines if "error" in x), lines[0])
    raise _NoCompiler(f"{path} does not compile the kernel: {said}")


def _is_whole(kept: Path, proof: Path) -> bool:
    """Whether a library is there, as it was written."""
    try:
        return proof.read_text(encoding="utf-8") == _digest(kept)
    except OSError:
        return False


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


class _Native:
    """The C kernels of a module, each compiled for the sizes it is first started with.

    Args:
        header: what all kernels include.
        kernels: name → text of its function.
    """

    def __init__(self, header: str, kernels: dict[str, str]) -> None:
        self._header = header
        self._kernels = kernels
        self._functions: dict[tuple[object, ...], ctypes._NamedFuncPointer] = {}
        self._lock = threading.Lock()
        self._failed = ""

    def why_not(self, x: Tensor) -> str:
        """Returns why no kernel runs on a tensor; empty if one does."""
        if x.device.type != "cpu":
            return "kernels in C run on CPUs"
        return self.why_never()

    def why_never(self) -> str:
        """Returns why no kernel runs on this machine; empty as far as is known."""
        if os.environ.get("DSFC_C") == "0":
            return "DSFC_C=0"
        if self._failed:
            return self._failed
        try:
            _compiler()
            _folder()
        except _NoCompiler as e:
            self._failed = str(e)
            _LOG.warning("kernels in C do not run, torch does: %s", e)
        return self._failed

    def run(
        self,
        name: str,
        given: torch.dtype,
        real: torch.dtype,
        static: tuple[tuple[str, int], ...],
        tensors: Sequence[Tensor],
        dynamic: Sequence[int],
        work: int,
    ) -> bool:
        """Starts a kernel, and returns whether it ran.

        Args:
            name: of the kernel.
            given: dtype of the tensors that are not kept in `real`.
            real: what it computes in, float32 or float64.
            static: sizes that it is compiled for.
            tensors: in the order of its arguments.
            dynamic: sizes in their order.
            work: about how many operations; few are not worth a second thread.
        """
        key = (name, given, real, static)
        function = self._functions.get(key)
        if function is None:
            function = self._load(name, given, real, static, key)
            if function is None:
                return False
        numbers: list[int] = []
        for x in tensors:
            numbers.append(x.data_ptr())
            numbers += x.stride()
        threads = torch.get_num_threads() if work > 200_000 else 1
        numbers += (*dynamic, threads)
        if function((ctypes.c_int64 * len(numbers))(*numbers)):
            raise MemoryError(f"no memory for the kernel {name}")
        return True

    def _load(
        self,
        name: str,
        given: torch.dtype,
        real: torch.dtype,
        static: tuple[tuple[str, int], ...],
        key: tuple[object, ...],
    ) -> ctypes._NamedFuncPointer | None:
        with self._lock:
            if self._failed:
                return None
            defines = (
                f"REAL_IS_DOUBLE={int(real == torch.float64)}",
                f"GIVEN_IS={_GIVEN.get(given, 'REAL_')}",
                *(f"{n}={size}" for n, size in static),
            )
            try:
                library = _library(f"{self._header}\n{self._kernels[name]}", defines)
            except (_NoCompiler, OSError) as e:
                self._failed = str(e)
                _LOG.warning("kernels in C do not run, torch does: %s", e)
                return None
            function = library[name]
            function.restype = ctypes.c_int
            self._functions[key] = function
            return function
