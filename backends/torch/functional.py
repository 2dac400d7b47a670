"""The functional form of an emitted module: the mixer as a function of all its tensors."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from dsfc.plan.ir import Plan
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Scan

from .body import Body, BodyText
from .calls import ScanCall
from .code import cast
from .layout import WIDTH, paragraph
from .modes import Modes
from .recurrence import RecurrenceText, call_lines
from .signature import Signature, described, shaped
from .skeletons import Skeleton


@dataclass(frozen=True, slots=True)
class FunctionalText:
    """What `functional.py.j2` is filled with.

    Attributes:
        signature: the module's names.
        modes: the module's modes.
        body: the statements.
        next_states: variable of each state tensor's next value, registers aside.
        distributed: whether processes may share a sequence.
    """

    signature: Signature
    modes: Modes
    body: BodyText
    next_states: tuple[str, ...]
    distributed: bool = False

    @property
    def definition(self) -> str:
        """The `def` line."""
        tensors = [
            *self.signature.input_names,
            *(p.name for p in self.signature.parameters),
            *(t.name for t in self.signature.states),
        ]
        rows = "".join(f"    {n}: Tensor,\n" for n in tensors)
        count = 1 + len(self.signature.states)
        result = f"tuple[{', '.join(['Tensor'] * count)}]"
        flags = "".join(f"    {flag}: bool = True,\n" for flag in self.modes.flags)
        sizes = "".join(f"    {n}: int,\n" for n in self.body.sizes)
        ranks = "    ranks: _Ranks | None = None,\n" if self.distributed else ""
        return (
            f"def {self.signature.function}(\n{rows}    *,\n{sizes}"
            f'    mode: str = "auto",\n    chunk: int = {self.modes.default_chunk},\n'
            "    lengths: Tensor | None = None,\n"
            f"{flags}{ranks}) -> {result}:"
        )

    @property
    def title(self) -> str:
        """The docstring's first line, opened."""
        output = self.signature.output
        value = f"{output.name} {output.meaning}"
        text = f"Returns {value} and each state tensor after the last token."
        back = [t.name for t in self.signature.states if t.backward]
        if back:
            text = f"{text[:-1]}, {', '.join(back)} before the first one."
        return paragraph(text, "    ", '    """')

    @property
    def arguments(self) -> list[str]:
        """What the docstring says of the arguments; parameters of one shape are listed together."""
        states = [f"{t.name}: {t.meaning} {t.start}." for t in self.signature.states]
        return [
            *described(self.signature.inputs),
            *shaped(self.signature.parameters),
            *states,
            *(f"{n}: size of an axis that no tensor has." for n in self.body.sizes),
        ]

    @property
    def wide(self) -> bool:
        """Whether anything is computed in the accumulation dtype."""
        return self.field or any(re.search(r"\bwide\b", line) for line in self.body.lines)

    @property
    def grows(self) -> bool:
        """Whether a token may be written behind those that are kept."""
        return any(re.search(r"\bwrite\b", line) for line in self.body.lines)

    @property
    def counts(self) -> bool:
        """Whether tokens that do not count are left out here, and not in an operator."""
        return any(re.search(r"\bcounts\b", line) for line in self.body.lines)

    @property
    def field(self) -> bool:
        """Whether a recurrence is complex."""
        return any(re.search(r"\bfield\b", line) for line in self.body.lines)

    @property
    def returned(self) -> str:
        """The `return` statement; what does not fit beside the rest gets a name."""
        items = [cast(self.body.result, "dtype"), *self.next_states, *self.body.registers]
        line = f"    return {', '.join(items)}"
        if len(items) == 1:
            return f"    return ({items[0]},)"
        if len(line) <= WIDTH:
            return line
        names = [f"    next_{k} = {text}" for k, text in enumerate(items[1:], 1)]
        short = ", ".join([items[0], *(f"next_{k}" for k in range(1, len(items)))])
        return "\n".join([*names, f"    return {short}"])


def functional(
    plan: Plan,
    signature: Signature,
    modes: Modes,
    skeletons: tuple[Skeleton, ...],
    stepped: tuple[RecurrenceText, ...],
    caller: Callable[..., ScanCall],
    distributed: bool = False,
) -> FunctionalText:
    """Prints the functional form, which calls the operators of each scan and recurrence.

    Args:
        plan: the plan.
        signature: the module's names.
        modes: its modes.
        skeletons: of its scans.
        stepped: its recurrences.
        caller: prints the call of a scan.
        distributed: whether processes may share a sequence.
    """
    next_states: dict[str, str] = {}
    by_name = {s.scan.name: s for s in skeletons}
    texts = {r.kernel.name: r for r in stepped}
    identifier, like = signature.identifier, signature.like

    def call(scan: Scan | Recurrence) -> list[str]:
        if isinstance(scan, Recurrence):
            return call_lines(texts[scan.name], next_states, body.unused, distributed)
        printer = caller(by_name[scan.name], identifier, body.size, like, body.unused)
        return printer.lines(next_states, distributed)

    body: Body = Body(plan, identifier, like, call, signature.sensitive, distributed)
    text = body.text()
    states = tuple(next_states[s.name] for s in plan.states)
    return FunctionalText(signature, modes, text, states, distributed)
