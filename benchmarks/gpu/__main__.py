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
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.gpu.material import Subject

ROOT = Path(__file__).parents[2]
PARTS = ("compile", "correct", "speed", "first")
SIDE_BY_SIDE = ("compile", "correct")
"""Parts that take no times, so that `--jobs` processes may do them at once."""

_SHARE = 0.45
"""The share of the time that processes side by side may take, if a compiler among them hangs."""

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
    parts = chosen.only or PARTS
    if chosen.jobs > 1:
        run.side_by_side([part for part in parts if part in SIDE_BY_SIDE])
    for part in parts:
        if chosen.jobs > 1 and part in SIDE_BY_SIDE:
            continue
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
        order = list(peers.PEERS)  # what decides most comes first
        self.subjects.sort(key=lambda s: order.index(s.name) if s.name in order else len(order))
        self.rate = clock.copy_rate(self.device, 1 << (16 if self._tiny else 29))
        self.document: dict[str, Any] = {
            "device": _device(self.device),
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "versions": {n: _version(n) for n in ("dsfc", "torch", "triton", "numpy")}
            | {"flash-linear-attention": peers.fla_version(), "python": platform.python_version()},
            "tiny": self._tiny,
            "copy bytes per second": self.rate,
            **{part: [] for part in PARTS},
            "not run": [],
        }
        if chosen.resume:
            self._take_up()

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

        shapes = [Shape(2, 37, 3, 64), Shape(2, 1000, 4, 128)]
        if not self._chosen.quick:
            shapes += [Shape(1, 1, 1, 16), Shape(1, 129, 2, 128), Shape(2, 1000, 4, 64)]
            shapes += [Shape(2, 2048, 4, 128), Shape(1, 4096, 16, 64)]
        if self._tiny:
            shapes = [Shape(1, 1, 1, 16), Shape(2, 5, 1, 16)]
        for of in self.subjects:
            for dtype in self.dtypes:
                for shape in shapes:
                    title = f"{of.name}, {shape}, {dtype}"
                    yield title, partial(check, of, shape, dtype, self.device)

    def compile_steps(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Starts every mixer and its peer once, so that nothing compiles while times are taken."""
        from benchmarks.gpu import speed
        from benchmarks.gpu.material import Shape

        shape = Shape(1, 3, 1, 16) if self._tiny else Shape(8, 2048, 16, 128)
        for of in self.subjects:
            step = partial(speed.compiled, of, shape, self.dtypes[0], self.device)
            yield f"{of.name}, {shape}", step

    def speed_steps(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Every mixer, and beside it its peer, of 1 to 512 rows and 512 to 131,072 tokens."""
        from benchmarks.gpu import peers, speed
        from benchmarks.gpu.material import Shape

        shapes = [Shape(8, 2048, 16, 128), Shape(1, 131_072, 1, 128), Shape(8, 2048, 32, 64)]
        if not self._chosen.quick:
            shapes += [Shape(8, length, 16, 128) for length in (16_384, 512, 4096)]
            shapes += [Shape(1, length, 1, 128) for length in (2048, 16_384)]
            shapes += [Shape(1, length, 16, 128) for length in (2048, 16_384, 131_072)]
            shapes += [Shape(32, 2048, 16, 128)]
        if self._tiny:
            shapes = [Shape(1, 3, 1, 16), Shape(1, 7, 2, 16)]
        for shape in shapes:
            for of in self.subjects:
                mine = partial(speed.measure, of, shape, self.dtypes[0], self.device, self.rate)
                yield f"{of.name}, {shape}", mine
                if of.name in peers.PEERS:
                    peer = partial(speed.peer, of.name, shape, self.dtypes[0], self.device)
                    yield f"peer of {of.name}, {shape}", peer

    # --- what is done with them ------------------------------------------------------------------

    def step(self, part: str, title: str, step: Callable[[], Any]) -> None:
        """Takes a step, unless time is up, and keeps its record, or how it failed."""
        if title in self._titles(part):
            return
        if self._left() <= 0:
            self.document["not run"].append(f"{part}: {title}")
            return
        print(f"{self._elapsed():7.1f} s  {part}: {title}", flush=True)
        # Whatever stops one step, memory that is full or a compiler, must not stop the others.
        try:
            record = step()
        except Exception as error:
            record = {"failed": f"{type(error).__name__}: {error}"[:2000]}
        self.document[part].append({"title": title, **record})
        self.write()

    def side_by_side(self, parts: Sequence[str]) -> None:
        """Has processes of their own do parts, one process for each mixer."""
        from benchmarks.gpu.processes import documents

        own = ["--dtype", *self._chosen.dtype, *(["--quick"] if self._chosen.quick else [])]
        own += ["--tiny"] if self._tiny else []
        own += [x for part in parts for x in ("--only", part)]
        missing = [
            title
            for part in parts
            for title, _ in getattr(self, f"{part}_steps")()
            if title not in self._titles(part)
        ]
        names = list(dict.fromkeys(title.partition(",")[0] for title in missing))
        folder = Path(self._chosen.out) / "parts"
        until = self._left() * (1 - _SHARE)
        left = partial(self._left, until)
        for name, found in documents(names, own, folder, self._chosen.jobs, left):
            print(f"{self._elapsed():7.1f} s  {name}: {', '.join(parts)}", flush=True)
            for part in parts:
                known = self._titles(part)
                self.document[part] += [r for r in found.get(part, []) if r["title"] not in known]
            self.document["not run"] += found["not run"]
            self.write()

    def _titles(self, part: str) -> set[str]:
        return {r["title"] for r in self.document[part]}

    def _elapsed(self) -> float:
        return time.monotonic() - self._start

    def _left(self, spared: float = 0) -> float:
        """Seconds until nothing more is started, less those that are spared for what follows."""
        return 60 * float(self._chosen.minutes) - self._elapsed() - spared

    def _take_up(self) -> None:
        """Takes the records of a run of today on the same device, but those of what failed."""
        if not self.file.is_file():
            return
        before = json.loads(self.file.read_text(encoding="utf-8"))
        if before["versions"] != self.document["versions"]:
            raise SystemExit(f"error: --resume: {self.file} was measured with other versions")
        for part in PARTS:
            self.document[part] = [r for r in before[part] if "failed" not in r]

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
        "CUDA or HIP": torch.version.hip or torch.version.cuda,
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
        action="extend",
        nargs="+",
        choices=["bfloat16", "float16", "float32"],
        help="the first is the one that is timed [bfloat16, float32, float16]",
    )
    parser.add_argument("--tiny", action="store_true", help="tiny sizes, in Triton's interpreter")
    parser.add_argument(
        "--minutes", type=float, default=1e9, help="start nothing after so many minutes"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, help="processes that compile and check side by side [1]"
    )
    parser.add_argument("--quick", action="store_true", help="the shapes that decide most")
    parser.add_argument(
        "--resume", action="store_true", help="go on where a run of today in the folder stopped"
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
