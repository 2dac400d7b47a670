"""The float64 reference of an emitted module: what every mode is held against."""

from __future__ import annotations

import re
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
        return wrapped("def reference", [f"{n}: Tensor" for n in self._names], " -> Tensor:", "")

    @property
    def title(self) -> str:
        """The docstring's first line, opened."""
        output = self.signature.output
        what = f"Returns {output.name} {output.meaning} in float64"
        return paragraph(f"{what}, literally as defined, from an empty past.", "    ", '    """')

    @property
    def arguments(self) -> list[str]:
        """What the docstring says of the arguments; parameters of one shape are listed together."""
        return [*described(self.signature.inputs), *shaped(self.signature.parameters)]

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
            *self._sizes(),
            *self.definitions.lines,
            f"    return {self.definitions.result}",
        ]

    @property
    def helpers(self) -> list[str]:
        """Functions that the statements call."""
        used = [text.rstrip("\n") for k, text in HELPERS.items() if k in self.definitions.helpers]
        return [_DOUBLE, *used] if self.signature.complex else used

    @property
    def _names(self) -> list[str]:
        return [*self.signature.input_names, *(p.name for p in self.signature.parameters)]

    def _sizes(self) -> list[str]:
        """Statements that read the sizes used below off the arguments."""
        text = "\n".join(self.definitions.lines)
        out = []
        for d in self.plan.axes:
            name = self.signature.identifier(d.axis.name)
            if d.axis.copy_of is None and _mentions(text, name):
                read = size_read(self.plan, self.signature.identifier, d.axis.name)
                if read is None:
                    raise KeyError(d.axis.name)
                out.append(f"    {name} = {read}")
        return out


def reference(plan: Plan, signature: Signature) -> ReferenceText:
    """Prints the reference of a plan."""
    definitions = Definitions(plan, signature.identifier, signature.like)
    return ReferenceText(plan, signature, definitions)


_DOUBLE = '''\
def _double(x: Tensor) -> Tensor:
    """In double precision, complex where it is complex."""
    return x.to(torch.promote_types(x.dtype, torch.float64))'''


def _doubled(names: list[str], complex: bool) -> str:
    """The statement that widens arguments."""
    double = "_double(x)" if complex else "x.double()"
    if len(names) == 1:
        return f"    {names[0]} = {double.replace('x', names[0])}"
    joined = ", ".join(names)
    return f"    {joined} = ({double} for x in ({joined}))"


def _fits(line: str) -> bool:
    return len(line) <= WIDTH


def _mentions(text: str, name: str) -> bool:
    code = re.sub('"[^"]*"', "", text)
    return re.search(rf"(?<![\w.]){re.escape(name)}(?![\w(])", code) is not None
