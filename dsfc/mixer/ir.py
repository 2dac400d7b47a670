"""The typed mixer: what a spec means once names are bound, bases merged and shapes inferred.

    Mixer = axes + inputs + params + buffers + abstracts
          + definitions (in dependency order) + states (one update each) + output

Expressions may hold sums over time (`Past`), lag powers (`Lag`) and running products (`Run`);
functions and modifiers have been expanded. `dsfc.mixer.evaluate` is the meaning of this value:
recursion over time and double loops.
"""

from __future__ import annotations

from dataclasses import dataclass

from dsfc.expr.declarations import AbstractMap, Dimension, FlowRule, MapTensor, Provenance, Tensor
from dsfc.expr.tree import Axis, Expr, Field, Type
from dsfc.layer_parts import NO_PARTS, LayerParts
from dsfc.papers import Paper
from dsfc.source import Span


@dataclass(frozen=True, slots=True)
class Definition:
    """`name = value`. Read elsewhere as `Ref(name, …)`."""

    name: str
    value: Expr
    provenance: Provenance | None = None
    span: Span | None = None

    @property
    def type(self) -> Type:
        """Type of the value."""
        return self.value.type


@dataclass(frozen=True, slots=True)
class Flow:
    """x' = drift by rule(step). In `drift` the state itself is read at `Now(0)`."""

    drift: Expr
    rule: FlowRule
    step: Expr


@dataclass(frozen=True, slots=True)
class StateDecl:
    """A declared state and its update.

    Attributes:
        name: ASCII name.
        axes: canonical order.
        field: real or complex.
        backward: True when the state runs from the end of the sequence to its start.
        update: the value at i, reading states at `Now(1)` (`Now(-1)` for backward states); None
            exactly when `flow` is given.
        flow: continuous form, kept because the rule cannot be read back once discretised.
        maximum: whether the update is m = max(m[i-1] + a, w): then the state starts from `LOWEST`,
            the zero of maxima, and not from 0.
    """

    name: str
    axes: tuple[Axis, ...]
    field: Field
    backward: bool
    update: Expr | None
    flow: Flow | None
    provenance: Provenance | None = None
    span: Span | None = None
    maximum: bool = False


@dataclass(frozen=True, slots=True)
class ClaimText:
    """A claim as written: it speaks of derived things and is typed after the derivation.

    Attributes:
        text: canonical text of the whole claim.
    """

    text: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A record of what `extends`, an override or `use` replaced.

    Attributes:
        kind: "extends", "override" or "use".
        target: the name it acted on.
        by: the mixer or modifier that did it.
    """

    kind: str
    target: str
    by: str


@dataclass(frozen=True, slots=True)
class Mixer:
    """A typed mixer; see the module docstring.

    Attributes:
        name: ASCII name of the mixer.
        doc: the string after its name, if any.
        axes: all dimensions in canonical order, those the output does not reach left out.
        inputs: streams that the module takes, by their axes at one token.
        params: trained tensors and linear maps.
        buffers: fixed ones.
        abstracts: functions of which nothing is known.
        definitions: in dependency order.
        states: one update each.
        output: name of the output definition or state ("y").
        claims: as written, not yet typed.
        rewrites: what `extends`, overrides and `use` replaced, in order.
        papers: that its own text names, the original first; those of its bases are not its own.
        layer: norm and gate that its own text names, of the layer around it.
        span: where the mixer stands in its text.
    """

    name: str
    doc: str | None
    axes: tuple[Dimension, ...]
    inputs: tuple[Tensor, ...]
    params: tuple[Tensor | MapTensor, ...]
    buffers: tuple[Tensor | MapTensor, ...]
    abstracts: tuple[AbstractMap, ...]
    definitions: tuple[Definition, ...]
    states: tuple[StateDecl, ...]
    output: str
    claims: tuple[ClaimText, ...]
    rewrites: tuple[Rewrite, ...]
    papers: tuple[Paper, ...] = ()
    layer: LayerParts = NO_PARTS
    span: Span | None = None

    def definition(self, name: str) -> Definition | None:
        """Returns the definition of that name, or None.

        Args:
            name: ASCII name.
        """
        return next((d for d in self.definitions if d.name == name), None)

    def state(self, name: str) -> StateDecl | None:
        """Returns the state of that name, or None.

        Args:
            name: ASCII name.
        """
        return next((s for s in self.states if s.name == name), None)

    def __repr__(self) -> str:
        """Returns one line for a terminal; `dsfc.mixer.render` writes out the whole."""
        said = {
            "inputs": [t.name for t in self.inputs],
            "parameters": [t.name for t in self.params],
            "states": [s.name for s in self.states],
            "output": [self.output],
        }
        listed = "; ".join(f"{what} {', '.join(names)}" for what, names in said.items() if names)
        return f"<Mixer {self.name}: {listed}>"

    def _repr_html_(self) -> str:
        """Returns what a notebook shows: every name with its axes and its value."""
        from dsfc.mixer.html import html

        return html(self)
