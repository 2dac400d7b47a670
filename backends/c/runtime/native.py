"""Compiles kernels in C with the machine's compiler, once, and starts them.

The text of this file stands in emitted modules as it is; it needs the standard library and torch.

A compiled kernel lies in a folder that only its owner may write (`XDG_CACHE_HOME/dsfc`, or
`~/.cache/dsfc`), under a hash of its text, the flags, the compiler with its version, and the
processor. A library is written beside its place and moved there, so that several processes may
compile the same kernel at once, and it is loaded only if its own hash is the one written down with
it. Nothing is compiled where the environment says `DSFC_C=0`. `DSFC_CC`, then `CC`, name a compiler
other than gcc, clang or cc, with its first arguments; no shell reads them.
"""

from __future__ import annotations

import array
import contextlib
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
# No fast-math: exp(nan) must stay nan. Products may be contracted into sums, under gcc as under
# clang: half of the speed of a product of matrices; no function of the header relies on rounding
# between the two.
_FLAGS: tuple[str, ...] = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-w")
_FLAGS += ("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast")
# gcc's -O3 takes four times as long, and the kernels run a twentieth faster.
# Partial redundancy elimination (pre) keeps gcc from vectorising loops over softplus. Searching
# for common subexpressions once more (gcse) takes an eighth of the time, and gains nothing.
_GCC_FLAGS = ("-ftree-vectorize", "-fvect-cost-model=dynamic", "-fno-tree-pre", "-fno-gcse")
# Tried in order: the first that compiles is taken.
_WISHES = (
    ("-march=native", "-fopenmp"),
    ("-march=native", "-fopenmp-simd"),
    ("-fopenmp",),
    ("-fopenmp-simd",),
    (),
)
# A compiler may know OpenMP and lack its library: that is to fail here, not where kernels start.
_LINKED = ("-Wl,-z,defs",) if platform.system() == "Linux" else ()
_STORED_AS = {torch.float16: "HALF_", torch.bfloat16: "BRAIN_", torch.float32: "SINGLE_"}
_SECONDS = 120
_WORTH_THREADS = 200_000  # operations; a second thread takes about 5 µs to start


class _NoKernels(Exception):
    """Why kernels in C do not run."""


# --- the compiler ---------------------------------------------------------------------------------


def _compiler() -> tuple[tuple[str, ...], str]:
    """Returns the command of the compiler, and what it says of its version.

    Raises:
        _NoKernels: no compiler is there, or it does not answer.
    """
    for variable in ("DSFC_CC", "CC"):
        if os.environ.get(variable):
            return _asked_compiler(f"{variable}={os.environ[variable]}", (os.environ[variable],))
    return _asked_compiler(", ".join(_COMPILERS), _COMPILERS)


