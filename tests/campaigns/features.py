"""A table of what can be done with each of fifteen mixers, made by doing it.

Each cell runs a mixer through one feature and compares what comes out with what it should be; the
comparisons are those of the tests. A cell is *green*, *refused* with what dsfc says, or *failed*.
What `features.json` has of this source is not run again, but what failed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from datetime import date
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any

from shares import HERE, source_hash

sys.path[:0] = [str(HERE.parent / f) for f in ("backends/torch", "model", "programs", "specs")]

from elsewhere import MIXERS  # noqa: E402 - of a folder that was just named

DATA = HERE / "features.json"
VERSIONS = ("dsfc", "torch", "transformers", "onnx", "onnxruntime")
WIDTH = 16
SIZES = {"n": 4, "r": 4}

Cell = dict[str, Any]
"""Mixer and feature, the outcome and what was said, seconds, source, versions and day, as JSON."""


class Refused(Exception):
    """A module says that it cannot do this, and why."""


# --- what is done ---------------------------------------------------------------------------------


def layer(mixer: str, folder: Path) -> None:
    """A layer's maps and mixer are the mixer of the spec: values, gradients, parts, tokens."""
    from whole_layers import is_its_mixer

    import dsfc

    module = dsfc.import_module(dsfc.compile(mixer, out=folder / f"{mixer}.py"))
    layered = dsfc.compile(mixer, out=folder / f"{mixer}_layer.py", layer=True)
    is_its_mixer(module, dsfc.import_module(layered))


def transformers(mixer: str, folder: Path) -> None:
    """A model trains under autocast, and generates, with beams too, as it does without states."""
    from models import made, written
    from runs import (
        beams_are_those_without_a_cache,
        greedy_tokens_are_those_of_the_largest_logits,
        prompts,
        the_loss_falls,
    )

    path = written(folder / f"{mixer}_model", (mixer,))
    model = made(path)
    greedy_tokens_are_those_of_the_largest_logits(model, prompts(3, 7))
    beams_are_those_without_a_cache(model, prompts(3, 7), num_beams=3)
    the_loss_falls(path, prompts(4, 12))


def states(mixer: str, folder: Path) -> None:
    """Drafts, rollback, checkpoints and forks in any order are whole sequences, exact ones too."""
    from interleaving import interleave

    import dsfc

    module = dsfc.import_module(dsfc.compile(mixer, out=folder))
    for exact in (False, True):
        did = {doing for seed in range(12) for doing in interleave(module, seed, exact)}
        assert {"drafted", "checkpointed", "indexed", "repeated", "joined"} <= did


def context_parallel(mixer: str, folder: Path) -> None:
    """Four processes, and two, that share a sequence give what one gives, gradients too."""
    from dsfc.backends.torch.context import refusal
    from processes import PROCESS, run

    import dsfc
    from dsfc.validate.surface import surface

    path = dsfc.compile(mixer, out=folder, context_parallel=True)
    if refusal(dsfc.load(mixer).plan) is not None:
        sample = surface(dsfc.import_module(path)).sample(5, state=False)
        try:
            sample.layer(**sample.inputs, group=object())
        except ValueError as e:
            raise Refused(str(e)) from e
    run(PROCESS, [(str(path), None)], folder)


def fsdp(mixer: str, folder: Path) -> None:
    """A layer that two processes shard in bfloat16 is the layer of one, gradients too."""
    import inspect

    from processes import sharded

    import dsfc

    path = dsfc.compile(mixer, out=folder, layer=True)
    module = dsfc.import_module(path)
    (name,) = (n for n in module.__all__ if n.endswith("Layer"))
    known = inspect.signature(getattr(module, name)).parameters
    sizes = {n: size for n, size in SIZES.items() if n in known}
    sharded(path, name, {"d": WIDTH, **sizes}, folder)


def exported(mixer: str, folder: Path) -> None:
    """A program of `torch.export`, and one of a step, give what the layer gives, without dsfc."""
    _elsewhere(mixer, folder, "torch")


def onnx(mixer: str, folder: Path) -> None:
    """An ONNX file, and one of a step, give what the layer gives, without torch and dsfc."""
    _elsewhere(mixer, folder, "onnx")


def _elsewhere(mixer: str, folder: Path, to: str) -> None:
    from elsewhere import CLOSE, Case, outcome

    for step in (False, True):
        came = outcome(Case(mixer, to, step), folder)
        if "refused" in came:
            raise Refused(f"E-EXPORT: {came['refused']}")
        assert came["error"] < CLOSE, came


FEATURES: dict[str, Callable[[str, Path], None]] = {
    "layer": layer,
    "transformers": transformers,
    "states": states,
    "context parallel": context_parallel,
    "FSDP2": fsdp,
    "torch.export": exported,
    "ONNX": onnx,
}


