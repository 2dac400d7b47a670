"""Measures what the cost model of emitted modules needs, and how well its choices fare.

`python -m benchmarks.calibrate` times the forward operators of one spec per form in all modes, on
one thread, over a grid of batch, length and sizes; fits seconds per call, operation and word to
the plan's counts; prints the entry of `MACHINES` in the torch backend, and every case in which the
mode chosen by that entry takes much longer than the fastest. Times are the least of many runs, so
that other processes matter little. With `--read` it does so for recorded times.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks import emitted, record
from benchmarks.emitted import ROOT

FILE = ROOT / "benchmarks" / "results" / "modes.json"
LENGTHS = (1, 4, 16, 64, 256, 1024)
BATCHES = (1, 8)
# One spec per form, with and without a decay, real and complex; a small size and a usual one.
SPECS: Mapping[str, tuple[Mapping[str, int], ...]] = {
    "normalized_attn": ({"d": 32, "h": 4}, {"d": 256, "h": 4}),
    "retnet": ({"d": 32, "h": 4}, {"d": 256, "h": 4}),
    "gla": ({"d": 32, "h": 4}, {"d": 256, "h": 4}),
    "deltanet": ({"d": 32, "h": 4}, {"d": 256, "h": 4}),
    "gated_deltanet": ({"d": 32, "h": 4}, {"d": 256, "h": 4}),
    "s6": ({"d": 32, "n": 8}, {"d": 256, "n": 16}),
    "rg_lru": ({"d": 32}, {"d": 512}),
    "s4d": ({"d": 16, "n": 16}, {"d": 128, "n": 64}),
    "lru": ({"d": 32, "n": 32}, {"d": 256, "n": 256}),
    "mega_ema": ({"d": 32, "n": 8}, {"d": 256, "n": 16}),
}
Rates = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Case:
    """One shape of one mixer.

    Attributes:
        spec: name of the spec.
        shape: the length, then the sizes of the operator's state.
        seconds: of the forward operator, by mode.
    """

    spec: str
    shape: tuple[int, ...]
    seconds: Mapping[str, float]


class _Caught(TorchDispatchMode):
    """Keeps the arguments of a module's forward operator."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self.given: dict[str, Any] = {}

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        if func.namespace.startswith("dsfc_"):
            names = [a.name for a in func._schema.arguments]
            self.given = dict(zip(names, args, strict=True))
        return func(*args, **(kwargs or {}))


def arguments(
    module: ModuleType, sizes: Mapping[str, int], batch: int, length: int
) -> dict[str, Any]:
    """Returns what a layer of the sizes gives its forward operator for random inputs."""
    layer = emitted.layer(module, **sizes)
    caught = _Caught()
    with torch.no_grad(), caught:
        layer(torch.randn(batch, length, sizes["d"]))
    return caught.given


def predicted(module: ModuleType, shape: Sequence[int], rates: Rates) -> dict[str, float]:
    """Returns the seconds that the module's own counts and these rates give each mode."""
    ours = module.RATES["cpu"]
    try:
        module.RATES["cpu"] = rates
        return {m: sum(t) for m, t in _terms(module, shape).items()}
    finally:
        module.RATES["cpu"] = ours


def _terms(module: ModuleType, shape: Sequence[int]) -> dict[str, Rates]:
    terms: dict[str, Rates] = module._mode("auto", module.CHUNK, "cpu", *shape)[2]
    return terms


def loss(module: ModuleType, case: Case, rates: Rates) -> tuple[str, float]:
    """Returns the mode chosen, and its measured time as a multiple of the least."""
    times = predicted(module, case.shape, rates)
    chosen = min(case.seconds, key=times.__getitem__)
    return chosen, case.seconds[chosen] / min(case.seconds.values())


