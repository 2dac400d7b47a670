"""Proves that a kernel computes the recurrence of its scan.

The kernel runs once, over the tokens of one chunk, with symbols for all that it reads, and so does
the recurrence. Both give polynomials, which are compared as polynomials; `uniform` says for what
other lengths and sizes that is a proof too. Where they differ, numbers are tried: a kernel is
refuted by arguments at which it computes something else, and by nothing less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from dsfc.expr.build import walk
from dsfc.expr.tree import Field, Reduce
from dsfc.kernel_ir.interpret import KernelError, interpret
from dsfc.kernel_ir.ir import Access, Kernel, Symbol
from dsfc.kernel_ir.verify import InvalidKernel, verify
from dsfc.kernel_proofs.each import EACH, with_last_state
from dsfc.kernel_proofs.exact import ExactNumbers, Undecided, Written
from dsfc.kernel_proofs.gradient import SIZES, check_gradient
from dsfc.kernel_proofs.recurrence import Recurrence, labels_of, symbolic_arguments
from dsfc.kernel_proofs.slices import check_additive
from dsfc.kernel_proofs.uniform import Uniform, uniform
from dsfc.kernel_proofs.witness import witness
from dsfc.kernels.operands import decays_by_keys
from dsfc.plan.scan_ir import Scan

OUTPUTS = {"o", "S_last"}
"""What a kernel writes that runs forwards."""

MEETING = 2
"""Entries of a dimension over which a kernel sums."""


class Status(Enum):
    """What is known of a kernel.

    PROVED: it computes the recurrence, for all lengths, or for the one token that it is for.
    AT_LENGTHS: it computes the gradient of the recurrence, at some lengths.
    REFUTED: at some arguments it computes something else.
    UNDECIDED: neither is shown.
    """

    PROVED = "proved"
    AT_LENGTHS = "proved at some lengths"
    REFUTED = "refuted"
    UNDECIDED = "not decided"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of a kernel, and why.

    Attributes:
        kernel: its name.
        status: what is known.
        text: for what it is proved, where it is refuted or why it is not decided.
        tokens: of a chunk, or the one token; 0 where it is not proved for all lengths.
        sizes: dimensions at which it is proved for one size, by name.
    """

    kernel: str
    status: Status
    text: str
    tokens: int = 0
    sizes: tuple[tuple[str, int], ...] = ()

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        colon = "" if self.status is Status.PROVED else ":"
        return f"{self.status.value}{colon} {self.text}"


def prove(kernel: Kernel, scan: Scan, constants: Iterable[str] = ()) -> Verdict:
    """Returns whether a kernel computes outputs and the last state of a scan, or its gradient.

    Of one that keeps the state after each token, that is proved of these states, and none refuted.

    Args:
        kernel: a kernel of the scan's operator.
        scan: the scan.
        constants: leaves of its decay that are the same at all tokens.
    """
    try:
        verify(kernel)
        if EACH in {a.name for a in kernel.arguments}:
            return _proved_each(with_last_state(kernel), scan, frozenset(constants))
        recurrence = recurrence_of(kernel, scan, frozenset(constants))
    except InvalidKernel as e:
        return Verdict(kernel.name, Status.UNDECIDED, f"it is no kernel: {e.problems[0]}")
    except (Undecided, KernelError) as e:
        return Verdict(kernel.name, Status.UNDECIDED, str(e))
    try:
        if OUTPUTS & {a.name for a in kernel.arguments}:
            return _proved(kernel, recurrence, uniform(kernel))
    except (Undecided, KernelError) as e:
        difference = witness(kernel, recurrence)
        if difference is not None:
            return Verdict(kernel.name, Status.REFUTED, difference)
        return Verdict(kernel.name, Status.UNDECIDED, str(e))
    try:
        return _proved_gradient(kernel, recurrence)
    except (Undecided, KernelError) as e:
        return Verdict(kernel.name, Status.UNDECIDED, str(e))


def _proved_each(kernel: Kernel, scan: Scan, constants: frozenset[str]) -> Verdict:
    """Returns that the states which a kernel keeps are proved, of the kernel of the last of them.

    Raises:
        InvalidKernel: there is no such kernel.
        KernelError: it does not run.
        Undecided: they are not.
    """
    verify(kernel)
    shape = uniform(kernel)
    if shape.chunk != 1 or not shape.loops:
        raise Undecided("its loop does not go token by token")
    return _proved(kernel, recurrence_of(kernel, scan, constants), shape)