# --- cells ----------------------------------------------------------------------------------------


def outcome(mixer: str, feature: str) -> tuple[str, str]:
    """Runs a feature of a mixer in this process; returns the outcome and what was said."""
    from dsfc.diagnostics.report import DiagnosticError

    with tempfile.TemporaryDirectory(prefix="dsfc-") as folder:
        try:
            FEATURES[feature](mixer, Path(folder))
        except DiagnosticError as e:
            return "refused", "; ".join(f"{d.code}: {d.message}" for d in e.diagnostics)
        except Refused as e:
            return "refused", str(e)
        except Exception as e:
            return "failed", f"{type(e).__name__}: {str(e)[-2000:]}"
    return "green", ""


def column(feature: str, mixers: Iterable[str]) -> Iterator[Cell]:
    """Yields the cells of a feature, all from one process; another goes on if that dies.

    Args:
        feature: of `FEATURES`.
        mixers: shipped ones.
    """
    waiting = list(mixers)
    about = {
        "source": source_hash(),
        "versions": {name: version(name) for name in VERSIONS},
        "day": date.today().isoformat(),
    }
    while waiting:
        words = [sys.executable, "-W", "ignore", str(Path(__file__).resolve()), "--here", feature]
        with (
            tempfile.TemporaryFile("w+") as told,
            subprocess.Popen(
                [*words, *waiting], stdout=subprocess.PIPE, stderr=told, text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            ) as child,
        ):  # fmt: skip
            assert child.stdout is not None
            for line in child.stdout:
                yield {"mixer": waiting.pop(0), "feature": feature, **json.loads(line), **about}
            if child.wait() and waiting:
                told.seek(0)
                died = {"outcome": "failed", "said": told.read()[-2000:], "seconds": 0}
                yield {"mixer": waiting.pop(0), "feature": feature, **died, **about}


def here(feature: str, mixers: Iterable[str]) -> None:
    """Runs cells of a column in this process, and prints each in a line."""
    with tempfile.TemporaryDirectory(prefix="dsfc-") as home:
        # Where transformers keeps the code of models that it loads; read when it is imported.
        os.environ["HF_HOME"] = os.environ["HF_MODULES_CACHE"] = home
        for mixer in mixers:
            began = time.perf_counter()
            with redirect_stdout(sys.stderr):
                ended, said = outcome(mixer, feature)
            seconds = round(time.perf_counter() - began)
            print(json.dumps({"outcome": ended, "said": said, "seconds": seconds}), flush=True)


def read() -> dict[tuple[str, str], Cell]:
    """Returns the cells that were run, by mixer and feature."""
    found = json.loads(DATA.read_text("utf-8")) if DATA.exists() else []
    return {(one["mixer"], one["feature"]): one for one in found}


def write(cells: dict[tuple[str, str], Cell]) -> None:
    """Writes cells in the order of the table, each on a line."""
    lines = (json.dumps(cells[at], ensure_ascii=False) for at in every() if at in cells)
    DATA.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def every() -> Iterator[tuple[str, str]]:
    """Yields mixer and feature of every cell, row by row."""
    return ((mixer, feature) for mixer in MIXERS for feature in FEATURES)


def main() -> None:
    """Runs the cells that are missing, a process for each column."""
    parser = argparse.ArgumentParser(description="Fills the table of features.")
    parser.add_argument("--only", choices=FEATURES, action="append", help="these columns")
    parser.add_argument("--known", action="store_true", help="keep what other sources settled")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="columns at once")
    parser.add_argument("--here", choices=FEATURES, help=argparse.SUPPRESS)
    parser.add_argument("mixers", nargs="*", metavar="MIXER", help="these rows; all by default")
    asked = parser.parse_args()
    if asked.here is not None:
        here(asked.here, asked.mixers)
        return
    cells, lock = read(), Lock()

    def settled(at: tuple[str, str]) -> bool:
        one = cells.get(at)
        same = one is not None and (asked.known or one["source"] == source_hash())
        return same and one["outcome"] != "failed"

    def fill(feature: str) -> None:
        mixers = [m for m in asked.mixers or MIXERS if not settled((m, feature))]
        for one in column(feature, mixers):
            with lock:
                cells[one["mixer"], feature] = one
                write(cells)
                said = one["said"][-300:]
                print(one["mixer"], feature, one["outcome"], one["seconds"], said, flush=True)

    with ThreadPoolExecutor(asked.jobs) as pool:
        for _ in pool.map(fill, asked.only or FEATURES):
            pass


if __name__ == "__main__":
    main()
