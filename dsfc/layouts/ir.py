"""A layout map as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dsfc.layouts.dims import Dim
from dsfc.layouts.operations import Function, Operation
from dsfc.source import Span

Step = Operation | Function
"""One operation of a row, or a function of its numbers."""

Setting = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Published:
    """A tensor of the published layer.

    Attributes:
        name: in its `state_dict`.
        shape: its sizes.
        span: where the map declares it.
    """

    name: str
    shape: tuple[Dim, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Row:
    """How one entry of the emitted module is made.

    Attributes:
        entry: its name in the module's `state_dict`.
        sources: names of published tensors.
        along: the axis along which several sources are joined; None for one source.
        steps: what is done with them, in order.
        span: where the map writes the row.
        places: where each step stands.
    """

    entry: str
    sources: tuple[str, ...]
    along: int | None
    steps: tuple[Step, ...]
    span: Span = field(compare=False)
    places: tuple[Span, ...] = field(compare=False)

    @property
    def functions(self) -> tuple[Function, ...]:
        """The functions of single entries among the steps, in order."""
        return tuple(step for step in self.steps if isinstance(step, Function))

    @property
    def words(self) -> tuple[str, ...]:
        """The names of the steps, as the map writes them."""
        steps = (step.value if isinstance(step, Function) else step.word for step in self.steps)
        return (*(() if self.along is None else ("join",)), *steps)


@dataclass(frozen=True, slots=True)
class Reference:
    """The published layer itself, to be run beside the module.

    Its class is called with a configuration, if it has one, and the arguments; then with an input
    `[B, L, d]`. Arguments of the call that have no default are None.

    Attributes:
        of: the class: its module and its name.
        config: the class of the configuration in the same form; None where the class takes sizes.
        sizes: settings of the configuration that are sizes.
        settings: the other settings.
        arguments: of the class, behind the configuration.
        call: arguments of the call, behind the input.
        positions: the argument of the call that takes the numbers of the tokens `[B, L]`, if any.
        span: where the map names the class.
    """

    of: tuple[str, str]
    config: tuple[str, str] | None
    sizes: Mapping[str, Dim]
    settings: Mapping[str, Setting]
    arguments: Mapping[str, Setting]
    call: Mapping[str, Setting]
    positions: str | None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout map.

    Attributes:
        title: what the weights are of, in words.
        spec: the shipped spec, or a file beside the map, whose module takes the weights.
        layer: whether the weights are those of the whole layer that `--layer` writes.
        published: the tensors of the published layer.
        unused: those that no row takes.
        rows: the entries of the module.
        axes: arguments of the module's class that are not sizes of the same name.
        reference: the published layer, if the map names it.
        span: the whole text.
    """

    title: str
    spec: str
    layer: bool
    published: tuple[Published, ...]
    unused: tuple[str, ...]
    rows: tuple[Row, ...]
    axes: Mapping[str, Dim]
    reference: Reference | None
    span: Span = field(compare=False)