def _proved_gradient(kernel: Kernel, recurrence: Recurrence) -> Verdict:
    """Returns that a kernel computes gradients, at some lengths.

    Raises:
        Undecided: it is not shown.
    """
    *lengths, longest = check_gradient(kernel, recurrence)
    sizes = sorted({n for x in recurrence.labels.values() for n in x} - {recurrence.time})
    fixed = tuple((n, 1 if n in _enumerated(kernel) else SIZES) for n in sizes)
    at = ", ".join(f"{n} = {size}" for n, size in fixed)
    text = f"L = {', '.join(map(str, lengths))} and {longest}, with {at}"
    return Verdict(kernel.name, Status.AT_LENGTHS, text, 0, fixed)


def _enumerated(kernel: Kernel) -> set[str]:
    return {g.count.name for g in kernel.grid if isinstance(g.count, Symbol)}


def _proved(kernel: Kernel, recurrence: Recurrence, shape: Uniform) -> Verdict:
    """Returns that a kernel is proved.

    Raises:
        Undecided: it is not.
    """
    if shape.time != recurrence.time:
        raise Undecided("its loop goes through something other than the sequence")
    sizes = _sizes(kernel, shape)
    names = _compare(kernel, recurrence, sizes, shape.chunk)
    if shape.loops:
        _compare(kernel, recurrence, sizes, 0)
    if shape.chunk > 1:
        _check_zeros(kernel, recurrence, sizes)
    meeting = {n for labels in recurrence.labels.values() for n in labels}
    meeting -= {*shape.any_size, shape.time}
    if len(meeting) == 1 and _is_of_any_size(kernel, recurrence, shape, sizes, names):
        meeting = set()
    parts = {shape.parts[n] for n in meeting & shape.parts.keys()}
    fixed = tuple((n, sizes[n]) for n in sorted(meeting | parts))
    return Verdict(kernel.name, Status.PROVED, _said(shape, fixed), shape.chunk, fixed)


def _is_of_any_size(
    kernel: Kernel,
    recurrence: Recurrence,
    shape: Uniform,
    sizes: Mapping[str, int],
    names: Sequence[Written],
) -> bool:
    """Whether what is proved for two entries of the one dimension that is summed is of any number.

    Args:
        kernel: the kernel.
        recurrence: what it computes.
        shape: how it divides its work.
        sizes: at which it is proved.
        names: that were given there.
    """
    summed = [n for n in shape.wholes if n not in shape.any_size]
    log = recurrence.scan.decay and recurrence.scan.decay.expr
    if len(summed) != 1 or (log and any(isinstance(e, Reduce) for e in walk(log))):
        return False
    (label,) = summed
    try:
        check_additive(kernel, shape.wholes[label])
        alone = _compare(kernel, recurrence, {**sizes, label: 1}, shape.chunk)
    except Undecided:
        return False
    of_slices = [f"{name}[" for name, labels in recurrence.labels.items() if label in labels]
    return alone == names and all(
        w.name is not None and not any(s in text for text in w.rest.names for s in of_slices)
        for w in names
    )


def _said(shape: Uniform, fixed: tuple[tuple[str, int], ...]) -> str:
    if not shape.loops:
        length, how = "one token", ""
    elif shape.chunk == 1:
        length, how = "all lengths", ", by induction over tokens"
    else:
        length, how = "all lengths", f", by induction over chunks of {shape.chunk} tokens"
    if not fixed:
        return f"for {length} and all sizes{how}"
    at = ", ".join(f"{label} = {size}" for label, size in fixed)
    return f"for {length}, at {at} and all other sizes{how}"