def measure(modules: Mapping[str, ModuleType], tell: Callable[[str], None]) -> Iterator[Case]:
    """Times all modes at every point of the grid, but those far from any choice."""
    for name, module in modules.items():
        for sizes, batch, length in product(SPECS[name], BATCHES, LENGTHS):
            given = arguments(module, sizes, batch, length)
            shape = (length, *given["S"].shape)
            expected = {m: sum(t) for m, t in _terms(module, shape).items()}
            near = [m for m in module.MODES if expected[m] < 10 * min(expected.values())]
            seconds = _least({m: partial(module._forward, **{**given, "mode": m}) for m in near})
            tell(
                f"{name} {shape}: {', '.join(f'{m} {1e6 * s:.0f} µs' for m, s in seconds.items())}"
            )
            yield Case(name, shape, seconds)


def _least(runs: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Seconds of the fastest of at least five runs each, more of short ones, turn by turn."""
    seconds: dict[str, float] = {}
    rounds, start = 0, perf_counter()
    while rounds < 6 or (rounds < 100 and perf_counter() - start < 0.1):
        for name, run in runs.items():
            begin = perf_counter()
            run()
            took = perf_counter() - begin
            # The first round warms up.
            seconds[name] = min(seconds.get(name, math.inf), took) if rounds else math.inf
        rounds += 1
    return seconds


def fit(modules: Mapping[str, ModuleType], cases: Sequence[Case]) -> Rates:
    """Returns the rates whose predictions are nearest to the times, by the mean of |log ratio|."""
    rows: list[list[float]] = []
    for case in cases:
        ones = [predicted(modules[case.spec], case.shape, unit) for unit in _UNITS]
        rows += [[one[m] / s for one in ones] for m, s in case.seconds.items()]
    table = torch.tensor(rows, dtype=torch.float64)
    grid = [torch.logspace(-1, 1, 41, dtype=torch.float64) * start for start in _START]
    best, error = _START, math.inf
    for call, operation in product(grid[0], grid[1]):
        ratios = (table[:, :2] @ torch.stack((call, operation)))[:, None] + table[:, 2:] * grid[2]
        errors = ratios.log().abs().mean(0)
        at = int(errors.argmin())
        if errors[at] < error:
            error, best = float(errors[at]), (float(call), float(operation), float(grid[2][at]))
    return best


_UNITS: tuple[Rates, ...] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
_START: Rates = (2e-6, 5e-11, 2e-10)


def _rounded(case: Case) -> dict[str, Any]:
    """A case as JSON, to a hundredth of a microsecond."""
    return asdict(case) | {"seconds": {m: round(s, 8) for m, s in case.seconds.items()}}


def read(path: Path = FILE) -> list[Case]:
    """Returns recorded cases."""
    document = json.loads(path.read_text(encoding="utf-8"))
    return [Case(c["spec"], tuple(c["shape"]), c["seconds"]) for c in document["cases"]]


def main() -> None:
    """Measures or reads, fits, prints."""
    parser = argparse.ArgumentParser(prog="benchmarks.calibrate", allow_abbrev=False)
    parser.add_argument("--read", action="store_true", help="fit to the recorded times")
    measuring = not parser.parse_args().read
    torch.set_num_threads(1)
    modules = {name: emitted.load(emitted.compile_spec(name)) for name in SPECS}
    if measuring:
        measured = [_rounded(case) for case in measure(modules, print)]
        when = datetime.now(UTC).date().isoformat()
        document = {"machine": record.machine(), "measured": when, "threads": 1, "cases": measured}
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text(json.dumps(document) + "\n", encoding="utf-8")
    cases = read()
    rates = fit(modules, cases)
    print("MACHINES: ({:.2g}, {:.2g}, {:.2g})".format(*rates))
    found = [(*loss(modules[case.spec], case, rates), case) for case in cases]
    for chosen, ratio, case in sorted(found, key=lambda f: -f[1]):
        if ratio > 1.25:
            print(f"{case.spec} {case.shape}: {chosen} takes {ratio:.2f} times the least")
    within = sum(ratio <= 1.5 for _, ratio, _ in found)
    print(f"{within} of {len(found)} choices within 1.5 of the least")


if __name__ == "__main__":
    main()
