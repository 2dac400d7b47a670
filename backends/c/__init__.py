"""The C target: the torch module, whose operators run kernels in C on CPUs.

A module of this backend is that of `dsfc.backends.torch`. Where a scan has kernels, as
`dsfc.kernels` builds them, its operators start them: their text stands in the module, and the
machine's compiler compiles it when it is first needed. Where there is no compiler, the torch form
runs, and `explain` says why.

| file             | what it holds                                                              |
|------------------|----------------------------------------------------------------------------|
| `schedule.py`    | what of a kernel is computed where: in a loop, in place, in memory          |
| `loop_fusion.py` | which statements are neighbours over the same axes, in which order          |
| `printer.py`     | kernel → C function                                                        |
| `memory.py`      | where values lie in memory                                                 |
| `products.py`    | products of matrices                                                       |
| `loops.py`       | one nest of loops for each run of neighbours                               |
| `cumulative.py`  | sums and products of the entries so far                                    |
| `text.py`        | lines, blocks and loops of C                                               |
| `expressions.py` | integers, numbers and functions of entries as C                            |
| `reserved_names.py` | names that C or the header have                                         |
| `skeletons.py`   | which scans have kernels, and what their operators call                    |
| `coverage.py`    | which calls run in kernels, and why torch runs the others                   |
| `launch.py`      | how a kernel is started: sizes, division of the work, results               |
| `render.py`      | the module                                                                 |
| `probe.py`       | which compiler this machine has                                            |
| `runtime/`       | what stands in modules as it is: the header, and what compiles and starts   |
"""

from __future__ import annotations

from ..torch import TorchBackend
from .coverage import coverage
from .probe import COMPILER
from .render import target
from .skeletons import kernels

BACKEND = TorchBackend(
    name="c",
    target=target,
    kernels=kernels,
    coverage=coverage,
    probes=(COMPILER,),
    needs={"CPU": (COMPILER.what,)},
)