def recurrence_of(kernel: Kernel, scan: Scan, constants: frozenset[str]) -> Recurrence:
    """Returns what a kernel is to compute, or what it is to compute the gradient of.

    Args:
        kernel: a kernel of the scan's operator.
        scan: the scan.
        constants: leaves of its decay that are the same at all tokens.

    Raises:
        Undecided: its arguments are not those of an operator with real entries.
    """
    if scan.field is not Field.REAL or scan.powers or scan.transition is not None:
        raise Undecided("proofs are of scans with real states and a diagonal or a low-rank part")
    results = {a.name for a in kernel.arguments if a.access is Access.WRITE}
    reads = [a for a in kernel.arguments if a.access is Access.READ]
    labels = labels_of((*reads, *(a for a in kernel.arguments if a.name in OUTPUTS)))
    if not results & OUTPUTS:
        labels |= {n: labels[f"d{n}"] for n in OUTPUTS if f"d{n}" in labels}
    roles = {"v", "S"}
    roles |= {"q", "k"} if scan.keys else set()
    roles |= {"a", "b"} if scan.low_rank is not None else set()
    roles |= {"r"} if scan.delta is not None else set()
    leaves = _leaves(scan, constants, labels)
    inputs = roles | set(leaves.values())
    read = {a.name for a in reads}
    if (read, results) not in (
        (inputs, OUTPUTS),
        (inputs | {f"d{n}" for n in OUTPUTS}, {f"d{n}" for n in inputs}),
    ):
        raise Undecided("it is neither all of a pass forwards nor all of its gradient")
    output, state = labels["o"], labels["S"]
    if labels["S_last"] != state or len(output) < 2 or output[0] != state[0]:
        raise Undecided("its outputs and states are not laid out as those of a scan")
    keys = set(state) - set(output)
    if bool(keys) != bool(scan.keys) or labels["v"] != output:
        raise Undecided("its states do not have the keys of the scan")
    if "g" in labels and bool(keys & set(labels["g"])) != decays_by_keys(scan):
        raise Undecided("its decays do not have the axes of the scan's")
    return Recurrence(scan, labels, output[0], output[1], leaves, tuple(sorted(inputs)))


def _leaves(
    scan: Scan, constants: frozenset[str], labels: Mapping[str, tuple[str, ...]]
) -> dict[str, str]:
    """Leaf of log λ → argument, those of tokens first."""
    if scan.decay is None:
        return {}
    names = sorted(scan.decay.leaves, key=lambda n: n in constants)
    if len(names) == 1 and "g" in labels:
        return {names[0]: "g"}
    return {n: f"g{i}" for i, n in enumerate(names, 1)}


def _sizes(kernel: Kernel, shape: Uniform) -> dict[str, int]:
    """Sizes of one program: 1 where entries never meet, a few where they do."""
    sizes = {n: 1 for n in (*kernel.static, *kernel.dynamic)}
    for label in {s.name for a in kernel.arguments for s in a.shape if isinstance(s, Symbol)}:
        sizes[label] = 1 if label in shape.any_size else MEETING
    for label, part in shape.parts.items():
        sizes[part] = sizes[label]
    return sizes


def _compare(
    kernel: Kernel, recurrence: Recurrence, sizes: Mapping[str, int], length: int
) -> tuple[Written, ...]:
    """Compares a kernel with the recurrence, over some tokens; returns the names in both.

    Raises:
        Undecided: their polynomials differ.
    """
    here, numbers = {**sizes, recurrence.time: length}, ExactNumbers()
    arguments = symbolic_arguments(kernel, here)
    got = interpret(kernel, arguments, here, numbers)
    beside = numbers.beside()
    want = recurrence.run(arguments, length, beside)
    for name in ("o", "S_last"):
        if name == "o" and not length:
            continue
        if got[name].shape != want[name].shape:
            raise Undecided(f"{name} has another shape than the recurrence gives it")
        for place in np.ndindex(*got[name].shape):
            if got[name][place] != want[name][place]:
                at = ", ".join(map(str, place))
                raise Undecided(f"entry ({at}) of {name} is not that of the recurrence")
    return (*numbers.written, *beside.written)


def _check_zeros(kernel: Kernel, recurrence: Recurrence, sizes: Mapping[str, int]) -> None:
    """Checks that a token of zeros leaves the state as it is.

    Raises:
        Undecided: it does not.
    """
    arguments = {
        name: entries * 0 if recurrence.time in recurrence.labels[name] else entries
        for name, entries in symbolic_arguments(kernel, {**sizes, recurrence.time: 1}).items()
    }
    after = recurrence.run(arguments, 1, ExactNumbers().beside())["S_last"]
    if not all(a == b for a, b in zip(after.ravel(), arguments["S"].ravel(), strict=True)):
        raise Undecided("a token of zeros changes the state")
