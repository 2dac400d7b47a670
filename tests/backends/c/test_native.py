"""The loader compiles once, trusts its own folder alone, and says why where it does not run."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from dsfc.backends.c.runtime.native import _Native

TEXT = """
#include <stdint.h>
int twice(const int64_t *given_) {
  const float *x = (const float *)given_[0];
  float *y = (float *)given_[2];
  const int threads = (int)given_[4];
  (void)threads;
#pragma omp parallel for num_threads(threads)
  for (int64_t i = 0; i < given_[3]; i++) y[i] = FACTOR * x[i * given_[1]];
  return 0;
}
"""
LARGE = 10**9  # work that is worth threads


def real_compiler() -> str:
    path = next((p for p in map(shutil.which, ("gcc", "clang", "cc")) if p), None)
    if path is None:
        pytest.skip("no C compiler is there")
    return path


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of compiled kernels, empty; the compiler is a script that counts its calls."""
    script = tmp_path / "cc"
    script.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\nexec {real_compiler()} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("DSFC_CC", str(script))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DSFC_C", raising=False)
    yield tmp_path / "cache" / "dsfc"


def start(native: _Native, work: int = 1, factor: int = 2) -> bool:
    x, y = torch.arange(5.0), torch.empty(5)
    f32 = torch.float32
    ran = native.run("twice", f32, f32, (("FACTOR", factor),), (x,), (y,), (5,), work)
    assert not ran or torch.equal(y, factor * x)
    return ran


def fresh() -> _Native:
    return _Native("", {"twice": TEXT})


def compilations(folder: Path) -> int:
    calls = folder.parent.parent / "calls"
    return calls.read_text().count("kernel.c") if calls.exists() else 0


def test_a_kernel_is_compiled_once_for_its_sizes(folder: Path) -> None:
    native = fresh()
    assert start(native) and start(native) and start(fresh())
    assert compilations(folder) == 1
    assert start(native, factor=3)
    assert compilations(folder) == 2


def test_the_kernel_that_follows_is_compiled_in_the_background(folder: Path) -> None:
    kernels = {"twice": TEXT, "after": TEXT.replace("twice", "after")}
    native = _Native("", kernels, {"twice": ("after", ("FACTOR",))})
    assert start(native)
    while len(list(folder.glob("*.sha256"))) < 2:
        time.sleep(0.01)
    f32 = torch.float32
    x, y = torch.arange(5.0), torch.empty(5)
    assert native.run("after", f32, f32, (("FACTOR", 2),), (x,), (y,), (5,), 1)
    assert torch.equal(y, 2 * x)
    assert compilations(folder) == 2


def test_the_folder_is_its_owners_and_holds_no_drafts(folder: Path) -> None:
    assert start(fresh())
    assert folder.stat().st_mode & 0o777 == 0o700
    assert sorted(p.suffix for p in folder.iterdir()) == [".sha256", ".so"]


@pytest.mark.share(2)
@pytest.mark.parametrize("damage", ["truncated", "changed", "no proof", "not text"])
def test_a_damaged_library_is_compiled_anew(folder: Path, damage: str) -> None:
    assert start(fresh())
    (library,) = folder.glob("*.so")
    (proof,) = folder.glob("*.sha256")
    data = library.read_bytes()
    # By another file, as a library that this process has loaded must keep its bytes.
    library.unlink()
    library.write_bytes(data[: len(data) // 2] if damage == "truncated" else data)
    if damage == "changed":
        library.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    if damage == "no proof":
        proof.unlink()
    if damage == "not text":
        proof.write_bytes(b"\xff\xfe")
    assert start(fresh())
    assert compilations(folder) == 2
    assert start(fresh())
    assert compilations(folder) == 2


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_may_write_is_refused(folder: Path, mode: int) -> None:
    folder.mkdir(parents=True)
    folder.chmod(mode)
    native = fresh()
    assert not start(native)
    assert native.why_never() == (f"others may write to {folder}: kernels there are not trusted")
    assert compilations(folder) == 0


def test_a_folder_below_one_that_others_may_write_is_refused(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True)
    folder.parent.chmod(0o777)
    native = fresh()
    assert not start(native)
    assert native.why_never().startswith("others may rename what lies in")


@pytest.mark.skipif(os.getuid() != 0, reason="another user's folder takes root to make")
def test_a_folder_of_another_user_is_refused(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True)
    os.chown(folder, 12345, 12345)
    native = fresh()
    assert not start(native)
    assert "is no folder of this user" in native.why_never()


def test_nothing_is_compiled_or_started_where_the_environment_forbids_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSFC_C", "0")
    native = fresh()
    assert not start(native)
    assert native.why_never() == "DSFC_C=0"
    assert compilations(folder) == 0 and not folder.exists()


@pytest.mark.ci
def test_no_compiler_is_a_reason_and_no_error(tmp_path: Path) -> None:
    # In a process of its own, as a process looks for its compiler once.
    program = (
        "from dsfc.backends.c.runtime.native import _Native; print(_Native('', {}).why_never())"
    )
    unset = {k: v for k, v in os.environ.items() if k not in ("DSFC_CC", "CC")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=unset | {"PATH": str(tmp_path / "empty")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "no C compiler is there (gcc, clang, cc)"


def test_a_compiler_that_is_named_and_not_there_is_not_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DSFC_CC", "no-such-compiler")
    native = fresh()
    assert not start(native)
    assert native.why_never() == "no C compiler is there (DSFC_CC=no-such-compiler)"


def test_a_text_that_does_not_compile_is_a_reason_and_no_error() -> None:
    native = _Native("", {"twice": "int twice(void) { return nonsense; }"})
    assert not start(native)
    assert "does not compile the kernel" in native.why_never()


def test_no_shell_reads_the_name_of_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSFC_CC", f"cc; touch {tmp_path}/touched")
    assert not start(fresh())
    assert not (tmp_path / "touched").exists()


def test_a_compiler_without_openmp_and_native_code_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tmp_path / "plain"
    plain.write_text(
        '#!/bin/sh\nfor x in "$@"; do case $x in -fopenmp*|-march=*) exit 1;; esac; done\n'
        f'exec {real_compiler()} "$@"\n'
    )
    plain.chmod(0o755)
    monkeypatch.setenv("DSFC_CC", str(plain))
    assert start(fresh(), LARGE)


def test_another_version_of_the_compiler_compiles_anew(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert start(fresh())
    later = tmp_path / "later" / "cc"
    later.parent.mkdir()
    later.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "cc 99" && exit 0\nexec {real_compiler()} "$@"\n'
    )
    later.chmod(0o755)
    monkeypatch.setenv("DSFC_CC", str(later))
    assert start(fresh())
    assert len(list(folder.glob("*.so"))) == 2


def _in_child() -> None:
    os._exit(0 if start(fresh(), LARGE) else 1)


def exit_codes(count: int) -> list[int | None]:
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=_in_child) for _ in range(count)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    codes = [child.exitcode for child in children]
    for child in children:
        child.kill()
    return codes


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_eight_processes_compile_the_same_kernel_at_once(folder: Path) -> None:
    assert exit_codes(8) == [0] * 8
    assert sorted(p.suffix for p in folder.iterdir()) == [".sha256", ".so"]
    before = compilations(folder)
    assert start(fresh())
    assert compilations(folder) == before


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_starts_kernels_after_its_parent_used_threads() -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert start(fresh(), LARGE)
        assert exit_codes(1) == [0]
    finally:
        torch.set_num_threads(threads)
