"""The head of an emitted module: what it says of its origin, its imports, its constants."""

from __future__ import annotations

from dataclasses import dataclass

from dsfc.diagnostics.tool_codes import NoStep
from dsfc.plan.ir import Plan
from dsfc.source import NOWHERE

from .layout import WIDTH, literals, paragraph
from .modes import Modes
from .signature import Signature


@dataclass(frozen=True, slots=True)
class HeaderText:
    """What `header.py.j2` is filled with.

    Attributes:
        plan: the plan.
        source: file name of the spec.
        papers: that the spec names, each in a line.
        spec: hash of the plan, by which the module knows its states.
        signature: the module's names.
        modes: the module's modes.
        imports: import statements.
        layers: names of the classes of layers around the mixer.
    """

    plan: Plan
    source: str
    papers: tuple[str, ...]
    spec: str
    signature: Signature
    modes: Modes
    imports: tuple[str, ...]
    layers: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The docstring's first line, opened."""
        return paragraph(about(self.plan), "", '"""')

    @property
    def paragraphs(self) -> list[str]:
        """Paragraphs of the docstring: papers, source, derived system, structure."""
        system = "\n".join(_indented(self.plan.system))
        facts = [f"{line.rstrip('.')}." for line in _plain_lines(self.plan.structure)]
        if self.plan.recurrent_only is not None:
            facts.append(f"Recurrent only: {_plain(self.plan.recurrent_only)}.")
        if self.plan.pairs_only is not None:
            facts.append(f"All pairs of tokens: {_plain(self.plan.pairs_only)}.")
        facts.append(f"Gauge {gauge(self.plan)}.")
        facts.append("Λ is the transition, B the batch, L the length; axes: head / key / channel.")
        facts.append("All arguments and states have gradients.")
        papers = [paragraph(_plain(p), "  ", "- ") for p in self.papers]
        return [
            *(["\n".join(["Papers:", "", *papers])] if papers else []),
            f"Derived from {_plain(self.source)}:\n\n{system}",
            paragraph(" ".join(facts), ""),
        ]

    @property
    def no_step(self) -> list[str]:
        """Literals that say why there is no step; none where there is one."""
        states = self.plan.backwards
        if states is None:
            return []
        problem = NoStep(NOWHERE, mixer=_plain(self.plan.name), states=_plain(states))
        return literals(f"{problem.code}: {problem.message}", WIDTH - 4)

    @property
    def exports(self) -> str:
        """The items of `__all__`."""
        cls = self.signature.class_name
        names = sorted({"State", self.signature.function, "reference", *self.layers} - {cls})
        # The class comes first: it is what a reader and `dsfc verify` look for.
        return ", ".join(f'"{n}"' for n in [cls, *names])


def about(plan: Plan) -> str:
    """Returns the mixer's name and what its spec says it is."""
    doc = f": {_plain(plan.doc)}" if plan.doc else ""
    return f"{plan.name}{doc}".rstrip(".") + "."


def gauge(plan: Plan) -> str:
    """Returns the gauge that the states are stored in, in words."""
    return plan.gauge or "no state"


def _indented(text: str) -> list[str]:
    """Lines of a rendered value, indented; what is too long goes on in the next line."""
    lines = []
    for line in _plain_lines(text):
        body = line.lstrip()
        indent = " " * (4 + len(line) - len(body))
        lines += paragraph(body, f"{indent}    ", indent).split("\n") if body else [""]
    return lines


def _plain(text: str) -> str:
    """A spec's text as it may stand in a comment or docstring: printable, no escapes."""
    return "".join(c if c.isprintable() and c not in '\\"' else "?" for c in text)


def _plain_lines(text: str) -> list[str]:
    """Lines of a rendered value as they may stand in a docstring."""
    return [
        "".join(c if c.isprintable() and c != "\\" else "?" for c in line).replace('"""', "'''")
        for line in text.rstrip("\n").split("\n")
    ]
