"""The float64 reference of an emitted module: what every mode is held against."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dsfc.plan.ir import Plan

from .definitions import HELPERS, Definitions
from .layout import WIDTH, paragraph, wrapped
from .signature import Signature, described, shaped, size_read


@dataclass(frozen=True, slots=True)
class ReferenceText:
    """What `reference.py.j2` is filled with.

    Attributes:
        plan: the plan.
        signature: the module's names.
        definitions: the mixer's definitions as statements.
    """

    plan: Plan
    signature: Signature
    definitions: Definitions

    @property
    def definition(self) -> str:
        """The `def` line."""
        parameters = [f"{n}: Tensor" for n in self._names]
        unread = [f"{n}: int" for n, read in self._sizes.items() if read is None]
        parameters += ["*", *unread] if unread else []
        return wrapped("def reference", parameters, " -> Tensor:", "")

    @property
    def title(self) -> str:
        """The docstring's first line, opened."""
        output = self.signature.output
        what = f"Returns {output.name} {output.meaning} in float64"
        return paragraph(f"{what}, literally as defined, from an empty past.", "    ", '    """')

    @property
    def arguments(self) -> list[str]:
        """What the docstring says of the arguments; parameters of one shape are listed together."""
        unread = [n for n, read in self._sizes.items() if read is None]
        lines = [f"{n}: size of an axis that only a state has." for n in unread]
        return [*described(self.signature.inputs), *shaped(self.signature.parameters), *lines]

    @property
    def body(self) -> list[str]:
        """Widens the arguments, reads the sizes that are used, evaluates."""
        names = self._names
        lines = []
        while names:
            # As many at a time as fit a line.
            rows = [_doubled(names[: k + 1], self.signature.complex) for k in range(len(names))]
            count = max(k for k, row in enumerate(rows, 1) if k == 1 or _fits(row))
            lines.append(rows[count - 1])
            names = names[count:]
        return [
            *lines,
            *(f"    {name} = {read}" for name, read in self._sizes.items() if read is not None),
            *_returning(self.definitions.lines, self.definitions.result),
        ]

    @property
    def helpers(self) -> list[str]:
        """Functions that the statements call."""
        used = [text.rstrip("\n") for k, text in HELPERS.items() if k in self.definitions.helpers]
        return used

    @property
    def _names(self) -> list[str]:
        return [*self.signature.input_names, *(p.name for p in self.signature.parameters)]

    @property
    def _sizes(self) -> dict[str, str | None]:
        """The sizes used below, and text that reads them off the arguments, None if none has it."""
        text = "\n".join(self.definitions.lines)
        name = self.signature.identifier
        axes = [d.axis.name for d in self.plan.axes if d.axis.copy_of is None]
        used = [a for a in axes if _mentions(text, name(a))]
        return {name(a): size_read(self.plan, name, a) for a in used}


def reference(plan: Plan, signature: Signature) -> ReferenceText:
    """Prints the reference of a plan."""
    definitions = Definitions(plan, signature.identifier, signature.like)
    return ReferenceText(plan, signature, definitions)


def _doubled(names: list[str], complex: bool) -> str:
    """The statement that widens arguments."""
    double = "_double(x)" if complex else "x.double()"
    if len(names) == 1:
        return f"    {names[0]} = {double.replace('x', names[0])}"
    joined = ", ".join(names)
    return f"    {joined} = ({double} for x in ({joined}))"


def _returning(lines: Sequence[str], result: str) -> list[str]:
    """Statements that return a result; the last one returns its value, where a line holds it."""
    last = lines[-1].replace(f"    {result} = ", "    return ", 1)
    if last != lines[-1] and "\n" not in last and _fits(last):
        return [*lines[:-1], last]
    return [*lines, f"    return {result}"]


def _fits(line: str) -> bool:
    return len(line) <= WIDTH


def _mentions(text: str, name: str) -> bool:
    code = re.sub('"[^"]*"', "", text)
    return re.search(rf"(?<![\w.]){re.escape(name)}(?![\w(])", code) is not None