@functools.cache
def _asked_compiler(wanted: str, commands: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    for command in commands:
        # A path that holds a space, or a command with arguments.
        first, *rest = [command] if shutil.which(command) else command.split() or [""]
        path = shutil.which(first)
        if path is not None:
            run = _run((path, *rest, "--version"))
            if run.returncode != 0:
                raise _NoKernels(f"{path} --version ends with exit code {run.returncode}")
            return (path, *rest), run.stdout.split("\n", 1)[0].strip()
    raise _NoKernels(f"no C compiler is there ({wanted})")


def _run(command: Sequence[str], folder: str | None = None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as e:
        raise _NoKernels(f"{command[0]} does not run: {e}") from e


@functools.cache
def _processor() -> str:
    """Returns what tells this processor from one that has other instructions."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        lines = []
    wanted = ("model name", "flags", "Features", "CPU part", "isa")
    kept = sorted({line for line in lines if line.startswith(wanted)})
    return "\n".join([platform.system(), platform.machine(), platform.processor(), *kept])


# --- the folder of compiled kernels ---------------------------------------------------------------


def _cache_folder() -> Path:
    """Returns the folder of compiled kernels, and makes it.

    Raises:
        _NoKernels: it cannot be made, or others may write there.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(base if os.path.isabs(base) else os.path.expanduser("~/.cache")) / "dsfc"
    if not hasattr(os, "getuid"):
        raise _NoKernels(f"kernels in C do not run on {platform.system()}")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = folder.resolve(strict=True)
        own = folder.stat()
        above = [(f, f.stat()) for f in folder.parents]
    except (OSError, RuntimeError) as e:
        raise _NoKernels(f"no folder for compiled kernels: {e}") from e
    if not stat.S_ISDIR(own.st_mode) or own.st_uid != os.getuid():
        raise _NoKernels(f"{folder} is no folder of this user: kernels there are not trusted")
    if own.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _NoKernels(f"others may write to {folder}: kernels there are not trusted")
    for parent, about in above:
        sticky = about.st_mode & stat.S_ISVTX
        if about.st_uid not in (0, os.getuid()) or (about.st_mode & stat.S_IWOTH and not sticky):
            raise _NoKernels(f"others may rename what lies in {parent}, above {folder}")
    return folder


def _library(text: str, defines: tuple[str, ...]) -> ctypes.CDLL:
    """Returns the library of a C text, and compiles it unless the cache has it.

    Args:
        text: the whole text.
        defines: macros, as NAME=VALUE.

    Raises:
        _NoKernels: it cannot be compiled, kept or loaded.
    """
    command, version = _compiler()
    flags = (*_flags(version), *(f"-D{d}" for d in defines))
    parts = (text, *flags, *command, version, _processor())
    name = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    folder = _cache_folder()
    library, proof = folder / f"{name}.so", folder / f"{name}.sha256"
    try:
        if not _is_whole(library, proof):
            _announce(command, folder)
            with tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as draft:
                Path(draft, "kernel.c").write_text(text, encoding="utf-8")
                _compile(command, flags, draft)
                Path(draft, "sha256").write_text(_digest(Path(draft, "kernel.so")))
                os.replace(Path(draft, "kernel.so"), library)
                os.replace(Path(draft, "sha256"), proof)
        return ctypes.CDLL(str(library))
    except OSError as e:
        raise _NoKernels(f"the compiled kernel cannot be kept or loaded: {e}") from e


def _flags(version: str) -> tuple[str, ...]:
    """Returns the flags of kernels for a compiler of which the version is known."""
    return _FLAGS if "clang" in version else (*_FLAGS, *_GCC_FLAGS)


@functools.cache
def _announce(command: tuple[str, ...], folder: Path) -> None:
    """Says once a process that a compiler runs."""
    _LOG.info("kernels are compiled by %s into %s", " ".join(command), folder)


def _compile(command: tuple[str, ...], flags: tuple[str, ...], folder: str) -> tuple[str, ...]:
    """Makes kernel.so of kernel.c in a folder, and returns which of `_WISHES` the compiler met."""
    said = ""
    for wish in _WISHES:
        files = ("kernel.c", "-o", "kernel.so", "-lm", *_LINKED)
        run = _run((*command, *flags, *wish, *files), folder)
        if run.returncode == 0:
            return wish
        lines = run.stderr.strip().split("\n")
        said = said or next((x for x in lines if "error" in x), lines[0])
    raise _NoKernels(f"{' '.join(command)} does not compile the kernel: {said}")


def _is_whole(library: Path, proof: Path) -> bool:
    """Returns whether a library is there, as it was written."""
    try:
        return proof.read_text(encoding="utf-8", errors="replace") == _digest(library)
    except OSError:
        return False


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


# --- starting kernels -----------------------------------------------------------------------------

_IN_FORK = threading.Event()


def _register_fork() -> None:
    """Makes kernels run on one thread in forked processes, which have none of their parent's."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_IN_FORK.set)


_register_fork()


_Key = tuple[str, torch.dtype, torch.dtype, tuple[tuple[str, int], ...]]
"""A compiled kernel: name, dtype of tensors, dtype of sums, static sizes."""


class _Native:
    """The C kernels of a module, each compiled for the sizes with which it first starts.

    Args:
        header: what all kernels include.
        kernels: name → text of its function `int name(const int64_t *)`.
        following: kernel → one that mostly starts after it, and the sizes that that one is compiled
            for: they are compiled at once, the second in the background.
    """

    def __init__(
        self,
        header: str,
        kernels: dict[str, str],
        following: dict[str, tuple[str, tuple[str, ...]]] | None = None,
    ) -> None:
        self._header = header
        self._kernels = kernels
        self._following = following or {}
        self._underway: dict[_Key, threading.Thread] = {}
        self._functions: dict[_Key, ctypes._NamedFuncPointer] = {}
        self._lock = threading.Lock()
        self._reason = ""
        self._has_compiler = False

    def why_not(self, x: Tensor) -> str:
        """Returns why no kernel runs on a tensor; empty if one does."""
        return "kernels in C run on CPUs" if x.device.type != "cpu" else self.why_never()

    def why_never(self) -> str:
        """Returns why no kernel runs on this machine; empty as far as is known."""
        if os.environ.get("DSFC_C") == "0":
            return "DSFC_C=0"
        if not self._reason and not self._has_compiler:
            try:
                _compiler()
                _cache_folder()
                self._has_compiler = True
            except _NoKernels as e:
                self._refuse(e)
        return self._reason

    def run(
        self,
        name: str,
        given: torch.dtype,
        real: torch.dtype,
        static: tuple[tuple[str, int], ...],
        reads: Sequence[Tensor],
        writes: Sequence[Tensor],
        dynamic: Sequence[int],
        work: int,
    ) -> bool:
        """Starts a kernel, and returns whether it ran.

        Args:
            name: of the kernel.
            given: dtype of the tensors that are not kept in `real`.
            real: what it computes in, float32 or float64.
            static: sizes that it is compiled for.
            reads: in the order of its arguments; any strides.
            writes: in their order; dense.
            dynamic: sizes in their order.
            work: about how many operations; few are not worth a second thread.

        Raises:
            MemoryError: the kernel got no memory for its tiles.
        """
        key = (name, given, real, static)
        function = self._functions.get(key) or self._load(key)
        if function is None:
            return False
        numbers: list[int] = []
        for x in reads:
            numbers.append(x.data_ptr())
            numbers += x.stride()
        numbers += [x.data_ptr() for x in writes]
        numbers += dynamic
        alone = work < _WORTH_THREADS or _IN_FORK.is_set()
        numbers.append(1 if alone else torch.get_num_threads())
        # An array of ctypes takes four times as long to fill.
        call = array.array("q", numbers)
        if function(call.buffer_info()[0]):
            raise MemoryError(f"no memory for the kernel {name}")
        return True

    def _load(self, key: _Key) -> ctypes._NamedFuncPointer | None:
        name, given, real, static = key
        with self._lock:
            if self.why_never():
                return None
            if key in self._underway:
                self._underway.pop(key).join()
            if name in self._following:
                after, names = self._following[name]
                sizes = dict(static)
                self._compile_ahead((after, given, real, tuple((n, sizes[n]) for n in names)))
            try:
                function = self._compiled(key)[name]
            except _NoKernels as e:
                self._refuse(e)
                return None
            function.restype, function.argtypes = ctypes.c_int, (ctypes.c_void_p,)
            self._functions[key] = function
            return function

    def _compiled(self, key: _Key) -> ctypes.CDLL:
        """Returns the library of a kernel."""
        name, given, real, static = key
        stored_as = "REAL_" if given == real else _STORED_AS[given]
        defines = (
            f"REAL_IS_DOUBLE={int(real == torch.float64)}",
            f"GIVEN_IS={stored_as}",
            *(f"{n}={size}" for n, size in static),
        )
        return _library(f"{self._header}\n{self._kernels[name]}", defines)

    def _compile_ahead(self, key: _Key) -> None:
        """Compiles a kernel in the background; what goes wrong is said when the kernel starts."""

        def compile_quietly() -> None:
            with contextlib.suppress(_NoKernels):
                self._compiled(key)

        if (os.cpu_count() or 1) > 1 and key not in self._functions:
            self._underway[key] = threading.Thread(target=compile_quietly, name="dsfc-compiles")
            self._underway[key].start()

    def _refuse(self, reason: _NoKernels) -> None:
        self._reason = str(reason)
        _LOG.warning("kernels in C do not run, torch does: %s", reason)
