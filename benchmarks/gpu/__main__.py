"""Everything there is to measure of kernels on a GPU: python -m benchmarks.gpu.

It goes on after whatever fails, writes what it has after every step, and ends with pictures.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.gpu.material import Subject

ROOT = Path(__file__).parents[2]
PARTS = ("first", "correct", "speed")

_FAILED = 1


def main(arguments: list[str] | None = None) -> int:
    """Measures, writes and draws; 1 if a kernel is wrong or something failed."""
    chosen = _arguments(arguments)
    # Nothing that was compiled before counts, nor what others tune.
    os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp(prefix="dsfc-gpu-"))
    if chosen.tiny:
        from benchmarks.gpu.interpreter import as_a_gpu

        as_a_gpu()
    run = _Run(chosen)
    for part in chosen.only or PARTS:
        for title, step in getattr(run, f"{part}_steps")():
            run.step(part, title, step)
    run.write()
    run.draw()
    wrong = [r for part in PARTS for r in run.document[part] if "wrong" in r or "failed" in r]
    for record in wrong:
        print(f"FAILED {json.dumps(record)[:400]}", file=sys.stderr)
    return _FAILED if wrong else 0


class _Run:
    """One run, and the document that it fills."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        import torch

        from benchmarks.gpu import clock, peers
        from benchmarks.gpu.material import subjects

        self._chosen, self._start = chosen, time.monotonic()
        self._tiny = chosen.tiny
        self.device = torch.device("cpu" if self._tiny else "cuda")
        self.dtypes = [getattr(torch, n) for n in chosen.dtype]
        if not self._tiny and not torch.cuda.is_available():
            raise SystemExit(
                "error: PyTorch finds no GPU here; --tiny runs in Triton's interpreter"
            )
        self.subjects = [_known(n) for n in chosen.spec] if chosen.spec else list(subjects())
        self.rate = clock.copy_rate(self.device, 1 << (16 if self._tiny else 29))
        self.document: dict[str, Any] = {
            "device": _device(self.device),
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "versions": {n: _version(n) for n in ("dsfc", "torch", "triton", "numpy")}
            | {"flash-linear-attention": peers.fla_version(), "python": platform.python_version()},
            "tiny": self._tiny,
            "copy bytes per second": self.rate,
            "first": [],
            "correct": [],
            "speed": [],
            "not run": [],
        }

    # --- steps -----------------------------------------------------------------------------------

    def first_steps(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """The questions of `first`."""
        from benchmarks.gpu.first import QUESTIONS, Bench, Question
        from benchmarks.gpu.material import subject

        bench = Bench(self.device, self.dtypes[0], self.rate, self._tiny)
        for number, question in enumerate(QUESTIONS, 1):

            def ask(question: Question = question, number: int = number) -> dict[str, Any]:
                record: dict[str, Any] = {"question": f"{number}. {question.text}"}
                of = subject(question.spec)
                if of is None or question.form not in of.forms:
                    return record | {"skipped": f"{question.spec} has no kernels yet"}
                return record | {"spec": of.name, "answers": question.ask(bench, of)}

            yield f"{number}. {question.text}", ask

    def correct_steps(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Every mixer with kernels, at many shapes and in all precisions."""
        from benchmarks.gpu.correct import check
        from benchmarks.gpu.material import Shape

        shapes = [Shape(1, 1, 1, 16), Shape(2, 37, 3, 64), Shape(1, 129, 2, 128)]
        shapes += [Shape(2, 1000, 4, 64), Shape(2, 2048, 4, 128), Shape(1, 4096, 16, 64)]
        if self._tiny:
            shapes = [Shape(1, 1, 1, 16), Shape(2, 5, 1, 16)]
        for of in self.subjects:
            for dtype in self.dtypes:
                for shape in shapes:
                    title = f"{of.name}, {shape}, {dtype}"
                    yield title, partial(check, of, shape, dtype, self.device)

    def speed_steps(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Every mixer, and its peer, from one row to 512 and from 512 tokens to 131,072."""
        from benchmarks.gpu import speed
        from benchmarks.gpu.material import Shape

        shapes = [Shape(8, length, 16, 128) for length in (2048, 16_384, 512, 4096)]
        shapes += [Shape(1, length, 1, 128) for length in (2048, 16_384, 131_072)]
        shapes += [Shape(1, length, 16, 128) for length in (2048, 16_384, 131_072)]
        shapes += [Shape(32, 2048, 16, 128), Shape(8, 2048, 32, 64)]
        if self._tiny:
            shapes = [Shape(1, 3, 1, 16), Shape(1, 7, 2, 16)]
        forms = sorted({f for s in self.subjects for f in s.forms}, key=lambda f: f.value)
        for shape in shapes:
            for form in forms:
                peer = partial(speed.peer, form, shape, self.dtypes[0], self.device)
                yield f"peer, {shape}", peer
            for of in self.subjects:
                mine = partial(speed.measure, of, shape, self.dtypes[0], self.device, self.rate)
                yield f"{of.name}, {shape}", mine

    # --- what is done with them ------------------------------------------------------------------

    def step(self, part: str, title: str, step: Callable[[], Any]) -> None:
        """Takes a step, unless time is up, and keeps its record, or how it failed."""
        if time.monotonic() - self._start > 60 * self._chosen.minutes:
            self.document["not run"].append(f"{part}: {title}")
            return
        print(f"{time.monotonic() - self._start:7.1f} s  {part}: {title}", flush=True)
        # Whatever stops one step, memory that is full or a compiler, must not stop the others.
        try:
            record = step()
        except Exception as error:
            record = {"title": title, "failed": f"{type(error).__name__}: {error}"[:2000]}
        self.document[part].append(record)
        self.write()

    @property
    def file(self) -> Path:
        """Where results lie: by device and day."""
        name = "".join(c if c.isalnum() else "-" for c in self.document["device"]["name"].lower())
        return Path(self._chosen.out) / f"{name}-{self.document['date'][:10]}.json"

    def write(self) -> None:
        """Writes the document, whole or not at all."""
        from benchmarks.record import write

        write(self.file, self.document)

    def draw(self) -> None:
        """Draws the times, if matplotlib is there."""
        from benchmarks.gpu.plot import draw

        try:
            print("wrote", self.file, *draw(self.document, self.file))
        except ImportError as error:
            print(f"wrote {self.file}; no pictures: {error}")


def _device(device: Any) -> dict[str, Any]:  # noqa: ANN401 - torch is imported late
    import torch

    if device.type != "cuda":
        return {"name": f"interpreter on {platform.machine()}"}
    found = torch.cuda.get_device_properties(device)
    return {
        "name": found.name,
        "capability": [found.major, found.minor],
        "processors": found.multi_processor_count,
        "memory": found.total_memory,
        "driver": torch.version.hip or torch.version.cuda,
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _known(name: str) -> Subject:
    from benchmarks.gpu.material import subject
    from dsfc import DiagnosticError

    try:
        found = subject(name)
    except DiagnosticError as error:
        raise SystemExit(f"error: --spec {name}: {error}") from None
    if found is None:
        raise SystemExit(f"error: --spec {name}: none of its scans has kernels yet")
    return found


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.gpu", description=__doc__)
    parser.add_argument("--only", action="append", choices=PARTS, help="this part; may repeat")
    parser.add_argument("--spec", action="append", help="this mixer; may repeat [all with kernels]")
    parser.add_argument(
        "--dtype",
        action="append",
        choices=["bfloat16", "float16", "float32"],
        help="the first is the one that is timed [bfloat16, float32, float16]",
    )
    parser.add_argument("--tiny", action="store_true", help="tiny sizes, in Triton's interpreter")
    parser.add_argument(
        "--minutes", type=float, default=1e9, help="start nothing after so many minutes"
    )
    parser.add_argument("--out", default=str(ROOT / "build" / "benchmarks" / "gpu"), help="folder")
    chosen = parser.parse_args(arguments)
    if chosen.dtype is None:
        chosen.dtype = ["bfloat16", "float32", "float16"]
    if chosen.tiny:
        os.environ["TRITON_INTERPRET"] = "1"
    return chosen


if __name__ == "__main__":
    sys.exit(main())
