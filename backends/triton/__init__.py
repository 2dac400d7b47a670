"""The Triton backend: the torch module, whose operators have kernels for GPUs as well.

A module of this backend is that of `dsfc.backends.torch`, section by section, with the torch form
of every mode. Where a scan has a skeleton here, its operators look at what they are given: they
launch the kernels, or run the torch form and say why (`explain`). It imports without Triton.

How a plan becomes kernels:

    plan ──fuse──▶ plan, prologues and epilogues ──skeletons──▶ operator, kernels, launch

| file                   | what it holds                                                       |
|------------------------|---------------------------------------------------------------------|
| `dsfc/fused/`          | what kernels compute besides their recurrences, with derivatives    |
| `skeletons.py`         | the table form → skeleton; a form without a row keeps its torch form |
| `coverage.py`          | which calls run in kernels, and why torch runs the others           |
| `<form>.py`            | what the templates of a form are filled with                        |
| `matrix_features.py`   | what a matrix scan computes of its arguments besides the recurrence |
| `phases.py`            | complex matrix scans, as real ones of both planes of their state    |
| `selective_arguments.py` | what a selective scan takes, and how it lies in memory          |
| `<form>_kernels.py.j2` | what the kernels of a form share, and in which order they stand     |
| `<form>_<kernel>.py.j2` | a kernel of a form, as it will read                                |
| `<form>_launch.py.j2`  | the launches of a form                                              |
| `gated_*.py.j2`        | features, operator and gradient of a scan that computes its gates   |
| `matrix_kernels_shared.py.j2` | what the kernels of all matrix scans call                    |
| `segments_shared.py.j2`, `matrix_launch_shared.py.j2` | tiles, segments and sizes of launches |
| `kernels_shared.py.j2`, `launch_shared.py.j2` | what the kernels and launches of all forms call |
| `printer.py`           | prints kernels of the kernel IR                                   |
| `blocks.py`, `memory.py`, `names.py`, `triangles.py`, `zeros.py` | what it prints with     |
| `printed_scan.py`      | what all scans with printed kernels have in common                  |
| `printed.py`, `printed_convolution.py` | launches of chunks side by side, and of convolutions |
| `printed_*.py.j2`      | what printed kernels, their launches and plans of these call        |
| `calls.py`             | prints the call of an operator                                      |
| `nodes.py`             | prints expressions as Triton                                        |
| `statements.py`        | prints several expressions, what is used twice under a name         |
| `trust.py.j2`          | known faults and a trial beside torch, before kernels run            |
| `toolchains.py`        | what is known of versions of Triton, with sources                   |
| `functions.py`         | primitives that are functions of the module                         |
| `cost/`                | bytes, operations and launches of kernels; devices; predicted time   |
| `sizes.py`             | sizes that kernels are printed with and their costs counted with    |
| `tiles.py`             | tiles and warps by form, width of numbers and architecture          |

What the kernels of several scans of one form share is `<form>_kernels_shared.py.j2`. A convolution
without keys has the kernels of elementwise scans, and the torch form of convolutions.

To add a form is to add its two files, and its rows in `skeletons.py` and `tiles.py`. Templates take
no decisions; what differs from spec to spec is printed from expressions. They hold a recurrence in
both directions and how its states pair; gradients of gates come from the primitive table.

Every launch goes through `_launch`: kernels are compiled by Triton's own path on their first call,
and started by their handles after that, which spares most of a call's time on the host. A handle
takes addresses that are multiples of 16 bytes, all of the current device; for others, for versions
of Triton that are not known to have such handles, and while a profiler wants to hear of starts,
Triton's path is taken. Operators ask `_declined` before they launch. What a call needs every time
is counted in plain integers, as Triton's own functions of sizes take longer than a launch; tables
that anyone may change are looked up anew.

Printed kernels of chunks side by side are several a pass. What calls alike have in common is a
`_Plan`: grids, what is fixed, shapes of results, and where what one kernel leaves for another lies
in one piece of memory. It is kept by all that it depends on (sizes, dtypes, devices, tiles as they
are now), and holds the handles once there are some: a second call looks its plan up, makes its
results, and starts the kernels with addresses. `benchmarks/gpu/host.py` measures it.

Conventions of kernels. Numbers are float32 between load and store. Offsets to the start of a row of
the batch have 64 bits, those inside a tile 32. What varies from call to call, the length, is no
part of the key under which a kernel is compiled: its integers are annotated; what is fixed with the
mixer is `constexpr`. There are no atomics: what several programs add up comes out as one slice
each, and torch adds those.
A matrix scan's state stays in registers, cut by columns or by keys; backwards one kernel goes with
time (dq) and one against it (dk, dv). The gradient of log λ adds up what passes over a token: in
the chunk, from and to its ends, and across it, of states that both kernels meet at each span.
A column of one channel, a denominator's, is carried by every program besides its own.
Names: `i_` index, `o_` offsets, `m_` mask, `p_` pointer, `dp_` pointer to a gradient, `r_` rows of
a tile, `x_` the same before a feature map, `b_` and `db_` values of one row and their gradients.
"""

from __future__ import annotations

from ..torch import TorchBackend
from .cost.render import costs_text
from .coverage import coverage
from .nodes import computes
from .render import target
from .skeletons import kernels
from .toolchains import FAULTS

BACKEND = TorchBackend(
    name="triton",
    target=target,
    faults=FAULTS,
    costs=costs_text,
    kernels=kernels,
    coverage=coverage,
    needs={"GPU": ("GPU", "kernels")},
    computes=computes,
)
