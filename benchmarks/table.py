"""All comparisons, one value each. A new one is a new row, its peers and its work."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from benchmarks.clock import Effort
from benchmarks.contender import Contender, Work
from benchmarks.peers import convolution, linear_attention, scans, selective_scan, step
from benchmarks.workload import (
    DELTA,
    ELEMENTWISE,
    KEYED_DELTA,
    PER_KEY,
    S4D,
    SCALAR,
    SELECTIVE,
    STEP,
    TOKEN,
    Sizes,
    Workload,
)


class Quantity(Enum):
    """What a bar is about."""

    TIME = "time"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Bar:
    """What an emitted module is to reach beside a peer.

    Attributes:
        quantity: median time, or peak memory of the process.
        work: forward, or forward and backward.
        peer: name of a contender of the row.
        at_most: our share of the peer's, 0.2 for five times faster.
    """

    quantity: Quantity
    work: Work
    peer: str
    at_most: float


class Law(Enum):
    """How time may grow with the length L."""

    LINEAR = "L"
    FFT = "L log L"


LENGTHS = (1024, 2048, 4096, 8192, 16384, 32768, 65536)
TIME_GROWTH = 1.3
"""Most that a token may cost at any length, in time, of what it costs at the shortest one."""

MEMORY_GROWTH = 1.1
"""The same in memory; a tenth for what the allocator and the system round up."""


_SHORT = (256, 512, 1024)
_PER_ROW = Effort()
_PER_LENGTH = Effort(rounds=9, seconds=30.0)
_QUICK = Effort(rounds=3, seconds=2.0, least=1, slow=1.0, patience=8.0)


@dataclass(frozen=True, slots=True)
class Growth:
    """How an emitted module is to grow with length, forward and backward.

    Attributes:
        law: of time; memory is to grow linearly.
        lengths: L, rising.
        chunk_states: beyond arguments, output and their gradients, memory for at most this many
            tensors of one state per chunk; None: not bounded so.
        effort: how often each length is timed.
    """

    law: Law = Law.LINEAR
    lengths: tuple[int, ...] = LENGTHS
    chunk_states: float | None = None
    effort: Effort = _PER_LENGTH


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison.

    Attributes:
        name: as on the command line.
        structure: the class of the spec.
        spec: name of the file in `specs/`.
        backend: which backend emits the module.
        work: what is computed.
        sizes: by the letters of `workload`.
        peers: whom the module is compared with.
        bars: what it is to reach.
        growth: how it is to grow with length; None of one token.
        tolerance: most that an output or gradient may be off, of its largest entry, against the
            float64 recurrence.
        effort: how often everything is run.
        peaks: processes in which the memory of each piece of work is measured; 0 of one token.
        calls: of the work in one run, whose time is that of one of them.
        group: a name for several rows on the command line.
    """

    name: str
    structure: str
    spec: str
    work: Workload
    sizes: Sizes
    peers: tuple[Contender, ...]
    bars: tuple[Bar, ...]
    growth: Growth | None
    tolerance: float
    backend: str = "torch"
    effort: Effort = _PER_ROW
    peaks: int = 3
    calls: int = 1
    group: str = ""

    def quick(self) -> Row:
        """The same with an eighth of the length and few runs, to see that it works."""
        return dataclasses.replace(
            self,
            sizes=self.at(max(self.sizes["L"] // 8, 1)),
            growth=self.growth and dataclasses.replace(self.growth, lengths=_SHORT, effort=_QUICK),
            effort=_QUICK,
            peaks=min(self.peaks, 1),
        )

    def at(self, length: int) -> Sizes:
        """The sizes with another length."""
        return MappingProxyType({**self.sizes, "L": length})


def _sizes(**sizes: int) -> Mapping[str, int]:
    return MappingProxyType(sizes)


# float32 carries 6e-8. The sums have some thousand terms of both signs, in another order each: the
# contenders are within 1e-6, and one that did other work would be off by far more than this.
_TOLERANCE = 1e-5

# A kernel made in float32 turns by L angles at once; an angle of some hundred is off by 1e-5.
_TOLERANCE_OF_KERNELS = 1e-4


def _time(work: Work, peer: str, at_most: float) -> Bar:
    return Bar(Quantity.TIME, work, peer, at_most)


_TORCH = (
    Row(
        name="scalar",
        structure="scalar",
        spec="retnet",
        work=SCALAR,
        sizes=_sizes(B=1, L=2048, H=8, K=128, V=128),
        peers=(linear_attention.CHUNK_SIMPLE_GLA,),
        bars=(
            Bar(Quantity.TIME, Work.FORWARD, "naive_chunk_simple_gla", 1.1),
            Bar(Quantity.TIME, Work.TRAINING, "naive_chunk_simple_gla", 1 / 5),
        ),
        growth=Growth(chunk_states=1.5),
        tolerance=_TOLERANCE,
    ),
    Row(
        name="elementwise",
        structure="elementwise",
        spec="rg_lru",
        work=ELEMENTWISE,
        sizes=_sizes(B=2, L=2048, d=1024),
        peers=(scans.EAGER, scans.COMPILED, scans.LOOP),
        bars=(Bar(Quantity.TIME, Work.TRAINING, "associative_scan", 1 / 2),),
        growth=Growth(),
        tolerance=_TOLERANCE,
    ),
    Row(
        name="selective",
        structure="selective",
        spec="s6",
        work=SELECTIVE,
        sizes=_sizes(B=1, L=1024, d=512, N=16),
        peers=(selective_scan.PSCAN, selective_scan.REFERENCE),
        bars=(
            Bar(Quantity.TIME, Work.TRAINING, "mambapy pscan", 1 / 3),
            Bar(Quantity.MEMORY, Work.TRAINING, "mambapy pscan", 1 / 4),
        ),
        growth=Growth(),
        tolerance=_TOLERANCE,
    ),
    Row(
        name="per_key",
        structure="per_key",
        spec="gla",
        work=PER_KEY,
        sizes=_sizes(B=1, L=2048, H=8, K=128, V=128),
        peers=(linear_attention.RECURRENT_GLA,),
        bars=(
            Bar(Quantity.TIME, Work.FORWARD, "naive_recurrent_gla", 1 / 10),
            Bar(Quantity.TIME, Work.TRAINING, "naive_recurrent_gla", 1 / 10),
        ),
        growth=Growth(),
        tolerance=_TOLERANCE,
    ),
    Row(
        name="lti",
        structure="lti",
        spec="s4d",
        work=S4D,
        sizes=_sizes(B=8, L=4096, d=256, N=32),
        peers=(convolution.KERNEL_GIVEN, convolution.KERNEL_MADE),
        bars=(
            Bar(Quantity.TIME, Work.FORWARD, "torch.fft, kernel given", 1.0),
            Bar(Quantity.TIME, Work.TRAINING, "torch.fft, kernel given", 1.0),
        ),
        growth=Growth(law=Law.FFT),
        tolerance=_TOLERANCE_OF_KERNELS,
    ),
)


_DELTA = Row(
    name="delta",
    structure="low_rank",
    spec="gated_deltanet",
    work=DELTA,
    sizes=_sizes(B=1, L=2048, H=8, K=128, V=128),
    peers=(linear_attention.CHUNK_GATED_DELTA,),
    bars=(Bar(Quantity.TIME, Work.FORWARD, "naive_chunk_gated_delta_rule", 1.6),),
    growth=Growth(lengths=LENGTHS[:4]),
    tolerance=_TOLERANCE,
)

_KEYED_DELTA = Row(
    name="keyed_delta",
    structure="low_rank",
    spec="kda",
    work=KEYED_DELTA,
    sizes=_sizes(B=1, L=2048, H=8, K=128, V=128),
    peers=(linear_attention.CHUNK_KDA,),
    bars=(_time(Work.FORWARD, "naive_chunk_kda", 1.0),),
    growth=Growth(lengths=LENGTHS[:4]),
    tolerance=_TOLERANCE,
)


def _in_c(row: Row, *bars: Bar, **sizes: int) -> Row:
    """The row with the module that runs kernels in C, its bars, and sizes that differ."""
    assert row.growth is not None
    return dataclasses.replace(
        row,
        name=f"{row.name}_c",
        backend="c",
        bars=bars,
        sizes=MappingProxyType({**row.sizes, **sizes}),
        growth=dataclasses.replace(row.growth, lengths=LENGTHS[:5], chunk_states=None),
    )


_STEPS = (
    Row(
        name="step_op",
        group="step",
        structure="scalar",
        spec="retnet",
        work=TOKEN,
        sizes=_sizes(B=1, L=1, H=8, K=64, V=64),
        peers=(step.RECURRENCE,),
        bars=(_time(Work.FORWARD, "by hand", 1.5),),
        growth=None,
        tolerance=_TOLERANCE,
        peaks=0,
        calls=200,
    ),
    Row(
        name="step_layer",
        group="step",
        structure="scalar",
        spec="retnet",
        work=STEP,
        sizes=_sizes(B=1, L=1, d=512, H=8),
        peers=(step.LAYER,),
        bars=(_time(Work.FORWARD, "by hand", 1.5),),
        growth=None,
        tolerance=_TOLERANCE,
        peaks=0,
        calls=200,
    ),
)

_STEPS_IN_C = tuple(
    dataclasses.replace(row, name=f"{row.name}_c", backend="c", group="step_c") for row in _STEPS
)

_SCALAR, _ELEMENTWISE, _SELECTIVE, _PER_KEY, _LTI = _TORCH

ROWS = (
    *_TORCH,
    _DELTA,
    _KEYED_DELTA,
    *_STEPS,
    *_STEPS_IN_C,
    _in_c(
        _SCALAR,
        _time(Work.FORWARD, "naive_chunk_simple_gla", 0.55),
        _time(Work.TRAINING, "naive_chunk_simple_gla", 1 / 4),
    ),
    _in_c(
        _ELEMENTWISE,
        _time(Work.FORWARD, "associative_scan", 1 / 8),
        _time(Work.TRAINING, "associative_scan", 1 / 8),
    ),
    _in_c(
        _SELECTIVE,
        _time(Work.FORWARD, "mambapy pscan", 1 / 25),
        _time(Work.TRAINING, "mambapy pscan", 1 / 15),
    ),
    _in_c(
        _PER_KEY,
        _time(Work.FORWARD, "naive_recurrent_gla", 1 / 20),
        _time(Work.TRAINING, "naive_recurrent_gla", 1 / 40),
        H=4,
    ),
    _in_c(
        _DELTA,
        _time(Work.FORWARD, "naive_chunk_gated_delta_rule", 1 / 4),
        _time(Work.TRAINING, "naive_chunk_gated_delta_rule", 1 / 6),
    ),
    _in_c(
        _KEYED_DELTA,
        _time(Work.FORWARD, "naive_chunk_kda", 1 / 4),
        _time(Work.TRAINING, "naive_chunk_kda", 1 / 6),
    ),
    _in_c(
        dataclasses.replace(_LTI, growth=Growth()),
        _time(Work.FORWARD, "torch.fft, kernel given", 1 / 1.5),
    ),
)


NAMES = tuple(dict.fromkeys(name for r in ROWS for name in (r.group, r.name) if name))
"""Names of rows and of groups of rows on the command line."""


def chosen(names: Collection[str]) -> list[Row]:
    """Returns the rows of some names or groups, or all."""
    return [r for r in ROWS if not names or {r.name, r.group} & set(names)]


def row(name: str) -> Row:
    """Returns a row by name.

    Raises:
        KeyError: there is none of that name.
    """
    return {row.name: row for row in ROWS}[name]
